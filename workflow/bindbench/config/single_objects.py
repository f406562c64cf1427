"""The single-object naming measure: our general-retrieval figure beside SABER."""

from pydantic import Field

from .base import Section


class SingleObjects(Section):
    """How many images of one object are named among all phrases of the vocabulary.

    Combinations that the nano embedder saw in its pretraining stand apart from those that were held out of it.
    """

    seen: int = Field(
        500,
        ge=1,
        le=100_000,
        description="Images, each of another attribute-object combination that the nano embedder saw in its pretraining; "
        "all such combinations where the vocabulary has fewer.",
    )
    held_out: int = Field(500, ge=1, le=100_000, description="The same of combinations that were held out of it.")
    seed: int = Field(0, ge=0, description="Draws the combinations and their realised forms.")
