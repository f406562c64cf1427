"""What looks at whole images: InceptionV3 for FID, a CLIP, a DINO, and any embedder of the config.

Each is a specialist as for crops, with the whole picture as the crop, so that its features are kept in the same way. All see the
picture through the preprocessing of their own, which for CLIP and most others cuts the middle square out of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from ...config.embedders import Embedder
from ...embedders.sources import digest
from ...errors import UserError
from ...files import sha256_of_file
from ...paths import resolve
from ..specialists.base import Crop, Measure, Specialist
from ..specialists.embedding import embedder_identity, entry_of
from ..specialists.similarity import cosines
from .weights import read_weights

KEY = "multibind.holistic"
FID_FEATURES = 2048  # of the last pooling of InceptionV3
# Model types of transformers; the first DINO is a plain ViT.
DINOS = ("vit", "dinov2", "dinov2_with_registers", "dinov3_vit")


def embedder(
    key: str,
    name: str,
    embedders: Mapping[str, Embedder],
    version: int,
    is_clip: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> Specialist:
    """An entry of `embedders`. key: that names it, below multibind.holistic. is_clip: any other model is refused when opened.

    Raises UserError for one that there is not, or that embeds no images.
    """
    entry = entry_of(embedders, name, key, KEY)
    identity = embedder_identity(entry, name, version)
    opened = partial(_open_embedder, entry, name, f"{KEY}.{key}" if is_clip else None, device, threads)
    return Specialist("clip" if is_clip else "picture", name, identity, opened, cosines, entry.batch_size)


@contextmanager
def _open_embedder(
    entry: Embedder, name: str, clip_key: str | None, device: str | None, threads: int | None
) -> Iterator[Measure]:
    from ...embedders.loading import load

    model = load(entry, device, name, threads)
    architecture = model.facts()["architecture"]
    if clip_key and "CLIP" not in architecture:
        raise UserError(f"{clip_key}: {name} is a {architecture}, no CLIP; name it in {KEY}.similarities instead")
    yield lambda crops: list(model.embed_images([Image.fromarray(crop.pixels) for crop in crops]))


def dino(checkpoint: str, version: int, device: str | None = None, threads: int | None = None) -> Specialist:
    """The class token after the last layer, as DreamBooth's measure takes it. Raises UserError for what is no folder."""
    folder = resolve(Path(checkpoint).expanduser())
    if not folder.is_dir():
        raise UserError(f"{KEY}.dino.checkpoint: {folder}: no such folder; put a DINO of transformers there")
    identity = {"files": digest([folder]), "version": version}
    return Specialist(
        "dino", f"dino/{folder.name}", identity, partial(_open_dino, folder, device, threads), cosines, batch=16
    )


@contextmanager
def _open_dino(folder: Path, device: str | None, threads: int | None) -> Iterator[Measure]:
    import torch
    from transformers import AutoImageProcessor, AutoModel

    key = f"{KEY}.dino.checkpoint"
    device = _set_up(device, threads)
    try:
        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
        model, report = AutoModel.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    except Exception as error:  # transformers raises OSError, ValueError, KeyError, safetensors' own and more
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(f"{key}: {folder}: not a checkpoint of transformers ({reason})") from None
    if model.config.model_type not in DINOS:
        raise UserError(f"{key}: {folder}: a {model.config.model_type}, no DINO; give one of {', '.join(DINOS)}")
    if missing := [name for name in report["missing_keys"] if "pooler" not in name]:  # not what is looked at
        raise UserError(f"{key}: {folder} has no weights for {min(missing)}; get the whole checkpoint")
    model = model.to(device).eval()

    def measure(crops: list[Crop]) -> list[np.ndarray]:
        inputs = processor([Image.fromarray(crop.pixels) for crop in crops], return_tensors="pt").to(device)
        with torch.inference_mode():
            tokens = model(pixel_values=inputs["pixel_values"]).last_hidden_state[:, 0]
        return list(tokens.float().cpu().numpy())

    yield measure


def inception(weights: str, version: int, device: str | None = None, threads: int | None = None) -> Specialist:
    """torch-fidelity's InceptionV3, the FID network of TensorFlow. Raises UserError for a file that is missing."""
    path = resolve(Path(weights).expanduser())
    if not path.is_file():
        raise UserError(f"{KEY}.fid.weights: {path}: no such file; put torch-fidelity's InceptionV3 there")
    identity = {"file": sha256_of_file(path), "version": version}
    opened = partial(_open_inception, path, device, threads)
    return Specialist("fid", f"inception-v3/{path.stem}", identity, opened, cosines, batch=16)


@contextmanager
def _open_inception(path: Path, device: str | None, threads: int | None) -> Iterator[Measure]:
    import torch

    key = f"{KEY}.fid.weights"
    try:
        from torch_fidelity import FeatureExtractorInceptionV3
    except ImportError:
        raise UserError(f"{key}: FID needs the package torch-fidelity; pip install torch-fidelity") from None
    device = _set_up(device, threads)
    # It would unpickle whatever the file holds; so it is given what the strict reader found.
    checked = BytesIO()
    torch.save(read_weights(path, key), checked)
    checked.seek(0)
    try:
        network = FeatureExtractorInceptionV3(
            "inception-v3", [str(FID_FEATURES)], feature_extractor_weights_path=checked
        )
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()[:200]
        raise UserError(f"{key}: {path}: not torch-fidelity's InceptionV3 ({reason})") from None
    network = network.to(device)

    def measure(crops: list[Crop]) -> list[np.ndarray]:
        found = []
        for crop in crops:  # pictures differ in size, and the network scales each by itself
            pixels = torch.from_numpy(np.ascontiguousarray(crop.pixels.transpose(2, 0, 1))[None]).to(device)
            with torch.inference_mode():
                found.append(network(pixels)[0][0].cpu().numpy())
        return found

    yield measure


def _set_up(device: str | None, threads: int | None) -> str:
    import torch

    if threads:
        torch.set_num_threads(threads)
    return device or ("cuda" if torch.cuda.is_available() else "cpu")
