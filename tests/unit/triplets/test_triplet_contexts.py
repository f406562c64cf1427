"""The lists that contexts are drawn from, as cases: what B.3 counts, and what makes a scene usable in any sentence."""

import csv
import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations

import pytest
from bindbench.language import article
from bindbench.paths import REPOSITORY

FOLDER = REPOSITORY / "resources" / "triplets"


def words(text: str) -> list[str]:
    return text.lower().split()


KINDS = words(
    "home kitchen workshop office school shop market street transport farm garden park waterfront beach mountain forest"
    " museum theatre sports industry clinic camp cafe hotel"
)
PREPOSITIONS = set(
    words(
        "aboard above across against along amid among around at atop behind below beneath beside between beyond by"
        " halfway in inside near next off on opposite outside over past under underneath within"
    )
)
FUNCTION_WORDS = PREPOSITIONS | set(words("a an the of to for with"))
TIMES = ["dawn", "early morning", "late morning", "midday", "afternoon", "dusk", "evening", "night"]
WEATHERS = ["light rain", "heavy rain", "fog", "snow", "strong wind", "bright sunshine", "overcast sky", "frost"]
REGISTERS = {
    "news caption", "field notebook", "auction listing", "maintenance log", "travel diary", "museum label",
    "police report", "insurance claim", "catalogue entry", "letter to a friend", "estate inventory", "detective story",
    "children's story", "radio bulletin", "guidebook entry", "property listing", "lost-property notice",
    "classified advertisement", "prop list", "screenplay note", "restoration report", "shipping record",
    "classroom observation", "oral history", "blog post", "product review", "customs declaration", "security briefing",
    "exhibition review", "photo album caption", "stocktaking note", "court testimony",
}  # fmt: skip
OPENERS = {
    "place first", "time first", "surroundings first", "object first", "there is", "participle", "subordinate clause",
    "imperative", "reported speech", "inversion", "observer first", "adverb first", "purpose first", "concession",
    "sequence word", "label first",
}  # fmt: skip
# Words that examples use as attributes: in a scene they would stand there a second time.
ATTRIBUTES = set(
    words(
        "red blue green yellow white black grey brown purple pink golden silver wooden stone leather ceramic porcelain"
        " velvet plastic metal copper brass bronze iron woollen silk cotton paper old new ancient modern antique vintage"
        " large small tiny huge long short tall narrow wide heavy light dusty dirty clean dry wet damp cold hot warm cool"
        " cheap expensive precious shiny matte glossy rusty cracked broken worn faded striped spotted checked plain round"
        " square oval smooth rough soft hard fluffy elegant rustic ornate grand french italian spanish japanese chinese"
        " turkish danish victorian"
    )
)


def read(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


SCENES = read("scenes.csv")
PLACES = [row["scene"] for row in SCENES]


def shared(one: str, other: str) -> float:
    """Part of the words of the one with fewer different words that the other holds too."""
    first, second = set(words(one)), set(words(other))
    return len(first & second) / min(len(first), len(second))


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("scenes.csv", ["scene", "kind", "setting"]),
        ("times.csv", ["time", "phrase"]),
        ("weathers.csv", ["weather", "phrase", "clause"]),
        ("registers.csv", ["register", "instruction"]),
        ("openers.csv", ["opener", "instruction"]),
    ],
)
def test_every_cell_is_filled_once_and_trimmed(name, columns):
    rows = read(name)
    assert all(list(row) == columns for row in rows)
    assert all(cell and cell == " ".join(cell.split()) for row in rows for cell in row.values())
    for column in set(columns) - {"kind", "setting"}:
        assert [value for value, n in Counter(row[column].lower() for row in rows).items() if n > 1] == []


def test_there_are_1000_scenes_and_81000_contexts():
    assert len(SCENES) == 1000
    places, times, weathers = (
        PLACES,
        [row["time"] for row in read("times.csv")],
        [r["weather"] for r in read("weathers.csv")],
    )
    assert len(set(places)) * (len(set(times)) + 1) * (len(set(weathers)) + 1) == 81_000


def test_there_are_32_registers_and_16_openers_of_the_agreed_names():
    assert (len(REGISTERS), len(OPENERS)) == (32, 16)
    assert {row["register"] for row in read("registers.csv")} == REGISTERS
    assert {row["opener"] for row in read("openers.csv")} == OPENERS


def test_times_and_weathers_have_the_agreed_names():
    assert [row["time"] for row in read("times.csv")] == TIMES
    assert [row["weather"] for row in read("weathers.csv")] == WEATHERS


def test_instructions_are_one_sentence_each():
    for row in read("registers.csv") + read("openers.csv"):
        outside_quotations = re.sub(r'"[^"]*"', "", row["instruction"])
        assert outside_quotations[0].isupper()
        assert re.findall(r"[.!?]", outside_quotations) == ["."], row
        assert outside_quotations.endswith(".")
        assert 8 <= len(outside_quotations.split()) <= 32


