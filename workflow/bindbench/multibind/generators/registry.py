"""Which module makes the pictures of which kind of generator."""

from ...config.multibind_generators import Generator
from . import blend, blur, collage, copy, missing, swap, target

EMBEDDED = {
    "target": target.picture,
    "collage": collage.picture,
    "swap": swap.picture,
    "copy": copy.picture,
    "blend": blend.picture,
    "blur": blur.picture,
    "missing": missing.picture,
}
