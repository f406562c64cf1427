"""Which images are shown as which failure, and which of them first."""

import random

import pytest
from bindbench.multibind.failures import KINDS, find_cases

IMAGE = {"generator": "g", "instance": "i"}


def outcome(slot="A", outcome="success", confused=(), own=0.0, other=0.0, dimension="face", **image) -> dict:
    row = IMAGE | image | {"dimension": dimension, "slot": slot, "outcome": outcome, "confused_with": list(confused)}
    return row | {"delta_self": own, "delta_other": other}


def pattern(*names, dimension="face", defined=True, **image) -> dict:
    return IMAGE | image | {"dimension": dimension, "patterns": list(names) if defined else None}


def slot(name="A", matched=True, **image) -> dict:
    return IMAGE | image | {"slot": name, "matched": matched, "reason": None if matched else "not_found"}


def seen(name="A", matched=True, true=True, generated=True, dimension="face", **image) -> dict:
    row = IMAGE | image | {"slot": name, "dimension": dimension, "matched": matched}
    return row | {"valid_true": true, "valid_generated": generated, "reason": None}


def kinds_of(outcomes, patterns, slots, validity=()) -> dict[str, tuple[str, ...]]:
    cases = find_cases(outcomes, patterns, slots, validity)
    assert list(cases) == list(KINDS)
    return {kind: found[0].dimensions for kind, found in cases.items() if found}


@pytest.mark.parametrize(
    ("outcomes", "patterns", "expected"),
    [
        ([outcome("A", "replaced", "B"), outcome("B", "replaced", "A")], ["swap"], {"swap"}),
        ([outcome("A", "replaced", "B"), outcome("B")], ["dominance", "dominance_total"], {"dominance"}),
        ([outcome("A", "mixed", "B"), outcome("B")], ["dominance", "blending"], {"dominance", "blending"}),
        ([outcome("A", "drift"), outcome("B")], [], {"drift"}),
        ([outcome("A", "replaced", "C"), outcome("B")], ["swap_partial"], {"confused"}),
        ([outcome("A", "replaced", "B"), outcome("B", "drift")], ["swap_partial"], {"confused", "drift"}),
        ([outcome("A"), outcome("B")], [], {"none"}),
    ],
)
def test_each_pattern_is_its_kind_and_no_other(outcomes, patterns, expected):
    assert kinds_of(outcomes, [pattern(*patterns)], [slot("A"), slot("B")]) == dict.fromkeys(expected, ("face",))


def test_one_measured_subject_that_is_confused_is_no_pattern_and_still_shown():
    found = kinds_of([outcome("A", "replaced", "B")], [pattern(defined=False)], [slot("A"), slot("B")])
    assert found == {"confused": ("face",)}


def test_a_kind_names_the_dimensions_in_which_it_shows():
    rows = [outcome("A", "replaced", "B"), outcome("A", "replaced", "B", dimension="pose"), outcome("B", "drift")]
    patterns = [pattern("dominance"), pattern(dimension="pose")]
    found = kinds_of(rows, patterns, [slot("A"), slot("B")])
    assert found == {"dominance": ("face",), "confused": ("pose",), "drift": ("face",)}


def test_missed_and_invalid_subjects_and_what_the_photograph_itself_does_not_show():
    assert kinds_of([outcome("B")], [pattern()], [slot("A", False), slot("B")]) == {"missing": ("all",)}
    both = [slot("A"), slot("B")]
    unseen = [seen("A", generated=False), seen("B")]
    assert kinds_of([outcome("B")], [pattern()], both, unseen) == {"missing": ("face",)}
    assert kinds_of([outcome("B")], [pattern()], both, [seen("A", true=False, generated=False)]) == {"none": ("face",)}


def test_without_thresholds_nothing_is_said_of_outcomes():
    assert kinds_of([outcome("A", None)], [pattern(defined=False)], [slot("A")]) == {}


def test_worst_first_whatever_the_order_of_the_rows():
    outcomes, patterns, slots = [], [], []
    for instance, swapped, delta in (("mild", 1, 0.4), ("bad", 1, 0.9), ("worst", 2, 0.5), ("as bad", 1, 0.9)):
        for number, dimension in enumerate(("face", "pose")):
            about = {"instance": instance, "dimension": dimension}
            patterns.append(pattern(*["swap"] * (number < swapped), **about))
            confused = "B" if number < swapped else ()
            outcomes.append(outcome("A", "replaced" if confused else "success", confused, other=delta, **about))
        slots.append(slot("A", instance=instance))
    order = [case.instance for case in find_cases(outcomes, patterns, slots, [])["swap"]]
    assert order == ["worst", "as bad", "bad", "mild"]
    for rows in (outcomes, patterns, slots):
        random.Random(1).shuffle(rows)
    assert [case.instance for case in find_cases(outcomes, patterns, slots, [])["swap"]] == order


def test_worst_drift_has_most_subjects_then_the_lowest_delta():
    rows = [outcome(name, "drift", own=-0.5, instance="two") for name in "AB"]
    rows += [outcome("A", "drift", own=own, instance=name) for name, own in (("less", -0.6), ("more", -0.9))]
    names = ("less", "more", "two")
    cases = find_cases(rows, [pattern(instance=name) for name in names], [slot(instance=name) for name in names], [])
    assert [case.instance for case in cases["drift"]] == ["two", "more", "less"]
