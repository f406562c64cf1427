"""Vocabulary and questions of SABER (sections A.1 to A.3 and A.5 of the paper)."""

from math import comb, factorial
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from .base import Section

PALETTE = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black")


class Vocabulary(Section):
    """Which objects and attributes the scenes are made of (A.1)."""

    objects: str = Field(
        "resources/vocabulary/objects.csv",
        description="CSV with the columns object, group, shape (noto:NAME, own:NAME or the path of an SVG file); the default "
        "has 232 objects.",
    )
    attributes: str = Field(
        "resources/vocabulary/attributes.csv",
        description=(
            "CSV with the columns attribute, type (standalone, single-color, two-color, fixed-variant), category, "
            "template, variants (between vertical bars), material; the default has 50 attributes. The embedded "
            "renderer knows the materials of the default file and no others."
        ),
    )
    palette: tuple[str, ...] = Field(
        PALETTE,
        min_length=1,
        description="Colours that fill {color}, {color1} and {color2}; the renderer knows the nine of the paper.",
    )

    @field_validator("palette")
    @classmethod
    def _distinct(cls, palette):
        if len(set(palette)) != len(palette):
            raise ValueError("a colour is named twice")
        return palette


def arrangements_with_moved(n: int, at_least: int) -> int:
    """How many permutations of n things move at least so many of them."""
    derangements = [1, 0]
    for k in range(2, n + 1):
        derangements.append((k - 1) * (derangements[k - 1] + derangements[k - 2]))
    return factorial(n) - sum(comb(n, moved) * derangements[moved] for moved in range(min(at_least, n + 1)))


class Questions(Section):
    """How many questions are drawn, and how (section 3, A.2, A.5)."""

    seed: int = Field(
        0, ge=0, description="Draws the benchmark; the same seed gives the same questions on every machine."
    )
    object_counts: tuple[Annotated[int, Field(ge=2, le=20)], ...] = Field(
        (2, 3, 4, 5, 6, 7, 8, 9, 10),
        min_length=1,
        description="Scene sizes N; nested chains grow from the smallest to the largest.",
    )
    independent: int = Field(100, ge=0, le=100_000, description="Independently drawn questions for each N.")
    nested: int = Field(100, ge=0, le=100_000, description="Nested chains; each gives one question for each N.")
    min_moved: int = Field(
        2,
        ge=2,
        description="Least number of the query's bindings that an attribute, object or joint swap must break. Every swap breaks "
        "two at least, so 2 excludes none.",
    )

    @field_validator("object_counts")
    @classmethod
    def _ascending(cls, counts):
        if list(counts) != sorted(set(counts)):
            raise ValueError("must ascend without repeats")
        return counts

    @model_validator(mode="after")
    def _possible(self):
        if self.independent + self.nested == 0:
            raise ValueError("independent and nested are both 0: there is no question to ask")
        if self.nested and list(self.object_counts) != list(range(self.object_counts[0], self.object_counts[-1] + 1)):
            raise ValueError("object_counts must have no gap while nested > 0: each step of a chain adds one binding")
        if self.object_counts[0] == 2 and self.min_moved > 2:
            raise ValueError(
                f"min_moved = {self.min_moved} cannot be met at N = 2: a swap of two objects moves two bindings"
            )
        for n in self.object_counts:
            if n > 2 and arrangements_with_moved(n, self.min_moved) < 3:
                raise ValueError(
                    f"min_moved = {self.min_moved} leaves fewer than three different wrong scenes at N = {n}"
                )
        return self
