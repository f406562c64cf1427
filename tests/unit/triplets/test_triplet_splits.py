"""Splits (B.5) and the sets of the ablations (C.1, section 6)."""

import json
from collections import Counter

import numpy as np
import pytest
from bindbench.config.questions import PALETTE
from bindbench.config.triplets import Splits
from bindbench.errors import UserError
from bindbench.paths import REPOSITORY
from bindbench.tables import TRIPLETS, read_table, write_table
from bindbench.triplets.constructions import CONSTRUCTIONS
from bindbench.triplets.negatives import query_of
from bindbench.triplets.splits import (
    bindings_of,
    mixed_lengths,
    overlaps,
    saber_words,
    split_of,
    write_sets,
    write_splits,
)
from bindbench.triplets.summary import has_negation
from bindbench.triplets.usage import set_of
from bindbench.vocabulary import read_vocabulary
from hypothesis import assume, given
from hypothesis import strategies as st
from synthetic_triplets import rows as drawn_rows

LISTS = REPOSITORY / "resources/vocabulary"
VOCABULARY = read_vocabulary(LISTS / "objects.csv", LISTS / "attributes.csv", PALETTE)


def rows(construction: str, count: int) -> list[dict]:
    """Rows with a query as ours: with articles, in the order of mention."""
    made = json.loads(json.dumps(drawn_rows(construction, count)).replace("mug rack", "rack"))  # "mug" once, please
    for number, row in enumerate(made):
        bindings = bindings_of(row["bindings"])
        row["query"] = query_of(bindings, range(len(bindings)))
        row["kept"] = number % 3 if construction == "triple_bind_swap" else None
        row["swapped_slot"] = number % 2 if construction == "attr_bundle" else None
    return made


def pairs(*words: str) -> list[dict]:
    half = len(words) // 2
    return [{"attributes": [words[i]], "object": words[half + i]} for i in range(half)]


@given(st.integers(20, 400), st.integers(0, 5), st.floats(0.05, 0.4), st.floats(0.05, 0.4))
def test_sizes_are_exact_when_no_sets_are_shared(total, seed, validation, test):
    bindings = [pairs(f"a{i}", f"b{i}", f"o{i}", f"p{i}") for i in range(total)]
    parts = split_of(bindings, Splits(seed=seed, validation=validation, test=test))
    sizes = np.bincount(parts, minlength=3).tolist()
    assert sizes[1:] == [round(total * validation), round(total * test)] and sum(sizes) == total


def test_80_000_examples_make_64_000_8_000_and_8_000():
    bindings = [pairs(f"a{i}", f"b{i}", f"o{i}", f"p{i}") for i in range(80_000)]
    assert np.bincount(split_of(bindings, Splits())).tolist() == [64_000, 8_000, 8_000]


@given(st.lists(st.integers(0, 150), min_size=60, max_size=300), st.integers(0, 3))
def test_no_set_of_attributes_and_objects_is_in_two_splits(numbers, seed):
    """Different constructions may hold the same set, and bind it in another way."""
    assume(len(set(numbers)) > 25)
    bindings = [
        pairs(*(("x", f"y{n}", f"o{n}", "p") if i % 2 else (f"y{n}", "x", f"o{n}", "p"))) for i, n in enumerate(numbers)
    ]
    parts = split_of(bindings, Splits(seed=seed))
    of_set: dict[int, set[int]] = {}
    for number, part in zip(numbers, parts.tolist(), strict=True):
        of_set.setdefault(number, set()).add(part)
    assert all(len(found) == 1 for found in of_set.values())


def test_splits_do_not_depend_on_the_order_of_the_shards():
    bindings = [pairs(f"a{i}", f"b{i}", f"o{i}", f"p{i}") for i in range(100)]
    forward = split_of(bindings, Splits())
    backward = split_of(bindings[::-1], Splits())
    assert forward.tolist() == backward[::-1].tolist()
    assert forward.tolist() != split_of(bindings, Splits(seed=1)).tolist()


def test_a_split_that_would_be_empty_is_told():
    with pytest.raises(UserError, match=r"triplets\.splits\.validation: 3 examples are too few"):
        split_of([pairs("a", "b", "o", str(i)) for i in range(3)], Splits())


@pytest.fixture
def shards(tmp_path):
    paths = []
    for name in CONSTRUCTIONS:
        write_table(TRIPLETS, rows(name, 60), tmp_path / f"{name}.shard.parquet")
        paths.append(tmp_path / f"{name}.shard.parquet")
    return paths


