"""The CSV tables and the page of SABER, from scores whose values are known by construction."""

import csv
import math
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from bindbench.config.scoring import Tables
from bindbench.errors import UserError
from bindbench.nano.combinations import any_held_out
from bindbench.saber.scoring import score_saber
from bindbench.saber.tabulate import tabulate_saber
from bindbench.tables import PAIRINGS, SCORES, read_table, write_table
from bindbench.vocabulary import Attribute, Vocabulary
from synthetic_saber import (
    ATTRIBUTES,
    binding_embeddings,
    tiny_saber,
    word_embeddings,
    write_embeddings,
    write_rows,
)

REFERENCE = Path(__file__).parents[3] / "resources/reference/saber_paper.csv"
SETTINGS = Tables(bootstrap_samples=200)
VOCABULARY = Vocabulary(
    {}, {a: Attribute(a, "standalone", "warm" if i < 6 else "cold", a, (), a) for i, a in enumerate(ATTRIBUTES)}, ()
)
TABLES = (
    *("table2", "table17", "table18", "table19", "differences"),
    *("by_category", "by_combination", "by_candidate_kind", "containment", "top_four"),
)


def noise_embeddings(seed):
    return lambda scenes: np.random.default_rng(seed).normal(size=(len(scenes), 8))


def measure(folder: Path, models: dict, **sizes):
    """models: name -> (text embedder, image embedder or None). Returns name -> rows of each CSV, as dicts."""
    questions, scenes = tiny_saber(**sizes)
    tables = write_rows(folder, questions, scenes)
    items = [scene["scene"] for scene in scenes]
    scores = {}
    for number, (name, embedders) in enumerate(models.items()):
        paths = [
            write_embeddings(folder / f"{number}.{kind}.parquet", items, embed(scenes)) if embed else None
            for kind, embed in zip(("text", "image"), embedders, strict=True)
        ]
        scores[name] = folder / f"{number}.scores.parquet"
        score_saber(*tables, *paths, scores[name])
    tabulate_saber(scores, *tables, VOCABULARY, SETTINGS, REFERENCE, folder / "results")
    return scores, {name: read(folder / f"results/saber_{name}.csv") for name in TABLES}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def row(rows, **cells):
    (found,) = [r for r in rows if all(r[name] == value for name, value in cells.items())]
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saber")
    models = {
        "perfect": (binding_embeddings, binding_embeddings),
        "words-only": (word_embeddings, None),
        "noise": (noise_embeddings(1), noise_embeddings(2)),
    }
    scores, tables = measure(folder, models, independent=8, nested=6)
    return folder, scores, tables


def test_every_table_is_well_formed_and_has_a_dot_as_decimal_sign(measured):
    folder, _, tables = measured
    for name, rows in tables.items():
        text = (folder / f"results/saber_{name}.csv").read_bytes().decode()
        assert rows
        assert text.endswith("\n")
        assert "\r" not in text
        assert "nan" not in text.lower()
        assert len({line.count(",") for line in text.splitlines()}) == 1


def test_perfect_embedder_scores_100_percent_in_every_cell_of_table_2(measured):
    for protocol in ("mcq", "retrieval_independent", "retrieval_nested"):
        cells = row(measured[2]["table2"], model="perfect", protocol=protocol)
        for pairing in (*PAIRINGS, "mean"):
            assert [cells[pairing + end] for end in ("", "_low", "_high")] == ["100.00"] * 3


def test_bag_of_words_scores_nothing_and_its_ties_are_counted(measured):
    cells = row(measured[2]["table2"], model="words-only", protocol="mcq")
    assert cells["text_text"] == "0.00"
    assert cells["text_text_tied"] == "100.00"


def test_missing_modality_and_the_mean_over_pairings_are_empty_not_zero(measured):
    cells = row(measured[2]["table2"], model="words-only", protocol="mcq")
    for name in ("text_image", "image_text_low", "image_image_high", "image_image_tied", "mean", "mean_low"):
        assert cells[name] == ""
    for name in ("table17", "by_category", "containment", "top_four"):
        rows = [r for r in measured[2][name] if r["model"] == "words-only"]
        assert {r["pairing"] for r in rows} == {*PAIRINGS, "mean"}
        for cells in rows:
            numbers = [cells[column] for column in ("value", "low", "high", "2", "3", "4") if column in cells]
            assert all(numbers) if cells["pairing"] == "text_text" else not any(numbers)


