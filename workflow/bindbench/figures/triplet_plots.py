"""Plots of a set of triplets: what was accepted and why not, lengths, distances, words against their caps, families.

They are drawn from the summary alone (triplets/summary.py), so a plot never says anything that the card does not. Parts
of a bar differ by colour (Okabe and Ito's, told apart by colour-blind readers) and by hatching. The same summary gives the
same bytes.
"""

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ..config.scoring import Figures
from .plots import COLOURS, GREY, RC, _prepare, _save

HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "++")
OTHER_REASONS = "other reasons"
SHOWN_REASONS = 6
SHOWN_WORDS = 10
NAMES = ("triplets_accepted", "triplets_lengths", "triplets_distances", "triplets_words", "triplets_families")
HATCHING = {"hatch.linewidth": 0.5, "hatch.color": "white"}


def plot_triplets(summary: dict, folder: Path, settings: Figures) -> None:
    """Draws every figure of a summary of triplets into a folder, as PNG and SVG. NAMES: the files, without ending."""
    folder = Path(folder)
    with rc_context(RC | HATCHING):
        plot_accepted(summary, folder / NAMES[0], settings)
        plot_ranges(summary, "length", folder / NAMES[1], settings)
        plot_ranges(summary, "distance", folder / NAMES[2], settings)
        plot_words(summary, folder / NAMES[3], settings)
        plot_families(summary, folder / NAMES[4], settings)


def plot_accepted(summary: dict, output: Path, settings: Figures) -> None:
    """Proposals of each construction: the accepted ones, then the rejected ones by reason."""
    constructions = summary["constructions"]
    parts = stacked_parts(constructions)
    figure = Figure(figsize=(10, 1.5 + 0.55 * len(constructions)), layout="constrained")
    panel = figure.subplots()
    _prepare(panel, "", grid="x")
    places, left = np.arange(len(constructions)), np.zeros(len(constructions))
    for number, (name, values) in enumerate(parts.items()):
        style = _fill(number) if name != OTHER_REASONS else {"facecolor": GREY, "hatch": ""}
        panel.barh(
            places, values, left=left, height=0.66, label=_title(name), edgecolor="white", linewidth=0.6, **style
        )
        left += values
    for place, construction in enumerate(constructions.values()):
        text = f" {100 * construction['acceptance']:.0f} % accepted"
        panel.text(left[place], place, text, va="center", ha="left", fontsize=8)
    panel.set(xlabel="proposals", yticks=places, ylim=(len(places) - 0.5, -0.5), xlim=(0, max(left, default=1) * 1.17))
    panel.set_yticklabels([_title(name) for name in constructions])
    panel.xaxis.set_major_formatter("{x:,.0f}")
    _heading(figure, "Proposals accepted, and rejected by reason")
    figure.legend(loc="outside right upper", frameon=False, handlelength=2.2, handleheight=1.2)
    _save(figure, output, settings)


def stacked_parts(constructions: dict) -> dict[str, np.ndarray]:
    """Accepted, the most frequent reasons, and all other reasons as one: (n_constructions,) proposals each."""
    totals: dict[str, int] = {}
    for construction in constructions.values():
        for reason, count in construction["rejects"].items():
            totals[reason] = totals.get(reason, 0) + count
    ranked = sorted(totals, key=lambda reason: (-totals[reason], reason))
    # One reason alone needs no collective name.
    shown = ranked if len(ranked) <= SHOWN_REASONS + 1 and len(ranked) < len(COLOURS) else ranked[:SHOWN_REASONS]
    parts = {"accepted": np.array([c["accepted"] for c in constructions.values()])}
    for reason in shown:
        parts[reason] = np.array([c["rejects"].get(reason, 0) for c in constructions.values()])
    if len(shown) < len(ranked):
        rest = [sum(n for r, n in c["rejects"].items() if r not in shown) for c in constructions.values()]
        parts[OTHER_REASONS] = np.array(rest)
    return parts


