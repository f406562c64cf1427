"""How a scene becomes an image (section A.4)."""

from typing import Literal

from pydantic import Field

from .base import Section


class Scenes(Section):
    """The embedded renderer's settings."""

    renderer: Literal["builtin"] = Field(
        "builtin", description="builtin: the 2.5D renderer of this package, offline and free."
    )
    image_px: int = Field(
        512, ge=64, le=2048, description="Width and height of the images in pixels (the paper: 1024)."
    )
    seed: int = Field(
        0, ge=0, description="Scatters the objects and flips the images; the questions have a seed of their own."
    )
    flip_probability: float = Field(0.5, ge=0, le=1, description="Chance that an image is mirrored (A.4).")
    shard_size: int = Field(250, ge=1, le=5000, description="Images that one job renders.")
