"""Rules from annotations to prompts, and a linter that has to find every kind of damage (sections 3.1 and 3.2)."""

import json
import re

import pytest
from bindbench.errors import UserError
from bindbench.multibind.annotation import Annotation, Position
from bindbench.multibind.prompts import (
    SUBJECT_SENTENCES,
    compile_prompt,
    compile_prompts,
    edit_phrases,
    length_statistics,
    lint_prompt,
    position_phrase,
)
from bindbench.multibind.tables import ANNOTATIONS, PROMPTS, SLOTS
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st

UNHURRIED = settings(deadline=None)  # beside other work an example may take long

WORDS = (
    "raised",
    "lowered",
    "level",
    "near",
    "far",
    "calm",
    "still",
    "quick",
    "open",
    "level with the horizon",
    "half hidden",
)


def phrase(draw, what: str, number: int) -> str:
    """A phrase that no other field of any other subject has."""
    return f"{draw(st.sampled_from(WORDS))} in the {what} manner number {number:04}"


@st.composite
def annotations(draw) -> Annotation:
    """Of two to four subjects; no two fields have the same phrase."""
    slots = SLOTS[: draw(st.integers(2, 4))]
    counter = iter(range(10_000))
    maybe = lambda what: phrase(draw, what, next(counter)) if draw(st.booleans()) else None  # noqa: E731
    subjects = {}
    for number, slot in enumerate(slots):
        left, top = 20 * number + draw(st.integers(0, 10)), draw(st.integers(0, 50))
        subjects[slot] = {
            "clothes": {"upper_body": {"garment": "jacket", "colour": draw(st.sampled_from(("red", "pale blue")))}},
            "appearance": {"hair": {"colour": "grey"}, "accessories": ["a leather bag"]},
            "pose": {
                "body": phrase(draw, "body", next(counter)),
                **{part: maybe(part) for part in ("head", "arms", "legs")},
            },
            **{field: maybe(field) for field in ("action", "expression", "gaze")},
            "position": {
                "left": left,
                "right": left + draw(st.integers(5, 25)),
                "top": top,
                "bottom": top + draw(st.integers(10, 50)),
                "cut_by": draw(st.lists(st.sampled_from(("left", "bottom")), unique=True, max_size=2)),
            },
        }
    relations = [
        {
            "first": one,
            "second": other,
            "relation": phrase(draw, "relation", next(counter)) + " to",
            "detail": maybe("detail"),
        }
        for one in slots
        for other in slots
        if one < other and draw(st.booleans())
    ]
    colours = draw(st.lists(st.sampled_from(("red", "grey", "dark blue")), unique=True, max_size=3))
    return Annotation.model_validate(
        {
            "subjects": subjects,
            "relations": relations,
            "background": {
                "setting": "a street",
                "objects": ["a bus"],
                "colours": colours,
                "textures": maybe("surface"),
            },
            "light": {
                field: maybe(field) for field in ("environment", "brightness", "contrast", "temperature", "direction")
            },
            "camera": {"framing": "a medium shot", "angle": maybe("angle"), "depth_of_field": maybe("depth")},
        }
    )


def blocks(prompt: str) -> dict[str, str]:
    return {part[8]: part for part in prompt.split("\n\n") if re.match(r"Subject [A-Z]: ", part)}


def names(problems: list[str]) -> set[str]:
    return {problem.split(":")[0] for problem in problems}


@UNHURRIED
@given(annotations())
def test_the_linter_accepts_every_compiled_prompt_and_the_same_annotation_gives_the_same_bytes(annotation):
    prompt = compile_prompt(annotation)
    assert lint_prompt(prompt, annotation) == []
    assert compile_prompt(Annotation.model_validate_json(annotation.to_json())) == prompt


