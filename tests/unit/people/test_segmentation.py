"""Who is where: each person's own mask on real photographs, no pixel twice, and a run that goes on where it was killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from bindbench.config.multibind_segmentation import Segmentation
from bindbench.errors import UserError
from bindbench.files import sha256_of_file
from bindbench.multibind import segmenting
from bindbench.multibind.segmenting import segment_photographs
from bindbench.multibind.tables import PHOTOGRAPHS
from bindbench.people import segmentation
from bindbench.people.faces import find_faces
from bindbench.people.masks import box_iou, box_of_mask, decode_mask, encode_mask, mask_iou
from bindbench.people.photographs import Unreadable, read_photograph
from bindbench.people.poses import Pose
from bindbench.people.segmentation import (
    Claim,
    FoundPerson,
    import_yolo,
    masks_of_boxes,
    masks_of_claims,
    open_segmenter,
    segment_boxes,
    segment_people,
)
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from people_models import builtin, builtin_path, save_tiny_yolo
from PIL import Image
from pydantic import ValidationError

EMBEDDED = Segmentation()
LIMIT = 10**8


@pytest.fixture(scope="module")
def segmenter(people_models):
    with open_segmenter(EMBEDDED, people_models) as segmenter:
        yield segmenter


@pytest.fixture(scope="module")
def zidane(segmenter):
    image = builtin("zidane.jpg")
    return image, segment_people(image, EMBEDDED, segmenter)


@pytest.fixture(scope="module")
def bus(segmenter):
    image = builtin("bus.jpg")
    return image, segment_people(image, EMBEDDED, segmenter)


def share_of_face(mask, face):
    x, y, width, height = (round(value) for value in face.box)
    return mask[y : y + height, x : x + width].mean()


# Real photographs, embedded


@pytest.mark.parametrize("photograph", ["zidane", "bus"])
def test_each_mask_holds_its_own_face_and_no_other(photograph, request):
    image, people = request.getfixturevalue(photograph)
    faces = find_faces(image)
    assert len(people) == len(faces) == 2
    for index, person in enumerate(people):
        assert share_of_face(person.mask, faces[index]) > 0.8
        assert share_of_face(person.mask, faces[1 - index]) == 0


@pytest.mark.parametrize("photograph", ["zidane", "bus"])
def test_no_pixel_is_of_two_and_boxes_are_those_of_the_masks(photograph, request):
    image, people = request.getfixturevalue(photograph)
    assert sum(person.mask.astype(int) for person in people).max() == 1
    for person in people:
        assert person.mask.shape == image.shape[:2] and person.mask.dtype == bool
        assert person.box == box_of_mask(person.mask)
        assert 0.7 <= person.score <= 1
    assert [person.box[0] for person in people] == sorted(person.box[0] for person in people)


def test_masks_are_the_bodies_that_are_to_be_seen(zidane, bus):
    """Points that a person put into the photographs."""
    (first, second) = zidane[1]
    assert all(first.mask[y, x] for x, y in [(300, 500), (480, 600), (700, 440), (950, 470)])  # coat, tie, arm, wrist
    assert all(second.mask[y, x] for x, y in [(1000, 60), (850, 300), (950, 640)])  # hair, coat, coat
    assert not any(mask.mask[y, x] for mask in zidane[1] for x, y in [(100, 100), (640, 100), (1240, 600), (700, 650)])
    (first, second) = bus[1]
    assert all(first.mask[y, x] for x, y in [(130, 560), (90, 750), (75, 885), (215, 885)])  # coat, leg, both shoes
    assert all(second.mask[y, x] for x, y in [(290, 560), (290, 720)])
    assert not any(mask.mask[y, x] for mask in bus[1] for x, y in [(130, 200), (500, 600), (210, 650), (400, 950)])


def test_masks_have_no_crumbs(zidane, bus):
    from bindbench.people.quality import count_pieces

    assert [count_pieces(person.mask) for person in bus[1]] == [1, 1]
    assert max(count_pieces(person.mask) for person in zidane[1]) <= 3  # the arm before Ancelotti may cut him


def test_the_same_photograph_has_the_same_masks(zidane, bus, segmenter):
    again = segment_people(zidane[0].copy(), EMBEDDED, segmenter)
    assert all(np.array_equal(a.mask, b.mask) for a, b in zip(again, zidane[1], strict=True))


def test_a_fist_that_looks_like_a_face_is_nobody(zidane, segmenter):
    """In the mirrored photograph YuNet takes Zidane's fist for a third face; no body has it for its head."""
    mirrored = np.ascontiguousarray(zidane[0][:, ::-1])
    assert len(find_faces(mirrored)) == 3
    people = segment_people(mirrored, EMBEDDED, segmenter)
    assert len(people) == 2
    for person, other in zip(people[::-1], zidane[1], strict=True):
        assert mask_iou(person.mask[:, ::-1], other.mask) > 0.7


