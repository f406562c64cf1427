"""COCO: instances JSON (`instances_train2017.json`), photographs in one folder; crowds, polygons and both kinds of run lengths.

Also what other sources with the same layout share. The file is read twice, item by item: first images and categories, which
may stand behind the annotations, then the annotations of people alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ...config.multibind_sources import Source
from ...errors import UserError
from ...people.masks import BrokenMask, check_counts, counts_of_polygons, counts_of_runs
from .long_json import BrokenJson, items_of
from .places import SOURCES_KEY, place_of
from .rows import Unusable, box_within, ids_of, left_out, person, photograph_row, storable


@dataclass(slots=True)
class Image:
    """One entry of `images`, and what was found of its people."""

    id: str
    file: str | None
    size: tuple[int, int] | None  # width and height as the data set has them
    licence: str | None
    people: list[dict] = field(default_factory=list)
    problem: tuple[str, str] | None = None  # reason and detail


def read_photographs(name: str, source: Source, max_pixels: int) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS. Raises UserError for an annotation file that is missing, broken or of another layout."""
    return read_layout(name, source, max_pixels, outline_of, lambda folder, file: folder / file)


def read_layout(
    name: str,
    source: Source,
    max_pixels: int,
    mask_of: Callable[[dict, int, int], str | None],
    find_file: Callable[[Path, str], Path],
) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS of any data set in COCO's layout, by id.

    mask_of: compressed run lengths of an annotation in an image of a width and height, or None.
    find_file: from the folder of the photographs and an image's `file_name` to its file.
    """
    key = f"{SOURCES_KEY}.{name}.annotations"
    annotations = place_of(name, "annotations", source.annotations, is_folder=False)
    folder = place_of(name, "images", source.images, is_folder=True)
    try:
        images, people = _images(annotations, key)
        images = images[: source.limit]
        _add_people({image.id: image for image in images}, annotations, people, max_pixels, mask_of)
    except BrokenJson as error:
        raise UserError(f"{key}: {annotations}: {error}; fetch or make the file again") from None
    except OSError as error:
        raise UserError(f"{key}: {annotations}: cannot be read ({error.strerror})") from None
    for photograph, image in zip(ids_of(name, [image.id for image in images]), images, strict=True):
        licence = source.licence or image.licence or source.known_licence
        yield _row(photograph, source.kind, image, folder, licence, max_pixels, find_file)


def _images(path: Path, key: str) -> tuple[list[Image], set]:
    """All images by id, and the ids of the category of people."""
    images: dict[str, Image] = {}
    people, licences, licence_of = set(), {}, {}
    for part, item in items_of(path, ("images", "categories", "licenses")):
        if not isinstance(item, dict) or "id" not in item:
            if part == "licenses":
                continue
            raise BrokenJson(f"an item of {part} has no id")
        if part == "categories" and str(item.get("name")).lower() == "person":
            people.add(_id(item["id"]))
        elif part == "licenses":
            licences[_id(item["id"])] = " ".join(str(item[k]).strip() for k in ("name", "url") if item.get(k)) or None
        elif part == "images":
            image = _image(item)
            if image.id in images:
                images[image.id].problem = ("duplicate_id", f"several images have the id {image.id[:80]!r}")
            else:
                images[image.id] = image
                licence_of[image.id] = _id(item.get("license"))
    if not people:
        raise UserError(f"{key}: {path}: no category `person`; name a file of instances")
    if not images:
        raise UserError(f"{key}: {path}: holds no image; name a file of instances")
    for image in images.values():
        image.licence = licences.get(licence_of[image.id])
    return sorted(images.values(), key=_order), people


def _id(value) -> str:
    """A number, its text, and the same number with a point, as tables of numbers write it, are one id."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _order(image: Image) -> tuple:
    """Numbers as numbers, then everything else as text."""
    is_number = len(image.id) < 20 and image.id.isascii() and image.id.isdigit()
    return (0, int(image.id), image.id) if is_number else (1, 0, image.id)


