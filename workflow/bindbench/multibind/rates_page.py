"""The rates of MultiBind as a page to read: who was found, and a table for each dimension with what its thresholds rest on."""

import math
from html import escape

import numpy as np

from ..config.multibind_scoring import Scoring
from ..figures.pages import html_page, html_table
from ..statistics import Estimate
from .holistic.tabulating import Summary
from .similarity_arrays import Evaluation

# By name of the rate: the heading of its column.
SUBJECT_TITLES = {
    "success": "success",
    "drift": "drift",
    "replaced": "replaced",
    "mixed": "mixed",
    "invalid": "invalid",
}
IMAGE_TITLES = {"swap": "swap", "swap_partial": "partial swap", "dominance": "dominance", "blending": "blending"}
MEANINGS = (
    "Of a subject: <em>success</em>, it is consistent with its own person and confused with nobody; <em>drift</em>, neither;"
    " <em>replaced</em>, confused only; <em>mixed</em>, both. These four add up to 100. <em>Invalid</em>: of the subjects that"
    " were found and can be measured in the photograph, those in whom the specialist sees nothing to measure in the generated"
    " image; they are in no other rate of the dimension. (In <em>any</em>: those in whom at least one specialist sees nothing,"
    " though the others' rates count them.) Of an image with at least"
    " two measured subjects: <em>swap</em>, its subjects have changed places; <em>dominance</em>, several have become one;"
    " <em>blending</em>, one has become several. A partial swap allows subjects that match nobody."
)
WHOLE = (
    "These compare whole pictures and do not see who is who. <em>FID</em>: how far the generated images as a whole lie from the"
    " photographs, 0 for none; its interval is the spread of resamples, not its bias. <em>CLIP-I</em>, <em>DINO</em> and other"
    " similarities: the mean cosine of a generated image with its photograph, 1 for the same. <em>Aesthetic score</em>: of the"
    " generated images alone."
)
FEWER = "*"  # marks a generator without all of the compared subjects
STYLE = ".uncalibrated { color: var(--tie); font-weight: 600; }\nth[scope=row] { white-space: nowrap; }\n"


def rates_page(
    evaluation: Evaluation,
    estimates: dict[str, dict[str, Estimate]],
    numbers: dict[str, dict[str, np.ndarray]],
    same: np.ndarray,
    n_compared: int,
    deciders: list[str],
    marks: list[tuple[str, str]],
    images: Summary,
    settings: Scoring,
) -> str:
    """The page's HTML.

    estimates, numbers: by subset and name, of shape (n_generators, n_dimensions + 1), the last dimension being any.
    same: (n_generators,) bool, who has all n_compared subjects that generators are compared on. deciders: who chose those.
    marks: of each dimension and of any: calibrated, uncalibrated or none, and why or from what. images: figures of whole ones.
    """
    compared, own = estimates["compared"], estimates["own"]
    body = [
        f"<p>Shares in %, with {100 * settings.confidence:g} % intervals by bootstrap over the instances. Generators are"
        f" {_compared_on(evaluation, same, n_compared, deciders)} multibind_table.csv has the rates on all subjects that each"
        " generator has, too. A dash: there is nothing to measure, or the dimension has no"
        f" thresholds.</p>\n<p>{MEANINGS}</p>",
        _found(evaluation, own, numbers, n_compared),
    ]
    names_of = [
        escape(name) + ("" if whole else f" {FEWER}") for name, whole in zip(evaluation.generators, same, strict=True)
    ]
    names = [*evaluation.dimensions, "any"]
    specialists = [f"Measured by {name}" for name in evaluation.specialists] + [
        "A failure in any of the dimensions counts"
    ]
    for dimension, (name, specialist, (mark, origin)) in enumerate(zip(names, specialists, marks, strict=True)):
        title = "Any dimension" if name == "any" else name.capitalize()
        shown = f'<span class="uncalibrated">{mark}</span>' if mark == "uncalibrated" else escape(mark)
        note = f"<p>{escape(specialist)}. Thresholds: {shown} ({escape(origin)}).</p>"
        body.append(f"<h2>{escape(title)}</h2>\n{note}\n{_rates(names_of, compared, numbers, dimension, title)}")
    body.append(_whole_images(evaluation.generators, images))
    return html_page("MultiBind, rates of binding failures", "\n".join(body), STYLE)