def plot_ranges(summary: dict, what: str, output: Path, settings: Figures) -> None:
    """Histogram of the measured lengths or distances, coloured by the target that was asked for. what: its key."""
    titles = {
        "length": ("Length by target band (strips: the bands, shifts included)", "words"),
        "distance": ("Binding distance by target window (strips: the windows)", "words between"),
    }
    title, label = titles[what]
    constructions = summary["constructions"]
    ranges = [part[what] for part in constructions.values()]
    most = max((top for r in ranges for top in (r["most"] or 0, *(t["high"] for t in r["targets"]))), default=0)
    number_of = {name: target_numbers(constructions, name, what) for name in constructions}
    rows, columns = _grid(len(constructions))
    figure = Figure(figsize=(0.4 + 2.8 * columns, 0.7 + 2.7 * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, sharex=True, squeeze=False).flat)
    for place, (panel, (name, construction)) in enumerate(zip(panels, constructions.items(), strict=False)):
        _prepare(panel, _title(name))
        groups = merged_targets(construction[what]["targets"], most + 1)
        numbered = {number_of[name][band]: group for band, group in groups.items()}
        _draw_histogram(panel, {number: counts for number, (_, counts) in numbered.items()})
        _draw_targets(panel, {number: ends for number, (ends, _) in numbered.items()})
        panel.set(xlim=(-1, most + 1.5), xlabel=label, ylabel="" if place % columns else "examples")
        panel.tick_params(labelbottom=True)
        panel.yaxis.set_major_formatter("{x:,.0f}")
        panel.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    for panel in panels[len(constructions) :]:
        panel.set_axis_off()
    labels = _target_labels(number_of, what)
    handles = [Patch(label=text, **_fill(number)) for number, text in labels.items()]
    _legend_below(figure, handles)
    _heading(figure, title)
    _save(figure, output, settings)


def target_numbers(constructions: dict, name: str, what: str) -> dict[tuple[int, int], int]:
    """Number, and so the colour, of each target of a construction.

    Length bands are the same for all constructions, some of which use only the longer ones; windows are each
    construction's own, and count from its shortest.
    """
    among = constructions.values() if what == "length" else [constructions[name]]
    bands = {tuple(target["band"]) for construction in among for target in construction[what]["targets"]}
    return {band: number for number, band in enumerate(sorted(bands))}


def _target_labels(number_of: dict[str, dict[tuple[int, int], int]], what: str) -> dict[int, str]:
    labels = {}
    for numbers in number_of.values():
        for (low, high), number in numbers.items():
            labels[number] = f"{low} to {high} words" if what == "length" else f"window {number + 1}"
    return dict(sorted(labels.items()))


def _draw_histogram(panel: Axes, counts_of: dict[int, np.ndarray]) -> None:
    bottom = 0
    for number, counts in counts_of.items():
        edges = np.arange(len(counts) + 1) - 0.5
        panel.stairs(bottom + counts, edges, baseline=bottom, fill=True, linewidth=0, **_fill(number))
        bottom = bottom + counts
    panel.set_ylim(0, max(np.max(bottom, initial=0), 1) * 1.27)


def merged_targets(targets: list[dict], size: int) -> dict[tuple[int, int], tuple[tuple[int, int], np.ndarray]]:
    """By band, its shifts as one (B.3): their lowest and highest end, and the counts of each measured value, (size,)."""
    merged: dict[tuple[int, int], tuple[tuple[int, int], np.ndarray]] = {}
    for target in targets:
        band = tuple(target["band"])
        (low, high), counts = merged.get(band, ((target["low"], target["high"]), np.zeros(size, int)))
        for value, count in target["counts"]:
            counts[value] += count
        merged[band] = (min(low, target["low"]), max(high, target["high"])), counts
    return merged


def _draw_targets(panel: Axes, ends_of: dict[int, tuple[int, int]]) -> None:
    """A strip above the bars for each target, from its lower to its upper end; neighbours on different heights."""
    top = panel.get_ylim()[1]
    for number, (low, high) in ends_of.items():
        middle = top * (0.87 + 0.08 * (number % 2))
        panel.barh(middle, high - low + 1, left=low - 0.5, height=0.045 * top, linewidth=0, **_fill(number))


