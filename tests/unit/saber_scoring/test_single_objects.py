"""The single-object measure: what is drawn, what counts as named right, and what the table makes of it."""

import csv
from collections import Counter

import numpy as np
import pytest
from bindbench.config import check
from bindbench.config.scoring import Tables
from bindbench.config.single_objects import SingleObjects
from bindbench.errors import UserError
from bindbench.nano.combinations import is_held_out
from bindbench.saber.naming import name_images, score_single_objects, tabulate_single_objects
from bindbench.saber.single_objects import phrases_of, sample_single_objects, write_single_objects
from bindbench.snakemake_support import names_single_objects, single_object_bases, single_object_models
from bindbench.tables import NAMINGS, PHRASES, SINGLE_OBJECTS, read_table, write_table
from bindbench.vocabulary import Vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_saber import write_embeddings

SOME = SingleObjects(seen=60, held_out=40)
TABLES = Tables(bootstrap_samples=200)


@pytest.fixture(scope="module")
def rows(vocabulary) -> list[dict]:
    return sample_single_objects(vocabulary, SOME)


def small(vocabulary: Vocabulary, n_objects: int, n_attributes: int) -> Vocabulary:
    objects, attributes = list(vocabulary.objects.items()), list(vocabulary.attributes.items())
    return Vocabulary(dict(objects[:n_objects]), dict(attributes[:n_attributes]), vocabulary.palette)


def pair(row: dict) -> tuple[str, str]:
    (binding,) = row["bindings"]
    return binding["attribute"], binding["object"]


def test_every_combination_of_the_vocabulary_has_one_phrase_with_its_article(vocabulary):
    phrases = phrases_of(vocabulary)
    assert len(phrases) == len({row["phrase"] for row in phrases}) == 232 * 50 == 11_600
    captions = {row["caption"] for row in phrases}
    assert len(captions) == 11_600 and {"a red cube", "an icy cube"} <= captions


def test_about_a_tenth_of_the_combinations_is_held_out(vocabulary):
    held_out = [is_held_out(row["attribute"], row["object"]) for row in phrases_of(vocabulary)]
    assert 0.09 < np.mean(held_out) < 0.11


def test_no_combination_is_drawn_twice_and_each_part_holds_only_its_own(rows):
    assert len({pair(row) for row in rows}) == len(rows) == 100
    assert Counter(row["held_out"] for row in rows) == {False: 60, True: 40}
    assert all(is_held_out(*pair(row)) == row["held_out"] for row in rows)


def test_attributes_are_realised_as_the_vocabulary_allows_and_captions_say_so(rows, vocabulary):
    forms = set()
    for row in rows:
        (binding,) = row["bindings"]
        allowed = {form: slots for slots, form, _ in vocabulary.realisations[binding["attribute"]]}
        assert allowed[binding["realised"]] == tuple(binding["slots"])
        assert row["generation_caption"].split(" ", 1)[1] == f"{binding['realised']} {binding['object']}"
        forms.add(binding["realised"] == binding["attribute"])
    assert forms == {True, False}


def test_more_of_one_part_changes_no_other_scene_and_another_seed_does(rows, vocabulary):
    more = sample_single_objects(vocabulary, SOME.model_copy(update={"seen": 80}))
    assert more[:60] == rows[:60] and more[80:] == rows[60:]
    other = sample_single_objects(vocabulary, SOME.model_copy(update={"seed": 1}))
    assert {pair(row) for row in other} != {pair(row) for row in rows}


def test_a_short_vocabulary_gives_what_it_has(vocabulary):
    few = small(vocabulary, 10, 6)
    rows = sample_single_objects(few, SOME)
    assert {pair(row) for row in rows} == {(a, o) for a in few.attributes for o in few.objects}


GRID = [(attribute, thing) for attribute in range(3) for thing in range(4)]
ATTRIBUTES, OBJECTS = (np.array(part) for part in zip(*GRID, strict=True))


def named(similarities: list[list[float]], own: list[int]) -> dict[str, np.ndarray]:
    """Scores of images that have these similarities to the twelve phrases: phrases are the axes of the space."""
    images = np.array(similarities, np.float32)
    return name_images(images, np.eye(len(GRID), dtype=np.float32), np.array(own), OBJECTS, ATTRIBUTES)


def test_object_and_attribute_are_judged_by_themselves():
    own = GRID.index((1, 2))
    similarities = np.zeros((4, 12), np.float32)
    for row, phrase in enumerate([(1, 2), (0, 2), (1, 3), (0, 0)]):
        similarities[row, own] = 0.5
        similarities[row, GRID.index(phrase)] = 0.9
    result = named(similarities, [own] * 4)
    assert result["rank"].tolist() == [1, 2, 2, 2]
    assert result["object_right"].tolist() == [True, True, False, False]
    assert result["attribute_right"].tolist() == [True, False, True, False]
    assert [GRID[row] for row in result["nearest"]] == [(1, 2), (0, 2), (1, 3), (0, 0)]


