"""Relief maps: a flat drawing becomes an inflated body with grooves between its parts, once per shape.

The silhouette is inflated by a Poisson equation (a membrane under even pressure), the colours of the drawing are kept
only as light and dark (`tone`) and as grooves along their borders, so that eyes, wheels and seams survive any material.
All reliefs of a vocabulary lie in one file, which holds the same bytes for the same drawings.
"""

import hashlib
import json
import multiprocessing
import struct
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import resvg_py

from ..errors import UserError
from ..files import canonical_json, progress, sha256, write_bytes
from .colours import step
from .shapes import read_fetched, read_svg

RASTER_PX = 640  # drawings are rasterised at this size before they are cut to their silhouette
MARGIN = 2  # empty pixels around the silhouette
HEIGHT_UNIT = 1 / 256  # of a relief pixel
KEPT_RELIEFS = 64  # in memory, with what `surface` derives from them: about 2 MB each; a question needs up to 20
MAGIC = b"bindbench reliefs 2\n"

HEAD = struct.Struct("<I32s")  # length and SHA-256 of the index


@dataclass(frozen=True, eq=False)
class Relief:
    """One object seen from the front; arrays (height, width), the longer side as long as `build_relief` was told.

    Two reliefs are equal only if they are the same one: what is derived from a relief is kept by its identity.

    alpha: uint8, coverage by the silhouette.
    elevation: uint16, height towards the viewer in HEIGHT_UNIT relief pixels.
    tone: uint8, lightness of the drawing, stretched to the full range.
    groove: uint8, closeness to a border between two parts.
    """

    alpha: np.ndarray
    elevation: np.ndarray
    tone: np.ndarray
    groove: np.ndarray

    @property
    def aspect(self) -> tuple[float, float]:
        """Width and height, the longer one 1."""
        height, width = self.alpha.shape
        return width / max(height, width), height / max(height, width)


def build_relief(svg: str, size_px: int = 320) -> Relief:
    """The relief of a drawing, `size_px` on its longer side.

    Raises UserError for a text that is not SVG or draws nothing.
    """
    colour, alpha = _cut_out(_raster(svg), size_px)
    inside = alpha > 0.5
    lab = cv2.cvtColor(colour, cv2.COLOR_RGB2LAB)
    tone = _tone(lab[..., 0] / 100, alpha)
    crease = _crease(lab, inside)
    # a thin stroke has two borders: closing the gap makes it one groove
    edges = cv2.morphologyEx((crease > 0.35).astype(np.uint8), cv2.MORPH_CLOSE, _disc(size_px / 45)) > 0
    to_edge = cv2.distanceTransform((inside & ~edges).astype(np.uint8), cv2.DIST_L2, 5)
    bevel = size_px * 0.045
    rounded = np.sqrt(1 - (1 - np.clip(to_edge / bevel, 0, 1)) ** 2) * bevel * 0.55
    elevation = np.sqrt(_membrane(inside)) * size_px * 1.15 + rounded + cv2.GaussianBlur(tone, (0, 0), 1.5) * 4
    elevation = cv2.GaussianBlur(elevation.astype(np.float32), (0, 0), 1.3)
    from_groove = np.minimum(cv2.distanceTransform((~edges).astype(np.uint8), cv2.DIST_L2, 5), size_px)
    groove = np.maximum(crease, np.exp(-((from_groove / (size_px * 0.0075)) ** 2)))
    groove = cv2.GaussianBlur(groove.astype(np.float32), (0, 0), size_px / 400) * inside
    crowded = cv2.GaussianBlur(
        groove, (0, 0), size_px * 0.06
    )  # where lines are dense, full depth would blacken the part
    groove *= 1 - 0.6 * step(0.28, 0.65, crowded)
    return Relief(
        alpha=_bytes(alpha),
        elevation=np.clip(elevation / HEIGHT_UNIT + 0.5, 0, 65535).astype(np.uint16),
        tone=_bytes(tone),
        groove=_bytes(groove),
    )


def _disc(diameter: float) -> np.ndarray:
    side = max(3, 2 * round(diameter / 2) + 1)
    return cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(values * 255 + 0.5, 0, 255).astype(np.uint8)


def _raster(svg: str) -> np.ndarray:
    """RGBA, float32 in [0, 1], RASTER_PX on the longer side."""
    try:
        png = resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True, width=RASTER_PX, height=RASTER_PX)
    except ValueError as error:
        raise UserError(f"not a drawable SVG ({str(error).splitlines()[0][:150]})") from None
    image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    return cv2.cvtColor(image, cv2.COLOR_BGRA2RGBA).astype(np.float32) / 255


