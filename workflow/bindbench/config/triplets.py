"""The finetuning data: 100,000 examples of two text triplets each (Appendix B of the paper)."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from .base import Section

CONSTRUCTIONS = (
    *("pair_swap", "triple_bind_cycle", "triple_bind_swap", "attr_bundle", "predicative"),
    *("deferred_bind_anaphoric", "deferred_bind_respective"),
)
Count = Annotated[int, Field(ge=0, le=10_000_000)]


class Generation(Section):
    """Who proposes sentences, and what is asked for (B.1, B.3). The validator alone accepts."""

    seed: int = Field(0, ge=0, description="Draws the controls of every example, and the grammar's words.")
    resources: str = Field(
        "resources/triplets",
        min_length=1,
        description="Folder of the lists: adjectives, objects, scenes, times, weathers, registers, openers, grammar.",
    )
    backend: Literal["grammar", "openai", "google-genai"] = Field(
        "grammar",
        description="grammar: the embedded one, without a model; openai: any OpenAI-compatible server such as vLLM "
        "(services.servers); google-genai: Gemini's API.",
    )
    model: str = Field(
        "gemma-4-31b-it",
        min_length=1,
        description="Model of the paid backends; it needs a price in services.prices.",
    )
    temperature: float = Field(1.0, ge=0, le=2, description="Of the paid backends.")
    max_tokens: int = Field(4000, ge=100, description="Longest answer of the paid backends, in tokens.")
    examples_per_request: int = Field(5, ge=1, le=50, description="Examples asked for in one request.")
    requests_per_round: int = Field(
        64,
        ge=1,
        le=50_000,
        description="Requests that share one state of the word lists: they may be in flight at once. Larger for batches.",
    )
    least_acceptance: float = Field(
        0.05,
        ge=0,
        le=1,
        description="A shard stops with an error when fewer of its first 500 proposals, or of all later, are accepted.",
    )


class Splits(Section):
    """B.5: both deferred constructions are held out whole, the rest is split by example."""

    seed: int = Field(0, ge=0, description="Draws the splits and the sets of the ablations.")
    validation: float = Field(0.1, ge=0, lt=1, description="Part of the examples that goes to validation.")
    test: float = Field(0.1, ge=0, lt=1, description="Part of the examples that goes to the test.")
    set_size: int | None = Field(
        None,
        ge=1,
        description="Examples of each of the sets no_overlap, random and overlap_only (C.1; the paper: 30,900). Empty: as "
        "many as the smaller of no_overlap and overlap_only has.",
    )

    @model_validator(mode="after")
    def _some_left(self):
        if self.validation + self.test >= 1:
            raise ValueError("validation and test together leave nothing to train on")
        return self


class Triplets(Section):
    """How many examples, in which shards."""

    counts: dict[str, Count] = Field(
        {name: 10_000 if name.startswith("deferred") else 16_000 for name in CONSTRUCTIONS},
        description="Accepted examples by construction (Table 8). A given entry changes that construction alone.",
    )
    shard_size: int = Field(
        4000, ge=1, le=1_000_000, description="Accepted examples of one job; a killed run loses at most this much work."
    )
    generation: Generation = Field(default_factory=Generation, description="Who proposes, and what is asked for.")
    splits: Splits = Field(default_factory=Splits, description="Training, validation, test, and the ablations' sets.")

    @field_validator("counts", mode="before")
    @classmethod
    def _over_the_defaults(cls, given):
        if not isinstance(given, dict):
            return given
        if unknown := [name for name in given if name not in CONSTRUCTIONS]:
            raise ValueError(f"{unknown[0]} is no construction (one of {', '.join(CONSTRUCTIONS)})")
        return {**cls.model_fields["counts"].default, **given}

    @field_validator("counts")
    @classmethod
    def _something(cls, counts):
        if not any(count for name, count in counts.items() if not name.startswith("deferred")):
            raise ValueError("all constructions but the deferred ones are 0: there is nothing to train on")
        return counts
