"""Embeddings that were paid for once: a content-addressed, append-only store.

    <root>/<fingerprint of the embedder>/<modality>/part-<sha256 of the part>.npy
                                                    part-<sha256 of the part>.cut.json   (texts alone)

A part is a NumPy array with one row per item: the SHA-256 of the item's content (the text's UTF-8, the image file's
bytes) and its vector. Its name is its own checksum: a part that was cut short or has a flipped bit is noticed when it
is read, removed, and its items are embedded again. Parts are only ever added, each whole, so that any number of jobs
may fill one cache at a time, and a killed one loses the seconds since its last part.

Beside a part of texts stands which of them the model cut at its token limit (keys in hex): whoever meets the vectors again
loads no model that could tell. A part without it, of an older version, is a good one whose cuts are unknown.
"""

import json
import os
import sys
import time
from io import BytesIO
from pathlib import Path

import numpy as np

from ..files import canonical_json, sha256, write_bytes, write_json

# At most so much work is lost by a kill; a site whose file system dislikes many small files sets more.
FLUSH_SECONDS = float(os.environ.get("BINDBENCH_FLUSH_SECONDS", "10"))
FLUSH_BYTES = 64 * 2**20


def part_type(dimensions: int) -> np.dtype:
    return np.dtype([("key", "u1", 32), ("embedding", "<f4", dimensions)])


class Cache:
    """The embeddings of one embedder for one modality. Keys are SHA-256 digests of 32 bytes."""

    def __init__(self, root: Path, fingerprint: str, modality: str) -> None:
        self.folder = Path(root) / fingerprint / modality
        self._keys: list[bytes] = []
        self._vectors: list[np.ndarray] = []
        self._was_cut: dict[bytes, bool] = {}
        self._bytes = 0
        self._since = time.monotonic()

    def read(self, keys: list[bytes]) -> tuple[np.ndarray | None, np.ndarray]:
        """The cached vectors of some items.

        Returns (n, d) float32 with rows of zeros where nothing is cached, None if nothing is at all; and (n,) bool:
        which are cached. Broken parts are reported on standard error and removed.
        """
        rows = {key: row for row, key in enumerate(keys)}
        vectors, cached = None, np.zeros(len(keys), bool)
        for path in sorted(self.folder.glob("part-*.npy")):
            part = _read_part(path)
            if part is None:
                continue
            places = [(rows[key], index) for index, key in enumerate(map(bytes, part["key"])) if key in rows]
            if not places:
                continue
            cut = _read_cut(path.with_suffix(".cut.json"))
            if cut is not None:
                self._was_cut |= {keys[row]: keys[row] in cut for row, _ in places}
            wanted, indices = np.array(places).T
            if vectors is None:
                vectors = np.zeros((len(keys), part["embedding"].shape[1]), np.float32)
            vectors[wanted] = part["embedding"][indices]
            cached[wanted] = True
        return vectors, cached

    def cut_among(self, keys: list[bytes]) -> set[bytes] | None:
        """Which of some texts that were read or added were cut; None when a part did not tell of one of them."""
        if any(key not in self._was_cut for key in keys):
            return None
        return {key for key in keys if self._was_cut[key]}

    def add(self, keys: list[bytes], vectors: np.ndarray, cut: np.ndarray | None = None) -> None:
        """Keeps one batch; every few seconds or megabytes what has gathered is written as a part.

        vectors: (n, d) float32 of unit norm. cut: of texts, (n,) bool: which of them the model cut.
        A batch is never split over two parts: after a kill it is there or not.
        """
        self._keys += keys
        if cut is not None:
            self._was_cut |= dict(zip(keys, cut.tolist(), strict=True))
        self._vectors.append(vectors)
        self._bytes += vectors.nbytes
        if self._bytes >= FLUSH_BYTES or time.monotonic() - self._since >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._keys:
            vectors = np.concatenate(self._vectors)
            part = np.empty(len(self._keys), part_type(vectors.shape[1]))
            part["key"] = np.frombuffer(b"".join(self._keys), np.uint8).reshape(-1, 32)
            part["embedding"] = vectors
            buffer = BytesIO()
            np.save(buffer, part, allow_pickle=False)
            data = buffer.getvalue()
            part_path = self.folder / f"part-{sha256(data)}.npy"
            if (cut := self.cut_among(self._keys)) is not None:
                # First: a part never lacks it.
                write_json(part_path.with_suffix(".cut.json"), sorted(key.hex() for key in cut))
            write_bytes(part_path, data)
        self._keys, self._vectors, self._bytes, self._since = [], [], 0, time.monotonic()

    def record(self, identity: dict, facts: dict | None = None) -> None:
        """Writes down what the fingerprint stands for, and what the model turned out to be when it was loaded.

        Facts that differ, as after an update of a library, stand side by side.
        """
        described = self.folder.parent / "fingerprint.json"
        if not described.exists():
            write_json(described, identity)
        if facts is not None:
            write_json(self.folder / _model_name(facts), facts)

    def models(self) -> list[dict]:
        """The facts of every model that filled this cache: one, unless a library or the device changed.

        Broken ones are reported on standard error and removed: they are written again when the model is next loaded.
        """
        found = map(_read_model, sorted(self.folder.glob("model-*.json")))
        return [facts for facts in found if facts is not None]


def _model_name(facts: dict) -> str:
    return f"model-{sha256(canonical_json(facts))[:16]}.json"


def _read_model(path: Path) -> dict | None:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:  # another job found it broken first
        return None
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or _model_name(facts) != path.name:
        print(f"{path}: does not match its checksum; removed", file=sys.stderr)
        path.unlink(missing_ok=True)
        return None
    return facts


def _read_cut(path: Path) -> set[bytes] | None:
    try:
        return {bytes.fromhex(key) for key in json.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError):
        return None


def _read_part(path: Path) -> np.ndarray | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:  # another job found it broken first
        return None
    if sha256(data) != path.stem.removeprefix("part-"):
        print(f"{path}: does not match its checksum; removed, its items are embedded again", file=sys.stderr)
        path.unlink(missing_ok=True)
        return None
    return np.load(BytesIO(data), allow_pickle=False)
