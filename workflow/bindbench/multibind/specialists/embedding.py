"""Pictures through an embedder of the config, for the specialists of appearance and expression."""

from collections.abc import Callable, Mapping

import numpy as np
from PIL import Image

from ...config.embedders import Embedder
from ...embedders.sources import identity
from ...errors import UserError

KEY = "multibind.evaluation"


def entry_of(embedders: Mapping[str, Embedder], name: str, key: str, section: str = KEY) -> Embedder:
    """The entry that a config key names. Raises UserError for one that there is not, or that embeds no images."""
    if name not in embedders:
        raise UserError(f"{section}.{key}: {name} is not among the embedders ({', '.join(sorted(embedders))})")
    if "image" not in embedders[name].modalities:
        raise UserError(f"{section}.{key}: {name} embeds no images; choose another embedder")
    return embedders[name]


def embedder_identity(entry: Embedder, name: str, version: int) -> dict:
    """Everything of an embedder that changes its vectors."""
    return {"embedder": identity(entry, name, version)}


def open_embedder(
    entry: Embedder, name: str, device: str | None, threads: int | None
) -> Callable[[list[np.ndarray]], np.ndarray]:
    """A function from (height, width, 3) uint8 pictures to (n, d) float32. Raises UserError as `embedders.loading.load` does."""
    from ...embedders.loading import load

    model = load(entry, device, name, threads)
    return lambda pictures: model.embed_images([Image.fromarray(picture) for picture in pictures])
