"""The data set to look at: pages of instances with small copies of their pictures inside, and the card (section 3.2).

    python -m bindbench draw-instances --help

A page holds everything it shows, so the folder opens from anywhere; a pager joins the pages. The card says what the data set
is, what made each part of it, under which licences the photographs stand, and what must not be passed on.
"""

import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ..errors import UserError
from ..figures.pages import html_page
from ..figures.pictures import data_uri, small_copy
from ..files import progress, write_text
from ..people.masks import BrokenMask, decode_mask
from ..people.outlines import outlines_of, svg_path
from ..tables import read_table
from .prompts import length_statistics
from .showing import Piece, prompt_blocks, readable_annotation
from .tables import INSTANCES, SLOTS, SUBJECTS

INSTANCES_A_PAGE = 20  # about 3 MB
TARGET_PX, PERSON_PX = 640, 320  # longer side of the copies
GENERATIVE = ("gemini", "openai", "google-genai")  # what a model's name begins with, where it is of the paper's kind
STAND_IN = "an embedded stand-in, not the paper's kind"
PAPER = {"instances": 508, "subjects": 1527, "by_subjects": {"2": 118, "3": 269, "4": 121}, "words": 474}
STYLE = """
:root { --a: #1f5fb4; --b: #a8480f; --c: #7a2ba0; --d: #00707a; }
.slot-A { --slot: var(--a); } .slot-B { --slot: var(--b); } .slot-C { --slot: var(--c); } .slot-D { --slot: var(--d); }
article { border-top: 2px solid var(--line); padding: 1rem 0 1.5rem; }
article h2 { margin: 0 0 .2rem; font-size: 1.1rem; overflow-wrap: anywhere; }
.large { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .75rem; margin: .6rem 0; align-items: start; }
.people { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .75rem; margin: .6rem 0; }
.person { border: 1px solid var(--line); border-top: 4px solid var(--slot); border-radius: .4rem; padding: .4rem; }
.person h3 { margin: 0 0 .3rem; font-size: .95rem; color: var(--slot); }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .4rem; }
figure { margin: 0; background: var(--tint); border-radius: .4rem; overflow: hidden; }
figcaption { padding: .25rem .5rem; font-size: .8rem; color: var(--soft); overflow-wrap: anywhere; }
.picture { position: relative; display: block; width: fit-content; max-width: 100%; margin: 0 auto; line-height: 0; }
.picture img { display: block; max-width: 100%; height: auto; }
.picture svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.picture rect, .picture path { fill: none; stroke: var(--slot); stroke-width: 2; vector-effect: non-scaling-stroke; }
.picture .under { stroke: #fff; stroke-width: 4; }
.picture rect.plate { fill: var(--slot); stroke: #fff; stroke-width: 1; }
.picture text { fill: #fff; font: 700 1px system-ui, sans-serif; text-anchor: middle; dominant-baseline: central; }
.prompt p { margin: .3rem 0; max-width: 66rem; padding-left: .6rem; border-left: 4px solid var(--line); font-size: .92rem; }
.prompt p.block { border-left-color: var(--slot); background: color-mix(in srgb, var(--slot) 8%, transparent); }
mark { background: none; color: var(--slot); font-weight: 700; }
details { margin: .4rem 0; } summary { cursor: pointer; font-weight: 600; }
.said { columns: 20rem; font-size: .88rem; } .said section { break-inside: avoid; }
.said h3 { margin: .4rem 0 .1rem; font-size: .9rem; color: var(--slot, inherit); }
.said dl { display: grid; grid-template-columns: minmax(5rem, 9rem) 1fr; gap: .05rem .6rem; margin: 0; }
.said dt { color: var(--soft); } .said dd { margin: 0; } .said dd.alone { grid-column: 1 / -1; }
nav { display: flex; flex-wrap: wrap; gap: .3rem .6rem; margin: .8rem 0; } nav [aria-current] { font-weight: 700; }
@media (max-width: 45rem) { .large { grid-template-columns: minmax(0, 1fr); } }
@media print { article { break-inside: avoid; } }
"""


