"""Quality control of MultiBind in stages, automatic and by hand (section 3.2): what keeps an instance out of the data set."""

from pydantic import Field

from .base import Section


class Quality(Section):
    """What people rejected always keeps its instance out, and what is missing too; the rest is chosen here."""

    journal: str = Field(
        "screening/multibind.jsonl",
        min_length=1,
        description="Append-only file of the verdicts; not in results/, which may be deleted. `python -m bindbench "
        "review-instances` fills it.",
    )
    require_verdict: bool = Field(
        False, description="Leave instances out until a person has accepted every part of them."
    )
    reference_problems: tuple[str, ...] = Field(
        ("wrong_size", "empty", "same_as_other", "no_face", "other_person"),
        description="Automatic problems of a canonical reference that keep its instance out; others are shown only.",
    )
    background_problems: tuple[str, ...] = Field(
        ("person_left", "stretched"),
        description="Automatic problems of a background that keep its instance out; others are shown only.",
    )
    annotation_problems: tuple[str, ...] = Field(
        ("wrong_slots", "sensitive_words", "not_an_annotation"),
        description="Automatic problems of an annotation that keep its instance out; others are shown only.",
    )
    prompt_problems: tuple[str, ...] = Field(
        (
            *("unknown_letter", "missing_letter", "missing_block", "repeated_block", "no_edits", "wrong_letter"),
            *("missing_value", "wrong_value", "contradiction", "empty_value", "sensitive_words", "wrong_order"),
        ),
        description="What the linter found in a prompt that keeps its instance out; others are shown only.",
    )
