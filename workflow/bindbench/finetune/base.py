"""The embedder that is trained: what `embedders.loading` loads, with gradients. The one module here that knows that room.

Tokens, instruction, pooling, the cut to the first dimensions and the norm are those of the embedder's entry, so what is
trained is what is measured (B.5: all inputs use the model's default instruction).
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from ..config.embedders import Embedder
from ..config.finetuning import Run
from ..embedders import sources
from ..embedders.embed import verified_image
from ..embedders.loading import Model, library_versions, load
from ..errors import UserError
from ..files import room_for
from .batches import Picture

__all__ = [
    "Model",
    "base_entry",
    "base_identity",
    "embed",
    "encode",
    "features_of",
    "library_versions",
    "load_base",
    "merge",
    "token_counts",
]


def base_entry(entry: Embedder, run: Run) -> Embedder:
    """The entry as it is trained, in the run's precision. Raises UserError for what cannot be trained."""
    key = f"embedders.{run.base}"
    needed, data = ("image", "image_triplets") if run.learns_images else ("text", "triplets")
    if needed not in entry.modalities:
        raise UserError(
            f"{key}.modalities: {run.base} embeds no {needed}s, and {data} are {needed}s; choose another base"
        )
    if entry.loader not in ("sentence-transformers", "minilm"):
        raise UserError(f"{key}.loader: a {entry.loader} model takes no adapter; choose another base")
    if entry.adapter:
        raise UserError(f"{key}.adapter: it would be lost under a second one; merge it and give the folder as path")
    # LiNeS' sweep reads texts too.
    changes: dict = {"dtype": run.dtype, "modalities": ("text", "image") if run.learns_images else ("text",)}
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
    network.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    for module in network.modules():
        # Only the layers themselves are told that they train: the dropout inside them stays off.
        module.training = bool(getattr(module, "gradient_checkpointing", False))


def features_of(model: Model, items: Sequence[str | Picture]) -> dict:
    """What the processor makes of texts, or of images. Raises UserError for an image that is not what was written down."""
    if isinstance(items[0], str):
        return model.tokens(list(items))
    return model.prepare_images([verified_image(*picture) for picture in items])


def embed(model: Model, items: Sequence[str | Picture]) -> np.ndarray:
    """Texts or images as they are measured (`Model.embed`): (n, d) float32 of unit norm."""
    if isinstance(items[0], str):
        return model.embed(items)
    size = model.entry.batch_size
    return np.concatenate(
        [model.vectors(features_of(model, items[start : start + size])) for start in range(0, len(items), size)]
    )


def encode(model: Model, features: dict) -> torch.Tensor:
    """`Model.vectors` with gradients: (n, d) float32 of unit norm."""
    from sentence_transformers.util import batch_to_device

    output = model.network(batch_to_device(features, model.network.device))["sentence_embedding"].float()
    return functional.normalize(output[:, : model.entry.dimensions], dim=1)


def token_counts(features: dict) -> list[int]:
    """Tokens of each text or image, without padding."""
    if "cu_seq_lens_q" in features:  # flash attention: texts behind one another, unpadded
        return features["cu_seq_lens_q"].diff().tolist()
    return features["attention_mask"].sum(dim=1).tolist()


def merge(entry: Embedder, name: str, adapter: Path, folder: Path) -> None:
    """Writes the embedder with the adapter added to its weights: an ordinary sentence-transformers folder.

    Merged in float32, written in the entry's precision. Limits that the entry sets (tokens, pixels) are not written: an entry
    of the merged model says its own. Raises UserError for an adapter of another model, a folder that is there already, and
    whatever `loading.load` raises.
    """
    from peft import PeftModel

    from .lora import module_of, read_adapter, without_future_warnings

    if folder.exists():
        raise UserError(f"{folder}: is there already; delete it, or give another folder")
    weights, _ = read_adapter(adapter)
    plain = {"dtype": "float32", "adapter": None, "max_tokens": None, "min_pixels": None, "max_pixels": None}
    network = load(entry.model_copy(update=plain), "cpu", name).network
    modules = dict(network.transformers_model.named_modules())
    for weight, values in weights.items():
        place = module_of(weight)
        if place is None or place[0] not in modules:
            raise UserError(
                f"{adapter}: was trained on another model than {name} (has weights unknown to it: {weight})"
            )
        out_width, in_width = modules[place[0]].weight.shape
        if (values.shape[1] != in_width) if place[1] == "lora_A" else (values.shape[0] != out_width):
            raise UserError(f"{adapter}: was trained on another model than {name} (of other dimensions: {weight})")
    with without_future_warnings():
        PeftModel.from_pretrained(network.transformers_model, str(adapter)).merge_and_unload()
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    with room_for(folder):
        network.to(getattr(torch, entry.dtype)).save(str(unfinished), create_model_card=False)
        unfinished.rename(folder)
