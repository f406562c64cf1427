"""HunyuanImage-3.0-Instruct by transformers, with the code that comes with its checkpoint: 80 billion parameters.

Its code runs only where the config sets trust_remote_code. It takes pictures as files, and rewrites the prompt by itself
before it draws (bot_task think_recaption), as its card does.
"""

import numpy as np

from ...config.multibind_generators import STEPS, Generator
from .asking import words_of
from .open_models import OpenModel, dtype_of, imported, pixels_of, source_of, told_in_a_line
from .scene import Scene


def open_model(settings: Generator) -> OpenModel:
    """Raises UserError where transformers is missing or the checkpoint cannot be loaded."""
    transformers = imported("transformers", settings, "install envs/embed.yaml")
    place, revision = source_of(settings)
    with told_in_a_line(settings):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            place,
            **revision,
            trust_remote_code=settings.trust_remote_code,
            dtype=dtype_of(settings),
            attn_implementation="sdpa",
            device_map="auto",
            moe_impl="eager",
        )
        model.load_tokenizer(place)

    def picture(scene: Scene) -> np.ndarray:
        width, height = scene.size
        _, pictures = model.generate_image(
            prompt=words_of(scene),
            image=[str(path) for path, _ in scene.files],
            seed=settings.seed,
            image_size=f"{height}x{width}",  # the model takes the nearest of the shapes that it knows
            use_system_prompt="en_unified",
            bot_task="think_recaption",
            infer_align_image_size=False,
            diff_infer_steps=settings.steps or STEPS[settings.kind],
        )
        return pixels_of(pictures[0])

    return picture