def test_a_tie_is_wrong_for_what_the_tied_phrases_differ_in():
    own = GRID.index((1, 2))
    similarities = np.zeros((2, 12), np.float32)
    similarities[:, own] = 0.9
    similarities[0, GRID.index((0, 2))] = 0.9  # another attribute of the same object
    similarities[1, GRID.index((1, 0))] = 0.9
    result = named(similarities, [own, own])
    assert result["rank"].tolist() == [2, 2]
    assert result["object_right"].tolist() == [True, False]
    assert result["attribute_right"].tolist() == [False, True]


def test_an_embedder_without_any_opinion_or_number_names_nothing():
    for value in (0.0, np.nan):
        result = named(np.full((2, 12), value), [0, 7])
        assert result["rank"].tolist() == [12, 12]
        assert not result["object_right"].any() and not result["attribute_right"].any()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=12, max_size=12), st.integers(0, 11), st.permutations(range(12)))
def test_rank_and_parts_are_what_counting_says_in_any_order_of_the_phrases(levels, own, order):
    """Few levels, so that ties are common."""
    result = named([levels], [own])
    above = [level >= levels[own] for level in levels]
    assert result["rank"][0] == sum(above)
    best = [GRID[place] for place, level in enumerate(levels) if level == max(levels)]
    assert result["object_right"][0] == all(thing == GRID[own][1] for _, thing in best)
    assert result["attribute_right"][0] == all(attribute == GRID[own][0] for attribute, _ in best)
    assert (result["rank"][0] == 1) == (result["object_right"][0] and result["attribute_right"][0])
    moved = name_images(
        np.array([levels], np.float32)[:, list(order)],
        np.eye(12, dtype=np.float32),
        np.array([order.index(own)]),
        OBJECTS[list(order)],
        ATTRIBUTES[list(order)],
    )
    for name in ("rank", "object_right", "attribute_right"):
        assert moved[name] == result[name]


@pytest.fixture(scope="module")
def measured(vocabulary, tmp_path_factory):
    """Three embedders of 12 objects and 10 attributes, and their base: all right, objects alone, right on the first half."""
    folder = tmp_path_factory.mktemp("single")
    few = small(vocabulary, 12, 10)
    scenes, phrases = folder / "scenes.parquet", folder / "phrases.parquet"
    write_single_objects(few, SingleObjects(seen=30, held_out=10), scenes, phrases)
    images = read_table(SINGLE_OBJECTS, scenes).to_pylist()
    texts = read_table(PHRASES, phrases).to_pylist()
    columns = {row["phrase"]: place for place, row in enumerate(texts)}
    one_hot = np.eye(len(texts))
    by_object = np.array([[row["object"] == thing for thing in few.objects] for row in texts], float)
    right = [columns["/".join(pair(row))] for row in images]
    half = [place if row % 2 else (place + 1) % len(texts) for row, place in enumerate(right)]
    spaces = {
        "base": (one_hot, one_hot[right]),
        "objects": (by_object, by_object[right]),
        "half": (one_hot, one_hot[half]),
    }
    scores = {}
    for name, (text, image) in spaces.items():
        paths = [
            write_embeddings(folder / f"{name}.text.parquet", list(columns), text),
            write_embeddings(folder / f"{name}.image.parquet", [row["scene"] for row in images], image),
        ]
        scores[name] = folder / f"{name}.parquet"
        score_single_objects(scenes, phrases, *paths, scores[name])
    output = folder / "single_objects.csv"
    tabulate_single_objects(scores, phrases, TABLES, {"objects": "base", "half": "base"}, output)
    return folder, scores, output


def cells(path, model: str, combinations: str) -> dict[str, str]:
    with path.open(newline="") as file:
        (found,) = [r for r in csv.DictReader(file) if (r["model"], r["combinations"]) == (model, combinations)]
    return found


def values(row: dict[str, str], name: str) -> list[float]:
    return [float(row[name + end]) for end in ("", "_low", "_high")]


def test_a_perfect_embedder_names_everything(measured):
    for combinations in ("seen", "held_out"):
        row = cells(measured[2], "base", combinations)
        for measure in ("top_1", "top_5", "object", "attribute"):
            assert values(row, measure) == [100.0] * 3
        assert row["base"] == row["top_1_difference"] == row["top_1_kept"] == ""


def test_an_embedder_of_objects_alone_ties_over_attributes(measured):
    row = cells(measured[2], "objects", "seen")
    assert values(row, "object") == [100.0] * 3
    assert row["top_1"] == row["top_5"] == row["attribute"] == row["top_1_kept"] == "0.00"
    assert values(row, "object_difference") == [0.0] * 3 and values(row, "top_1_difference") == [-100.0] * 3