def test_times_and_weathers_are_adverbials_that_fit_into_the_middle_of_a_sentence():
    for row in read("times.csv") + read("weathers.csv"):
        assert re.fullmatch(r"(at|in|early|late|on|during) [a-z ]+", row["phrase"]), row
    for row in read("weathers.csv"):
        assert re.search(r"\b(was|hung|lay|covered)\b", row["clause"]), "not in the past tense"


def test_times_and_weathers_hold_no_attribute_of_an_example():
    for row in read("times.csv") + read("weathers.csv"):
        assert not ATTRIBUTES & set((row["phrase"] + " " + row.get("clause", "")).split())


def test_every_kind_of_place_has_at_least_25_scenes():
    counts = Counter(row["kind"] for row in SCENES)
    assert len(KINDS) == 24
    assert set(counts) == set(KINDS)
    assert min(counts.values()) >= 25


def test_both_settings_occur_often_and_landscapes_are_mostly_outdoors():
    counts = Counter(row["setting"] for row in SCENES)
    assert set(counts) == {"indoor", "outdoor"}
    assert min(counts.values()) >= 300
    for kind in ("street", "beach", "mountain", "forest", "garden", "park"):
        assert sum(row["setting"] == "outdoor" for row in SCENES if row["kind"] == kind) >= 30
    for kind in ("office", "clinic", "museum", "kitchen"):
        assert sum(row["setting"] == "indoor" for row in SCENES if row["kind"] == kind) >= 30


def faulty(fits: Callable[[str], object]) -> list[str]:
    """The scenes that do not fit, so that a failing test shows them all at once."""
    return [scene for scene in PLACES if not fits(scene)]


def test_scenes_have_3_to_9_words():
    assert faulty(lambda scene: 3 <= len(scene.split()) <= 9) == []


def test_scenes_begin_with_a_preposition_in_lower_case():
    assert faulty(lambda scene: scene.split()[0] in PREPOSITIONS) == []


def test_scenes_hold_words_only_without_digits_or_punctuation():
    word = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")
    assert faulty(lambda scene: all(word.fullmatch(each) for each in scene.split())) == []


def test_scenes_are_single_places_without_a_clause_or_a_speaker():
    joining = set(words("and or which that who whose was were is are my our your his her"))
    assert faulty(lambda scene: not joining & set(words(scene))) == []


def test_compound_prepositions_are_complete():
    completions = {"next": {"to"}, "halfway": {"up", "down", "along"}}
    assert faulty(lambda scene: scene.split()[1] in completions.get(scene.split()[0], {scene.split()[1]})) == []


def test_articles_of_scenes_agree():
    articles = re.compile(r"\b(an?) (\S+)")
    assert faulty(lambda scene: all(found == article(noun) for found, noun in articles.findall(scene))) == []


def test_no_scene_holds_a_typical_attribute():
    assert faulty(lambda scene: not ATTRIBUTES & set(words(scene))) == []


def test_neither_scenes_nor_times_nor_weathers_hold_a_suggested_attribute():
    """Queried words stand exactly once in a sentence (B.4): a context that held one could not be used with it."""
    pool = {row["adjective"].lower() for row in read("adjectives.csv")}
    assert faulty(lambda scene: not pool & set(words(scene))) == []
    for row in read("times.csv") + read("weathers.csv"):
        assert not pool & set(words(row["phrase"] + " " + row.get("clause", ""))), row


def test_no_two_scenes_share_more_than_80_percent_of_their_words():
    assert [pair for pair in combinations(PLACES, 2) if shared(*pair) > 0.8] == []


def test_no_two_scenes_differ_in_their_function_words_only():
    contents = Counter(frozenset(words(scene)) - FUNCTION_WORDS for scene in PLACES)
    assert [sorted(content) for content, n in contents.items() if n > 1] == []


def test_no_preposition_begins_more_than_45_percent_and_many_are_used():
    counts = Counter(scene.split()[0] for scene in PLACES)
    assert max(counts.values()) <= 450
    assert sum(n >= 10 for n in counts.values()) >= 8


def test_no_frame_is_filled_again_and_again():
    """A scene with its last word exchanged is no other place."""
    frames = Counter(" ".join(words(scene)[:-1]) for scene in PLACES)
    assert frames.most_common(1)[0][1] <= 2


def test_vocabulary_is_rich():
    vocabulary = {word for scene in PLACES for word in words(scene)} - FUNCTION_WORDS
    assert len(vocabulary) >= 900
    assert max(Counter(word for scene in PLACES for word in set(words(scene)) - FUNCTION_WORDS).values()) <= 60
