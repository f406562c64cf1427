"""Background references (section 3.2): people are removed, the rest stays, nobody is found any more, nothing is bought twice."""

import json
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
from bindbench.config.multibind_pictures import Backgrounds
from bindbench.config.multibind_segmentation import Segmentation
from bindbench.errors import UserError
from bindbench.files import sha256
from bindbench.multibind import backgrounds, inpainting
from bindbench.multibind.backgrounds import (
    backgrounds_requests,
    framed,
    input_pictures,
    make_backgrounds,
    nearest_shape,
    people_in,
)
from bindbench.multibind.inpainting import grown, hole_of, without_people
from bindbench.multibind.pictures import GEMINI_RATIOS, OPENAI_SIZES
from bindbench.multibind.tables import BACKGROUNDS, PHOTOGRAPHS
from bindbench.people.masks import encode_mask
from bindbench.services.buying import estimate
from bindbench.services.costs import read_costs
from bindbench.tables import read_table, write_table
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st
from pydantic import ValidationError
from tiny_instances import scene, write_instances

SMOOTH = Backgrounds(method="opencv")
GEMINI = Backgrounds(method="gemini")
OPENAI = Backgrounds(method="openai", quality="medium")
FACES = Segmentation()


@pytest.fixture(autouse=True)
def _courier(courier_thread):
    """A courier in a thread of this process: see tests/support/service_fixtures.py."""


@pytest.fixture
def made(tmp_path):
    return write_instances(tmp_path, [2, 3])


def run(made, settings, services=None, threads=1, **more) -> dict[str, dict]:
    out, folder = made[0].parent / "backgrounds.parquet", made[0].parent / "backgrounds"
    make_backgrounds(*made, settings, services, FACES, out, folder, version=1, threads=threads, **more)
    rows = read_table(BACKGROUNDS, out).to_pylist()
    for row in rows:
        if row["background"] is not None:
            assert sha256((folder / row["background"]).read_bytes()) == row["sha256"]
    return {row["instance"]: row for row in rows}


def background(made, name: str) -> np.ndarray:
    return cv2.imread(str(made[0].parent / "backgrounds" / f"{name}.png"))[..., ::-1]


# What is removed -----------------------------------------------------------------------------------------------------