def test_chance_comes_first_and_is_25_percent_or_the_expected_average_precision(measured):
    _, scores, tables = measured
    first = tables["table2"][:3]
    assert [cells["model"] for cells in first] == ["chance"] * 3
    assert first[0]["mean"] == "25.00"
    table = read_table(SCORES, scores["noise"]).to_pandas()
    nested = table[(table.pairing == "text_text") & (table.subset == "nested")]
    expected = nested.groupby("n_objects").expected_average_precision.mean().mean()
    assert float(first[2]["image_text"]) == pytest.approx(100 * expected, abs=0.01)


def test_means_are_taken_by_size_then_over_sizes_then_over_pairings(measured):
    _, scores, tables = measured
    table = read_table(SCORES, scores["noise"]).to_pandas()
    accuracy = table.groupby(["pairing", "n_objects"]).correct.mean()
    cells = row(tables["table2"], model="noise", protocol="mcq")
    macro = accuracy.groupby("pairing").mean()
    for pairing in PAIRINGS:
        assert float(cells[pairing]) == pytest.approx(100 * macro[pairing], abs=0.01)
        by_n = row(tables["table17"], model="noise", pairing=pairing, statistic="value")
        assert [float(by_n[n]) for n in "234"] == pytest.approx((100 * accuracy[pairing]).tolist(), abs=0.01)
        assert by_n["mean"] == cells[pairing]
    assert float(cells["mean"]) == pytest.approx(100 * macro.mean(), abs=0.01)


def test_retrieval_keeps_independent_and_nested_apart(measured):
    _, scores, tables = measured
    table = read_table(SCORES, scores["noise"]).to_pandas()
    for subset, name in (("independent", "table18"), ("nested", "table19")):
        part = table[(table.subset == subset) & (table.pairing == "image_text") & (table.n_objects == 3)]
        cells = row(tables[name], model="noise", pairing="image_text", statistic="value")
        assert float(cells["3"]) == pytest.approx(100 * part.average_precision.mean(), abs=0.01)


def test_intervals_enclose_their_value(measured):
    cells = row(measured[2]["table2"], model="noise", protocol="retrieval_nested")
    for pairing in (*PAIRINGS, "mean"):
        assert float(cells[f"{pairing}_low"]) < float(cells[pairing]) < float(cells[f"{pairing}_high"])


def test_differences_are_first_minus_second_for_every_pair_of_models(measured):
    rows = measured[2]["differences"]
    table2 = measured[2]["table2"]
    assert len({(r["model"], r["other_model"]) for r in rows}) == 3
    cells = row(rows, model="perfect", other_model="noise", protocol="mcq", pairing="mean")
    noise = float(row(table2, model="noise", protocol="mcq")["mean"])
    assert float(cells["difference"]) == pytest.approx(100 - noise, abs=0.011)
    assert 0 < float(cells["low"]) < float(cells["high"])
    assert row(rows, model="words-only", other_model="noise", protocol="mcq", pairing="mean")["difference"] == ""


def test_question_weighs_in_a_category_by_its_share_of_bindings(measured):
    _, scores, tables = measured
    table = read_table(SCORES, scores["noise"]).to_pandas()
    table = table[table.pairing == "text_text"].set_index("question")
    _, scenes = tiny_saber(independent=8, nested=6)
    warm = {
        s["question"]: np.mean([ATTRIBUTES.index(b["attribute"]) < 6 for b in s["bindings"]])
        for s in scenes
        if s["role"] == "query"
    }
    table["weight"] = [warm[q] for q in table.index]
    by_n = [np.average(part.correct, weights=part.weight) for _, part in table.groupby("n_objects")]
    cells = row(tables["by_category"], model="noise", pairing="text_text", category="warm")
    assert float(cells["value"]) == pytest.approx(100 * np.mean(by_n), abs=0.01)
    assert int(cells["n_questions"]) == (table.weight > 0).sum()


