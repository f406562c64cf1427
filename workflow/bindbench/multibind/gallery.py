"""The gallery of binding failures: generated images beside their photographs, by pattern, with the reason in words and numbers.

    python -m bindbench show-multibind-failures --help

Of each pattern and generator the worst few are shown, so that the page has a bounded size whatever was evaluated; an image that
was shown under an earlier pattern is named and not shown again. Each has its confusion matrices and the arrows of who is confused
with whom, which are also written as figures with the pictures in them. The page holds everything it shows.
"""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from ..config.scoring import Figures
from ..figures.confusion_plots import Confusion, Sides, drawing, image_figure, save_image_figure
from ..figures.multibind_plots import Rates, read_rates
from ..figures.pages import html_page, html_table
from ..figures.pictures import Box, data_uri, small_copy, with_letters
from ..files import progress, write_text
from ..tables import read_table, read_tables
from .evaluation_tables import IMAGE_PATTERNS, SLOTS_MATCHED, SUBJECT_OUTCOMES, VALIDITY
from .failures import KINDS, PATTERNS, Case, find_cases
from .generated_tables import GENERATED
from .rates import read_cutoffs
from .similarity_arrays import Evaluation, read_evaluation
from .tables import INSTANCES, SLOTS, SUBJECTS

PICTURE_PX = 560  # longer side of the copies
TITLES = {
    "swap": "Swap",
    "dominance": "Dominance",
    "blending": "Blending",
    "confused": "Other confusion",
    "drift": "Drift",
    "missing": "Missed or not measurable",
    "none": "No failure",
}
MEANINGS = {
    "swap": "The subjects have changed places: each generated one looks like one person, and somebody like another one.",
    "dominance": "Several generated subjects look like the same person.",
    "blending": "A generated subject looks like several people.",
    "confused": "A generated subject looks like another person, and the image is no swap, dominance or blending in that dimension.",
    "drift": "A generated subject no longer looks like its own person, nor like another one.",
    "missing": "Nobody is found in a subject's place, or a specialist sees nothing to measure in who is there.",
    "none": "For comparison: everyone is found, can be measured, is consistent with their own person and confused with nobody.",
}
REASONS = {  # of the tables of matched slots and of validity: in a cell, and in a sentence
    "no_picture": ("no picture", "no picture was generated"),
    "nobody_found": ("nobody found", "nobody is found in the picture"),
    "not_found": ("not found", "nobody is found in its place"),
    "little_overlap": ("not in place", "who is found there overlaps its place too little"),
    "no_face": ("no face seen", "no face is seen"),
    "no_pose": ("no pose seen", "no pose is seen"),
    "few_keypoints": ("few joints seen", "too few joints are seen"),
    "few_common": ("few joints shared", "too few joints are seen in both"),
}
STYLE = """
article { border-top: 2px solid var(--line); padding: .8rem 0 1.4rem; }
article h4 { margin: 0 0 .2rem; font-size: 1.05rem; overflow-wrap: anywhere; }
h3 { margin: 1.6rem 0 .5rem; font-size: 1.1rem; }
.large { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .75rem; margin: .6rem 0; align-items: start;
  max-width: 72rem; }
figure { margin: 0; background: var(--tint); border-radius: .4rem; overflow: hidden; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
figcaption { padding: .25rem .5rem; font-size: .85rem; color: var(--soft); overflow-wrap: anywhere; }
.none { padding: 3rem 1rem; text-align: center; color: var(--soft); }
.matrices { overflow-x: auto; } .matrices img { display: block; max-width: none; }
.reasons { margin: .3rem 0 .6rem; padding-left: 1.2rem; max-width: 66rem; } .reasons li { margin: .15rem 0; }
.uncalibrated { color: var(--tie); font-weight: 600; }
.again { max-width: 66rem; }
td a { display: inline-block; min-width: 1.5rem; }
@media (max-width: 45rem) { .large { grid-template-columns: minmax(0, 1fr); } }
@media print { article { break-inside: avoid; } .matrices img { max-width: 100%; height: auto; } }
"""


class Paths(NamedTuple):
    """Where the tables are: of the data set, and of all generators in their order."""

    instances: Path
    subjects: Path
    generated: Sequence[Path]  # the pictures of each lie in the folder of its name
    matched: Sequence[Path]
    validity: Sequence[Path]
    similarities: Sequence[Path]
    outcomes: Path
    patterns: Path
    thresholds: Path
    rates: Path  # multibind_table.csv