# The sheet ------------------------------------------------------------------------------------------------------------


def write_sheet(instances: Path, subjects: Path, sheet: Path) -> None:
    """Writes the HTML page `sheet` with the first INSTANCES_A_PAGE instances, and beside it SHEET-2.html and so on.

    The first page is written last; pages of an earlier, longer sheet are removed. The pictures lie beside the tables, as
    assembling.assemble leaves them. Raises UserError for a table or picture that is missing or another one.
    """
    sheet, table = Path(sheet), Path(instances)
    rows = read_table(INSTANCES, instances).to_pylist()
    people: dict[str, list[dict]] = {}
    for row in read_table(SUBJECTS, subjects).to_pylist():
        people.setdefault(row["instance"], []).append(row)
    pages = [rows[start : start + INSTANCES_A_PAGE] for start in range(0, len(rows), INSTANCES_A_PAGE)] or [[]]
    for number in progress(range(len(pages), 0, -1), "pages", unit="page"):
        articles = [_article(row, people.get(row["instance"], []), table) for row in pages[number - 1]]
        pager = _pager(sheet, number, len(pages))
        body = "\n".join([_introduction(rows), pager, *articles, pager])
        write_text(_page(sheet, number), html_page("MultiBind: instances", body, STYLE))
    number = len(pages) + 1
    while (old := _page(sheet, number)).exists():
        old.unlink()
        number += 1


def _page(sheet: Path, number: int) -> Path:
    return sheet if number == 1 else sheet.with_stem(f"{sheet.stem}-{number}")


def _pager(sheet: Path, number: int, count: int) -> str:
    if count == 1:
        return ""
    links = [
        f'<span aria-current="page">{page}</span>'
        if page == number
        else f'<a href="{escape(_page(sheet, page).name)}">{page}</a>'
        for page in range(1, count + 1)
    ]
    return f'<nav aria-label="Pages">Page {" ".join(links)}</nav>'


def _introduction(rows: Sequence[dict]) -> str:
    return (
        f"<p>{_counted(len(rows), 'instance')} with {sum(row['n_subjects'] for row in rows)} subjects. Of each: the real "
        "photograph with the slots, from left to right; the photograph without its people; for each slot the crop and its "
        "canonical reference; the prompt, in which a slot's block has the slot's colour. Small copies: the data set holds the "
        "originals.</p>"
    )


def _article(row: dict, people: Sequence[dict], table: Path) -> str:
    target = _thumbnail(row["target"], row["target_sha256"], table, TARGET_PX)
    background = _thumbnail(row["background"], row["background_sha256"], table, TARGET_PX)
    outlines = {person["slot"]: _outline(person, row, table) for person in people}
    cells = "\n".join(_person(person, outlines[person["slot"]], table) for person in people)
    about = (
        f"{row['n_subjects']} subjects, {row['words']} words, source {row['source']}: {row['licence']}; "
        f"judged: {row['verdict']}"
    )
    name = escape(row["instance"])
    return (
        f'<article id="{name}" aria-label="{name}">\n<h2>{name}</h2>\n<p class="soft">{escape(about)}</p>\n<div class="large">\n'
        + _figure(
            target, f"{row['instance']}, the photograph", "photograph with its slots", _slots(row, people, outlines)
        )
        + _figure(background, f"{row['instance']}, without people", f"background: {_labelled(row['background_model'])}")
        + f'</div>\n<div class="people">\n{cells}\n</div>\n'
        + f'<div class="prompt">{"".join(map(_block, prompt_blocks(row["prompt"])))}</div>\n'
        + f"<details><summary>Annotation ({escape(_labelled(row['annotation_model']))})</summary>"
        + f'<div class="said">{_said(row["annotation"])}</div></details>\n</article>'
    )