def test_a_photograph_of_nobody(segmenter):
    noise = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    assert segment_people(noise, EMBEDDED, segmenter) == []


def test_a_face_without_a_body_in_the_picture_is_no_crash(segmenter):
    head = builtin("zidane.jpg")[110:275, 925:1045]
    assert len(segment_people(head, EMBEDDED, segmenter)) <= 1


def test_small_people_are_left_out_by_the_config(bus, segmenter):
    shares = [person.mask.mean() for person in bus[1]]
    strict = Segmentation(min_area=(shares[0] + shares[1]) / 2)
    assert [person.box for person in segment_people(bus[0], strict, segmenter)] == [bus[1][0].box]


def test_a_lower_threshold_gives_larger_masks(zidane, segmenter):
    loose = segment_people(zidane[0], Segmentation(mask_threshold=0.1), segmenter)
    assert sum(person.mask.sum() for person in loose) > sum(person.mask.sum() for person in zidane[1])


def test_given_boxes_get_the_masks_of_the_people_in_them(zidane, bus, segmenter):
    for image, people in (zidane, bus):
        masks = segment_boxes(image, [person.box for person in people[::-1]], EMBEDDED, segmenter)
        assert all(mask_iou(mask, person.mask) > 0.9 for mask, person in zip(masks, people[::-1], strict=True))


def test_a_mask_stays_in_its_box_and_a_box_of_nobody_has_none(bus, segmenter):
    image, people = bus
    x, y, width, height = people[0].box
    cut = [x, y, width, height * 0.8]
    masks = segment_boxes(image, [cut, [300.0, 20.0, 200.0, 200.0], people[1].box], EMBEDDED, segmenter)
    assert masks[0].any() and not masks[0][round(y + height * 0.8) + 1 :].any()
    assert masks[1] is None
    assert mask_iou(masks[2], people[1].mask) > 0.9


def test_a_box_without_a_face_gets_the_mask_of_its_body(bus, segmenter):
    """The man whom the right border cuts: nothing of his face is to be seen."""
    (mask,) = segment_boxes(bus[0], [[668.0, 380.0, 142.0, 500.0]], EMBEDDED, segmenter)
    assert all(mask[y, x] for x, y in [(790, 600), (750, 780), (700, 845)])  # coat, leg, shoe
    assert not any(mask[y, x] for x, y in [(690, 640), (680, 500), (800, 860), (700, 700)])  # post, bus, street


# Whose mask: given boxes against what YOLO found, by hand


def found(left, top, width, height, score=0.9) -> FoundPerson:
    mask = np.zeros((50, 50), bool)
    mask[top : top + height, left : left + width] = True
    return FoundPerson(box_of_mask(mask), mask, score)


def test_a_pose_that_is_seen_in_two_boxes_is_of_the_one_that_it_fills(monkeypatch):
    """Nobody has a face; MediaPipe sees one person, wherever that one is in the part, and the neighbour only in the last case."""
    image = np.zeros((100, 200, 3), np.uint8)
    bodies = [np.zeros(image.shape[:2], bool) for _ in range(2)]
    bodies[0][10:90, 60:100] = True
    bodies[1][12:90, 95:140] = True

    def seen(*wanted: int):
        def poses_in(model, image, part):
            left, top, right, bottom = part
            return [
                Pose(
                    np.array([[(80, 118)[n] - left, 20 - top, 0.9]] * 33, np.float32),
                    None,
                    body[top:bottom, left:right] * 1.0,
                )
                for n, body in enumerate(bodies)
                if n in wanted
            ]

        return poses_in

    boxes = [[62.0, 5, 50, 90], [60.0, 10, 40, 80], [95.0, 12, 45, 78]]
    monkeypatch.setattr(segmentation, "find_faces", lambda image, score: [])
    monkeypatch.setattr(segmentation, "_poses_in", seen(0))
    alone = segment_boxes(image, boxes[:2], EMBEDDED, None)
    assert alone[0] is None and mask_iou(alone[1], bodies[0]) > 0.99
    monkeypatch.setattr(segmentation, "_poses_in", seen(0, 1))
    both = segment_boxes(image, boxes[1:], EMBEDDED, None)
    assert mask_iou(both[0], bodies[0]) > 0.85 and mask_iou(both[1], bodies[1]) > 0.85