class Shop(NamedTuple):
    """What articles are made from. Rows by generator and instance, or by instance."""

    evaluation: Evaluation
    rates: Rates
    cutoffs: Mapping[str, tuple[float, float]]  # of dimensions that have thresholds
    images: Mapping[tuple[str, str], tuple[dict, Path]]  # row of GENERATED, its table
    table: Path  # of instances; their pictures lie beside it
    instances: Mapping[str, dict]
    subjects: Mapping[str, list[dict]]
    slots: Mapping[tuple[str, str], list[dict]]
    validity: Mapping[tuple[str, str], list[dict]]
    outcomes: Mapping[tuple[str, str], list[dict]]
    patterns: Mapping[tuple[str, str], list[dict]]


def show_failures(paths: Paths, page: Path, folder: Path, settings: Figures) -> None:
    """Writes the page, and into `folder` a figure of each image that it shows: GENERATOR/INSTANCE.svg and .png.

    Raises UserError for a table or picture that is missing, broken or another one, and for tables that do not belong together.
    """
    rates = read_rates(paths.rates)
    dimensions = rates.dimensions[:-1]
    evaluation = read_evaluation(rates.generators, dimensions, paths.matched, paths.validity, paths.similarities)
    rows = _rows(paths, dimensions)
    cases = find_cases(rows["outcomes"], rows["patterns"], rows["slots"], rows["validity"])
    shown = {kind: _worst(found, rates.generators, settings.failure_examples) for kind, found in cases.items()}
    wanted = {case.image for found in shown.values() for case in found}
    shop = _shop(paths, evaluation, rates, rows, wanted)
    articles: dict[tuple[str, str], str] = {}
    Path(folder).mkdir(parents=True, exist_ok=True)
    with drawing():
        for image in progress(sorted(wanted), "examples", unit="image"):
            articles[image] = _article(shop, image, Path(folder), settings)
    body = [_introduction(shop), _contents(rates.generators, cases, len(evaluation.instances), settings)]
    body += _sections(shown, cases, articles)
    write_text(page, html_page("MultiBind: failures of binding", "\n".join(body), STYLE))


def _rows(paths: Paths, dimensions: Sequence[str]) -> dict[str, list[dict]]:
    masks = ["generator", "instance", "slot", "matched", "box", "reason"]  # all but the masks, which are large
    read = {
        "outcomes": read_table(SUBJECT_OUTCOMES, paths.outcomes),
        "patterns": read_table(IMAGE_PATTERNS, paths.patterns),
        "slots": read_tables(SLOTS_MATCHED, list(paths.matched)).select(masks),
        "validity": read_tables(VALIDITY, list(paths.validity)),
    }
    rows = {name: table.to_pylist() for name, table in read.items()}
    return {
        name: [row for row in part if row.get("dimension", dimensions[0]) in dimensions] for name, part in rows.items()
    }


def _worst(cases: Sequence[Case], generators: Sequence[str], count: int) -> list[Case]:
    """The first `count` of each generator, in the generators' order."""
    return [case for name in generators for case in [case for case in cases if case.generator == name][:count]]


def _shop(paths: Paths, evaluation: Evaluation, rates: Rates, rows: dict, wanted: set) -> Shop:
    images = {}
    for table in paths.generated:
        for row in read_table(GENERATED, table).to_pylist():
            images[row["generator"], row["instance"]] = row, Path(table)
    people: dict[str, list[dict]] = {}
    for row in read_table(SUBJECTS, paths.subjects).select(["instance", "slot", "box"]).to_pylist():
        people.setdefault(row["instance"], []).append(row)
    columns = ["instance", "width", "height", "target", "target_sha256", "licence"]
    cutoffs, _ = read_cutoffs(paths.thresholds, evaluation.dimensions)
    values = zip(evaluation.dimensions, cutoffs.consistency, cutoffs.confusion, cutoffs.usable, strict=True)
    grouped: dict[str, dict] = {}
    for name, part in rows.items():
        grouped[name] = {image: [] for image in wanted}
        for row in part:
            if (image := (row["generator"], row["instance"])) in wanted:
                grouped[name][image].append(row)
    return Shop(
        evaluation,
        rates,
        {name: (float(own), float(other)) for name, own, other, usable in values if usable},
        images,
        Path(paths.instances),
        {row["instance"]: row for row in read_table(INSTANCES, paths.instances).select(columns).to_pylist()},
        people,
        *(grouped[name] for name in ("slots", "validity", "outcomes", "patterns")),
    )


# The page -------------------------------------------------------------------------------------------------------------


