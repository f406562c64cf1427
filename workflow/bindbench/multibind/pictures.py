"""What the making of references and backgrounds shares: pictures that are kept from run to run, bought once, made side by side.

A run may be killed at any moment: every finished picture, and every finished check of one, is noted in an append-only index
beside the files, under a key of everything that shapes it and with the hash of the file. The next run keeps what both still
confirm. What was bought lies in the services' store and is never asked for again.
"""

import json
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from string import Template

import cv2
import numpy as np

from ..errors import UserError
from ..files import canonical_json, progress, read_verified, room_for, sha256, write_bytes, written_whole
from ..paths import resolve
from ..people.masks import BrokenMask, decode_mask

REMEDY = "delete the table beside it and run snakemake again"
# GPT-Image makes these sizes, whatever its version.
OPENAI_SIZES = ((1024, 1024), (1536, 1024), (1024, 1536))
GEMINI_RATIOS = ((1, 1), (2, 3), (3, 2), (3, 4), (4, 3), (9, 16), (16, 9), (21, 9))
# Models that can be told to keep to the faces of the pictures that go in; gpt-image-2 refuses to be told.
FAITHFUL_ON_REQUEST = ("gpt-image-1.5",)


class Notes:
    """The index of a folder: what earlier runs finished there, and what this one does.

    An item is a name such as `picture/coco-1_A`; its value holds JSON. A value with `file` and `sha256` is of a file in the
    folder, and counts only while the file is still that one.
    """

    def __init__(self, folder: Path, name: str):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / f"{name}.index.jsonl"
        self._noted: dict[str, tuple[str, dict]] = {}
        self._used: dict[str, tuple[str, dict]] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                entry = _entry(line)
                if entry is not None:
                    self._noted[entry["item"]] = entry["key"], entry["value"]

    def find(self, item: str, key: str) -> dict | None:
        """The value of an item that was noted under this key."""
        noted_key, value = self._noted.get(item, ("", {}))
        if noted_key != key or ("file" in value and not self._is_there(value)):
            return None
        self._used[item] = key, value
        return value

    def _is_there(self, value: dict) -> bool:
        try:
            return sha256((self.folder / value["file"]).read_bytes()) == value["sha256"]
        except OSError:
            return False

    def add(self, item: str, key: str, value: dict) -> None:
        """Notes what was finished just now."""
        self._used[item] = key, value
        with room_for(self.path), self.path.open("a", encoding="utf-8") as index:
            index.write("\n" + _line(item, key, value))  # first an end, for a line that a kill has torn

    def tidy(self) -> None:
        """Forgets what nothing asked for, and removes its files and what killed runs left half written."""
        wanted = {value["file"] for _, value in self._used.values() if "file" in value}
        for _, value in self._noted.values():
            if "file" in value and value["file"] not in wanted:
                (self.folder / value["file"]).unlink(missing_ok=True)
        for left in self.folder.rglob(".*.png"):
            left.unlink(missing_ok=True)
        with written_whole(self.path, durable=False) as temporary:
            temporary.write_text("".join(_line(item, *self._used[item]) + "\n" for item in sorted(self._used)))


