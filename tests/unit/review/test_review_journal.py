"""The journal of verdicts: nothing that was saved is lost, whoever writes at once and wherever a kill falls."""

import json
import subprocess
import sys

import pytest
from bindbench.errors import UserError
from bindbench.review.journal import (
    Journal,
    append_proposal,
    default_verdict,
    is_torn,
    read_journal,
    verdict_line,
)
from hypothesis import given
from hypothesis import strategies as st

IMAGE, REMADE = "a" * 64, "b" * 64


def add(journal, scene="s", sha256=IMAGE, verdict="accepted", reason=None, by=None, **more):
    line = verdict_line(scene, sha256, verdict, reason, by, **more)
    journal.append(lambda: [line])


def test_the_latest_line_of_an_image_counts(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    add(journal)
    add(journal, verdict="rejected", reason="cut off", by="Ada")
    standing = read_journal(tmp_path / "j.jsonl").standing("s", IMAGE)
    assert (standing["verdict"], standing["reason"], standing["by"]) == ("rejected", "cut off", "Ada")


def test_a_verdict_belongs_to_bytes_so_a_remade_image_is_open_again(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    add(journal, verdict="rejected", reason="x")
    assert journal.standing("s", REMADE) is None and journal.standing("other", IMAGE) is None


def test_rejected_images_are_counted_by_their_bytes_and_as_they_stand(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    for sha256 in (IMAGE, IMAGE, REMADE):
        add(journal, sha256=sha256, verdict="rejected", reason="x")
    assert journal.rejected_images("s") == {IMAGE, REMADE}
    add(journal, sha256=IMAGE, verdict="open")
    assert journal.rejected_images("s") == {REMADE}


def test_a_line_is_whole_json_with_all_that_was_judged(tmp_path):
    add(Journal(tmp_path / "new" / "j.jsonl"), reason="à peu près\nfaux }", by="Ada", press="0" * 32)
    (line,) = (tmp_path / "new" / "j.jsonl").read_text().splitlines()
    value = json.loads(line)
    assert set(value) == {"scene", "sha256", "verdict", "reason", "by", "press", "time"}
    assert value["time"].endswith("+00:00") and value["reason"] == "à peu près\nfaux }"


@given(st.text(max_size=20), st.integers(min_value=0))
def test_wherever_a_kill_falls_only_the_unfinished_line_is_lost_and_the_next_one_stands(tmp_path_factory, reason, cut):
    path = tmp_path_factory.mktemp("torn") / "j.jsonl"
    journal = Journal(path)
    add(journal, "first")
    whole = path.read_bytes()
    add(journal, "second", verdict="rejected", reason=reason)
    data = path.read_bytes()
    length = len(whole) + cut % (len(data) - len(whole))
    path.write_bytes(data[:length])
    complete = length == len(data) - 1  # only the line's end is missing
    assert (read_journal(path).standing("second", IMAGE) is not None) == complete
    add(Journal(path), "third")
    again = read_journal(path)
    assert again.standing("first", IMAGE) and again.standing("third", IMAGE)
    assert (again.standing("second", IMAGE) is not None) == complete


def test_a_reader_that_looks_while_a_line_is_being_written_sees_it_whole_later(tmp_path):
    path = tmp_path / "j.jsonl"
    writer = Journal(path)
    add(writer, "first")
    reader = read_journal(path)
    add(writer, "second")
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    reader.refresh()
    assert reader.standing("second", IMAGE) is None
    path.write_bytes(data)
    reader.refresh()
    assert reader.standing("second", IMAGE)


def test_a_journal_that_was_replaced_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    add(journal, "first")
    (tmp_path / "other").write_text(
        path.read_text().replace("first", "fresh") + path.read_text().replace("first", "other")
    )
    (tmp_path / "other").replace(path)
    journal.refresh()
    assert journal.standing("first", IMAGE) is None
    assert journal.standing("fresh", IMAGE) and journal.standing("other", IMAGE)
    path.unlink()
    journal.refresh()
    assert journal.standing("fresh", IMAGE) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("<<<<<<< HEAD", "not JSON"),
        ('{"scene" "s"}', "not JSON"),
        ("[1]", "not a verdict"),
        ('{"scene":"s","sha256":"abc","verdict":"accepted"}', "sha256 is 'abc'"),
        (json.dumps({"scene": "s", "sha256": IMAGE, "verdict": "fine"}), "verdict is 'fine'"),
        (json.dumps({"scene": "s", "sha256": IMAGE, "verdict": "open", "proposed": "open"}), "proposed is 'open'"),
        (json.dumps({"scene": 1, "sha256": IMAGE, "verdict": "open"}), "scene is missing"),
        (json.dumps({"scene": "s", "sha256": IMAGE, "verdict": "open", "reason": 1}), "reason is not a text"),
    ],
)
def test_a_damaged_line_is_named_not_skipped(tmp_path, line, problem):
    path = tmp_path / "j.jsonl"
    add(Journal(path))
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UserError) as error:
        read_journal(path)
    assert str(error.value).startswith(f"{path}: line 2: not") and problem in str(error.value)