def _introduction(shop: Shop) -> str:
    notes = []
    for dimension, specialist in zip(shop.evaluation.dimensions, shop.evaluation.specialists, strict=True):
        mark, origin = shop.rates.mark(dimension)
        shown = f'<span class="uncalibrated">{mark}</span>' if mark == "uncalibrated" else escape(mark)
        limits = ""
        if dimension in shop.cutoffs:
            own, other = shop.cutoffs[dimension]
            limits = f"; consistent from Δ {_delta(own)} on to its own person, confused from Δ {_delta(other)} on to another one"
        name, origin = escape(dimension.capitalize()), escape(origin)
        notes.append(f"<li>{name}, measured by {escape(specialist)}. Thresholds: {shown} ({origin}){limits}.</li>")
    return (
        "<p>Generated images in which people are mixed up, beside the photographs that they were to reconstruct. Of each pattern "
        "and generator the worst are shown. The letters are the subjects' slots, from left to right in the photograph; a dashed "
        "box with a question mark is the place of a subject that was not found.</p>\n"
        "<p>Δ is what generation added to the similarity of a generated subject (row) to a real one (column), S_gen − S_gt. On "
        "the diagonal 0 is a perfect copy, and a negative Δ (blue) means that the subject lost its own person's looks; off the "
        "diagonal a positive Δ (red) means that it took on another one's. An orange frame or arrow: confused. A grey line: "
        "consistent. Hatched: not measured.</p>\n"
        f'<ul class="reasons">{"".join(notes)}</ul>'
    )


def _contents(generators: Sequence[str], cases: Mapping[str, list[Case]], n_images: int, settings: Figures) -> str:
    """How many images of each generator show each kind, in any dimension, with links to those that are shown."""
    rows = []
    for name in generators:
        counts = {kind: sum(case.generator == name for case in found) for kind, found in cases.items()}
        cells = [f'<a href="#{kind}-{escape(name)}">{count:,}</a>' if count else "0" for kind, count in counts.items()]
        rows.append([escape(name), *cells])
    shown = "the worst one is" if settings.failure_examples == 1 else f"the worst {settings.failure_examples} are"
    caption = (
        f"Images out of {n_images:,} that show it in any dimension, of all subjects of the generator; {shown} below, of each kind "
        "and generator. An image may show several kinds."
    )
    header = ["generator", *(TITLES[kind].lower() for kind in KINDS)]
    return f"<h2>How many</h2>\n{html_table(caption, header, rows, 'How many images show each kind')}"


def _sections(shown: Mapping[str, list[Case]], cases: Mapping[str, list[Case]], articles: dict) -> list[str]:
    parts, seen = [], {}
    for kind in KINDS:
        parts.append(f'<h2 id="{kind}">{TITLES[kind]}</h2>\n<p>{MEANINGS[kind]}</p>')
        if not shown[kind]:
            parts.append("<p>No image of any generator.</p>")
        for name in dict.fromkeys(case.generator for case in shown[kind]):
            of = [case for case in shown[kind] if case.generator == name]
            total = sum(case.generator == name for case in cases[kind])
            count = f"{len(of)} of {total:,}" if len(of) < total else f"{total:,}"
            parts.append(
                f'<h3 id="{kind}-{escape(name)}">{TITLES[kind]}: {escape(name)} <small>{count} shown</small></h3>'
            )
            for case in of:
                if case.image in seen:
                    where = " and ".join(case.dimensions) if kind not in ("missing", "none") else ""
                    parts.append(
                        f'<p class="again">{escape(case.instance)}{", in " + where if where else ""}: '
                        f'<a href="#{quote("/".join(case.image))}">shown under {TITLES[seen[case.image]]}</a>.</p>'
                    )
                else:
                    seen[case.image] = kind
                    parts.append(articles[case.image])
    return parts


def _anchor(image: tuple[str, str]) -> str:
    return escape("/".join(image))


# One image ------------------------------------------------------------------------------------------------------------