def _entry(line: str) -> dict | None:
    """A line of the index; None for one that a kill has torn, or that is not ours: it may name no file outside the folder."""
    try:
        entry = json.loads(line)
        item, key, value = entry["item"], entry["key"], entry["value"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    file = value.get("file", "x") if isinstance(value, dict) else None
    whole = (
        isinstance(item, str)
        and isinstance(key, str)
        and isinstance(file, str)
        and ("file" in value) == ("sha256" in value)
    )
    return entry if whole and Path(file).name == file and "\0" not in file else None


def _line(item: str, key: str, value: dict) -> str:
    return canonical_json({"item": item, "key": key, "value": value})


def key_of(**shapes) -> str:
    """The key of everything that shapes a picture or a check."""
    return sha256(canonical_json(shapes))


def in_processes(function: Callable, tasks: list, threads: int, what: str) -> Iterator:
    """The results of a function of each task, in their order; in `threads` processes, the same results for any number."""
    if threads > 1 and len(tasks) > 1:
        try:
            with ProcessPoolExecutor(
                min(threads, len(tasks)), multiprocessing.get_context("spawn"), _one_thread
            ) as pool:
                yield from progress(pool.map(function, tasks), what, len(tasks), "image")
        except BrokenProcessPool:
            raise UserError(
                f"{what}: a process has died, most likely for want of memory; run again with fewer threads"
            ) from None
    else:
        yield from progress(map(function, tasks), what, len(tasks), "image")


def _one_thread() -> None:
    cv2.setNumThreads(1)


# Files ---------------------------------------------------------------------------------------------------------------


def target_of(folder: Path, instance: dict) -> np.ndarray:
    """(height, width, 3) uint8 RGB: the target of a row of SELECTED. Raises UserError when it is not the noted file."""
    path = folder / instance["target"]
    return decoded(read_verified(path, instance["sha256"], remedy_of(folder)), path)


def decoded(data: bytes, name: str | Path) -> np.ndarray:
    """(height, width, 3) uint8 RGB. Raises UserError for bytes that are no picture."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        raise UserError(f"{name}: its pixels do not decode; {REMEDY}")
    return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)


def png_of(picture: np.ndarray) -> bytes:
    """PNG bytes of an RGB (height, width, 3) or grey (height, width) uint8 picture."""
    return cv2.imencode(".png", picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))[1].tobytes()


def keep(path: Path, data: bytes) -> dict:
    """Writes a file of the folder; returns the value that notes it. Its hash is checked whenever it is read."""
    write_bytes(path, data, durable=False)
    return {"file": path.name, "sha256": sha256(data)}


def remedy_of(folder: Path) -> str:
    """What to do about a file of a folder that is missing or another one: its table has the folder's name."""
    return f"delete {folder}.parquet and run snakemake again"


def mask_of(subject: dict, instance: dict) -> np.ndarray:
    """(height, width) bool: the mask of a row of CROPS. Raises UserError for broken run lengths."""
    try:
        return decode_mask(subject["mask"], instance["height"], instance["width"])
    except BrokenMask as error:
        raise UserError(f"crops: {subject['instance']}, slot {subject['slot']}: {error}; {REMEDY}") from None


# Asking --------------------------------------------------------------------------------------------------------------


def prompt_of(path: str, **fields) -> str:
    """A template of resources/prompts, filled. Raises UserError when it is missing or names another field."""
    place = resolve(path)
    try:
        return Template(place.read_text(encoding="utf-8")).substitute(fields).strip()
    except OSError as error:
        raise UserError(f"{place}: cannot be read ({error.strerror})") from None
    except (KeyError, ValueError) as error:
        raise UserError(f"{place}: not a template with ${', $'.join(fields)} ({error})") from None


def openai_edit(prompt: str, model: str, size: tuple[int, int], quality: str) -> dict:
    """Body of a request for an edit of pictures."""
    body = {"prompt": prompt, "size": f"{size[0]}x{size[1]}", "quality": quality, "output_format": "png"}
    return body | ({"input_fidelity": "high"} if model.startswith(FAITHFUL_ON_REQUEST) else {})


def gemini_edit(prompt: str, pictures: int, ratio: tuple[int, int], size: str) -> dict:
    """Body of a request whose answer is one picture, made from `pictures` that go in behind the prompt."""
    parts = [{"text": prompt}, *({"image": index} for index in range(pictures))]
    return {
        "contents": [{"role": "user", "parts": parts}],
        "config": {
            "response_modalities": ["IMAGE"],
            "image_config": {"aspect_ratio": f"{ratio[0]}:{ratio[1]}", "image_size": size},
        },
    }
