"""The word lists of B.3, as cases: the pool of 772 adjectives in 19 families, and the objects that they describe."""

import csv
import re
from collections import Counter
from itertools import chain

import inflect
import pytest
from bindbench.language import article
from bindbench.paths import REPOSITORY

RESOURCES = REPOSITORY / "resources"


def words(text: str) -> list[str]:
    return text.split()


FAMILIES = set(
    words(
        "color pattern texture material shape size weight age condition cleanliness value origin style finish moisture"
        " temperature make strength appeal"
    )
)
CLASSES = words(
    "vessel container furniture textile clothing tool machine vehicle instrument paper ornament toy food plant structure"
    " fixture"
)
PLACES = words(
    "home kitchen workshop office school shop market street transport farm garden park waterfront beach mountain forest"
    " museum theatre sports industry clinic camp cafe hotel"
)
# Singular nouns in -s, of which inflect takes the s for a plural's.
SINGULAR_IN_S = {"thermos", "bus", "atlas", "iris", "crocus", "cactus", "trellis"}


def rows_of(path: str) -> list[dict[str, str]]:
    with (RESOURCES / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], name: str) -> list[str]:
    return [row[name] for row in rows]


ADJECTIVES = rows_of("triplets/adjectives.csv")
OBJECTS = rows_of("triplets/objects.csv")
POOL = column(ADJECTIVES, "adjective")
NOUNS = column(OBJECTS, "object")


def fitting(object_class: str) -> list[dict[str, str]]:
    return [row for row in ADJECTIVES if row["suits"] == "all" or object_class in row["suits"].split("|")]


def standing_in(place: str) -> list[dict[str, str]]:
    return [row for row in OBJECTS if row["places"] == "any" or place in row["places"].split("|")]


def test_pool_has_772_adjectives_in_19_families():
    assert len(POOL) == 772
    assert set(column(ADJECTIVES, "family")) == FAMILIES
    assert len(FAMILIES) == 19


def test_no_family_is_too_small_to_suggest_from_or_dominates_the_pool():
    sizes = Counter(column(ADJECTIVES, "family"))
    assert min(sizes.values()) >= 20, sizes
    assert max(sizes.values()) <= 0.1 * len(POOL), sizes


def test_at_least_900_objects():
    assert len(NOUNS) >= 900


def test_no_word_stands_twice_in_both_lists_together():
    counts = Counter(word.lower() for word in POOL + NOUNS)
    assert [word for word, count in counts.items() if count > 1] == []


def test_an_attribute_is_a_single_word():
    """B.4 requires it; capitals stay where a sentence keeps them in its middle."""
    assert [word for word in POOL if not re.fullmatch(r"[A-Za-z]+(-[A-Za-z]+)*", word)] == []
    capitals = {row["family"] for row in ADJECTIVES if row["adjective"] != row["adjective"].lower()}
    assert capitals == {"shape", "age", "origin", "style"}  # L-shaped, Victorian, Italian, Gothic


def test_an_object_has_one_to_three_words_and_mostly_one():
    assert [noun for noun in NOUNS if not re.fullmatch(r"[A-Za-z]+([ -][A-Za-z]+)*", noun)] == []
    lengths = Counter(len(noun.split()) for noun in NOUNS)
    assert set(lengths) <= {1, 2, 3}
    assert lengths[1] > len(NOUNS) / 2


def test_no_object_contains_an_adjective_of_the_pool():
    """A sentence with "hot dog" and "hot" would hold the attribute twice."""
    pool = {word.lower() for word in POOL}
    assert [noun for noun in NOUNS if pool & set(noun.lower().split())] == []


def test_suits_names_known_classes_in_their_order_or_all():
    for row in ADJECTIVES:
        suits = row["suits"].split("|")
        assert suits == ["all"] or suits == [c for c in CLASSES if c in suits], row
        assert len(suits) < len(CLASSES), f"{row}: this is all"


def test_becomes_is_yes_or_no_and_states_that_do_not_set_in_say_no():
    assert set(column(ADJECTIVES, "becomes")) == {"yes", "no"}
    becoming = {row["adjective"] for row in ADJECTIVES if row["becomes"] == "yes"}
    assert {"rusty", "damp", "dull", "warm", "red"} <= becoming
    fixed = {row["adjective"] for row in ADJECTIVES if row["family"] in ("material", "origin", "make")}
    assert not becoming & (fixed | {"Victorian", "striped", "Gothic"})