def _article(shop: Shop, image: tuple[str, str], folder: Path, settings: Figures) -> str:
    generator, instance = image
    confusions = _confusions(shop, image)
    sides, copies = _pictures(shop, image)
    figure = image_figure(generator, f"{instance}. {_summary(shop, image)}", sides, confusions)
    drawn = save_image_figure(figure, folder / generator / instance, settings)
    reasons = (
        "".join(f"<li>{sentence}</li>" for sentence in reasons_of(shop, image)) or "<li>Everyone is themselves.</li>"
    )
    name = f"{escape(generator)}: {escape(instance)}"
    target, made = copies
    shown = (
        f'<img src="{data_uri(made)}" alt="{name}, generated, with the subjects that were found" loading="lazy" '
        f'width="{made.width}" height="{made.height}">'
        if made is not None
        else f'<div class="none">{escape(sides.why_none)}</div>'
    )
    described = escape("; ".join(filter(None, map(_described, confusions))))
    svg = base64.b64encode(drawn.encode()).decode()
    return (
        f'<article id="{_anchor(image)}" aria-label="{name}">\n<h4>{name}</h4>\n<p>{escape(_summary(shop, image))}</p>\n'
        f'<div class="large"><figure><img src="{data_uri(target)}" alt="{escape(instance)}, the photograph" loading="lazy" '
        f'width="{target.width}" height="{target.height}"><figcaption>photograph</figcaption></figure>\n'
        f"<figure>{shown}<figcaption>generated by {escape(generator)}</figcaption></figure></div>\n"
        f'<ul class="reasons">{reasons}</ul>\n'
        f'<div class="matrices" tabindex="0" role="region" aria-label="confusion matrices of {name}"><img loading="lazy" '
        f'src="data:image/svg+xml;base64,{svg}" alt="{described}"></div>\n</article>'
    )


def _pictures(shop: Shop, image: tuple[str, str]):
    """The two pictures with letters: as Sides for the figure, and as small pictures for the page."""
    row, table = shop.images[image]
    about = shop.instances[image[1]]
    places = {
        person["slot"]: _share(person["box"], about["width"], about["height"]) for person in shop.subjects[image[1]]
    }
    path = shop.table.parent / about["target"]
    target = with_letters(
        small_copy(path, about["target_sha256"], f"delete {shop.table} and run again", PICTURE_PX), places
    )
    if row["file"] is None:
        return Sides(np.asarray(target), None, row["problem"] or "no picture"), (target, None)
    made = small_copy(table.with_suffix("") / row["file"], row["sha256"], f"delete {table} and run again", PICTURE_PX)
    found = {
        slot["slot"]: _share(slot["box"], row["width"], row["height"]) for slot in shop.slots[image] if slot["matched"]
    }
    made = with_letters(made, found, places)
    return Sides(np.asarray(target), np.asarray(made)), (target, made)


def _share(box: Sequence[float], width: int, height: int) -> Box:
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height


def _confusions(shop: Shop, image: tuple[str, str]) -> list[Confusion]:
    evaluation = shop.evaluation
    at = evaluation.instances.index(image[1]), evaluation.generators.index(image[0])
    numbers = np.flatnonzero(evaluation.exists[at[0]])
    slots = [SLOTS[number] for number in numbers]
    found = []
    for d, dimension in enumerate(evaluation.dimensions):
        part = {row["slot"]: row for row in shop.validity[image] if row["dimension"] == dimension}
        rows = [row for row in shop.outcomes[image] if row["dimension"] == dimension]
        judged = dimension in shop.cutoffs
        found.append(
            Confusion(
                dimension,
                _note(shop, dimension),
                slots,
                evaluation.similarities.delta[(*at, d)][np.ix_(numbers, numbers)],
                _without_row(shop, image, part, rows),
                {slot: _words(part[slot]["reason"])[0] for slot in slots if not part[slot]["valid_true"]},
                [row["slot"] for row in rows if row["outcome"] in ("success", "mixed")] if judged else None,
                [(row["slot"], other) for row in rows for other in row["confused_with"]] if judged else [],
            )
        )
    return found


def _without_row(
    shop: Shop, image: tuple[str, str], validity: Mapping[str, dict], rows: Sequence[dict]
) -> dict[str, str]:
    """Why generated subjects have no row, in two or three words."""
    measured = {row["slot"] for row in rows}
    without = {}
    for slot in shop.slots[image]:
        name = slot["slot"]
        if not slot["matched"]:
            without[name] = _words(slot["reason"])[0]
        elif not validity[name]["valid_true"]:
            without[name] = "real one not measured"
        elif name not in measured:
            without[name] = _words(validity[name]["reason"])[0]
    return without


def _note(shop: Shop, dimension: str) -> str:
    specialist = shop.evaluation.specialists[shop.evaluation.dimensions.index(dimension)]
    mark, _ = shop.rates.mark(dimension)
    if dimension not in shop.cutoffs:
        return f"{specialist}; no thresholds\n"
    own, other = shop.cutoffs[dimension]
    return f"{specialist}; {mark} thresholds:\nown {_delta(own)}, other {_delta(other)}"