def test_the_best_pair_of_box_and_person_comes_first_and_nobody_twice():
    people = [found(0, 0, 20, 40), found(24, 0, 20, 40)]
    boxes = [[1.0, 0.0, 22.0, 40.0], [0.0, 0.0, 20.0, 40.0], [24.0, 0.0, 20.0, 40.0]]
    masks = masks_of_boxes(boxes, people)
    assert masks[0] is None  # the person is the second box's, which fits exactly
    assert np.array_equal(masks[1], people[0].mask) and np.array_equal(masks[2], people[1].mask)


def test_half_of_the_union_must_be_shared_and_masks_end_at_the_box():
    (person,) = people = [found(0, 0, 20, 40)]
    assert masks_of_boxes([[0.0, 0.0, 20.0, 19.0]], people) == [None]
    (mask,) = masks_of_boxes([[0.0, 0.0, 20.0, 30.0]], people)
    assert mask.sum() == 600 and not (mask & ~person.mask).any()
    assert masks_of_boxes([], people) == [] and masks_of_boxes([[0.0, 0.0, 5.0, 5.0]], []) == [None]


# Whose pixel: claims made by hand


def claim(confidence, head, left=0, top=0):
    return Claim(left, top, np.array(confidence, np.float32), head, 0.9)


def test_the_surer_one_has_the_pixel():
    surer, other = np.full((10, 10), 0.8), np.full((10, 10), 0.6)
    other[:, 5:] = 0.85
    masks = masks_of_claims([claim(surer, (1, 1)), claim(other, (1, 9))], (10, 10), 0.5)
    assert masks[0][:, :5].all() and not masks[0][:, 5:].any()
    assert np.array_equal(masks[1], ~masks[0])


def test_of_two_who_are_certain_the_lower_face_has_it_then_the_left_one():
    both = np.full((10, 10), 0.97)
    low = masks_of_claims([claim(both + 0.02, (1, 2)), claim(both, (8, 6))], (10, 10), 0.5)
    assert not low[0].any() and low[1].all()
    level = masks_of_claims([claim(both, (8, 2)), claim(both, (1, 2))], (10, 10), 0.5)
    assert not level[0].any() and level[1].all()


def test_crumbs_go_and_small_holes_are_filled():
    confidence = np.zeros((60, 60))
    confidence[5:45, 5:45] = 0.9
    confidence[20:22, 20:22] = 0.1  # 4 of 1,596 pixels: filled
    confidence[30:40, 30:40] = 0.1  # 100: a hole as between arm and body
    confidence[55:58, 55:58] = 0.9  # 9: a crumb
    (mask,) = masks_of_claims([claim(confidence, (1, 1))], (60, 60), 0.5)
    assert mask[20:22, 20:22].all() and not mask[30:40, 30:40].any() and not mask[50:].any()


def test_a_hole_in_which_another_stands_stays_his():
    ring = np.full((40, 40), 0.8)
    inner = np.full((3, 3), 0.95)
    masks = masks_of_claims([claim(ring, (1, 1)), claim(inner, (20, 20), left=20, top=20)], (40, 40), 0.5)
    assert masks[1].sum() == 9 and not (masks[0] & masks[1]).any()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.floats(0.05, 0.95))
def test_no_pixel_is_ever_of_two(seed, n_people, threshold):
    random = np.random.default_rng(seed)
    claims = []
    for _ in range(n_people):
        top, left = random.integers(0, 10, 2)
        height, width = random.integers(1, 11, 2)
        values = random.random((height, width)).round(1)
        claims.append(claim(values, tuple(random.integers(0, 3, 2).tolist()), int(left), int(top)))
    masks = masks_of_claims(claims, (20, 20), threshold)
    assert len(masks) == n_people
    assert sum((mask.astype(int) for mask in masks), np.zeros((20, 20), int)).max() <= 1


# YOLO: real classes of ultralytics on a model of random weights