def test_classes_and_places_are_known():
    assert set(column(OBJECTS, "class")) == set(CLASSES)
    for row in OBJECTS:
        places = row["places"].split("|")
        assert places == ["any"] or places == [p for p in PLACES if p in places], row


@pytest.mark.parametrize("object_class", CLASSES)
def test_every_class_can_be_described_in_many_ways(object_class):
    rows = fitting(object_class)
    assert len(rows) >= 30
    assert len(set(column(rows, "family"))) >= 12


@pytest.mark.parametrize("object_class", CLASSES)
def test_no_class_takes_every_adjective(object_class):
    assert len(fitting(object_class)) < 0.85 * len(POOL)


@pytest.mark.parametrize("place", PLACES)
def test_every_place_offers_many_objects_of_many_classes(place):
    rows = standing_in(place)
    assert len(rows) >= 80
    assert sum(count >= 5 for count in Counter(column(rows, "class")).values()) >= 6
    assert sum(row["places"] != "any" for row in rows) >= 40, "a place needs objects of its own"


@pytest.mark.parametrize(
    ("adjective", "unfit"),
    [
        ("knitted", {"vehicle", "machine", "structure", "food"}),
        ("wooden", {"textile", "clothing", "paper", "food"}),
        ("rusty", {"textile", "clothing", "paper", "food", "plant"}),
        ("stale", set(CLASSES) - {"food"}),
        ("Victorian", {"machine", "vehicle", "food", "plant"}),
    ],
)
def test_what_an_object_cannot_be_is_not_said_to_suit_it(adjective, unfit):
    assert not unfit & {c for c in CLASSES if adjective in column(fitting(c), "adjective")}


@pytest.mark.parametrize(
    ("noun", "absent"),
    [("castle", "kitchen"), ("train", "home"), ("hospital bed", "beach"), ("palm tree", "office"), ("anvil", "clinic")],
)
def test_what_cannot_stand_in_a_place_is_not_offered_there(noun, absent):
    assert noun in NOUNS
    assert noun not in column(standing_in(absent), "object")


def test_objects_overlap_with_those_of_saber_without_being_them():
    """The ablations of C.1 need examples with words of SABER, and examples without."""
    shared = set(NOUNS) & set(column(rows_of("vocabulary/objects.csv"), "object"))
    assert 0.12 <= len(shared) / len(NOUNS) <= 0.30


def test_no_animal_of_saber_is_an_object():
    animals = {row["object"] for row in rows_of("vocabulary/objects.csv") if row["group"] == "animal"}
    assert animals
    assert not animals & set(NOUNS)


def test_most_attributes_of_saber_are_in_the_pool():
    attributes = set(column(rows_of("vocabulary/attributes.csv"), "attribute"))
    assert {"red", "striped", "wooden", "polka-dotted", "icy", "knitted"} <= attributes & set(POOL)
    assert len(attributes & set(POOL)) > len(attributes) / 2


def test_objects_are_singular():
    singular_noun = inflect.engine().singular_noun
    taken_for_plurals = {noun for noun in NOUNS if singular_noun(noun)}
    assert taken_for_plurals == SINGULAR_IN_S


@pytest.mark.parametrize(
    ("right", "tricky"),
    [
        ("a", "used useful useless unique European utilitarian U-shaped uniform ukulele unicycle euphonium T-shirt"),
        ("a", "handmade heavy historic hollow one-piece ewer"),
        ("an", "L-shaped hourglass unused uneven unwashed umbrella urn eighteenth-century honest heirloom herb"),
        ("an", "X-ray oil-stained off-white old-fashioned ice-cold eye-catching"),
    ],
)
def test_article_of_tricky_words(right, tricky):
    assert [word for word in words(tricky) if article(word) != right] == []


def test_article_follows_the_letter_but_for_words_checked_by_hand():
    by_sound = {
        "U-shaped", "useful", "useless", "utilitarian", "European", "unique", "uniform", "unicycle", "ukulele",
        "euphonium", "L-shaped", "hourglass", "X-ray machine",
    }  # fmt: skip
    against_letter = {word for word in chain(POOL, NOUNS) if (article(word) == "an") != (word[0].lower() in "aeiou")}
    assert against_letter == by_sound
