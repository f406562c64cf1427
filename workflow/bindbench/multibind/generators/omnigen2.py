"""OmniGen2 by its authors' own package, whose pipeline diffusers loads: generation in the context of several pictures.

Its text encoder is asked for 1,024 tokens, which its transformer has places for; the end of a longer prompt is lost.
"""

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

MOST_TOKENS = 1024
PIPELINE = "omnigen2.pipelines.omnigen2.pipeline_omnigen2"
TRANSFORMER = "omnigen2.models.transformers.transformer_omnigen2"
REMEDY = "put the repository of OmniGen2 (VectorSpaceLab) on PYTHONPATH"


def open_model(settings: Generator) -> OpenModel:
    """Raises UserError where diffusers or omnigen2 is missing or the checkpoint cannot be loaded."""
    imported("diffusers", settings, f"uv pip install {DIFFUSERS}")
    pipeline_class = imported(PIPELINE, settings, REMEDY).OmniGen2Pipeline
    transformer_class = imported(TRANSFORMER, settings, REMEDY).OmniGen2Transformer2DModel
    (place, revision), dtype = source_of(settings), dtype_of(settings)
    with told_in_a_line(settings):
        pipeline = pipeline_class.from_pretrained(
            place, **revision, torch_dtype=dtype, trust_remote_code=settings.trust_remote_code
        )
        pipeline.transformer = transformer_class.from_pretrained(
            place, **revision, subfolder="transformer", torch_dtype=dtype
        )
        pipeline = pipeline.to(device(), dtype=dtype)
    pipeline.set_progress_bar_config(disable=True)

    def picture(scene: Scene):
        width, height = asked_size(scene.size, settings.area_px)
        answer = pipeline(
            prompt=words_of(scene),
            input_images=input_pictures(scene),
            width=width,
            height=height,
            num_inference_steps=settings.steps or STEPS[settings.kind],
            max_sequence_length=MOST_TOKENS,
            text_guidance_scale=settings.guidance or GUIDANCE[settings.kind],
            image_guidance_scale=settings.image_guidance,
            num_images_per_prompt=1,
            generator=noise(settings),
            output_type="pil",
        )
        return pixels_of(answer.images[0])

    return picture
