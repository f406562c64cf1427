"""Sheets of questions to look at: query and candidates side by side (A.2 to A.4), and what each model ranked first.

The pictures are small copies inside the page, so that a sheet opens from anywhere and fits into the report. What is
right or wrong is said in words and signs, never by colour alone.
"""

import base64
import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError

from ..config.scoring import Figures
from ..errors import UserError
from ..figures.pages import html_page, html_table
from ..files import progress, read_verified, write_text
from ..tables import IMAGES, KIND_TITLES, PAIRINGS, SCENE_ROLES, SCORES, read_table
from .scoring import read_scenes

THUMBNAIL_PX = 256
QUALITY = 80
STYLE = """
.question { margin: 0 0 2.2rem; }
.question h3 { font-size: 1rem; margin: 0 0 .5rem; }
.question h3 small { font-weight: 400; }
.scenes { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: .75rem; margin: 0 0 .6rem; padding: 0;
  list-style: none; }
.scenes li { display: flex; flex-direction: column; border: 1px solid var(--line); border-radius: .5rem;
  overflow: hidden; background: var(--tint); }
.scenes li.query { border: 2px solid var(--ink); }
.scenes li.right { border: 2px solid var(--right); }
.scenes img { display: block; width: 100%; height: auto; aspect-ratio: 1; background: var(--line); }
.scenes div { padding: .45rem .6rem .6rem; font-size: .84rem; line-height: 1.4; }
.scenes b { display: block; }
.right b, .yes { color: var(--right); }
.no { color: var(--wrong); }
.tie { color: var(--tie); }
.yes, .no, .tie { font-weight: 600; white-space: nowrap; }
.question td, .question thead th { text-align: left; font-size: .88rem; min-width: 9.5rem; }
.question td small { display: block; }
mark { background: none; color: inherit; text-decoration: underline solid var(--wrong) 2px;
  text-underline-offset: .18em; }
@media (max-width: 60rem) { .scenes { grid-template-columns: repeat(3, minmax(0, 1fr)); } }
@media (max-width: 34rem) { .scenes { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@media print { .question { break-inside: avoid; } }
"""


class Picture(NamedTuple):
    path: Path
    sha256: str  # of the file, hex
    table: Path  # that names it: what Snakemake makes, and with it the files


def write_contact_sheet(questions: Path, scenes: Path, images: Sequence[Path], sheet: Path, settings: Figures) -> None:
    """Writes an HTML page of questions spread over all N and both subsets.

    images: the image tables of all shards. Raises UserError when a table or a picture is missing or broken.
    """
    introduction = (
        "<p>A query and its four candidates, as images and captions. Candidate 1 keeps the query's attribute-object "
        "bindings in another order; the others break them: the bindings that the query does not hold are underlined."
        "</p>"
    )
    sections = _sections(questions, scenes, images, settings, "question sheet", lambda question, shown: "")
    write_text(sheet, html_page("SABER: questions", introduction + sections, STYLE))


def write_answer_sheet(
    questions: Path, scenes: Path, images: Sequence[Path], scores: dict[str, Path], sheet: Path, settings: Figures
) -> None:
    """Writes the same questions with what each model ranked first in each pairing.

    scores: table SCORES of each model, in the order of the rows. Raises UserError as write_contact_sheet does.
    """
    answers = {name: read_answers(path) for name, path in scores.items()}
    introduction = (
        "<p>What each model ranked first among the four candidates, from the query's modality to the candidates'. "
        "Only candidate 1 is right; a tie for the first place is wrong. The numbers are the cosines of candidate 1 and of the "
        "best other one. A dash: the model lacks the modality.</p>"
    )

    def table(question: str, shown: dict[str, dict]) -> str:
        header = ["model", *(pairing.replace("_", " → ") for pairing in PAIRINGS)]
        rows = [
            [escape(name), *(answer_cell(answer.get((question, pairing)), shown) for pairing in PAIRINGS)]
            for name, answer in answers.items()
        ]
        return html_table("", header, rows, label=f"answers to {question}")

    sections = _sections(questions, scenes, images, settings, "answer sheet", table)
    write_text(sheet, html_page("SABER: what each model ranked first", introduction + sections, STYLE))


def read_answers(path: Path) -> dict[tuple[str, str], np.ndarray]:
    """Similarities of the four candidates, (4,) float32, by question and pairing."""
    table = read_table(SCORES, path)
    similarities = table["similarities"].combine_chunks().flatten().to_numpy().reshape(-1, 4)
    return dict(
        zip(zip(table["question"].to_pylist(), table["pairing"].to_pylist(), strict=True), similarities, strict=True)
    )


def first_ranked(similarities: np.ndarray) -> list[int]:
    """Numbers (1 to 4) of the candidates with the highest similarity; more than one when they tie.

    similarities: (4,) float32.
    """
    return (np.flatnonzero(similarities == similarities.max()) + 1).tolist()


def answer_cell(similarities: np.ndarray | None, shown: dict[str, dict]) -> str:
    """HTML of one model's answer. similarities: (4,) float32, or None; shown: the question's scenes by role."""
    if similarities is None:
        return '<span aria-label="none">–</span>'
    first = first_ranked(similarities)
    margin = f"<small>{similarities[0]:.3f} against {similarities[1:].max():.3f}</small>"
    if first == [1]:
        return f'<span class="yes">✓ right</span>{margin}'
    if len(first) > 1:
        *others, last = first
        names = f"{', '.join(map(str, others))} and {last}"
        verdict = "tie, wrong" if 1 in first else "wrong"
        return f'<span class="{"tie" if 1 in first else "no"}">= {verdict}: candidates {names}</span>{margin}'
    kind = KIND_TITLES[shown[f"candidate_{first[0]}"]["kind"]]
    return f'<span class="no">✗ wrong: candidate {first[0]}</span><small>{kind}</small>{margin}'


