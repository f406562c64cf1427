"""The card of a set of triplets: README.md for publication beside its files, and one HTML page for the report.

Both hold the same facts (card_facts.py); here they become Markdown and HTML. The front matter is that of a Hugging Face
data set card, whose configs name the files of each split.
"""

import base64
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import pyarrow as pa

from ..config.scoring import Figures
from ..errors import UserError
from ..figures.pages import html_page, html_table
from ..files import write_json, write_text
from ..paths import resolve
from ..tables import TRIPLET_REJECTS, TRIPLETS, read_table, read_tables, write_table
from ..vocabulary import Vocabulary
from .card_facts import TEXTS, Cell, Facts, Section, about, example_rows, facts, marked_texts, number
from .controls import read_controls
from .summary import summarise

SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
)
# The section that a plot (figures/triplet_plots.py) belongs to, and what the plot shows to those who cannot see it.
FIGURES = {
    "triplets_accepted": ("Rejects", "Accepted and rejected proposals of each construction, by reason"),
    "triplets_lengths": ("Controls", "Histogram of the lengths of each construction, by target band"),
    "triplets_distances": ("Controls", "Histogram of the binding distances of each construction, by target window"),
    "triplets_words": ("Words", "The most frequent attributes and objects of each construction against the cap"),
    "triplets_families": ("Words", "Share of each attribute family in each construction"),
}
STYLE = """
.figure { margin: 1rem 0; } .figure img { width: 100%; max-width: 66rem; height: auto; background: #fff; }
pre { overflow-x: auto; background: var(--tint); padding: .8rem 1rem; border-radius: .4rem; font-size: .85rem; }
.scroll { margin: 0 0 1.2rem; }
section td, section thead th { text-align: left; min-width: 5rem; }
section thead th { white-space: normal; vertical-align: bottom; }
.numbers td, .numbers thead th:not(:first-child) { text-align: right; }
fieldset { border: 0; padding: 0; margin: 0; min-width: 0; } legend { padding: 0; color: var(--soft); }
fieldset > label { margin: 0 1.2rem .4rem 0; display: inline-block; }
.group article { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .9rem; margin: 0 0 .8rem; }
.group h4 { margin: 0 0 .3rem; font-size: .88rem; } .group h4 small { font-weight: 400; white-space: normal; }
dl { display: grid; grid-template-columns: 9.5rem 1fr; gap: .15rem .8rem; margin: 0; } dt { color: var(--soft); }
dd { margin: 0; } dd strong { text-decoration: underline solid var(--wrong) 2px; text-underline-offset: .18em; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; } dd { margin: 0 0 .3rem; } }
@media print { .group article { break-inside: avoid; } }
"""


def write_cards(
    splits: list[Path],
    rejects: list[Path],
    resources: str,
    saber: Vocabulary,
    settings: Figures,
    card: Path,
    summary_path: Path,
    all_rejects: Path,
    page: Path,
    figures: Path,
) -> None:
    """Writes the summary as JSON, all rejects as one table, the figures, the page and the card.

    splits: tables of TRIPLETS named by their split. rejects: of each shard. resources: folder of the lists.
    Raises UserError for a table that is missing or broken.
    """
    from ..figures.triplet_plots import plot_triplets

    tables = {path.stem: read_table(TRIPLETS, path) for path in splits}
    rejected = read_tables(TRIPLET_REJECTS, rejects)
    write_table(TRIPLET_REJECTS, rejected, all_rejects)
    families = read_controls(resolve(resources)).families
    sizes = {split: len(table) for split, table in tables.items()}
    summary = summarise(pa.concat_tables(tables.values()), rejected, sizes, families, saber)
    write_json(summary_path, summary)
    plot_triplets(summary, figures, settings)
    write_page(summary, figures, page)
    write_card(summary, card)


def write_card(summary: dict, path: Path, files: dict[str, dict[str, str]] | None = None) -> None:
    """Writes README.md. summary: of summarise.

    files: path of each split, relative to the card, by config; the first config is the default one. Without it the
    tables lie beside the card: train.parquet and so on.
    """
    files = files or {"default": {split: f"{split}.parquet" for split in summary["splits"]}}
    parts = [front_matter(summary, files), f"# {title_of(summary)}\n"]
    parts += [_markdown(section) for section in facts(summary)]
    parts.append(_markdown_examples(summary))
    write_text(path, "\n".join(parts))


def write_page(summary: dict, figures: Path, path: Path) -> None:
    """Writes the HTML page, with everything in it. figures: the folder that plot_triplets drew into.

    Raises UserError when a figure is missing.
    """
    pictures: dict[str, list[str]] = {}
    for name, (section, alternative) in FIGURES.items():
        pictures.setdefault(section, []).append(_picture(Path(figures) / f"{name}.svg", alternative))
    body = [_html(section, pictures.get(section.title, [])) for section in facts(summary)]
    body.append(_html_examples(summary))
    write_text(path, html_page(title_of(summary), "\n".join(body), STYLE))


def title_of(summary: dict) -> str:
    return f"bindbench triplets: {number(summary['triplets'])} text triplets for attribute-object binding"


