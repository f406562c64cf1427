"""Screening of the images by people (section A.4)."""

from pydantic import Field

from .base import Section


class Screening(Section):
    """Where verdicts are kept and what counts without one."""

    journal: str = Field(
        "screening/saber.jsonl",
        min_length=1,
        description="Append-only file of the verdicts; not in results/, which may be deleted. `python -m bindbench "
        "review-scenes` fills it.",
    )
    require_verdict: bool = Field(
        False,
        description="Leave questions out of the scores while a scene is open. Rejected scenes always keep their question "
        "out; images of the embedded renderer count as accepted.",
    )
    proposal_model: str | None = Field(
        None,
        description="A vision-language model behind the openai client that may propose verdicts (`python -m bindbench "
        "propose-verdicts`); it needs a price in services.prices. People confirm its proposals on the review page.",
    )
