"""Screening of SABER's images (A.4): a page that shows a query and its four candidates, and takes a verdict on each.

    python -m bindbench review-scenes --help

Every press goes into the journal before the page says that it is saved. An image is served by its scene's id, with the
bytes that the table of images names, so that a verdict belongs to what was seen.
"""

import re
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UserError
from ..figures.pages import STYLE
from ..files import sha256
from ..tables import IMAGES, KIND_TITLES, QUESTIONS, SCENE_ROLES, SCENES, read_table, read_tables
from .journal import VERDICTS, Journal, default_verdict, verdict_line
from .server import LoopbackServer, PortTaken, Refusal, Reply, json_reply

REASONS = (
    "wrong object",
    "missing object",
    "extra object",
    "wrong binding",
    "attribute bleeds",
    "cut off",
    "unreadable",
)
LONGEST_REASON = 500  # characters
PRESS = re.compile(r"[0-9a-f]{16,64}")
PUBLIC = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}


class SceneReview:
    """What the page asks for: the questions, one question, an image; and the presses of its keys.

    questions, scenes, images: tables of SABER (images: one for each shard). by: who judges, for the journal.
    A question is shown when all five of its images exist. Raises UserError when none is.
    """

    def __init__(self, questions: Path, scenes: Path, images: Sequence[Path], journal: Path, by: str | None = None):
        self.journal, self.by = Journal(journal), by
        self.journal.refresh()
        self.images = _read_images(images)
        self.scenes, self.questions = _read_questions(read_table(QUESTIONS, questions), scenes, self.images)
        self.without_images = len(read_table(QUESTIONS, questions)) - len(self.questions)
        if not self.questions:
            raise UserError(f"{questions}: no question has all five images yet; run snakemake to make them")

    def answer(self, method: str, parts: list[str], body: dict | None) -> Reply:
        """Raises Refusal."""
        match method, parts:
            case "GET", ["state"]:
                return json_reply(self.state())
            case "GET", ["questions", question] if question in self.questions:
                return json_reply(self.question(question))
            case "GET", ["images", scene] if scene in self.scenes:
                return Reply(200, "image/png", self.image(scene))
            case "POST", ["presses"]:
                return json_reply({"standings": self.press(body)})
        raise Refusal(404, f"there is no {'/'.join(parts)[:100]}")

    def state(self) -> dict:
        """All questions, and how each scene stands unless it is simply open."""
        self.journal.refresh()
        standings = {scene: self.standing(scene) for scene in self.scenes}
        untouched = {"verdict": "open", "by_person": False}
        return {
            "journal": sha256(str(self.journal.path.resolve()))[:16],
            "reasons": REASONS,
            "without_images": self.without_images,
            "questions": [[q["question"], q["subset"], q["n_objects"], q["scenes"]] for q in self.questions.values()],
            "standings": {scene: standing for scene, standing in standings.items() if standing != untouched},
        }

    def question(self, question: str) -> dict:
        self.journal.refresh()
        ids = self.questions[question]["scenes"]
        held = {(binding["attribute"], binding["object"]) for binding in self.scenes[ids[0]]["bindings"]}
        return {
            "question": question,
            "scenes": [self._scene(self.scenes[scene], held) for scene in ids],
            "standings": {scene: self.standing(scene) for scene in ids},
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

    def standing(self, scene: str) -> dict:
        """How the scene's present image stands: verdict, reason, whether a person judged it, and what a model proposes."""
        image = self.images[scene]
        line = self.journal.standing(scene, image["sha256"])
        if line is not None:
            return {"verdict": line["verdict"], "reason": line.get("reason"), "by": line.get("by"), "by_person": True}
        proposal = self.journal.proposal(scene, image["sha256"])
        standing = {"verdict": default_verdict(image["renderer"]), "by_person": False}
        if proposal is not None:
            standing["proposal"] = {
                "verdict": proposal["proposed"],
                "reason": proposal.get("reason"),
                "by": proposal.get("by"),
            }
        return standing

    def image(self, scene: str) -> bytes:
        """The file's bytes. Raises Refusal when they are not those that the table names."""
        entry = self.images[scene]
        try:
            data = entry["file"].read_bytes()
        except OSError as error:
            raise Refusal(404, f"the image of {scene} cannot be read ({error.strerror})") from None
        if sha256(data) != entry["sha256"]:
            raise Refusal(409, f"the image of {scene} was made again; start the review again")
        return data

    def press(self, body: dict) -> dict:
        """Appends what a press says; a press that is sent twice counts once. Returns how its scenes stand then.

        body: {press, verdicts: [{scene, sha256, verdict, reason}]} or {press, undoes: an earlier press}.
        """
        press = body.get("press")
        if not isinstance(press, str) or not PRESS.fullmatch(press):
            raise Refusal(400, "press must be 16 to 64 hexadecimal digits")
        if "undoes" in body:
            lines = self.journal.append(lambda: self._undone(press, body["undoes"]))
        else:
            verdicts = self._checked(body.get("verdicts"))
            lines = self.journal.append(lambda: self._judged(press, verdicts))
        touched = lines or self.journal.lines_of(press)
        return {line["scene"]: self.standing(line["scene"]) for line in touched if line["scene"] in self.scenes}

    def _checked(self, verdicts) -> list[dict]:
        if not isinstance(verdicts, list) or not 0 < len(verdicts) <= len(SCENE_ROLES):
            raise Refusal(400, f"verdicts must be a list of 1 to {len(SCENE_ROLES)}")
        checked = []
        for item in verdicts:
            if not isinstance(item, dict) or item.get("verdict") not in VERDICTS:
                raise Refusal(400, f"a verdict must be one of {', '.join(VERDICTS)}")
            scene, reason = item.get("scene"), item.get("reason")
            if not isinstance(scene, str) or scene not in self.scenes:
                raise Refusal(404, "there is no such scene")
            if item.get("sha256") != self.images[scene]["sha256"]:
                raise Refusal(409, f"the image of {scene} is not the one that was judged; look again")
            if not isinstance(reason, (str, type(None))) or len(reason or "") > LONGEST_REASON:
                raise Refusal(400, f"a reason is a text of at most {LONGEST_REASON} characters")
            reason = " ".join((reason or "").split()) or None
            if item["verdict"] == "rejected" and reason is None:
                raise Refusal(400, "a rejection needs a reason")
            checked.append({"scene": scene, "sha256": item["sha256"], "verdict": item["verdict"], "reason": reason})
        if len({item["scene"] for item in checked}) < len(checked):
            raise Refusal(400, "a scene is judged twice in one press")
        return checked

    def _judged(self, press: str, verdicts: list[dict]) -> list[dict]:
        known = {line["scene"] for line in self.journal.lines_of(press)}
        return [verdict_line(**item, by=self.by, press=press) for item in verdicts if item["scene"] not in known]

    def _undone(self, press: str, undoes) -> list[dict]:
        if self.journal.lines_of(press):
            return []
        earlier = self.journal.lines_of(undoes) if isinstance(undoes, str) else []
        if not earlier:
            raise Refusal(404, "there is no such press to undo")
        lines = []
        for line in earlier:
            scene, image = line["scene"], line["sha256"]
            counts, before = self.journal.before(undoes, scene, image)
            if not counts or scene not in self.images:
                continue  # judged again since, perhaps by somebody else
            verdict = before["verdict"] if before else default_verdict(self.images[scene]["renderer"])
            reason, by = (before.get("reason"), before.get("by")) if before else (None, self.by)
            lines.append(verdict_line(scene, image, verdict, reason, by, press=press, undoes=undoes))
        if not lines:
            raise Refusal(409, "judged again since; nothing was undone")
        return lines


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


def review_server(
    questions: Path,
    scenes: Path,
    images: Sequence[Path],
    journal: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    by: str | None = None,
    token: str | None = None,
) -> LoopbackServer:
    """The server, bound but not yet serving. Raises UserError as SceneReview and LoopbackServer do."""
    review = SceneReview(questions, scenes, images, journal, by)
    folder = files(__package__) / "page"
    public = {path: (f"{kind}; charset=utf-8", (folder / name).read_bytes()) for path, (name, kind) in PUBLIC.items()}
    public["/style.css"] = ("text/css; charset=utf-8", STYLE.encode())
    return LoopbackServer(host, port, public, review.answer, token)


def serve_review(
    questions: Path,
    scenes: Path,
    images: Sequence[Path],
    journal: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    by: str | None = None,
    open_browser: bool = True,
) -> None:
    """Serves the page until Ctrl-C or SIGTERM.

    port: 0 takes the journal's own while it is free: presses that a page kept when the server went away lie in the
    browser under the old address, and are found again there. Raises UserError: see review_server.
    """
    ports = [port] if port else [usual_port(journal), 0]
    for number in ports:
        try:
            server = review_server(questions, scenes, images, journal, host=host, port=number, by=by)
            break
        except PortTaken:
            if number == ports[-1]:
                raise
    print(f"Screening, verdicts go into {journal}. Open {server.url}\nCtrl-C ends it.", flush=True)

    def stop(*about) -> None:
        threading.Thread(target=server.shutdown).start()

    previous = signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory(prefix="bindbench-") as folder:
        try:
            if open_browser and not webbrowser.open(_door(Path(folder), server.url)):
                print("No browser could be opened here: open the address yourself.", file=sys.stderr)
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, previous)
            server.server_close()


def usual_port(journal: Path) -> int:
    """A port of this journal's own, outside the ranges that systems hand out by themselves."""
    return 20000 + int(sha256(str(Path(journal).resolve())), 16) % 10000


def _door(folder: Path, url: str) -> str:
    """Address of a file, for this user's eyes, that leads to the page: command lines, which all users of a machine see,
    must not hold the token.
    """
    path = folder / "review.html"
    path.touch(mode=0o600)
    path.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">', encoding="utf-8")
    return path.as_uri()
