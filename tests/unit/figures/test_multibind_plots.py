"""MultiBind's figures say what its tables say."""

import csv

import numpy as np
import pytest
from bindbench.config.scoring import Figures
from bindbench.errors import UserError
from bindbench.figures import multibind_plots
from bindbench.figures.confusion_plots import Confusion, draw_arrows, draw_matrix
from bindbench.figures.multibind_plots import (
    confusion_shares,
    confusions_figure,
    plot_multibind,
    rates_figure,
    read_rates,
)
from bindbench.figures.pictures import SLOT_COLOURS, with_letters
from bindbench.multibind.evaluation_tables import SUBJECT_OUTCOMES
from bindbench.tables import read_table
from made_evaluation import make_evaluation
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from PIL import Image

SETTINGS = Figures(dpi=50)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_evaluation(tmp_path_factory.mktemp("plots"), missed=[("blurring", "coco-2", 1)])


def points(panel) -> dict[str, np.ndarray]:
    """By colour (n, 2): value and place of the points."""
    found = {}
    for container in panel.containers:
        line = container.lines[0]
        found[line.get_color()] = np.column_stack([line.get_xdata(), line.get_ydata()])
    return found


def test_points_and_intervals_are_the_table_s_beside_their_generator(made):
    rates = read_rates(made.rates)
    figure = rates_figure(rates, multibind_plots.SUBJECT_RATES, "Subjects", "subjects")
    with made.rates.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["subset"] == "compared" and row["dimension"] == "face"]
    panel = figure.axes[0]
    assert [label.get_text() for label in panel.get_yticklabels()][1] == "swapping\n8 subjects"
    face = points(panel)[multibind_plots.COLOURS[0]]
    assert face[:, 0].tolist() == [float(row["success"]) for row in rows]
    assert np.floor(face[:, 1] + 0.5).tolist() == list(range(5))
    bars = panel.containers[0].lines[2][0].get_segments()
    assert [bar[:, 0].tolist() for bar in bars] == [
        pytest.approx([float(row["success_low"]), float(row["success_high"])]) for row in rows
    ]


def test_uncalibrated_thresholds_are_hollow_and_named_and_dimensions_without_any_are_not_drawn(made, tmp_path):
    rates = read_rates(made.rates)
    figure = rates_figure(rates, multibind_plots.IMAGE_RATES, "Images", "images")
    assert "(thresholds uncalibrated)" in figure.get_suptitle()
    line = figure.axes[0].containers[0].lines[0]
    assert line.get_markerfacecolor() == "white" and len(figure.axes[0].containers) == 2  # face, any
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[:2] == ["face: thresholds uncalibrated", "pose: no thresholds"]
    calibrated = tmp_path / "table.csv"
    calibrated.write_text(made.rates.read_text().replace(",uncalibrated,", ",calibrated,"))
    figure = rates_figure(read_rates(calibrated), multibind_plots.IMAGE_RATES, "Images", "images")
    assert figure.get_suptitle() == "Images"
    assert figure.axes[0].containers[0].lines[0].get_markerfacecolor() == multibind_plots.COLOURS[0]


def test_missed_is_one_point_for_each_generator_and_rests_on_no_threshold(made):
    figure = rates_figure(read_rates(made.rates), multibind_plots.MISSED_RATES, "Missed", "")
    (container,) = figure.axes[0].containers
    assert container.lines[0].get_xdata().tolist() == pytest.approx([0, 0, 0, 0, 100 / 9], abs=0.01)
    assert len(figure.axes[1].containers) == 3 and figure.get_suptitle() == "Missed"


def test_shares_of_confusions_count_compared_subjects_with_outcomes():
    def row(slot, outcome, confused=(), compared=True):
        return {"slot": slot, "outcome": outcome, "confused_with": list(confused), "compared": compared}

    rows = [row("A", "replaced", "B"), row("A", "success"), row("A", "mixed", "BC"), row("A", "drift")]
    rows += [row("A", "replaced", "D", compared=False), row("B", None), row("C", "success")]
    counts, shares = confusion_shares(rows)
    assert counts == {"A": 4, "C": 1}
    assert shares == {("A", "A"): 0.5, ("A", "B"): 0.5, ("A", "C"): 0.25, ("C", "C"): 1.0}


