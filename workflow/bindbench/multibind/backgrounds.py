"""Background references: the photograph without its people (section 3.2).

    python -m bindbench make-backgrounds --help

The masks of all people, grown for their edges and shadows, are filled: by PatchMatch (Barnes et al. 2009, package
patchmatch-cython) with texture from elsewhere in the photograph, by OpenCV (Telea 2004, or Navier-Stokes) with smooth
colours, by LaMa (Suvorov et al. 2022) where its weights are given, or by a generative model as in the paper. The embedded
methods leave every pixel outside the grown masks as it is. Then people are looked for once more: nobody should be found.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..config.multibind_pictures import PAID, Backgrounds
from ..config.multibind_segmentation import Segmentation
from ..config.services import Services
from ..errors import UserError
from ..files import read_verified, sha256, sha256_of_file, write_json
from ..paths import resolve
from ..people.masks import BrokenMask, decode_mask, encode_mask
from ..services.buying import Answer
from ..services.requests import InputImage, Request
from ..tables import read_table, write_table
from .annotating import subjects_of
from .inpainting import hole_of, lama_file, without_people
from .pictures import (
    GEMINI_RATIOS,
    OPENAI_SIZES,
    REMEDY,
    Notes,
    decoded,
    gemini_edit,
    in_processes,
    keep,
    key_of,
    mask_of,
    openai_edit,
    png_of,
    prompt_of,
    target_of,
)
from .purchases import SAME_AS_REJECTED, bought_well, new_record
from .tables import BACKGROUNDS, CROPS, PHOTOGRAPHS, SELECTED

PROMPT = "resources/prompts/multibind/background.txt"
STAGE = "multibind/backgrounds"
MOST_HIDDEN = 0.95  # share of a photograph that people may hide; beyond it there is nothing to fill from
STRETCHED = 0.03  # by how much the sides' ratio of a paid picture may differ from the one asked for

Rejected = Mapping[str, set[str]]


def make_backgrounds(
    selected: Path,
    crops: Path,
    folder: Path,
    settings: Backgrounds,
    services: Services | None,
    segmentation: Segmentation,
    out: Path,
    out_folder: Path,
    *,
    version: int,
    photographs: Path | None = None,
    threads: int = 1,
    rejected: Rejected | None = None,
) -> None:
    """Writes the pictures into `out_folder` and the table BACKGROUNDS; beside it NAME.json says what was bought and refused.

    folder: where the targets of SELECTED lie. services: of the paid methods. segmentation: of the check, see `people_in`.
    photographs: the table PHOTOGRAPHS; with it the people who are no subjects are removed, too. version, threads: see
    make_references. rejected: by instance, the SHA-256 of the backgrounds that people rejected; each one counts as an
    attempt of the paid methods.
    Raises UserError for a table, weights or a file that is missing or another one, and what services.buying.answers raises.
    """
    instances, subjects = _rows(selected, crops, photographs)
    notes, record = Notes(out_folder, "backgrounds"), new_record(STAGE)
    rejected = rejected or {}
    if settings.method in PAID:
        made = _bought(instances, subjects, folder, settings, services, notes, record, version, threads, rejected)
    else:
        made = _filled(instances, subjects, folder, settings, notes, version, threads)
    people = _people_left(made, segmentation, notes, version, threads)
    record["resized"] = {name: value["resized"] for name, value in sorted(made.items()) if "resized" in value}
    rows = []
    for instance in instances:
        name = instance["instance"]
        value = made.get(name)
        rows.append(
            {
                "instance": name,
                "background": value["file"] if value else None,
                "sha256": value["sha256"] if value else None,
                "model": model_of(settings) + ("/resized" if value and "resized" in value else ""),
                "people_left": people.get(name),
                "problems": _problems(name, value, people, record, rejected),
            }
        )
    notes.tidy()
    write_json(out.with_suffix(".json"), record)
    write_table(BACKGROUNDS, rows, out)


def _problems(name: str, value: dict | None, people: Mapping[str, int], record: dict, rejected: Rejected) -> list[str]:
    """refused; nothing_behind: people hide nearly everything; person_left; stretched: of another shape than asked for
    (paid); rejected: by a person.
    """
    if not value:
        return ["refused" if name in record["refused"] else "nothing_behind"]
    found = ["person_left"] if people[name] else []
    found += ["stretched"] if value.get("stretched") else []
    return found + (["rejected"] if value["sha256"] in rejected.get(name, ()) else [])


def _rows(selected: Path, crops: Path, photographs: Path | None) -> tuple[list[dict], dict[str, list[dict]]]:
    """Rows of SELECTED, and by instance all who are to be removed: rows of CROPS, then the bystanders in their form."""
    instances = read_table(SELECTED, selected).to_pylist()
    subjects = subjects_of(instances, read_table(CROPS, crops).to_pylist(), crops)
    if photographs is None:
        return instances, subjects
    table = read_table(PHOTOGRAPHS, photographs)
    wanted = pa.array([instance["photograph"] for instance in instances], pa.string())
    rows = table.filter(pc.is_in(table["photograph"], value_set=wanted)).to_pylist()
    people_of = {row["photograph"]: row for row in rows}
    removed = {}
    for instance in instances:
        name, row = instance["instance"], people_of.get(instance["photograph"])
        if row is None:
            raise UserError(f"{photographs}: no photograph {instance['photograph']}; run snakemake again")
        removed[name] = [
            *subjects[name],
            *_bystanders(instance, row, {subject["person"] for subject in subjects[name]}),
        ]
    return instances, removed


def _bystanders(instance: dict, photograph: dict, subjects: set[str]) -> Iterator[dict]:
    """The people of a row of PHOTOGRAPHS who are no subjects, with masks of the target's size: their boxes, if they have none."""
    for person in photograph["people"]:
        if person["person"] in subjects:
            continue
        mask = np.zeros((photograph["height"], photograph["width"]), np.uint8)
        try:
            if person["mask"] is not None:
                mask = decode_mask(person["mask"], photograph["height"], photograph["width"]).astype(np.uint8)
        except BrokenMask:
            pass
        if not mask.any():
            x, y, width, height = person["box"]
            left, top = max(0, int(x)), max(0, int(y))
            mask[top : int(np.ceil(y + height)), left : int(np.ceil(x + width))] = 1
        size = instance["width"], instance["height"]
        scaled = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0
        yield {"instance": instance["instance"], "slot": f"bystander {person['person']}", "mask": encode_mask(scaled)}


