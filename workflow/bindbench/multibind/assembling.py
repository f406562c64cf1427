"""Assembles the data set: joins what was made for each instance, leaves faulty ones out, and gathers their files (section 3.2).

    python -m bindbench assemble-instances --help

An instance stays when each of its parts was made, no person rejected one (parts.py), and no automatic problem that the config
names was found. Everything else is left out with each of its reasons. The files that stay lie in images/INSTANCE/, hard links
to those of the earlier stages where the disk allows it, each checked by its SHA-256. A run that is killed leaves no
instances.parquet, which is written last.
"""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..config.multibind_quality import Quality
from ..errors import UserError
from ..files import progress, read_verified, room_for, sha256_of_file, write_bytes, write_json
from ..manifest import made_with
from ..review.journal import Journal, read_journal
from ..tables import read_table, write_table
from .parts import KEY, PARTS, Joined, Part, part_verdicts, parts_of, picture_folder, read_joined
from .tables import INSTANCES, LEFT_OUT, PART_VERDICTS, REJECTED, SLOTS, SUBJECTS

SLOT = re.compile(f"_[{SLOTS[0]}-{SLOTS[-1]}]$")  # at the end of a problem of one subject: no_pose_A
UNFINISHED, OLD = ".images.unfinished", ".images.old"  # folders of a run that goes on, or was killed


def assemble(
    selected: Path,
    crops: Path,
    references: Path,
    backgrounds: Path,
    annotations: Path,
    prompts: Path,
    rejected: Path,
    journal: Path | None,
    settings: Quality,
    folder: Path,
) -> None:
    """Writes INSTANCES, SUBJECTS, LEFT_OUT and PART_VERDICTS, counts.json and images/ into `folder`.

    The pictures of selected and crops lie in the folder of the name of `selected`, those of the others in folders of their
    tables' names. rejected: photographs that were not selected, for the counts. journal: None, or a missing file, where nobody
    has judged anything. Raises UserError for a table, journal or file that is missing or broken, and where nothing is left.
    """
    folder = Path(folder)
    every = read_joined(selected, crops, references, backgrounds, annotations, prompts)
    known = read_journal(journal, KEY) if journal is not None else None
    parts = {joined.instance: parts_of(joined, SLOTS[: joined.selected["n_subjects"]]) for joined in every}
    verdicts = list(part_verdicts((part for each in parts.values() for part in each), known))
    left_out = {name: _losses(each, known, settings) for name, each in parts.items()}
    left_out = {name: losses for name, losses in left_out.items() if losses}
    kept = [joined for joined in every if joined.instance not in left_out]
    counts = stage_counts(every, left_out, read_table(REJECTED, rejected).to_pylist())
    for name in ("instances.parquet", "subjects.parquet"):
        (folder / name).unlink(missing_ok=True)  # what is not whole must not look whole
    if not kept:
        told = ", ".join(f"{stage} {number}" for stage, number in counts["lost"].items() if number)
        raise UserError(
            f"{selected}: none of its {len(every)} instances is left (lost at: {told or 'none was selected'}); look at them "
            "with python -m bindbench review-instances, or loosen multibind.quality"
        )
    tables = {"selected": selected, "reference": references, "background": backgrounds}
    files = {joined.instance: _files(joined, tables) for joined in kept}
    gather_images(files, folder)
    accepted = _accepted(verdicts)
    write_table(SUBJECTS, [row for joined in kept for row in _subject_rows(joined)], folder / "subjects.parquet")
    write_table(LEFT_OUT, [row for losses in left_out.values() for row in losses], folder / "left_out.parquet")
    write_table(PART_VERDICTS, verdicts, folder / "verdicts.parquet")
    write_json(folder / "counts.json", counts)
    rows = [_instance_row(joined, joined.instance in accepted) for joined in kept]
    write_table(INSTANCES, rows, folder / "instances.parquet")


# What is left out -----------------------------------------------------------------------------------------------------