def _person(person: dict, outline: str, table: Path) -> str:
    slot = person["slot"]
    crop = _thumbnail(person["crop"], person["crop_sha256"], table, PERSON_PX)
    reference = _thumbnail(person["reference"], person["reference_sha256"], table, PERSON_PX)
    box = " ".join(f"{value:g}" for value in person["box"])
    drawn = f'<svg viewBox="{box}" aria-hidden="true"><g class="slot-{slot}">{outline}</g></svg>'
    return (
        f'<div class="person slot-{slot}"><h3>Subject {slot}</h3><div class="pair">'
        + _figure(crop, f"crop of subject {slot}", "crop and mask", drawn)
        + _figure(reference, f"reference of subject {slot}", f"reference: {_labelled(person['reference_model'])}")
        + "</div></div>"
    )


def _figure(picture: str, alternative: str, caption: str, drawn: str = "") -> str:
    image = f'<img src="{picture}" alt="{escape(alternative)}" loading="lazy">'
    return f'<figure><span class="picture">{image}{drawn}</span><figcaption>{escape(caption)}</figcaption></figure>\n'


def _slots(row: dict, people: Sequence[dict], outlines: dict[str, str]) -> str:
    """Every subject's outline and box with its letter, over the photograph."""
    size = max(row["width"], row["height"]) / 20
    drawn = []
    for person in people:
        slot, (x, y, width, height) = person["slot"], person["box"]
        box = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        drawn.append(
            f'<g class="slot-{slot}">{outlines[slot]}<rect class="under" {box}/><rect {box}/>'
            f'<rect class="plate" x="{x:g}" y="{y:g}" width="{size * 1.2:g}" height="{size * 1.2:g}"/>'
            f'<text x="{x + size * 0.6:g}" y="{y + size * 0.62:g}" style="font-size:{size:g}px">{slot}</text></g>'
        )
    return f'<svg viewBox="0 0 {row["width"]} {row["height"]}" aria-hidden="true">{"".join(drawn)}</svg>'


def _outline(person: dict, row: dict, table: Path) -> str:
    try:
        mask = decode_mask(person["mask"], row["height"], row["width"])
    except BrokenMask as error:
        raise UserError(
            f"{table}: {row['instance']}, slot {person['slot']}: {error}; delete it and run again"
        ) from None
    # At the size of the copy a finer line is not seen, and makes pages large.
    path = svg_path(outlines_of(mask, tolerance=max(row["width"], row["height"]) / TARGET_PX))
    return f'<path class="under" d="{path}"/><path d="{path}"/>'


def _block(block: tuple[str | None, list[Piece]]) -> str:
    slot, pieces = block
    text = "".join(
        f'<mark class="slot-{named}">{escape(words)}</mark>' if named else escape(words) for named, words in pieces
    )
    return f'<p class="block slot-{slot}">{text}</p>' if slot else f"<p>{text}</p>"


def _said(annotation: str) -> str:
    sections = []
    for slot, title, lines in readable_annotation(annotation):
        heading = f'<h3 class="slot-{slot}">' if slot else "<h3>"
        said = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" if name else f'<dd class="alone">{escape(words)}</dd>'
            for name, words in lines
        )
        sections.append(f"<section>{heading}{escape(title)}</h3><dl>{said}</dl></section>")
    return "".join(sections)


def _thumbnail(name: str, digest: str, table: Path, longest: int) -> str:
    """A small copy as a data URI. Raises UserError for a file that is missing, another one, or no picture."""
    return data_uri(small_copy(table.parent / name, digest, f"delete {table} and run again", longest))


# The card -------------------------------------------------------------------------------------------------------------


