"""What people do wrong ends with one line and never goes on without end: broken states, short lists, odd files."""

import json
import shutil

import pytest
from bindbench.config import check
from bindbench.config.triplets import Generation, Splits
from bindbench.errors import UserError
from bindbench.paths import REPOSITORY
from bindbench.triplets import building, prompting
from bindbench.triplets.building import build_shard
from bindbench.triplets.constructions import Guidance, Proposal
from bindbench.triplets.controls import read_controls, sample_specification
from bindbench.triplets.grammar import read_grammar
from bindbench.triplets.prompting import build_prompt
from bindbench.triplets.splits import write_splits

FOLDER = REPOSITORY / "resources/triplets"


@pytest.fixture
def lists(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "triplets")


def build(folder, construction="pair_swap", size=3, before=None, **settings):
    outputs = [folder / name for name in ("examples.parquet", "rejects.parquet", "state.json", "record.json")]
    build_shard(construction, size, before, Generation(**settings), None, *outputs)
    return outputs


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    _, _, path, _ = build(tmp_path_factory.mktemp("shard"))
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        (None, "next_index", "7"),
        (None, "next_index", None),
        (None, "next_index", -1),
        ("usage", "accepted", "many"),
        ("usage", "accepted", 1.5),
        ("usage", "accepted", 1),
        ("usage", "counts", ["red"]),
        ("usage", "counts", {"red": "often"}),
        ("usage", "sets", "***"),
        ("usage", "sets", "AAAA"),
        ("usage", "construction", "predicative"),
        ("usage", "construction", None),
    ],
)
def test_a_state_of_other_values_is_told_by_its_name(state, tmp_path, section, key, value):
    broken = json.loads(json.dumps(state))
    (broken[section] if section else broken)[key] = value
    path = tmp_path / "0000.state.json"
    path.write_text(json.dumps(broken))
    with pytest.raises(UserError, match=r"0000\.state\.json: not a state of triplets; delete it and run again"):
        build(tmp_path, before=path)


@pytest.mark.parametrize("size", [0, -1])
def test_a_shard_of_nothing_is_refused_since_it_would_never_be_full(tmp_path, size):
    with pytest.raises(UserError, match="at least one example"):
        build(tmp_path, size=size)


def test_a_shard_without_any_accepted_example_ends_whatever_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr("bindbench.triplets.grammar.propose", lambda *_: Proposal((), ""))
    with pytest.raises(UserError) as error:
        build(tmp_path, least_acceptance=0)
    said = str(error.value)
    assert said.startswith(
        f"pair_swap: only 0 of {building.PATIENCE} proposals were accepted (rejects: binding_count 500)"
    )
    assert said.endswith("longer lists in resources/triplets would do better, or lower triplets.counts.pair_swap")


def test_only_the_reasons_of_the_counted_proposals_are_told(tmp_path, monkeypatch):
    """A quarter of the first 600 proposals pass, none of the later ones."""
    from bindbench.triplets.grammar import propose

    monkeypatch.setattr(
        "bindbench.triplets.grammar.propose",
        lambda grammar, specification, *more: (
            propose(grammar, specification, *more)
            if specification.index < 600 and specification.index % 4 == 0
            else Proposal((), "")
        ),
    )
    with pytest.raises(UserError, match=rf"only 25 of {building.PATIENCE} .*rejects: binding_count 475\)"):
        build(tmp_path, size=1000, least_acceptance=0.06)


def test_a_class_without_posture_is_told(lists):
    path = lists / "grammar/postures.csv"
    path.write_text("".join(row for row in path.read_text().splitlines(True) if not row.startswith("vessel,")))
    with pytest.raises(UserError, match=r"postures\.csv: row 1: no row of the class vessel"):
        read_grammar(lists)


def test_lists_saved_with_a_byte_order_mark_and_windows_line_ends_are_the_same_lists(lists):
    for path in [*lists.glob("*.csv"), *lists.glob("grammar/*")]:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    theirs, ours = read_grammar(lists), read_grammar(FOLDER)
    assert (theirs.lexicon, theirs.scenes, theirs.postures) == (ours.lexicon, ours.scenes, ours.postures)
    assert all(
        pool.fragments == ours.voices[name].pools[part].fragments
        for name, voice in theirs.voices.items()
        for part, pool in voice.pools.items()
    )


@pytest.mark.parametrize("value", ["swep", 2, -0.1, None, True, [0.5], {"from": 0}, float("nan")])
def test_a_wrong_scale_of_lines_is_told_once(value):
    with pytest.raises(UserError) as error:
        check({"finetuning": {"runs": {"small": {"base": "minilm", "lines_alpha": value}}}})
    assert str(error.value) == (
        f"config: finetuning.runs.small.lines_alpha: must be a number from 0 to 1, or sweep (got {value!r})"
    )


@pytest.mark.parametrize(("given", "value"), [("0.5", 0.5), (1, 1.0), ("sweep", "sweep")])
def test_a_scale_of_lines_may_be_written_as_text(given, value):
    runs = check({"finetuning": {"runs": {"small": {"base": "minilm", "lines_alpha": given}}}}).finetuning.runs
    assert runs["small"].lines_alpha == value


def test_runs_whose_names_differ_in_case_only_are_refused():
    with pytest.raises(UserError, match=r"^config: finetuning\.runs: two names differ in case only"):
        check({"finetuning": {"runs": {"small": {"base": "minilm"}, "Small": {"base": "minilm"}}}})


def test_a_shard_given_twice_is_told_by_both_names(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (first, *_), (second, *_) = build(tmp_path / "a"), build(tmp_path / "b")
    with pytest.raises(UserError) as error:
        write_splits([first, second], Splits(validation=0, test=0), tmp_path)
    assert str(error.value).startswith(f"{second}: holds pair_swap-")
    assert str(error.value).endswith(f", as {first} does; delete both and run again")


def test_a_prompt_saved_with_a_byte_order_mark_asks_for_the_same(tmp_path, monkeypatch):
    """The mark would stand in the middle of what is sent, and buy every answer again."""
    controls = read_controls(FOLDER)
    specification = sample_specification(controls, "pair_swap", 0, 0)
    asked = [[specification], Guidance((), (), {}), controls.registers, controls.openers]
    ours = build_prompt(*asked)
    prompts = shutil.copytree(REPOSITORY / prompting.TEMPLATES, tmp_path / "prompts")
    for path in prompts.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    monkeypatch.setattr(prompting, "TEMPLATES", str(prompts))
    assert build_prompt(*asked) == ours
