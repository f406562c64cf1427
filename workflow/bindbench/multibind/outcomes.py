"""What became of each generated person and of each image (MultiBind, section 3.4), one by one: for figures and galleries.

Of all subjects that a generator has, not only of those on which generators are compared.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..config.multibind_scoring import Scoring
from ..tables import write_table
from .confusion import PATTERNS, has_patterns, js_shift, links, mean_deltas, outcomes, patterns, undiagnosable
from .evaluation_tables import IMAGE_PATTERNS, SUBJECT_OUTCOMES
from .rates import read_cutoffs
from .similarity_arrays import read_compared, read_evaluation
from .tables import SLOTS

CELLS = ("success", "drift", "replaced", "mixed")


def write_outcomes(
    generators: Sequence[str],
    matched: Sequence[Path],
    validity: Sequence[Path],
    similarities: Sequence[Path],
    compared: Path,
    thresholds: Path,
    settings: Scoring,
    subjects_output: Path,
    images_output: Path,
) -> None:
    """Writes SUBJECT_OUTCOMES and IMAGE_PATTERNS; the inputs are those of tabulate.tabulate_multibind.

    Raises UserError when a table is missing, broken or of other instances.
    """
    evaluation = read_evaluation(generators, settings.dimensions, matched, validity, similarities)
    shared = read_compared(compared, evaluation)
    cutoffs, _ = read_cutoffs(thresholds, settings.dimensions)
    data, usable = evaluation.similarities, cutoffs.usable
    found = links(data, cutoffs.consistency, cutoffs.confusion)
    cells, holds, defined = outcomes(found), patterns(found), has_patterns(data) & usable
    deltas, shift = mean_deltas(data), js_shift(data, settings.js_temperature)
    alike = undiagnosable(data, settings.undiagnosable_similarity)
    nearest = np.where(data.others, data.delta, -np.inf).argmax(axis=-1)

    def key(at: tuple[int, ...]) -> dict:
        return {
            "instance": evaluation.instances[at[0]],
            "generator": evaluation.generators[at[1]],
            "dimension": evaluation.dimensions[at[2]],
        }

    subjects = []
    for at in map(tuple, np.argwhere(data.rows).tolist()):
        other = deltas["off_diagonal_max"][at]
        alone = bool(np.isnan(other))
        subjects.append(
            key(at)
            | {
                "slot": SLOTS[at[3]],
                "compared": bool(shared[at[0], at[3]]),
                "outcome": next(name for name in CELLS if cells[name][at]) if usable[at[2]] else None,
                "confused_with": [SLOTS[column] for column in np.flatnonzero(found.confused[at])],
                "delta_self": deltas["diagonal"][at],
                "delta_other": None if alone else other,
                "nearest_other": None if alone else SLOTS[nearest[at]],
                "js": None if alone else shift[at],
                "undiagnosable": bool(alike[at]),
            }
        )
    images = [
        key(at)
        | {
            "rows": int(data.rows[at].sum()),
            "columns": int(data.columns[at].sum()),
            "patterns": [name for name in PATTERNS if holds[name][at]] if defined[at] else None,
        }
        for at in np.ndindex(defined.shape)
    ]
    write_table(SUBJECT_OUTCOMES, subjects, subjects_output)
    write_table(IMAGE_PATTERNS, images, images_output)
