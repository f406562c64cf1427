"""Canonical references (section 3.2): what is shown, what is asked of a paid model, what the checks find, what a run keeps."""

import json
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
from bindbench.config.multibind_pictures import References
from bindbench.errors import UserError
from bindbench.files import sha256
from bindbench.multibind import references
from bindbench.multibind.annotation import EDIT_SET, PRESERVE_SET
from bindbench.multibind.references import (
    NEUTRAL,
    embedded_reference,
    make_references,
    masked_crop,
    reference_problems,
    reference_prompt,
    references_requests,
)
from bindbench.multibind.tables import REFERENCES
from bindbench.services.buying import estimate
from bindbench.services.costs import read_costs
from bindbench.tables import read_table
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st
from tiny_instances import write_instances

SMALL = References(size_px=64)
GEMINI = References(method="gemini", size_px=64)
OPENAI = References(method="openai", size_px=1024, quality="medium")


@pytest.fixture(autouse=True)
def _courier(courier_thread):
    """A courier in a thread of this process: see tests/support/service_fixtures.py."""


@pytest.fixture
def made(tmp_path):
    return write_instances(tmp_path, [2, 3])


def run(made, settings, services=None, threads=1, **more) -> dict[tuple[str, str], dict]:
    out = made[0].parent / "references.parquet"
    folder = made[0].parent / "references"
    make_references(*made, settings, services, out, folder, version=1, threads=threads, **more)
    rows = read_table(REFERENCES, out).to_pylist()
    for row in rows:
        if row["reference"] is not None:
            assert sha256((folder / row["reference"]).read_bytes()) == row["sha256"]
    return {(row["instance"], row["slot"]): row for row in rows}


# What a reference shows ----------------------------------------------------------------------------------------------

SIDES = st.integers(1, 40)


@tried(max_examples=40, deadline=None)
@given(left=st.integers(0, 20), top=st.integers(0, 20), width=SIDES, height=SIDES, size=st.integers(64, 130))
def test_the_subject_alone_fills_the_picture_in_its_own_proportions(left, top, width, height, size):
    image = np.full((64, 64, 3), (0, 255, 0), np.uint8)
    mask = np.zeros((64, 64), bool)
    mask[top : top + height, left : left + width] = True
    image[mask] = (255, 0, 0)
    picture = embedded_reference(image, mask, size, 0.1).astype(int)
    assert picture.shape == (size, size, 3)
    # Each pixel is a mixture of the subject's red and grey 128: nothing of the green around it.
    share = (picture[..., 0] - 128) / 127
    assert np.abs((128 - picture[..., 1]) / 128 - share).max() < 0.02 and share.min() >= 0
    rows, columns = np.flatnonzero(share.max(1) > 0.5), np.flatnonzero(share.max(0) > 0.5)
    seen = len(columns), len(rows)
    scale = size * 0.8 / max(width, height)
    assert abs(seen[0] - width * scale) <= 2.5 and abs(seen[1] - height * scale) <= 2.5
    assert abs(columns[0] + columns[-1] + 1 - size) <= 2 and abs(rows[0] + rows[-1] + 1 - size) <= 2


def test_an_edge_is_soft_over_two_pixels_at_most_however_small_the_subject():
    image = np.full((40, 40, 3), (255, 0, 0), np.uint8)
    mask = cv2.circle(np.zeros((40, 40), np.uint8), (20, 20), 6, 1, -1).astype(bool)
    share = (embedded_reference(image, mask, 400, 0.1)[200, :, 0].astype(int) - 128) / 127
    assert 0 < ((share > 0.02) & (share < 0.98)).sum() <= 4  # both edges together


def test_what_a_paid_model_gets_are_the_subjects_own_pixels_on_grey():
    image = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    mask = np.zeros((50, 70), bool)
    mask[5:45, 10:30] = True
    mask[20:25, 15:18] = False
    picture = masked_crop(image, mask)
    assert picture.shape[0] == picture.shape[1]
    top, left = (picture.shape[0] - 40) // 2, (picture.shape[1] - 20) // 2
    shown = picture[top : top + 40, left : left + 20]
    assert np.array_equal(shown[mask[5:45, 10:30]], image[mask]) and (shown[~mask[5:45, 10:30]] == 128).all()
    picture[top : top + 40, left : left + 20] = 128
    assert (picture == 128).all()


def test_an_empty_mask_has_no_reference():
    for cut in (masked_crop, lambda image, mask: embedded_reference(image, mask, 64, 0.0)):
        with pytest.raises(ValueError, match="empty"):
            cut(np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8), bool))


# What is asked of a paid model ---------------------------------------------------------------------------------------