def _labelled(model: str) -> str:
    """A model's name, and that it is none of the paper's kind where that is so."""
    return model if model.split("/")[0] in GENERATIVE else f"{model}, {STAND_IN}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def write_card(instances: Path, subjects: Path, counts: Path, card: Path) -> None:
    """Writes README.md of the data set. counts: JSON of assembling.stage_counts. Raises UserError for a broken file."""
    rows = read_table(INSTANCES, instances).to_pylist()
    people = read_table(SUBJECTS, subjects).to_pylist()
    try:
        stages = json.loads(Path(counts).read_text(encoding="utf-8"))
        text = "\n".join([_front_matter(rows), *_sections(rows, people, stages)])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{counts}: not the counts of an assembly ({type(error).__name__}); delete it and run again"
        ) from None
    write_text(card, text)


def _front_matter(rows: Sequence[dict]) -> str:
    """The YAML that data set cards begin with. The licence is `other`: each photograph has its own."""
    size = next((name for limit, name in ((1000, "n<1K"), (10_000, "1K<n<10K")) if len(rows) < limit), "10K<n<100K")
    return (
        "---\npretty_name: bindbench MultiBind\nlicense: other\nlicense_name: by-photograph\nlanguage:\n- en\n"
        f"task_categories:\n- text-to-image\n- image-to-image\nsize_categories:\n- {size}\ntags:\n- multi-subject generation\n"
        "- attribute binding\n- sensitive\nconfigs:\n- config_name: instances\n  default: true\n  data_files: instances.parquet\n"
        "- config_name: subjects\n  data_files: subjects.parquet\n---\n"
    )


def _sections(rows: Sequence[dict], people: Sequence[dict], stages: dict) -> list[str]:
    return [
        f"# bindbench MultiBind: {_counted(len(rows), 'instance')} of multi-subject generation\n",
        _purpose(rows, people),
        _contents(),
        _table_of_counts(rows, stages),
        _makers(rows, people),
        _licences(rows),
        _sensitive(),
        _lengths(rows),
        _checks(rows, stages),
    ]


def _purpose(rows: Sequence[dict], people: Sequence[dict]) -> str:
    paper = PAPER["by_subjects"]
    return (
        "An instance is a real photograph of two to four people, and everything that an image generator needs to make it again: "
        "a canonical reference of each person, the place without them, and a long prompt that speaks of Subject A, B, C and D. "
        "It asks whether a generator keeps *which attribute belongs to which person*. Built as in sections 3.1 and 3.2 of "
        "*MultiBind: A Benchmark for Attribute Misbinding in Multi-Subject Generation*.\n\n"
        f"This is not the paper's data set, which has {PAPER['instances']} instances and {PAPER['subjects']:,} subjects "
        f"({paper['2']}, {paper['3']} and {paper['4']} with two, three and four): photographs, models and limits are those of this "
        f"run, and figures measured with it are not the paper's. It holds {_counted(len(rows), 'instance')} and "
        f"{_counted(len(people), 'subject')}.\n"
    )


def _contents() -> str:
    names = [*(f"{slot}_crop, {slot}_mask, {slot}_reference" for slot in SLOTS[:1]), "and so on to D"]
    return (
        "## Files\n\n"
        "- `instances.parquet`: a row for each instance: photograph, source, licence, background, annotation (JSON), prompt.\n"
        "- `subjects.parquet`: a row for each slot: box, mask, crop, reference. Slots go from left to right.\n"
        f"- `images/INSTANCE/`: target, background, {', '.join(names)}. The tables hold every file's SHA-256.\n"
        "- `left_out.parquet`, `verdicts.parquet`, `counts.json`: what was left out and why, and who judged what.\n"
        "- `manifest.json`: settings, seeds and versions.\n"
    )


def _table_of_counts(rows: Sequence[dict], stages: dict) -> str:
    lines = [
        ("photographs", stages["photographs"]),
        *((f"not selected: {_plain(reason)}", count) for reason, count in stages["not_selected"].items()),
        ("selected", stages["selected"]),
        *((f"lost: {stage}", count) for stage, count in stages["lost"].items() if count),
        ("instances", stages["instances"]),
        *((f"with {number} subjects", count) for number, count in stages["by_subjects"].items()),
        *((f"from {source}", count) for source, count in stages["by_source"].items()),
    ]
    return "## Counts\n\n" + _markdown_table(("stage", "number"), [(name, f"{count:,}") for name, count in lines])


