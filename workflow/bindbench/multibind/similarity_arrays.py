"""The evaluation's tables as aligned arrays: axis 0 instances, axis 1 generators, axis 2 dimensions, then slots.

Instances are sorted by id, so that neither the order of files nor that of rows changes any result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UserError
from ..tables import Table, read_table, read_tables
from .confusion import Matrices, matrices
from .evaluation_tables import COMPARED_SUBJECTS, SIMILARITIES, SLOTS_MATCHED, VALIDITY
from .tables import SLOTS


@dataclass(frozen=True)
class Evaluation:
    """What was found and measured in the images of all generators; n_slots is 4, of which an instance may have fewer."""

    instances: list[str]
    generators: list[str]
    dimensions: list[str]
    specialists: list[str]  # of each dimension
    exists: np.ndarray  # (n_instances, n_slots) bool
    matched: np.ndarray  # (n_instances, n_generators, n_slots) bool
    iou: np.ndarray  # (n_instances, n_generators, n_slots) float64; NaN where not matched
    similarities: Matrices  # of shape (n_instances, n_generators, n_dimensions)

    def only(self, generators: Sequence[int]) -> "Evaluation":
        """The same with some of the generators, by their numbers."""
        kept = list(generators)
        return replace(
            self,
            generators=[self.generators[number] for number in kept],
            matched=self.matched[:, kept],
            iou=self.iou[:, kept],
            similarities=Matrices(*(array[:, kept] for array in self.similarities)),
        )


def read_evaluation(
    generators: Sequence[str],
    dimensions: Sequence[str],
    matched: Sequence[Path],
    validity: Sequence[Path],
    similarities: Sequence[Path],
) -> Evaluation:
    """Aligns the tables SLOTS_MATCHED, VALIDITY and SIMILARITIES; any file may hold any generators and instances.

    Dimensions beyond the given ones are left aside. A row that has a similarity which is no number becomes invalid.
    Raises UserError for tables that do not belong together: slots that are missing or twice, similarities that are missing
    or of rows that are not valid, a dimension that was measured by several specialists, generators that are not given.
    """
    slots = read_tables(SLOTS_MATCHED, list(matched))
    instances = sorted(set(slots["instance"].to_pylist()))
    if not instances:
        raise UserError(f"{matched[0]}: no instance was evaluated; run snakemake to make it again")
    names = {"instance": instances, "generator": generators, "dimension": dimensions}
    shape = (len(instances), len(generators), len(SLOTS))
    at = _places(SLOTS_MATCHED, matched, slots, names, ("instance", "generator", "slot"))
    present = _filled(shape, at, True, False)
    exists = present.any(axis=1)
    _agree(matched, "slot", exists[:, None], present, names, ("instance", "generator"))
    is_matched = _filled(shape, at, _values(slots, "matched"), False)
    # float64, since sums and means of them are reported.
    iou = _filled(shape, at, slots["iou"].cast(pa.float64()).to_numpy(), np.nan)

    valid, specialists, valid_true, valid_generated = _read_validity(validity, names, exists, is_matched)
    rows = is_matched[:, :, None] & valid_true & valid_generated
    data = read_tables(SIMILARITIES, list(similarities))
    data = data.filter(pc.is_in(data["dimension"], pa.array(dimensions)))
    axes = ("instance", "generator", "dimension", "row", "column")
    at = _places(SIMILARITIES, similarities, data, names, axes)
    shape = (*rows.shape, len(SLOTS))
    expected = rows[..., :, None] & valid_true[..., None, :]
    _agree(similarities, "similarity", expected, _filled(shape, at, True, False), names, axes[:3], valid)
    s_gen, s_gt, delta = (_filled(shape, at, data[name].to_numpy(), np.nan) for name in ("s_gen", "s_gt", "delta"))
    # Written in double precision as one subtraction, and so the same to the last bit.
    if not np.array_equal(s_gen - s_gt, delta, equal_nan=True):
        raise UserError(f"{_named(similarities)}: delta is not s_gen minus s_gt; delete it and run again")
    return Evaluation(
        instances,
        list(generators),
        list(dimensions),
        specialists,
        exists,
        is_matched,
        iou,
        matrices(s_gen, s_gt, rows, valid_true),
    )


def _read_validity(
    paths: Sequence[Path], names: dict, exists: np.ndarray, matched: np.ndarray
) -> tuple[str, list[str], np.ndarray, np.ndarray]:
    """What the files are called, the specialist of each dimension, and the columns valid_true and valid_generated.

    Both of shape (n_instances, n_generators, n_dimensions, n_slots).
    """
    data = read_tables(VALIDITY, list(paths))
    data = data.filter(pc.is_in(data["dimension"], pa.array(names["dimension"])))
    axes = ("instance", "generator", "dimension", "slot")
    at = _places(VALIDITY, paths, data, names, axes)
    shape = (*matched.shape[:2], len(names["dimension"]), len(SLOTS))
    _agree(paths, "validity", exists[:, None, None], _filled(shape, at, True, False), names, axes[:3])
    valid_true, valid_generated, matched_here = (
        _filled(shape, at, _values(data, name), False) for name in ("valid_true", "valid_generated", "matched")
    )
    here = _named(paths)
    if (matched_here != matched[:, :, None]).any():
        raise UserError(f"{here}: other slots are matched than in the table of matched slots; delete it and run again")
    if (valid_generated & ~matched_here).any():
        raise UserError(f"{here}: a slot that is not matched has a valid generated crop; delete it and run again")
    if (valid_true != valid_true[:, :1]).any():
        instance, _, dimension, slot = np.argwhere(valid_true != valid_true[:, :1])[0]
        raise UserError(
            f"{here}: the real crop of {names['instance'][instance]} slot {SLOTS[slot]} is valid in"
            f" {names['dimension'][dimension]} for one generator and not for another; delete the file and run again"
        )
    specialists = []
    for dimension in names["dimension"]:
        found = sorted(set(data.filter(pc.equal(data["dimension"], dimension))["specialist"].to_pylist()))
        if len(found) != 1:
            raise UserError(
                f"{here}: {dimension} was measured by {' and '.join(found)}; measure all generators by one specialist"
            )
        specialists += found
    return here, specialists, valid_true, valid_generated


def read_compared(path: Path, evaluation: Evaluation) -> np.ndarray:
    """(n_instances, n_slots) bool: the subjects on which generators are compared. Raises UserError for those of other instances."""
    data = read_table(COMPARED_SUBJECTS, path)
    names = {"instance": evaluation.instances}
    at = _places(COMPARED_SUBJECTS, [path], data, names, ("instance", "slot"))
    present = _filled(evaluation.exists.shape, at, True, False)
    _agree([path], "subject", evaluation.exists, present, names, ("instance",))
    return _filled(evaluation.exists.shape, at, _values(data, "compared"), False)


def read_deciders(path: Path) -> list[str]:
    """The generators that a subject must have to be compared, from the frozen COMPARED_SUBJECTS."""
    return read_table(COMPARED_SUBJECTS, path)["decided_by"][0].as_py()


def places_of(data: pa.Table, evaluation: Evaluation, axes: Sequence[str]) -> tuple[np.ndarray, ...]:
    """For each row its index along every axis, -1 for a name that the evaluation does not have."""
    names = {
        "instance": evaluation.instances,
        "generator": evaluation.generators,
        "dimension": evaluation.dimensions,
    }
    return tuple(_index(data[axis], names.get(axis, SLOTS)) for axis in axes)


def _places(
    table: Table, paths: Sequence[Path], data: pa.Table, names: dict[str, Sequence[str]], axes: Sequence[str]
) -> tuple[np.ndarray, ...]:
    """For each row its index along every axis. Raises UserError for an unknown name and for a row that is there twice."""
    found = []
    for axis in axes:
        index = _index(data[axis], names.get(axis, SLOTS))
        if len(unknown := np.flatnonzero(index < 0)):
            name = data[axis][int(unknown[0])].as_py()
            raise UserError(f"{_named(paths)}: {axis} {name!r} is not one of this evaluation; delete it and run again")
        found.append(index)
    if len(data) and len(np.unique(np.ravel_multi_index(found, [index.max() + 1 for index in found]))) != len(data):
        raise UserError(f"{_named(paths)}: {' and '.join(table.key)} repeat over the files; give each file once")
    return tuple(found)


def _index(column: pa.ChunkedArray, names: Sequence[str]) -> np.ndarray:
    index = pc.fill_null(pc.index_in(column, pa.array(list(names), pa.string())), -1)
    return index.to_numpy().astype(np.int64)


def _values(data: pa.Table, name: str) -> np.ndarray:
    return data[name].to_numpy().astype(bool)


def _filled(shape: tuple[int, ...], at: tuple[np.ndarray, ...], values, rest) -> np.ndarray:
    array = np.full(shape, rest)
    array[at] = values
    return array


def _agree(
    paths: Sequence[Path],
    what: str,
    expected: np.ndarray,
    present: np.ndarray,
    names: dict[str, Sequence[str]],
    axes: Sequence[str],
    other: str = "the table of matched slots",
) -> None:
    """Raises UserError that names the first place where something is missing or should not be."""
    wrong = np.argwhere(present != expected)
    if len(wrong):
        place = tuple(wrong[0])
        where = ", ".join(names[axis][index] for axis, index in zip(axes, place, strict=False))
        slots = " and ".join(SLOTS[index] for index in place[len(axes) :])
        fault = "is there, which does not fit" if present[place] else "is missing, which does not fit"
        raise UserError(
            f"{_named(paths)}: the {what} of {where}, slot {slots} {fault} {other}; delete both and run again"
        )


def _named(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