def test_blank_lines_and_zeros_of_a_power_cut_are_no_damage(tmp_path):
    path = tmp_path / "j.jsonl"
    add(Journal(path))
    with path.open("ab") as file:
        file.write(b"\n\r\n" + b"\0" * 40)
    add(Journal(path), "next")
    assert read_journal(path).standing("s", IMAGE) and read_journal(path).standing("next", IMAGE)


@pytest.mark.parametrize(
    ("data", "torn"), [(b'{"a', True), (b'{"a":"}', True), (b'{"a":"}"}', False), (b'{"a"}', False)]
)
def test_torn_is_told_from_damaged(data, torn):
    assert is_torn(data) == torn


WRITER = """
import sys
from bindbench.review.journal import Journal, verdict_line
journal = Journal(sys.argv[1])
for number in range(150):
    line = verdict_line(f"{sys.argv[2]}-{number}", "a" * 64, "rejected", "x" * (number * 40), sys.argv[2])
    journal.append(lambda: [line])
"""


def test_two_programs_that_append_at_once_lose_no_line(tmp_path, repository):
    path = tmp_path / "j.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, name], cwd=repository / "workflow")
        for name in ("one", "two")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for name in ("one", "two"):
        assert [line["scene"] for line in lines if line["by"] == name] == [f"{name}-{number}" for number in range(150)]


COUNTER = """
import sys
from bindbench.review.journal import Journal, verdict_line
journal = Journal(sys.argv[1])

def next_number():
    standing = journal.standing("counter", "a" * 64)
    return [verdict_line("counter", "a" * 64, "open", str(int(standing["reason"]) + 1 if standing else 1), None)]

for _ in range(200):
    journal.append(next_number)
"""


def test_nobody_writes_between_what_decides_and_its_line(tmp_path, repository):
    path = tmp_path / "j.jsonl"
    counters = [subprocess.Popen([sys.executable, "-c", COUNTER, path], cwd=repository / "workflow") for _ in range(2)]
    assert [counter.wait(60) for counter in counters] == [0, 0]
    numbers = [int(json.loads(line)["reason"]) for line in path.read_text().splitlines()]
    assert numbers == list(range(1, 401))


def test_what_decides_sees_what_another_program_appended(tmp_path):
    ours, theirs = Journal(tmp_path / "j.jsonl"), Journal(tmp_path / "j.jsonl")
    add(theirs, verdict="rejected", reason="x")
    seen = []
    ours.append(lambda: seen.append(ours.standing("s", IMAGE)) or [])
    assert seen[0]["verdict"] == "rejected"


def test_a_press_is_undone_step_by_step_to_what_was_before(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    add(journal, verdict="accepted", press="1" * 16)
    add(journal, verdict="rejected", reason="x", press="2" * 16)
    counts, before = journal.before("2" * 16, "s", IMAGE)
    assert counts and before["verdict"] == "accepted"
    add(journal, verdict="accepted", press="3" * 16, undoes="2" * 16)
    assert journal.before("1" * 16, "s", IMAGE) == (True, None)
    assert journal.before("2" * 16, "s", IMAGE) == (False, None)


def test_a_press_that_somebody_judged_over_does_not_count_any_more(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    add(journal, press="1" * 16)
    add(journal, verdict="rejected", reason="x", by="another", press="2" * 16)
    assert journal.before("1" * 16, "s", IMAGE) == (False, None)


def test_a_model_s_proposal_changes_nothing_and_overrides_no_person(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    add(journal, "judged")
    for scene in ("judged", "s"):
        append_proposal(journal, scene, IMAGE, "rejected", "cut off", "model")
    assert journal.standing("s", IMAGE) is None and journal.rejected_images("s") == set()
    assert journal.standing("judged", IMAGE)["verdict"] == "accepted"
    assert journal.proposal("s", IMAGE)["proposed"] == "rejected"


def test_a_journal_that_cannot_be_written_is_the_user_s_to_mend(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be"):
        add(Journal(tmp_path / "file" / "j.jsonl"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="folder: cannot be"):
        add(Journal(tmp_path / "folder"))


def test_only_the_embedded_renderer_is_trusted_unseen():
    assert default_verdict("builtin/1") == "accepted"
    assert {default_verdict(name) for name in ("gpt-image-2/medium", "", "builtin-like/2", "x/builtin")} == {"open"}