def test_the_instruction_neutralises_the_edit_set_and_keeps_the_preserve_set():
    prompt = reference_prompt()
    assert set(NEUTRAL) == set(EDIT_SET)
    neutralised, kept = prompt.split("Keep these exactly")
    for field, words in EDIT_SET.items():
        assert f"- {words}: {NEUTRAL[field]}" in neutralised
    assert all(f"- {words}" in kept for words in PRESERVE_SET.values())
    assert "plain, neutral grey background" in prompt and "$" not in prompt


def test_gemini_3_pro_image_is_asked_for_one_square_picture_of_the_cut_out_subject(made, settings):
    asked = list(references_requests(*made, GEMINI))
    assert len(asked) == 5 and len({request.key for request in asked}) == 5
    for request in asked:
        assert (request.kind, request.model, request.stage) == (
            "gemini_content", "gemini-3-pro-image", "multibind/references"
        )  # fmt: skip
        assert request.body["config"]["image_config"] == {"aspect_ratio": "1:1", "image_size": "1K"}
        assert len(request.images) == 1
    large = References(method="gemini", size_px=1500)
    assert next(references_requests(*made, large)).body["config"]["image_config"]["image_size"] == "2K"
    assert list(references_requests(*made, SMALL)) == []


@pytest.mark.parametrize(("model", "told"), [("gpt-image-1.5", True), ("gpt-image-2", False)])
def test_gpt_image_edits_the_picture_and_keeps_to_the_face_where_it_can_be_told(made, model, told):
    request = next(references_requests(*made, References(method="openai", openai_model=model)))
    assert (request.kind, request.body["size"], request.body["quality"]) == ("image_edit", "1024x1024", "high")
    assert request.body.get("input_fidelity") == ("high" if told else None)


@pytest.mark.parametrize("paid", [GEMINI, OPENAI])
def test_references_are_bought_once_and_an_estimate_knows_what_is_held(made, settings, server, paid):
    before = estimate(references_requests(*made, paid), settings)
    assert (before.requests, before.held) == (5, 0) and before.price_usd > 0
    first = run(made, paid, settings)
    assert server.counts() == [1] * 5
    name = {"gemini": "gemini/gemini-3-pro-image/1K", "openai": "openai/gpt-image-1.5/medium"}[paid.method]
    assert {row["model"] for row in first.values()} == {name}
    assert all(row["problems"] == ["empty"] for row in first.values())  # the server's pictures are of one colour
    files = {path: path.stat().st_mtime_ns for path in (made[0].parent / "references").glob("*.png")}
    assert run(made, paid, settings) == first and server.counts() == [1] * 5
    assert files == {path: path.stat().st_mtime_ns for path in files}
    assert estimate(references_requests(*made, paid), settings).held == 5
    cost = read_costs([made[0].parent / "references.json"])
    assert cost["requests"] == 5 and cost["cost_usd"] > 0


def test_batches_are_bought_the_same_way(made, settings, server):
    batch = settings.model_copy(update={"mode": "batch"})
    for paid in (GEMINI, OPENAI):
        assert all(row["reference"] for row in run(made, paid, batch).values())
    assert len(server.control("seen")["batches"]) == 2


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "status", "status": 429, "headers": {"Retry-After": "0.05"}},
        {"fault": "status", "status": 500},
        {"fault": "not_image"},
        {"fault": "half_base64"},
    ],
)
@pytest.mark.parametrize("paid", [GEMINI, OPENAI])
def test_what_passes_is_asked_again(made, settings, server, paid, fault):
    server.faults({**fault, "times": 2})
    assert all(row["reference"] for row in run(made, paid, settings).values())


def test_a_picture_of_another_size_is_bought_again_where_a_size_was_asked_for_and_else_noted(made, settings, server):
    server.faults({"fault": "wrong_size"})
    assert all("wrong_size" not in row["problems"] for row in run(made, OPENAI, settings).values())
    server.faults({"fault": "wrong_size"})
    problems = [row["problems"] for row in run(made, GEMINI, settings).values()]
    assert sorted(problems) == [["empty"]] * 4 + [["wrong_size", "empty"]]


@pytest.mark.parametrize("fault", [{"fault": "refusal"}, {"fault": "not_image", "times": 3}])
def test_a_refused_reference_is_noted_with_its_reason_and_the_others_are_made(made, settings, server, fault):
    # One instance, one at a time, so that all the faults meet one subject.
    server.faults(fault)
    rows = run(made, GEMINI, settings.model_copy(update={"concurrency": 1}))
    refused = [row for row in rows.values() if row["reference"] is None]
    assert len(refused) == 1 and refused[0]["problems"] == ["refused"] and refused[0]["sha256"] is None
    record = json.loads((made[0].parent / "references.json").read_text())
    assert list(record["refused"]) == [f"{refused[0]['instance']}_{refused[0]['slot']}"]
    assert all(record["refused"].values())


