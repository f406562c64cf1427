"""Reads pictures from outside: upright as EXIF says, as RGB, and never beyond a pixel limit.

Orientation comes from the header alone, so that `photograph_size` and `read_photograph` always agree; EXIF that a PNG holds
behind its pixels is not heeded.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp")
# Nothing else is tried: Pillow would hand some kinds of files to programs of their own.
FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP")
ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# The callers' limits hold in place of Pillow's, which warns from here on and refuses twice as much.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


class Unreadable(Exception):
    """Why a picture is left out: one line without the path, and a short name: missing_file, broken_file, too_many_pixels
    or, of a mask, mask_size.
    """

    def __init__(self, detail: str, reason: str = "broken_file"):
        super().__init__(detail)
        self.reason = reason


def read_photograph(path: str | Path, max_pixels: int) -> np.ndarray:
    """(height, width, 3) uint8. Raises Unreadable for a file that is missing, no picture, broken, or larger than max_pixels."""
    with _opened(path, max_pixels) as image:
        _check_depth(image)
        turn = TURNS.get(_orientation(image))
        image.load()
        if image.mode.startswith("I;16"):  # Pillow would cut off at 255 what reaches up to 65535
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        upright = image if turn is None else image.transpose(turn)
        return np.array(upright.convert("RGB"))


def photograph_size(path: str | Path, max_pixels: int | None = None) -> tuple[int, int]:
    """Width and height, upright, from the header alone. Raises Unreadable as `read_photograph` does."""
    with _opened(path, max_pixels) as image:
        _check_depth(image)
        width, height = image.size
        return (height, width) if _orientation(image) in (5, 6, 7, 8) else (width, height)


def is_turned_unseen(path: str | Path) -> bool:
    """Whether EXIF turns or mirrors a picture and its size stays: what was drawn on it before and after looks alike.

    From the header alone. Raises Unreadable as `read_photograph` does.
    """
    with _opened(path, None) as image:
        orientation = _told_orientation(image)
        return orientation in TURNS and (orientation < 5 or image.width == image.height)


def changes_of(path: str | Path) -> list[str]:
    """What `read_photograph` does to a picture, in words, from the header alone. Raises Unreadable as it does."""
    with _opened(path, None) as image:
        turned = [f"turned upright by EXIF orientation {_orientation(image)}"] if _orientation(image) in TURNS else []
        return turned if image.mode == "RGB" else [*turned, f"converted from {image.mode} to RGB"]


def read_labels(path: str | Path, width: int, height: int) -> np.ndarray:
    """(height, width) integers of a picture of labels, such as the numbers of people; of one in colour, the red channel.

    Raises Unreadable as `read_photograph` does, and for a picture of another size before its pixels are unpacked.
    """
    with _opened(path, None) as image:
        if image.size != (width, height):
            found = f"{image.size[0]} x {image.size[1]}"
            raise Unreadable(f"the mask is {found}, the photograph {width} x {height}", "mask_size")
        labels = np.array(image)
        if labels.dtype.kind not in "bui":
            raise Unreadable("the mask holds fractions, no numbers of people")
        return labels if labels.ndim == 2 else labels[..., 0]


@contextmanager
def _opened(path: str | Path, max_pixels: int | None) -> Iterator[Image.Image]:
    try:
        with Image.open(path, formats=FORMATS) as image:
            width, height = image.size
            if max_pixels is not None and width * height > max_pixels:
                raise Unreadable(f"{width} x {height} pixels, over the limit of {max_pixels}", "too_many_pixels")
            yield image
    except Unreadable:
        raise
    except FileNotFoundError:
        raise Unreadable("no such file", "missing_file") from None
    except Image.UnidentifiedImageError:
        raise Unreadable("not a picture that can be read") from None
    except Image.DecompressionBombError:
        raise Unreadable("far too many pixels", "too_many_pixels") from None
    except Exception as error:  # for broken files Pillow raises OSError, SyntaxError, ValueError, struct.error and more
        raise Unreadable(f"broken ({type(error).__name__}: {' '.join(str(error).split())[:200]})") from None


def _check_depth(image: Image.Image) -> None:
    if image.mode in ("I", "F"):  # nobody knows which value is white, and Pillow would cut off at 255
        raise Unreadable("32 bits a pixel; save it with 8 or 16")


def _orientation(image: Image.Image) -> int:
    """EXIF's, 1 to 8; 1 for none, a broken one, and TIFF, which Pillow turns by itself."""
    return 1 if image.format == "TIFF" else _told_orientation(image)


def _told_orientation(image: Image.Image) -> int:
    try:
        # Not the method of PNG's own class: it unpacks the pixels to look behind them.
        return Image.Image.getexif(image).get(ORIENTATION, 1)
    except Exception:  # broken EXIF is no reason to leave a good picture out
        return 1