def _described(confusion: Confusion) -> str:
    """The matrix for who cannot see it."""
    rows = []
    for slot, values in zip(confusion.slots, confusion.delta, strict=True):
        cells = [f"{name} {_delta(v, 2)}" for name, v in zip(confusion.slots, values, strict=True) if np.isfinite(v)]
        rows.append(f"{slot} to {', '.join(cells)}" if cells else f"{slot} {confusion.rows.get(slot, 'not measured')}")
    return f"Δ of {confusion.dimension}: {'; '.join(rows)}"


# Words ----------------------------------------------------------------------------------------------------------------


def _summary(shop: Shop, image: tuple[str, str]) -> str:
    """Face: swap. Appearance: swap, drift of C."""
    said = []
    patterns = {row["dimension"]: row["patterns"] or [] for row in shop.patterns[image]}
    for dimension in shop.evaluation.dimensions:
        rows = [row for row in shop.outcomes[image] if row["dimension"] == dimension]
        words = [pattern for pattern in PATTERNS if pattern in patterns.get(dimension, [])]
        confused = [row["slot"] for row in rows if row["confused_with"]]
        words += [f"{_listed(confused)} confused"] if confused and not words else []
        drifting = [row["slot"] for row in rows if row["outcome"] == "drift"]
        words += [f"drift of {_listed(drifting)}"] if drifting else []
        said += [f"{dimension.capitalize()}: {', '.join(words)}."] if words else []
    lost = [row["slot"] for row in shop.slots[image] if not row["matched"]]
    said += [f"{_listed(lost)} missed."] if lost else []
    return " ".join(said) or "No failure that thresholds tell."


def reasons_of(shop: Shop, image: tuple[str, str]) -> list[str]:
    """HTML sentences: of each subject and dimension what went wrong, with the deltas that say so."""
    evaluation = shop.evaluation
    at = evaluation.instances.index(image[1]), evaluation.generators.index(image[0])
    sentences = []
    for slot in shop.slots[image]:
        name = slot["slot"]
        if not slot["matched"]:
            sentences.append(f"<b>{name}</b> is missed: {_words(slot['reason'])[1]}.")
            continue
        for row in shop.outcomes[image]:
            if row["slot"] == name and row["outcome"] in ("drift", "replaced", "mixed"):
                index = *at, evaluation.dimensions.index(row["dimension"]), SLOTS.index(name)
                sentences.append(_outcome(row, evaluation.similarities.delta[index], shop.cutoffs[row["dimension"]]))
        blind = {}
        for row in shop.validity[image]:
            if row["slot"] == name and row["valid_true"] and not row["valid_generated"]:
                blind.setdefault(_words(row["reason"])[1], []).append(row["dimension"])
        for why, dimensions in blind.items():
            sentences.append(
                f"<b>{name}</b> cannot be measured in {_listed(dimensions)}: {why} in the generated image."
            )
    return sentences


def _outcome(row: dict, delta: np.ndarray, cutoffs: tuple[float, float]) -> str:
    """delta: (4,), to the real subjects."""
    own, other = cutoffs
    name, dimension = f"<b>{row['slot']}</b>", escape(row["dimension"])
    itself = f"Δ {_delta(row['delta_self'])} to itself"
    known = f"; {row['slot']} and another real person are nearly the same" if row["undiagnosable"] else ""
    if row["outcome"] == "drift":
        nearest = ""
        if row["nearest_other"] is not None:
            nearest = f", Δ {_delta(row['delta_other'])} to {row['nearest_other']}, below {_delta(other)}"
        return (
            f"{name} drifts in {dimension}: it no longer looks like itself ({itself}, below {_delta(own)}) nor like anyone else"
            f" here{f' ({nearest[2:]})' if nearest else ''}{known}."
        )
    others = _listed(
        [
            f"<b>{slot}</b> (Δ {_delta(delta[SLOTS.index(slot)])}, not below {_delta(other)})"
            for slot in row["confused_with"]
        ]
    )
    if row["outcome"] == "mixed":
        return f"{name} looks like {others} in {dimension}, and still like itself ({itself}, not below {_delta(own)}){known}."
    return (
        f"{name} looks like {others} in {dimension}, and no longer like itself ({itself}, below {_delta(own)}){known}."
    )


def _words(reason: str | None) -> tuple[str, str]:
    plain = (reason or "not measured").replace("_", " ")
    return REASONS.get(reason or "", (plain, plain))


def _delta(value: float, decimals: int = 3) -> str:
    """With a sign; a threshold may be infinite."""
    if not np.isfinite(value):
        return "−∞" if value < 0 else "+∞"
    return f"{value:+.{decimals}f}".replace("-", "−") if round(value, decimals) else f"{0:.{decimals}f}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
