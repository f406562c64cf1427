"""Tables of ablations: finetuned models side by side with the one that they vary (C.1 to C.3, Appendix E)."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from .base import Section
from .embedders import EmbedderName
from .finetuning import Run


def _usable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,99}", name):
        raise ValueError(
            "a name has at most 100 letters, digits, dots, pluses and minuses, and begins with a letter or digit"
        )
    return name


AblationName = Annotated[str, AfterValidator(_usable)]


class Ablation(Section):
    """One table."""

    title: str = Field(min_length=1, description="Heading of the table.")
    baseline: EmbedderName = Field(description="The model that the others are compared with, one of `models` above.")
    models: tuple[EmbedderName, ...] = Field(
        min_length=1, description="The other rows, in their order, each one of `models` above."
    )

    @model_validator(mode="after")
    def _rows_differ(self):
        if self.baseline in self.models:
            raise ValueError(f"models: {self.baseline} is the baseline already, which is the first row")
        if twice := [name for name in self.models if self.models.count(name) > 1]:
            raise ValueError(f"models: {twice[0]} is named twice")
        return self


class NamedAblation(Ablation):
    """A table with its name: JSON with sorted keys keeps the order of a list only."""

    name: AblationName = Field(description="Name of the table.")


class AblationPlan(Section):
    """What the program of the tables reads: the tables in their order, and the run behind each finetuned model."""

    tables: tuple[NamedAblation, ...] = Field(description="The tables.")
    runs: dict[EmbedderName, Run] = Field(description="By model; a model that was not finetuned has none.")
