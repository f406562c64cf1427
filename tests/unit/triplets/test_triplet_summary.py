"""The summary's numbers are those of a count by hand, whatever the set."""

import json
from collections import Counter
from math import exp, log

import numpy as np
import pytest
from bindbench.triplets.constructions import CONSTRUCTIONS, LENGTH_BANDS
from bindbench.triplets.splits import overlaps, saber_words
from bindbench.triplets.summary import (
    OUTSIDE,
    SAMPLE,
    TOP_WORDS,
    Numbers,
    cap_of,
    has_negation,
    self_bleu,
    summarise,
    words_of,
)
from bindbench.triplets.usage import Usage
from bindbench.vocabulary import Attribute, Object, Vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_triplets import FAMILIES, examples_table, rejects_table, rows, small_set

SABER = Vocabulary(
    {name: Object(name, "", "") for name in ("mug", "tea towel")},
    {name: Attribute(name, "standalone", "", name, (), name) for name in ("red", "victorian")},
    (),
)


@pytest.fixture(scope="module")
def small():
    return small_set()


@pytest.fixture(scope="module")
def summary(small):
    return summarise(*small, FAMILIES, SABER)


def of(examples, construction):
    return [row for row in examples.to_pylist() if row["construction"] == construction]


def test_summary_survives_json(summary):
    assert json.loads(json.dumps(summary)) == summary


def test_counts_by_construction_and_split_are_those_of_the_rows(small, summary):
    examples, rejects, splits = small
    split_of = [split for split, count in splits.items() for _ in range(count)]
    expected = Counter(zip(examples["construction"].to_pylist(), split_of, strict=True))
    for name, part in summary["constructions"].items():
        assert part["splits"] == {split: expected[name, split] for split in splits}
        assert part["accepted"] == sum(part["splits"].values())
        reasons = Counter(row["reason"] for row in of(rejects, name))
        assert part["rejects"] == dict(reasons)
        assert list(part["rejects"].values()) == sorted(reasons.values(), reverse=True)
        assert part["acceptance"] == pytest.approx(part["accepted"] / (part["accepted"] + reasons.total()))
    assert summary["examples"] == len(examples) and summary["triplets"] == 2 * len(examples)
    assert summary["rejected"] == len(rejects)


@pytest.mark.parametrize(("what", "column"), [("length", "words"), ("distance", "distance")])
def test_histograms_count_every_example_once_under_its_target(small, summary, what, column):
    for name, part in summary["constructions"].items():
        found = {
            (target["low"], target["high"], value): count
            for target in part[what]["targets"]
            for value, count in target["counts"]
        }
        chosen = of(small[0], name)
        assert found == Counter((row[f"{what}_low"], row[f"{what}_high"], row[column]) for row in chosen)
        assert sum(found.values()) == part["accepted"]
        assert part[what]["mean"] == pytest.approx(np.mean([row[column] for row in chosen]))


def test_shifted_length_targets_belong_to_their_band():
    made = rows("triple_bind_cycle", 4)
    for row, (low, high) in zip(made, ((10, 15), (12, 17), (20, 26), (7, 9)), strict=True):
        row["length_low"], row["length_high"] = low, high
    part = summarise(examples_table(made), rejects_table([], []), {"train": 4}, FAMILIES, SABER)["constructions"]
    bands = {target["low"]: tuple(target["band"]) for target in part["triple_bind_cycle"]["length"]["targets"]}
    assert bands == {10: LENGTH_BANDS[0], 12: LENGTH_BANDS[0], 20: LENGTH_BANDS[1], 7: (7, 9)}


def test_top_words_and_families_are_counted_over_the_queried_pairs(small, summary):
    for name, part in summary["constructions"].items():
        pairs = [pair for row in of(small[0], name) for pair in row["bindings"]]
        attributes = Counter(word for pair in pairs for word in pair["attributes"])
        objects = Counter(pair["object"] for pair in pairs)
        for role, counts in (("attributes", attributes), ("objects", objects)):
            words = part["words"][role]
            assert words["distinct"] == len(counts)
            assert words["top"] == [
                list(item) for item in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP_WORDS]
            ]
        families = Counter(FAMILIES.get(word, OUTSIDE) for word in attributes.elements())
        assert part["families"] == {name: families[name] for name in ("color", "material", "weight", OUTSIDE)}


