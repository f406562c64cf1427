"""Curves of the nano embedder's pretraining: losses of both stages, what the visual tokens show, and the validation.

Drawn from the pretraining's log.csv alone; the same table gives the same bytes.
"""

import csv
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..config.scoring import Figures
from ..errors import UserError
from .plots import COLOURS, GREY, LINES, RC, _prepare, _save

NAME = "nano_pretraining"
# Of each panel the stage, the title, the columns that it shows with their names, and its axis.
PANELS = (
    (
        "words",
        "Visual tokens: their words",
        {"object_tokens": "object", "attribute_tokens": "attribute"},
        "share right",
    ),
    (
        "joint",
        "Losses",
        {
            "image_text": "image–text",
            "image_image": "image–image",
            "captioning": "captioning",
            "retelling": "retelling",
            "words": "words",
        },
        "nats",
    ),
    ("joint", "Validation", {"single_object": "single object, of all phrases", "binding": "binding (chance 0.5)"}, ""),
)


def plot_nano(table: Path, folder: Path, settings: Figures) -> None:
    """Draws the curves into a folder, as PNG and SVG. Raises UserError when the table is missing or not whole."""
    rows = _read(table)
    with rc_context(RC):
        figure = Figure(figsize=(12, 3.7), layout="constrained")
        for panel, (stage, title, columns, label) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
            _prepare(panel, title)
            _draw(panel, [row for row in rows if row["stage"] == stage], columns)
            panel.set(xlabel=f"step of the {stage} stage", ylabel=label)
        figure.suptitle("Pretraining of the nano embedder", fontweight="bold", x=0.01, ha="left")
        _save(figure, folder / NAME, settings)


def _draw(panel: Axes, rows: list[dict], columns: dict[str, str]) -> None:
    drawn = False
    for number, (column, label) in enumerate(columns.items()):
        points = [(int(row["step"]), float(row[column])) for row in rows if row[column]]
        if not points:
            continue
        drawn = True
        steps, values = zip(*points, strict=True)
        line = LINES[number % len(LINES)]
        panel.plot(steps, values, color=COLOURS[number], linestyle=line, linewidth=1.4, label=label)
    if not drawn:
        panel.text(0.5, 0.5, "not reached yet", transform=panel.transAxes, ha="center", va="center", color=GREY)
        return
    panel.set_ylim(bottom=0)
    panel.grid(color=GREY, alpha=0.2, linewidth=0.6)
    panel.legend(frameon=False, fontsize=8)


def _read(table: Path) -> list[dict]:
    try:
        with table.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            int(row["step"]), row["stage"]
            for _, _, columns, _ in PANELS:
                [float(row[column]) for column in columns if row[column]]
    except FileNotFoundError:
        raise UserError(f"{table}: no such file; run snakemake to make it") from None
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{table}: not the curves of a pretraining; delete it and run again") from None
    return rows
