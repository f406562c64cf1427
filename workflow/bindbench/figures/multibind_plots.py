"""Plots of MultiBind's tables: rates by generator and dimension with their intervals, and who is confused with whom by place.

They are drawn from multibind_table.csv and the table of outcomes alone. Every row of points has its generator's name; dimensions
differ by colour (Okabe and Ito's, told apart by colour-blind readers) and marker. A hollow marker is a rate on thresholds that
are not made from labels of people. Rates are of the compared subjects. The same tables give the same bytes.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..config.scoring import Figures
from .confusion_plots import draw_slots, draw_tie
from .csv_tables import not_whole, rows_of
from .plots import COLOURS, GREY, MARKERS, RC, _number, _prepare, _save

NAMES = ("multibind_subjects", "multibind_images", "multibind_missed", "multibind_confusions")
ANY = "any"
SUBSET = "compared"
SUBJECT_RATES = {"success": "success", "drift": "drift", "replaced": "replaced", "mixed": "mixed"}
IMAGE_RATES = {"swap": "swap", "dominance": "dominance", "blending": "blending"}
MISSED_RATES = {"miss": "missed, of all subjects", "invalid": "invalid, of the subjects found"}
OF_THE_GENERATOR = ("miss",)  # the same in every dimension
# A dimension keeps its colour and marker whatever others are configured.
PLACES = {"face": 0, "appearance": 1, "pose": 2, "expression": 3, ANY: 6}
COLUMNS = (
    "generator",
    "subset",
    "dimension",
    "specialist",
    "thresholds",
    "thresholds_from",
    "subjects",
    "images",
    "same_subjects",
)
ENDS = ("", "_low", "_high")


class Rates(NamedTuple):
    """The rows of multibind_table.csv on the compared subjects, by generator and dimension; both in the table's order."""

    rows: dict[tuple[str, str], dict[str, str]]
    generators: list[str]
    dimensions: list[str]  # the last one is any

    def mark(self, dimension: str) -> tuple[str, str]:
        """calibrated, uncalibrated or none; and from what, or why there are none."""
        row = self.rows[self.generators[0], dimension]
        return row["thresholds"], row["thresholds_from"]


def plot_multibind(table: Path, outcomes: Sequence[dict], folder: Path, settings: Figures) -> None:
    """Draws every figure into a folder, as PNG and SVG. NAMES: the files, without ending.

    table: multibind_table.csv. outcomes: rows with generator, dimension, slot, compared, outcome and confused_with, as in the
    table of subject outcomes. Raises UserError when the CSV is missing or not whole.
    """
    rates, folder = read_rates(table), Path(folder)
    with rc_context(RC):
        for name, titles, heading, counted in (
            (NAMES[0], SUBJECT_RATES, "what became of the generated subjects", "subjects"),
            (NAMES[1], IMAGE_RATES, "patterns of the generated images", "images"),
            (NAMES[2], MISSED_RATES, "subjects that could not be measured", ""),
        ):
            _save(rates_figure(rates, titles, f"MultiBind: {heading}", counted), folder / name, settings)
        _save(confusions_figure(rates, outcomes), folder / NAMES[3], settings)


def read_rates(path: Path) -> Rates:
    """Raises UserError when the table is missing or not whole."""
    rows = rows_of(path)
    try:
        found = {(row["generator"], row["dimension"]): row for row in rows if row["subset"] == SUBSET}
        generators, dimensions = (list(dict.fromkeys(key[part] for key in found)) for part in range(2))
        names = [name + end for name in (*SUBJECT_RATES, *IMAGE_RATES, *MISSED_RATES) for end in ENDS]
        whole = bool(found) and set(found) == set(product(generators, dimensions)) and dimensions[-1] == ANY
        for row in found.values():
            whole &= None not in row.values() and all(name in row for name in COLUMNS)
            whole &= all(math.isfinite(float(row[name] or 0)) for name in (*names, "subjects", "images"))
    except (KeyError, TypeError, ValueError):  # a column or a cell is missing, or no number
        whole = False
    if not whole:
        raise not_whole(path)
    return Rates(found, generators, dimensions)


# Rates ----------------------------------------------------------------------------------------------------------------


