"""Reads pictures from outside: upright as EXIF says, as RGB, and never beyond a pixel limit."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError


class Unreadable(Exception):
    """Why a picture is left out: one line without the path."""


def read_photograph(path: str | Path, max_pixels: int) -> np.ndarray:
    """(height, width, 3) uint8. Raises Unreadable for a file that is missing, no picture, broken, or larger than max_pixels."""
    try:
        with Image.open(path) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise Unreadable(f"{width} x {height} pixels, over the limit of {max_pixels}")
            upright = ImageOps.exif_transpose(image)
            return np.array(upright.convert("RGB"))
    except Unreadable:
        raise
    except FileNotFoundError:
        raise Unreadable("no such file") from None
    except UnidentifiedImageError:
        raise Unreadable("not a picture that can be read") from None
    except Image.DecompressionBombError:
        raise Unreadable(f"over the limit of {max_pixels} pixels") from None
    except (OSError, SyntaxError, ValueError) as error:
        # Pillow raises SyntaxError for broken PNG chunks and ValueError for some broken headers.
        raise Unreadable(f"broken ({error})") from None


def photograph_size(path: str | Path) -> tuple[int, int]:
    """Width and height, upright, from the header alone. Raises Unreadable as `read_photograph` does."""
    try:
        with Image.open(path) as image:
            width, height = image.size
            turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
    except FileNotFoundError:
        raise Unreadable("no such file") from None
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise Unreadable(f"not a picture that can be read ({type(error).__name__})") from None
    return (height, width) if turned else (width, height)