@pytest.mark.parametrize(
    ("construction", "accepted", "cap"),
    [
        ("pair_swap", 0, 10),
        ("pair_swap", 667, 10),
        ("pair_swap", 16_000, 240),  # 1.5 %
        ("triple_bind_cycle", 16_000, 360),  # 2.25 %
        ("attr_bundle", 16_000, 480),  # 3 %
    ],
)
def test_cap_is_the_larger_of_ten_and_the_fraction(construction, accepted, cap):
    assert cap_of(construction, accepted) == cap


@given(st.sampled_from(sorted(CONSTRUCTIONS)), st.integers(0, 100_000))
def test_cap_is_the_one_that_the_words_were_accepted_under(construction, accepted):
    usage = Usage(construction)
    usage.accepted = accepted
    assert cap_of(construction, accepted) == usage.cap


def test_overlap_counts_the_queried_words_in_any_spelling_and_no_distractor(small, summary):
    for name, part in summary["constructions"].items():
        attribute, thing = [], []
        for row in of(small[0], name):
            words = [word for pair in row["bindings"] for word in pair["attributes"]]
            attribute.append(bool({"red", "Victorian"} & set(words)))
            thing.append(bool({"mug", "tea towel"} & {pair["object"] for pair in row["bindings"]}))
        either = sum(a or t for a, t in zip(attribute, thing, strict=True))
        expected = {"attribute": sum(attribute), "object": sum(thing), "either": either}
        assert part["saber"] == {**expected, "none": part["accepted"] - either}


def test_overlap_is_that_of_the_ablations(small, summary):
    words = saber_words(SABER)
    held = sum(overlaps(pairs, words) for pairs in small[0]["bindings"].to_pylist())
    assert summary["saber"]["either"] == held


@pytest.mark.parametrize(
    "sentence",
    [
        "No lamp was lit.",
        "The lamp was not lit.",
        "It stood there without a shade",
        "The lamp wasn't lit.",
        "The lamp wasn’t lit.",
        "neither red nor blue",
        "He said “never”.",
    ],
)
def test_negation_terms_are_found(sentence):
    assert has_negation(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "A knotted rope.",
        "Nora noted another notch.",
        "a no-frills lamp",
        "the tent was wet",
        "a want of care",
        "None-such",
        "Lot No. 7 sold",
    ],
)
def test_words_that_only_contain_a_negation_deny_nothing(sentence):
    assert not has_negation(sentence)


def test_negated_examples_are_counted(small, summary):
    naive = sum(" not " in text for text in small[0]["positive"].to_pylist())
    assert naive and summary["negation"] == naive
    assert sum(part["negation"] for part in summary["constructions"].values()) == naive


def test_a_hyphenated_word_and_a_possessive_are_one_word():
    assert words_of("The mug's ash-grey rim — “old”, 3 cm.") == ["the", "mug's", "ash-grey", "rim", "old", "3", "cm"]


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join), max_size=6), st.integers(0, 6))
def test_distinct_n_is_different_ngrams_over_all_ngrams_within_sentences(sentences, cut):
    def naive(texts):
        shares = []
        for n in (1, 2, 3):
            ngrams = [tuple(w[i : i + n]) for w in map(str.split, texts) for i in range(len(w) - n + 1)]
            shares.append(len(set(ngrams)) / len(ngrams) if ngrams else None)
        return shares

    numbers = Numbers()
    assert numbers.add(sentences[:cut]) == naive(sentences[:cut])
    assert numbers.add(sentences[cut:]) == naive(sentences[cut:])
    assert numbers.distinct() == naive(sentences)


def naive_bleu(words, references):
    score = 0.0
    for n in range(1, 5):
        own = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        others = [Counter(tuple(r[i : i + n]) for i in range(len(r) - n + 1)) for r in references]
        matches = sum(min(count, max(other[ngram] for other in others)) for ngram, count in own.items())
        if n == 1 and not matches:
            return 0.0
        score += log((matches or 0.1) / max(sum(own.values()), 1)) / 4
    closest = min((len(r) for r in references), key=lambda length: (abs(length - len(words)), length))
    return exp(score) * (1 if len(words) >= closest else exp(1 - closest / len(words)))


