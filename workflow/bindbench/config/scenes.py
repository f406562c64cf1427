"""How a scene becomes an image (section A.4)."""

from typing import Literal

from pydantic import Field, model_validator

from .base import Section


class Scenes(Section):
    """Who draws the images, and how."""

    renderer: Literal["builtin", "openai"] = Field(
        "builtin",
        description="builtin: the 2.5D renderer of this package, offline and free. openai: a paid image model, see services.",
    )
    model: str = Field("gpt-image-2", min_length=1, description="openai: the image model.")
    quality: Literal["low", "medium", "high"] = Field(
        "medium", description="openai: quality asked for (the paper: medium)."
    )
    image_px: int = Field(
        512, ge=64, le=2048, description="Width and height of the images in pixels (the paper: 1024)."
    )
    seed: int = Field(
        0, ge=0, description="Scatters the objects and flips the images; the questions have a seed of their own."
    )
    flip_probability: float = Field(0.5, ge=0, le=1, description="Chance that an image is mirrored (A.4).")
    shard_size: int = Field(250, ge=1, le=5000, description="Images that one job renders.")

    @model_validator(mode="after")
    def _size_is_sold(self):
        if self.renderer == "openai" and self.image_px % 16:
            raise ValueError(f"image_px: must be divisible by 16 for the renderer openai (got {self.image_px})")
        return self
