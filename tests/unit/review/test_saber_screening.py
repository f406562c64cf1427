"""Screening (A.4): what counts for each image, which questions may be scored, what is made again, what a model is asked."""

import contextlib
import json

import pyarrow as pa
import pytest
from bindbench.config.screening import Screening
from bindbench.errors import UserError
from bindbench.review.journal import Journal, append_proposal, read_journal, verdict_line
from bindbench.review.scenes import REASONS
from bindbench.saber import screening
from bindbench.saber.scoring import read_benchmark
from bindbench.tables import QUESTIONS, SCENES, VERDICTS, read_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic_saber import tiny_saber


def judge(saber, scene, verdict, reason=None, by="Ada"):
    line = verdict_line(scene, saber.hashes[scene], verdict, reason, by)
    Journal(saber.journal).append(lambda: [line])


def collect(saber, journal=True):
    screening.collect_verdicts(saber.images, saber.journal if journal else None, saber.folder / "verdicts.parquet")
    return {row["scene"]: row for row in read_table(VERDICTS, saber.folder / "verdicts.parquet").to_pylist()}


def test_without_a_journal_generated_images_are_open_and_rendered_ones_accepted(saber):
    assert {row["verdict"] for row in collect(saber).values()} == {"open"}
    saber.write_images("builtin/3")
    assert {row["verdict"] for row in collect(saber, journal=False).values()} == {"accepted"}
    assert set(collect(saber)) == {row["scene"] for row in saber.scene_rows}


def test_a_person_s_verdict_stands_in_the_table(saber):
    saber.write_images("builtin/3")
    judge(saber, "i2-0.query", "rejected", "cut off")
    row = collect(saber)["i2-0.query"]
    assert row == {
        "scene": "i2-0.query",
        "sha256": saber.hashes["i2-0.query"],
        "verdict": "rejected",
        "reason": "cut off",
        "by": "Ada",
        "proposed": None,
        "attempt": 1,
    }


def test_each_different_rejected_image_raises_the_attempt_and_a_remade_image_is_open(saber):
    scene = "i2-0.query"
    for attempt in range(3):
        assert screening.attempt_of(scene, read_journal(saber.journal)) == attempt
        judge(saber, scene, "rejected", "cut off")
        judge(saber, scene, "rejected", "unreadable")  # the same image again
        saber.redraw(scene, 10 + attempt)
        assert (collect(saber)[scene]["verdict"], collect(saber)[scene]["attempt"]) == ("open", attempt + 1)
    judge(saber, scene, "accepted")
    row = collect(saber)[scene]
    assert (row["verdict"], row["attempt"]) == ("accepted", 3)  # it stays with the attempt that made it
    assert screening.attempt_of("c0-2.query", read_journal(saber.journal)) == 0


def test_a_rejection_that_is_taken_back_makes_nothing_again(saber):
    judge(saber, "i2-0.query", "rejected", "cut off")
    judge(saber, "i2-0.query", "open")
    assert (collect(saber)["i2-0.query"]["verdict"], collect(saber)["i2-0.query"]["attempt"]) == ("open", 0)


def test_a_proposal_stays_open_and_gives_way_to_a_person(saber):
    append_proposal(Journal(saber.journal), "i2-0.query", saber.hashes["i2-0.query"], "rejected", "cut off", "model")
    row = collect(saber)["i2-0.query"]
    assert (row["verdict"], row["proposed"], row["reason"], row["by"]) == ("open", "rejected", "cut off", "model")
    assert row["attempt"] == 0
    judge(saber, "i2-0.query", "accepted")
    row = collect(saber)["i2-0.query"]
    assert (row["verdict"], row["proposed"], row["reason"], row["by"]) == ("accepted", None, None, "Ada")


_, SCENE_ROWS = tiny_saber(object_counts=(2, 3), independent=2, nested=1)
VERDICT_ROWS = st.lists(
    st.sampled_from(["accepted", "accepted", "accepted", "rejected", "open", "missing"]),
    min_size=len(SCENE_ROWS),
    max_size=len(SCENE_ROWS),
)


def tables(marks):
    rows = [
        {"scene": scene["scene"], "sha256": "0" * 64, "verdict": mark, "attempt": 0}
        for scene, mark in zip(SCENE_ROWS, marks, strict=True)
        if mark != "missing"
    ]
    return pa.Table.from_pylist(rows, schema=VERDICTS.schema), pa.Table.from_pylist(SCENE_ROWS, schema=SCENES.schema)


