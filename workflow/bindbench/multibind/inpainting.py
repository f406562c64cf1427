"""Takes people out of a photograph: which pixels go with them, and what fills these (MultiBind, section 3.2).

PatchMatch (Barnes et al. 2009) brings texture from elsewhere in the photograph, OpenCV (Telea 2004, or Navier-Stokes) smooth
colours, LaMa (Suvorov et al. 2022) whatever it has learned; every pixel outside of what is removed stays as it is.
"""

from functools import cache
from pathlib import Path

import cv2
import numpy as np

from ..config.multibind_pictures import Backgrounds
from ..errors import UserError
from ..paths import resolve

LAMA_MULTIPLE = 8  # LaMa halves its picture three times


def hole_of(masks: list[np.ndarray], settings: Backgrounds) -> np.ndarray:
    """(height, width) bool: all masks, each grown around by settings.grow and downwards by settings.grow_below.

    What a mask encloses goes too: a part that the segmentation missed, or a glimpse of the ground under an arm.
    """
    hole = np.zeros(masks[0].shape, bool)
    for mask in masks:
        hole |= grown(without_gaps(mask), round(settings.grow * max(mask.shape)), settings.grow_below)
    return hole


def without_gaps(mask: np.ndarray) -> np.ndarray:
    """The (height, width) bool mask with everything that it encloses."""
    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return cv2.drawContours(np.zeros(mask.shape, np.uint8), outlines, -1, 1, cv2.FILLED).astype(bool)


def grown(mask: np.ndarray, around: int, below: float) -> np.ndarray:
    """A (height, width) bool mask with everything within `around` pixels, and `below` of its height under each pixel.

    An empty mask stays empty.
    """
    rows = np.flatnonzero(mask.any(1))
    if not len(rows):
        return mask.copy()
    distance = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    wide = (distance <= around).astype(np.uint8)
    down = round(below * (rows[-1] + 1 - rows[0]))
    return cv2.dilate(wide, np.ones((down + 1, 1), np.uint8), anchor=(0, down)).astype(bool)


def without_people(image: np.ndarray, hole: np.ndarray, settings: Backgrounds) -> np.ndarray:
    """(height, width, 3) uint8: the image with its hole filled; every pixel outside the hole is as it was.

    hole: (height, width) bool. Large images are filled at settings.longest_px: time and memory stay bounded.
    """
    height, width = hole.shape
    scale = min(1.0, settings.longest_px / max(height, width))
    small_size = max(1, round(width * scale)), max(1, round(height * scale))
    small = cv2.resize(image, small_size, interpolation=cv2.INTER_AREA)
    # Every small pixel in which the hole has a part is filled: it has colours of a person.
    small_hole = cv2.resize(hole.astype(np.float32), small_size, interpolation=cv2.INTER_AREA) > 0
    fill = {"patchmatch": _patchmatch, "opencv": _opencv, "lama": _lama}[settings.method]
    filled = cv2.resize(fill(small, small_hole, settings), (width, height), interpolation=cv2.INTER_LINEAR)
    result = np.where(hole[..., None], filled, image)
    assert np.array_equal(result[~hole], image[~hole])
    return result


def _patchmatch(image: np.ndarray, hole: np.ndarray, settings: Backgrounds) -> np.ndarray:
    import patchmatch_cython

    # One thread, and random numbers from the seed alone: the same picture each time.
    arguments = {"patch_size": settings.patch_px, "seed": settings.seed}
    try:
        return patchmatch_cython.inpaint_pyramid(image, hole, **arguments)
    except ValueError:  # so much is hidden that the smallest level of the pyramid has no whole patch left
        try:
            return patchmatch_cython.inpaint_single(image, hole, iterations=10, **arguments)
        except ValueError:  # nor has the photograph itself
            return cv2.inpaint(image, hole.astype(np.uint8), settings.radius_px, cv2.INPAINT_TELEA)


def _opencv(image: np.ndarray, hole: np.ndarray, settings: Backgrounds) -> np.ndarray:
    way = cv2.INPAINT_TELEA if settings.algorithm == "telea" else cv2.INPAINT_NS
    return cv2.inpaint(image, hole.astype(np.uint8), settings.radius_px, way)


def _lama(image: np.ndarray, hole: np.ndarray, settings: Backgrounds) -> np.ndarray:
    """LaMa takes (1, 3, height, width) colours and a (1, 1, height, width) mask from 0 to 1, and answers in colours."""
    import torch

    height, width = hole.shape
    below, right = -height % LAMA_MULTIPLE, -width % LAMA_MULTIPLE
    image = cv2.copyMakeBorder(image, 0, below, 0, right, cv2.BORDER_REFLECT)
    mask = cv2.copyMakeBorder(hole.astype(np.float32), 0, below, 0, right, cv2.BORDER_REFLECT)
    colours = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    model = _lama_model(settings.lama_weights)
    try:
        with torch.inference_mode():
            answer = model(colours, torch.from_numpy(mask)[None, None])[0]
        pixels = (answer.permute(1, 2, 0) * 255).round().clamp(0, 255).byte().numpy()
    except (RuntimeError, TypeError, IndexError) as error:
        raise _no_lama(settings.lama_weights, f"not LaMa: {str(error).strip().splitlines()[-1][:200]}") from None
    if pixels.shape != image.shape:
        raise _no_lama(settings.lama_weights, "not LaMa: it answers with a picture of another size")
    return pixels[:height, :width]


@cache
def _lama_model(weights: str):
    import torch

    torch.set_num_threads(1)  # as many processes run as there are threads, and sums are the same for any number
    try:
        return torch.jit.load(str(lama_file(weights)), map_location="cpu").eval()
    except (RuntimeError, ValueError) as error:
        raise _no_lama(weights, f"cannot be loaded ({str(error).strip().splitlines()[0][:200]})") from None


def lama_file(weights: str) -> Path:
    """Raises UserError that names the key where there is no such file."""
    path = resolve(weights).expanduser()
    if not path.is_file():
        raise _no_lama(weights, "no such file")
    return path


def _no_lama(weights: str, what: str) -> UserError:
    return UserError(f"multibind.backgrounds.lama_weights: {weights}: {what}; give LaMa as TorchScript (big-lama.pt)")