def spread(questions: list[dict], count: int) -> list[dict]:
    """At most `count` questions, spread over the groups of one N and subset, ordered by N and subset.

    questions: rows of QUESTIONS. Within a group they are taken at even distances.
    """
    groups: dict[tuple, list[dict]] = {}
    for question in questions:
        groups.setdefault((question["n_objects"], question["subset"]), []).append(question)
    keys = sorted(groups)
    if count < len(keys):
        keys = [keys[place * len(keys) // count] for place in range(count)]
    shares = dict.fromkeys(keys, 0)
    while sum(shares.values()) < count and any(shares[key] < len(groups[key]) for key in keys):
        for key in keys:
            if sum(shares.values()) < count and shares[key] < len(groups[key]):
                shares[key] += 1
    return [groups[key][place * len(groups[key]) // shares[key]] for key in keys for place in range(shares[key])]


def _sections(questions: Path, scenes: Path, images: Sequence[Path], settings: Figures, what: str, extra) -> str:
    """HTML of all chosen questions, under a heading for each N. extra: (question, scenes by role) -> HTML below them."""
    table, by_question = read_scenes(questions, scenes)
    chosen = spread(table.to_pylist(), settings.sheet_questions)
    wanted = {scene["scene"] for question in chosen for scene in by_question[question["question"]].values()}
    pictures = pictures_of(images, wanted)
    parts, last_size = [], None
    for question in progress(chosen, what, unit="question"):
        shown = by_question[question["question"]]
        if question["n_objects"] != last_size:
            last_size = question["n_objects"]
            parts.append(f"<h2>{last_size} objects</h2>")
        cards = "\n".join(_card(shown[role], shown["query"], pictures) for role in SCENE_ROLES)
        name = escape(question["question"])
        parts.append(
            f'<section class="question" aria-label="question {name}">\n'
            f"<h3>{name} <small>{escape(question['subset'])}</small></h3>\n"
            f'<ul class="scenes">\n{cards}\n</ul>\n{extra(question["question"], shown)}</section>'
        )
    return "\n".join(parts)


def _card(scene: dict, query: dict, pictures: dict[str, Picture]) -> str:
    title = scene["role"].replace("_", " ")
    kind = KIND_TITLES.get(scene["kind"], "")
    css = {"query": ' class="query"', "preserving": ' class="right"'}.get(scene["kind"], "")
    sign = "✓ " if scene["kind"] == "preserving" else "✗ " if kind else ""
    alternative = escape(f"{title}: {scene['generation_caption']}")
    return (
        f'<li{css}><img src="{thumbnail(pictures[scene["scene"]])}" alt="{alternative}" width="{THUMBNAIL_PX}" '
        f'height="{THUMBNAIL_PX}" loading="lazy"><div><b>{title}{f": {sign}{kind}" if kind else ""}</b>'
        f"{marked_caption(scene, query)}</div></li>"
    )


def marked_caption(scene: dict, query: dict) -> str:
    """The caption as HTML, with the bindings that the query does not hold marked."""
    held = {(binding["attribute"], binding["object"]) for binding in query["bindings"]}
    text = escape(scene["caption"])
    for binding in scene["bindings"]:
        if (binding["attribute"], binding["object"]) not in held:
            words = re.escape(escape(f"{binding['attribute']} {binding['object']}"))
            text = re.sub(rf"(?<![\w-]){words}(?![\w-])", lambda found: f"<mark>{found[0]}</mark>", text, count=1)
    return text


def pictures_of(images: Sequence[Path], wanted: set[str]) -> dict[str, Picture]:
    """Picture of each wanted scene. Raises UserError that names a scene without one."""
    pictures = {}
    for manifest in map(Path, images):
        for row in read_table(IMAGES, manifest).select(["scene", "path", "sha256"]).to_pylist():
            if row["scene"] in wanted:
                pictures[row["scene"]] = Picture(manifest.parent / row["path"], row["sha256"], manifest)
    missing = sorted(wanted - pictures.keys())
    if missing:
        # Which shard should hold it, only the rule that makes them knows: all are made again, from the images that are there.
        tables = f"{Path(images[0]).parent}/*.parquet"
        raise UserError(f"{tables}: no image of {missing[0]}; delete {tables} and run again")
    return pictures


def thumbnail(picture: Picture) -> str:
    """A small WebP copy of a picture as a data URI. Raises UserError when its file is missing, another, or no image."""
    remedy = f"delete {picture.table} and run again"
    file = io.BytesIO(read_verified(picture.path, picture.sha256, remedy))
    try:
        with Image.open(file) as image:
            small = image.convert("RGB").resize((THUMBNAIL_PX, THUMBNAIL_PX), Image.Resampling.LANCZOS, reducing_gap=3)
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError):
        raise UserError(f"{picture.path}: not a readable image; {remedy}") from None
    data = io.BytesIO()
    small.save(data, "WEBP", quality=QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(data.getvalue()).decode()}"
