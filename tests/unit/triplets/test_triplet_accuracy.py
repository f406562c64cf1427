"""Triplet accuracy (B.5, Table 10): strictly closer, both negatives, intervals over examples."""

import csv

import numpy as np
import pytest
from bindbench.config.scoring import Tables
from bindbench.errors import UserError
from bindbench.statistics import mean_interval, random_generator
from bindbench.tables import TRIPLET_SCORES, TRIPLETS, embeddings_table, read_table, write_table
from bindbench.triplets.accuracy import score_triplets, tabulate_accuracy, triplet_texts
from synthetic_triplets import rows


@pytest.fixture
def examples(tmp_path):
    write_table(TRIPLETS, [*rows("pair_swap", 12), *rows("predicative", 8)], tmp_path / "test.parquet")
    return tmp_path / "test.parquet"


def embeddings(examples, tmp_path, vectors):
    items = list(triplet_texts([examples]))
    rows_ = [{"item": item, "embedding": vector} for item, vector in zip(items, vectors, strict=True)]
    write_table(embeddings_table(len(vectors[0])), rows_, tmp_path / "vectors.parquet")
    return tmp_path / "vectors.parquet"


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def test_four_texts_of_each_example_are_embedded(examples):
    texts = triplet_texts([examples])
    row = read_table(TRIPLETS, examples).to_pylist()[3]
    assert len(texts) == 80
    for role in ("query", "positive", "attribute_negative", "object_negative"):
        assert texts[f"{row['example']}:{role}"] == row[role]


def test_similarities_are_cosines_with_the_query(examples, tmp_path):
    vectors = unit(np.random.default_rng(0).normal(size=(80, 8)))
    score_triplets([examples], embeddings(examples, tmp_path, vectors), tmp_path / "scores.parquet")
    scores = read_table(TRIPLET_SCORES, tmp_path / "scores.parquet")
    cube = vectors.reshape(20, 4, 8).astype(np.float64)
    for column, name in enumerate(("positive", "attribute_negative", "object_negative"), 1):
        expected = (cube[:, 0] * cube[:, column]).sum(axis=1)
        np.testing.assert_allclose(scores[name].to_numpy(), expected, atol=1e-6)


def test_equal_vectors_tie_and_a_tie_is_wrong(examples, tmp_path):
    vectors = np.repeat(unit(np.random.default_rng(1).normal(size=(20, 64))), 4, axis=0)
    score_triplets([examples], embeddings(examples, tmp_path, vectors), tmp_path / "scores.parquet")
    tabulate_accuracy({"bag": tmp_path / "scores.parquet"}, Tables(), tmp_path / "table.csv")
    table = list(csv.DictReader((tmp_path / "table.csv").open()))[1:]
    assert {row["accuracy"] for row in table} == {"0.00"} and {row["tied"] for row in table} == {"100.00"}


def test_embeddings_of_other_examples_are_refused(examples, tmp_path):
    vectors = unit(np.random.default_rng(0).normal(size=(80, 8)))
    path = embeddings(examples, tmp_path, vectors)
    write_table(TRIPLETS, rows("pair_swap", 20), examples)
    with pytest.raises(UserError, match=r"not the embeddings of .*; delete it and run again"):
        score_triplets([examples], path, tmp_path / "scores.parquet")


def scores_table(path, margins):
    """margins: (examples, 2) of the positive over each negative."""
    write_table(
        TRIPLET_SCORES,
        [
            {"example": f"{i}", "split": "test", "construction": "pair_swap" if i % 2 else "predicative", "positive": 0.5,
             "attribute_negative": 0.5 - a, "object_negative": 0.5 - o}
            for i, (a, o) in enumerate(margins)
        ],
        path,
    )  # fmt: skip
    return path


def test_accuracy_counts_both_triplets_of_every_example(tmp_path):
    path = scores_table(tmp_path / "s.parquet", [(0.1, 0.1), (0.1, -0.1), (0.1, 0.0), (-0.1, -0.1)])
    tabulate_accuracy({"m": path}, Tables(), tmp_path / "t.csv")
    table = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert table[0]["model"] == "chance" and table[0]["accuracy"] == "50.00"
    assert {row["split"] for row in table[1:]} == {"test"}
    cells = {(row["construction"], row["negative"]): row for row in table[1:]}
    assert cells["all", "both"]["accuracy"] == "50.00" and cells["all", "both"]["triplets"] == "8"
    assert cells["all", "attribute_negative"]["accuracy"] == "75.00"
    assert cells["all", "object_negative"]["accuracy"] == "25.00"
    assert cells["all", "object_negative"]["tied"] == "25.00"
    assert cells["predicative", "both"]["accuracy"] == "75.00" and cells["pair_swap", "both"]["triplets"] == "4"


def test_the_interval_is_that_of_a_plain_bootstrap_over_examples(tmp_path):
    generator = np.random.default_rng(3)
    right = generator.random((400, 2)) < (0.7, 0.5)
    values = right.mean(axis=1)
    plain = np.quantile(values[generator.integers(0, 400, (20_000, 400))].mean(axis=1), [0.025, 0.975])
    ours = mean_interval(values, 20_000, 0.95, random_generator(0, "test"))
    np.testing.assert_allclose([ours.low, ours.high], plain, atol=0.003)
    assert ours.mean == pytest.approx(values.mean())