def _makers(rows: Sequence[dict], people: Sequence[dict]) -> str:
    made = [
        *(("canonical references", model) for model in sorted({row["reference_model"] for row in people})),
        *(("backgrounds", model) for model in sorted({row["background_model"] for row in rows})),
        *(("annotations", model) for model in sorted({row["annotation_model"] for row in rows})),
        ("prompts", "rules of bindbench, from the annotations"),
    ]
    cells = [(part, model if part == "prompts" else _labelled(model)) for part, model in made]
    stand_ins = any(STAND_IN in model for _, model in cells)
    note = (
        "\nThe paper makes references and backgrounds by generative models and annotates with a vision-language model. An embedded "
        "stand-in works offline and is weaker: a reference cut out of the photograph still shows pose, expression and gaze, so "
        "a generator can copy what it should read in the prompt. Figures measured with it have to say so.\n"
    )
    return "## What made each part\n\n" + _markdown_table(("part", "model"), cells) + (note if stand_ins else "")


def _licences(rows: Sequence[dict]) -> str:
    counts = Counter((row["source"], row["licence"]) for row in rows)
    cells = [(source, licence, f"{count:,}") for (source, licence), count in sorted(counts.items())]
    return (
        "## Licences, and what must not be passed on\n\n"
        + _markdown_table(("source", "licence of its photographs", "instances"), cells)
        + "\nThe photographs belong to others. **Do not redistribute** `images/` or parts of it: targets, crops and embedded "
        "references are the photographs' own pixels, and backgrounds and generated references are made from them. CIHP and "
        "LV-MHP-v2 are for non-commercial research; the photographs of COCO and Objects365 are under their uploaders' terms. Where "
        "a licence reads *not stated*, nothing is permitted until you have asked. Tables without pictures (boxes, masks, "
        "annotations, prompts) may be shared only as far as the annotations' own licences allow; others then rebuild the rest from "
        "the photographs' SHA-256 with the same config.\n"
    )


def _sensitive() -> str:
    return (
        "## People in the photographs\n\n"
        "The pictures show real people, who were not asked. Faces are biometric data in many countries: keep the data set on "
        "machines with restricted access, use it to measure generators only, never to recognise, name or profile anyone, and "
        "delete an instance when a person asks for it. Generated pictures of these people must not be published as real. "
        "Annotations describe clothes, pose and expression; names, ethnicity, religion, health and other sensitive traits have no "
        "place in their schema, and words for them are refused. An age is adult or child, or nothing.\n"
    )


def _lengths(rows: Sequence[dict]) -> str:
    groups = [("all", rows)]
    groups += [(f"{n} subjects", [row for row in rows if row["n_subjects"] == n]) for n in (2, 3, 4)]
    cells = []
    for name, group in groups:
        figures = length_statistics([row["words"] for row in group])
        if figures["prompts"]:
            cells.append((name, *(f"{figures[key]:g}" for key in ("prompts", "mean", "min", "max"))))
    return f"## Prompts\n\nLength in words; the paper's mean is {PAPER['words']}.\n\n" + _markdown_table(
        ("instances", "prompts", "mean", "shortest", "longest"), cells
    )


def _checks(rows: Sequence[dict], stages: dict) -> str:
    accepted = sum(row["verdict"] == "accepted" for row in rows)
    text = (
        "## Quality control\n\n"
        f"Each part passed automatic checks, and people can reject it. A person accepted every part of {accepted:,} of "
        f"{_counted(len(rows), 'instance')}; the others were not judged in full.\n"
    )
    cells = [(reason, f"{count:,}") for reason, count in stages["reasons"].items()]
    return text + ("\n" + _markdown_table(("left out for", "parts"), cells) if cells else "")


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A first column of names, the others as they are; what could break a cell is escaped."""
    lines = [header, ["---"] * len(header), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    for sign in "\\`*_|<>[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