@pytest.fixture(scope="module")
def yolo_settings(tmp_path_factory):
    weights = save_tiny_yolo(tmp_path_factory.mktemp("yolo") / "tiny-seg.pt")
    return Segmentation(method="yolo", yolo_weights=str(weights), yolo_image_px=96, min_area=0)


def test_yolo_finds_people_with_masks_of_the_photograph_own_size(yolo_settings):
    image = builtin("bus.jpg")[::4, ::4]
    with open_segmenter(yolo_settings, "no folder is needed") as model:
        people = segment_people(image, yolo_settings, model)
        again = segment_people(image, yolo_settings, model)
        assert model.predictor.args.classes == [1]  # person, not bus
    assert people  # sure of people everywhere, it must find somebody
    assert all(person.mask.shape == image.shape[:2] and person.box == box_of_mask(person.mask) for person in people)
    assert sum(person.mask.astype(int) for person in people).max() == 1
    assert all(person.score >= yolo_settings.min_person_score for person in people)
    assert all(np.array_equal(a.mask, b.mask) for a, b in zip(people, again, strict=True))


def test_yolo_masks_of_given_boxes(yolo_settings):
    image = builtin("bus.jpg")[::4, ::4]
    with open_segmenter(yolo_settings, "") as model:
        people = segment_people(image, yolo_settings, model)
        largest = max(people, key=lambda person: person.mask.sum())
        masks = segment_boxes(image, [largest.box, [0.0, 0.0, 1.0, 1.0]], yolo_settings, model)
    x, y, width, height = (round(value) for value in largest.box)
    assert masks[0] is not None and masks[0].sum() == masks[0][y : y + height, x : x + width].sum()
    assert box_iou(box_of_mask(masks[0]), largest.box) >= 0.5


def test_a_yolo_that_finds_nobody(yolo_settings):
    strict = yolo_settings.model_copy(update={"min_person_score": 0.9999})
    with open_segmenter(strict, "") as model:
        assert segment_people(np.zeros((64, 64, 3), np.uint8), strict, model) == []


def yolo_refusal(path) -> str:
    with pytest.raises(UserError) as raised, open_segmenter(Segmentation(method="yolo", yolo_weights=str(path)), ""):
        pass
    message = str(raised.value)
    assert message.startswith(f"multibind.segmentation.yolo_weights: {path}: ") and "\n" not in message
    return message


def test_missing_yolo_weights_are_never_downloaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("gone.pt", "yolo11n-seg.pt"):  # the second is a name that ultralytics would download
        assert "no such file" in yolo_refusal(name)
    assert list(tmp_path.iterdir()) == []


def test_broken_yolo_weights(tmp_path):
    (tmp_path / "broken.pt").write_bytes(b"\x80\x04 no weights")
    assert "not weights that ultralytics can read" in yolo_refusal(tmp_path / "broken.pt")


def test_yolo_weights_of_another_task_or_without_people(tmp_path):
    boxes = save_tiny_yolo(tmp_path / "boxes.pt", task="detect")
    assert "its task is detect" in yolo_refusal(boxes)
    cars = save_tiny_yolo(tmp_path / "cars.pt", names=("car", "bus"))
    assert "a class `person` is needed" in yolo_refusal(cars)


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_code_in_yolo_weights_does_not_run(tmp_path):
    import torch

    torch.save({"model": Trap(tmp_path / "sprung"), "train_args": {}}, tmp_path / "trap.pt")
    yolo_refusal(tmp_path / "trap.pt")
    assert not (tmp_path / "sprung").exists()


def test_the_method_yolo_needs_weights_in_the_config():
    with pytest.raises(ValidationError, match="yolo_weights: method yolo needs the file"):
        Segmentation(method="yolo")


# The table


def row(name: str, path, people=(), size=None, **more) -> dict:
    width, height = size or Image.open(path).size
    values = {"photograph": f"folder/{name}", "source": "folder", "path": str(path), "width": width, "height": height}
    values |= {"licence": "ours", "people": list(people), "sha256": None, "reason": None, "detail": None}
    return values | more


def person(number, box, mask=None, crowd=False) -> dict:
    return {"person": number, "box": list(box), "mask": mask, "crowd": crowd, "score": 1.0}


def filled(rows, folder: Path, models, **more) -> dict[str, dict]:
    """The rows of the new table by name."""
    write_table(PHOTOGRAPHS, rows, folder / "photographs.parquet")
    arguments = {"settings": EMBEDDED, "models": models, "max_pixels": LIMIT, "cache": folder / "cache"} | more
    segment_photographs(folder / "photographs.parquet", folder / "people.parquet", **arguments)
    new = read_table(PHOTOGRAPHS, folder / "people.parquet").to_pylist()
    assert [r["photograph"] for r in new] == [r["photograph"] for r in rows]
    return {r["photograph"].removeprefix("folder/"): r for r in new}


