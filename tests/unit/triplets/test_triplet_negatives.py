"""Query and negatives of each construction, as B.1 and B.2 word them."""

import pytest
from bindbench.captions import caption
from bindbench.triplets.constructions import Binding, Specification
from bindbench.triplets.negatives import attribute_negative, object_negative, query_of

MUG, KETTLE, ROD = Binding(("red",), "mug"), Binding(("old",), "kettle"), Binding(("oval",), "fishing rod")
THREE = "A red mug hung, an old kettle hissed, and an oval fishing rod leaned."


def specification(construction, **fields):
    controls = {"time_of_day": "", "weather": "", "register": "", "opener": "", "length": (10, 15), "distance": (0, 2)}
    return Specification(construction, 0, "", "", **{**controls, **fields})


def negatives(construction, bindings, positive, **fields):
    drawn = specification(construction, **fields)
    return attribute_negative(drawn, bindings, positive), object_negative(drawn, bindings, positive)


def test_query_lists_the_bindings_in_the_given_order_with_articles_by_pronunciation():
    assert query_of((MUG, KETTLE, ROD), (2, 0, 1)) == "an oval fishing rod and a red mug and an old kettle"
    assert query_of((Binding(("used", "ivory"), "box"),), (0,)) == "a used ivory box"


def test_query_has_the_form_of_sabers_captions():
    pairs = [("red", "mug"), ("old", "kettle"), ("oval", "fishing rod")]
    assert query_of((MUG, KETTLE, ROD), (0, 1, 2)) == caption(pairs)


@pytest.mark.parametrize("order", [(0, 1), (0, 1, 1), (0, 1, 3)])
def test_query_order_must_be_a_permutation(order):
    with pytest.raises(ValueError, match="not a permutation of 3"):
        query_of((MUG, KETTLE, ROD), order)


def test_pair_swap_exchanges_the_two_attributes_or_the_two_nouns():
    positive = "A red mug hung by an old kettle."
    assert negatives("pair_swap", (MUG, KETTLE), positive) == (
        "An old mug hung by a red kettle.",
        "A red kettle hung by an old mug.",
    )


def test_triple_bind_cycle_rotates_by_one_position():
    assert negatives("triple_bind_cycle", (MUG, KETTLE, ROD), THREE) == (
        "An old mug hung, an oval kettle hissed, and a red fishing rod leaned.",
        "A red kettle hung, an old fishing rod hissed, and an oval mug leaned.",
    )


@pytest.mark.parametrize(
    ("kept", "by_attribute", "by_object"),
    [
        (0, "A red mug hung, an oval kettle hissed, and an old fishing rod leaned.",
         "A red mug hung, an old fishing rod hissed, and an oval kettle leaned."),
        (1, "An oval mug hung, an old kettle hissed, and a red fishing rod leaned.",
         "A red fishing rod hung, an old kettle hissed, and an oval mug leaned."),
        (2, "An old mug hung, a red kettle hissed, and an oval fishing rod leaned.",
         "A red kettle hung, an old mug hissed, and an oval fishing rod leaned."),
    ],
)  # fmt: skip
def test_triple_bind_swap_keeps_one_pair_in_both_negatives(kept, by_attribute, by_object):
    assert negatives("triple_bind_swap", (MUG, KETTLE, ROD), THREE, kept=kept) == (by_attribute, by_object)


@pytest.mark.parametrize(
    ("slot", "by_attribute"),
    [
        (0, "An ivory wooden stool hung by a red metal bench."),
        (1, "A red metal stool hung by an ivory wooden bench."),
    ],
)
def test_attr_bundle_exchanges_one_slot_and_so_a_single_word_per_object(slot, by_attribute):
    bindings = (Binding(("red", "wooden"), "stool"), Binding(("ivory", "metal"), "bench"))
    positive = "A red wooden stool hung by an ivory metal bench."
    assert negatives("attr_bundle", bindings, positive, swapped_slot=slot) == (
        by_attribute,
        "A red wooden bench hung by an ivory metal stool.",
    )


def test_predicative_exchanges_attributes_that_stand_away_from_their_nouns():
    bindings = (Binding(("dated",), "book"), Binding(("chipped",), "vase"))
    assert negatives("predicative", bindings, "The book was dated; an odd vase had become chipped.") == (
        "The book was chipped; an odd vase had become dated.",
        "The vase was dated; an odd book had become chipped.",
    )


@pytest.mark.parametrize("construction", ["deferred_bind_anaphoric", "deferred_bind_respective"])
def test_deferred_exchanges_keep_the_references_where_they_are(construction):
    bindings = (Binding(("new",), "ladder"), Binding(("neat",), "envelope"))
    positive = "A ladder met an envelope, the former new, the latter neat."
    assert negatives(construction, bindings, positive) == (
        "A ladder met an envelope, the former neat, the latter new.",
        "An envelope met a ladder, the former new, the latter neat.",
    )


@pytest.mark.parametrize("positive", ["A red mug.", "A red mug by a red old kettle and a kettle."])
def test_a_word_that_is_not_there_exactly_once_is_an_error(positive):
    with pytest.raises(ValueError, match="exactly once"):
        attribute_negative(specification("pair_swap"), (MUG, KETTLE), positive)
    with pytest.raises(ValueError, match="exactly once"):
        object_negative(specification("pair_swap"), (MUG, KETTLE), positive)