@given(VERDICT_ROWS, st.booleans())
def test_a_question_is_scored_if_and_only_if_all_its_scenes_allow_it(marks, strict):
    usable, counts = screening.usable_questions(*tables(marks), Screening(require_verdict=strict))
    allowed = {"accepted"} if strict else {"accepted", "open"}
    by_question = {}
    for scene, mark in zip(SCENE_ROWS, marks, strict=True):
        by_question.setdefault(scene["question"], []).append(mark)
    assert usable == {question for question, its in by_question.items() if set(its) <= allowed}
    left_out = [counts[name] for name in ("left_out_rejected", "left_out_missing", "left_out_open")]
    assert counts["questions"] == len(by_question) == counts["scored"] + sum(left_out)
    assert counts["scored"] == len(usable)
    assert counts["scored_with_open_scenes"] == sum("open" in by_question[question] for question in usable)
    assert counts["left_out_rejected"] == sum("rejected" in its for its in by_question.values())


@given(VERDICT_ROWS)
def test_requiring_verdicts_only_takes_the_open_ones_away(marks):
    lax, lax_counts = screening.usable_questions(*tables(marks), Screening())
    strict, strict_counts = screening.usable_questions(*tables(marks), Screening(require_verdict=True))
    assert (
        strict <= lax and len(lax - strict) == lax_counts["scored_with_open_scenes"] == strict_counts["left_out_open"]
    )


def screen(saber, **values):
    collect(saber)
    folder = saber.folder / "screened"
    screening.screen_questions(
        saber.questions,
        saber.scenes,
        saber.folder / "verdicts.parquet",
        Screening(**values),
        folder / "questions.parquet",
        folder / "scenes.parquet",
        folder / "counts.json",
    )
    return folder


def test_what_is_scored_is_whole_questions_of_the_same_tables(saber):
    judge(saber, "i2-0.candidate_3", "rejected", "cut off")
    folder = screen(saber)
    questions = read_table(QUESTIONS, folder / "questions.parquet").to_pylist()
    assert questions == [row for row in saber.question_rows if row["question"] != "i2-0"]
    benchmark = read_benchmark(folder / "questions.parquet", folder / "scenes.parquet")
    assert len(benchmark.gallery_scenes) == 4 * len(questions)
    assert not any(scene.startswith("i2-0.") for scene in benchmark.gallery_scenes)
    assert json.loads((folder / "counts.json").read_text())["left_out_rejected"] == 1


def test_nothing_to_leave_out_changes_no_byte(saber):
    folder = screen(saber)
    for name, path in (("questions", saber.questions), ("scenes", saber.scenes)):
        assert (folder / f"{name}.parquet").read_bytes() == path.read_bytes()


def test_no_question_left_is_told_with_the_way_out(saber):
    with pytest.raises(UserError, match=r"no question can be scored .*4 with an open one.*review-scenes"):
        screen(saber, require_verdict=True)


def test_the_prompt_lists_the_scene_s_own_bindings_and_the_reasons(saber):
    scene = next(row for row in saber.scene_rows if row["scene"] == "i3-0.candidate_2")
    prompt = screening.proposal_prompt(scene)
    for binding in scene["bindings"]:
        assert f"- {binding['object']}: {binding['realised']}\n" in prompt
    assert "exactly 3 objects" in prompt and ", ".join(REASONS) in prompt and "$" not in prompt


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        ('{"verdict": "accepted", "reason": ""}', ("accepted", None)),
        ('```json\n{"verdict": "rejected", "reason": "cut off:\\n kite"}\n```', ("rejected", "cut off: kite")),
        ('Here: {"reason": "all well", "verdict": "accepted"} Done.', ("accepted", None)),
        ('{"verdict": "rejected", "reason": "' + "x" * 900 + '"}', ("rejected", "x" * 500)),
    ],
)
def test_a_model_s_answer_is_read(text, proposal):
    assert screening.parse_proposal(text) == proposal


@pytest.mark.parametrize(
    "text",
    ["", "accepted", "{", "{]}", '{"verdict": "open", "reason": ""}', '{"verdict": "rejected"}', '{"reason": "x"}',
     '{"verdict": "rejected", "reason": " "}', '{"verdict": "rejected", "reason": 3}', '{"verdict": ["accepted"]}'],
)  # fmt: skip
def test_an_answer_that_is_no_verdict_is_refused(text):
    with pytest.raises(ValueError):
        screening.parse_proposal(text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_no_answer_breaks_the_reader(text):
    with contextlib.suppress(ValueError):
        assert screening.parse_proposal(text).verdict in ("accepted", "rejected")


def test_the_schema_describes_what_is_read():
    import jsonschema

    for answer in ({"verdict": "accepted", "reason": ""}, {"verdict": "rejected", "reason": "cut off"}):
        jsonschema.validate(answer, screening.PROPOSAL_SCHEMA)
        assert screening.parse_proposal(json.dumps(answer)).verdict == answer["verdict"]


def test_a_journal_that_cannot_be_read_stops_the_table(saber):
    saber.journal.parent.mkdir()
    saber.journal.write_text("nonsense\n")
    with pytest.raises(UserError, match="line 1"):
        collect(saber)
