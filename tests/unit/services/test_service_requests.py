"""The key of a request: the same for the same wish however it is spelled, another for any other wish."""

import json
from dataclasses import replace

import pytest
from bindbench.services.requests import InputImage, Request
from hypothesis import given
from hypothesis import strategies as st
from service_requests import pictures, question

numbers = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False, width=32)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(st.text(max_size=6).filter(lambda name: name != "n"), values, max_size=5)


def turned(value):
    """The same value with every dictionary in another order, lists as tuples and whole numbers as floats."""
    if isinstance(value, dict):
        return {name: turned(item) for name, item in reversed(value.items())}
    if isinstance(value, list):
        return tuple(turned(item) for item in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


@given(bodies)
def test_key_does_not_depend_on_the_order_of_keys_nor_the_spelling_of_numbers(body):
    assert Request("chat", "m", body).key == Request("chat", "m", turned(body)).key


@given(bodies)
def test_key_survives_the_way_through_json(body):
    request = Request("chat", "m", body, stage="s")
    assert Request.from_json(json.loads(json.dumps(request.to_json()))).key == request.key


@given(bodies, bodies)
def test_another_body_is_another_key(one, other):
    same = Request("chat", "m", one).identity == Request("chat", "m", other).identity
    assert same == (Request("chat", "m", one).key == Request("chat", "m", other).key)


def test_key_is_the_same_on_every_machine_and_in_every_version():
    # Were it to change, everything that was ever bought would be bought again.
    request = Request("image_generation", "gpt-image-2", {"prompt": "a cube", "size": "1024x1024", "quality": "medium"})
    assert request.key == "57ab02ebdce370e5ef2dab44b699ca57983511f912a30e85e703e906dd005a07"


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"body": {"prompt": "picture 0", "size": "64x64", "quality": "high"}},
        {"images": (InputImage("a.png", "0" * 64),)},
        {"attempt": 2},
        {"try_number": 2},
        {"kind": "image_edit"},
    ],
)
def test_whatever_shapes_the_answer_is_in_the_key(change):
    request = pictures(1)[0]
    assert replace(request, **change).key != request.key


def test_stage_and_place_of_the_input_images_are_not_in_the_key():
    request = replace(pictures(1)[0], images=(InputImage("a.png", "0" * 64),))
    moved = replace(request, images=(InputImage("elsewhere/a.png", "0" * 64),), stage="screening")
    assert moved.key == request.key


def test_true_is_not_one():
    assert Request("chat", "m", {"a": True}).key != Request("chat", "m", {"a": 1}).key


@pytest.mark.parametrize(
    "body", [{"x": float("nan")}, {"x": float("inf")}, {"x": {1: 2}}, {"x": b"bytes"}, {"x": object()}]
)
def test_what_json_cannot_hold_is_refused(body):
    with pytest.raises(ValueError):
        _ = Request("chat", "m", body).key


def test_several_images_in_one_answer_are_refused():
    with pytest.raises(ValueError, match="one image a request"):
        Request("image_generation", "gpt-image-2", {"prompt": "x", "n": 2})


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind"):
        Request("video", "m", {})


def test_first_try_is_the_request_itself():
    request = question()
    assert request.at_try(1) is request
    assert request.at_try(2).at_try(1).key == request.key
