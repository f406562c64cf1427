"""Plots of SABER's tables: accuracy and mAP by the number of objects, accuracy by attribute category and candidate kind.

They are drawn from the CSV tables alone, so a plot never says anything that a table does not. Models differ by colour
(Okabe and Ito's, told apart by colour-blind readers), marker and line, so that they can also be read in black and white.
The same tables give the same bytes: no dates, fixed ids.
"""

import math
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..config.scoring import Figures
from ..files import written_whole
from ..tables import PAIRINGS
from .csv_tables import not_whole, rows_of

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A5A2B")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
GREY = "#5b6472"
RC = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "svg.hashsalt": "bindbench",
    "svg.fonttype": "path",
}
BOUNDS = ("value", "low", "high")
# The column that, with the model and the pairing, names a row of each table.
TABLES = {
    "table17": "statistic",
    "table18": "statistic",
    "table19": "statistic",
    "by_category": "category",
    "by_candidate_kind": "kind",
}
TITLES = {name: name.replace("_", " → ") for name in PAIRINGS}


class Curve(NamedTuple):
    """One model in one panel; NaN where a cell is empty."""

    places: np.ndarray  # (n,) numbers of objects, or row numbers of a breakdown
    value: np.ndarray  # (n,) percent
    low: np.ndarray
    high: np.ndarray


def plot_saber(tables: Path, figures: Path, settings: Figures) -> None:
    """Draws every figure from the folder with SABER's CSV tables into another folder, as PNG and SVG.

    Raises UserError when a table is missing, not whole, or without a model that another one has.
    """
    check_models({tables / f"saber_{name}.csv": key for name, key in TABLES.items()})
    plot_accuracy_by_n(tables / "saber_table17.csv", figures / "saber_accuracy_by_n", settings)
    retrieval = tables / "saber_table18.csv", tables / "saber_table19.csv"
    plot_retrieval_by_n(*retrieval, figures / "saber_retrieval_by_n", settings)
    plot_by_category(tables / "saber_by_category.csv", figures / "saber_by_category", settings)
    plot_candidate_kinds(tables / "saber_by_candidate_kind.csv", figures / "saber_candidate_kinds", settings)


def plot_accuracy_by_n(table: Path, output: Path, settings: Figures) -> None:
    """Multiple-choice accuracy by N, one panel per pairing. output: path without ending; Raises UserError."""
    with rc_context(RC):
        figure = Figure(figsize=(9, 6.2), layout="constrained")
        axes = figure.subplots(2, 2, sharex=True, sharey=True)
        models = _by_n_panels(list(axes.flat), table, "accuracy (%)")
        for panel in axes[0]:
            panel.set_xlabel("")
        for panel in axes[:, 1]:
            panel.set_ylabel("")
        figure.suptitle("Multiple choice on SABER, by number of objects", fontweight="bold", x=0.01, ha="left")
        _legend(figure, models)
        _save(figure, output, settings)


def plot_retrieval_by_n(independent: Path, nested: Path, output: Path, settings: Figures) -> None:
    """Mean average precision by N: independent queries above, nested ones below, one column per pairing."""
    with rc_context(RC):
        figure = Figure(figsize=(12, 6), layout="constrained")
        axes = figure.subplots(2, 4, sharex=True, sharey=True)
        models: dict[str, None] = {}
        for row, (table, name) in enumerate(((independent, "independent"), (nested, "nested"))):
            models |= _by_n_panels(list(axes[row]), table, f"{name}: mAP (%)")
            for column, panel in enumerate(axes[row]):
                panel.set_xlabel("" if row == 0 else panel.get_xlabel())
                panel.set_ylabel("" if column else panel.get_ylabel())
                panel.set_title("" if row else panel.get_title())
        figure.suptitle("Large-gallery retrieval on SABER, by number of objects", fontweight="bold", x=0.01, ha="left")
        _legend(figure, models)
        _save(figure, output, settings)


