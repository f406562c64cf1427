"""The embedder that is trained: what `embedders.loading` loads, with gradients. The one module here that knows that room.

Tokens, instruction, pooling, the cut to the first dimensions and the norm are those of the embedder's entry, so what is
trained is what is measured (B.5: all inputs use the model's default instruction).
"""

import sys

import torch
from torch.nn import functional

from ..config.embedders import Embedder
from ..config.finetuning import Run
from ..embedders import sources
from ..embedders.loading import Model, library_versions, load
from ..errors import UserError

__all__ = ["Model", "base_entry", "base_identity", "encode", "library_versions", "load_base"]


def base_entry(entry: Embedder, run: Run) -> Embedder:
    """The entry as it is trained: for texts only, in the run's precision. Raises UserError for what cannot be trained."""
    key = f"embedders.{run.base}"
    if "text" not in entry.modalities:
        raise UserError(f"{key}.modalities: {run.base} embeds no texts, and triplets are texts; choose another base")
    if entry.loader not in ("sentence-transformers", "minilm"):
        raise UserError(f"{key}.loader: a {entry.loader} model takes no adapter; choose another base")
    if entry.adapter:
        raise UserError(f"{key}.adapter: it would be lost under a second one; merge it and give the folder as path")
    changes: dict = {"dtype": run.dtype, "modalities": ("text",)}
    if run.max_tokens:
        changes["max_tokens"] = run.max_tokens
    if run.attention_weight:
        changes["attention"] = "eager"  # the only implementation that returns its attentions
    return entry.model_copy(update=changes)


def base_identity(entry: Embedder, name: str) -> dict:
    """What the trained weights depend on of the base: its files by content, or the hub's id and revision."""
    return sources.identity(entry, name, version=1)


def load_base(entry: Embedder, run: Run, device: str | None, threads: int) -> Model:
    """The base with all its weights frozen, in eval mode: B.5's dropout is zero, and so is the base's own.

    Raises UserError as `loading.load` does.
    """
    model = load(base_entry(entry, run), device, run.base, threads or None)
    model.network.requires_grad_(False)
    if run.gradient_checkpointing:
        _checkpoint_gradients(model)
    return model


def _checkpoint_gradients(model: Model) -> None:
    network = model.network.transformers_model
    if not getattr(network, "supports_gradient_checkpointing", False):
        print(f"{model.name}: has no gradient checkpointing; trained without", file=sys.stderr)
        return
    network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    for module in network.modules():
        # Only the layers themselves are told that they train: the dropout inside them stays off.
        module.training = bool(getattr(module, "gradient_checkpointing", False))


def encode(model: Model, features: dict) -> torch.Tensor:
    """`Model.vectors` with gradients: (n, d) float32 of unit norm."""
    from sentence_transformers.util import batch_to_device

    output = model.network(batch_to_device(features, model.network.device))["sentence_embedding"].float()
    return functional.normalize(output[:, : model.entry.dimensions], dim=1)