@UNHURRIED
@given(annotations())
def test_every_edit_is_stated_in_its_own_block_only_and_what_is_preserved_nowhere(annotation):
    prompt = compile_prompt(annotation)
    for slot, subject in annotation.subjects.items():
        for value in edit_phrases(subject).values():
            assert [letter for letter, block in blocks(prompt).items() if value in block] == [slot]
            assert prompt.count(value) == 1
    assert "jacket" not in prompt and "grey hair" not in prompt and "leather bag" not in prompt
    for slot, block in blocks(prompt).items():
        assert f"Subject {slot} keeps the identity" in block and f"of reference {slot}." in block
        assert set(re.findall(r"\b(?:Subject|reference) ([A-Z])\b", block)) == {slot}


@UNHURRIED
@given(annotations(), st.randoms(use_true_random=False))
def test_other_letters_for_the_same_people_permute_the_blocks(annotation, random):
    slots = list(annotation.slots)
    shuffled = random.sample(slots, len(slots))
    renamed = dict(zip(slots, shuffled, strict=True))
    value = annotation.model_dump()
    value["subjects"] = {renamed[slot]: subject for slot, subject in value["subjects"].items()}
    value["relations"] = [
        {**relation, "first": renamed[relation["first"]], "second": renamed[relation["second"]]}
        for relation in value["relations"]
    ]
    before, after = compile_prompt(annotation), compile_prompt(Annotation.model_validate(value))

    def at_new_letters(text):
        return re.sub(r"\b(Subject|reference) ([A-Z])\b", lambda match: f"{match[1]} {renamed[match[2]]}", text)

    assert {slot: blocks(after)[renamed[slot]] for slot in slots} == {
        slot: at_new_letters(block) for slot, block in blocks(before).items()
    }
    assert sorted(re.split(r"\. |\.\n+", at_new_letters(before))) == sorted(re.split(r"\. |\.\n+", after))


@UNHURRIED
@given(annotations())
def test_sentences_are_whole(annotation):
    prompt = compile_prompt(annotation)
    assert "  " not in prompt and prompt.endswith(".\n") and not re.search(r" [,.]|[,.]{2}|None|\{|\}", prompt)
    for paragraph in prompt.strip().split("\n\n"):
        for sentence in re.split(r"(?<=\.) ", paragraph):
            assert re.match(r"[A-Z]", sentence) and sentence.endswith(".")
    assert not re.search(r"\b(\w+) \1\b", prompt), "a word twice in a row"


# Damage ----------------------------------------------------------------------------------------------------------------


@UNHURRIED
@given(annotations(), st.data())
def test_two_letters_that_change_places_are_found(annotation, data):
    prompt = compile_prompt(annotation)
    one, other = data.draw(st.lists(st.sampled_from(annotation.slots), min_size=2, max_size=2, unique=True))
    swap = {one: other, other: one}
    everywhere = re.sub(rf"\bSubject ({one}|{other})\b", lambda match: f"Subject {swap[match[1]]}", prompt)
    headings = re.sub(rf"(?m)^Subject ({one}|{other}): ", lambda match: f"Subject {swap[match[1]]}: ", prompt)
    for damaged in (everywhere, headings):
        assert names(lint_prompt(damaged, annotation)) & {"wrong_letter", "wrong_value"}


@UNHURRIED
@given(annotations(), st.data())
def test_a_block_that_is_missing_or_stands_twice_is_found(annotation, data):
    prompt = compile_prompt(annotation)
    slot = data.draw(st.sampled_from(annotation.slots))
    block = blocks(prompt)[slot]
    assert f"missing_block: {slot}" in lint_prompt(prompt.replace(block + "\n\n", ""), annotation)
    assert f"repeated_block: {slot}" in lint_prompt(prompt.replace(block, block + "\n\n" + block), annotation)


@UNHURRIED
@given(annotations(), st.data())
def test_a_sentence_that_moved_to_another_paragraph_is_found(annotation, data):
    prompt = compile_prompt(annotation)
    paragraphs = prompt.strip().split("\n\n")
    start, end = data.draw(st.lists(st.integers(0, len(paragraphs) - 1), min_size=2, max_size=2, unique=True))
    heading = re.match(r"(?:Subject [A-Z]|Relations|Background|Light|Camera): |", paragraphs[start])[0]
    sentences = re.split(r"(?<=\.) ", paragraphs[start][len(heading) :])
    moved = sentences.pop(data.draw(st.integers(0, len(sentences) - 1)))
    paragraphs[start] = heading + " ".join(sentences)
    paragraphs[end] += " " + moved
    assert lint_prompt("\n\n".join(paragraphs) + "\n", annotation)


