"""How MultiBind's similarities become rates (section 3.4); papers.md A.2.2 names the choices that the paper leaves open."""

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from .base import Section

Dimension = Literal["face", "appearance", "pose", "expression"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
Temperature = Annotated[float, Field(gt=0)]


class Thresholds(Section):
    """Both on delta = S_gen - S_gt, a difference of similarities, from -2 to 2 with cosines."""

    consistency: float | None = Field(
        None, ge=-2, le=2, description="Least delta on the diagonal at which a subject is consistent; null: see labels."
    )
    confusion: float | None = Field(
        None, ge=-2, le=2, description="Least delta off the diagonal that is a confusion link; null: see labels."
    )


class Scoring(Section):
    """Thresholds come from labels of people; without labels from documented defaults, which are marked as uncalibrated."""

    dimensions: tuple[Dimension, ...] = Field(
        DIMENSIONS,
        min_length=1,
        description="What is measured, in the order of the tables.",
    )
    labels: str | None = Field(
        None,
        min_length=1,
        description="Parquet table of the labels of people, from which the thresholds are calibrated; null: the defaults. "
        "`python -m bindbench label-subjects` makes it, as screening/multibind_labels.parquet.",
    )
    default_thresholds: str = Field(
        "resources/multibind/default_thresholds.csv",
        min_length=1,
        description="CSV of the uncalibrated thresholds of each dimension, for where there are no labels.",
    )
    thresholds: dict[Dimension, Thresholds] = Field(
        default_factory=dict,
        description="Thresholds that are used whatever the labels say; they are marked as uncalibrated.",
    )
    compared_generators: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Generators are compared on the subjects that all of these have; null: all but faults on purpose, one of "
        "which leaves people out, or, where there are no others, all.",
    )
    js_temperature: Temperature = Field(
        0.1,
        description="Temperature of the softmax over a row of similarities, in their unit, for the Jensen-Shannon shift.",
    )
    js_temperatures: tuple[Temperature, ...] = Field(
        (0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        description="Temperatures of the table that shows what the shift owes to them.",
    )
    undiagnosable_similarity: float = Field(
        0.95,
        ge=-1,
        le=1,
        description="Two real subjects that are more similar than this are listed: one cannot be told from the other.",
    )
    folds: int = Field(5, ge=2, le=100, description="Parts of the instances in the cross-validation of the thresholds.")
    bootstrap_rounds: int = Field(1000, ge=100, le=100_000, description="Resamples of the instances.")
    fid_rounds: int = Field(
        100,
        ge=20,
        le=100_000,
        description="Resamples for FID, the first of the others: each is a singular value decomposition.",
    )
    confidence: float = Field(0.95, ge=0.5, lt=1, description="Confidence level of the intervals.")
    seed: int = Field(0, ge=0, description="Draws the resamples and the parts of the cross-validation.")

    @model_validator(mode="after")
    def _nothing_twice(self):
        for name in ("dimensions", "js_temperatures", "compared_generators"):
            values = getattr(self, name) or ()
            if len(set(values)) != len(values):
                raise ValueError(f"{name}: a value is given twice")
        return self
