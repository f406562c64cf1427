"""What an annotation may hold and what not (sections 3.1 and 3.2)."""

import copy
import json

import pytest
from bindbench.multibind.annotation import (
    EDIT_SET,
    PRESERVE_SET,
    SENSITIVE,
    Annotation,
    BrokenAnnotation,
    Position,
    Subject,
    _checked,
    annotation_of,
    answer_schema,
    edits_of,
    position_of,
    preserved_words,
    sensitive_words,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

UNHURRIED = settings(deadline=None)  # beside other work an example may take long

SUBJECT = {
    "appearance": {
        "hair": {"colour": "grey", "length": "short", "style": "combed back"},
        "accessories": ["reading glasses"],
        "build": "sturdy",
        "age_group": "adult",
    },
    "clothes": {
        "head": None,
        "upper_body": {"garment": "shirt", "colour": "white", "pattern": "plain", "details": None},
        "outer_layer": {"garment": "jacket", "colour": "black", "pattern": None, "details": "two rows of buttons"},
        "lower_body": None,
        "feet": None,
    },
    "pose": {
        "body": "standing upright",
        "head": "turned to the left of the picture",
        "arms": "crossed in front of the chest",
        "legs": None,
    },
    "action": "waiting",
    "expression": "a broad smile",
    "gaze": "directed at the camera",
}
ANSWER = {
    "subjects": {"A": SUBJECT, "B": SUBJECT},
    "relations": [{"first": "A", "second": "B", "relation": "to the left of", "detail": None}],
    "background": {"setting": "a street", "objects": ["a bus"], "colours": ["blue"], "textures": None},
    "light": {
        "environment": "outdoors",
        "brightness": "bright",
        "contrast": None,
        "temperature": None,
        "direction": None,
    },
    "camera": {"framing": "a medium shot", "angle": None, "depth_of_field": None, "picture": None},
}
POSITIONS = {
    "A": Position(left=5, right=45, top=10, bottom=100, cut_by=("bottom",)),
    "B": Position(left=55, right=95, top=12, bottom=90),
}


def changed(path: str, value) -> dict:
    """The answer with another value at a path such as `subjects.A.gaze`."""
    answer = copy.deepcopy(ANSWER)
    *way, last = path.split(".")
    place = answer
    for name in way:
        place = place[name]
    place[last] = value
    return answer


def fields_of(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Fields of a subject, those of pose, appearance and clothes one by one."""
    found = set()
    for name, field in model.model_fields.items():
        inner = field.annotation
        if name in ("pose", "appearance", "clothes"):
            found |= fields_of(inner, f"{name}.")
        else:
            found.add(prefix + name)
    return found


def test_every_field_of_a_subject_is_in_exactly_one_of_the_two_sets():
    assert set(EDIT_SET).isdisjoint(PRESERVE_SET)
    assert set(EDIT_SET) | (set(PRESERVE_SET) - {"identity"}) == fields_of(Subject)


def test_the_edit_set_is_pose_action_expression_gaze_and_place_and_the_clothes_are_preserved():
    edits = edits_of(annotation_of(ANSWER, POSITIONS).subjects["A"])
    assert set(edits) == {"position", "pose.body", "pose.head", "pose.arms", "action", "expression", "gaze"}
    assert all("clothes" in field or "appearance" in field or field == "identity" for field in PRESERVE_SET)


@pytest.mark.parametrize(
    "name", ["name", "age", "ethnicity", "skin_colour", "religion", "health", "gender", "identity"]
)
@pytest.mark.parametrize("place", ["subjects.A", "subjects.A.appearance", "background"])
def test_there_is_no_place_for_sensitive_traits(place, name):
    with pytest.raises(BrokenAnnotation) as error:
        annotation_of(changed(f"{place}.{name}", "something"), POSITIONS)
    assert error.value.problem == "not_an_annotation" and name in str(error.value)


@pytest.mark.parametrize("age", ["elderly", "teenager", "baby", "35", "middle-aged"])
def test_an_age_is_adult_or_child_and_nothing_finer(age):
    with pytest.raises(BrokenAnnotation):
        annotation_of(changed("subjects.A.appearance.age_group", age), POSITIONS)


@pytest.mark.parametrize(
    "text",
    [
        "smiling like an Asian person",
        "a dark-skinned face",
        "kneeling in a hijab",
        "sitting in a wheelchair",
        "standing beside a white man",
        "a smile of a 40-year-old",
        "held like those of an old woman",
        "aged 30 and laughing",
        "a smile of somebody in her thirties",
        "pale skin around the eyes",
    ],
)
def test_free_text_with_a_sensitive_word_is_refused(text):
    with pytest.raises(BrokenAnnotation) as error:
        annotation_of(changed("subjects.B.expression", text), POSITIONS)
    assert error.value.problem == "sensitive_words"


@pytest.mark.parametrize(
    "text",
    [
        "a white wall behind black railings",
        "arms crossed, hands in their hoodies",
        "skin-tight trousers and black men's shoes",
        "brown boots on a race track",
        "an arabesque pattern",
        "smiling, with the eyes half closed",
    ],
)
def test_ordinary_words_are_not_sensitive(text):
    assert sensitive_words(text) == []


@UNHURRIED
@given(st.sampled_from(SENSITIVE), st.sampled_from([str.upper, str.title, str.lower]))
def test_each_sensitive_word_is_found_in_any_case_and_within_a_sentence(word, case):
    assert sensitive_words(f"the hand of {case(word.rstrip('*'))} is raised")


@pytest.mark.parametrize("slots", [("A",), ("A", "C"), ("B", "C"), ("A", "B", "C", "D", "E")])
def test_slots_are_the_first_two_to_four_letters(slots):
    value = {**ANSWER, "relations": [], "subjects": {slot: {**SUBJECT, "position": POSITIONS["A"]} for slot in slots}}
    with pytest.raises(ValidationError):
        Annotation.model_validate(value)


@pytest.mark.parametrize("letters", ["A", "ABC", "BC"])
def test_an_answer_about_other_slots_than_the_instance_has_is_broken(letters):
    with pytest.raises(BrokenAnnotation) as error:
        annotation_of({**ANSWER, "subjects": dict.fromkeys(letters, SUBJECT)}, POSITIONS)
    assert error.value.problem == "wrong_slots"


@pytest.mark.parametrize("pair", [("A", "C"), ("A", "A"), ("D", "B")])
def test_a_relation_joins_two_subjects_of_the_instance(pair):
    relation = {"first": pair[0], "second": pair[1], "relation": "behind", "detail": None}
    with pytest.raises(BrokenAnnotation):
        annotation_of({**ANSWER, "relations": [relation]}, POSITIONS)


@pytest.mark.parametrize(
    "answer", [None, [], "text", {}, {"subjects": None}, {"subjects": {"A": None, "B": 1}}, {"subjects": [1, 2]}]
)
def test_what_is_no_object_of_subjects_is_a_broken_answer(answer):
    with pytest.raises(BrokenAnnotation):
        annotation_of(answer, POSITIONS)


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("Standing upright.", "standing upright"),
        ("  standing \n upright ; leaning. ", "standing upright, leaning"),
        ("T-shirt pulled up", "T-shirt pulled up"),
        ("raised to 1.5 heads", "raised to 1.5 heads"),
    ],
)
def test_phrases_are_made_to_stand_within_a_sentence(given_text, kept):
    assert annotation_of(changed("subjects.A.pose.body", given_text), POSITIONS).subjects["A"].pose.body == kept


@pytest.mark.parametrize("empty", ["", "none", "N/A", "Unknown.", "not visible", None])
def test_words_that_say_nothing_are_left_out_and_are_broken_where_something_is_needed(empty):
    assert annotation_of(changed("subjects.A.gaze", empty), POSITIONS).subjects["A"].gaze is None
    with pytest.raises(BrokenAnnotation):
        annotation_of(changed("subjects.A.pose.body", empty), POSITIONS)


def test_a_phrase_may_not_name_a_subject_and_has_a_longest_length():
    for text in ("looking at Subject B", "Person C embraced", "a" * 401):
        with pytest.raises(BrokenAnnotation):
            annotation_of(changed("subjects.A.action", text), POSITIONS)


def test_an_annotation_comes_back_from_its_json_and_has_one_text():
    annotation = annotation_of(ANSWER, POSITIONS)
    again = Annotation.model_validate_json(annotation.to_json())
    assert again == annotation and again.to_json() == annotation.to_json()
    backwards = {**ANSWER, "subjects": {"B": SUBJECT, "A": SUBJECT}}
    assert annotation_of(backwards, POSITIONS).to_json() == annotation.to_json()


def test_what_the_reference_carries_is_known_as_phrases():
    words = preserved_words(annotation_of(ANSWER, POSITIONS).subjects["A"])
    assert {"white shirt", "black jacket", "grey hair", "reading glasses", "two rows of buttons"} <= set(words)


@UNHURRIED
@given(
    st.floats(-50, 1300),
    st.floats(-50, 800),
    st.floats(0.5, 1400),
    st.floats(0.5, 900),
    st.integers(1, 1280),
    st.integers(1, 720),
)
def test_every_box_has_a_position_within_the_picture(x, y, wide, high, width, height):
    position = position_of([x, y, wide, high], width, height)
    assert 0 <= position.left < position.right <= 100 and 0 <= position.top < position.bottom <= 100


def test_a_position_is_in_percent_and_knows_the_edges_that_cut():
    position = position_of([0, 180, 640, 540], 1280, 720)
    assert (position.left, position.right, position.top, position.bottom) == (0, 50, 25, 100)
    assert position.cut_by == ("left", "bottom")


@pytest.mark.parametrize("slots", [("A", "B"), ("A", "B", "C", "D")])
def test_the_schema_asks_for_every_key_and_allows_no_other(slots):
    schema = answer_schema(slots)
    seen = []

    def check(part):
        if isinstance(part, dict):
            if part.get("type") == "object":
                seen.append(part)
                assert part["required"] == sorted(part["properties"]) and part["additionalProperties"] is False
            assert not {"$ref", "$defs", "default", "title", "minLength", "maxLength"} & set(part)
            for value in part.values():
                check(value)
        elif isinstance(part, list):
            for value in part:
                check(value)

    check(schema)
    assert len(seen) > 10 and list(schema["properties"]["subjects"]["properties"]) == list(slots)
    assert "position" not in json.dumps(schema)
    Draft202012Validator.check_schema(schema)


def test_the_schema_takes_the_answer_and_refuses_other_slots_and_keys():
    validator = Draft202012Validator(answer_schema(("A", "B")))
    assert validator.is_valid(ANSWER)
    third = {"first": "A", "second": "C", "relation": "behind", "detail": None}
    for broken in (
        changed("subjects.C", SUBJECT),
        {**ANSWER, "subjects": {"A": SUBJECT}},
        {**ANSWER, "relations": [third]},
        changed("subjects.A.ethnicity", "x"),
        changed("subjects.A.position", {}),
        changed("subjects.A.gaze", 3),
    ):
        assert not validator.is_valid(broken)


@pytest.mark.parametrize(
    "text",
    [
        *("in her early thirties", "in his late 60s", "a middle aged man", "a black couple", "an older gentleman"),
        *("a Chinese man", "an Indian woman", "Native American", "with a headscarf", "a nun", "a crucifix on a chain"),
        *("a hearing aid", "a prosthetic leg", "on crutches", "a blind man with a cane"),
    ],
)
def test_sensitive_traits_are_found_however_they_are_put(text):
    assert sensitive_words(text)


@pytest.mark.parametrize(
    "text", ["black hoodies", "a Chinese lantern", "in the eighties style", "dark children's clothes"]
)
def test_clothes_and_things_are_not_sensitive(text):
    assert sensitive_words(text) == []


@pytest.mark.parametrize("text", ["laughing with Subjects A and B", "standing beside Persons B and C"])
def test_other_subjects_are_not_named_in_the_plural_either(text):
    with pytest.raises(ValueError, match="what joins two subjects belongs to the relations"):
        _checked(text)