# Rejected parts alone are made again ---------------------------------------------------------------------------------


def test_a_rejected_reference_alone_is_bought_again_and_the_same_answer_does_not_do(made, settings, server):
    first = run(made, GEMINI, settings)
    place = ("made-1", "B")
    rejected = {place: {first[place]["sha256"]}}
    second = run(made, GEMINI, settings, rejected=rejected)
    assert (
        len(server.seen()) == 5
    )  # the same words: the fake server sees the same content, and answers with the same picture
    assert server.counts() == [1, 1, 1, 1, 1 + settings.max_attempts_payload]
    assert second[place]["sha256"] == first[place]["sha256"] and "rejected" in second[place]["problems"]
    record = json.loads((made[0].parent / "references.json").read_text())
    assert record["refused"] == {"made-1_B": "the same answer as one that was rejected"}
    assert run(made, GEMINI, settings, rejected=rejected) == second and max(server.counts()) == 4, (
        "nothing is bought twice"
    )
    asked = {request.key for request in references_requests(*made, GEMINI)}
    again = {request.key for request in references_requests(*made, GEMINI, rejected)}
    assert len(again - asked) == 1
    assert all(second[other] == first[other] for other in first if other != place)


def test_an_embedded_reference_comes_out_the_same_and_stays_rejected(made):
    first = run(made, SMALL)
    place = ("made-0", "A")
    second = run(made, SMALL, rejected={place: {first[place]["sha256"]}})
    assert second[place] == first[place] | {"problems": ["rejected"]}
    assert all(second[other] == first[other] for other in first if other != place)
    stale = run(made, SMALL, rejected={place: {"0" * 64}})
    assert stale == first


# Automatic checks ----------------------------------------------------------------------------------------------------


def test_embedded_references_of_made_people_have_no_problems(made):
    assert {row["model"] for row in run(made, SMALL).values()} == {"embedded/masked-crop"}
    assert all(row["problems"] == [] for row in run(made, SMALL).values())


def problems_of(pictures, settings=SMALL, target=None, masks=None):
    target = np.zeros((20, 20, 3), np.uint8) if target is None else target
    masks = masks or {slot: np.zeros((20, 20), bool) for slot in pictures}
    return reference_problems(target, masks, pictures, settings)


def noise(seed: int, size: int = 64) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), np.uint8)


def test_size_emptiness_coverage_and_doubles_are_found():
    thin = np.full((64, 64, 3), 128, np.uint8)
    thin[:, 30:32] = (200, 0, 0)
    found = problems_of({"A": noise(1), "B": noise(2, 60), "C": thin, "D": np.full((64, 64, 3), 90, np.uint8)})
    assert found == {"A": [], "B": ["wrong_size"], "C": ["small"], "D": ["empty"]}
    assert problems_of({"A": noise(1), "B": noise(2), "C": noise(1)}) == {
        "A": ["same_as_other"], "B": [], "C": ["same_as_other"]
    }  # fmt: skip
    assert problems_of({"A": thin}, GEMINI) == {"A": []}  # a model may draw people as slim as it likes


@pytest.fixture(scope="module")
def two_people():
    """The photograph zidane.jpg of the installed package ultralytics, and two rough masks: everything right and left."""
    path = Path(find_spec("ultralytics").submodule_search_locations[0]) / "assets" / "zidane.jpg"
    image = cv2.imread(str(path))[..., ::-1].copy()
    masks = {slot: np.zeros(image.shape[:2], bool) for slot in "AB"}
    masks["A"][190:720, 400:735] = True
    masks["B"][40:720, 745:1130] = True
    return image, masks


def test_the_face_of_a_bought_reference_is_closest_to_its_own_subjects(two_people):
    image, masks = two_people
    pictures = {slot: embedded_reference(image, mask, 512, 0.04) for slot, mask in masks.items()}
    asked = References(method="gemini", size_px=512)
    assert reference_problems(image, masks, pictures, asked) == {"A": [], "B": []}
    swapped = {"A": pictures["B"], "B": pictures["A"]}
    assert reference_problems(image, masks, swapped, asked) == {"A": ["other_person"], "B": ["other_person"]}
    faceless = {"A": pictures["A"], "B": noise(3, 512)}
    assert reference_problems(image, masks, faceless, asked) == {"A": [], "B": ["no_face"]}


# What a run keeps ----------------------------------------------------------------------------------------------------


@pytest.fixture
def cut(monkeypatch):
    """The instances that are cut out, in order; with `die` set, a run is killed when it comes to that one."""
    seen = []
    real = references._cut

    def counting(task):
        seen.append(task[2]["instance"])
        if seen[-1] == counting.die:
            raise KeyboardInterrupt
        return real(task)

    counting.die = None
    counting.seen = seen
    monkeypatch.setattr(references, "_cut", counting)
    return counting


