"""Runs one generator over all instances (section 5.1).

    python -m bindbench generate-images --help

Every picture has its instance's common size: the target's shape within the longest side that is configured. A model that
makes other sizes is asked for the nearest shape, and what comes is resized to the common one, sides by themselves: places in
the prompt are shares of width and height. A picture that cannot be had is a row with a problem. A run that is killed goes on
where it was: finished pictures are noted under everything that shapes them, and what was bought lies in the store.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import cv2
import numpy as np

from ...config.multibind_generators import EMBEDDED, OPEN, PAID, Generator
from ...config.services import Services
from ...errors import UserError
from ...files import canonical_json, progress, sha256, sha256_of_file, write_json
from ...people.photographs import Unreadable, changes_of, read_photograph
from ...services.requests import InputImage, Request
from ...tables import write_table
from ..generated_tables import GENERATED
from ..pictures import Notes, in_processes, keep, key_of, png_of
from ..purchases import bought, new_record
from . import folder as ready
from . import registry
from .collage import NothingToPaste
from .scene import Scene, read_scenes, resized

STAGE = "multibind/generated"


def generate(
    instances: Path,
    subjects: Path,
    folder: Path,
    name: str,
    generator: Generator,
    services: Services | None,
    out: Path,
    out_folder: Path,
    *,
    longest_px: int,
    version: int,
    threads: int = 1,
) -> None:
    """Writes INSTANCE.png of every instance into `out_folder`, and the table GENERATED; beside it NAME.json counts.

    folder: what files of INSTANCES and SUBJECTS are relative to. name: of the generator in the config. services: of the paid
    kinds. longest_px: of the common size. version: of this stage; another one makes everything anew but what was bought.
    threads: processes at once, of the embedded kinds. Pictures without which a row has a problem are told on standard error.
    Raises UserError for a table, file, folder or checkpoint that is missing or broken, a library that is not installed, and
    whatever services.buying.answers raises.
    """
    scenes = list(read_scenes(instances, subjects, folder, longest_px))
    notes, record = Notes(out_folder, "generated"), new_record(STAGE)
    if generator.kind in EMBEDDED:
        made = _embedded(scenes, generator, notes, version, threads)
    elif generator.kind in PAID:
        made = _bought(scenes, generator, services, notes, record, version)
    elif generator.kind in OPEN:
        made = _run(scenes, generator, notes, version)
    else:
        made = _ready(scenes, generator, notes, version)
    rows = [_row(scene, name, generator, made[scene.name]) for scene in scenes]
    record["problems"] = {row["instance"]: row["problem"] for row in rows if row["problem"] is not None}
    if record["problems"]:
        first = next(iter(record["problems"].items()))
        print(
            f"{name}: {len(record['problems'])} of {len(rows)} instances have no picture (the first: {first[0]}: {first[1]})",
            file=sys.stderr,
        )
    notes.tidy()
    write_json(out.with_suffix(".json"), record)
    write_table(GENERATED, rows, out)


def _row(scene: Scene, name: str, generator: Generator, value: dict) -> dict:
    return {
        "generator": name,
        "instance": scene.name,
        "file": value.get("file"),
        "sha256": value.get("sha256"),
        "width": scene.size[0],
        "height": scene.size[1],
        "model": model_of(generator),
        "settings": canonical_json(recorded(generator)),
        "changes": value.get("changes", []),
        "problem": value.get("problem"),
    }


def model_of(generator: Generator) -> str:
    """What makes the pictures, for the table: never taken for another model's."""
    if generator.kind in EMBEDDED:
        return f"embedded/{generator.kind}"
    if generator.kind == "folder":
        return "folder"
    revision = f"@{generator.revision}" if generator.revision else ""
    return f"{generator.kind}/{recorded(generator)['model']}{revision}"


def recorded(generator: Generator) -> dict:
    """The settings that shaped a picture; a checkpoint in a folder goes by the folder's name."""
    if generator.kind not in OPEN:
        return generator.settings
    from .open_models import name_of

    return {**generator.settings, "model": name_of(generator)}


def to_size(picture: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, list[str]]:
    """A picture of the common size, and what was done to it."""
    height, width = picture.shape[:2]
    if (width, height) == size:
        return picture, []
    changes = [f"resized from {width} x {height} to {size[0]} x {size[1]}"]
    ratio = size[0] * height / (size[1] * width)
    if abs(ratio - 1) > 0.01:
        changes.append(f"width to height times {ratio:.3f}")
    return resized(picture, size), changes


def _kept(scene: Scene, picture: np.ndarray, folder: Path, changes: Iterable[str] = ()) -> dict:
    """The value of Notes of a picture of any size, whose file is written in the common one."""
    picture, more = to_size(picture, scene.size)
    value = keep(folder / f"{scene.name}.png", png_of(picture))
    return {**value, "changes": [*changes, *more]}