def _compared_on(evaluation: Evaluation, same: np.ndarray, n_compared: int, deciders: list[str]) -> str:
    others = [name for name in evaluation.generators if name not in deciders]
    if not n_compared:
        return "not compared: no subject is found in the images of all of them (multibind.scoring.compared_generators)."
    if not others and same.all():
        return f"compared on the {n_compared:,} subjects that all of them have."
    text = f"compared on the {n_compared:,} subjects that every one of {escape(', '.join(deciders))} has."
    if others:
        text += f" Who is missing for {escape(', '.join(others))} takes nobody from the comparison."
    if same.all():
        return text
    return (
        f"{text} A generator with {FEWER} lacks some of these subjects: its rates are of other people than those without the"
        " mark. Paired differences, in multibind_differences.csv, are on the subjects that both have."
    )


def _found(
    evaluation: Evaluation, own: dict[str, Estimate], numbers: dict[str, dict[str, np.ndarray]], n_compared: int
) -> str:
    header = ["generator", "subjects found", "missed, %", "mean IoU, %", "compared"]
    rows = [
        [
            escape(name),
            f"{numbers['own']['matched'][g, 0]:,}",
            *(_share(own[rate], (g, 0)) for rate in ("miss", "mean_iou")),
            f"{numbers['compared']['matched'][g, 0]:,} of {n_compared:,}",
        ]
        for g, name in enumerate(evaluation.generators)
    ]
    caption = f"{len(evaluation.instances):,} instances with {int(evaluation.exists.sum()):,} subjects"
    return f"<h2>Who was found</h2>\n{html_table(caption, header, rows, 'Who was found')}"


def _rates(
    names: list[str],
    compared: dict[str, Estimate],
    numbers: dict[str, dict[str, np.ndarray]],
    dimension: int,
    title: str,
) -> str:
    numbers = numbers["compared"]
    subjects = [
        [
            name,
            f"{numbers['subjects'][g, dimension]:,}",
            *(_share(compared[rate], (g, dimension)) for rate in SUBJECT_TITLES),
            _shift(compared["js"], (g, dimension)),
        ]
        for g, name in enumerate(names)
    ]
    images = [
        [
            name,
            f"{numbers['images'][g, dimension]:,}",
            *(_share(compared[rate], (g, dimension)) for rate in IMAGE_TITLES),
        ]
        for g, name in enumerate(names)
    ]
    return "\n".join(
        [
            html_table(
                "Subjects: shares in %; the Jensen-Shannon shift from 0 to 1, which is log 2",
                ["generator", "subjects", *SUBJECT_TITLES.values(), "JS shift"],
                subjects,
                f"{title}: subjects",
            ),
            html_table(
                "Images with at least two measured subjects: shares in %",
                ["generator", "images", *IMAGE_TITLES.values()],
                images,
                f"{title}: images",
            ),
        ]
    )


def _whole_images(generators: list[str], images: Summary) -> str:
    """Of the images that every generator has; what nothing measured is named with its reason."""
    measured = [measure for measure in images.measures if not measure.reason]
    parts = ["<h2>Whole images</h2>"]
    if measured:
        names, found = [measure.name for measure in measured], images.estimates["compared"]
        rows = [
            [
                escape(generator),
                f"{int(images.images['compared'][names[0]][g]):,}",
                f"{int(images.without[g]):,}",
                *(_cell([float(part[g]) for part in found[name]], 3) for name in names),
            ]
            for g, generator in enumerate(generators)
        ]
        header = ["generator", "images", "without an image", *(measure.title for measure in measured)]
        caption = "Generated images and their photographs, of the instances on which generators are compared"
        parts += [f"<p>{WHOLE}</p>", html_table(caption, header, rows, "Whole images")]
        notes = {measure.title: images.note(measure, "compared", 0) for measure in measured}
        parts += [f"<p>{escape(title)}: {escape(note)}.</p>" for title, note in notes.items() if note]
    lines = [f"<li>{escape(m.title)}: {escape(m.reason)}</li>" for m in images.measures if m.reason]
    return "\n".join(parts + (["<p>Not measured:</p>\n<ul>", *lines, "</ul>"] if lines else []))


def _share(estimate: Estimate, at: tuple[int, int]) -> str:
    return _cell([100 * float(part[at]) for part in estimate], 1)


def _shift(estimate: Estimate, at: tuple[int, int]) -> str:
    return _cell([float(part[at]) / math.log(2) for part in estimate], 3)


def _cell(values: list[float], decimals: int) -> str:
    if math.isnan(values[0]):
        return '<span aria-label="none">–</span>'
    mean, low, high = (f"{value:.{decimals}f}" for value in values)
    return f"{mean}<br><small>{low} to {high}</small>"