def plot_words(summary: dict, output: Path, settings: Figures) -> None:
    """The most frequent attributes and objects of each construction against the cap that none may exceed (B.3)."""
    constructions = summary["constructions"]
    rows, columns = _grid(len(constructions))
    figure = Figure(figsize=(0.4 + 2.8 * columns, 0.7 + 6.3 * rows), layout="constrained")
    axes = figure.subplots(2 * rows, columns, squeeze=False)
    for panel in axes.flat:
        panel.set_axis_off()
    for place, (name, construction) in enumerate(constructions.items()):
        for offset, role in enumerate(("attributes", "objects")):
            panel = axes[2 * (place // columns) + offset, place % columns]
            panel.set_axis_on()
            _prepare(panel, f"{_title(name)}\n{role}", grid="x")
            _draw_words(panel, construction["words"], role, COLOURS[offset])
    handles = [Patch(color=COLOURS[0], label="attributes"), Patch(color=COLOURS[1], label="objects")]
    handles.append(Line2D([], [], color="black", linestyle="--", linewidth=1.2, label="cap"))
    _legend_below(figure, handles)
    _heading(figure, "Most frequent words of the accepted examples, against the cap")
    _save(figure, output, settings)


def _draw_words(panel: Axes, words: dict, role: str, colour: str) -> None:
    top = words[role]["top"][:SHOWN_WORDS]
    places = np.arange(len(top))
    panel.barh(places, [count for _, count in top], height=0.7, color=colour, linewidth=0)
    panel.axvline(words["cap"], color="black", linestyle="--", linewidth=1.2)
    widest = max([words["cap"], *(count for _, count in top)])
    panel.set(yticks=places, ylim=(SHOWN_WORDS - 0.4, -0.6), xlim=(0, widest * 1.12), xlabel="examples")
    panel.set_yticklabels([word for word, _ in top])
    panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    panel.xaxis.set_major_formatter("{x:,.0f}")


def plot_families(summary: dict, output: Path, settings: Figures) -> None:
    """Share of each family of the attribute pool among the attributes of a construction, as a table of shades (B.3)."""
    constructions = summary["constructions"]
    families = list(summary["families"])
    counts = np.array([[c["families"][f] for c in constructions.values()] for f in families], float)
    counts = counts.reshape(len(families), len(constructions))
    shares = 100 * counts / np.maximum(counts.sum(axis=0), 1)
    figure = Figure(figsize=(9, 1.8 + 0.3 * len(families)), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(shares, cmap="Blues", vmin=0, vmax=max(shares.max(initial=0), 1), aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        dark = share > 0.55 * image.norm.vmax
        panel.text(
            column, row, f"{share:.1f}", ha="center", va="center", fontsize=8, color="white" if dark else "black"
        )
    panel.set(xticks=range(len(constructions)), yticks=range(len(families)))
    panel.set_xticklabels([_title(name).replace(" ", "\n") for name in constructions])
    panel.set_yticklabels(families)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    _heading(figure, "Attributes by family of the pool, % of a construction's attributes")
    _save(figure, output, settings)


def _grid(count: int) -> tuple[int, int]:
    """Rows and columns of the panels: three or four beside each other, so that the heading has room."""
    columns = min(max(count, 3), 4)
    return max(-(-count // columns), 1), columns


def _fill(number: int) -> dict:
    return {"facecolor": COLOURS[number % len(COLOURS)], "hatch": HATCHES[number % len(HATCHES)]}


def _title(name: str) -> str:
    return name.replace("_", " ")


def _legend_below(figure: Figure, handles: list) -> None:
    style = {"frameon": False, "handlelength": 2.2, "handleheight": 1.2}
    figure.legend(handles=handles, loc="outside lower left", ncols=max(len(handles), 1), **style)


def _heading(figure: Figure, text: str) -> None:
    figure.suptitle(text, fontweight="bold", x=0.01, ha="left")