def test_questions_with_a_held_out_combination_stand_apart(measured):
    _, scores, tables = measured
    table = read_table(SCORES, scores["noise"]).to_pandas()
    table = table[table.pairing == "image_text"].set_index("question")
    _, scenes = tiny_saber(independent=8, nested=6)
    held_out = {
        s["question"]: any_held_out((b["attribute"], b["object"]) for b in s["bindings"])
        for s in scenes
        if s["role"] == "query"
    }
    table["held_out"] = [held_out[q] for q in table.index]
    total = 0
    for name, part in (("seen", table[~table.held_out]), ("held_out", table[table.held_out])):
        cells = row(tables["by_combination"], model="noise", pairing="image_text", combinations=name)
        assert float(cells["value"]) == pytest.approx(100 * part.groupby("n_objects").correct.mean().mean(), abs=0.01)
        assert float(cells["low"]) <= float(cells["value"]) <= float(cells["high"])
        assert int(cells["n_questions"]) == len(part) > 5
        total += len(part)
    assert total == len(table)


def test_candidate_kinds_are_compared_one_by_one(measured):
    _, scores, tables = measured
    table = read_table(SCORES, scores["noise"]).to_pandas()
    table = table[table.pairing == "image_image"]
    four = np.stack(table.similarities)
    sizes = table.n_objects.to_numpy()
    attribute_swap = [np.mean(four[sizes == n, 0] > four[sizes == n, 1]) for n in (2, 3, 4)]
    joint_swap = [np.mean(four[sizes == n, 0] > four[sizes == n, 3]) for n in (3, 4)]
    rows = tables["by_candidate_kind"]
    for kind, expected in (
        ("attribute_swap", np.mean(attribute_swap)),
        ("joint_swap", np.mean(joint_swap)),
        ("replacement", np.mean(four[sizes == 2, 0] > four[sizes == 2, 3])),
    ):
        cells = row(rows, model="noise", pairing="image_image", kind=kind)
        assert float(cells["value"]) == pytest.approx(100 * expected, abs=0.01)
    assert int(row(rows, model="noise", pairing="mean", kind="replacement")["n_questions"]) == (sizes == 2).sum()
    assert row(rows, model="words-only", pairing="text_text", kind="object_swap")["value"] == "0.00"


def test_containment_is_the_share_of_all_comparisons_of_nested_queries(measured):
    _, scores, tables = measured
    table = read_table(SCORES, scores["noise"]).to_pandas()
    part = table[(table.pairing == "text_image") & (table.subset == "nested")]
    for comparison, pairs in (
        ("subset_above_exact", "subset_exact_pairs"),
        ("subset_above_superset", "subset_superset_pairs"),
    ):
        cells = row(tables["containment"], model="noise", pairing="text_image", comparison=comparison)
        assert int(cells["n_pairs"]) == part[pairs].sum() > 0
        assert float(cells["value"]) == pytest.approx(100 * part[comparison].sum() / part[pairs].sum(), abs=0.01)
    assert (
        row(tables["containment"], model="perfect", pairing="mean", comparison="subset_above_exact")["value"] == "0.00"
    )


def test_top_four_is_a_share_of_the_independent_queries(measured):
    _, scores, tables = measured
    table = read_table(SCORES, scores["perfect"]).to_pandas()
    part = table[(table.pairing == "text_text") & (table.subset == "independent")]
    cells = row(tables["top_four"], model="perfect", pairing="text_text")
    assert float(cells["value"]) == pytest.approx(100 * part.groupby("n_objects").top_four.mean().mean(), abs=0.01)
    assert int(cells["n_questions"]) == 24


def test_same_scores_give_the_same_bytes(measured, tmp_path):
    folder, scores, _ = measured
    tables = folder / "questions.parquet", folder / "scenes.parquet"
    tabulate_saber(scores, *tables, VOCABULARY, SETTINGS, REFERENCE, tmp_path)
    for name in [*(f"saber_{t}.csv" for t in TABLES), "saber_table2.html"]:
        assert (tmp_path / name).read_bytes() == (folder / "results" / name).read_bytes()


