"""Which embedders are measured, and how they are loaded."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from .base import Section

Modality = Literal["text", "image"]


class Embedder(Section):
    """One embedder. Whatever changes its vectors is part of its cache's identity."""

    loader: Literal["sentence-transformers", "open_clip", "minilm", "wordllama", "efficientnet-lite0"] = Field(
        "sentence-transformers",
        description=(
            "sentence-transformers loads whatever it can (Qwen3-VL-Embedding, CLIP, SigLIP, BERT kinds ...); open_clip the "
            "checkpoints that only it has; the others are packages that carry their weights."
        ),
    )
    path: str | None = Field(None, description="A folder, or an id on the hub; open_clip: architecture or hf-hub: id.")
    revision: str | None = Field(
        None, description="Commit of the hub's repository; open_clip: the pretrained tag or a weights file."
    )
    modalities: tuple[Modality, ...] = Field(
        ("text", "image"), min_length=1, description="What it embeds; the cells of the other modality stay empty."
    )
    instruction: str | None = Field(
        None, description="System message of instructed models, the same for queries and candidates; empty: none."
    )
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="Precision of the weights while embedding."
    )
    attention: str | None = Field(
        None, description="transformers' attn_implementation, such as flash_attention_2 or sdpa."
    )
    min_pixels: int | None = Field(None, ge=1, description="Smallest image area that the processor keeps, in pixels.")
    max_pixels: int | None = Field(None, ge=1, description="Largest image area that the processor keeps, in pixels.")
    max_tokens: int | None = Field(None, ge=8, description="Longer texts are cut; empty: the model's own limit.")
    dimensions: int | None = Field(
        None, ge=1, description="Keep the first so many dimensions (Matryoshka), then normalise."
    )
    adapter: str | None = Field(None, description="Folder or hub id of a PEFT adapter on top of the model.")
    trust_remote_code: bool = Field(
        False, description="Runs code that comes with the checkpoint: only for sources you trust."
    )
    batch_size: int = Field(32, ge=1, description="Items a forward pass.")

    @property
    def has_text_attention(self) -> bool:
        """Whether the attention between the words of a text can be read (C.3)."""
        return "text" in self.modalities and self.loader in ("sentence-transformers", "minilm")

    @model_validator(mode="after")
    def _whole(self):
        if self.loader in ("sentence-transformers", "open_clip") and not self.path:
            raise ValueError(f"path: needed by the loader {self.loader}")
        if self.min_pixels and self.max_pixels and self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels: must be <= max_pixels (got {self.min_pixels} > {self.max_pixels})")
        only = {"minilm": ("text",), "wordllama": ("text",), "efficientnet-lite0": ("image",)}.get(self.loader)
        if only and self.modalities != only:
            raise ValueError(f"modalities: {self.loader} embeds {only[0]} only (got {', '.join(self.modalities)})")
        if len(set(self.modalities)) != len(self.modalities):
            raise ValueError("modalities: named twice")
        return self


def _usable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,99}", name):
        raise ValueError(
            "a name has at most 100 letters, digits, dots, pluses and minuses, and begins with a letter or digit"
        )
    if name.lower() == "chance":
        raise ValueError("the tables call their chance level so; choose another name")
    return name


EmbedderName = Annotated[str, AfterValidator(_usable)]

DEFAULT_EMBEDDERS = {
    "nano": Embedder(path="resources/models/nano", batch_size=64),
    "minilm": Embedder(loader="minilm", modalities=("text",), batch_size=64),
    "wordllama": Embedder(loader="wordllama", modalities=("text",), batch_size=1024),
    "efficientnet-lite0": Embedder(loader="efficientnet-lite0", modalities=("image",), batch_size=32),
}
