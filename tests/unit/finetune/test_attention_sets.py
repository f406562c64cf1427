"""The three text sets, the table of margins and Figure 4 (C.3)."""

import csv
from collections import Counter

import numpy as np
import pytest
import tiny_models
from bindbench.config.embedders import Embedder
from bindbench.config.scoring import Figures, Tables
from bindbench.errors import UserError
from bindbench.figures import attention_plots
from bindbench.figures.attention_plots import plot_attention, read_curves
from bindbench.finetune.attention_sets import (
    HEADER,
    quotas,
    sample_examples,
    sample_scenes,
    tabulate_attention,
    text_sets,
    write_margins,
)
from bindbench.tables import ATTENTION_MARGINS, SCENES, TEXT_SETS, TRIPLETS, read_table, write_table
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

CONSTRUCTIONS = ("pair_swap", "triple_bind_cycle", "predicative")
INTERVALS = Tables(bootstrap_samples=200)


def example(construction: str, number: int) -> dict:
    colours, things = ("red", "blue", "orange"), ("cube", "sphere", "dog")
    n = 3 if construction.startswith("triple") else 2
    bindings = [{"attributes": [colours[(i + number) % 3]], "object": things[i]} for i in range(n)]
    query = " and ".join(f"a {b['attributes'][0]} {b['object']}" for b in bindings)
    row = {column.name: "" for column in TRIPLETS.columns}
    numbers = ("length_low", "length_high", "distance_low", "distance_high", "n_distractors", "words", "distance")
    return (
        row
        | dict.fromkeys(numbers, 0)
        | {
            **{
                "example": f"{construction}-{number:04d}",
                "construction": construction,
                "bindings": bindings,
                "slots": [],
            },
            **{"distractors": [{"attributes": ["striped"], "object": "boot"}], "kept": None, "swapped_slot": None},
            **{"query": query, "positive": f"Near a striped boot I saw {query}."},
        }
    )


def scene(n: int, number: int, role: str) -> dict:
    pairs = [(f"shade{i}", f"thing{i}") for i in range(n)]
    return {
        **{"scene": f"q{n}-{number}-{role}", "question": f"q{n}-{number}", "role": role, "kind": role, "moved": 0},
        "bindings": [{"attribute": a, "realised": f"very {a}", "object": o, "slots": []} for a, o in pairs],
        **{"caption": " and ".join(f"a {a} {o}" for a, o in pairs), "generation_caption": ""},
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    train = [example(c, i) for c, n in zip(CONSTRUCTIONS, (60, 30, 10), strict=True) for i in range(n)]
    test = [example(c, 1000 + i) for c in CONSTRUCTIONS for i in range(40)]
    scenes = [scene(n, i, role) for n in range(2, 11) for i in range(8) for role in ("query", "candidate_1")]
    for table, rows, name in ((TRIPLETS, train, "train"), (TRIPLETS, test, "test"), (SCENES, scenes, "scenes")):
        write_table(table, rows, folder / f"{name}.parquet")
    return folder


def sets_of(files, count=50, seed=0):
    return text_sets(files / "train.parquet", files / "test.parquet", files / "scenes.parquet", seed, count)


def test_queries_are_of_the_test_split_in_proportion_to_training(files):
    sets = sets_of(files)
    assert tuple(sets) == TEXT_SETS and all(len(captions) == 50 for captions in sets.values())
    counts = Counter(caption.name.rsplit("-", 1)[0] for caption in sets["queries"])
    assert counts == {"pair_swap": 30, "triple_bind_cycle": 15, "predicative": 5}
    assert all(int(caption.name[-4:]) >= 1000 for caption in sets["queries"])
    assert [caption.name for caption in sets["positives"]] == [caption.name for caption in sets["queries"]]
    for query, positive in zip(sets["queries"], sets["positives"], strict=True):
        assert query.text in positive.text and len(positive.text) > len(query.text)
        assert positive.bindings == (*query.bindings, (("striped",), "boot"))


def test_saber_queries_span_two_to_ten_objects_evenly(files):
    captions = sets_of(files)["saber"]
    counts = Counter(len(caption.bindings) for caption in captions)
    assert set(counts) == set(range(2, 11)) and max(counts.values()) - min(counts.values()) <= 1
    assert all(caption.name.endswith("query") for caption in captions)
    assert captions[0].bindings[0] == (("shade0",), "thing0"), "the text form, not the realised one"


def test_draws_depend_on_the_seed_alone(files):
    assert sets_of(files) == sets_of(files)
    for name in TEXT_SETS:
        assert sets_of(files, seed=1)[name] != sets_of(files)[name]


def test_small_splits_give_all_that_they_have():
    rows = [example("pair_swap", i) for i in range(3)] + [example("predicative", i) for i in range(9)]
    counts = Counter(r["construction"] for r in sample_examples(rows, {"pair_swap": 9, "predicative": 1}, 10, 0))
    assert counts == {"pair_swap": 3, "predicative": 7}
    assert sample_examples(rows, {"pair_swap": 9, "predicative": 1}, 99, 0) == rows
    assert sample_examples(rows, {"attr_bundle": 1}, 99, 0) == []
    assert sample_scenes([], 5, 0) == []


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 30)),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 50)),
    st.integers(0, 60),
)
def test_quotas_are_exact_and_proportional_where_they_can_be(available, proportions, count):
    taken = quotas(available, proportions, count)
    usable = {kind: n for kind, n in available.items() if proportions.get(kind)}
    assert sum(taken.values()) == min(count, sum(usable.values()))
    assert all(0 <= taken[kind] <= available[kind] for kind in available)
    total = sum(proportions[kind] for kind in usable)
    shares = {kind: count * proportions[kind] / total for kind in usable}
    if all(shares[kind] + 1 <= n for kind, n in usable.items()):
        assert all(abs(taken[kind] - shares[kind]) < 1 for kind in usable)


