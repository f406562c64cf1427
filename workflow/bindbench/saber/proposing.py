"""A vision-language model proposes verdicts on images that nobody has judged (A.4); people confirm them on the review page.

    python -m bindbench propose-verdicts --help

A proposal is asked through the services: it lies in the store, and the same image is never paid for twice.
"""

import sys
from pathlib import Path

from ..config.services import Services
from ..files import progress
from ..review.journal import append_proposal, default_verdict, read_journal
from ..services.buying import answers
from ..services.requests import InputImage, Request
from ..tables import IMAGES, SCENES, read_table
from .screening import PROPOSAL_SCHEMA, parse_proposal, proposal_prompt

STAGE = "saber/screening"


def proposal_request(scene: dict, image: InputImage, model: str) -> Request:
    """What is asked about the image of a scene (row of SCENES)."""
    content = [{"type": "text", "text": proposal_prompt(scene)}, {"image": 0}]
    schema = {"name": "verdict", "strict": True, "schema": PROPOSAL_SCHEMA}
    body = {
        "messages": [{"role": "user", "content": content}],
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    return Request("chat", model, body, (image,), stage=STAGE)


def propose_verdicts(scenes: Path, images: list[Path], journal: Path, model: str, services: Services) -> dict[str, int]:
    """Asks about every open image without a proposal; returns how many were accepted, rejected and unclear.

    Raises UserError: see services.buying.answers; what was answered until then stands in the journal.
    """
    known = read_journal(journal)
    rows = {row["scene"]: row for row in read_table(SCENES, scenes).to_pylist()}
    waiting = {}
    for table in images:
        for image in read_table(IMAGES, table).to_pylist():
            judged = known.standing(image["scene"], image["sha256"]) or known.proposal(image["scene"], image["sha256"])
            if judged is None and default_verdict(image["renderer"]) == "open":
                picture = InputImage(str((table.parent / image["path"]).resolve()), image["sha256"])
                request = proposal_request(rows[image["scene"]], picture, model)
                waiting.setdefault(request.key, (request, []))[1].append(image)
    counts = {"accepted": 0, "rejected": 0, "unclear": 0}
    asked = (request for request, _ in waiting.values())
    for answer in progress(answers(asked, services), "proposals", total=len(waiting), unit="image"):
        try:
            proposal = parse_proposal(answer.payload.decode() if answer.accepted else "")
        except ValueError as error:
            counts["unclear"] += 1
            print(f"{waiting[answer.request.key][1][0]['scene']}: {answer.reason or error}", file=sys.stderr)
            continue
        for image in waiting[answer.request.key][1]:
            append_proposal(known, image["scene"], image["sha256"], proposal.verdict, proposal.reason, model)
        counts[proposal.verdict] += 1
    return counts
