"""Rendered triplets, for finetuning on images instead of texts (Appendix E)."""

from typing import Annotated

from pydantic import Field, field_validator

from .base import Section


class ImageTriplets(Section):
    """How many examples of four scenes each. The paper's own numbers are not in our copy: all defaults are ours."""

    examples: int = Field(4000, ge=1, le=100_000, description="Examples to train on; each is four rendered scenes.")
    validation_examples: int = Field(500, ge=1, le=100_000, description="Examples to validate on.")
    object_counts: tuple[Annotated[int, Field(ge=2, le=20)], ...] = Field(
        (2, 3, 4), min_length=1, description="Scene sizes N; as many examples of each."
    )
    image_px: int = Field(256, ge=64, le=2048, description="Width and height of the images in pixels.")
    seed: int = Field(0, ge=0, description="Draws the examples, scatters the objects and mirrors the images.")
    shard_size: int = Field(125, ge=1, le=5000, description="Examples that one job renders, four images each.")

    @field_validator("object_counts")
    @classmethod
    def _ascending(cls, counts):
        if list(counts) != sorted(set(counts)):
            raise ValueError("must ascend without repeats")
        return counts
