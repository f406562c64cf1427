"""MultiBind's evaluation without an image: people are vectors, and a generator with a fault shows the wrong ones.

Two people have the cosine ALIKE. What a fault must come out as follows from who is shown where, not from the package.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from bindbench.files import sha256
from bindbench.multibind.evaluation_tables import SIMILARITIES, SLOTS_MATCHED, VALIDITY
from bindbench.multibind.generated_tables import GENERATED
from bindbench.multibind.tables import SLOTS
from bindbench.tables import write_table

ALIKE = 0.2
SELF, CONFUSION = -0.3, 0.3  # thresholds that tell the faults below apart


def people(n: int, alike: float = ALIKE) -> np.ndarray:
    """(n, 6) unit vectors of which any two have the cosine `alike`; the sixth direction is nobody's."""
    vectors = np.zeros((n, 6))
    vectors[:, 0] = np.sqrt(alike)
    vectors[np.arange(n), np.arange(n) + 1] = np.sqrt(1 - alike)
    return vectors


def nobody() -> np.ndarray:
    return np.eye(6)[5]


def shown(true: np.ndarray, who: list) -> np.ndarray:
    """The generated people. who: of each slot a number of a real person, a tuple of several blended ones, or None: a blur."""
    generated = []
    for entry in who:
        if isinstance(entry, tuple):
            mixed = true[list(entry)].sum(axis=0)
            generated.append(mixed / np.linalg.norm(mixed))
        else:
            generated.append(nobody() if entry is None else true[entry])
    return np.array(generated)


def padded(matrix: np.ndarray) -> np.ndarray:
    """(n, n) to (4, 4), NaN beyond."""
    whole = np.full((4, 4), np.nan)
    whole[: len(matrix), : len(matrix)] = matrix
    return whole


@dataclass
class MadeEvaluation:
    """Rows of SLOTS_MATCHED, VALIDITY and SIMILARITIES."""

    slots: list[dict] = field(default_factory=list)
    validity: list[dict] = field(default_factory=list)
    similarities: list[dict] = field(default_factory=list)

    def add(self, generator: str, instance: str, n: int, matched=None, iou: float = 0.75) -> None:
        """An instance with n slots; matched: numbers of the slots that are found, by default all."""
        for number, slot in enumerate(SLOTS[:n]):
            found = matched is None or number in matched
            row = {"generator": generator, "instance": instance, "slot": slot, "matched": found}
            self.slots.append(row | {"iou": iou if found else None, "reason": None if found else "below_gate"})

    def measure(
        self, generator: str, instance: str, dimension: str, s_gen, s_gt, valid_true=None, valid_generated=None
    ) -> None:
        """Both (n, n); valid_true, valid_generated: numbers of the slots, by default all. `add` comes first."""
        slots = [row for row in self.slots if row["generator"] == generator and row["instance"] == instance]
        true = [number for number in range(len(slots)) if valid_true is None or number in valid_true]
        for number, slot in enumerate(slots):
            generated = slot["matched"] and (valid_generated is None or number in valid_generated)
            key = {"generator": generator, "instance": instance, "dimension": dimension}
            row = {**key, "slot": slot["slot"], "matched": slot["matched"], "specialist": f"plain-{dimension}"}
            reason = None if generated and number in true else "nothing_seen"
            self.validity.append(row | {"valid_true": number in true, "valid_generated": generated, "reason": reason})
            if not generated or number not in true:
                continue
            for column in true:
                values = float(s_gen[number][column]), float(s_gt[number][column])
                row = {**key, "row": slot["slot"], "column": SLOTS[column], "s_gen": values[0], "s_gt": values[1]}
                self.similarities.append(row | {"delta": values[0] - values[1]})

    def fault(self, generator: str, instance: str, who: list, dimensions=("face",), matched=None, **valid) -> None:
        """An instance that shows the given people, measured in every dimension."""
        true = people(len(who))
        generated = shown(true, who)
        self.add(generator, instance, len(who), matched)
        for dimension in dimensions:
            self.measure(generator, instance, dimension, generated @ true.T, true @ true.T, **valid)

    @property
    def generators(self) -> list[str]:
        return list(dict.fromkeys(row["generator"] for row in self.slots))

    def write(self, folder: Path, shuffle: int | None = None) -> dict[str, list[Path]]:
        """The paths by the names of the arguments of tabulate_multibind; shuffled: rows in another order, over three files."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = {}
        tables = {"matched": (SLOTS_MATCHED, self.slots), "validity": (VALIDITY, self.validity)}
        for name, (table, rows) in (tables | {"similarities": (SIMILARITIES, self.similarities)}).items():
            parts = [rows]
            if shuffle is not None:
                rows = rows.copy()
                random.Random(shuffle).shuffle(rows)
                parts = [rows[number::3] for number in range(3)]
            paths[name] = [folder / f"{name}{number}.parquet" for number in range(len(parts))]
            for path, part in zip(paths[name], parts, strict=True):
                write_table(table, part, path)
        return paths

    def write_generated(self, folder: Path, again: tuple[str, ...] = ()) -> list[Path]:
        """The table of the pictures; again: generators whose pictures are others than those of `picture_of`."""
        rows = [
            {"generator": generator, "instance": instance, "file": "-", "width": 1, "height": 1, "model": "made"}
            | {"sha256": sha256("again") if generator in again else picture_of(generator, instance)}
            | {"settings": "{}", "changes": [], "problem": None}
            for generator, instance in dict.fromkeys((row["generator"], row["instance"]) for row in self.slots)
        ]
        write_table(GENERATED, rows, folder / "generated.parquet")
        return [folder / "generated.parquet"]


def picture_of(generator: str, instance: str) -> str:
    """SHA-256 of a picture that there is not."""
    return sha256(f"{generator} {instance}")


def random_evaluation(
    seed: int, n_instances: int, generators=("one", "two"), dimensions=("face", "pose"), gaps: float = 0.15
) -> MadeEvaluation:
    """Everything at random: sizes, who is found, what is valid, similarities on a coarse grid so that many tie at a threshold.

    gaps: chance of each thing to be missing, an undefined similarity among them.
    """
    draw = np.random.default_rng(seed)
    made = MadeEvaluation()
    for number in range(n_instances):
        instance, n = f"instance-{number:04d}", int(draw.integers(2, 5))
        truth = {}
        for dimension in dimensions:
            s_gt = np.round(draw.uniform(0, 1, (n, n)) * 20) / 20
            s_gt = np.minimum(s_gt, s_gt.T)
            np.fill_diagonal(s_gt, 1.0)
            truth[dimension] = s_gt, [slot for slot in range(n) if draw.random() >= gaps]
        for generator in generators:
            matched = [slot for slot in range(n) if draw.random() >= gaps]
            made.add(generator, instance, n, matched, iou=float(np.float32(draw.uniform(0.1, 1))))
            for dimension, (s_gt, valid_true) in truth.items():
                s_gen = np.round(draw.uniform(-0.2, 1, (n, n)) * 20) / 20
                s_gen[draw.random((n, n)) < gaps / 10] = np.nan
                valid_generated = [slot for slot in range(n) if draw.random() >= gaps]
                made.measure(generator, instance, dimension, s_gen, s_gt, valid_true, valid_generated)
    return made
