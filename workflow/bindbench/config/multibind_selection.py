"""Which photographs become instances of MultiBind (section 3.2); the paper states its counts, its limits are not known."""

from typing import Annotated

from pydantic import Field, model_validator

from .base import Section
from .multibind_sources import Kind

SubjectCount = Annotated[int, Field(ge=2, le=4)]
Quota = Annotated[int, Field(ge=0)]


class Selection(Section):
    """Everyone who is large enough is a subject, and a photograph with one faulty subject is left out as a whole."""

    seed: int = Field(
        0, ge=0, description="Draws the order in which photographs are taken, by their ids, until the quotas are full."
    )
    min_subjects: SubjectCount = Field(2, description="Fewest subjects of a photograph (the paper: 2).")
    max_subjects: SubjectCount = Field(4, description="Most subjects of a photograph (the paper: 4).")
    min_subject_share: float = Field(
        0.02,
        gt=0,
        le=1,
        description="Share of the photograph that a person's box covers, from which on it is a subject.",
    )
    max_bystander_share: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Largest share of the photograph that the boxes of smaller people, and of crowd regions apart from the "
        "subjects, may cover together. A crowd region that touches a subject is never allowed.",
    )
    min_subject_height_px: int = Field(128, ge=1, description="Least height of a subject in pixels of the target.")
    max_at_border: float = Field(
        0.45,
        ge=0,
        le=1,
        description="Largest share of the outline of a subject's box that lies on the photograph's border. A person who is "
        "cut along one side has less than 0.5, one in a corner has 0.5.",
    )
    min_filled: float = Field(
        0.2, ge=0, le=1, description="Least share of a subject's box that its mask covers: less is hidden by something."
    )
    max_pieces: int = Field(5, ge=1, description="Most unconnected parts of a subject's mask.")
    max_overlap: float = Field(
        0.85, ge=0, le=1, description="Largest share of a subject's box that the box of another subject may cover."
    )
    min_side_px: int = Field(360, ge=16, description="Least length of the photograph's shorter side in pixels.")
    max_side_px: int = Field(
        1536,
        ge=64,
        le=8192,
        description="Largest length of the target's longer side in pixels; a larger photograph is scaled down to it.",
    )
    min_sharpness: float = Field(
        40,
        ge=0,
        description="Least variance of the Laplacian of the whole target, in grey levels squared: less is blurred.",
    )
    min_subject_sharpness: float = Field(
        20, ge=0, description="Least variance of the Laplacian within a subject's crop, in grey levels squared."
    )
    duplicate_bits: int | None = Field(
        6,
        ge=0,
        le=63,
        description="Two photographs whose perceptual hashes (pHash, 64 bits) differ in at most so many bits are the same "
        "one, of which the first is kept; different ones differ in about 32. null: all are kept.",
    )
    quotas: dict[SubjectCount, Quota] = Field(
        {},
        description="Photographs to take by number of subjects (the paper: {2: 118, 3: 269, 4: 121}). A number without an "
        "entry has no limit.",
    )
    source_quotas: dict[Kind, Quota] = Field(
        {},
        description="Photographs to take by kind of source, such as {coco: 200}. A kind without an entry has no limit.",
    )

    @model_validator(mode="after")
    def _limits_leave_something(self):
        if self.min_subjects > self.max_subjects:
            raise ValueError(f"min_subjects = {self.min_subjects} is above max_subjects = {self.max_subjects}")
        if self.max_side_px < self.min_subject_height_px:
            raise ValueError(
                f"max_side_px = {self.max_side_px} leaves no room for min_subject_height_px = {self.min_subject_height_px}"
            )
        for number in self.quotas:
            if not self.min_subjects <= number <= self.max_subjects:
                raise ValueError(
                    f"quotas has an entry for {number} subjects, but {self.min_subjects} to {self.max_subjects} are taken"
                )
        return self