@UNHURRIED
@given(annotations(), st.data())
def test_a_value_under_the_wrong_letter_is_found_and_named(annotation, data):
    prompt = compile_prompt(annotation)
    one, other = data.draw(st.lists(st.sampled_from(annotation.slots), min_size=2, max_size=2, unique=True))
    mine, theirs = annotation.subjects[one].pose.body, annotation.subjects[other].pose.body
    problems = lint_prompt(prompt.replace(mine, "###").replace(theirs, mine).replace("###", theirs), annotation)
    assert f"wrong_letter: pose.body of {other} is stated of {one}" in problems
    assert f"wrong_letter: pose.body of {one} is stated of {other}" in problems


@UNHURRIED
@given(annotations(), st.data())
def test_a_second_value_of_a_field_is_a_contradiction(annotation, data):
    prompt = compile_prompt(annotation)
    slot = data.draw(st.sampled_from(annotation.slots))
    block = blocks(prompt)[slot]
    added = SUBJECT_SENTENCES["pose.body"].format(slot=slot, value="lying on the ground")
    problems = lint_prompt(prompt.replace(block, f"{block} {added}"), annotation)
    assert f"contradiction: pose.body of {slot} has 2 values" in problems
    framing = prompt.replace(
        "The framing is a medium shot.", "The framing is a medium shot. The framing is a close-up."
    )
    assert "contradiction: camera: framing has several values" in lint_prompt(framing, annotation)


def small(**more) -> Annotation:
    """Two subjects; more: fields of Subject A."""
    subject = {"pose": {"body": "standing upright"}, "position": {"left": 5, "right": 40, "top": 10, "bottom": 90}}
    clothes = {"outer_layer": {"garment": "jacket", "colour": "red"}}
    return Annotation.model_validate(
        {
            "subjects": {
                "A": {**subject, "clothes": clothes, **more},
                "B": {**subject, "position": {**subject["position"], "right": 60}},
            },
            "relations": [{"first": "A", "second": "B", "relation": "to the left of"}],
            "background": {"setting": "a street"},
            "camera": {"framing": "a full shot"},
        }
    )


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("Subject B is shown", "Subject E is shown", "unknown_letter"),
        ("in reference B", "in reference A", "wrong_letter"),
        (" Subject A is shown standing upright.", "", "no_edits"),
        (" Subject A is shown standing upright.", "", "missing_value"),
        ("shown standing upright.", "shown .", "empty_value"),
        ("shown standing upright.", "shown None.", "empty_value"),
        ("standing upright", "standing in a red jacket", "preserved_stated"),
        ("standing upright.", "standing upright. Subject A wears boots.", "preserved_stated"),
        ("standing upright", "standing like a Muslim", "sensitive_words"),
        ("standing upright.", "standing upright. It is raining.", "unknown_sentence"),
        ("standing upright", "standing and sitting", "contradiction"),
        ("Subject A is to the left of Subject B", "Subject B is to the left of Subject A", "wrong_letter"),
        ("left of Subject B.", "left of Subject B. Subject B is to the left of Subject A.", "contradiction"),
        ("left of Subject B.", "left of Subject B. Subject A is to the right of Subject B.", "contradiction"),
        ("a full shot.", "a full shot. A dog barks.", "unknown_sentence"),
        ("The background shows a street.", "", "missing_value"),
    ],
)
def test_each_kind_of_damage_has_its_name(before, after, problem):
    prompt = compile_prompt(small())
    assert before in prompt
    assert problem in names(lint_prompt(prompt.replace(before, after, 1), small()))