def rates_figure(rates: Rates, titles: Mapping[str, str], heading: str, counted: str) -> Figure:
    """A panel for each rate: a row for each generator, in it a point with its interval for each dimension.

    titles: of the panels, by name of the rate. counted: the column that says how many the rates are over; empty: rates that rest
    on no thresholds, each panel over its own.
    """
    generators, dimensions = rates.generators, rates.dimensions
    drawn = [name for name in dimensions if rates.mark(name)[0] != "none" or not counted]
    height = 1.7 + len(generators) * max(0.5, 0.13 * len(drawn))
    figure = Figure(figsize=(3.1 + 2.35 * len(titles), height), layout="constrained")
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for panel, (rate, title) in zip(panels, titles.items(), strict=True):
        _prepare(panel, title, grid="x")
        alone = rate in OF_THE_GENERATOR
        for place, dimension in enumerate([ANY] if alone else drawn):
            offset = 0.0 if alone else 0.72 * ((place + 0.5) / len(drawn) - 0.5)
            _draw_rate(panel, rates, rate, dimension, offset)
        panel.set(xlabel=f"% of the {_what(rate)}", xlim=(-4, 104), xticks=range(0, 101, 25))
        panel.set(yticks=range(len(generators)), ylim=(len(generators) - 0.5, -0.5))
        panel.tick_params(axis="y", length=0)
        for edge in np.arange(len(generators) - 1) + 0.5:
            panel.axhline(edge, color="#e3e7ee", linewidth=0.8, zorder=0)
    panels[0].set_yticklabels([name + _over(rates.rows[name, ANY], counted) for name in generators], fontsize=8)
    doubt = _doubt(rates) if counted else ""
    figure.suptitle(f"{heading}{doubt}", fontweight="bold", x=0.01, ha="left")
    handles = [_handle(rates, dimension) for dimension in dimensions]
    if not counted:
        handles = [Line2D([], [], linestyle="none", label=_name(name), **_style(name, "")) for name in dimensions]
    figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=8, handlelength=1.6)
    return figure


def _over(row: dict[str, str], counted: str) -> str:
    """How many the rates of a generator are over, and whether they are of other people than those of most generators."""
    if not counted:
        return ""
    return f"\n{int(row[counted]):,} {counted}" + ("" if row["same_subjects"] == "true" else "\nlacks some subjects")


def _what(rate: str) -> str:
    return "images" if rate in IMAGE_RATES else "subjects"


def _draw_rate(panel: Axes, rates: Rates, rate: str, dimension: str, offset: float) -> None:
    parts = np.array(
        [[_number(rates.rows[name, dimension][rate + end]) for end in ENDS] for name in rates.generators], float
    )
    present = np.isfinite(parts[:, 0])
    value, low, high = parts[present].T
    places = np.flatnonzero(present) + offset
    # Rounding in the table may put a bound past its value by less than the last digit.
    bars = np.maximum([value - low, high - value], 0)
    plain = rate in MISSED_RATES  # no threshold decides it
    style = _style(dimension, "calibrated" if plain else rates.mark(dimension)[0])
    if rate in OF_THE_GENERATOR:
        style |= {"color": GREY, "markerfacecolor": GREY, "markeredgecolor": GREY, "marker": "o"}
    panel.errorbar(value, places, xerr=bars, linestyle="none", capsize=2, elinewidth=1.1, zorder=3, **style)


def _style(dimension: str, mark: str) -> dict:
    colour = COLOURS[PLACES.get(dimension, 5)]
    return {
        "color": colour,
        "marker": MARKERS[PLACES.get(dimension, 5)],
        "markersize": 5,
        "markerfacecolor": "white" if mark == "uncalibrated" else colour,
        "markeredgecolor": colour,
        "markeredgewidth": 1.1,
    }


def _handle(rates: Rates, dimension: str) -> Line2D:
    mark, _ = rates.mark(dimension)
    name = _name(dimension)
    label = {"calibrated": name, "none": f"{name}: no thresholds"}.get(mark, f"{name}: thresholds uncalibrated")
    return Line2D([], [], linestyle="none", label=label, **_style(dimension, mark))


def _name(dimension: str) -> str:
    return "any that has thresholds" if dimension == ANY else dimension


