"""Image triplets before they are rendered: what the four scenes of an example share, and what nobody else may show."""

import random
from collections import Counter
from itertools import permutations

import pytest
from bindbench.config import check
from bindbench.config.image_triplets import ImageTriplets
from bindbench.config.questions import Questions
from bindbench.errors import UserError
from bindbench.saber.image_triplets import (
    binding_sets,
    deranged,
    sample_image_triplets,
    scenes_of,
    write_image_triplets,
)
from bindbench.saber.questions import write_questions
from bindbench.tables import IMAGE_TRIPLETS, SCENES, TRIPLET_ROLES, read_table
from bindbench.vocabulary import Vocabulary

SOME = ImageTriplets(examples=240, validation_examples=60)


def pairs(scene: list[dict]) -> frozenset:
    return frozenset((binding["attribute"], binding["object"]) for binding in scene)


def sets_of(rows: list[dict]) -> list[set[frozenset]]:
    return [{pairs(row[role]) for role in TRIPLET_ROLES} for row in rows]


@pytest.fixture(scope="module")
def parts(vocabulary) -> dict[str, list[dict]]:
    return sample_image_triplets(vocabulary, SOME)


@pytest.fixture(scope="module")
def rows(parts) -> list[dict]:
    return parts["validation"] + parts["train"]


def test_the_positive_holds_what_the_query_holds(rows):
    assert all(pairs(row["positive"]) == pairs(row["query"]) for row in rows)


@pytest.mark.parametrize("role", ["attribute_negative", "object_negative"])
def test_a_negative_breaks_every_binding_with_the_same_attributes_and_objects(rows, role):
    for row in rows:
        assert not pairs(row[role]) & pairs(row["query"])
        for name in ("attribute", "object"):
            assert Counter(b[name] for b in row[role]) == Counter(b[name] for b in row["query"])


def test_negatives_differ_wherever_two_wrong_scenes_exist(rows):
    for row in rows:
        same = pairs(row["attribute_negative"]) == pairs(row["object_negative"])
        assert same == (row["n_objects"] == 2)


def test_attributes_look_the_same_in_all_four_scenes_and_no_colour_names_two_of_them(rows, vocabulary):
    for row in rows:
        looks = [{b["attribute"]: (b["realised"], tuple(b["slots"])) for b in row[role]} for role in TRIPLET_ROLES]
        assert all(look == looks[0] for look in looks) and len(looks[0]) == row["n_objects"]
        words = [vocabulary.palette_words(f"{name} {look[0]}") for name, look in looks[0].items()]
        assert sum(map(len, words)) == len(frozenset().union(*words))


def test_sizes_are_dealt_evenly_and_parts_are_as_large_as_asked(parts):
    for part, count in (("train", 240), ("validation", 60)):
        assert Counter(row["n_objects"] for row in parts[part]) == dict.fromkeys((2, 3, 4), count // 3)
        assert all(row["example"].startswith(part) for row in parts[part])


def test_no_set_of_bindings_belongs_to_two_examples(rows):
    counts = Counter(one for sets in sets_of(rows) for one in sets)
    assert max(counts.values()) == 1


def test_the_benchmark_stays_unseen(vocabulary, tmp_path):
    """Small enough that chance would meet it: three objects and four attributes make 36 scenes of two."""
    objects = dict(list(vocabulary.objects.items())[:3])
    attributes = {name: vocabulary.attributes[name] for name in ("golden", "wooden", "striped", "knitted")}
    small = Vocabulary(objects, attributes, vocabulary.palette)
    paths = tmp_path / "questions.parquet", tmp_path / "scenes.parquet"
    write_questions(small, Questions(object_counts=(2,), independent=4, nested=0), *paths)
    shown = {pairs(bindings) for bindings in read_table(SCENES, paths[1])["bindings"].to_pylist()}
    assert binding_sets(paths[1]) == shown and len(shown) > 6
    settings = ImageTriplets(examples=4, validation_examples=2, object_counts=(2,))
    free = {one for part in sample_image_triplets(small, settings).values() for sets in sets_of(part) for one in sets}
    assert free & shown, "without the rule some scene of the benchmark is drawn"
    write_image_triplets(small, settings, paths[1], tmp_path / "train.parquet", tmp_path / "validation.parquet")
    for part, count in (("train", 4), ("validation", 2)):
        drawn = read_table(IMAGE_TRIPLETS, tmp_path / f"{part}.parquet").to_pylist()
        assert len(drawn) == count and not any(sets & shown for sets in sets_of(drawn))


def test_held_out_combinations_are_never_shown(vocabulary):
    every = [(attribute, thing) for attribute in vocabulary.attributes for thing in vocabulary.objects]
    held_out = set(random.Random(0).sample(every, len(every) // 10))
    settings = ImageTriplets(examples=60, validation_examples=30)
    for kept, left_out in ((held_out, False), (set(), True)):
        parts = sample_image_triplets(vocabulary, settings, held_out=kept)
        seen = {pair for part in parts.values() for sets in sets_of(part) for one in sets for pair in one}
        assert bool(seen & held_out) == left_out


def test_more_training_examples_change_no_other(parts, vocabulary):
    more = sample_image_triplets(vocabulary, SOME.model_copy(update={"examples": 300}))
    assert more["validation"] == parts["validation"] and more["train"][:240] == parts["train"]
    other = sample_image_triplets(vocabulary, SOME.model_copy(update={"seed": 1}))
    assert other["train"] != parts["train"]


def test_derangements_are_drawn_evenly():
    counts = Counter(tuple(deranged(4, random.Random(seed))) for seed in range(1800))
    assert set(counts) == {p for p in permutations(range(4)) if all(i != j for i, j in enumerate(p))}
    assert len(counts) == 9 and min(counts.values()) > 140  # 200 expected


def test_an_example_is_four_scenes_with_ids_of_their_own(rows):
    scenes = scenes_of(rows[:2])
    assert [scene["scene"] for scene in scenes[:4]] == [f"validation-00000-{role}" for role in TRIPLET_ROLES]
    assert scenes[5]["bindings"] == rows[1]["positive"]


def test_a_vocabulary_that_does_not_reach_is_told_by_the_key(vocabulary):
    few = Vocabulary(dict(list(vocabulary.objects.items())[:3]), vocabulary.attributes, vocabulary.palette)
    with pytest.raises(UserError, match=r"3 objects are too few for image_triplets\.object_counts \(needs 4\)"):
        sample_image_triplets(few, SOME)
    attributes = dict(list(vocabulary.attributes.items())[:2])
    with pytest.raises(UserError, match=r"no further example with N = 2 found .* lower examples"):
        sample_image_triplets(Vocabulary(few.objects, attributes, few.palette), ImageTriplets(object_counts=(2,)))
    coloured = {name: a for name, a in vocabulary.attributes.items() if a.type == "two-color"}
    narrow = Vocabulary(vocabulary.objects, coloured, ("red", "white"))
    with pytest.raises(UserError, match=r"naming a palette colour twice; .* lower image_triplets\.object_counts"):
        sample_image_triplets(narrow, ImageTriplets(object_counts=(2,)))


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"object_counts": [3, 2]}, "image_triplets.object_counts: must ascend without repeats"),
        ({"object_counts": [1]}, r"image_triplets.object_counts.0: must be >= 2 \(got 1\)"),
        ({"examples": 0}, r"image_triplets.examples: must be >= 1 \(got 0\)"),
    ],
)
def test_nonsense_is_refused_with_its_key(values, line):
    with pytest.raises(UserError, match=line):
        check({"image_triplets": values})
