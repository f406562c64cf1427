"""Figure 4: the attention binding margin of every layer, for each model, on each text set (SABER, C.3).

Drawn from the table of `finetune.attention_sets.tabulate_attention` alone. Above the line at zero, objects attend to their
own attributes more than to those of the other objects. The same table gives the same bytes.
"""

import math
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..config.scoring import Figures
from ..tables import TEXT_SETS
from .csv_tables import not_whole, rows_of
from .plots import GREY, RC, Curve, _draw_curve, _prepare, _save, _style

NAME = "attention"
TITLES = {"queries": "short queries", "positives": "longer positives", "saber": "SABER queries"}


def plot_attention(table: Path, folder: Path, settings: Figures) -> None:
    """Draws Figure 4 from the CSV table into a folder, as PNG and SVG. Models may differ in their number of layers.

    Raises UserError when the table is missing or not whole.
    """
    curves = read_curves(table)
    models = list(dict.fromkeys(model for model, _ in curves))
    sets = [name for name in TEXT_SETS if any(name == text_set for _, text_set in curves)]
    with rc_context(RC):
        figure = Figure(figsize=(0.6 + 3.6 * len(sets), 3.7), layout="constrained")
        panels = figure.subplots(1, len(sets), sharex=True, sharey=True, squeeze=False)[0]
        for place, (panel, text_set) in enumerate(zip(panels, sets, strict=True)):
            _prepare(panel, TITLES[text_set])
            _draw_set(panel, {number: curves[model, text_set] for number, model in enumerate(models)})
            panel.set(xlabel="layer", ylabel="" if place else "attention binding margin")
        figure.suptitle(
            "Attention of objects to their own attributes, less that to the others', by layer",
            fontweight="bold",
            x=0.01,
            ha="left",
        )
        handles = [Line2D([], [], label=model, **_style(number)) for number, model in enumerate(models)]
        figure.legend(handles=handles, loc="outside lower left", ncols=len(models), frameon=False, handlelength=3.2)
        _save(figure, Path(folder) / NAME, settings)


def _draw_set(panel: Axes, curves: dict[int, Curve]) -> None:
    panel.axhline(0, color=GREY, linewidth=1, zorder=1)
    for number, curve in curves.items():
        _draw_curve(panel, curve, number)
    last = max(int(curve.places[-1]) for curve in curves.values())
    # A model of one layer has a point instead of a line, which needs room on both sides.
    panel.set_xlim(1 - 0.03 * last, last * 1.03)
    panel.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=[1, 2, 5, 10]))


def read_curves(path: Path) -> dict[tuple[str, str], Curve]:
    """The curve of each model and text set, over its layers from 1. Raises UserError when the table is not whole."""
    try:
        curves = _curves(rows_of(path))
    except (KeyError, TypeError, ValueError):  # a column or a cell is missing, or no number
        curves = {}
    models, sets = ({key[i] for key in curves} for i in range(2))
    lengths = {(model, len(curve.places)) for (model, _), curve in curves.items()}
    cells = set(product(models, sets))
    if not curves or set(curves) != cells or len(lengths) > len(models) or not sets <= set(TEXT_SETS):
        raise not_whole(path)
    return curves


def _curves(rows: list[dict[str, str]]) -> dict[tuple[str, str], Curve]:
    """Raises KeyError, TypeError or ValueError for rows that are not whole."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for row in rows:
        points = found.setdefault((row["model"], row["text_set"]), [])
        if int(row["layer"]) != len(points) + 1:
            raise ValueError("a layer is missing")
        numbers = (row["margin"], row["low"], row["high"])
        points.append(tuple(float(number) if number else math.nan for number in numbers))
    return {key: Curve(np.arange(1, len(points) + 1), *np.array(points, float).T) for key, points in found.items()}
