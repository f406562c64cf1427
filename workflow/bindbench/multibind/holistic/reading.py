"""Reads what was measured of whole images: one `Measured` for each measure, and one without figures for what nothing measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ...errors import UserError
from ...tables import read_tables
from ..holistic_tables import HOLISTIC

# By measure: the heading of its column, and the config key that has it measured. More than one model has similarities.
KEYS = {
    "fid": ("FID", "multibind.holistic.fid.weights"),
    "clip_i": ("CLIP-I", "multibind.holistic.clip_i.embedder"),
    "dino": ("DINO", "multibind.holistic.dino.checkpoint"),
    "aesthetic": ("aesthetic score", "multibind.holistic.aesthetic.head"),
}


@dataclass(frozen=True)
class Measured:
    """One measure of all generators.

    model: what measured it; fingerprint: of everything that it depends on; both empty where nothing did, for a reason.
    values: (n_instances, n_generators) float64, NaN where there is none; of fid 0 where there are features. features: of fid, of
    the generated images and of their photographs, both (n_instances, n_generators, n_features) float32, NaN where there are none.
    """

    measure: str
    values: np.ndarray
    model: str = ""
    fingerprint: str = ""
    reason: str = ""
    features: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def name(self) -> str:
        """Of its columns: a similarity is called after its embedder, never anything else."""
        return f"similarity_{self.model}" if self.measure == "similarity" else self.measure

    @property
    def title(self) -> str:
        return KEYS[self.measure][0] if self.measure in KEYS else f"similarity by {self.model}"


def read_measures(
    paths: Sequence[Path], generators: Sequence[str], instances: Sequence[str]
) -> tuple[list[Measured], np.ndarray]:
    """All measures in the order of the tables, and (n_generators,) how many instances have no image, 0 where nothing looked.

    paths: tables HOLISTIC, in any number of files. Raises UserError when one is missing, broken or of other instances, and when
    two generators were measured by two models.
    """
    shape = len(instances), len(generators)
    found, without = _read(paths, generators, instances) if paths else ([], np.zeros(len(generators), int))
    for measure, (_, key) in KEYS.items():
        if measure not in {other.measure for other in found}:
            found.append(Measured(measure, np.full(shape, np.nan), reason=f"no checkpoint configured ({key})"))
    order = [*KEYS, "similarity"]
    return sorted(found, key=lambda measure: order.index(measure.measure)), without


def models_of(paths: Sequence[Path]) -> list[dict[str, str]]:
    """For the manifest: what measured, and the fingerprint of everything that its figures depend on beside the images."""
    names = ["measure", "model", "fingerprint"]
    data = read_tables(HOLISTIC, list(paths)).select(names) if paths else HOLISTIC.schema.empty_table().select(names)
    return sorted(data.group_by(names).aggregate([]).to_pylist(), key=lambda row: [row[name] for name in names])


def _read(
    paths: Sequence[Path], generators: Sequence[str], instances: Sequence[str]
) -> tuple[list[Measured], np.ndarray]:
    """Those that were measured, and as `read_measures`."""
    data = read_tables(HOLISTIC, list(paths))
    rows = data.drop_columns(["generated_features", "true_features"]).to_pylist()
    here = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    grouped: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        grouped.setdefault((row["measure"], row["model"]), []).append(place)
    found = []
    for (measure, model), places in grouped.items():
        at = {(rows[place]["instance"], rows[place]["generator"]): place for place in places}
        wanted = {(instance, generator) for instance in instances for generator in generators}
        if len(at) != len(places) or set(at) != wanted:
            instance, generator = min(wanted ^ set(at), default=min(at))
            raise UserError(
                f"{here}: {measure} by {model} of {generator}, {instance} is missing, there twice or not of this evaluation; "
                "delete them and run again"
            )
        marks = {rows[place]["fingerprint"] for place in places}
        if len(marks) > 1 or (measure in KEYS and measure in {other.measure for other in found}):
            raise UserError(f"{here}: {measure} was measured by two models; delete them and run again")
        order = np.array([[at[instance, generator] for generator in generators] for instance in instances])
        values = np.array([[_value(rows[place]) for place in each] for each in order])
        features = None
        if measure == "fid":
            both = [_features(data[name], order, here) for name in ("generated_features", "true_features")]
            values, features = np.where(np.isnan(both[0][..., 0]), np.nan, 0.0), tuple(both)
        found.append(Measured(measure, values, model, marks.pop(), features=features))
    lost = {(row["generator"], row["instance"]) for row in rows if row["reason"] == "no_picture"}
    return found, np.array([sum((name, instance) in lost for instance in instances) for name in generators])


def _value(row: dict) -> float:
    return np.nan if row["value"] is None else row["value"]


def _features(column: pa.ChunkedArray, order: np.ndarray, here: str) -> np.ndarray:
    """(*order.shape, n_features) float32 of the rows in `order`; NaN for those without. Not by way of lists: there are millions."""
    column = column.combine_chunks()
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    values = column.flatten().to_numpy()
    if len(rows) and len(values) % len(rows):
        raise UserError(f"{here}: the features of FID differ in length; delete them and run again")
    length = len(values) // len(rows) if len(rows) else 1
    found = np.full((len(column), length), np.nan, np.float32)
    found[rows] = values.reshape(len(rows), length)
    return found[order]
