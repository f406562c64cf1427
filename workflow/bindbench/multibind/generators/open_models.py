"""What the open models share: where a checkpoint is, what it is, and how it is loaded. They run on a GPU where there is one.

diffusers is no dependency of this package: who wants qwen-image-edit or omnigen2 installs it. One run of a model costs GPU hours,
so its pictures are kept under everything that shapes them; of a checkpoint's large files the size and both ends count, since
160 GB are not hashed for a look at what is there.
"""

import importlib
import math
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ...config.multibind_generators import SHAPES, Generator
from ...embedders.sources import local_folder
from ...errors import UserError, room_on_gpu
from ...files import sha256, sha256_of_file
from ...paths import model_files
from .scene import Scene

END_BYTES = 1 << 20  # of a large file, hashed from its start and from its end
STEP_PX = 16  # the sides that the models make are multiples of it
DIFFUSERS = "diffusers==0.42.1"

OpenModel = Callable[[Scene], np.ndarray]  # (height, width, 3) uint8 of any size


def key_name(generator: Generator) -> str:
    """How messages name the generator's model."""
    return f"multibind.generation.generators: kind {generator.kind}, model"


def checkpoint_identity(generator: Generator) -> dict:
    """What tells two checkpoints apart: of the hub, id and revision; of a folder, its files.

    Raises UserError for a folder that is not there.
    """
    folder = local_folder(generator.model_name, key_name(generator))
    if folder is None:
        return {"hub": generator.model_name, "revision": generator.revision}
    files = {}
    for path in model_files(folder):
        files[str(path.relative_to(folder))] = _digest(path)
    return {"files": files}


def _digest(path: Path) -> str:
    """SHA-256 of a file; of one larger than both ends, of its size and ends: training moves every weight."""
    size = path.stat().st_size
    if size <= 2 * END_BYTES:
        return sha256_of_file(path)
    with path.open("rb") as file:
        start = file.read(END_BYTES)
        file.seek(-END_BYTES, 2)
        return sha256(b"%d " % size + start + file.read())


def source_of(generator: Generator) -> tuple[str, dict]:
    """Arguments of from_pretrained: which checkpoint, and its revision. Raises UserError for a folder that is not there."""
    folder = local_folder(generator.model_name, key_name(generator))
    if folder is None:
        return generator.model_name, {"revision": generator.revision} if generator.revision else {}
    if generator.revision:
        raise UserError(f"{key_name(generator)}: revision means nothing for a folder; remove it")
    return str(folder), {}


def name_of(generator: Generator) -> str:
    """What tables call the model: an id of the hub, or the name of a folder, without where it is on this machine.

    Raises UserError for a folder that is not there.
    """
    folder = local_folder(generator.model_name, key_name(generator))
    return folder.resolve().name if folder else generator.model_name


def imported(module: str, generator: Generator, remedy: str):
    """A module that this package does not bring. Raises UserError that ends with the remedy."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(
            f"{key_name(generator)}: needs {module.split('.')[0]}, which cannot be imported ({error}); {remedy}"
        ) from None


@contextmanager
def told_in_a_line(generator: Generator):
    """What libraries raise for a checkpoint that is missing, broken, another kind's or too large, as one line."""
    try:
        with room_for_model(generator):
            yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError, RuntimeError) as error:
        line = " ".join(str(error).split())[:300] or type(error).__name__
        raise UserError(f"{key_name(generator)}: {generator.model_name} cannot be loaded ({line})") from None


def room_for_model(generator: Generator):
    """A context in which a full GPU is one line that says what to lower."""
    lower = ["end other programs on it"]
    if "area_px" in SHAPES[generator.kind]:
        lower.append(f"lower area_px (now {generator.area_px})")
    if generator.dtype == "float32":
        lower.append("set dtype: bfloat16")
    return room_on_gpu(f"{key_name(generator)}: {generator.model_name}", ", ".join(lower))


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype_of(generator: Generator):
    import torch

    return getattr(torch, generator.dtype)


def noise(generator: Generator):
    """The same on every machine: drawn on the CPU."""
    import torch

    return torch.Generator("cpu").manual_seed(generator.seed)


def asked_size(size: tuple[int, int], area_px: int) -> tuple[int, int]:
    """Width and height of the shape of a size with about `area_px` pixels, in whole steps."""
    scale = math.sqrt(area_px / (size[0] * size[1]))
    return tuple(max(1, round(side * scale / STEP_PX)) * STEP_PX for side in size)


def input_pictures(scene: Scene) -> list:
    """PIL images: the references in the order of the slots, then the background."""
    from PIL import Image

    return [Image.fromarray(scene.reference(slot)) for slot in scene.slots] + [Image.fromarray(scene.background)]


def pixels_of(picture) -> np.ndarray:
    """(height, width, 3) uint8 of a PIL image."""
    return np.asarray(picture.convert("RGB"))
