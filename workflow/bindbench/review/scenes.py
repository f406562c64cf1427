"""Screening of SABER's images (A.4): a page that shows a query and its four candidates, and takes a verdict on each.

    python -m bindbench review-scenes --help

Every press goes into the journal before the page says that it is saved. An image is served by its scene's id, with the
bytes that the table of images names, so that a verdict belongs to what was seen.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UserError
from ..files import sha256
from ..tables import IMAGES, KIND_TITLES, QUESTIONS, SCENE_ROLES, SCENES, read_table, read_tables
from .journal import Journal, default_verdict
from .judging import Judged, Judging
from .pictures import picture_reply
from .server import Refusal, Reply, json_reply

REASONS = (
    "wrong object",
    "missing object",
    "extra object",
    "wrong binding",
    "attribute bleeds",
    "cut off",
    "unreadable",
)


class SceneReview:
    """What the page asks for: the questions, one question, an image; and the presses of its keys.

    questions, scenes, images: tables of SABER (images: one for each shard). by: who judges, for the journal.
    A question is shown when all five of its images exist. Raises UserError when none is.
    """

    title = "Screening"
    pages: ClassVar = {"/page.js": "scenes.js", "/page.css": "scenes.css"}

    def __init__(self, questions: Path, scenes: Path, images: Sequence[Path], journal: Path, by: str | None = None):
        self.images = _read_images(images)
        self.scenes, self.questions = _read_questions(read_table(QUESTIONS, questions), scenes, self.images)
        self.without_images = len(read_table(QUESTIONS, questions)) - len(self.questions)
        if not self.questions:
            raise UserError(f"{questions}: no question has all five images yet; run snakemake to make them")
        shown = {scene: self.images[scene] for scene in self.scenes}
        items = {scene: Judged(row["sha256"], default_verdict(row["renderer"])) for scene, row in shown.items()}
        self.judging = Judging(Journal(journal), items, by, most=len(SCENE_ROLES))

    def answer(self, method: str, parts: list[str], body: dict | None) -> Reply:
        """Raises Refusal."""
        match method, parts:
            case "GET", ["state"]:
                return json_reply(self.state())
            case "GET", ["questions", question] if question in self.questions:
                return json_reply(self.question(question))
            case "GET", ["images", scene] if scene in self.scenes:
                entry = self.images[scene]
                return picture_reply(entry["file"], entry["sha256"], f"the image of {scene}")
            case "POST", ["presses"]:
                return json_reply({"standings": self.judging.press(body)})
        raise Refusal(404, f"there is no {'/'.join(parts)[:100]}")

    def state(self) -> dict:
        """All questions, and how each scene stands unless it is simply open."""
        return {
            "journal": sha256(str(self.judging.journal.path.resolve()))[:16],
            "reasons": REASONS,
            "without_images": self.without_images,
            "questions": [[q["question"], q["subset"], q["n_objects"], q["scenes"]] for q in self.questions.values()],
            "standings": self.judging.standings(),
        }

    def question(self, question: str) -> dict:
        self.judging.journal.refresh()
        ids = self.questions[question]["scenes"]
        held = {(binding["attribute"], binding["object"]) for binding in self.scenes[ids[0]]["bindings"]}
        return {
            "question": question,
            "scenes": [self._scene(self.scenes[scene], held) for scene in ids],
            "standings": {scene: self.judging.standing(scene) for scene in ids},
        }

    def _scene(self, scene: dict, held: set[tuple[str, str]]) -> dict:
        return {
            "scene": scene["scene"],
            "sha256": self.images[scene["scene"]]["sha256"],
            "role": scene["role"].replace("_", " "),
            "kind": KIND_TITLES.get(scene["kind"], "what is asked"),
            "caption": scene["caption"],
            "generation_caption": scene["generation_caption"],
            "bindings": [
                {
                    "realised": binding["realised"],
                    "object": binding["object"],
                    "held": (binding["attribute"], binding["object"]) in held,
                }
                for binding in scene["bindings"]
            ],
        }


def _read_images(images: Sequence[Path]) -> dict[str, dict]:
    """sha256, renderer and file of each scene's image."""
    found = {}
    for manifest in images:
        for row in read_tables(IMAGES, [manifest]).select(["scene", "path", "sha256", "renderer"]).to_pylist():
            found[row["scene"]] = row | {"file": Path(manifest).parent / row["path"]}
    return found


def _read_questions(table: pa.Table, scenes: Path, images: dict[str, dict]) -> tuple[dict[str, dict], dict[str, dict]]:
    """Rows of SCENES by id, and of QUESTIONS by id with their five scenes in the order of SCENE_ROLES; only those with images."""
    scene_table = read_table(SCENES, scenes)
    with_image = pc.is_in(scene_table["scene"], value_set=pa.array(sorted(images), pa.string()))
    by_question: dict[str, dict[str, dict]] = {}
    for row in scene_table.filter(with_image).to_pylist():
        by_question.setdefault(row["question"], {})[row["role"]] = row
    shown, questions = {}, {}
    for question in sorted(table.to_pylist(), key=lambda row: row["n_objects"]):
        rows = by_question.get(question["question"], {})
        if set(rows) == set(SCENE_ROLES):
            questions[question["question"]] = question | {"scenes": [rows[role]["scene"] for role in SCENE_ROLES]}
            shown |= {rows[role]["scene"]: rows[role] for role in SCENE_ROLES}
    return shown, questions
