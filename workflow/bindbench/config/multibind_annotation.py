"""MultiBind's annotations: who describes the photographs, and where the embedded measures draw their lines (section 3.2)."""

from typing import Literal

from pydantic import Field, model_validator

from .base import Section


class Measures(Section):
    """Limits of the embedded method: where a measured figure becomes a word."""

    visibility: float = Field(0.5, ge=0, le=1, description="Least visibility of a joint that is spoken of.")
    face_score: float = Field(0.7, ge=0, le=1, description="Least score of a face that is looked at.")
    slight_expression: float = Field(
        0.25, ge=0, le=1, description="Blendshape score from which a movement of the face is named."
    )
    strong_expression: float = Field(0.6, ge=0, le=1, description="Blendshape score from which it is named as strong.")
    patterned: float = Field(
        9.0, ge=0, description="Local spread of lightness in a garment, in L* units, from which it counts as patterned."
    )
    colour_share: float = Field(
        0.2, gt=0, le=1, description="Least share of an area that a colour covers to be named beside the main one."
    )
    bare_distance: float = Field(
        14.0,
        ge=0,
        description="CIELAB distance to the face's colour below which a pixel is taken for bare, and left out.",
    )


class Annotation(Section):
    """How a photograph is described."""

    method: Literal["embedded", "openai", "google-genai"] = Field(
        "embedded",
        description="embedded: measured from pixels, landmarks and boxes; openai: a vision-language model behind OpenAI's "
        "protocol; google-genai: Gemini's API. The paid two answer with structured output.",
    )
    model: str | None = Field(
        None, min_length=1, description="Model of the paid methods; it needs a price in services.prices."
    )
    temperature: float | None = Field(
        None, ge=0, le=2, description="Of the paid methods; null: the model's own, the only one that some models take."
    )
    max_tokens: int = Field(6000, ge=500, description="Longest answer of the paid methods, in tokens.")
    measures: Measures = Field(default_factory=Measures, description="Limits of the embedded method.")

    @model_validator(mode="after")
    def _model_where_one_is_asked(self):
        if self.method != "embedded" and self.model is None:
            raise ValueError(f"model: the method {self.method} needs one, such as gpt-5.2 or gemini-3-pro-preview")
        return self
