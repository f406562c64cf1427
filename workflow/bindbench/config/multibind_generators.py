"""MultiBind's evaluation, its generators: what reconstructs the photographs (section 5.1), and faults made on purpose."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from .base import Section

Kind = Literal[
    *("target", "collage", "swap", "copy", "blend", "blur", "missing", "folder"),
    *("gemini", "openai", "seedream", "hunyuan", "qwen-image-edit", "omnigen2"),
]
EMBEDDED = ("target", "collage", "swap", "copy", "blend", "blur", "missing")
# It is known who is in which slot. `missing` would say nothing new: whoever is left is as in the photograph.
KNOWN = ("target", "collage", "swap", "copy", "blur")
FAULTS = ("swap", "copy", "blend", "blur", "missing")  # made on purpose, the metric's own test
PAID = ("gemini", "openai", "seedream")  # bought from a service
OPEN = ("hunyuan", "qwen-image-edit", "omnigen2")  # run on this machine, on a GPU

# The paper's six generators.
MODELS = {
    "gemini": "gemini-3-pro-image",
    "openai": "gpt-image-1.5",
    "seedream": "seedream-4-5-251128",
    "hunyuan": "tencent/HunyuanImage-3.0-Instruct",
    "qwen-image-edit": "Qwen/Qwen-Image-Edit-2511",
    "omnigen2": "OmniGen2/OmniGen2",
}
SEEDREAM_LONGEST_PX = 4096  # 4.5 makes pictures of 2560 x 1440 to 4096 x 4096 pixels
# What the models' own cards use.
STEPS = {"hunyuan": 50, "qwen-image-edit": 40, "omnigen2": 50}
GUIDANCE = {"qwen-image-edit": 4.0, "omnigen2": 5.0}

# What shapes each kind's pictures; every other key means nothing for it.
SHAPES = {
    "target": (),
    "collage": ("stretch", "grey_tolerance"),
    "swap": ("stretch", "of_three"),
    "copy": ("stretch", "person"),
    "blend": ("stretch",),
    "blur": ("blur",),
    "missing": ("person",),
    "folder": ("folder",),
    "gemini": ("model", "size"),
    "openai": ("model", "quality"),
    "seedream": ("model",),
    "hunyuan": ("model", "revision", "steps", "seed", "dtype", "trust_remote_code"),
    "qwen-image-edit": ("model", "revision", "steps", "guidance", "seed", "dtype", "area_px"),
    "omnigen2": ("model", "revision", "steps", "guidance", "image_guidance", "seed", "dtype", "area_px",
                 "trust_remote_code"),
}  # fmt: skip


class Generator(Section):
    """One generator. Its settings are recorded beside every picture."""

    kind: Kind = Field(
        description="target: the photograph itself. collage: the references pasted into the background at the true places. "
        "Faults on purpose, from the photograph's own people: swap (neighbours exchange places), copy (one person in every "
        "place), blend (each mixed with the next), blur, missing (one is not there). folder: ready images. gemini, openai, "
        "seedream: paid for, see services. hunyuan, qwen-image-edit, omnigen2: open models, on a GPU.",
    )
    stretch: float = Field(
        1.0,
        ge=1,
        le=10,
        description="collage, swap, copy, blend: how far the ratio of a person's width to height may change to fill another "
        "place; 1: not at all, which leaves faces as they are.",
    )
    grey_tolerance: int = Field(
        10,
        ge=0,
        le=127,
        description="collage: grey levels by which the ground of a reference may differ from its border's colour.",
    )
    of_three: Literal["cycle", "first_two"] = Field(
        "cycle",
        description="swap: what three people do. cycle: each moves to the next place; first_two: the third stays.",
    )
    person: Literal["A", "B"] = Field("A", description="copy: who is everywhere. missing: who is not there.")
    blur: float = Field(
        0.04,
        gt=0,
        le=1,
        description="blur: standard deviation of the blur, as a share of the longer side of the person's box.",
    )
    folder: str | None = Field(
        None, min_length=1, description="folder: where INSTANCE.png, .jpg, .jpeg or .webp lie; needed there."
    )
    model: str | None = Field(
        None,
        min_length=1,
        description="gemini, openai, seedream: the model's name. hunyuan, qwen-image-edit, omnigen2: a folder or an id on the "
        "hub. Empty: the paper's.",
    )
    revision: str | None = Field(
        None, min_length=1, description="Open models: commit of the hub's repository; empty: its main branch."
    )
    size: Literal["1K", "2K", "4K"] = Field("2K", description="gemini: size asked for.")
    quality: Literal["low", "medium", "high"] = Field("high", description="openai: quality asked for.")
    steps: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Open models: steps of denoising; empty: the model card's (hunyuan 50, qwen-image-edit 40, omnigen2 50).",
    )
    guidance: float | None = Field(
        None,
        ge=1,
        le=100,
        description="qwen-image-edit, omnigen2: scale of the guidance by the text; empty: the model card's (4 and 5).",
    )
    image_guidance: float = Field(
        2.0, ge=1, le=100, description="omnigen2: scale of the guidance by the pictures that go in."
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Open models: seed of the noise, the same for every instance.")
    dtype: Literal["bfloat16", "float16", "float32"] = Field(
        "bfloat16", description="Open models: type of the weights."
    )
    area_px: int = Field(
        1024 * 1024,
        ge=256,
        le=1 << 24,
        description="qwen-image-edit, omnigen2: pixels asked of the model, in the target's shape; resized to the common size.",
    )
    trust_remote_code: bool = Field(
        False,
        description="hunyuan, omnigen2: runs code that comes with the checkpoint, which hunyuan needs: only for sources you "
        "trust.",
    )

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self):
        for name, field in type(self).model_fields.items():
            if name not in ("kind", *SHAPES[self.kind]) and getattr(self, name) != field.get_default():
                raise ValueError(f"{name}: means nothing for a generator of kind {self.kind}; remove it")
        if self.kind == "folder" and self.folder is None:
            raise ValueError("folder: is missing; a generator of kind folder needs it")
        if self.kind == "hunyuan" and not self.trust_remote_code:
            raise ValueError(
                "trust_remote_code: hunyuan has no code of its own in transformers; set it to true if you trust the checkpoint"
            )
        return self

    @property
    def settings(self) -> dict:
        """The keys that shape its pictures, with the values that hold, for the table. Of a folder nothing but its kind."""
        known = {"model": MODELS, "steps": STEPS, "guidance": GUIDANCE}
        values = {"kind": self.kind}
        for name in SHAPES[self.kind]:
            value = getattr(self, name)
            values[name] = known[name][self.kind] if value is None and name in known else value
        return {name: value for name, value in values.items() if name != "folder"}

    @property
    def model_name(self) -> str:
        """Of paid and open ones: the model that is asked."""
        return self.model or MODELS[self.kind]


def _usable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}", name):
        raise ValueError(
            "a name has at most 60 letters, digits, dots, underscores, pluses and minuses, and begins with a letter or digit"
        )
    return name


GeneratorName = Annotated[str, AfterValidator(_usable)]


class Generation(Section):
    """What is evaluated, and the one resolution of all of it."""

    generators: dict[GeneratorName, Generator] = Field(
        {kind: Generator(kind=kind) for kind in EMBEDDED},
        min_length=1,
        description="Generators by names of your choice.",
    )
    use: tuple[GeneratorName, ...] | None = Field(
        None,
        min_length=1,
        description="Names of those that are evaluated; empty: all, the embedded ones of this file among them.",
    )
    longest_px: int = Field(
        1536,
        ge=64,
        le=8192,
        description="Longest side of every generated picture, in pixels: each has the target's shape, scaled down to this where "
        "it is larger, never up.",
    )

    @field_validator("generators")
    @classmethod
    def _names_differ(cls, generators):
        if len({name.lower() for name in generators}) != len(generators):
            raise ValueError("names that differ in case only share a folder on some machines; rename one")
        return generators

    @model_validator(mode="after")
    def _used_are_known(self):
        for name in self.use or ():
            if name not in self.generators:
                raise ValueError(f"use: {name} is not among the generators ({', '.join(self.generators)})")
        if len(set(self.use or ())) != len(self.use or ()):
            raise ValueError("use: a name is given twice")
        return self

    @property
    def used(self) -> dict[str, Generator]:
        """The generators that are evaluated, by name, in the order of the tables."""
        return {name: self.generators[name] for name in self.use} if self.use is not None else dict(self.generators)

    @model_validator(mode="after")
    def _sizes_that_are_sold(self):
        named = [name for name, generator in self.used.items() if generator.kind == "seedream"]
        if named and self.longest_px > SEEDREAM_LONGEST_PX:
            raise ValueError(
                f"longest_px: Seedream ({named[0]}) makes at most {SEEDREAM_LONGEST_PX} x {SEEDREAM_LONGEST_PX} pixels; set it "
                f"to {SEEDREAM_LONGEST_PX} or less, or leave that generator out"
            )
        return self