def _doubt(rates: Rates) -> str:
    """What a heading says of rates that rest on a guess."""
    mark, _ = rates.mark(ANY)
    return {"uncalibrated": " (thresholds uncalibrated)", "none": " (no thresholds)"}.get(mark, "")


# Who is confused with whom --------------------------------------------------------------------------------------------


def confusions_figure(rates: Rates, outcomes: Sequence[dict]) -> Figure:
    """A row for each generator, a column for each dimension that has thresholds; the others are named below. An arrow from each
    place in the generated images to the places of the real people with whom its subjects are confused, as wide as their share.
    """
    named = [name for name in rates.dimensions if name != ANY]
    dimensions = [name for name in named if rates.mark(name)[0] != "none"]
    without = ", ".join(name for name in named if name not in dimensions)
    shares = {
        (generator, dimension): confusion_shares(
            [row for row in outcomes if (row["generator"], row["dimension"]) == (generator, dimension)]
        )
        for generator in rates.generators
        for dimension in dimensions
    }
    rows, columns = len(rates.generators), max(len(dimensions), 1)
    figure = Figure(figsize=(max(1.6 + 3.4 * columns, 8), 1.3 + 1.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    slots = sorted({slot for counts, _ in shares.values() for slot in counts}) or ["A", "B"]
    for row, generator in enumerate(rates.generators):
        for column in range(columns):
            panel = panels[row, column]
            if not dimensions:
                _say(panel, "no dimension has thresholds")
            elif not shares[generator, dimensions[column]][0]:
                _say(panel, "nothing to measure")
            else:
                draw_shares(panel, slots, *shares[generator, dimensions[column]])
            if row == 0 and dimensions:
                mark = "" if rates.mark(dimensions[column])[0] == "calibrated" else " (thresholds uncalibrated)"
                panel.set_title(f"{dimensions[column]}{mark}")
        panels[row, 0].set_ylabel(generator, rotation=0, ha="right", va="center", fontweight="bold")
        panels[row, 0].yaxis.set_label_coords(-0.12, 0.5)
    heading = "MultiBind: who is confused with whom, by place from left to right"
    figure.suptitle(heading, fontweight="bold", x=0.01, ha="left")
    figure.text(
        *(0.01, 0.0),
        "Below: a place in the generated images, with its number of subjects; above: the places in the photographs.\n"
        "Arrow: the share of them that are confused with the person there. Grey: the share that are consistent with their own."
        + (f" Not shown, for want of thresholds: {without}." if without and dimensions else ""),
        ha="left",
        va="bottom",
        fontsize=8,
        color=GREY,
    )
    figure.get_layout_engine().set(rect=(0, 0.42 / figure.get_figheight(), 1, 1 - 0.42 / figure.get_figheight()))
    return figure


def confusion_shares(rows: Sequence[dict]) -> tuple[dict[str, int], dict[tuple[str, str], float]]:
    """Compared subjects that have an outcome by their slot, and of each (slot, slot of a real person) the share of them that are
    confused with that person, or on the diagonal are consistent with their own; pairs without one are left out.
    """
    counts: dict[str, int] = {}
    links: dict[tuple[str, str], int] = {}
    for row in rows:
        if not row["compared"] or row["outcome"] is None:
            continue
        slot = row["slot"]
        counts[slot] = counts.get(slot, 0) + 1
        own = [slot] if row["outcome"] in ("success", "mixed") else []
        for other in (*own, *row["confused_with"]):
            links[slot, other] = links.get((slot, other), 0) + 1
    return dict(sorted(counts.items())), {pair: count / counts[pair[0]] for pair, count in sorted(links.items())}


def draw_shares(
    panel: Axes, slots: Sequence[str], counts: dict[str, int], shares: dict[tuple[str, str], float]
) -> None:
    """One panel of confusions_figure. slots: of all panels, so that places have the same width."""
    places = {slot: place for place, slot in enumerate(slots)}
    draw_slots(panel, slots, {slot: f"n = {counts.get(slot, 0):,}" for slot in slots})
    for (row, column), share in sorted(shares.items(), key=lambda item: item[1]):
        own = row == column
        draw_tie(panel, places[row], places[column], own, 0.8 + 5 * share, "" if own else f"{100 * share:.0f} %")


def _say(panel: Axes, text: str) -> None:
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", color=GREY)