@pytest.fixture
def blank(tmp_path):
    path = tmp_path / "blank.png"
    Image.new("RGB", (64, 48), (120, 120, 120)).save(path)
    return path


def test_people_are_found_where_none_are_known(tmp_path, people_models, zidane, blank):
    new = filled([row("zidane", builtin_path("zidane.jpg")), row("blank", blank)], tmp_path, people_models)
    people = new["zidane"]["people"]
    assert [one["person"] for one in people] == ["1", "2"] and new["zidane"]["reason"] is None
    for one, expected in zip(people, zidane[1], strict=True):
        assert np.array_equal(decode_mask(one["mask"], 720, 1280), expected.mask)
        assert one["box"] == expected.box and not one["crowd"]
        assert one["score"] == pytest.approx(expected.score)
    assert (new["blank"]["reason"], new["blank"]["people"]) == ("no_people", [])


def test_what_has_masks_or_a_reason_passes_as_it_is_and_needs_no_model(tmp_path, blank):
    mask = np.zeros((48, 64), bool)
    mask[10:40, 10:30] = True
    known = person("7", box_of_mask(mask), encode_mask(mask))
    rows = [
        row("known", blank, [known, person("crowd", [40, 10, 20, 20], crowd=True)]),
        row("refused", blank, reason="broken_box", detail="a box is not four numbers"),
    ]
    new = filled(rows, tmp_path, tmp_path / "no models here")
    assert [new["known"], new["refused"]] == rows


def test_boxes_get_masks_and_keep_everything_else(tmp_path, people_models, bus):
    people = bus[1]
    rows = [
        row(
            "bus",
            builtin_path("bus.jpg"),
            [
                person("a", people[1].box),
                person("b", people[0].box, encode_mask(people[0].mask)),
                person("nobody", [300, 20, 200, 200]),
                person("crowd", [0, 400, 800, 500], crowd=True),
            ],
        )
    ]
    new = filled(rows, tmp_path, people_models)["bus"]
    a, b, nobody, crowd = new["people"]
    assert mask_iou(decode_mask(a["mask"], 1080, 810), people[1].mask) > 0.9
    assert (a["person"], a["box"], a["score"]) == ("a", people[1].box, 1.0)
    assert [b, nobody, crowd] == rows[0]["people"][1:]
    assert new["reason"] is None


def test_a_known_mask_keeps_its_pixels(tmp_path, people_models, bus):
    people = bus[1]
    half = people[1].mask.copy()
    half[600:] = False
    rows = [
        row(
            "bus",
            builtin_path("bus.jpg"),
            [person("new", people[1].box), person("known", box_of_mask(half), encode_mask(half))],
        )
    ]
    new, known = filled(rows, tmp_path, people_models)["bus"]["people"]
    mask = decode_mask(new["mask"], 1080, 810)
    assert mask.any() and not (mask & half).any() and known == rows[0]["people"][1]


def test_photographs_that_cannot_be_read_have_a_reason(tmp_path, people_models, blank):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(builtin_path("bus.jpg").read_bytes()[:5000])
    rows = [
        row("gone", tmp_path / "gone.jpg", size=(10, 10)),
        row("broken", broken, size=(810, 1080)),
        row("other", blank, size=(65, 48)),
        row("large", builtin_path("bus.jpg")),
    ]
    new = filled(rows, tmp_path, people_models, max_pixels=64 * 48)
    assert new["gone"]["reason"] == "missing_file"
    assert new["broken"]["reason"] in ("broken_file", "too_many_pixels")
    assert new["other"]["reason"] == "other_size" and "64 x 48" in new["other"]["detail"]
    assert new["large"]["reason"] == "too_many_pixels"


def test_a_broken_mask_beside_a_box_is_a_reason(tmp_path, people_models, blank):
    rows = [row("mask", blank, [person("a", [1, 1, 9, 9], "xyz"), person("b", [20, 20, 9, 9])])]
    assert filled(rows, tmp_path, people_models)["mask"]["reason"] == "broken_mask"