@given(st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=9), min_size=2, max_size=6))
def test_self_bleu_is_the_mean_bleu_against_all_others(sentences):
    expected = [naive_bleu(s, sentences[:i] + sentences[i + 1 :]) for i, s in enumerate(sentences)]
    assert self_bleu(sentences) == pytest.approx(np.mean(expected))


def test_self_bleu_of_equal_sentences_is_one_of_foreign_ones_zero_of_one_alone_nothing():
    sentence = ["the", "red", "mug", "stood", "there"]
    assert self_bleu([sentence] * 3) == pytest.approx(1)
    assert self_bleu([sentence, ["a", "b", "c", "d", "e"]]) == 0
    assert self_bleu([sentence]) is None


def test_diversity_of_a_large_set_is_told_for_a_sample():
    made = rows("pair_swap", SAMPLE + 50)
    summary = summarise(examples_table(made), rejects_table([], []), {"train": len(made)}, FAMILIES, SABER)
    sample = summary["constructions"]["pair_swap"]["diversity"]["sample"]
    assert sample["sentences"] == SAMPLE
    assert 0 < sample["self_bleu"] <= 1


def test_random_examples_are_rows_of_the_construction_with_their_split(small, summary):
    examples, _, splits = small
    split_of = dict(
        zip(examples["example"].to_pylist(), [s for s, count in splits.items() for _ in range(count)], strict=True)
    )
    by_id = {row["example"]: row for row in examples.to_pylist()}
    for name, part in summary["constructions"].items():
        shown = part["random"]
        assert len({row["example"] for row in shown}) == 10
        for row in shown:
            assert row["construction"] == name
            assert {**by_id[row["example"]], "split": split_of[row["example"]]} == row


def test_the_same_set_gives_the_same_summary(small, summary):
    assert summarise(*small_set(), FAMILIES, SABER) == summary


def test_controls_are_counted(small, summary):
    table = small[0].to_pylist()
    controls = summary["controls"]
    assert controls["registers"] == Counter(row["register"] for row in table)
    assert controls["times"][""] == sum(not row["time_of_day"] for row in table)
    assert controls["scenes"] == len({row["scene"] for row in table})
    assert controls["contexts"] == len({(r["scene"], r["time_of_day"], r["weather"]) for r in table})


@settings(max_examples=12, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(CONSTRUCTIONS)), st.tuples(st.integers(0, 12), st.integers(0, 5))),
    st.integers(0, 40),
)
def test_any_counts_add_up(counts, cut):
    made = [row for name, (accepted, _) in counts.items() for row in rows(name, accepted)]
    wrong = [row for name, (_, rejected) in counts.items() for row in rows(name, rejected, seed=1, first=100)]
    cut = min(cut, len(made))
    splits = {"train": cut, "validation": 0, "test": len(made) - cut}
    summary = summarise(examples_table(made), rejects_table(wrong, ["length"] * len(wrong)), splits, FAMILIES, SABER)
    parts = summary["constructions"]
    assert {name: (part["accepted"], part["rejected"]) for name, part in parts.items()} == {
        name: pair for name, pair in counts.items() if any(pair)
    }
    for split, count in splits.items():
        assert sum(part["splits"][split] for part in parts.values()) == count
    for part in parts.values():
        for what in ("length", "distance"):
            assert sum(n for t in part[what]["targets"] for _, n in t["counts"]) == part["accepted"]
        assert sum(count for _, count in part["distractors"]) == part["accepted"]
        assert len(part["random"]) == min(10, part["accepted"])
    json.dumps(summary, allow_nan=False)


def test_splits_that_do_not_add_up_and_unknown_constructions_are_faults(small):
    examples, rejects, splits = small
    with pytest.raises(ValueError, match="splits hold"):
        summarise(examples, rejects, {**splits, "train": splits["train"] - 1}, FAMILIES, SABER)
    foreign = examples_table([{**rows("pair_swap", 1)[0], "construction": "quadruple"}])
    with pytest.raises(ValueError, match="quadruple"):
        summarise(foreign, rejects, {"train": 1}, FAMILIES, SABER)
