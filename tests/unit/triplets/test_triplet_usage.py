"""Frequency caps, duplicate sets, avoid lists and suggestions (B.3)."""

import json
import random
from collections import Counter

import pytest
from bindbench.triplets.constructions import CONSTRUCTIONS, Binding
from bindbench.triplets.usage import Usage, set_of, suggested, words_of
from hypothesis import given
from hypothesis import strategies as st

FAMILIES = {"red": "color", "blue": "color", "teal": "color", "oak": "material", "tin": "material", "old": "age"}
WORDS = st.sampled_from(["red", "blue", "teal", "oak", "tin", "old", "grey", "dry"])
THINGS = st.sampled_from(["mug", "jar", "lamp", "kite", "oar", "drum"])


def pair(first: str, one: str, second: str, other: str) -> tuple[Binding, ...]:
    return Binding((first,), one), Binding((second,), other)


def numbered(number: int) -> tuple[Binding, ...]:
    return pair(f"a{number}", f"o{number}", f"b{number}", f"p{number}")


@pytest.mark.parametrize(
    ("construction", "percent"),
    [
        ("pair_swap", 1.5),
        ("triple_bind_cycle", 2.25),
        ("triple_bind_swap", 2.25),
        ("attr_bundle", 3),
        ("predicative", 1.5),
    ],
)
def test_the_cap_is_ten_or_a_fraction_that_grows_with_the_attributes(construction, percent):
    assert 100 * CONSTRUCTIONS[construction].cap_fraction == pytest.approx(percent)
    usage = Usage(construction)
    usage.accepted = 100
    assert usage.cap == 10
    usage.accepted = 10_000
    assert usage.cap == round(100 * percent)


def test_a_word_is_refused_at_its_cap_and_welcome_again_when_the_cap_has_grown():
    usage = Usage("pair_swap")
    for number in range(10):
        assert usage.refusal(pair("red", f"o{number}", f"b{number}", f"p{number}")) is None
        usage.add(pair("red", f"o{number}", f"b{number}", f"p{number}"))
    eleventh = pair("Red", "o", "b", "p")
    assert usage.refusal(eleventh) == ("word_at_cap", "red") and usage.is_banned("RED")
    for number in range(1000):
        usage.add(numbered(number))
    assert usage.refusal(eleventh) is None


def test_the_same_words_bound_otherwise_are_a_duplicate():
    usage = Usage("pair_swap")
    usage.add(pair("red", "mug", "blue", "jar"))
    assert usage.refusal(pair("blue", "mug", "red", "jar"))[0] == "duplicate_set"
    assert usage.refusal(pair("blue", "Jar", "Red", "mug"))[0] == "duplicate_set"
    assert usage.refusal(pair("red", "mug", "blue", "lamp")) is None
    assert Usage("predicative").refusal(pair("red", "mug", "blue", "jar")) is None, "duplicates are per construction"


@given(st.lists(st.tuples(WORDS, THINGS, WORDS, THINGS), max_size=150))
def test_no_accepted_example_goes_beyond_the_caps_or_repeats_a_set(proposals):
    usage, accepted = Usage("pair_swap"), []
    for proposal in (pair(*four) for four in proposals):
        if usage.refusal(proposal) is None:
            usage.add(proposal)
            accepted.append(proposal)
            counts = Counter(word for bindings in accepted for word in set(words_of(bindings)))
            assert max(counts.values()) <= max(10, 0.015 * len(accepted)) + 1e-9 or len(set(words_of(proposal))) < 4
    assert len({set_of(bindings) for bindings in accepted}) == len(accepted) == usage.accepted


def test_the_avoid_list_holds_the_100_latest_and_the_40_most_frequent_words():
    usage = Usage("pair_swap")
    for number in range(20):
        for _ in range(4):
            usage.add(pair(f"often{number}", f"thing{number}", f"often{number}", f"thing{number}"))
    for number in range(60):
        usage.add(numbered(number))
    guidance = usage.guidance(FAMILIES, random.Random(0))
    latest = {word for number in range(35, 60) for word in words_of(numbered(number))}
    frequent = {f"often{number}" for number in range(20)} | {f"thing{number}" for number in range(20)}
    assert len(latest) == 100 and set(guidance.avoid) == latest | frequent and not guidance.banned


def test_words_at_their_cap_are_banned_and_never_suggested():
    usage = Usage("pair_swap")
    for number in range(10):
        usage.add(pair("red", f"o{number}", "tin", f"p{number}"))
    guidance = usage.guidance(FAMILIES, random.Random(0))
    assert guidance.banned == ("red", "tin") and not {"red", "tin"} & set(guidance.avoid)
    assert guidance.suggestions == {"color": guidance.suggestions["color"], "material": ("oak",), "age": ("old",)}
    assert set(guidance.suggestions["color"]) == {"blue", "teal"}


def test_suggestions_are_drawn_from_the_least_used_of_each_family():
    usage = Usage("pair_swap")
    pool = {f"c{number}": "color" for number in range(20)} | {f"m{number}": "material" for number in range(20)}
    for number in range(7):
        usage.add(pair(f"c{number}", f"o{number}", f"m{number + 13}", f"p{number}"))
    guidance = usage.guidance(pool, random.Random(0))
    unused = {
        family: {w for w in pool if pool[w] == family and not usage.counts[w]} for family in ("color", "material")
    }
    seen = {family: set() for family in unused}
    for seed in range(40):
        prompt = suggested(guidance, random.Random(seed))
        assert all(len(set(words)) == 4 for words in prompt.suggestions.values())
        assert (prompt.avoid, prompt.banned) == (guidance.avoid, guidance.banned)
        for family, words in prompt.suggestions.items():
            seen[family] |= set(words)
    assert all(len(words) == 16 and unused[family] <= words for family, words in seen.items())


@given(st.lists(st.tuples(WORDS, THINGS, WORDS, THINGS), max_size=60), st.tuples(WORDS, THINGS, WORDS, THINGS))
def test_a_state_that_was_written_and_read_decides_the_same(added, asked):
    usage = Usage("pair_swap")
    for four in added:
        usage.add(pair(*four))
    again = Usage.from_json(json.loads(json.dumps(usage.to_json())))
    assert again.refusal(pair(*asked)) == usage.refusal(pair(*asked))
    assert again.guidance(FAMILIES, random.Random(1)) == usage.guidance(FAMILIES, random.Random(1))
    again.add(pair(*asked)), usage.add(pair(*asked))
    assert again.to_json() == usage.to_json()
