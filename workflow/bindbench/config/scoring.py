"""How tables, intervals and figures are made from scores."""

from pydantic import Field

from .base import Section


class Tables(Section):
    """Intervals (every mean comes with one)."""

    confidence: float = Field(0.95, ge=0.5, lt=1, description="Confidence level of the intervals.")
    bootstrap_samples: int = Field(
        2000, ge=100, le=100_000, description="Resamples of the questions; chains are drawn whole."
    )
    seed: int = Field(0, ge=0, description="Draws the resamples.")


class Figures(Section):
    """Plots and sheets."""

    dpi: int = Field(150, ge=50, le=600, description="Resolution of the PNG figures, in dots per inch.")
    sheet_questions: int = Field(
        36, ge=1, le=500, description="Questions shown on the contact sheets, spread over all N and both subsets."
    )
    failure_examples: int = Field(
        3,
        ge=1,
        le=50,
        description="Images of each generator shown of each pattern in MultiBind's gallery of failures: its worst ones.",
    )
