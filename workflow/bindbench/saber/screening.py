"""Screening of SABER's images (A.4): which are right, which are to be made again, which questions may be scored.

People judge on the page of review/scenes.py, which writes a journal; here the journal becomes the table VERDICTS. A
question of which one image stands rejected asks for something that it does not show, so it is left out whole: from
multiple choice, from the queries and from the gallery. The paper remakes such images until none is left.

A model may propose verdicts (`proposal_prompt`, `parse_proposal`, `review.journal.append_proposal`); they count as open
until a person confirms them.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..config.screening import Screening
from ..errors import UserError
from ..files import write_json
from ..paths import resolve
from ..review.journal import Journal, default_verdict, read_journal
from ..review.scenes import REASONS
from ..tables import IMAGES, QUESTIONS, SCENES, VERDICTS, read_table, read_tables, write_table

PROMPT = "resources/prompts/screening.txt"
# For services that take a schema of the answer.
PROPOSAL_SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["accepted", "rejected"]}, "reason": {"type": "string"}},
    "required": ["verdict", "reason"],
    "additionalProperties": False,
}


class Proposal(NamedTuple):
    """What a model thinks of an image."""

    verdict: str  # accepted or rejected
    reason: str | None


def attempt_of(scene: str, journal: Journal) -> int:
    """How many different images of the scene stand rejected: the attempt, counted from 0, under which it is made now."""
    return len(journal.rejected_images(scene))


def collect_verdicts(images: Sequence[Path], journal: Path | None, output: Path) -> None:
    """Writes the table VERDICTS: what counts for each image as it is now.

    images: the image tables of all shards; journal: None or a missing file where nobody has judged anything.
    Raises UserError for a table or a journal that cannot be read.
    """
    known = read_journal(journal) if journal is not None else None
    rows = read_tables(IMAGES, list(images)).select(["scene", "sha256", "renderer"]).to_pylist()
    write_table(VERDICTS, [_verdict(row, known) for row in rows], output)


def _verdict(image: dict, journal: Journal | None) -> dict:
    scene, sha256 = image["scene"], image["sha256"]
    row = {"scene": scene, "sha256": sha256, "verdict": default_verdict(image["renderer"]), "attempt": 0}
    if journal is None:
        return row
    row["attempt"] = attempt_of(scene, journal)
    standing, proposal = journal.standing(scene, sha256), journal.proposal(scene, sha256)
    if standing is not None:
        row |= {name: standing.get(name) for name in ("verdict", "reason", "by")}
    if row["verdict"] == "open" and proposal is not None:
        row |= {name: proposal.get(name) for name in ("proposed", "reason", "by")}
    return row


def usable_questions(verdicts: pa.Table, scenes: pa.Table, settings: Screening) -> tuple[set[str], dict[str, int]]:
    """The questions to score, and counts of all of them.

    verdicts: VERDICTS; scenes: SCENES. Counts: questions, scored, scored_with_open_scenes, left_out_rejected (a scene
    stands rejected), left_out_missing (else: a scene has no image), left_out_open (else: a scene is open and
    settings.require_verdict). The three that are left out and scored add up to questions.
    """
    verdict_of = dict(zip(verdicts["scene"].to_pylist(), verdicts["verdict"].to_pylist(), strict=True))
    found: dict[str, set[str]] = {}
    for scene, question in zip(scenes["scene"].to_pylist(), scenes["question"].to_pylist(), strict=True):
        found.setdefault(question, set()).add(verdict_of.get(scene, "missing"))
    groups: dict[str, set[str]] = {name: set() for name in ("accepted", "rejected", "missing", "open")}
    for question, marks in found.items():
        groups[next((mark for mark in ("rejected", "missing", "open") if mark in marks), "accepted")].add(question)
    scored = groups["accepted"] | (set() if settings.require_verdict else groups["open"])
    counts = {
        "questions": len(found),
        "scored": len(scored),
        "scored_with_open_scenes": len(scored & groups["open"]),
        "left_out_rejected": len(groups["rejected"]),
        "left_out_missing": len(groups["missing"]),
        "left_out_open": len(groups["open"] - scored),
    }
    return scored, counts


def screen_questions(
    questions: Path,
    scenes: Path,
    verdicts: Path,
    settings: Screening,
    screened_questions: Path,
    screened_scenes: Path,
    counts: Path,
) -> None:
    """Writes the questions to score and their scenes as tables of the same kinds, and the counts as JSON.

    What scores and tabulates reads these in place of the whole ones. Raises UserError when no question is left.
    """
    scene_table = read_table(SCENES, scenes)
    usable, numbers = usable_questions(read_table(VERDICTS, verdicts), scene_table, settings)
    if not usable:
        raise UserError(
            f"{verdicts}: no question can be scored ({numbers['left_out_rejected']} with a rejected scene, "
            f"{numbers['left_out_missing']} with a missing image, {numbers['left_out_open']} with an open one); "
            f"screen the scenes: python -m bindbench review-scenes"
        )
    wanted = pa.array(sorted(usable))
    for table, data, output in (
        (QUESTIONS, read_table(QUESTIONS, questions), screened_questions),
        (SCENES, scene_table, screened_scenes),
    ):
        write_table(table, data.filter(pc.is_in(data["question"], value_set=wanted)), output)
    write_json(counts, numbers)


def proposal_prompt(scene: dict) -> str:
    """What a model is asked about the image of a scene (a row of SCENES); the image goes with it.

    Raises UserError when the template is missing.
    """
    bindings = scene["bindings"]
    path = resolve(PROMPT)
    try:
        template = Template(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    return template.substitute(
        count=len(bindings),
        bindings="\n".join(f"- {binding['object']}: {binding['realised']}" for binding in bindings),
        reasons=", ".join(REASONS),
    )


def parse_proposal(text: str) -> Proposal:
    """The model's answer; fences and words around the JSON are forgiven. Raises ValueError that says what is wrong."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    if not found:
        raise ValueError("no JSON object in the answer")
    try:
        answer = json.loads(found[0])
    except ValueError as error:
        raise ValueError(f"the answer is not JSON ({error})") from None
    verdict, reason = answer.get("verdict"), answer.get("reason")
    if verdict not in ("accepted", "rejected"):
        raise ValueError(f"verdict is {verdict!r}, not accepted or rejected")
    if not isinstance(reason, (str, type(None))):
        raise ValueError("reason is not a text")
    reason = " ".join((reason or "").split())[:500]
    if verdict == "rejected" and not reason:
        raise ValueError("rejected without a reason")
    return Proposal(verdict, reason if verdict == "rejected" else None)