def test_arrows_of_the_places_lead_from_the_generated_to_the_real_person(made):
    rates, outcomes = read_rates(made.rates), read_table(SUBJECT_OUTCOMES, made.outcomes).to_pylist()
    figure = confusions_figure(rates, outcomes)
    panel = figure.axes[rates.generators.index("copying")]
    assert panel.get_ylabel() == "copying"
    texts = {text.get_text() for text in panel.texts}
    assert {"33 %", "50 %", "100 %", "n = 3", "n = 2"} <= texts
    arrows = [patch for patch in panel.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) == 3 and not [p for p in figure.axes[0].patches if isinstance(p, FancyArrowPatch)]


def test_a_matrix_shows_every_delta_names_what_is_not_measured_and_frames_what_is_confused():
    delta = np.array([[-0.8, 0.79, np.nan], [0.001, -0.004, np.nan], [np.nan] * 3])
    confusion = Confusion("face", "sface", "ABC", delta, {"C": "not found"}, {"C": "no face seen"}, ["B"], [("A", "B")])
    panel = Figure().subplots()
    draw_matrix(panel, confusion)
    texts = [text.get_text() for text in panel.texts]
    assert {"−0.80", "+0.79", "not found", "no face seen", "face", "sface"} <= set(texts) and texts.count("0.00") == 2
    frames = [patch for patch in panel.patches if isinstance(patch, Rectangle) and not patch.get_fill()]
    assert [(frame.get_x() > 0.5, frame.get_y() < 0.5) for frame in frames] == [(True, True)]
    assert len([patch for patch in panel.patches if patch.get_hatch()]) == 2
    panel = Figure().subplots()
    draw_arrows(panel, confusion)
    (arrow,) = [patch for patch in panel.patches if isinstance(patch, FancyArrowPatch)]
    start, end = arrow._posA_posB
    assert start[0] < 0.5 < end[0] and start[1] < end[1] and len(panel.lines) == 1


def test_files_are_the_same_bytes_each_time(tmp_path):
    paths = make_evaluation(tmp_path / "in", {"swapping": {"coco-1": [1, 0]}}, sizes={"coco-1": 2})
    outcomes = read_table(SUBJECT_OUTCOMES, paths.outcomes).to_pylist()
    for name in ("one", "two"):
        plot_multibind(paths.rates, outcomes, tmp_path / name, SETTINGS)
    for name in multibind_plots.NAMES:
        first, second = (tmp_path / folder / f"{name}.svg" for folder in ("one", "two"))
        assert first.read_bytes() == second.read_bytes() and first.with_suffix(".png").stat().st_size > 2000


@pytest.mark.parametrize("damage", ["cut", "column", "word", "row", "gone"])
def test_a_table_that_is_not_whole_is_told(made, tmp_path, damage):
    lines = made.rates.read_text().splitlines(keepends=True)
    text = {
        "cut": "".join(lines)[:-9],
        "column": "".join(lines).replace("success_low", "lowest"),
        "word": "".join(lines).replace(",100.00,", ",many,"),
        "row": "".join(lines[:1] + lines[2:]),
    }
    path = tmp_path / "table.csv"
    if damage != "gone":
        path.write_text(text[damage])
    with pytest.raises(UserError, match=r"table.csv: (not a whole table; delete it|no such file; run snakemake)"):
        read_rates(path)


def test_letters_stand_at_the_boxes_and_lost_places_are_dashed():
    image = Image.new("RGB", (200, 100), "grey")
    drawn = with_letters(image, {"A": (0.1, 0.3, 0.2, 0.6)}, {"A": (0.5, 0, 0.1, 0.1), "B": (0.6, 0.3, 0.3, 0.6)})
    colours = {slot: tuple(bytes.fromhex(colour[1:])) for slot, colour in SLOT_COLOURS.items()}
    assert drawn.getpixel((61 - 2, 70)) == colours["A"] and drawn.getpixel((40, 70)) == image.getpixel((40, 70))
    edge = [drawn.getpixel((180 - 1, y)) for y in range(40, 88)]
    assert colours["B"] in edge and image.getpixel((0, 0)) in edge, "dashes"
    assert drawn.getpixel((110, 5)) == image.getpixel((0, 0)), "a subject that was found has no lost place"
