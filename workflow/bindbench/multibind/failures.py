"""Which generated images show a failure of binding, and which of them most (MultiBind, section 3.4).

Of all subjects that a generator has, as in the tables of outcomes. An image may show several kinds; it is listed under each.
"""

from collections.abc import Sequence
from typing import NamedTuple

PATTERNS = ("swap", "dominance", "blending")
# In the order in which they are shown.
KINDS = (*PATTERNS, "confused", "drift", "missing", "none")


class Case(NamedTuple):
    """One generated image under one kind."""

    generator: str
    instance: str
    dimensions: tuple[str, ...]  # in which it shows
    severity: tuple[float, ...]  # compared part by part: larger is worse

    @property
    def image(self) -> tuple[str, str]:
        return self.generator, self.instance


def find_cases(
    outcomes: Sequence[dict], patterns: Sequence[dict], slots: Sequence[dict], validity: Sequence[dict]
) -> dict[str, list[Case]]:
    """The images of each kind in KINDS, of all generators, the worst first; equal ones by generator and instance.

    outcomes, patterns, slots, validity: rows of SUBJECT_OUTCOMES, IMAGE_PATTERNS, SLOTS_MATCHED and VALIDITY.
    Worst is, of swap, dominance and blending: in most dimensions, then the largest delta to another person; confused, someone is
    confused and the image has none of the three in that dimension: most subjects, then the largest delta; drift: most drifting
    subjects over all dimensions, then the lowest delta to the own person; missing: most missed subjects, then most subjects of
    whom a specialist sees nothing. None: everyone is found, measured and a success; those with most subjects come first.
    """
    people = _by_image(outcomes)
    lost = _by_image([row for row in slots if not row["matched"]])
    unseen = _by_image([row for row in validity if row["matched"] and row["valid_true"] and not row["valid_generated"]])
    shown = _by_image(patterns)
    found: dict[str, list[Case]] = {kind: [] for kind in KINDS}
    for image in sorted(_by_image(slots)):
        rows = people.get(image, [])
        of = {row["dimension"]: row["patterns"] or [] for row in shown.get(image, [])}
        kinds: dict[str, tuple[Sequence[str], tuple[float, ...]]] = {}
        for pattern in PATTERNS:
            dimensions = [name for name, has in of.items() if pattern in has]
            kinds[pattern] = dimensions, (len(dimensions), _largest(rows, dimensions))
        plain = [name for name, has in of.items() if not set(PATTERNS) & set(has)]
        confused = [row for row in rows if row["confused_with"] and row["dimension"] in plain]
        kinds["confused"] = _named(confused, of), (len(confused), _largest(confused, plain))
        drifting = [row for row in rows if row["outcome"] == "drift"]
        lowest = min((row["delta_self"] for row in drifting), default=0.0)
        kinds["drift"] = _named(drifting, of), (len(drifting), -lowest)
        gone, blind = lost.get(image, []), unseen.get(image, [])
        kinds["missing"] = _named(blind, of) or ("all",) * bool(gone), (len(gone), len(blind))
        judged = [row for row in rows if row["outcome"] is not None]
        if judged and not any(dimensions for dimensions, _ in kinds.values()):
            kinds["none"] = _named(judged, of), (len(judged),)
        for kind, (dimensions, severity) in kinds.items():
            if dimensions:
                found[kind].append(Case(*image, tuple(dimensions), severity))
    for cases in found.values():
        cases.sort(key=lambda case: (*(-part for part in case.severity), *case.image))
    return found


def _by_image(rows: Sequence[dict]) -> dict[tuple[str, str], list[dict]]:
    groups: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        groups.setdefault((row["generator"], row["instance"]), []).append(row)
    return groups


def _named(rows: Sequence[dict], order: Sequence[str]) -> tuple[str, ...]:
    """The dimensions of the rows."""
    present = {row["dimension"] for row in rows}
    return tuple(name for name in order if name in present)


def _largest(rows: Sequence[dict], dimensions: Sequence[str]) -> float:
    """Largest delta to another person."""
    return max(
        (row["delta_other"] for row in rows if row["dimension"] in dimensions and row["confused_with"]), default=0.0
    )
