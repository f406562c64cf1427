"""What is asked of each example: place, register, opener, length, distance, distractors (B.3).

Every control of every example is drawn from a generator of its own number, so that an example asks for the same whatever
came before it, whichever backend answers and however many examples are made.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..files import csv_rows
from .constructions import (
    CONSTRUCTIONS,
    LENGTH_BANDS,
    MOST_DISTRACTORS,
    SHIFTS,
    Construction,
    Range,
    Specification,
    windows_of,
)

SCENES, TIMES, WEATHERS, REGISTERS, OPENERS, ADJECTIVES = (
    "scenes.csv",
    "times.csv",
    "weathers.csv",
    "registers.csv",
    "openers.csv",
    "adjectives.csv",
)
WORDS_OF_A_DISTRACTOR = 4  # "beside a blue jar"
WORDS_AROUND = 3  # the least that a sentence holds besides its core phrases and what lies between them


@dataclass(frozen=True)
class Controls:
    """The lists that controls are drawn from. scenes: (place, kind); registers and openers: name to instruction;
    families: adjective to family, in the order of the list.
    """

    scenes: tuple[tuple[str, str], ...]
    times: tuple[str, ...]
    weathers: tuple[str, ...]
    registers: dict[str, str]
    openers: dict[str, str]
    families: dict[str, str]

    @property
    def contexts(self) -> int:
        """Scenes, each with or without a time of day and a weather: 81,000 with the lists of the package (B.3)."""
        return len(self.scenes) * (len(self.times) + 1) * (len(self.weathers) + 1)


def read_controls(folder: str | Path) -> Controls:
    """Reads the lists of a folder. Raises UserError that names the file, the row and the fault."""
    folder = Path(folder)
    return Controls(
        tuple((row["scene"], row["kind"]) for row in read_list(folder / SCENES, ("scene", "kind"))),
        tuple(row["time"] for row in read_list(folder / TIMES, ("time",))),
        tuple(row["weather"] for row in read_list(folder / WEATHERS, ("weather",))),
        {row["register"]: row["instruction"] for row in read_list(folder / REGISTERS, ("register", "instruction"))},
        {row["opener"]: row["instruction"] for row in read_list(folder / OPENERS, ("opener", "instruction"))},
        {row["adjective"]: row["family"] for row in read_list(folder / ADJECTIVES, ("adjective", "family"))},
    )


def read_list(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Rows of a CSV list; the first column never repeats. Raises UserError that names the file, the row and the fault."""
    rows, seen = [], {}
    for line, row in csv_rows(path, columns):
        if empty := [name for name in columns if not row[name]]:
            raise UserError(f"{path}: row {line}: {empty[0]} is empty")
        key = row[columns[0]].lower()
        if key in seen:
            raise UserError(f"{path}: row {line}: {columns[0]} {row[columns[0]]!r} stands already in row {seen[key]}")
        seen[key] = line
        rows.append(row)
    return rows


def core_words(construction: Construction) -> int:
    """Words of the core phrases with their articles."""
    return construction.objects * (construction.attributes + 2)


def least_length(construction: Construction, distance: Range, distractors: int = 0) -> int:
    """Words of the shortest sentence that leaves room for the start of a distance window and for the distractors."""
    stretches = {"adjacent": construction.objects - 1, "predicative": 2}.get(construction.attachment, 1)
    return core_words(construction) + stretches * distance[0] + WORDS_OF_A_DISTRACTOR * distractors + WORDS_AROUND


def bands_of(construction: Construction, distance: Range, shift: int = 0) -> list[Range]:
    """The length bands that are long enough for a distance window; a deferred construction has the three longer ones."""
    bands = [(low + shift, high + shift) for low, high in LENGTH_BANDS[1 if construction.deferred else 0 :]]
    return [band for band in bands if least_length(construction, distance) <= band[1]]


def sample_specification(controls: Controls, construction: str, seed: int, index: int) -> Specification:
    """The controls of one example. index: its number within the construction, from 0."""
    kind = CONSTRUCTIONS[construction]
    draw = random.Random(f"bindbench/triplets/{seed}/{construction}/{index}")
    choice = draw.choice
    scene, scene_kind = choice(controls.scenes)
    time_of_day = draw.randrange(len(controls.times) + 1)
    weather = draw.randrange(len(controls.weathers) + 1)
    register, opener = choice(tuple(controls.registers)), choice(tuple(controls.openers))
    distance = choice(windows_of(kind))
    length = choice(bands_of(kind, distance, choice(SHIFTS) if kind.objects == 3 else 0))
    most = MOST_DISTRACTORS if kind.distractors else 0
    while most and least_length(kind, distance, most) > length[1]:
        most -= 1
    return Specification(
        construction=construction,
        index=index,
        scene=scene,
        scene_kind=scene_kind,
        time_of_day=controls.times[time_of_day - 1] if time_of_day else "",
        weather=controls.weathers[weather - 1] if weather else "",
        register=register,
        opener=opener,
        length=length,
        distance=distance,
        distractors=draw.randint(0, most),
        reversed=kind.attachment == "anaphoric" and draw.random() < 0.5,
        kept=draw.randrange(3) if construction == "triple_bind_swap" else 0,
        swapped_slot=draw.randrange(2) if construction == "attr_bundle" else 0,
        query_order=tuple(draw.sample(range(kind.objects), kind.objects)),
    )