# Embedded ------------------------------------------------------------------------------------------------------------


def _embedded(scenes: list[Scene], generator: Generator, notes: Notes, version: int, threads: int) -> dict[str, dict]:
    """By instance, as of all ways below: the value of Notes, of a file or of a problem."""
    made, tasks, keys = {}, [], []
    for scene in scenes:
        key = key_of(scene=scene.shapes, settings=generator.settings, version=version)
        value = notes.find(scene.name, key)
        if value is None:
            tasks.append((scene, generator, notes.folder))
            keys.append(key)
        else:
            made[scene.name] = value
    for task, key, value in zip(tasks, keys, in_processes(_make, tasks, threads, "pictures"), strict=True):
        notes.add(task[0].name, key, value)
        made[task[0].name] = value
    return made


def _make(task: tuple) -> dict:
    scene, generator, out_folder = task
    try:
        picture = registry.EMBEDDED[generator.kind](scene.fresh(), generator)
    except NothingToPaste as reason:
        return {"problem": str(reason)}
    return _kept(scene, picture, out_folder)


# Ready ---------------------------------------------------------------------------------------------------------------


def _ready(scenes: list[Scene], generator: Generator, notes: Notes, version: int) -> dict[str, dict]:
    place, made = ready.opened(generator.folder), {}
    if scenes and not any(ready.found(place, scene.name) for scene in scenes):
        raise UserError(
            f"{place}: has a picture of none of the {len(scenes)} instances; name them as these, such as {scenes[0].name}.png"
        )
    for scene in progress(scenes, "pictures", unit="image"):
        path = ready.found(place, scene.name)
        if path is None:
            made[scene.name] = {"problem": f"no file {scene.name}.png, .jpg, .jpeg or .webp in the folder"}
            continue
        key = key_of(file=sha256_of_file(path), size=scene.size, version=version)
        value = notes.find(scene.name, key)
        if value is None:
            try:
                value = _kept(scene, read_photograph(path, ready.MOST_PIXELS), notes.folder, changes_of(path))
            except Unreadable as error:
                value = {"problem": f"{path.name}: {error}"}
            notes.add(scene.name, key, value)
        made[scene.name] = value
    return made


# Bought --------------------------------------------------------------------------------------------------------------


def request_of(scene: Scene, generator: Generator) -> Request:
    """What is asked of a service for one instance."""
    asked = registry.PAID[generator.kind]
    images = tuple(InputImage(str(path.resolve()), digest) for path, digest in scene.files)
    return Request(asked.KIND, generator.model_name, asked.body(scene, generator), images, stage=STAGE)


def generator_requests(
    instances: Path, subjects: Path, folder: Path, generator: Generator, longest_px: int
) -> Iterator[Request]:
    """What `generate` would ask for, for an estimate; nothing is written. None for kinds that buy nothing."""
    if generator.kind in PAID:
        for scene in read_scenes(instances, subjects, folder, longest_px):
            yield request_of(scene, generator)


def _bought(scenes, generator: Generator, services, notes: Notes, record: dict, version: int) -> dict[str, dict]:
    by_name, made = {scene.name: scene for scene in scenes}, {}
    requests = {scene.name: request_of(scene, generator) for scene in scenes}
    for name, answer in bought(requests, services, record):
        scene = by_name[name]
        if not answer.accepted:
            made[name] = {"problem": answer.reason}
            continue
        key = key_of(payload=sha256(answer.payload), size=scene.size, version=version)
        value = notes.find(name, key)
        if value is None:
            pixels = cv2.imdecode(np.frombuffer(answer.payload, np.uint8), cv2.IMREAD_COLOR)
            if pixels is None:
                made[name] = {"problem": "its pixels do not decode"}
                record["refused"][name] = made[name]["problem"]
                continue
            value = _kept(scene, cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), notes.folder)
            notes.add(name, key, value)
        made[name] = value
    return made


# Run on this machine -------------------------------------------------------------------------------------------------


def _run(scenes: list[Scene], generator: Generator, notes: Notes, version: int) -> dict[str, dict]:
    """The model is loaded when the first picture is missing."""
    from .open_models import checkpoint_identity, room_for_model

    identity, made, model = checkpoint_identity(generator), {}, None
    for scene in progress(scenes, "pictures", unit="image"):
        shapes = {name: scene.shapes[name] for name in ("inputs", "prompt", "size")}
        key = key_of(scene=shapes, settings=recorded(generator), checkpoint=identity, version=version)
        value = notes.find(scene.name, key)
        if value is None:
            model = model or registry.OPEN[generator.kind](generator)
            with room_for_model(generator):
                picture = model(scene.fresh())
            value = _kept(scene, picture, notes.folder)
            notes.add(scene.name, key, value)
        made[scene.name] = value
    return made