@tried(max_examples=30, deadline=None)
@given(data=st.data(), around=st.integers(0, 5), below=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_a_mask_grows_by_a_distance_and_downwards_by_a_share_of_its_height(data, around, below):
    mask = np.zeros((20, 24), bool)
    for _ in range(data.draw(st.integers(1, 4))):
        mask[data.draw(st.integers(0, 19)), data.draw(st.integers(0, 23))] = True
    rows, columns = np.nonzero(mask)
    down = round(below * (rows.max() + 1 - rows.min()))
    y, x = np.indices(mask.shape)
    expected = np.zeros_like(mask)
    for row, column in zip(rows, columns, strict=True):
        for step in range(down + 1):
            expected |= (y - row - step) ** 2 + (x - column) ** 2 <= around**2
    # A shadow of what has grown beyond the lower border is beyond it, too.
    assert np.array_equal(grown(mask, around, below), expected)


def test_every_person_is_removed_and_an_empty_mask_removes_nothing():
    _, masks = scene(3)
    hole = hole_of(masks, SMOOTH)
    assert all(hole[mask].all() for mask in masks) and not hole.all()
    assert not hole_of([np.zeros((9, 9), bool)], SMOOTH).any()


def test_what_a_mask_encloses_is_removed_with_it_and_what_two_masks_enclose_is_not():
    exact = Backgrounds(grow=0, grow_below=0)
    ring = np.zeros((20, 20), bool)
    ring[3:17, 3:17] = True
    whole = ring.copy()
    ring[6:12, 6:12] = False
    assert np.array_equal(hole_of([ring], exact), whole)
    left, right = ring.copy(), ring.copy()
    left[:, 9:] = right[:, :9] = False
    assert np.array_equal(hole_of([left, right], exact), ring)


def test_people_who_are_no_subjects_are_removed_too(made, tmp_path):
    # made-0 was scaled to half its size; the bystanders stand where no subject does.
    mask = np.zeros((96, 144), bool)
    mask[2:8, 130:142] = True
    people = [
        {"person": "A", "box": [0, 0, 144, 96], "mask": None, "crowd": False, "score": 1.0},
        {"person": "far", "box": [0, 0, 9, 9], "mask": encode_mask(mask), "crowd": False, "score": 1.0},
        {"person": "broken", "box": [100, 80, 20, 10], "mask": "0", "crowd": False, "score": 1.0},
        {"person": "crowd", "box": [-5, -5, 15.5, 15.5], "mask": None, "crowd": True, "score": 1.0},
    ]
    more = {"source": "folder", "path": "x", "licence": "ours", "reason": None, "detail": None}
    rows = [
        {"photograph": "made/0", "width": 144, "height": 96, "people": people, **more},
        {"photograph": "made/1", "width": 72, "height": 48, "people": [], **more},
    ]
    write_table(PHOTOGRAPHS, rows, tmp_path / "photographs.parquet")
    exact = SMOOTH.model_copy(update={"grow": 0.0, "grow_below": 0.0})
    run(made, exact)
    before = background(made, "made-0")
    run(made, exact, photographs=tmp_path / "photographs.parquet")
    changed = (background(made, "made-0") != before).any(-1)
    expected = np.zeros((48, 72), bool)
    expected[1:4, 65:71] = expected[40:45, 50:60] = expected[0:6, 0:6] = True
    filled = np.logical_or.reduce(scene(2)[1])  # the subjects: what fills them may come from another place now
    assert not changed[~expected & ~filled].any() and changed[expected].mean() > 0.8
    asked = [next(backgrounds_requests(*made, GEMINI, photographs)).key for photographs in
             (None, tmp_path / "photographs.parquet")]  # fmt: skip
    assert asked[0] != asked[1]
    write_table(PHOTOGRAPHS, rows[:1], tmp_path / "photographs.parquet")
    with pytest.raises(UserError, match=r"photographs\.parquet: no photograph made/1"):
        run(made, exact, photographs=tmp_path / "photographs.parquet")


# The embedded methods ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["patchmatch", "opencv"])
@pytest.mark.parametrize("algorithm", ["telea", "ns"])
@pytest.mark.parametrize("longest_px", [64, 640])
def test_people_are_gone_and_the_rest_is_as_it_was(method, algorithm, longest_px):
    image, masks = scene(3, 90, 130)
    settings = Backgrounds(method=method, algorithm=algorithm, longest_px=longest_px)
    hole = hole_of(masks, settings)
    result = without_people(image, hole, settings)
    assert result.shape == image.shape and result.dtype == np.uint8
    assert np.array_equal(result[~hole], image[~hole])
    # The made people are red, their ground never is.
    assert image[..., 0].max() > 100 and result[..., 0].max() <= 8


def test_patchmatch_is_the_same_for_a_seed_and_another_for_another():
    image, masks = scene(2)
    hole = hole_of(masks, Backgrounds())
    results = [without_people(image, hole, Backgrounds(seed=seed)) for seed in (1, 1, 2)]
    assert np.array_equal(results[0], results[1]) and not np.array_equal(results[0], results[2])


def test_a_large_photograph_is_filled_at_the_limit(monkeypatch):
    seen = []

    def fill(image, hole, settings):
        seen.append((image.shape, hole.shape))
        return image

    monkeypatch.setattr(inpainting, "_patchmatch", fill)
    image, masks = scene(2, 300, 500)
    without_people(image, hole_of(masks, Backgrounds()), Backgrounds(longest_px=100))
    without_people(image, hole_of(masks, Backgrounds()), Backgrounds(longest_px=4000))
    assert seen == [((60, 100, 3), (60, 100)), ((300, 500, 3), (300, 500))]


@pytest.mark.parametrize("left", [2, 6])
def test_a_photograph_of_which_people_leave_hardly_a_patch_is_filled_all_the_same(left):
    image, _ = scene(1, 40, 60)
    hole = np.ones((40, 60), bool)
    hole[:, :left] = False
    image[hole] = (255, 0, 0)
    result = without_people(image, hole, Backgrounds(patch_px=5))
    assert np.array_equal(result[~hole], image[~hole]) and result[..., 0].max() <= 8


def test_where_people_hide_nearly_everything_there_is_no_background(made, monkeypatch):
    monkeypatch.setattr(backgrounds, "MOST_HIDDEN", 0.001)
    for _ in range(2):  # also when an earlier run has found that out
        row = run(made, SMOOTH)["made-0"]
        assert (row["background"], row["sha256"], row["people_left"]) == (None, None, None)
        assert row["problems"] == ["nothing_behind"]


# LaMa: a tiny TorchScript module stands for it -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def torchscript(tmp_path_factory):
    """Saves modules as LaMa's is saved: forward(image, mask) on (1, 3, h, w) and (1, 1, h, w) from 0 to 1."""
    import torch

    class Green(torch.nn.Module):
        def forward(self, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            assert image.shape[2] % 8 == 0 and image.shape[3] % 8 == 0
            assert image.shape[1] == 3 and mask.shape[1] == 1 and image.max() <= 1.0
            assert ((mask == 0.0) | (mask == 1.0)).all()
            fill = torch.tensor([0.0, 0.6, 0.0]).reshape(1, 3, 1, 1)
            return image * (1 - mask) + fill * mask

    class Small(torch.nn.Module):
        def forward(self, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return image[:, :, :8, :8]

    class OneInput(torch.nn.Module):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return image

    folder = tmp_path_factory.mktemp("lama")
    for module in (Green(), Small(), OneInput()):
        torch.jit.script(module).save(str(folder / f"{type(module).__name__}.pt"))
    return folder


def test_lama_fills_what_its_weights_say_in_pictures_of_any_size(torchscript):
    settings = Backgrounds(method="lama", lama_weights=str(torchscript / "Green.pt"), longest_px=64)
    for height, width in ((48, 72), (41, 61), (16, 16)):
        image, masks = scene(1, height, width) if height > 20 else (np.zeros((16, 16, 3), np.uint8), None)
        hole = hole_of(masks, settings) if masks else np.eye(16, dtype=bool)
        result = without_people(image, hole, settings)
        assert np.array_equal(result[~hole], image[~hole])
        inner = hole if masks is None else cv2.erode(hole.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
        assert (result[inner] == (0, 153, 0)).all()


@pytest.mark.parametrize("file", ["missing.pt", "broken.pt", "Small.pt", "OneInput.pt"])
def test_weights_that_are_no_lama_are_one_line_that_names_the_key(made, torchscript, file):
    (torchscript / "broken.pt").write_bytes(b"not a module")
    with pytest.raises(UserError, match=rf"^multibind\.backgrounds\.lama_weights: .*{file}: ") as wrong:
        run(made, Backgrounds(method="lama", lama_weights=str(torchscript / file)))
    assert "\n" not in str(wrong.value)


def test_lama_without_weights_is_refused_by_the_config():
    with pytest.raises(ValidationError, match="lama_weights: method lama needs the file of its model, as TorchScript"):
        Backgrounds(method="lama")


def test_other_weights_under_the_same_name_fill_again(made, torchscript, tmp_path):
    path = tmp_path / "lama.pt"
    settings = Backgrounds(method="lama", lama_weights=str(path))
    path.write_bytes((torchscript / "Green.pt").read_bytes())
    assert run(made, settings)["made-0"]["model"] == "lama/lama.pt"
    path.write_bytes((torchscript / "Small.pt").read_bytes())
    inpainting._lama_model.cache_clear()
    with pytest.raises(UserError, match="another size"):
        run(made, settings)


# What is asked of a paid model ---------------------------------------------------------------------------------------


@tried(max_examples=200, deadline=None)
@given(width=st.integers(16, 5000), height=st.integers(16, 5000), shapes=st.sampled_from([OPENAI_SIZES, GEMINI_RATIOS]))
def test_the_frame_is_the_smallest_of_the_nearest_shape(width, height, shapes):
    shape = nearest_shape(width, height, shapes)
    ratio = shape[0] / shape[1]
    wide, high, left, top = framed(width, height, ratio)
    assert (wide == width or high == height) and wide >= width and high >= height
    assert abs(wide - high * ratio) <= max(1, ratio)
    assert left == (wide - width) // 2 and top == (high - height) // 2
    added = [max(width / height / (a / b), a / b / (width / height)) for a, b in shapes]
    assert max(width / height / ratio, ratio / (width / height)) == pytest.approx(min(added))


def test_the_photograph_and_its_mask_go_in_with_one_frame():
    image, masks = scene(2, 40, 70)
    hole = hole_of(masks, GEMINI)
    photograph, white = input_pictures(image, hole, (3, 2))
    assert photograph.shape == (47, 70, 3) and white.shape == (47, 70)
    assert np.array_equal(photograph[3:43], image) and np.array_equal(white[3:43] > 0, hole)
    assert set(np.unique(white)) == {0, 255}
    same, _ = input_pictures(image, hole, (7, 4))
    assert np.array_equal(same, image)


def test_requests_ask_for_the_shape_nearest_to_the_photograph(made):
    for settings, kind, model in (
        (GEMINI, "gemini_content", "gemini-3-pro-image"),
        (OPENAI, "image_edit", "gpt-image-1.5"),
    ):
        requests = list(backgrounds_requests(*made, settings))
        assert {(request.kind, request.model, len(request.images)) for request in requests} == {(kind, model, 2)}
        assert len({request.key for request in requests}) == 2
    assert requests[0].body["size"] == "1536x1024" and "no person" in requests[0].body["prompt"]
    config = next(backgrounds_requests(*made, GEMINI)).body["config"]
    assert config["image_config"] == {"aspect_ratio": "3:2", "image_size": "1K"}
    assert list(backgrounds_requests(*made, SMOOTH)) == []


@pytest.mark.parametrize("mode", ["online", "batch"])
@pytest.mark.parametrize("paid", [GEMINI, OPENAI])
def test_backgrounds_are_bought_once_brought_to_the_targets_size_and_recorded_so(made, settings, server, paid, mode):
    settings = settings.model_copy(update={"mode": mode})
    before = estimate(backgrounds_requests(*made, paid), settings)
    assert (before.requests, before.held) == (2, 0) and before.price_usd > 0
    first = run(made, paid, settings)
    asked = len(server.seen())
    assert all(background(made, name).shape == (48, 72, 3) for name in first)
    assert all(row["model"].endswith("/resized") and row["people_left"] == 0 for row in first.values())
    record = json.loads((made[0].parent / "backgrounds.json").read_text())
    came = "64 x 64" if paid is GEMINI else "1536 x 1024"
    assert record["resized"]["made-0"] == f"from {came}, framed 72 x 48, to 72 x 48"
    # Gemini's stand-in always answers with a square; OpenAI's with the size that it was asked for.
    assert {tuple(row["problems"]) for row in first.values()} == {("stretched",) if paid is GEMINI else ()}
    assert run(made, paid, settings) == first and len(server.seen()) == asked
    assert estimate(backgrounds_requests(*made, paid), settings).held == 2
    assert read_costs([made[0].parent / "backgrounds.json"])["cost_usd"] > 0


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "status", "status": 429, "headers": {"Retry-After": "0.05"}},
        {"fault": "status", "status": 503},
        {"fault": "not_image"},
        {"fault": "wrong_size"},
    ],
)
def test_what_passes_is_asked_again(made, settings, server, fault):
    server.faults(fault)
    assert all(row["problems"] == [] for row in run(made, OPENAI, settings).values())


@pytest.mark.parametrize("fault", [{"fault": "refusal"}, {"fault": "withheld"}])
def test_a_refused_background_is_noted_with_its_reason(made, settings, server, fault):
    server.faults(fault)
    rows = run(made, GEMINI, settings)
    refused = [row for row in rows.values() if row["background"] is None]
    assert len(refused) == 1 and refused[0]["problems"] == ["refused"] and refused[0]["people_left"] is None
    record = json.loads((made[0].parent / "backgrounds.json").read_text())
    assert "moderation" in record["refused"][refused[0]["instance"]]


def test_a_rejected_background_alone_is_bought_again_and_an_embedded_one_stays_rejected(made, settings, server):
    first = run(made, OPENAI, settings)
    second = run(made, OPENAI, settings, rejected={"made-1": {first["made-1"]["sha256"]}})
    assert server.counts() == [1, 1 + settings.max_attempts_payload], (
        "the server answers with the same picture each time"
    )
    assert second["made-0"] == first["made-0"] and "rejected" in second["made-1"]["problems"]
    smooth = run(made, SMOOTH)
    again = run(made, SMOOTH, rejected={"made-1": {smooth["made-1"]["sha256"]}})
    assert again["made-1"] == smooth["made-1"] | {"problems": ["rejected"]} and again["made-0"] == smooth["made-0"]


# Nobody is found any more --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_people():
    """The photograph zidane.jpg of the installed package ultralytics."""
    path = Path(find_spec("ultralytics").submodule_search_locations[0]) / "assets" / "zidane.jpg"
    return cv2.imread(str(path))[..., ::-1].copy()


def test_the_check_finds_who_was_not_removed(two_people):
    assert people_in(two_people, FACES) == 2
    one = np.zeros((720, 1280), bool)
    one[:, 740:] = True
    hole = np.zeros((720, 1280), bool)
    hole[40:, 120:] = True
    assert people_in(without_people(two_people, one, SMOOTH), FACES) == 1
    assert people_in(without_people(two_people, hole, SMOOTH), FACES) == 0


def test_people_without_a_seen_face_count_where_a_detector_finds_them(two_people, monkeypatch):
    from bindbench.people import segmentation

    mask = np.zeros(two_people.shape[:2], bool)
    mask[:, :740] = True  # Zidane, and somebody whose face nobody sees
    found = [
        segmentation.FoundPerson([0, 0, 1, 1], mask, 0.9),
        segmentation.FoundPerson([0, 0, 1, 1], ~mask & False, 0.9),
    ]
    monkeypatch.setattr(backgrounds, "_segmenter", lambda settings: None)
    monkeypatch.setattr(segmentation, "segment_people", lambda *about: found)
    assert people_in(two_people, Segmentation(method="yolo", yolo_weights="yolo.pt")) == 3


def test_a_person_left_is_a_problem(made, monkeypatch):
    monkeypatch.setattr(backgrounds, "people_in", lambda picture, settings: 2)
    rows = run(made, SMOOTH)
    assert {(row["people_left"], tuple(row["problems"])) for row in rows.values()} == {(2, ("person_left",))}


def test_weights_of_the_check_that_are_missing_are_one_line(made, tmp_path):
    yolo = Segmentation(method="yolo", yolo_weights=str(tmp_path / "none.pt"))
    with pytest.raises(UserError, match=r"^multibind\.segmentation\.yolo_weights: .*none\.pt: no such file"):
        make_backgrounds(*made, SMOOTH, None, yolo, tmp_path / "b.parquet", tmp_path / "b", version=1)


# What a run keeps ----------------------------------------------------------------------------------------------------


def test_a_killed_run_goes_on_and_only_what_changed_is_filled_again(made, monkeypatch):
    seen, real, die = [], backgrounds._fill, ["made-1"]

    def fill(task):
        seen.append(task[1]["instance"])
        if seen[-1] in die:
            raise KeyboardInterrupt
        return real(task)

    monkeypatch.setattr(backgrounds, "_fill", fill)
    with pytest.raises(KeyboardInterrupt):
        run(made, SMOOTH)
    die.clear()
    first = run(made, SMOOTH)
    assert seen == ["made-0", "made-1", "made-1"]
    (made[0].parent / "backgrounds" / "made-0.png").write_bytes(b"damaged")
    assert run(made, SMOOTH) == first and seen[3:] == ["made-0"]
    run(made, SMOOTH.model_copy(update={"seed": 5, "quality": "low"}))
    assert len(seen) == 4, "a field of another method fills nothing again"
    run(made, SMOOTH.model_copy(update={"radius_px": 6.0}))
    assert len(seen) == 6


def test_any_number_of_processes_makes_the_same_bytes(made):
    rows = run(made, Backgrounds())
    table = (made[0].parent / "backgrounds.parquet").read_bytes()
    for path in (made[0].parent / "backgrounds").iterdir():
        path.unlink()
    assert run(made, Backgrounds(), threads=2) == rows
    assert (made[0].parent / "backgrounds.parquet").read_bytes() == table
