"""Finetuning on the triplets (B.5): one entry for each run; an ablation is a run, not a copy of code (C.1 to C.3)."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from .base import Section
from .embedders import EmbedderName

NOT_SCALED = "-nolines"  # ends the name of a run's model whose adapter LiNeS has not scaled

Data = Literal["train", "no_overlap", "random", "overlap_only", "mixed_lengths", "no_negation", "image_triplets"]
Share = Annotated[float, Field(ge=0, le=1)]


def _in_order(layers: tuple[int, int]) -> tuple[int, int]:
    if layers[0] > layers[1]:
        raise ValueError(f"the first layer comes after the last (got {layers[0]}, {layers[1]})")
    return layers


def _scale_or_sweep(value: Any) -> Any:
    """One message for both kinds of value, not one for each."""
    try:
        number = value if value == "sweep" or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = None
    if number != "sweep" and (type(number) is not float or not 0 <= number <= 1):
        raise ValueError(f"must be a number from 0 to 1, or sweep (got {value!r})")
    return number


LinesAlpha = Annotated[Share | Literal["sweep"], BeforeValidator(_scale_or_sweep)]
LayerRange = Annotated[
    tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]],
    AfterValidator(_in_order),
]


class Run(Section):
    """One finetuning. The defaults are the paper's where it says one; "ours" marks what it leaves open."""

    base: EmbedderName = Field(description="Embedder that is finetuned, one of `embedders`.")
    data: Data = Field(
        "train",
        description="Training set: train, or one of the ablations' sets (C.1), or image_triplets, which are rendered and "
        "validated on images of their own (Appendix E).",
    )
    examples: int | None = Field(None, ge=1, description="Examples drawn from it; empty: all.")
    epochs: int = Field(1, ge=1, description="Passes over them.")
    rank: int = Field(
        4,
        ge=1,
        description="LoRA's r; at most the smallest dimension of the base's attention projections, checked once it is loaded.",
    )
    alpha: float = Field(4, gt=0, description="LoRA's alpha: the update is scaled by alpha / rank.")
    margin: float = Field(0.05, gt=0, le=2, description="Of the hinge triplet loss, in cosine similarity.")
    learning_rate: float = Field(5e-5, gt=0, description="Of AdamW, constant.")
    weight_decay: float = Field(0.01, ge=0, description="Of AdamW.")
    batch_size: int = Field(32, ge=1, description="Examples of two triplets in one forward pass (ours).")
    accumulate: int = Field(1, ge=1, description="Batches whose gradients make one step.")
    max_tokens: int | None = Field(None, ge=8, description="Longer texts are cut; empty: as the embedder's entry says.")
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="Precision of the frozen weights; the adapter's and the optimizer's stay float32."
    )
    gradient_checkpointing: bool = Field(
        False, description="Computes activations again in the backward pass: less memory, more time."
    )
    seed: int = Field(0, ge=0, description="Draws the examples, their order and the adapter's first weights.")
    validation_examples: int = Field(
        500,
        ge=1,
        description="Examples drawn from the validation split, or from that of image_triplets where the run learns images; all "
        "of them where there are fewer.",
    )
    validate_every: int = Field(200, ge=0, description="Steps between validations; 0: before and after only.")
    checkpoint_minutes: float = Field(5, gt=0, description="A killed run loses at most so many minutes of work.")
    lines_alpha: LinesAlpha = Field(
        0,
        description="Scale of LiNeS at the first layer; the last one's is 1. sweep: chosen on the validation examples, as in "
        "LiNeS' code.",
    )
    attention_weight: float = Field(0, ge=0, description="Of the attention loss (C.3) beside the triplet loss (ours).")
    attention_margin: float = Field(0.05, gt=0, le=1, description="Of the attention loss's hinge (ours).")
    attention_layers: LayerRange | None = Field(
        None,
        description="First and last layer of the attention loss, counted from 1; empty: the paper's 18 to 26 of 36, in "
        "proportion.",
    )

    @property
    def learns_images(self) -> bool:
        return self.data == "image_triplets"

    @model_validator(mode="after")
    def _images_have_no_words(self):
        if self.learns_images and self.attention_weight:
            raise ValueError(
                "attention_weight: the attention loss reads words, and image_triplets have none; set it to 0"
            )
        if self.learns_images and self.max_tokens:
            raise ValueError("max_tokens: cuts texts, and image_triplets are images; leave it empty")
        return self


def _not_scaled(name: str) -> str:
    if name.endswith(NOT_SCALED):
        raise ValueError(f"the name of a run must not end in {NOT_SCALED}: that is its model without LiNeS")
    return name


# The runs of the default tables: small enough for two cores, at the rates of small models (the paper's 5e-5 is for 64,000
# examples and 8 B parameters).
DEFAULT_RUNS = {
    "nano-lora": Run(base="nano", examples=9600, learning_rate=1e-3, batch_size=8),
    "minilm-lora": Run(base="minilm", examples=3000, learning_rate=1e-3, batch_size=16),
}


class Finetuning(Section):
    """Named runs. A run's name is the name of the embedder that it makes."""

    runs: dict[Annotated[EmbedderName, AfterValidator(_not_scaled)], Run] = Field(
        DEFAULT_RUNS,
        description="Runs by name: each makes an adapter, and one that LiNeS has scaled. Trained once `models` asks for them. A "
        "given entry changes single keys of the default one of its name.",
    )

    @field_validator("runs", mode="before")
    @classmethod
    def _over_the_defaults(cls, given):
        """A given run changes single keys of the default one of its name; the other defaults stay."""
        if not isinstance(given, dict):
            return given
        runs = {name: run.model_dump(exclude_unset=True) for name, run in DEFAULT_RUNS.items()}
        for name, run in given.items():
            runs[name] = {**runs.get(name, {}), **run} if isinstance(run, dict) else run
        return runs

    @field_validator("runs")
    @classmethod
    def _folders_differ(cls, runs):
        if len({name.lower() for name in runs}) != len(runs):
            raise ValueError("two names differ in case only: they share a folder on some machines")
        return runs