def test_missing_models_are_one_line(tmp_path, blank):
    with pytest.raises(UserError, match=r"pose_landmarker\.task: cannot be read"):
        filled([row("blank", blank)], tmp_path, tmp_path / "nowhere")
    assert not (tmp_path / "people.parquet").exists()


@pytest.fixture
def looks(monkeypatch):
    """Names of the photographs that were really looked at."""
    seen = []
    real = segmenting._look_at

    def counted(row, *more):
        seen.append(row["photograph"].removeprefix("folder/"))
        return real(row, *more)

    monkeypatch.setattr(segmenting, "_look_at", counted)
    return seen


def test_nothing_is_looked_at_twice_until_something_changes(tmp_path, people_models, blank, looks):
    other = tmp_path / "other.png"
    Image.new("RGB", (64, 48), (10, 10, 10)).save(other)
    rows = [row("blank", blank), row("other", other)]
    first = filled(rows, tmp_path, people_models)
    assert looks == ["blank", "other"]
    assert filled(rows, tmp_path, people_models) == first and len(looks) == 2
    moved = blank.rename(tmp_path / "moved.png")  # the same bytes elsewhere
    filled([row("moved", moved), rows[1]], tmp_path, people_models)
    assert len(looks) == 2
    Image.new("RGB", (64, 48), (9, 9, 9)).save(other)
    filled([row("moved", moved), rows[1]], tmp_path, people_models)
    assert looks[2:] == ["other"]
    filled(rows[1:], tmp_path, people_models, settings=Segmentation(mask_threshold=0.6))
    filled(rows[1:], tmp_path, people_models, version=2)
    filled([rows[1] | {"people": [person("a", [1, 1, 9, 9])]}], tmp_path, people_models)
    assert looks[3:] == ["other"] * 3


def test_the_file_in_which_people_were_looked_for_is_written_down(tmp_path, people_models, blank):
    mask = encode_mask(np.ones((48, 64)))
    rows = [row("blank", blank), row("masked", blank, [person("a", [0, 0, 64, 48], mask)])]
    for _ in range(2):  # the second time from the cache
        new = filled(rows, tmp_path, people_models)
        assert new["blank"]["sha256"] == sha256_of_file(blank) and new["masked"]["sha256"] is None


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: data.replace(b"nobody", b"nobodY"), lambda data: b"[]"]
)
def test_a_damaged_cache_is_not_believed(tmp_path, people_models, blank, looks, damage):
    first = filled([row("blank", blank)], tmp_path, people_models)
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_bytes(damage(kept.read_bytes()))
    assert filled([row("blank", blank)], tmp_path, people_models) == first
    assert looks == ["blank", "blank"]
    assert json.loads(kept.read_bytes())["kept"]["reason"] == "no_people"


def test_a_killed_run_goes_on_where_it_was(tmp_path, people_models, looks):
    rows = []
    for shade in range(40):
        path = tmp_path / f"{shade}.png"
        Image.new("RGB", (320, 240), (shade, 0, 0)).save(path)
        rows.append(row(str(shade), path))
    write_table(PHOTOGRAPHS, rows, tmp_path / "photographs.parquet")
    program = (
        "import sys; from pathlib import Path; from bindbench.config.multibind_segmentation import Segmentation\n"
        "from bindbench.multibind.segmenting import segment_photographs\n"
        "folder, models = map(Path, sys.argv[1:])\n"
        "segment_photographs(folder / 'photographs.parquet', folder / 'people.parquet', Segmentation(), models, 10**8, "
        "folder / 'cache')\n"
    )
    search = {"PYTHONPATH": str(Path(segmenting.__file__).resolve().parents[2])}
    run = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), str(people_models)],
        env=os.environ | search,
        stderr=subprocess.DEVNULL,
    )
    while run.poll() is None and len(list((tmp_path / "cache").glob("*/[!.]*.json"))) < 3:
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert not (tmp_path / "people.parquet").exists()
    done = len(list((tmp_path / "cache").glob("*/[!.]*.json")))
    assert 3 <= done < 40
    new = filled(rows, tmp_path, people_models)
    assert len(looks) == 40 - done
    assert {r["reason"] for r in new.values()} == {"no_people"}


def test_a_broken_picture_is_unreadable_after_yolo_was_imported_too(tmp_path):
    """ultralytics replaces PIL.Image.open by one that asks for another package."""
    import_yolo()
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(Unreadable, match="not a picture"):
        read_photograph(tmp_path / "broken.png", 10**6)