def model_of(settings: Backgrounds) -> str:
    """What removes the people, for the table."""
    return {
        "patchmatch": f"patchmatch/{settings.patch_px}",
        "opencv": f"opencv/{settings.algorithm}",
        "lama": f"lama/{Path(settings.lama_weights or '').name}",
        "gemini": f"gemini/{settings.gemini_model}/{settings.gemini_size}",
        "openai": f"openai/{settings.openai_model}/{settings.quality}",
    }[settings.method]


# Filled --------------------------------------------------------------------------------------------------------------


def _hole(instance: dict, subjects: list[dict], settings: Backgrounds) -> np.ndarray:
    return hole_of([mask_of(subject, instance) for subject in subjects], settings)


def _filled(instances, subjects, folder, settings, notes: Notes, version, threads) -> dict:
    """The embedded backgrounds by instance: values of Notes; one that people hide nearly whole has none."""
    shapes = settings.model_dump(include=_shapes(settings))
    if settings.method == "lama":
        shapes["weights"] = sha256_of_file(lama_file(settings.lama_weights))
    made, tasks, keys = {}, [], []
    for instance in instances:
        name = instance["instance"]
        masks = {subject["slot"]: subject["mask"] for subject in subjects[name]}
        key = key_of(target=instance["sha256"], masks=masks, shapes=shapes, version=version)
        value = notes.find(f"picture/{name}", key)
        if value is None:
            tasks.append((folder, instance, subjects[name], settings, notes.folder))
            keys.append(key)
        elif value:
            made[name] = value
    results = in_processes(_fill, tasks, threads, "backgrounds")
    for task, key, value in zip(tasks, keys, results, strict=True):
        name = task[1]["instance"]
        notes.add(f"picture/{name}", key, value)
        if value:
            made[name] = value
    return made


def _shapes(settings: Backgrounds) -> set[str]:
    """The fields that shape a picture of the embedded methods."""
    own = {"patchmatch": {"seed", "patch_px", "radius_px"}, "opencv": {"algorithm", "radius_px"}, "lama": set()}
    return {"method", "grow", "grow_below", "longest_px"} | own[settings.method]


def _fill(task: tuple) -> dict:
    """Writes the background of one instance; an empty value where people hide nearly everything."""
    folder, instance, subjects, settings, out_folder = task
    hole = _hole(instance, subjects, settings)
    if hole.mean() > MOST_HIDDEN:
        return {}
    picture = without_people(target_of(folder, instance), hole, settings)
    return keep(out_folder / f"{instance['instance']}.png", png_of(picture))


# Bought --------------------------------------------------------------------------------------------------------------


def framed(width: int, height: int, ratio: float) -> tuple[int, int, int, int]:
    """Width, height, left and top of the smallest frame of a ratio (width to height) around a picture in its middle."""
    wide, high = max(width, round(height * ratio)), max(height, round(width / ratio))
    return wide, high, (wide - width) // 2, (high - height) // 2