def plot_by_category(table: Path, output: Path, settings: Figures) -> None:
    """Multiple-choice accuracy by attribute category, one panel per pairing."""
    title = "Multiple choice on SABER, by category of the attributes"
    _breakdown_figure(table, "category", title, "accuracy (%)", 25, output, settings)


def plot_candidate_kinds(table: Path, output: Path, settings: Figures) -> None:
    """How often the right candidate is above the wrong one of each kind, one panel per pairing."""
    title = "The right candidate above a wrong one on SABER, by kind of the wrong one"
    _breakdown_figure(table, "kind", title, "of questions (%)", 50, output, settings)


def _by_n_panels(panels: list[Axes], path: Path, label: str) -> dict[str, None]:
    """Draws one panel per pairing; returns the models in their order."""
    rows = read_csv(path, "statistic")
    sizes = [int(name) for name in rows[0] if name.isdigit()]
    models = dict.fromkeys(row["model"] for row in rows if row["pairing"])
    cells = {(row["model"], row["pairing"], row["statistic"]): row for row in rows}
    chance = [_number(row[str(n)]) for row in rows if not row["pairing"] for n in sizes]
    for panel, pairing in zip(panels, PAIRINGS, strict=True):
        _prepare(panel, TITLES[pairing])
        panel.plot(sizes, chance, color=GREY, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
        drawn = False
        for place, model in enumerate(models):
            parts = [np.array([_number(cells[model, pairing, s][str(n)]) for n in sizes]) for s in BOUNDS]
            curve = Curve(np.array(sizes), *parts)
            drawn |= _draw_curve(panel, curve, place)
        if not drawn:
            _say_empty(panel)
        panel.set(xlabel="objects in the query (N)", ylabel=label, xticks=sizes, ylim=(-3, 103))
        panel.tick_params(labelbottom=True)
    return models


def _draw_curve(panel: Axes, curve: Curve, place: int) -> bool:
    """A line with its interval band, and bars where a band would have no width. Returns whether there is anything."""
    present = np.isfinite(curve.value)
    style = _style(place)
    if present.sum() > 1:
        panel.fill_between(curve.places, curve.low, curve.high, color=style["color"], alpha=0.16, linewidth=0)
        panel.plot(curve.places, curve.value, **style, zorder=3)
    elif present.any():
        _draw_bars(panel, curve, place, 0.0, vertical=True)
    return bool(present.any())


def _breakdown_figure(
    path: Path, what: str, title: str, label: str, chance: float, output: Path, settings: Figures
) -> None:
    rows = read_csv(path, what)
    names = list(dict.fromkeys(row[what] for row in rows))
    models = dict.fromkeys(row["model"] for row in rows)
    cells = {(row["model"], row["pairing"], row[what]): row for row in rows}
    height = 1.9 + len(names) * max(0.32, 0.14 * len(models))
    with rc_context(RC):
        figure = Figure(figsize=(12, height), layout="constrained")
        axes = figure.subplots(1, 4, sharex=True, sharey=True)
        for panel, pairing in zip(axes, PAIRINGS, strict=True):
            _prepare(panel, TITLES[pairing], grid="x")
            panel.axvline(chance, color=GREY, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
            drawn = False
            for place, model in enumerate(models):
                parts = [np.array([_number(cells[model, pairing, name][s]) for name in names]) for s in BOUNDS]
                curve = Curve(np.arange(len(names)), *parts)
                offset = 0.7 * ((place + 0.5) / len(models) - 0.5)
                drawn |= _draw_bars(panel, curve, place, offset, vertical=False)
            if not drawn:
                _say_empty(panel)
            panel.set(xlabel=label, xlim=(-3, 103), yticks=range(len(names)), ylim=(len(names) - 0.5, -0.5))
            panel.set_yticklabels([name.replace("_", " ") for name in names])
            for edge in np.arange(len(names) - 1) + 0.5:
                panel.axhline(edge, color="#e3e7ee", linewidth=0.8, zorder=0)
        figure.suptitle(title, fontweight="bold", x=0.01, ha="left")
        _legend(figure, models)
        _save(figure, output, settings)


def _draw_bars(panel: Axes, curve: Curve, place: int, offset: float, vertical: bool) -> bool:
    """Points with interval bars, moved by `offset` so that models stand beside each other."""
    present = np.isfinite(curve.value)
    if not present.any():
        return False
    places, value = curve.places[present] + offset, curve.value[present]
    # Rounding in the table may put a bound past its value by less than the last digit.
    bars = np.maximum([value - curve.low[present], curve.high[present] - value], 0)
    style = {**_style(place), "linestyle": "none", "capsize": 2.5, "elinewidth": 1.2, "zorder": 3}
    if vertical:
        panel.errorbar(places, value, yerr=bars, **style)
    else:
        panel.errorbar(value, places, xerr=bars, **style)
    return True


def _style(place: int) -> dict:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place % len(LINES)],
        "markersize": 5,
        "linewidth": 1.6,
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
    }