def _image(item: dict) -> Image:
    size, file = (item.get("width"), item.get("height")), item.get("file_name")
    image = Image(_id(item["id"]), file if _names_a_file(file) else None, None, None)
    if image.file is None:
        image.problem = ("broken_annotation", f"its file_name names no file in the folder (it is {str(file)[:80]!r})")
    elif not all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in size):
        image.problem = ("broken_annotation", f"its size is not two numbers of pixels (it is {str(size)[:80]})")
    else:
        image.size = size
    return image


def _names_a_file(file) -> bool:
    """Whether it is a path inside a folder, as long as a file system allows."""
    if not isinstance(file, str) or not file or "\0" in file or storable(file) != file:
        return False
    path = PurePosixPath(file)
    return (
        not path.is_absolute() and ".." not in path.parts and len(file) < 1000 and all(len(p) < 250 for p in path.parts)
    )


def _add_people(
    images: dict[str, Image],
    path: Path,
    people: set[str],
    max_pixels: int,
    mask_of: Callable[[dict, int, int], str | None],
) -> None:
    for _, item in items_of(path, ("annotations",)):
        if not isinstance(item, dict):
            raise BrokenJson("an item of annotations is no object")
        image = images.get(_id(item.get("image_id")))
        if image is None or image.problem or _id(item.get("category_id")) not in people:
            continue
        width, height = image.size
        if width * height > max_pixels:
            image.problem = ("too_many_pixels", f"{width} x {height} pixels, over the limit of {max_pixels}")
            continue
        number = _id(item.get("id", ""))
        try:
            box, mask = box_within(item.get("bbox"), width, height), mask_of(item, width, height)
            image.people.append(person(number, box, mask, crowd=is_crowd(item)))
        except Unusable as error:
            image.problem = (error.reason, f"person {number}: {error}")
        except BrokenMask as error:
            image.problem = ("broken_mask", f"person {number}: {error}")


def is_crowd(item: dict) -> bool:
    """A region of several people; in Objects365 also pictures and mirror images of people, who can be no subjects either."""
    return any(str(item.get(key)).lower() in ("1", "1.0", "true") for key in ("iscrowd", "isfake", "isreflected"))


def outline_of(item: dict, width: int, height: int) -> str | None:
    """Compressed run lengths of an annotation's segmentation; None where it has none.

    Raises Unusable for run lengths of another size than the photograph, BrokenMask for what cannot be read.
    """
    segmentation = item.get("segmentation")
    if not segmentation:
        return None
    if not isinstance(segmentation, dict):
        return counts_of_polygons(segmentation, height, width)
    size, counts = segmentation.get("size"), segmentation.get("counts")
    if size != [height, width]:
        raise Unusable("mask_size", f"the mask is {str(size)[:80]} high and wide, the photograph [{height}, {width}]")
    if isinstance(counts, list):
        return counts_of_runs(counts, height, width)
    check_counts(counts, height, width)
    return counts


def _row(photograph, kind, image: Image, folder: Path, licence: str, max_pixels: int, find_file) -> dict:
    path = folder / (image.file or "")
    if image.problem:
        return left_out(photograph, kind, path, licence, *image.problem)
    if not image.people:  # half of COCO: not worth opening
        return left_out(photograph, kind, path, licence, "no_people", "the data set names nobody in it")

    def people_of(width: int, height: int) -> list[dict]:
        if (width, height) != image.size:
            annotated = f"{image.size[0]} x {image.size[1]}"
            raise Unusable("mask_size", f"annotated as {annotated} pixels, the photograph has {width} x {height}")
        return _told_apart(image.people)

    return photograph_row(photograph, kind, find_file(folder, image.file), licence, max_pixels, people_of)


def _told_apart(people: list[dict]) -> list[dict]:
    """In the order of their ids; numbered from 1 where an id is missing or repeats."""
    ids = [someone["person"] for someone in people]
    if "" in ids or len(set(ids)) != len(ids):
        return [someone | {"person": str(number)} for number, someone in enumerate(people, 1)]
    return sorted(people, key=lambda someone: (len(someone["person"]), someone["person"]))