def _cut_out(image: np.ndarray, size_px: int) -> tuple[np.ndarray, np.ndarray]:
    """Colour (h, w, 3), continued beyond the silhouette, and coverage (h, w) of the drawing without its loose bits.

    Steam, sparkles and other small or translucent bits that float beside the object are dropped.
    """
    alpha = np.clip((image[..., 3] - 0.4) / 0.3, 0, 1)  # half-translucent parts such as wings become solid
    count, labels, stats, _ = cv2.connectedComponentsWithStats((alpha > 0.5).astype(np.uint8))
    area = stats[:, cv2.CC_STAT_AREA]
    kept = np.array([label > 0 and area[label] > 0.02 * area[1:].sum() for label in range(count)])
    alpha = alpha * cv2.dilate(kept[labels].astype(np.uint8), np.ones((3, 3), np.uint8))
    rows, columns = np.nonzero((alpha > 0.3).any(axis=1))[0], np.nonzero((alpha > 0.3).any(axis=0))[0]
    if not len(rows):
        raise UserError("the SVG draws nothing opaque")
    box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    cut = np.dstack([image[..., :3] * alpha[..., None], alpha])[box]
    scale = (size_px - 2 * MARGIN) / max(cut.shape[:2])
    size = max(4, round(cut.shape[1] * scale)), max(4, round(cut.shape[0] * scale))
    cut = cv2.resize(cut, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    cut = cv2.copyMakeBorder(cut, MARGIN, MARGIN, MARGIN, MARGIN, cv2.BORDER_CONSTANT)
    alpha = cut[..., 3:]
    spread = cv2.GaussianBlur(cut, (0, 0), 2.5)
    colour = np.where(
        alpha > 0.9, cut[..., :3] / np.maximum(alpha, 1e-3), spread[..., :3] / np.maximum(spread[..., 3:], 1e-3)
    )
    return np.clip(colour, 0, 1).astype(np.float32), np.clip(alpha[..., 0], 0, 1)


def _tone(lightness: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    low, high = np.percentile(lightness[alpha > 0.6] if (alpha > 0.6).any() else lightness, [3, 97])
    return np.clip((lightness - (low + high) / 2) / max(high - low, 0.25) + 0.5, 0, 1).astype(np.float32)


def _crease(lab: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """How sharply the drawing's colour changes, in [0, 1]; 0 along the silhouette."""
    smooth = cv2.GaussianBlur(lab, (0, 0), 1.0)
    across, down = (cv2.Sobel(smooth, cv2.CV_32F, *order, ksize=3) / 8 for order in ((1, 0), (0, 1)))
    change = np.sqrt((across**2 + down**2).sum(axis=-1))
    return np.clip((change - 2.2) / 9, 0, 1) * cv2.erode(inside.astype(np.uint8), np.ones((5, 5), np.uint8))


def _membrane(inside: np.ndarray, resolution: int = 160, sweeps: int = 60) -> np.ndarray:
    """Solves -laplace(u) = 1 within the silhouette, u = 0 outside, in units of the longer side squared.

    Jacobi sweeps from a coarse grid to ever finer ones; a few per cent from the exact solution, which no eye sees.
    """
    scale = resolution / max(inside.shape)
    size = max(4, round(inside.shape[1] * scale)), max(4, round(inside.shape[0] * scale))
    grids = [np.pad(cv2.resize(inside.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.5, 1)]
    while min(grids[-1].shape) > 8:
        half = max(3, grids[-1].shape[1] // 2), max(3, grids[-1].shape[0] // 2)
        grids.append(cv2.resize(grids[-1].astype(np.float32), half, interpolation=cv2.INTER_AREA) > 0.5)
    neighbours = np.array([[0, 0.25, 0], [0.25, 0, 0.25], [0, 0.25, 0]], np.float32)
    pressed = np.zeros(grids[-1].shape, np.float32)
    for grid in reversed(grids):
        if pressed.shape != grid.shape:
            pressed = cv2.resize(pressed, grid.shape[::-1], interpolation=cv2.INTER_LINEAR) * 4
        mask = grid.astype(np.float32)
        for _ in range(sweeps):
            pressed = (cv2.filter2D(pressed, -1, neighbours, borderType=cv2.BORDER_CONSTANT) + 0.25) * mask
    full = cv2.resize(pressed[1:-1, 1:-1], inside.shape[::-1], interpolation=cv2.INTER_CUBIC)
    return np.maximum(full, 0) / resolution**2


def _packed(relief: Relief) -> bytes:
    """The arrays' differences along rows, compressed: smooth arrays become mostly zeros."""
    parts = []
    for field in fields(relief):
        values = getattr(relief, field.name)
        parts.append(
            np.diff(values, axis=1, prepend=values.dtype.type(0)).astype(values.dtype.newbyteorder("<")).tobytes()
        )
    return zlib.compress(b"".join(parts), 6)


def _unpacked(data: bytes, height: int, width: int) -> Relief:
    raw, start, arrays = zlib.decompress(data), 0, []
    for kind in ("u1", "<u2", "u1", "u1"):
        differences = np.frombuffer(raw, kind, height * width, start).reshape(height, width)
        arrays.append(np.cumsum(differences, axis=1, dtype=differences.dtype.newbyteorder("=")))
        start += differences.nbytes
    return Relief(*arrays)


def write_reliefs(path: Path, reliefs: dict[str, Relief]) -> None:
    """One file: a line of magic, the length of the index and its SHA-256, the index (JSON), then the packed reliefs in order
    of names.
    """
    index, parts, start = {}, [], 0
    for name in sorted(reliefs):
        packed = _packed(reliefs[name])
        height, width = reliefs[name].alpha.shape
        index[name] = {
            "start": start,
            "length": len(packed),
            "height": height,
            "width": width,
            "sha256": sha256(packed),
        }
        parts.append(packed)
        start += len(packed)
    header = canonical_json(index).encode()
    write_bytes(path, b"".join([MAGIC, HEAD.pack(len(header), hashlib.sha256(header).digest()), header, *parts]))


class ReliefFile(Mapping):
    """Reliefs by shape reference; each is read from the file when it is asked for, the last used ones are kept."""

    def __init__(self, path: Path, index: dict, start: int):
        self._path, self._index, self._start = path, index, start
        self._kept = lru_cache(KEPT_RELIEFS)(self._read)

    def __getitem__(self, shape: str) -> Relief:
        return self._kept(shape)

    def _read(self, shape: str) -> Relief:
        entry = self._index[shape]
        try:
            with self._path.open("rb") as file:
                file.seek(self._start + entry["start"])
                packed = file.read(entry["length"])
        except OSError:  # gone or unreadable since it was opened
            raise _damaged(self._path) from None
        if sha256(packed) != entry["sha256"]:
            raise _damaged(self._path)
        return _unpacked(packed, entry["height"], entry["width"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def digest(self, shape: str) -> str:
        """Sha256 of one relief as it lies in the file. Raises UserError when the file lacks it."""
        if shape not in self._index:
            raise UserError(f"{self._path}: holds no relief of {shape}; delete it and run again")
        return self._index[shape]["sha256"]


def _damaged(path: Path) -> UserError:
    return UserError(f"{path}: damaged; delete it and run again")


def read_reliefs(path: Path) -> ReliefFile:
    """Opens what `write_reliefs` wrote. Raises UserError for a file that is missing or broken."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise UserError(f"{path}: not a file of reliefs of this version; delete it and run again")
            head = file.read(HEAD.size)
            length, digest = HEAD.unpack(head) if len(head) == HEAD.size else (0, b"")
            index = file.read(length)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run snakemake to make it") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); delete it and run again") from None
    if hashlib.sha256(index).digest() != digest:
        raise _damaged(path)
    return ReliefFile(path, json.loads(index), len(MAGIC) + HEAD.size + length)


def build_reliefs(shapes: list[str], fetched_path: Path, output: Path, workers: int = 1) -> None:
    """Builds and writes the reliefs of all shapes, in `workers` processes.

    Raises UserError that names the shape which cannot be read or drawn.
    """
    fetched = read_fetched(fetched_path)
    wanted = sorted(set(shapes))
    drawings = [read_svg(shape, fetched, fetched_path) for shape in wanted]
    if workers > 1:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            built = list(
                progress(pool.map(_named_relief, wanted, drawings, chunksize=4), "reliefs", len(wanted), "shape")
            )
    else:
        built = list(progress(map(_named_relief, wanted, drawings), "reliefs", len(wanted), "shape"))
    write_reliefs(output, dict(zip(wanted, built, strict=True)))


def _named_relief(shape: str, svg: str) -> Relief:
    cv2.setNumThreads(1)
    try:
        return build_relief(svg)
    except UserError as error:
        raise UserError(f"shape {shape}: {error}") from None