def front_matter(summary: dict, files: dict[str, dict[str, str]]) -> str:
    """The YAML that Hugging Face reads; it ends with a line of its own."""
    import yaml

    count = max(sum(summary["splits"].values()), 0)
    tags = [
        "attribute-object binding",
        "compositionality",
        "hard negatives",
        "triplets",
        "sentence-transformers",
        "synthetic",
    ]
    header = {
        "pretty_name": "bindbench triplets",
        "license": "apache-2.0",
        "language": ["en"],
        "task_categories": ["sentence-similarity", "feature-extraction"],
        "size_categories": [next((name for limit, name in SIZES if count < limit), "100M<n<1B")],
        "tags": tags,
        "configs": [
            {
                "config_name": config,
                **({"default": True} if place == 0 else {}),
                "data_files": [{"split": split, "path": name} for split, name in paths.items()],
            }
            for place, (config, paths) in enumerate(files.items())
        ],
    }
    return f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=120)}---\n"


# Markdown.


def _markdown(section: Section) -> str:
    lines = [f"## {section.title}\n"]
    lines += [f"{_markdown_text(paragraph)}\n" for paragraph in section.paragraphs]
    lines += [_markdown_table(table) for table in section.tables]
    if section.code:
        lines.append(f"```python\n{section.code}```\n")
    return "\n".join(lines)


def _markdown_table(table: Facts) -> str:
    rule = ["---", *("---:" if table.numbers else "---" for _ in table.header[1:])]
    rows = [[_markdown_text(cell) for cell in row] for row in [table.header, *table.rows]]
    lines = [f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]]]
    return f"{_markdown_text(table.caption)}\n\n" + "\n".join(lines) + "\n"


def _markdown_text(cell: Cell) -> str:
    if isinstance(cell, str):
        return _with_code(cell, _markdown_escape, lambda code: f"`{code}`")
    return "".join(f"**{_markdown_escape(text)}**" if moved else _markdown_escape(text) for text, moved in cell)


def _markdown_escape(text: str) -> str:
    return " ".join(re.sub(r"([\\`*_|<>\[\]~])", r"\\\1", text).splitlines())


def _with_code(text: str, plain: Callable[[str], str], code: Callable[[str], str]) -> str:
    """Writes what stands between backticks by `code` and everything else by `plain`."""
    pieces = text.split("`")
    return "".join(code(piece) if place % 2 else plain(piece) for place, piece in enumerate(pieces))


def _markdown_examples(summary: dict) -> str:
    lines = ["## Random examples\n", "Drawn with a fixed seed, not chosen.\n"]
    for name, part in summary["constructions"].items():
        lines.append(f"<details><summary>{name}: {len(part['random'])} examples</summary>\n")
        for example in part["random"]:
            table = Facts(
                f"`{example['example']}` {about(example)}", ["", "text"], example_rows(example), numbers=False
            )
            lines.append(_markdown_table(table))
        lines.append("</details>\n")
    return "\n".join(lines)


# HTML.


def _html(section: Section, pictures: list[str]) -> str:
    parts = [f"<section>\n<h2>{escape(section.title)}</h2>"]
    parts += [f"<p>{_html_text(paragraph)}</p>" for paragraph in section.paragraphs]
    for table in section.tables:
        rows = [[_html_text(cell) for cell in row] for row in table.rows]
        html = html_table(table.caption, table.header, rows)
        parts.append(f'<div class="numbers">{html}</div>' if table.numbers else html)
    parts += pictures
    if section.code:
        parts.append(f"<pre><code>{escape(section.code)}</code></pre>")
    return "\n".join([*parts, "</section>"])


def _html_text(cell: Cell) -> str:
    if isinstance(cell, str):
        return _with_code(cell, escape, lambda code: f"<code>{escape(code)}</code>")
    return "".join(f"<strong>{escape(text)}</strong>" if moved else escape(text) for text, moved in cell)


def _picture(path: Path, alternative: str) -> str:
    """A plot as an image that holds its own data: the names inside one SVG do not meet those of another."""
    try:
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); run snakemake to make it") from None
    return f'<div class="figure"><img src="data:image/svg+xml;base64,{data}" alt="{escape(alternative)}"></div>'


def _html_examples(summary: dict) -> str:
    """All random examples; the choice of a construction hides the others without a script."""
    names = list(summary["constructions"])
    choices = ['<label><input type="radio" name="construction" checked> all</label>']
    choices += [f'<label><input type="radio" name="construction" id="only-{name}"> {name}</label>' for name in names]
    rules = "\n".join(f"fieldset:has(#only-{name}:checked) .group:not(.{name}) {{ display: none; }}" for name in names)
    groups = []
    for name in names:
        articles = "\n".join(map(_html_example, summary["constructions"][name]["random"]))
        groups.append(f'<div class="group {name}">\n<h3>{name}</h3>\n{articles}\n</div>')
    return (
        "<section>\n<h2>Random examples</h2>\n<p>Drawn with a fixed seed, not chosen. Underlined bold words moved.</p>\n"
        f"<style>{rules}</style>\n<fieldset>\n<legend>Show</legend>\n"
        + "\n".join([*choices, *groups])
        + "\n</fieldset>\n</section>"
    )


def _html_example(example: dict) -> str:
    texts = "".join(
        f"<dt>{label}</dt><dd>{_html_text(text)}</dd>"
        for label, text in zip(TEXTS.values(), marked_texts(example), strict=True)
    )
    return f"<article><h4>{escape(example['example'])} <small>{escape(about(example))}</small></h4><dl>{texts}</dl></article>"