def test_both_deferred_constructions_are_held_out_whole(shards, tmp_path):
    write_splits(shards, Splits(), tmp_path)
    sizes = {}
    for split in ("train", "validation", "test", "deferred_bind_anaphoric", "deferred_bind_respective"):
        table = read_table(TRIPLETS, tmp_path / f"{split}.parquet")
        sizes[split] = len(table)
        found = set(table["construction"].to_pylist())
        assert (
            found == {split} if split.startswith("deferred") else not any(name.startswith("deferred") for name in found)
        )
    assert sizes["deferred_bind_anaphoric"] == sizes["deferred_bind_respective"] == 60
    assert sizes["validation"] == sizes["test"] == 30 and sizes["train"] == 240


def test_the_sets_of_the_ablations(shards, tmp_path):
    write_splits(shards, Splits(validation=0.1, test=0.1), tmp_path)
    write_sets(tmp_path / "train.parquet", VOCABULARY, Splits(set_size=5), tmp_path)
    train = {row["example"]: row for row in read_table(TRIPLETS, tmp_path / "train.parquet").to_pylist()}
    words = saber_words(VOCABULARY)
    sets = {
        name: read_table(TRIPLETS, tmp_path / f"{name}.parquet").to_pylist()
        for name in ("no_overlap", "random", "overlap_only", "no_negation", "mixed_lengths")
    }
    assert len(sets["no_overlap"]) == len(sets["random"]) == len(sets["overlap_only"]) == 5
    assert not any(overlaps(row["bindings"], words) for row in sets["no_overlap"])
    assert all(overlaps(row["bindings"], words) for row in sets["overlap_only"])
    for name in ("no_overlap", "random", "overlap_only", "no_negation"):
        assert all(train[row["example"]] == row for row in sets[name])
    assert {row["example"] for row in sets["no_negation"]} == {
        name for name, row in train.items() if not has_negation(row["positive"])
    }
    sizes = json.loads((tmp_path / "sizes.json").read_text())
    assert sizes["train"] == len(train) and sizes["sets"]["mixed_lengths"] == len(sets["mixed_lengths"]) == 3 * len(
        train
    )
    assert sizes["pools"]["no_overlap"] + sizes["pools"]["overlap_only"] == len(train)


def test_a_set_that_is_larger_than_its_pool_is_refused(shards, tmp_path):
    write_splits(shards, Splits(), tmp_path)
    with pytest.raises(UserError, match=r"triplets\.splits\.set_size: 300 is more than \w+ has \(\d+\)"):
        write_sets(tmp_path / "train.parquet", VOCABULARY, Splits(set_size=300), tmp_path)


def test_without_a_size_the_smaller_pool_decides(shards, tmp_path):
    write_splits(shards, Splits(), tmp_path)
    write_sets(tmp_path / "train.parquet", VOCABULARY, Splits(), tmp_path)
    sizes = json.loads((tmp_path / "sizes.json").read_text())
    assert sizes["sets"]["random"] == min(sizes["pools"].values())


@pytest.mark.parametrize("construction", [name for name, kind in CONSTRUCTIONS.items() if not kind.deferred])
def test_mixed_lengths_holds_every_example_in_three_formats(construction, tmp_path):
    write_table(TRIPLETS, rows(construction, 30), tmp_path / "e.parquet")
    examples = read_table(TRIPLETS, tmp_path / "e.parquet")
    mixed = mixed_lengths(examples, 0).to_pylist()
    assert len(mixed) == 3 * len(examples)
    for original, short, long in zip(mixed[::3], mixed[1::3], mixed[2::3], strict=True):
        assert [row["example"] for row in (short, long)] == [
            f"{original['example']}-short",
            f"{original['example']}-long",
        ]
        assert original["query"] == short["query"] and long["query"] == original["positive"]
        texts = [short[role] for role in ("positive", "attribute_negative", "object_negative")]
        assert len(set(texts)) == 3 and texts == [
            long[r] for r in ("positive", "attribute_negative", "object_negative")
        ]
        bags = [Counter("a" if word == "an" else word for word in text.split()) for text in texts]
        assert bags[0] == bags[1] == bags[2] == Counter("a" if w == "an" else w for w in short["query"].split())
        phrases = [f"{' '.join(pair['attributes'])} {pair['object']}" for pair in original["bindings"]]
        assert all(phrase in texts[0] for phrase in phrases)
        kept = original["kept"] if construction == "triple_bind_swap" else None
        for wrong in texts[1:]:
            assert [i for i, phrase in enumerate(phrases) if phrase in wrong] == ([] if kept is None else [kept])
    turned = sum(short["positive"] != short["query"] for short in mixed[1::3])
    assert turned == len(examples), "another order than the query's"


def test_sets_are_those_of_the_validator():
    row = rows("attr_bundle", 1)[0]
    assert set_of(bindings_of(row["bindings"])) == set_of(bindings_of(row["bindings"][::-1]))
