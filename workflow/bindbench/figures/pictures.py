"""Small copies of pictures for pages and figures, and the letters of subjects on them."""

import base64
import io
from collections.abc import Mapping
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError

from ..errors import UserError
from ..files import read_verified

QUALITY = 80
# Of MultiBind's slots, on pages and in figures; the letter always stands with its colour.
SLOT_COLOURS = {"A": "#1f5fb4", "B": "#a8480f", "C": "#7a2ba0", "D": "#00707a"}

Box = tuple[float, float, float, float]  # x, y, width, height as shares of the picture's width and height


def small_copy(path: Path, digest: str, remedy: str, longest: int) -> Image.Image:
    """An RGB copy within `longest` pixels. digest: SHA-256 of the file; remedy: what the user should do.

    Raises UserError for a file that is missing, another one, or no picture.
    """
    data = read_verified(path, digest, remedy)
    try:
        with Image.open(io.BytesIO(data)) as image:
            copy = image.convert("RGB")
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise UserError(f"{path}: not a readable picture; {remedy}") from None
    copy.thumbnail((longest, longest), Image.Resampling.LANCZOS, reducing_gap=3)
    return copy


def data_uri(image: Image.Image) -> str:
    """The picture as WebP inside a link."""
    file = io.BytesIO()
    image.save(file, "WEBP", quality=QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"


def with_letters(image: Image.Image, boxes: Mapping[str, Box], lost: Mapping[str, Box] | None = None) -> Image.Image:
    """A copy with the box and the letter of each slot. lost: places where nobody was found, dashed and with a question mark."""
    drawn = image.copy()
    draw = ImageDraw.Draw(drawn)
    size = max(14, round(max(image.size) / 22))
    font = ImageFont.load_default(size)
    for slot, box in {**(lost or {}), **boxes}.items():
        absent = slot not in boxes
        x, y, width, height = (round(part * side) for part, side in zip(box, image.size * 2, strict=True))
        right, bottom = min(x + width, image.width - 1), min(y + height, image.height - 1)
        for colour, thick, inset in (("white", 4, 0), (SLOT_COLOURS[slot], 2, 1)):
            edges = max(x, 0) + inset, max(y, 0) + inset, right - inset, bottom - inset
            _outline(draw, edges, colour, thick, dashed=absent)
    # Letters lie over all boxes.
    for slot, box in {**(lost or {}), **boxes}.items():
        text = slot if slot in boxes else f"{slot}?"
        x, y = max(round(box[0] * image.width), 0), max(round(box[1] * image.height), 0)
        wide = round(size * (0.75 * len(text) + 0.5))
        x, y = min(x, image.width - wide - 1), min(y, image.height - round(size * 1.3) - 1)
        plate = (x, y, x + wide, y + round(size * 1.3))
        draw.rectangle(plate, fill=SLOT_COLOURS[slot], outline="white")
        draw.text((x + wide / 2, y + size * 0.65), text, fill="white", font=font, anchor="mm", stroke_width=0.4)
    return drawn


def _outline(draw: ImageDraw.ImageDraw, box: tuple, colour: str, thick: int, dashed: bool) -> None:
    left, top, right, bottom = box
    if not dashed:
        draw.rectangle((left, top, max(left, right), max(top, bottom)), outline=colour, width=thick)
        return
    dash = 9
    for start in range(left, right, 2 * dash):
        for y in (top, bottom):
            draw.line((start, y, min(start + dash, right), y), fill=colour, width=thick)
    for start in range(top, bottom, 2 * dash):
        for x in (left, right):
            draw.line((x, start, x, min(start + dash, bottom)), fill=colour, width=thick)
