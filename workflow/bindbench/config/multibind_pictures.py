"""MultiBind's made pictures: the canonical reference of each subject and the background without people (section 3.2)."""

from typing import Literal

from pydantic import Field, model_validator

from .base import Section

PAID = ("gemini", "openai")  # methods that buy from a service
GEMINI_MODEL = "gemini-3-pro-image"  # Nano Banana Pro
OPENAI_MODEL = "gpt-image-1.5"


class References(Section):
    """One picture per subject: who it is and what they wear, without pose, expression, gaze and surroundings."""

    method: Literal["embedded", "gemini", "openai"] = Field(
        "embedded",
        description="embedded: the subject cut out on neutral grey, offline and free; its pose and expression stay. gemini: "
        "Gemini 3 Pro Image (the paper's). openai: GPT-Image. Both are paid for, see services.",
    )
    gemini_model: str = Field(GEMINI_MODEL, min_length=1, description="gemini: the image model.")
    openai_model: str = Field(OPENAI_MODEL, min_length=1, description="openai: the image model.")
    quality: Literal["low", "medium", "high"] = Field("high", description="openai: quality asked for.")
    size_px: int = Field(
        1024,
        ge=64,
        le=4096,
        description="Width and height of a reference in pixels. gemini makes 1024, 2048 or 4096, the first that is not "
        "smaller, openai 1024; other sizes are resized to.",
    )
    margin: float = Field(
        0.04, ge=0, le=0.4, description="embedded: free border on the narrower sides, as a share of size_px."
    )
    least_coverage: float = Field(
        0.05,
        ge=0,
        le=1,
        description="embedded: a subject that covers a smaller share of the picture has the problem `small`.",
    )


class Backgrounds(Section):
    """The photograph without its people."""

    method: Literal["patchmatch", "opencv", "lama", "gemini", "openai"] = Field(
        "patchmatch",
        description="patchmatch: texture from the rest of the photograph, offline and free. opencv: smooth colours. lama: "
        "LaMa, where its weights are given. gemini, openai: generative, paid for, see services.",
    )
    grow: float = Field(
        0.012,
        ge=0,
        le=0.2,
        description="How far around each person is removed with them, as a share of the photograph's longer side.",
    )
    grow_below: float = Field(
        0.04,
        ge=0,
        le=1,
        description="How far below each person is removed with them, for shadows, as a share of the person's height.",
    )
    longest_px: int = Field(
        640,
        ge=64,
        le=4096,
        description="patchmatch, opencv, lama: photographs with a longer side are filled at this size; the rest of the "
        "photograph keeps its own pixels.",
    )
    seed: int = Field(0, ge=0, le=2**32 - 1, description="patchmatch: where the search begins.")
    patch_px: Literal[3, 5, 7, 9, 11] = Field(7, description="patchmatch: width of a patch.")
    algorithm: Literal["telea", "ns"] = Field(
        "telea", description="opencv: telea (fast marching) or ns (Navier-Stokes)."
    )
    radius_px: float = Field(5.0, ge=1, le=50, description="opencv: how far around a pixel colours are taken from.")
    lama_weights: str | None = Field(
        None, min_length=1, description="lama: file of the model as TorchScript, such as big-lama.pt."
    )
    gemini_model: str = Field(GEMINI_MODEL, min_length=1, description="gemini: the image model.")
    openai_model: str = Field(OPENAI_MODEL, min_length=1, description="openai: the image model.")
    quality: Literal["low", "medium", "high"] = Field("high", description="openai: quality asked for.")
    gemini_size: Literal["1K", "2K", "4K"] = Field("1K", description="gemini: size asked for.")

    @model_validator(mode="after")
    def _lama_has_weights(self):
        if self.method == "lama" and self.lama_weights is None:
            raise ValueError("lama_weights: method lama needs the file of its model, as TorchScript; name it")
        return self