def _losses(parts: Sequence[Part], journal: Journal | None, settings: Quality) -> list[dict]:
    """Rows of LEFT_OUT of one instance, all of its reasons; empty: it stays."""
    serious = {
        "reference": settings.reference_problems,
        "background": settings.background_problems,
        "annotation": settings.annotation_problems,
        "prompt": settings.prompt_problems,
    }
    rows = []
    for part in parts:
        found: list[tuple[str, str | None]] = []
        if part.sha256 is None:
            found.append(("missing", ", ".join(part.problems) or None))
        else:
            named = serious.get(part.part, ())
            found += [(name, None) for name in dict.fromkeys(part.problems) if SLOT.sub("", name) in named]
            line = (journal.standing(part.id, part.sha256) if journal else None) or {"verdict": "open"}
            if line["verdict"] == "rejected":
                found.append(("rejected", line.get("reason")))
            elif line["verdict"] == "open" and settings.require_verdict:
                found.append(("open", None))
        rows += [
            {"instance": part.instance, "part": part.part, "slot": part.slot, "reason": reason, "detail": detail}
            for reason, detail in found
        ]
    return rows


def stage_counts(every: Sequence[Joined], left_out: dict[str, list[dict]], rejected: Sequence[dict]) -> dict:
    """How many photographs went in, what each stage lost, and what is left.

    An instance is lost at the first part that fails in the order of PARTS, or, where nothing failed by itself, by people:
    `rejected by people`, `not judged`. So selected is the sum of `lost` and `instances`. rejected: rows of REJECTED.
    """
    lost = Counter(dict.fromkeys((*PARTS[1:], "rejected by people", "not judged"), 0))
    for losses in left_out.values():
        automatic = [row["part"] for row in losses if row["reason"] not in ("rejected", "open")]
        by_people = any(row["reason"] == "rejected" for row in losses)
        lost[min(automatic, key=PARTS.index) if automatic else "rejected by people" if by_people else "not judged"] += 1
    kept = [joined.selected for joined in every if joined.instance not in left_out]
    return {
        "photographs": len(every) + len(rejected),
        "not_selected": dict(sorted(Counter(row["reason"] for row in rejected).items())),
        "selected": len(every),
        "lost": dict(lost),
        "reasons": dict(
            sorted(Counter(f"{row['part']}: {row['reason']}" for losses in left_out.values() for row in losses).items())
        ),
        "instances": len(kept),
        "subjects": sum(row["n_subjects"] for row in kept),
        "by_subjects": {str(number): count for number, count in sorted(Counter(r["n_subjects"] for r in kept).items())},
        "by_source": dict(sorted(Counter(row["source"] for row in kept).items())),
    }


def _accepted(verdicts: Sequence[dict]) -> set[str]:
    """Instances of which a person accepted every part."""
    marks: dict[str, set[str]] = {}
    for row in verdicts:
        marks.setdefault(row["instance"], set()).add(row["verdict"])
    return {instance for instance, found in marks.items() if found == {"accepted"}}


# The rows -------------------------------------------------------------------------------------------------------------


def _name(instance: str, what: str, file: str) -> str:
    return f"images/{instance}/{what}{Path(file).suffix}"


def _instance_row(joined: Joined, accepted: bool) -> dict:
    row, background = joined.selected, joined.background
    same = ("photograph", "source", "licence", "n_subjects", "width", "height", "transforms", "original_sha256")
    return {
        **{name: row[name] for name in ("instance", *same)},
        "target": _name(joined.instance, "target", row["target"]),
        "target_sha256": row["sha256"],
        "background": _name(joined.instance, "background", background["background"]),
        "background_sha256": background["sha256"],
        "background_model": background["model"],
        "annotation": joined.annotation["annotation"],
        "annotation_model": joined.annotation["model"],
        "prompt": joined.prompt["prompt"],
        "words": joined.prompt["words"],
        "verdict": "accepted" if accepted else "open",
    }


def _subject_rows(joined: Joined) -> list[dict]:
    rows = []
    for slot in SLOTS[: joined.selected["n_subjects"]]:
        crop, reference = joined.crops[slot], joined.references[slot]
        rows.append(
            {
                **{name: crop[name] for name in ("instance", "slot", "box", "mask", "crop_sha256", "mask_sha256")},
                "crop": _name(joined.instance, f"{slot}_crop", crop["crop"]),
                "mask_file": _name(joined.instance, f"{slot}_mask", crop["mask_file"]),
                "reference": _name(joined.instance, f"{slot}_reference", reference["reference"]),
                "reference_sha256": reference["sha256"],
                "reference_model": reference["model"],
            }
        )
    return rows