def test_a_killed_run_goes_on_where_it_was(made, cut):
    cut.die = "made-1"
    with pytest.raises(KeyboardInterrupt):
        run(made, SMALL)
    with (made[0].parent / "references" / "references.index.jsonl").open("a") as index:
        index.write('\n{"item": "picture/made-1_A", "ke')
    (made[0].parent / "references" / ".made-1_A.png.x7.png").write_bytes(b"half")
    cut.die = None
    rows = run(made, SMALL)
    assert cut.seen == ["made-0", "made-1", "made-1"]
    assert len(rows) == 5 and not list((made[0].parent / "references").glob(".*"))


def test_only_what_changed_or_was_damaged_is_made_again(made, cut):
    first = run(made, SMALL)
    table = (made[0].parent / "references.parquet").read_bytes()
    assert run(made, SMALL) == first and cut.seen == ["made-0", "made-1"]
    (made[0].parent / "references" / first["made-1", "C"]["reference"]).write_bytes(b"something else")
    assert run(made, SMALL) == first and cut.seen[2:] == ["made-1"]
    assert (made[0].parent / "references.parquet").read_bytes() == table
    run(made, References(size_px=64, least_coverage=0.2))
    assert len(cut.seen) == 3, "the limit of a check moves no pixel"
    run(made, References(size_px=65))
    assert cut.seen[3:] == ["made-0", "made-1"]


def test_files_of_instances_that_left_are_removed_and_no_others(made, tmp_path):
    run(made, SMALL)
    stranger = made[0].parent / "references" / "notes.png"
    stranger.write_bytes(b"somebody's")
    fewer = write_instances(tmp_path, [2])
    assert set(run(fewer, SMALL)) == {("made-0", "A"), ("made-0", "B")}
    left = sorted(path.name for path in (made[0].parent / "references").iterdir())
    assert left == ["made-0_A.png", "made-0_B.png", "notes.png", "references.index.jsonl"]


FOREIGN = [
    *("5", "[]", "null", "{}", "\0\0", "[" * 100_000, '{"item": "picture/made-1_A", "ke'),
    '{"item": ["x"], "key": "k", "value": {}}',
    '{"item": "picture/made-0_A", "key": "k", "value": []}',
    '{"item": "picture/made-0_A", "key": "k", "value": {"file": 5, "sha256": "0"}}',
    '{"item": "picture/made-0_A", "key": "k", "value": {"file": "made-0_A.png"}}',
    '{"item": "picture/made-0_A", "key": "k", "value": {"file": "../made-0.png", "sha256": "0"}}',
    '{"item": "picture/made-0_A", "key": "k", "value": {"file": "a\\u0000", "sha256": "0"}}',
]


@pytest.mark.parametrize("line", FOREIGN)
def test_a_line_of_the_index_that_is_not_ours_costs_and_removes_nothing(made, cut, line):
    first = run(made, SMALL)
    outside = made[0].parent / "made-0.png"
    outside.write_bytes(b"somebody's")
    with (made[0].parent / "references" / "references.index.jsonl").open("a") as index:
        index.write(line + "\n")
    assert run(made, SMALL) == first and cut.seen == ["made-0", "made-1"]
    assert outside.read_bytes() == b"somebody's"


def test_any_number_of_processes_makes_the_same_bytes(made, tmp_path):
    run(made, SMALL)
    folder = made[0].parent
    one = {path.name: path.read_bytes() for path in (folder / "references").iterdir()}
    table = (folder / "references.parquet").read_bytes()
    for path in (folder / "references").iterdir():
        path.unlink()
    run(made, SMALL, threads=2)
    assert {path.name: path.read_bytes() for path in (folder / "references").iterdir()} == one
    assert (folder / "references.parquet").read_bytes() == table


def test_a_target_that_is_missing_or_another_one_is_one_line(made):
    target = made[2] / "made-1.png"
    target.write_bytes(target.read_bytes() + b"\0")
    with pytest.raises(UserError, match=r"made-1\.png: is not the file that was written down.*snakemake") as wrong:
        run(made, SMALL)
    target.unlink()
    with pytest.raises(UserError, match=r"made-1\.png: cannot be read"):
        run(made, SMALL)
    assert "\n" not in str(wrong.value) and str(wrong.value).endswith(
        f"delete {made[2]}.parquet and run snakemake again"
    )


def test_a_missing_template_is_one_line(monkeypatch):
    monkeypatch.setattr(references, "PROMPT", "resources/prompts/multibind/none.txt")
    with pytest.raises(UserError, match=r"none\.txt: cannot be read"):
        reference_prompt()