def test_the_share_that_is_kept_has_a_paired_interval(measured):
    _, scores, output = measured
    table = read_table(NAMINGS, scores["half"])
    held_out = table["held_out"].to_numpy(zero_copy_only=False)
    for combinations, part in (("seen", ~held_out), ("held_out", held_out)):
        row, right = cells(output, "half", combinations), table["rank"].to_numpy()[part] == 1
        assert int(row["images"]) == part.sum() > 5
        assert float(row["top_1"]) == pytest.approx(100 * right.mean(), abs=0.01)
        # The base names everything: what is kept is the share itself, and the difference the rest.
        assert values(row, "top_1_kept") == values(row, "top_1")
        assert values(row, "top_1_difference") == pytest.approx([v - 100 for v in values(row, "top_1")], abs=0.011)
        value, low, high = values(row, "top_1")
        assert low < value < high and row["base"] == "base"


def test_chance_follows_from_the_vocabulary(measured):
    row = cells(measured[2], "chance", "held_out")
    assert [row[name] for name in ("top_1", "top_5", "object", "attribute")] == ["0.83", "4.17", "8.33", "10.00"]
    assert row["top_1_low"] == row["base"] == ""


def test_a_base_that_names_nothing_has_nothing_to_keep(measured, tmp_path):
    folder, scores, _ = measured
    swapped = {"objects": scores["objects"], "base": scores["base"]}
    tabulate_single_objects(swapped, folder / "phrases.parquet", TABLES, {"base": "objects"}, tmp_path / "table.csv")
    row = cells(tmp_path / "table.csv", "base", "seen")
    assert row["top_1_kept"] == row["top_1_kept_low"] == "" and row["top_1_difference"] == "100.00"


def test_a_vocabulary_without_held_out_combinations_has_no_row_of_them(measured, tmp_path):
    folder, scores, _ = measured
    table = read_table(NAMINGS, scores["half"])
    held_out = table["held_out"].to_numpy(zero_copy_only=False)
    for name, part in (("seen", ~held_out), ("held_out", held_out)):
        write_table(NAMINGS, table.filter(part), tmp_path / "part.parquet")
        phrases, output = folder / "phrases.parquet", tmp_path / "table.csv"
        tabulate_single_objects({"half": tmp_path / "part.parquet"}, phrases, TABLES, {}, output)
        with output.open(newline="") as file:
            assert {row["combinations"] for row in csv.DictReader(file)} == {name}
        assert cells(output, "half", name)["top_1"] == cells(measured[2], "half", name)["top_1"]


def test_files_that_do_not_belong_together_are_told(measured, vocabulary, tmp_path):
    folder, scores, _ = measured
    inputs = [
        folder / name for name in ("scenes.parquet", "phrases.parquet", "base.text.parquet", "base.image.parquet")
    ]
    with pytest.raises(UserError, match=r"base\.image\.parquet: embeddings of other items"):
        score_single_objects(*inputs[:2], inputs[3], inputs[3], tmp_path / "out.parquet")
    with pytest.raises(UserError, match=r"must share one space"):
        score_single_objects(*inputs[:3], folder / "objects.image.parquet", tmp_path / "out.parquet")
    write_single_objects(small(vocabulary, 3, 10), SOME, tmp_path / "scenes.parquet", tmp_path / "phrases.parquet")
    with pytest.raises(UserError, match=r"phrases\.parquet: has no phrase of"):
        score_single_objects(inputs[0], tmp_path / "phrases.parquet", *inputs[2:], tmp_path / "out.parquet")
    write_table(NAMINGS, read_table(NAMINGS, scores["half"]).slice(1), tmp_path / "short.parquet")
    mixed = {"base": scores["base"], "half": tmp_path / "short.parquet"}
    with pytest.raises(UserError, match=r"short\.parquet: scores of other images than"):
        tabulate_single_objects(mixed, inputs[1], TABLES, {}, tmp_path / "table.csv")
    with pytest.raises(UserError, match="none of them embeds both images and texts"):
        tabulate_single_objects({}, inputs[1], TABLES, {}, tmp_path / "table.csv")


def test_only_models_that_read_both_are_measured_and_only_where_they_can_be_shown():
    runs = {"bound": {"base": "nano"}, "words": {"base": "minilm"}}
    models = ["minilm", "nano", "bound", "words", "bound-nolines", "efficientnet-lite0"]
    both = check({"models": models, "finetuning": {"runs": runs}})
    assert single_object_models(both) == ["nano", "bound", "bound-nolines"]
    assert single_object_bases(both) == {"bound": "nano", "bound-nolines": "nano"}
    assert names_single_objects(both)
    assert not names_single_objects(check({"models": ["minilm", "efficientnet-lite0"]}))
    bought = {"scenes": {"renderer": "openai", "image_px": 1024}}
    assert names_single_objects(check(bought))
    own = {"vocabulary": {"attributes": "mine.csv"}}
    assert names_single_objects(check(own)) and not names_single_objects(check(bought | own))
