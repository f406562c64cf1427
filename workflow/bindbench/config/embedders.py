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
            "checkpoints that only it has; the others are packages that carry their weights. A key that a loader cannot heed is "
            "refused once the model is loaded: minilm takes no path, revision, min_pixels, max_pixels; wordllama and "
            "efficientnet-lite0 none of these nor instruction, attention, max_tokens, adapter; open_clip no instruction, "
            "attention, min_pixels, max_pixels, max_tokens, adapter."
        ),
    )
    path: str | None = Field(
        None,
        description="A folder, or an id on the hub. A folder that exists is taken; what begins with a dot, slash or ~ or has "
        "two slashes or more must be one; the rest is an id (NAME or OWNER/NAME). open_clip: a folder, the name of an "
        "architecture, or hf-hub:OWNER/NAME.",
    )
    revision: str | None = Field(
        None,
        description="Commit of the hub's repository; empty: its main branch. open_clip: the pretrained tag of the architecture, "
        "or a file of weights; needed there. Refused for a folder and for hf-hub:.",
    )
    modalities: tuple[Modality, ...] = Field(
        ("text", "image"),
        min_length=1,
        description="What it embeds; the cells of the other modality stay empty. minilm and wordllama: [text]; "
        "efficientnet-lite0: [image].",
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
    max_tokens: int | None = Field(
        None,
        ge=8,
        description="Longer texts are cut; empty: the model's own limit. How many were cut stands in the record beside the "
        "embeddings.",
    )
    dimensions: int | None = Field(
        None, ge=1, description="Keep the first so many dimensions (Matryoshka), then normalise."
    )
    adapter: str | None = Field(
        None, description="Folder or hub id, told apart as in path, of a PEFT adapter on top of the model."
    )
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
    "efficientnet-lite0": Embedder(loader="efficientnet-lite0", modalities=("image",), batch_size=16),
}
