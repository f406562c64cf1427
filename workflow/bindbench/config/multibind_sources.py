"""Where MultiBind's photographs come from (section 3.2: CIHP, LV-MHP-v2, Objects365, COCO), and what is known of their licences."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from .base import Section

Kind = Literal["coco", "objects365", "cihp", "mhp", "folder", "builtin"]

# What each kind needs, may have besides, and nothing else.
NEEDS = {
    "coco": ("images", "annotations"),
    "objects365": ("images", "annotations"),
    "cihp": ("annotations",),
    "mhp": ("annotations",),
    "folder": ("images",),
    "builtin": (),
}
MAY_HAVE = {"cihp": ("images",), "mhp": ("images",)}

# What is said of a photograph when neither the config nor its data set's files say more. Nobody has checked single photographs.
LICENCES = {
    "coco": "annotations CC BY 4.0; photograph under the Flickr terms of use, its own licence not stated",
    "objects365": "annotations CC BY 4.0, for academic purposes; photograph under the Flickr terms of use, rights not stated",
    "cihp": "for non-commercial research only (CIHP); rights in the photograph not stated",
    "mhp": "for non-commercial research only (LV-MHP-v2); rights in the photograph not stated",
    "folder": "not stated",
    "builtin": "in the ultralytics package (AGPL-3.0); rights in the photographs not stated",
}


def _usable(name: str) -> str:
    # No dash: ids of photographs begin with the name and become file names, in which a dash stands for the stroke.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_]{0,39}", name):
        raise ValueError("a name has at most 40 letters, digits and underscores, and begins with a letter or digit")
    return name


SourceName = Annotated[str, AfterValidator(_usable)]


class Source(Section):
    """One set of photographs on this machine. Nothing is downloaded."""

    kind: Kind = Field(
        description="Layout of the files. coco: instances JSON (also objects365's, boxes alone); cihp: a split of "
        "instance-level_human_parsing; mhp: a split of LV-MHP-v2; folder: photographs of which nothing is known; builtin: the "
        "two photographs inside the installed ultralytics package.",
    )
    images: str | None = Field(
        None,
        min_length=1,
        description="Folder of the photographs; needed by coco, objects365 and folder (with its subfolders). cihp and mhp: "
        "empty for Images or images inside `annotations`.",
    )
    annotations: str | None = Field(
        None,
        min_length=1,
        description="coco and objects365: the JSON file; cihp: the split's folder, such as "
        "instance-level_human_parsing/Training; mhp: such as LV-MHP-v2/train.",
    )
    licence: str | None = Field(
        None,
        min_length=1,
        description="Licence of the photographs, in your words; empty: what the data set's files state for each, or what is "
        "known of the kind.",
    )
    limit: int | None = Field(None, ge=1, description="Take the first so many photographs alone, by id; empty: all.")

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self):
        needed, possible = NEEDS[self.kind], (*NEEDS[self.kind], *MAY_HAVE.get(self.kind, ()))
        for key in ("images", "annotations"):
            if key in needed and getattr(self, key) is None:
                raise ValueError(f"{key}: is missing; a source of kind {self.kind} needs it")
            if key not in possible and getattr(self, key) is not None:
                raise ValueError(f"{key}: means nothing for a source of kind {self.kind}; remove it")
        return self

    @property
    def known_licence(self) -> str:
        """Of a photograph of which the data set's files state none."""
        return self.licence or LICENCES[self.kind]


class Photographs(Section):
    """The sources, and what is refused before anything is looked at."""

    sources: dict[SourceName, Source] = Field(
        {"builtin": Source(kind="builtin")},
        min_length=1,
        description="Sets of photographs by names of your choice, which begin the photographs' ids.",
    )
    use: tuple[SourceName, ...] | None = Field(
        None,
        min_length=1,
        description="Names of the sources that are taken; empty: all, but those of kind builtin only where there is no other.",
    )
    max_pixels: int = Field(
        50_000_000,
        ge=1,
        le=150_000_000,
        description="Larger photographs are left out before they are unpacked, in pixels (width times height).",
    )

    @field_validator("sources")
    @classmethod
    def _names_differ(cls, sources):
        if len({name.lower() for name in sources}) != len(sources):
            raise ValueError("names that differ in case only share a folder on some machines; rename one")
        return sources

    @model_validator(mode="after")
    def _used_are_known(self):
        for name in self.use or ():
            if name not in self.sources:
                raise ValueError(f"use: {name} is not among the sources ({', '.join(self.sources)})")
        if len(set(self.use or ())) != len(self.use or ()):
            raise ValueError("use: a name is given twice")
        return self

    @property
    def used(self) -> dict[str, Source]:
        """The sources that are taken, by name."""
        if self.use is not None:
            return {name: self.sources[name] for name in self.use}
        given = {name: source for name, source in self.sources.items() if source.kind != "builtin"}
        return given or dict(self.sources)
