"""Figures say what the tables say, for any number of models and sizes, and are the same bytes each time."""

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bindbench.config.scoring import Figures, Tables
from bindbench.errors import UserError
from bindbench.figures import plots
from bindbench.figures.plots import plot_accuracy_by_n, plot_saber
from bindbench.saber.scoring import score_saber
from bindbench.saber.tabulate import tabulate_saber
from bindbench.vocabulary import Attribute, Vocabulary
from PIL import Image
from synthetic_saber import (
    ATTRIBUTES,
    binding_embeddings,
    tiny_saber,
    word_embeddings,
    write_embeddings,
    write_rows,
)

REFERENCE = Path(__file__).parents[3] / "resources/reference/saber_paper.csv"
VOCABULARY = Vocabulary({}, {a: Attribute(a, "standalone", f"kind{a[-1]}", a, (), a) for a in ATTRIBUTES}, ())
SETTINGS = Figures(dpi=60)
NAMES = ("accuracy_by_n", "retrieval_by_n", "by_category", "candidate_kinds")


def tables_of(folder, names, **sizes):
    questions, scenes = tiny_saber(**sizes)
    paths = write_rows(folder, questions, scenes)
    items = [scene["scene"] for scene in scenes]
    texts = write_embeddings(folder / "text.parquet", items, word_embeddings(scenes))
    images = write_embeddings(
        folder / "image.parquet",
        items,
        binding_embeddings(scenes) + np.random.default_rng(0).normal(size=(len(items), 1)),
    )
    score_saber(*paths, texts, None, folder / "words.parquet")
    score_saber(*paths, None, images, folder / "images.parquet")
    scores = {name: folder / f"{'words' if i % 2 == 0 else 'images'}.parquet" for i, name in enumerate(names)}
    settings = Tables(bootstrap_samples=100)
    tabulate_saber(scores, *paths, VOCABULARY, settings, REFERENCE, folder / "tables")
    return folder / "tables"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return tables_of(tmp_path_factory.mktemp("plots"), ["words", "pictures"])


def test_every_figure_is_written_as_png_and_svg(tables, tmp_path):
    plot_saber(tables, tmp_path, SETTINGS)
    for name in NAMES:
        image = Image.open(tmp_path / f"saber_{name}.png").convert("L")
        assert image.width > 400
        assert np.asarray(image).std() > 5  # something is drawn
        assert (tmp_path / f"saber_{name}.svg").read_text().rstrip().endswith("</svg>")


def test_same_tables_give_the_same_bytes_without_a_date(tables, tmp_path):
    for folder in ("one", "two"):
        plot_saber(tables, tmp_path / folder, SETTINGS)
    for name in NAMES:
        for ending in ("png", "svg"):
            first, second = (tmp_path / folder / f"saber_{name}.{ending}" for folder in ("one", "two"))
            assert first.read_bytes() == second.read_bytes()
        assert "<dc:date>" not in first.read_text()


def test_lines_bands_and_chance_are_the_tables_values(tables, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "_save", lambda figure, output, settings: figures.append(figure))
    plot_accuracy_by_n(tables / "saber_table17.csv", tmp_path / "figure", SETTINGS)
    with (tables / "saber_table17.csv").open(newline="") as file:
        rows = {(r["model"], r["pairing"], r["statistic"]): r for r in csv.DictReader(file)}
    panel = next(axes for axes in figures[0].axes if axes.get_title() == "image → image")
    chance, line = panel.lines
    assert chance.get_ydata().tolist() == [25, 25, 25]
    assert line.get_xdata().tolist() == [2, 3, 4]
    assert line.get_ydata().tolist() == [float(rows["pictures", "image_image", "value"][n]) for n in "234"]
    (band,) = panel.collections
    bounds = band.get_paths()[0].vertices[:, 1]
    for statistic, extreme in (("low", min), ("high", max)):
        assert extreme(bounds) == extreme(float(rows["pictures", "image_image", statistic][n]) for n in "234")


def test_models_differ_by_more_than_colour_and_are_named_in_the_legend(tables, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "_save", lambda figure, output, settings: figures.append(figure))
    plot_accuracy_by_n(tables / "saber_table17.csv", tmp_path / "figure", SETTINGS)
    (legend,) = figures[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["words", "pictures", "chance"]
    styles = [plots._style(place) for place in range(40)]
    assert len({(s["color"], s["marker"], str(s["linestyle"])) for s in styles}) == 40
    for first, second in pairwise(styles):
        assert first["marker"] != second["marker"]
        assert first["linestyle"] != second["linestyle"]


def test_panel_that_no_model_can_do_says_so(tables, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "_save", lambda figure, output, settings: figures.append(figure))
    plot_accuracy_by_n(tables / "saber_table17.csv", tmp_path / "figure", SETTINGS)
    texts = {axes.get_title(): [text.get_text() for text in axes.texts] for axes in figures[0].axes}
    assert texts["text → text"] == []
    assert "no model measured here" in texts["text → image"][0]


def test_one_size_and_a_dozen_models_can_be_drawn(tmp_path):
    names = [f"model-{i} with a rather long name" for i in range(12)]
    plot_saber(tables_of(tmp_path, names, object_counts=(3,), nested=0), tmp_path / "figures", SETTINGS)
    assert all((tmp_path / f"figures/saber_{name}.png").exists() for name in NAMES)


def test_missing_table_is_named(tmp_path):
    with pytest.raises(UserError, match=r"saber_table17\.csv: no such file"):
        plot_saber(tmp_path, tmp_path, SETTINGS)
