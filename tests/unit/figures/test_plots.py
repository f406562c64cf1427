"""Figures say what the tables say, for any number of models and sizes, and are the same bytes each time."""

import csv
import shutil
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


def without_a_column(name):
    def change(text):
        header, *lines = csv.reader(text.splitlines())
        place = header.index(name)
        return "".join(",".join(row[:place] + row[place + 1 :]) + "\n" for row in (header, *lines))

    return change


def half_of_the_models(text):
    header, *lines = text.splitlines(keepends=True)
    return header + "".join(line for line in lines if not line.startswith("pictures,"))


DAMAGES = {
    "empty": lambda text: "",
    "header only": lambda text: text.splitlines(keepends=True)[0],
    "half of the bytes": lambda text: text[: len(text) // 2],
    "half of the lines": lambda text: "".join(text.splitlines(keepends=True)[: text.count("\n") // 2]),
    "last digit cut": lambda text: text[:-2],
    "a model cut": half_of_the_models,
    "a line twice": lambda text: text + text.splitlines(keepends=True)[-1],
    "garbage": lambda text: "\x00\udcff garbage\n" * 9,
    "another table": lambda text: "a,b\n1,2\n",
    "a word for a number": lambda text: text.replace("words,text_text,", "words,text_text,?", 1).replace(".", "x"),
    "no pairings": without_a_column("pairing"),
    "no models": without_a_column("model"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", plots.TABLES)
def test_table_that_is_not_whole_is_named_and_not_drawn(tables, tmp_path, name, damage):
    shutil.copytree(tables, tmp_path / "tables")
    path = tmp_path / f"tables/saber_{name}.csv"
    path.write_bytes(DAMAGES[damage](path.read_text()).encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=rf"^{path}: not a whole table; delete it and run again$"):
        plot_saber(tmp_path / "tables", tmp_path / "figures", SETTINGS)
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("column", ["statistic", "2"])
def test_table_by_n_without_a_column_is_named(tables, tmp_path, column):
    path = tmp_path / "saber_table17.csv"
    damage = without_a_column(column) if column == "statistic" else lambda text: text.replace(",2,3,4,", ",x,y,z,", 1)
    path.write_text(damage((tables / path.name).read_text()))
    with pytest.raises(UserError, match=r"saber_table17\.csv: not a whole table"):
        plot_accuracy_by_n(path, tmp_path / "figure", SETTINGS)
