"""Qwen-Image-Edit-2511 by diffusers: an edit of several pictures."""

from ...config.multibind_generators import GUIDANCE, STEPS, Generator
from .asking import words_of
from .open_models import (
    DIFFUSERS,
    OpenModel,
    asked_size,
    device,
    dtype_of,
    imported,
    input_pictures,
    noise,
    pixels_of,
    source_of,
    told_in_a_line,
)
from .scene import Scene

MOST_TOKENS = 1024  # the pipeline refuses to be asked for more


def open_model(settings: Generator) -> OpenModel:
    """Raises UserError where diffusers is missing or the checkpoint cannot be loaded."""
    diffusers = imported("diffusers", settings, f"uv pip install {DIFFUSERS}")
    place, revision = source_of(settings)
    with told_in_a_line(settings):
        pipeline = diffusers.QwenImageEditPlusPipeline.from_pretrained(place, **revision, dtype=dtype_of(settings))
        pipeline = pipeline.to(device())
    pipeline.set_progress_bar_config(disable=True)

    def picture(scene: Scene):
        width, height = asked_size(scene.size, settings.area_px)
        answer = pipeline(
            image=input_pictures(scene),
            prompt=words_of(scene),
            negative_prompt=" ",  # as on the model's card: without one there is no guidance
            true_cfg_scale=settings.guidance or GUIDANCE[settings.kind],
            num_inference_steps=settings.steps or STEPS[settings.kind],
            width=width,
            height=height,
            generator=noise(settings),
            max_sequence_length=MOST_TOKENS,
        )
        return pixels_of(answer.images[0])

    return picture
