"""The parts of an instance that are judged one by one, by checks and by people: quality control in stages (section 3.2).

A part is the instance as a whole (its photograph and the choice of it), the crop and mask of a slot, the reference of a slot,
the background, the annotation, or the prompt. Verdicts belong to a part and the SHA-256 of what it is made of: a part that was
made again is open again, and the others keep their verdicts. The makers of the parts ask `rejected_parts` what not to give
again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..files import sha256
from ..review.journal import Journal, read_journal
from ..tables import Table, read_table
from .tables import ANNOTATIONS, BACKGROUNDS, CROPS, PROMPTS, REFERENCES, SELECTED

PARTS = ("instance", "crop", "reference", "background", "annotation", "prompt")
OF_SLOTS = ("crop", "reference")
KEY = "part"  # of the journal


@dataclass(frozen=True)
class Part:
    """One part as it is now. slot: empty for parts of the whole instance; sha256: None where it was not made."""

    instance: str
    part: str
    slot: str
    sha256: str | None
    model: str = ""
    problems: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return part_id(self.instance, self.part, self.slot)


@dataclass(frozen=True)
class Joined:
    """Rows of all tables about one instance; what is missing is None or has no entry."""

    selected: dict
    crops: dict[str, dict] = field(default_factory=dict)  # by slot
    references: dict[str, dict] = field(default_factory=dict)  # by slot
    background: dict | None = None
    annotation: dict | None = None
    prompt: dict | None = None

    @property
    def instance(self) -> str:
        return self.selected["instance"]


def picture_folder(table: Path) -> Path:
    """The folder that the pictures of a table lie in: beside it, of the same name."""
    return Path(table).with_suffix("")


def read_joined(
    selected: Path,
    crops: Path,
    references: Path | None,
    backgrounds: Path | None,
    annotations: Path | None,
    prompts: Path | None,
) -> list[Joined]:
    """All instances with what there is of each, in the order of SELECTED; None: the table was not made yet.

    Raises UserError for a table that is missing or broken.
    """
    crop_rows, reference_rows = _by_slot(CROPS, crops), _by_slot(REFERENCES, references)
    single = [
        {row["instance"]: row for row in _rows(table, path)}
        for table, path in ((BACKGROUNDS, backgrounds), (ANNOTATIONS, annotations), (PROMPTS, prompts))
    ]
    return [
        Joined(
            row,
            crop_rows.get(row["instance"], {}),
            reference_rows.get(row["instance"], {}),
            *(rows.get(row["instance"]) for rows in single),
        )
        for row in _rows(SELECTED, selected)
    ]


def _rows(table: Table, path: Path | None) -> list[dict]:
    return read_table(table, path).to_pylist() if path is not None else []


def _by_slot(table: Table, path: Path | None) -> dict[str, dict[str, dict]]:
    found: dict[str, dict[str, dict]] = {}
    for row in _rows(table, path):
        found.setdefault(row["instance"], {})[row["slot"]] = row
    return found


def parts_of(joined: Joined, slots: Iterable[str]) -> list[Part]:
    """All parts that an instance should have, in the order in which they are made. slots: its own, such as ("A", "B")."""
    instance, slots = joined.instance, tuple(slots)
    parts = [Part(instance, "instance", "", joined.selected["sha256"])]
    for slot in slots:
        row = joined.crops.get(slot)
        parts.append(Part(instance, "crop", slot, crop_digest(row) if row else None))
    for slot in slots:
        row = joined.references.get(slot)
        parts.append(_part(instance, "reference", slot, row, row["sha256"] if row and row["reference"] else None))
    row = joined.background
    parts.append(_part(instance, "background", "", row, row["sha256"] if row and row["background"] else None))
    for name, row in (("annotation", joined.annotation), ("prompt", joined.prompt)):
        parts.append(_part(instance, name, "", row, sha256(row[name]) if row and row[name] else None))
    return parts


def _part(instance: str, part: str, slot: str, row: dict | None, digest: str | None) -> Part:
    return Part(instance, part, slot, digest, (row or {}).get("model") or "", tuple((row or {}).get("problems") or ()))


def crop_digest(row: dict) -> str:
    """What a verdict on the crop and mask of a slot belongs to: both files. row: of CROPS."""
    return sha256(f"{row['crop_sha256']} {row['mask_sha256']}")


def part_id(instance: str, part: str, slot: str = "") -> str:
    """Name of a part in the journal; no id of an instance holds the stroke."""
    return "/".join(filter(None, (instance, part, slot)))


def read_part_id(name: str) -> tuple[str, str, str] | None:
    """Instance, part and slot of a name of the journal; None for a name that is none."""
    pieces = name.split("/")
    if len(pieces) not in (2, 3) or pieces[1] not in PARTS or (len(pieces) == 3) != (pieces[1] in OF_SLOTS):
        return None
    return pieces[0], pieces[1], pieces[2] if len(pieces) == 3 else ""


def rejected_parts(journal: Path | Journal | None) -> dict[tuple[str, str, str], set[str]]:
    """SHA-256 of everything that stands rejected, by (instance, part, slot); slot is empty for parts of the whole instance.

    journal: None or a missing file where nobody has judged anything. Raises UserError for one that cannot be read.
    """
    if journal is None:
        return {}
    known = journal if isinstance(journal, Journal) else read_journal(journal, KEY)
    found = {}
    for name in known.judged():
        about, digests = read_part_id(name), known.rejected_images(name)
        if about and digests:
            found[about] = digests
    return found


def rejected_of(rejected: Mapping[tuple[str, str, str], set[str]], part: str) -> dict:
    """Of `rejected_parts`, those of one kind: by (instance, slot) for parts of slots, else by instance, as its maker asks."""
    return {
        (instance, slot) if part in OF_SLOTS else instance: digests
        for (instance, kind, slot), digests in rejected.items()
        if kind == part
    }


def part_verdicts(parts: Iterable[Part], journal: Path | Journal | None) -> Iterator[dict]:
    """Rows of PART_VERDICTS: what counts for each part that was made, as it is now. Raises UserError as `rejected_parts`."""
    known = read_journal(journal, KEY) if isinstance(journal, (str, Path)) else journal
    for part in parts:
        if part.sha256 is None:
            continue
        standing: Mapping = (known.standing(part.id, part.sha256) if known else None) or {}
        yield {
            "instance": part.instance,
            "part": part.part,
            "slot": part.slot,
            "sha256": part.sha256,
            "verdict": standing.get("verdict", "open"),
            "reason": standing.get("reason"),
            "by": standing.get("by"),
            "attempt": len(known.rejected_images(part.id)) if known else 0,
        }