def test_an_empty_split_is_told(files, tmp_path):
    write_table(TRIPLETS, [], tmp_path / "none.parquet")
    with pytest.raises(UserError, match=r"none\.parquet: has no captions"):
        text_sets(files / "train.parquet", tmp_path / "none.parquet", files / "scenes.parquet", 0, 5)


def test_margins_of_a_model_are_written_and_tabulated(files, tmp_path):
    from bindbench.finetune.attention import measure_margins

    entry = Embedder(path=str(tiny_models.qwen3_vl(tmp_path / "qwen")), batch_size=8, modalities=("text",))
    sets = sets_of(files, 9)
    single = sets["saber"][0]._replace(name="alone", text="a red cube", bindings=((("red",), "cube"),))
    sets["saber"].append(single)
    write_margins(entry, "tiny", sets, tmp_path / "tiny.parquet", 0, "cpu", 1)
    table = read_table(ATTENTION_MARGINS, tmp_path / "tiny.parquet")
    assert len(table) == 28 * 2 and table["margin"].null_count == 2
    tabulate_attention({"tiny": tmp_path / "tiny.parquet"}, INTERVALS, tmp_path / "t.csv")
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert [(r["text_set"], r["layer"]) for r in rows] == [(s, str(n)) for s in TEXT_SETS for n in (1, 2)]
    assert [(r["captions"], r["undefined"]) for r in rows] == [("9", "0")] * 4 + [("9", "1")] * 2
    for name in TEXT_SETS:
        texts = [(caption.text, caption.bindings) for caption in sets[name]]
        expected = np.nanmean(measure_margins(entry, "tiny", texts, 8, "cpu", 1), axis=0)
        found = [float(row["margin"]) for row in rows if row["text_set"] == name]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert all(float(row["low"]) < float(row["margin"]) < float(row["high"]) for row in rows)


def test_a_table_of_no_model_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"^models: none has attention between words"):
        tabulate_attention({}, INTERVALS, tmp_path / "t.csv")


def write_synthetic(folder, model: str, layers: int, scale: float, sets=TEXT_SETS, captions=40):
    """Margins that fall from early layers to zero; `scale` times in the later half."""
    generator = np.random.default_rng(layers)
    numbers = np.arange(1, layers + 1)
    rows = []
    for text_set in sets:
        for caption in range(captions):
            margins = 0.06 * np.exp(-numbers / layers * 3) * np.where(numbers > layers / 2, scale, 1)
            for number, margin in zip(numbers, margins + generator.normal(0, 0.01, layers), strict=True):
                cells = {"model": model, "text_set": text_set, "caption": f"c{caption}"}
                rows.append(cells | {"layer": int(number), "margin": float(margin)})
    path = folder / f"{model}.parquet"
    write_table(ATTENTION_MARGINS, rows, path)
    return path


@pytest.fixture(scope="module")
def figure_table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure")
    models = {"base": 1.0, "finetuned": 1.4, "finetuned-no-lines": 2.4}
    paths = {name: write_synthetic(folder, name, 12, scale) for name, scale in models.items()}
    tabulate_attention(paths, INTERVALS, folder / "attention.csv")
    return folder / "attention.csv"


