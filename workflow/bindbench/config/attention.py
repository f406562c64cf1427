"""The analysis of attention between attributes and objects (C.3)."""

from pydantic import Field

from .base import Section
from .embedders import EmbedderName


class Attention(Section):
    """Which captions are read, and by which models."""

    captions: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Captions of each of the three sets: queries of the test split, their positives, queries of SABER.",
    )
    seed: int = Field(0, ge=0, description="Draws them.")
    models: tuple[EmbedderName, ...] = Field(
        (),
        description="Which of `models` are measured; empty: all that have attention between the words of a text (loaders "
        "sentence-transformers and minilm).",
    )