def _prepare(panel: Axes, title: str, grid: str = "y") -> None:
    panel.set_title(title)
    panel.grid(axis=grid, color="#e3e7ee", linewidth=0.8)
    panel.set_axisbelow(True)


def _say_empty(panel: Axes) -> None:
    text = "no model measured here\nhas both modalities"
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", color=GREY)


def _legend(figure: Figure, models: dict[str, None]) -> None:
    handles = [Line2D([], [], label=model, **_style(place)) for place, model in enumerate(models)]
    handles.append(Line2D([], [], color=GREY, linewidth=1, linestyle=(0, (1, 1.5)), label="chance"))
    figure.legend(handles=handles, loc="outside right upper", frameon=False, handlelength=3.2)


def _save(figure: Figure, output: Path, settings: Figures) -> None:
    FigureCanvasAgg(figure)
    for ending, metadata in ((".png", {"Software": None}), (".svg", {"Date": None, "Creator": None})):
        with written_whole(output.with_name(output.name + ending)) as temporary:
            figure.savefig(temporary, format=ending[1:], dpi=settings.dpi, metadata=metadata, facecolor="white")


def read_csv(path: Path, key: str) -> list[dict[str, str]]:
    """Rows of a CSV table of ours; `key`: the column that, with model and pairing, names a row.

    Raises UserError when it is missing or not whole.
    """
    rows = rows_of(path)
    if not rows or not _is_whole(rows, key):
        raise not_whole(path)
    return rows


def _is_whole(rows: list[dict[str, str]], key: str) -> bool:
    """Whether the columns are there, hold numbers, and every model has the same rows in every pairing, once.

    A table by N also has one row of chance, without a pairing; only there the rows' names are known beforehand.
    """
    numbers = [name for name in rows[0] if name and name.isdigit()] if key == "statistic" else list(BOUNDS)
    if not numbers or any(not {"model", "pairing", key, *numbers} <= row.keys() for row in rows):
        return False
    if any(None in row or None in row.values() or not all(_is_number(row[name]) for name in numbers) for row in rows):
        return False
    found = [(row["model"], row["pairing"], row[key]) for row in rows if row["pairing"]]
    models = {model for model, _, _ in found}
    names = BOUNDS if key == "statistic" else {name for _, _, name in found}
    wanted = set(product(models, (*PAIRINGS, "mean"), names))
    chance = len(rows) - len(found)
    return bool(models) and chance == (key == "statistic") and len(found) == len(wanted) and set(found) == wanted


def check_models(tables: dict[Path, str]) -> None:
    """Raises UserError for a table that lacks models of another one: it was cut between two of them.

    tables: the key column of each, as for read_csv.
    """
    models = {path: {row["model"] for row in read_csv(path, key) if row["pairing"]} for path, key in tables.items()}
    everyone = set.union(*models.values())
    for path, present in models.items():
        if present != everyone:
            raise not_whole(path)


def _is_number(cell: str) -> bool:
    try:
        return not cell or math.isfinite(float(cell))
    except ValueError:
        return False


def _number(cell: str) -> float:
    return float(cell) if cell else np.nan
