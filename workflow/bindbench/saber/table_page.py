"""Table 2 as a page to read: our values with their intervals, and apart from them what is known of the paper's."""

import csv
from html import escape
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..figures.pages import html_page, html_table
from ..statistics import Estimate

REFERENCE_COLUMNS = ("model", "protocol", "pairing", "value", "upper", "known", "place")
PAIRING_TITLES = {
    "text_text": "text → text",
    "text_image": "text → image",
    "image_text": "image → text",
    "image_image": "image → image",
    "mean": "mean",
    "": "",
}
PROTOCOL_TITLES = {
    "mcq": "Multiple choice: accuracy, %",
    "retrieval_independent": "Retrieval, independent: mAP, %",
    "retrieval_nested": "Retrieval, nested: mAP, %",
    "subset_above_exact": "Containment: subset above the exact match, % of comparisons",
    "subset_above_superset": "Containment: subset above a superset, % of comparisons",
    "top_four": "The four candidates hold the top four places, % of independent queries",
}

_NONE = '<span aria-label="none">–</span>'


def table2_page(
    models: list[str],
    n_questions: dict[str, int],
    estimates: dict[str, Estimate],
    chance: dict[str, float],
    tied: np.ndarray,
    confidence: float,
    reference: list[dict[str, str]],
    gains: dict[str, dict[str, tuple[str, Estimate]]],
) -> str:
    """The page's HTML.

    n_questions, estimates, chance: by protocol; estimates of shape (n_models, 5), four pairings and their mean.
    tied: (n_models, 5) shares of multiple choice.
    gains: by protocol and finetuned model: its base, and the difference to it, estimates of shape (5,).
    """
    interval = f"{100 * confidence:g} % intervals"
    body = [
        f"<p>Averaged over questions of one size, then over sizes, then over pairings; {interval} by bootstrap over "
        "questions, nested chains drawn whole. The best value of each column is bold. A dash: the model lacks the "
        "modality, or there is no question. Ties: questions, in %, in which candidate 1 only equals the best of the "
        "others; they count as wrong.</p>"
    ]
    if any(gains.values()):
        body.append(
            "<p>Below a finetuned model's values stands how many percentage points they are above those of the embedder that "
            "was finetuned, with the interval of this difference: both models answer the same questions of each resample.</p>"
        )
    for protocol, estimate in estimates.items():
        title = PROTOCOL_TITLES[protocol]
        rows = [["chance", *[_value(chance[protocol])] * estimate.mean.shape[1]]]
        ties = tied if protocol == "mcq" else np.full(estimate.mean.shape, np.nan)
        for model, name in enumerate(models):
            base, gain = gains[protocol].get(name, (None, None))
            shown = escape(name) + (f"<br><small>compared with {escape(base)}</small>" if base else "")
            rows.append([shown, *value_cells(estimate, model, ties, gain)])
        for name, (base, gain) in gains[protocol].items():
            if name not in models:  # the mean of several seeds
                rows.append([f"{escape(name)}<br><small>minus {escape(base)}</small>", *_gain_cells(gain)])
        header = ["model", *list(PAIRING_TITLES.values())[: estimate.mean.shape[1]]]
        body.append(
            f"<h2>{escape(title)}</h2>\n{html_table(f'{n_questions[protocol]:,} questions', header, rows, title)}"
        )
    body.append(_reference_section(reference))
    return html_page("SABER, Table 2", "\n".join(body))


def value_cells(
    estimate: Estimate, model: int, ties: np.ndarray | None = None, gain: Estimate | None = None
) -> list[str]:
    """One model's row, without its name: the value, bold where it is the best of its column, and below it the interval, the
    difference to another model and the ties.

    estimate: of shape (n_models, n_columns); ties: shares of the same shape; gain: of shape (n_columns,).
    """
    best = [_value(max(column[~np.isnan(column)], default=np.nan)) for column in estimate.mean.T]
    cells = []
    for column, (mean, low, high) in enumerate(zip(*(part[model] for part in estimate), strict=True)):
        if np.isnan(mean):
            cells.append(_NONE)
            continue
        value = _value(mean)
        cell = f"<strong>{value}</strong>" if value == best[column] else value
        cell += f"<br><small>{_value(low)} to {_value(high)}</small>"
        if gain is not None and not np.isnan(gain.mean[column]):
            cell += f'<br><small class="gain">{_gain(*(float(part[column]) for part in gain))}</small>'
        if ties is not None and ties[model, column] > 0:
            cell += f"<br><small>ties {_value(ties[model, column])}</small>"
        cells.append(cell)
    return cells


def _gain_cells(gain: Estimate) -> list[str]:
    return [
        _NONE if np.isnan(part[0]) else f'<small class="gain">{_gain(*map(float, part))}</small>'
        for part in zip(*gain, strict=True)
    ]


def _value(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.2f}"


def _gain(mean: float, low: float, high: float) -> str:
    """Such as +3.10 (+1.00 to +5.20); where a page lets it break, only before the bracket."""
    first, *bounds = (f"{100 * value:+.2f}".replace("-", "\u2212") for value in (mean, low, high))
    return f"{first} ({bounds[0]}&nbsp;to&nbsp;{bounds[1]})"


def _reference_section(reference: list[dict[str, str]]) -> str:
    rows = [
        [
            escape(row["model"]),
            escape(PROTOCOL_TITLES.get(row["protocol"], row["protocol"])),
            escape(PAIRING_TITLES.get(row["pairing"], row["pairing"])),
            escape(row["value"] + (f" to {row['upper']}" if row["upper"] else "")),
            escape(f"{row['known']}, {row['place']}"),
        ]
        for row in reference
        if row["protocol"] in PROTOCOL_TITLES
    ]
    return (
        "<h2>The paper's own values, not comparable with those above</h2>\n"
        "<p>They were measured by the authors of SABER on other images (GPT Image 2) of other questions, with other "
        "models. Only values that the paper's text states, or that follow from it by an addition or a mean, are "
        "known; its tables are not.</p>\n"
        + html_table("Known values of the paper", ["model", "protocol", "pairing", "value", "where in the paper"], rows)
    )


def read_reference(path: Path) -> list[dict[str, str]]:
    """Known values of the paper, by the names in REFERENCE_COLUMNS. Raises UserError."""
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != REFERENCE_COLUMNS:
                raise UserError(f"{path}: row 1: must be {','.join(REFERENCE_COLUMNS)}")
            return list(reader)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
