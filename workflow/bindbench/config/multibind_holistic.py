"""Whole generated images against their photographs (MultiBind, section 5.1): FID, CLIP-I, DINO and an aesthetic score."""

from pydantic import Field, model_validator

from .base import Section


class Fid(Section):
    """Distance of the distributions of all generated images and of their photographs (Heusel et al. 2017)."""

    weights: str | None = Field(
        None,
        min_length=1,
        description="File of InceptionV3's weights in torch-fidelity's form, weights-inception-2015-12-05-6726825d.pth; never "
        "downloaded. Null: no FID.",
    )


class ClipI(Section):
    """Cosine of the image features of a CLIP, of each generated image and its photograph."""

    embedder: str | None = Field(
        None,
        min_length=1,
        description="Name of an entry of `embedders` that is a CLIP; another kind of model is refused, and has its place in "
        "similarities. Null: no CLIP-I.",
    )


class Dino(Section):
    """Cosine of the class tokens of a DINO, of each generated image and its photograph."""

    checkpoint: str | None = Field(
        None,
        min_length=1,
        description="Folder of a DINO, DINOv2 or DINOv3 of transformers; never downloaded. Null: no DINO.",
    )


class Aesthetic(Section):
    """Mean score of the generated images by a linear head on a CLIP's normalised image features (LAION)."""

    head: str | None = Field(
        None,
        min_length=1,
        description="File of the head's weights: LAION's aesthetic predictor V2 (layers.0.weight ...) or V1 (weight, bias); "
        "never downloaded. Null: no aesthetic score.",
    )
    embedder: str | None = Field(
        None,
        min_length=1,
        description="Name of an entry of `embedders`: the CLIP that the head was trained on, for LAION's OpenAI's ViT-L/14.",
    )

    @model_validator(mode="after")
    def _head_and_its_clip(self):
        if (self.head is None) != (self.embedder is None):
            given, lacking = ("embedder", "head") if self.head is None else ("head", "embedder")
            raise ValueError(f"{lacking}: {given} alone measures nothing; name both")
        return self


class Holistic(Section):
    """What has no checkpoint stays empty in the tables, with this as the reason."""

    fid: Fid = Field(default_factory=Fid, description="Fréchet Inception Distance.")
    clip_i: ClipI = Field(default_factory=ClipI, description="Likeness in the eyes of a CLIP.")
    dino: Dino = Field(default_factory=Dino, description="Likeness in the eyes of a DINO.")
    aesthetic: Aesthetic = Field(default_factory=Aesthetic, description="How appealing the images are.")
    similarities: tuple[str, ...] = Field(
        (),
        description="Names of further entries of `embedders` that embed images, such as efficientnet-lite0: the same cosine "
        "under their own names, never called CLIP-I or DINO.",
    )

    @model_validator(mode="after")
    def _nothing_twice(self):
        if len(set(self.similarities)) != len(self.similarities):
            raise ValueError("similarities: an embedder is given twice")
        return self

    @property
    def embedders(self) -> dict[str, str]:
        """By config key below this section, the entry of `embedders` that it names."""
        named = {"clip_i.embedder": self.clip_i.embedder, "aesthetic.embedder": self.aesthetic.embedder}
        named |= {f"similarities.{number}": name for number, name in enumerate(self.similarities)}
        return {key: name for key, name in named.items() if name is not None}

    @property
    def is_measured(self) -> bool:
        return bool(self.fid.weights or self.dino.checkpoint or self.embedders)