def nearest_shape(width: int, height: int, shapes: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    """Of shapes (width, height) the one whose ratio is nearest to the picture's: the least is added around it."""
    return min(shapes, key=lambda shape: abs(np.log(shape[0] / shape[1] * height / width)))


def shape_of(instance: dict, settings: Backgrounds) -> tuple[int, int]:
    """What is asked of the service: a size of OpenAI's, or a ratio of Gemini's."""
    shapes = OPENAI_SIZES if settings.method == "openai" else GEMINI_RATIOS
    return nearest_shape(instance["width"], instance["height"], shapes)


def mirrored(picture: np.ndarray, frame: tuple[int, int, int, int]) -> np.ndarray:
    """The picture continued to a frame by its own mirror image, so that the service is asked for a shape that it sells."""
    height, width = picture.shape[:2]
    wide, high, left, top = frame
    return cv2.copyMakeBorder(picture, top, high - height - top, left, wide - width - left, cv2.BORDER_REFLECT)


def input_pictures(image: np.ndarray, hole: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """What goes in: the photograph in its frame, and what is to be removed, white on black, of the same size."""
    frame = framed(image.shape[1], image.shape[0], shape[0] / shape[1])
    return mirrored(image, frame), mirrored(hole.astype(np.uint8) * 255, frame)


def background_request(
    instance: dict, pictures: tuple[InputImage, ...], settings: Backgrounds, attempt: int
) -> Request:
    """What is asked for one instance. attempt: 0 at first, one more for each rejected background."""
    prompt, shape = prompt_of(PROMPT), shape_of(instance, settings)
    if settings.method == "openai":
        model, kind = settings.openai_model, "image_edit"
        body = openai_edit(prompt, model, shape, settings.quality)
    else:
        model, kind = settings.gemini_model, "gemini_content"
        body = gemini_edit(prompt, len(pictures), shape, settings.gemini_size)
    return Request(kind, model, body, pictures, attempt=attempt + 1, stage=STAGE)


def backgrounds_requests(
    selected: Path,
    crops: Path,
    folder: Path,
    settings: Backgrounds,
    photographs: Path | None = None,
    rejected: Rejected | None = None,
) -> Iterator[Request]:
    """What `make_backgrounds` would ask for, for an estimate; nothing is written. None for the embedded methods."""
    if settings.method not in PAID:
        return
    instances, subjects = _rows(selected, crops, photographs)
    for instance in instances:
        name = instance["instance"]
        hole = _hole(instance, subjects[name], settings)
        pictures = input_pictures(target_of(folder, instance), hole, shape_of(instance, settings))
        images = tuple(InputImage(name, sha256(png_of(picture))) for picture in pictures)
        yield background_request(instance, images, settings, len((rejected or {}).get(name, ())))


def _bought(
    instances, subjects, folder, settings, services, notes: Notes, record, version, threads, rejected: Rejected
) -> dict:
    """The paid backgrounds by instance: values of Notes; a refused one is in the record instead."""
    of_name = {instance["instance"]: instance for instance in instances}
    inputs = _inputs(instances, subjects, folder, settings, notes, threads)
    made = {}

    def ask(name: str, attempt: int) -> Request:
        images = tuple(InputImage(str((notes.folder / it["file"]).resolve()), it["sha256"]) for it in inputs[name])
        return background_request(of_name[name], images, settings, len(rejected.get(name, ())) + attempt)

    def judge(name: str, answer: Answer) -> str:
        value = _kept(of_name[name], answer, settings, notes, version)
        if value is None:
            return "its pixels do not decode"
        made[name] = value
        return SAME_AS_REJECTED if value["sha256"] in rejected.get(name, ()) else ""

    bought_well(inputs, ask, judge, services, record)
    return made


def _inputs(instances, subjects, folder, settings, notes: Notes, threads) -> dict[str, list[dict]]:
    """By instance the files that go in: values of Notes."""
    made, tasks, keys = {}, [], {}
    for instance in instances:
        name = instance["instance"]
        masks = {subject["slot"]: subject["mask"] for subject in subjects[name]}
        grow = [settings.grow, settings.grow_below]
        keys[name] = key_of(target=instance["sha256"], masks=masks, grow=grow, shape=shape_of(instance, settings))
        found = [notes.find(f"{kind}/{name}", keys[name]) for kind in ("input", "mask")]
        if all(found):
            made[name] = found
        else:
            tasks.append((folder, instance, subjects[name], settings, notes.folder))
    for task, values in zip(tasks, in_processes(_write_inputs, tasks, threads, "photographs framed"), strict=True):
        name = task[1]["instance"]
        for kind, value in zip(("input", "mask"), values, strict=True):
            notes.add(f"{kind}/{name}", keys[name], value)
        made[name] = values
    return {instance["instance"]: made[instance["instance"]] for instance in instances}


def _write_inputs(task: tuple) -> list[dict]:
    folder, instance, subjects, settings, out_folder = task
    hole = _hole(instance, subjects, settings)
    pictures = input_pictures(target_of(folder, instance), hole, shape_of(instance, settings))
    names = (f"{instance['instance']}~{kind}.png" for kind in ("input", "mask"))  # no instance's name has that sign
    return [keep(out_folder / name, png_of(picture)) for name, picture in zip(names, pictures, strict=True)]


def _kept(instance: dict, answer: Answer, settings: Backgrounds, notes: Notes, version: int) -> dict | None:
    """The file of an answer, without its frame and of the target's size; None when its pixels do not decode."""
    name, width, height = instance["instance"], instance["width"], instance["height"]
    shape = shape_of(instance, settings)
    key = key_of(kind="bought", payload=sha256(answer.payload), size=[width, height], shape=shape, version=version)
    value = notes.find(f"picture/{name}", key)
    if value is None:
        pixels = cv2.imdecode(np.frombuffer(answer.payload, np.uint8), cv2.IMREAD_COLOR)
        if pixels is None:
            return None
        came_high, came_wide = pixels.shape[:2]
        wide, high, left, top = framed(width, height, shape[0] / shape[1])
        if (came_wide, came_high) != (wide, high):
            way = cv2.INTER_AREA if came_wide > wide else cv2.INTER_CUBIC
            pixels = cv2.resize(pixels, (wide, high), interpolation=way)
        picture = cv2.cvtColor(pixels[top : top + height, left : left + width], cv2.COLOR_BGR2RGB)
        value = keep(notes.folder / f"{name}.png", png_of(picture))
        if (came_wide, came_high) != (width, height):
            value["resized"] = f"from {came_wide} x {came_high}, framed {wide} x {high}, to {width} x {height}"
        value["stretched"] = abs(came_wide * high / (came_high * wide) - 1) > STRETCHED
        notes.add(f"picture/{name}", key, value)
    return value


# Checked -------------------------------------------------------------------------------------------------------------


def _people_left(made: Mapping[str, dict], settings: Segmentation, notes: Notes, version, threads) -> dict:
    """How many people the check still finds in each background."""
    checker = {"settings": settings.model_dump(mode="json"), "version": version}
    if settings.method == "yolo":
        weights = resolve(Path(settings.yolo_weights).expanduser())
        if not weights.is_file():
            raise UserError(f"multibind.segmentation.yolo_weights: {weights}: no such file; put YOLO's weights there")
        checker["weights"] = sha256_of_file(weights)
    people, tasks, keys = {}, [], []
    for name, value in made.items():
        key = key_of(picture=value["sha256"], checker=checker)
        found = notes.find(f"people/{name}", key)
        if found is None:
            tasks.append((name, notes.folder, value, settings))
            keys.append(key)
        else:
            people[name] = found["people"]
    for task, key, count in zip(tasks, keys, in_processes(_check, tasks, threads, "backgrounds checked"), strict=True):
        notes.add(f"people/{task[0]}", key, {"people": count})
        people[task[0]] = count
    return people


def _check(task: tuple) -> int:
    _, folder, value, settings = task
    data = read_verified(folder / value["file"], value["sha256"], REMEDY)
    return people_in(decoded(data, folder / value["file"]), settings)


def people_in(picture: np.ndarray, settings: Segmentation) -> int:
    """How many people are found in a (height, width, 3) uint8 picture.

    Those that YOLO finds, where it is the method of the segmentation, and every face that is in none of them. The embedded
    segmentation finds nobody without a face, so there the faces are all.
    """
    from ..people.faces import find_faces

    people = []
    if settings.method == "yolo":
        from ..people.segmentation import segment_people

        people = segment_people(picture, settings, _segmenter(settings))
    lone = 0
    for face in find_faces(picture, settings.min_face_score):
        x, y = (int(value) for value in face.centre)
        inside = 0 <= y < picture.shape[0] and 0 <= x < picture.shape[1]
        lone += not (inside and any(person.mask[y, x] for person in people))
    return len(people) + lone


OPENED = ExitStack()  # models stay open until the process ends


@cache
def _segmenter(settings: Segmentation):
    from ..people.segmentation import open_segmenter

    return OPENED.enter_context(open_segmenter(settings, ""))