def test_adding_a_model_leaves_the_intervals_of_the_others(measured, tmp_path):
    folder, scores, tables = measured
    paths = folder / "questions.parquet", folder / "scenes.parquet"
    tabulate_saber({"noise": scores["noise"]}, *paths, VOCABULARY, SETTINGS, REFERENCE, tmp_path)
    alone = row(read(tmp_path / "saber_table2.csv"), model="noise", protocol="mcq")
    assert alone == row(tables["table2"], model="noise", protocol="mcq")


def test_benchmark_without_nested_questions_leaves_their_cells_empty(tmp_path):
    _, tables = measure(tmp_path, {"noise": (noise_embeddings(0), None)}, nested=0)
    cells = row(tables["table2"], model="noise", protocol="retrieval_nested")
    assert cells["n_questions"] == "0"
    assert cells["text_text"] == ""
    assert row(tables["table2"], model="chance", protocol="retrieval_nested")["text_text"] == ""
    assert (
        row(tables["containment"], model="noise", pairing="text_text", comparison="subset_above_exact")["value"] == ""
    )
    assert row(tables["table2"], model="noise", protocol="retrieval_independent")["text_text"] != ""


def test_scores_of_other_questions_are_refused(measured, tmp_path):
    folder, scores, _ = measured
    rows = read_table(SCORES, scores["noise"])
    write_table(SCORES, rows.slice(1), tmp_path / "short.parquet")
    with pytest.raises(UserError, match="scores of other questions than"):
        tabulate_saber(
            {"noise": tmp_path / "short.parquet"},
            folder / "questions.parquet",
            folder / "scenes.parquet",
            VOCABULARY,
            SETTINGS,
            REFERENCE,
            tmp_path,
        )


class Page(HTMLParser):
    """Text of each table, whether tags close, and every address that the page names."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.open, self.addresses, self.text = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("href", "src")]
        if tag == "table":
            self.tables.append("")
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "table" in self.open:
            self.tables[-1] += data


def test_page_shows_our_values_and_the_papers_in_separate_tables(measured):
    page = Page((measured[0] / "results/saber_table2.html").read_text())
    assert page.open == []
    assert page.addresses == []
    assert len(page.tables) == 4
    assert not any("Qwen3-VL-Embedding-8B" in table for table in page.tables[:3])
    assert "Qwen3-VL-Embedding-8B" in page.tables[3]
    assert "words-only" not in page.tables[3]
    assert "not comparable" in page.text


def test_page_escapes_names(tmp_path):
    questions, scenes = tiny_saber()
    tables = write_rows(tmp_path, questions, scenes)
    items = [scene["scene"] for scene in scenes]
    texts = write_embeddings(tmp_path / "text.parquet", items, binding_embeddings(scenes))
    score_saber(*tables, texts, None, tmp_path / "scores.parquet")
    name = "<script>alert(1)</script> & co"
    tabulate_saber({name: tmp_path / "scores.parquet"}, *tables, VOCABULARY, SETTINGS, REFERENCE, tmp_path)
    text = (tmp_path / "saber_table2.html").read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in text
    assert row(read(tmp_path / "saber_table2.csv"), model=name, protocol="mcq")["text_text"] == "100.00"


def test_papers_known_values_are_consistent_with_each_other():
    values = {(r["model"], r["protocol"], r["pairing"]): r for r in read(REFERENCE)}
    assert len(values) == len(read(REFERENCE))
    for model in ("Qwen3-VL-Embedding-8B", "Ours-8B", "Ours-8B NoOverlap"):
        four = [float(values[model, "mcq", pairing]["value"]) for pairing in PAIRINGS]
        assert float(values[model, "mcq", "mean"]["value"]) == pytest.approx(math.fsum(four) / 4, abs=0.0501)
    for cells in values.values():
        assert cells["known"] in ("stated", "derived")
        assert cells["place"]