# The files ------------------------------------------------------------------------------------------------------------


def _files(joined: Joined, tables: dict[str, Path]) -> list[tuple[str, Path, str, Path]]:
    """Name below the folder, file, SHA-256, and table that names it, of every picture of an instance."""
    row, rows = _instance_row(joined, False), _subject_rows(joined)
    chosen, references = picture_folder(tables["selected"]), picture_folder(tables["reference"])
    backgrounds = picture_folder(tables["background"])
    of_selected, of_references, of_backgrounds = tables["selected"], tables["reference"], tables["background"]
    files = [
        (row["target"], chosen / joined.selected["target"], row["target_sha256"], of_selected),
        (row["background"], backgrounds / joined.background["background"], row["background_sha256"], of_backgrounds),
    ]
    for subject in rows:
        slot = subject["slot"]
        crop, reference = joined.crops[slot], joined.references[slot]
        files += [
            (subject["crop"], chosen / crop["crop"], subject["crop_sha256"], of_selected),
            (subject["mask_file"], chosen / crop["mask_file"], subject["mask_sha256"], of_selected),
            (
                subject["reference"],
                references / reference["reference"],
                subject["reference_sha256"],
                of_references,
            ),
        ]
    return files


def gather_images(files: dict[str, list[tuple[str, Path, str, Path]]], folder: Path) -> None:
    """Makes images/ below `folder` anew, whole or not at all; what an earlier run copied there is taken over.

    files: see `_files`, by instance. Raises UserError for a file that is missing or another one.
    """
    unfinished, old, images = folder / UNFINISHED, folder / OLD, folder / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for left in (unfinished, old):
        if left.exists():
            shutil.rmtree(left)
    with room_for(images):
        for instance, pictures in progress(files.items(), "instances", unit="instance"):
            (unfinished / "images" / instance).mkdir(parents=True)
            for name, source, digest, table in pictures:
                _place(unfinished / name, source, digest, table, folder / name)
    if images.exists():
        images.rename(old)
    (unfinished / "images").rename(images)
    for left in (unfinished, old):
        shutil.rmtree(left, ignore_errors=True)


def _place(path: Path, source: Path, digest: str, table: Path, earlier: Path) -> None:
    """A hard link to the file where the disk allows it; else to the copy of an earlier run, else a copy. All are checked."""
    remedy = f"delete {table} and run again"
    try:
        os.link(source, path)
    except OSError:  # missing, on another disk, or on one without hard links
        if earlier.is_file() and sha256_of_file(earlier) == digest and source.is_file():
            with suppress(OSError):
                os.link(earlier, path)
                return
        write_bytes(path, read_verified(source, digest, remedy), durable=False)
        return
    read_verified(path, digest, remedy)


def write_data_manifest(path: Path, settings: dict, instances: Path, subjects: Path, counts: Path, costs: dict) -> None:
    """Writes manifest.json beside INSTANCES: what every manifest says, the models, the tables' hashes and the counts.

    settings: the config sections that shaped the data set, by name. costs: of what was bought for it, see
    services.costs.read_costs. Raises UserError for a table that is missing or broken.
    """
    rows, of_subjects = read_table(INSTANCES, instances), read_table(SUBJECTS, subjects)
    models = {
        "reference": of_subjects["reference_model"],
        "background": rows["background_model"],
        "annotation": rows["annotation_model"],
    }
    write_json(
        path,
        {
            **made_with(settings),
            "models": {part: sorted(set(column.to_pylist())) for part, column in models.items()},
            "bought": costs,
            "tokens": sum(costs["tokens"].values()),
            "money_usd": costs["cost_usd"],
            "tables": {Path(table).name: sha256_of_file(table) for table in (instances, subjects)},
            "counts": json.loads(Path(counts).read_text(encoding="utf-8")),
        },
    )