@pytest.mark.parametrize("letter", ["A", "B"])
def test_a_letter_that_is_nowhere_is_missing(letter):
    prompt = re.sub(rf"\b(Subject|reference) {letter}\b", r"\1 C", compile_prompt(small()))
    problems = lint_prompt(prompt, small())
    assert f"missing_letter: {letter}" in problems and "unknown_letter: C" in problems


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"action": "smoothing the red jacket"}, "preserved_stated"),
        ({"action": "sitting on a bench"}, "contradiction"),
        ({"expression": "a neutral expression", "action": "smiling"}, "contradiction"),
    ],
)
def test_an_annotation_that_contradicts_itself_or_tells_clothes_is_flagged(fields, problem):
    annotation = small(**fields)
    assert problem in names(lint_prompt(compile_prompt(annotation), annotation))


@UNHURRIED
@given(annotations(), st.text(max_size=300))
def test_any_text_is_linted_without_an_error_and_is_not_accepted(annotation, text):
    assert lint_prompt(text, annotation)


# Positions and tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "place"),
    [
        (0, 20, "at the far left"),
        (20, 50, "on the left side"),
        (40, 60, "in the middle"),
        (60, 80, "on the right side"),
        (85, 100, "at the far right"),
        (5, 95, "across most"),
    ],
)
def test_a_position_is_said_in_words_and_percent(left, right, place):
    words = position_phrase(Position(left=left, right=right, top=10, bottom=60, cut_by=("left", "bottom")))
    assert words.startswith(f"{place} of the picture, from {left} to {right} percent of its width")
    assert "filling about half of the height" in words and words.endswith("cut off by its left and bottom edges")


def row(name: str, annotation: Annotation | None) -> dict:
    text = annotation and annotation.to_json()
    return {"instance": name, "annotation": text, "model": "embedded", "problems": [] if annotation else ["refused"]}


def test_the_table_has_a_prompt_for_every_annotation_and_the_lengths(tmp_path):
    four = small().model_dump()
    four["subjects"]["C"] = four["subjects"]["A"]
    flawed = small(action="wearing a hat")
    rows = [row("one", small()), row("two", Annotation.model_validate(four)), row("three", None), row("four", flawed)]
    write_table(ANNOTATIONS, rows, tmp_path / "annotations.parquet")
    compile_prompts(tmp_path / "annotations.parquet", tmp_path / "prompts.parquet", tmp_path / "lengths.json")
    found = {row["instance"]: row for row in read_table(PROMPTS, tmp_path / "prompts.parquet").to_pylist()}
    assert list(found) == ["one", "two", "three", "four"]
    assert found["one"]["prompt"] == compile_prompt(small()) and found["one"]["problems"] == []
    assert found["one"]["words"] == len(found["one"]["prompt"].split())
    assert found["three"]["prompt"] is None and found["three"]["problems"] == ["no_annotation"]
    assert found["four"]["problems"] == ["preserved_stated"]
    lengths = json.loads((tmp_path / "lengths.json").read_text())
    assert lengths["words"]["prompts"] == 3 and lengths["without_annotation"] == 1
    assert lengths["words_by_subjects"]["3"]["mean"] == found["two"]["words"] == lengths["words"]["max"]
    assert lengths["problems"] == {"preserved_stated": 1}


def test_lengths_of_nothing_are_null_and_of_something_the_mean():
    assert length_statistics([]) == {"prompts": 0, "mean": None, "min": None, "max": None}
    assert length_statistics([400, 501, 500]) == {"prompts": 3, "mean": 467.0, "min": 400, "max": 501}


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"subjects": {"A": {}}}'])
def test_an_annotation_of_another_version_is_one_line_that_names_the_instance(tmp_path, text):
    rows = [{**row("one", small()), "annotation": text}]
    write_table(ANNOTATIONS, rows, tmp_path / "annotations.parquet")
    with pytest.raises(UserError, match=r"annotations\.parquet: one: not an annotation of this version"):
        compile_prompts(tmp_path / "annotations.parquet", tmp_path / "prompts.parquet", tmp_path / "lengths.json")
    assert not (tmp_path / "prompts.parquet").exists()