def test_the_table_orders_models_sets_and_layers(figure_table):
    rows = list(csv.reader(figure_table.open()))
    assert rows[0] == HEADER and len(rows) == 1 + 3 * 3 * 12
    curves = read_curves(figure_table)
    assert list(curves) == [(m, s) for m in ("base", "finetuned", "finetuned-no-lines") for s in TEXT_SETS]
    for name in TEXT_SETS:
        base, ours, bare = (curves[model, name].value[6:] for model in ("base", "finetuned", "finetuned-no-lines"))
        assert base.mean() < ours.mean() < bare.mean()


def test_the_interval_is_one_over_captions(figure_table):
    captions = read_table(ATTENTION_MARGINS, figure_table.parent / "base.parquet").to_pandas()
    margins = captions[(captions.text_set == "saber") & (captions.layer == 4)].margin
    curve = read_curves(figure_table)["base", "saber"]
    assert curve.value[3] == pytest.approx(margins.mean(), abs=1e-6)
    half_width = (curve.high[3] - curve.low[3]) / 2
    assert half_width == pytest.approx(1.96 * margins.std(ddof=0) / 40**0.5, rel=0.25)


def test_the_figure_has_a_panel_for_each_set_with_bands_and_a_zero_line(figure_table, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(attention_plots, "_save", lambda figure, output, settings: figures.append(figure))
    plot_attention(figure_table, tmp_path, Figures(dpi=60))
    (figure,) = figures
    assert [panel.get_title() for panel in figure.axes] == ["short queries", "longer positives", "SABER queries"]
    curves = read_curves(figure_table)
    for panel, text_set in zip(figure.axes, TEXT_SETS, strict=True):
        zero, *lines = panel.get_lines()
        assert list(zero.get_ydata()) == [0, 0]
        assert len(lines) == len(panel.collections) == 3
        for line, band, model in zip(
            lines, panel.collections, ("base", "finetuned", "finetuned-no-lines"), strict=True
        ):
            curve = curves[model, text_set]
            assert list(line.get_xdata()) == list(range(1, 13))
            np.testing.assert_array_equal(line.get_ydata(), curve.value)
            heights = band.get_paths()[0].vertices[:, 1]
            assert (heights.min(), heights.max()) == (curve.low.min(), curve.high.max())
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["base", "finetuned", "finetuned-no-lines"]


def test_the_same_table_gives_the_same_bytes(figure_table, tmp_path):
    for name in ("a", "b"):
        plot_attention(figure_table, tmp_path / name, Figures(dpi=60))
    for ending in ("png", "svg"):
        first, second = ((tmp_path / name / f"attention.{ending}").read_bytes() for name in ("a", "b"))
        assert first == second
    assert Image.open(tmp_path / "a/attention.png").size[0] > 600


def test_models_of_different_depth_and_single_sets_are_drawn(tmp_path):
    paths = {n: write_synthetic(tmp_path, n, depth, 1, ("saber",)) for n, depth in (("deep", 6), ("flat", 1))}
    tabulate_attention(paths, INTERVALS, tmp_path / "t.csv")
    plot_attention(tmp_path / "t.csv", tmp_path, Figures(dpi=60))
    assert (tmp_path / "attention.svg").exists()


def test_tables_that_are_not_whole_are_told(figure_table, tmp_path):
    with pytest.raises(UserError, match="no such file"):
        plot_attention(tmp_path / "none.csv", tmp_path, Figures())
    lines = figure_table.read_text().splitlines(keepends=True)
    broken = {
        "no row": lines[:1],
        "a layer less": lines[:5] + lines[6:],
        "cut between layers": lines[:-3],
        "cut between sets": lines[:-12],
        "cut in a line": [*lines[:-1], lines[-1][:-9]],
        "no number": [*lines[:-1], lines[-1].replace("0.", "x", 1)],
    }
    for what, rows in broken.items():
        (tmp_path / "t.csv").write_text("".join(rows))
        with pytest.raises(UserError, match="not a whole table"):
            plot_attention(tmp_path / "t.csv", tmp_path, Figures())
            pytest.fail(what)


def test_tables_of_other_models_or_captions_are_told(tmp_path):
    path = write_synthetic(tmp_path, "one", 4, 1)
    with pytest.raises(UserError, match="not the margins of two"):
        tabulate_attention({"two": path}, INTERVALS, tmp_path / "t.csv")
    other = write_synthetic(tmp_path, "two", 4, 1, captions=39)
    with pytest.raises(UserError, match=r"two\.parquet: measured on other captions"):
        tabulate_attention({"one": path, "two": other}, INTERVALS, tmp_path / "t.csv")
    rows = read_table(ATTENTION_MARGINS, path).to_pylist()
    write_table(ATTENTION_MARGINS, rows[:2] + rows[3:], path)
    with pytest.raises(UserError, match="not the margins of one"):
        tabulate_attention({"one": path}, INTERVALS, tmp_path / "t.csv")
