"""Annotations as they are bought (real clients against the local server) and measured (figures whose words are known)."""

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bindbench.config.multibind_annotation import Annotation as Settings
from bindbench.config.multibind_annotation import Measures
from bindbench.config.services import Services
from bindbench.errors import UserError
from bindbench.multibind import annotating
from bindbench.multibind.annotating import annotate_instances, annotation_requests, faces_of_masks, look_at, subjects_of
from bindbench.multibind.annotation import Annotation
from bindbench.multibind.measures.bodies import Body, Person
from bindbench.multibind.measures.colours import COLOURS, lab_of, named_colours
from bindbench.multibind.measures.faces import expression_phrase, gaze_phrase, head_phrase
from bindbench.multibind.measures.poses import action_phrase, arms_phrase, body_phrase, legs_phrase
from bindbench.multibind.measuring import measured_annotation
from bindbench.multibind.prompts import compile_prompt, lint_prompt
from bindbench.multibind.tables import ANNOTATIONS, CROPS, SELECTED
from bindbench.people.faces import Face
from bindbench.people.masks import encode_mask
from bindbench.people.poses import Pose
from bindbench.services.costs import read_costs
from bindbench.tables import read_table, write_table
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

UNHURRIED = settings(deadline=None)  # beside other work an example may take long

WIDTH, HEIGHT = 320, 240
BOXES = {"A": [20, 60, 90, 180], "B": [180, 40, 100, 150]}
METHODS = {
    "openai": Settings(method="openai", model="chatty"),
    "google-genai": Settings(method="google-genai", model="gemini-3-pro-image"),
}
LIMITS = Measures()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def box_mask(box: list[float]) -> np.ndarray:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    x, y, wide, high = box
    mask[y : y + high, x : x + wide] = True
    return mask


class Instances:
    """Tables and files of some instances of two subjects each."""

    def __init__(self, folder: Path, *names: str):
        self.folder, self.out = folder, folder / "annotations.parquet"
        self.selected, self.crops = folder / "selected.parquet", folder / "crops.parquet"
        self.instances, self.subjects = [], []
        for number, name in enumerate(names):
            pixels = np.full((HEIGHT, WIDTH, 3), 200, np.uint8)
            for box, shade in zip(BOXES.values(), ((30, 60, 160), (190, 30, 40)), strict=True):
                pixels[box_mask(box)] = shade
            pixels[:5, :5] = number
            Image.fromarray(pixels).save(folder / f"{name}.png")
            sha = digest(folder / f"{name}.png")
            self.instances.append(
                {
                    **{"instance": name, "photograph": f"folder/{name}", "source": "folder", "licence": "ours"},
                    **{"n_subjects": 2, "width": WIDTH, "height": HEIGHT, "target": f"{name}.png", "sha256": sha},
                    **{"original_sha256": sha, "transforms": [], "sharpness": 1.0, "perceptual_hash": "0" * 16},
                }
            )
            for slot, box in BOXES.items():
                x, y, wide, high = box
                path = folder / f"{name}_{slot}.png"
                Image.fromarray(pixels[y : y + high, x : x + wide]).save(path)
                self.subjects.append(
                    {
                        **{
                            "instance": name,
                            "slot": slot,
                            "person": slot,
                            "box": box,
                            "mask": encode_mask(box_mask(box)),
                        },
                        **{"area": 0.2, "filled": 1.0, "pieces": 1, "at_border": 0.0, "overlap": 0.0, "sharpness": 1.0},
                        **{"crop": path.name, "crop_sha256": digest(path), "mask_file": "m.png", "mask_sha256": "0"},
                    }
                )
        self.write()

    def write(self) -> None:
        write_table(SELECTED, self.instances, self.selected)
        write_table(CROPS, self.subjects, self.crops)

    def annotate(self, settings: Settings, services: Services | None = None, **more) -> dict[str, dict]:
        annotate_instances(self.selected, self.crops, self.folder, settings, services, self.out, **more)
        return {row["instance"]: row for row in read_table(ANNOTATIONS, self.out).to_pylist()}

    def requests(self, settings: Settings, **rejected: set[str]) -> list:
        subjects = subjects_of(self.instances, self.subjects, self.crops)
        return list(annotation_requests(self.instances, subjects, self.folder, settings, rejected))


# Bought ----------------------------------------------------------------------------------------------------------------

LOOKS = {
    "hair": {"colour": "grey", "length": "short", "style": None},
    "accessories": [],
    "build": None,
    "age_group": "adult",
}
CLOTHES = dict.fromkeys(("head", "upper_body", "outer_layer", "lower_body", "feet"))


def answer(**more) -> dict:
    """A model's whole answer; more: fields of Subject A."""
    subject = {
        **{"appearance": LOOKS, "clothes": CLOTHES, "action": "pointing to the right", "expression": "a broad smile"},
        **{"pose": {"body": "leaning forward", "head": None, "arms": "stretched out", "legs": None}, "gaze": None},
    }
    return {
        "subjects": {"A": {**subject, **more}, "B": {**subject, "action": "waiting"}},
        "relations": [{"first": "A", "second": "B", "relation": "to the left of", "detail": None}],
        "background": {"setting": "a stadium", "objects": [], "colours": ["red"], "textures": None},
        "light": dict.fromkeys(("environment", "brightness", "contrast", "temperature", "direction")),
        "camera": {"framing": "a medium shot", "angle": None, "depth_of_field": None, "picture": None},
    }


@pytest.fixture
def shop(server, courier_thread, settings):
    """The local server, and services that send to it, each broken answer asked for twice."""
    return server, settings.model_copy(update={"max_attempts_payload": 2})


@pytest.mark.parametrize("method", METHODS)
def test_a_good_answer_becomes_the_annotation_with_the_boxes_positions(method, shop, tmp_path):
    server, services = shop
    server.texts({"text": json.dumps(answer())})
    instances = Instances(tmp_path, "one")
    row = instances.annotate(METHODS[method], services)["one"]
    annotation = Annotation.model_validate_json(row["annotation"])
    assert row["problems"] == [] and row["model"] == f"{method}/{METHODS[method].model}"
    assert annotation.subjects["A"].action == "pointing to the right" and annotation.subjects["B"].action == "waiting"
    place = annotation.subjects["A"].position
    assert (place.left, place.right, place.top, place.bottom, place.cut_by) == (6, 34, 25, 100, ("bottom",))
    assert lint_prompt(compile_prompt(annotation), annotation) == []
    costs = read_costs([instances.out.with_suffix(".json")])
    assert costs["requests"] == 1 and costs["refused"] == 0 and costs["cost_usd"] > 0
    instances.annotate(METHODS[method], services)
    assert server.counts() == [1], "what was bought is not asked for again"


def bad_answers() -> dict[str, tuple[dict, dict]]:
    """Faults and texts of the server, by the problem that they become."""
    letters = {**answer(), "subjects": {"A": answer()["subjects"]["A"], "C": answer()["subjects"]["B"]}}
    return {
        "refused": ({"fault": "refusal"}, {}),
        "broken_answer": ({}, {"text": json.dumps(answer())[:-20], "times": 9}),
        "broken_answer/slots": ({}, {"text": json.dumps(letters), "times": 9}),
        "broken_answer/sensitive field": ({}, {"text": json.dumps(answer(ethnicity="x")), "times": 9}),
        "sensitive_words": ({}, {"text": json.dumps(answer(gaze="directed at her dark skin")), "times": 9}),
        "not_an_annotation": ({}, {"text": json.dumps(answer(action="looking at Subject B")), "times": 9}),
        "contradiction": (
            {},
            {"text": json.dumps(answer(action="standing", gaze="lowered while sitting")), "times": 9},
        ),
    }


# What our own rules find in an answer that fits the schema: asked for again under the next attempt.
OUR_RULES = ("sensitive_words", "not_an_annotation", "contradiction")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", bad_answers())
def test_a_bad_answer_is_a_problem_in_the_table_and_the_others_are_kept(problem, method, shop, tmp_path, capsys):
    server, services = shop
    instances = Instances(tmp_path, "one")
    fault, text = bad_answers()[problem]
    server.faults(*([fault] if fault else []))
    server.texts(*([text] if text else []))
    row = instances.annotate(METHODS[method], services)["one"]
    assert (row["annotation"] is None) == (problem != "contradiction") and row["problems"] == [problem.split("/")[0]]
    assert "one: " in capsys.readouterr().err
    record = json.loads(instances.out.with_suffix(".json").read_text())
    assert list(record["refused"]) == ["one"] and record["requests"] == (2 if problem in OUR_RULES else 1)
    assert server.counts() == [1 if problem == "refused" else 2]
    server.texts({"text": json.dumps(answer())})
    both = Instances(tmp_path, "one", "two").annotate(METHODS[method], services)
    assert both["one"]["problems"] == row["problems"] and both["two"]["problems"] == []


def test_a_broken_answer_is_asked_for_again_and_the_next_good_one_counts(shop, tmp_path):
    server, services = shop
    server.texts({"text": "{"}, {"text": json.dumps(answer())})
    assert Instances(tmp_path, "one").annotate(METHODS["openai"], services)["one"]["problems"] == []


def test_an_answer_that_breaks_the_rules_is_asked_for_again_under_another_attempt_and_bought_once(shop, tmp_path):
    server, services = shop
    server.texts({"text": json.dumps(answer(action="looking at Subject B"))}, {"text": json.dumps(answer())})
    instances = Instances(tmp_path, "one")
    row = instances.annotate(METHODS["openai"], services)["one"]
    costs = read_costs([instances.out.with_suffix(".json")])
    assert row["problems"] == [] and costs["requests"] == 2 and costs["refused"] == 0
    assert instances.annotate(METHODS["openai"], services)["one"] == row and server.counts() == [2]
    assert read_costs([instances.out.with_suffix(".json")]) == costs, "what the broken answer cost is told each time"
    server.texts({"text": json.dumps(answer(action="waving"))})
    rejected = {"one": {hashlib.sha256(row["annotation"].encode()).hexdigest()}}
    again = instances.annotate(METHODS["openai"], services, rejected=rejected)["one"]
    assert "waving" in again["annotation"] and again["problems"] == [] and server.counts() == [3]


def test_the_same_answer_again_does_not_stand_for_a_rejected_one(shop, tmp_path):
    server, services = shop
    server.texts({"text": json.dumps(answer()), "times": 9})
    instances = Instances(tmp_path, "one")
    row = instances.annotate(METHODS["openai"], services)["one"]
    rejected = {"one": {hashlib.sha256(row["annotation"].encode()).hexdigest()}}
    again = instances.annotate(METHODS["openai"], services, rejected=rejected)["one"]
    assert again == row | {"problems": ["rejected"]} and server.counts() == [3]
    record = json.loads(instances.out.with_suffix(".json").read_text())
    assert record["refused"] == {"one": "rejected: the same answer as one that was rejected"}


@pytest.mark.parametrize("method", METHODS)
def test_a_request_shows_the_target_and_the_crop_of_each_letter_in_order(method, tmp_path):
    instances = Instances(tmp_path, "one")
    (request,) = instances.requests(METHODS[method])
    assert [Path(image.path).name for image in request.images] == ["one.png", "one_A.png", "one_B.png"]
    text = json.dumps(request.body)
    assert text.index('{"image": 0}') < text.index('Subject A:"') < text.index('{"image": 1}')
    assert text.index('{"image": 1}') < text.index('Subject B:"') < text.index('{"image": 2}')
    assert "Subject A: the box from 6 to 34 percent of the width" in text and "Never state or hint at names" in text
    assert ("max_completion_tokens" in text) == (method == "openai") and "temperature" not in request.body
    again = instances.requests(METHODS[method], one={"0"})[0]
    assert again.key != request.key and instances.requests(METHODS[method])[0].key == request.key
    warm = instances.requests(METHODS[method].model_copy(update={"temperature": 0.5}))[0]
    assert '"temperature": 0.5' in json.dumps(warm.body)


def test_a_paid_method_needs_a_model_and_a_budget(shop, tmp_path):
    with pytest.raises(ValidationError, match="model"):
        Settings(method="openai")
    with pytest.raises(UserError, match="needs the section services"):
        Instances(tmp_path, "one").annotate(METHODS["openai"], None)
    with pytest.raises(UserError, match="budget"):
        Instances(tmp_path, "one").annotate(METHODS["openai"], shop[1].model_copy(update={"budget_usd": 0.0}))
    assert not (tmp_path / "annotations.parquet").exists()


@pytest.mark.parametrize("template", [None, "no $fields here: $other", "100 $"])
def test_a_template_that_is_missing_or_broken_is_one_line(template, tmp_path, monkeypatch):
    path = tmp_path / "prompt.txt"
    if template:
        path.write_text(template)
    monkeypatch.setattr(annotating, "PROMPT", str(path))
    with pytest.raises(UserError, match=r"prompt\.txt: "):
        Instances(tmp_path, "one").requests(METHODS["openai"])


# Measured: tables and files ----------------------------------------------------------------------------------------------


def test_embedded_annotations_need_nothing_but_the_files(tmp_path):
    rows = Instances(tmp_path, "one", "two").annotate(Settings())
    annotation = Annotation.model_validate_json(rows["one"]["annotation"])
    assert rows["one"]["model"] == "embedded" and rows["one"]["problems"] == ["no_face_A", "no_face_B"]
    assert annotation.subjects["A"].clothes.upper_body.colour == "blue"
    assert annotation.subjects["B"].clothes.upper_body.colour == "red"
    assert annotation.subjects["A"].expression is None and annotation.subjects["A"].gaze is None
    assert annotation.background.colours == ("light grey",)
    before = (tmp_path / "annotations.parquet").read_bytes()
    Instances(tmp_path, "one", "two").annotate(Settings())
    assert (tmp_path / "annotations.parquet").read_bytes() == before


@pytest.mark.parametrize("damage", ["missing", "changed", "mask", "crops"])
def test_files_and_tables_that_do_not_fit_are_one_line(damage, tmp_path):
    instances = Instances(tmp_path, "one")
    if damage == "missing":
        (tmp_path / "one.png").unlink()
    elif damage == "changed":
        (tmp_path / "one.png").write_bytes(b"another picture")
    elif damage == "mask":
        instances.subjects[0]["mask"] = encode_mask(np.zeros((10, 10), bool))
    else:
        instances.subjects.pop()
    instances.write()
    with pytest.raises(UserError, match=r"one") as error:
        instances.annotate(Settings())
    assert "\n" not in str(error.value) and not instances.out.exists()


def test_faces_go_to_the_mask_that_holds_their_middle_the_largest_first():
    masks = [box_mask(BOXES["A"]), box_mask(BOXES["B"])]
    small, large = Face((30, 70, 10, 10), ((0, 0),) * 5, 0.9), Face((40, 80, 30, 30), ((0, 0),) * 5, 0.8)
    far, outside = Face((200, 50, 10, 10), ((0, 0),) * 5, 0.9), Face((400, 300, 10, 10), ((0, 0),) * 5, 0.9)
    assert faces_of_masks([small, outside, large, far], masks) == [large, far]
    assert faces_of_masks([small], [masks[0], masks[0]]) == [small, None]
    assert faces_of_masks([], masks) == [None, None]


def test_joints_are_looked_for_in_the_box_then_around_the_face_and_only_the_person_s_own_count(monkeypatch):
    seen = []
    noses = [(2.0, 2.0), None, (60.0, 32.0)]  # somebody else's, nobody's, and one in the face

    def pose_of(model, picture):
        seen.append(picture)
        nose = noses[len(seen) - 1]
        return nose and Pose(np.array([(*nose, 0.9)] * 33, np.float32), np.ones((33, 3), np.float32), picture[..., 0])

    monkeypatch.setitem(sys.modules, "bindbench.people.poses", SimpleNamespace(pose_of=pose_of))
    image = np.full((HEIGHT, WIDTH, 3), 50, np.uint8)
    masks = [box_mask(BOXES["A"]), box_mask(BOXES["B"])]
    face = Face((50, 70, 20, 20), ((0, 0),) * 5, 0.9)
    alone = annotating._alone(image, masks, 0)
    assert (alone[masks[1]] == 128).all() and (alone[~masks[1]] == 50).all() and (image == 50).all()
    found = annotating._pose(alone, BOXES["A"], face, object())
    assert [picture.shape[:2] for picture in seen] == [(198, 108), (192, 140), (132, 120)]
    assert found.landmarks[0, :2].tolist() == [60, 80], "in pixels of the photograph"
    assert (found.world == 1).all(), "in metres from the hips"
    noses[2] = (2.0, 2.0)
    noses += [(2.0, 2.0)]
    seen.clear()
    assert annotating._pose(alone, BOXES["A"], face, object()) is None and len(seen) == 4
    assert annotating._pose(alone, BOXES["A"], face, None) is None


def test_of_a_real_photograph_each_person_has_a_face_and_only_the_bearded_head_has_hair():
    folder = Path(importlib.util.find_spec("ultralytics").submodule_search_locations[0])  # not imported: it loads torch
    image = np.array(Image.open(folder / "assets" / "zidane.jpg").convert("RGB"))
    rows = []
    for slot, (x, y, wide, high) in {"A": (120, 200, 630, 520), "B": (750, 40, 360, 680)}.items():
        mask = np.zeros(image.shape[:2], bool)
        mask[y : y + high, x : x + wide] = True
        rows.append({"instance": "zidane", "slot": slot, "box": [x, y, wide, high], "mask": encode_mask(mask)})
    people = look_at(image, rows, Settings(), None, None)
    annotation = measured_annotation(image, people, LIMITS)
    first, second = annotation.subjects["A"], annotation.subjects["B"]
    assert "to the right of the picture" in first.pose.head and "right" in first.gaze
    assert first.appearance.hair is None, "skin is not described as hair"
    assert second.appearance.hair.colour == "grey"
    assert "black" in second.clothes.upper_body.colour
    assert annotation.camera.depth_of_field.startswith("apparently shallow")
    assert annotation.camera.picture == "a landscape format, with sides of about 16 to 9"
    assert lint_prompt(compile_prompt(annotation), annotation) == []


# Measured: words from figures ----------------------------------------------------------------------------------------------


def joints(**moved: tuple[float, float]) -> np.ndarray:
    """(33, 3): a person of 100 x 200 pixels who stands and faces the camera, with some joints elsewhere or hidden (None)."""
    names = {
        **{"nose": 0, "left_ear": 7, "right_ear": 8, "left_shoulder": 11, "right_shoulder": 12, "left_elbow": 13},
        **{"right_elbow": 14, "left_wrist": 15, "right_wrist": 16, "left_hip": 23, "right_hip": 24, "left_knee": 25},
        **{"right_knee": 26, "left_ankle": 27, "right_ankle": 28},
    }
    places = {
        **{"nose": (160, 30), "left_ear": (168, 30), "right_ear": (152, 30)},
        **{"left_shoulder": (180, 60), "right_shoulder": (140, 60), "left_elbow": (183, 85), "right_elbow": (137, 85)},
        **{"left_wrist": (184, 110), "right_wrist": (136, 110), "left_hip": (172, 110), "right_hip": (148, 110)},
        **{"left_knee": (172, 155), "right_knee": (148, 155), "left_ankle": (172, 200), "right_ankle": (148, 200)},
    }
    values = np.zeros((33, 3), np.float32)
    for name, place in {**places, **moved}.items():
        if place is not None:
            values[names[name]] = (*place, 0.9)
    return values


def body(points: np.ndarray | None = None, box=(110, 10, 100, 205), **more) -> Body:
    return Body(Person("A", list(box), np.ones((HEIGHT, WIDTH), bool), joints=points, **more), WIDTH, HEIGHT, 0.5)


def face(turn: float = 0.0, drop: float = 0.0, nod: float = 0.55) -> dict:
    """A face of 40 pixels whose nose is off the middle by `turn` eye distances and whose left eye is lower by `drop`."""
    points = np.array([(150, 25), (170, 25 + drop), (160 + 20 * turn, 25 + 20 * nod), (152, 45), (168, 45)], float)
    return {"face": points, "face_box": (140.0, 10.0, 40.0, 45.0)}


def test_a_person_who_stands_upright_and_faces_the_camera():
    standing = body(joints())
    assert body_phrase(standing) == "standing upright, with the shoulders turned towards the camera"
    assert legs_phrase(standing) == "apart, with both knees nearly straight"
    assert arms_phrase(standing).count("hanging down from the shoulder and nearly straight") == 2
    assert action_phrase(standing, LIMITS) is None


@pytest.mark.parametrize(
    ("moved", "tell", "words"),
    [
        ({"left_elbow": (205, 60), "left_wrist": (230, 60)}, arms_phrase, "the left arm is raised to about shoulder height"),
        ({"left_elbow": (205, 60), "left_wrist": (230, 60)}, arms_phrase, "far out to the right of the picture"),
        ({"left_elbow": (190, 35), "left_wrist": (195, 12)}, arms_phrase, "the left arm is raised above the shoulder"),
        ({"left_elbow": (190, 35), "left_wrist": (195, 12)}, arms_phrase, "at the height of the head"),
        ({"right_wrist": (140, 62)}, arms_phrase, "the right arm is hanging down from the shoulder and sharply bent"),
        ({"left_wrist": (142, 82), "right_wrist": (178, 82)}, arms_phrase, "folded in front of the body"),
        ({"left_elbow": (205, 60), "left_wrist": (230, 60)}, lambda b: action_phrase(b, LIMITS), "stretching the left arm out"),
        (
            {"left_knee": (200, 118), "left_ankle": (200, 165), "right_knee": (180, 120), "right_ankle": (180, 165)},
            body_phrase,
            "apparently sitting, upright",
        ),
        ({"left_knee": (200, 118), "left_ankle": (200, 165)}, body_phrase, "down to the feet, upright"),
        ({"left_ankle": (215, 195)}, lambda b: action_phrase(b, LIMITS), "apparently taking a step"),
        ({"left_knee": (185, 150), "left_ankle": (160, 180)}, legs_phrase, "the left knee bent and the right knee nearly straight"),
        ({"left_shoulder": (140, 60), "right_shoulder": (180, 60)}, body_phrase, "turned away from the camera"),
        ({"left_shoulder": (162, 60), "right_shoulder": (158, 60), "nose": (150, 30)}, body_phrase, "mostly to the left"),
        ({"left_shoulder": (210, 65), "right_shoulder": (170, 65)}, body_phrase, "leaning clearly to the right of the picture"),
    ],
)  # fmt: skip
def test_words_of_joints(moved, tell, words):
    assert words in tell(body(joints(**moved)))


FORWARD, DOWN, BACK = np.array([0, 0, -1.0]), np.array([0, 1.0, 0]), np.array([0, 0, 1.0])
STEP = (DOWN + 0.4 * FORWARD) / 1.077
# Ways of the left thigh and shin, of the right ones, and of the trunk, of a person who faces the camera.
POSES = {
    "standing": (DOWN, DOWN, DOWN, DOWN, -DOWN),
    "walking": (STEP, STEP, DOWN, DOWN, -DOWN),
    "sitting": (FORWARD, DOWN, FORWARD, DOWN, -DOWN),
    "kneeling": (DOWN, BACK, DOWN, BACK, -DOWN),
    "kneeling on one knee": (FORWARD, DOWN, DOWN, BACK, -DOWN),
    "squatting": (FORWARD + 0.4 * DOWN, DOWN + BACK, FORWARD + 0.4 * DOWN, DOWN + BACK, -DOWN),
    "lying": (FORWARD, FORWARD, FORWARD, FORWARD, BACK),
}


def posed(pose: str, turn: float, distance_m: float = 3.0, *, in_space: bool = True) -> Body:
    """A person of ordinary proportions in a pose, turned by so many degrees, as a camera at the height of the hips sees them."""
    *legs, trunk = (way / np.linalg.norm(way) for way in POSES[pose])
    places = {}
    for side, (thigh, shin) in enumerate((legs[:2], legs[2:])):
        out = np.array([1 - 2 * side, 0, 0])
        hip, shoulder = 0.1 * out, 0.18 * out + 0.5 * trunk
        knee = hip + 0.42 * thigh
        places |= {11 + side: shoulder, 13 + side: shoulder - 0.3 * trunk, 15 + side: shoulder - 0.55 * trunk}
        places |= {23 + side: hip, 25 + side: knee, 27 + side: knee + 0.42 * shin, 7 + side: 0.08 * out + 0.7 * trunk}
    places[0] = 0.7 * trunk + 0.1 * FORWARD
    angle = np.radians(turn)
    around = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    world, seen = np.zeros((33, 3), np.float32), np.zeros((33, 3), np.float32)
    for number, place in places.items():
        world[number] = around @ place
        x, y, z = world[number]
        seen[number] = (160 + 300 * x / (distance_m + z), 110 + 300 * y / (distance_m + z), 0.9)
    low, high = (function(seen[seen[:, 2] > 0, :2], axis=0) for function in (np.min, np.max))
    return body(seen, box=(*low, *(high - low)), world=world if in_space else None)


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("turn", [0, 30, 60, 90, 150, 180, 270])
def test_a_posture_is_told_only_where_the_legs_show_it(pose, turn):
    shown, words = body_phrase(posed(pose, turn)), {"standing", "sitting", "kneeling", "lying"}
    told = words & set(shown.replace(",", "").split())
    if pose in ("standing", "sitting", "kneeling"):
        assert told == {pose}, shown
    elif pose == "lying" and turn in (90, 270):
        assert told == {"lying"} and "shoulders turned" not in shown
        assert "hand" not in arms_phrase(posed(pose, turn)) and action_phrase(posed(pose, turn), LIMITS) is None
    else:
        assert told <= {"walking": {"standing"}, "lying": {"lying"}}.get(pose, set()), shown
    assert ("apparently" in shown.split(",")[0]) == bool(told - {"standing"})
    step = action_phrase(posed(pose, turn), LIMITS) or ""
    assert "taking a step" not in step or pose == "walking"


@UNHURRIED
@given(st.sampled_from(sorted(POSES)), st.floats(0, 360), st.floats(1.8, 8))
def test_a_flat_picture_of_joints_makes_nobody_stand_who_does_not(pose, turn, distance_m):
    flat = posed(pose, turn, distance_m, in_space=False)
    assert "standing" not in body_phrase(flat) or pose in ("standing", "walking")
    assert "taking a step" not in (action_phrase(flat, LIMITS) or "") or pose in ("standing", "walking")


def test_knees_and_elbows_bend_in_space_not_in_the_picture():
    front = posed("sitting", 0)
    assert legs_phrase(front).endswith("both knees strongly bent"), "in the picture thighs and shins lie in line"
    world = np.zeros((33, 3), np.float32)
    world[[11, 13, 15]] = [(0, 0, 0), (0, 0, -0.3), (0, 0.02, -0.55)]
    forward = body(joints(left_elbow=(180, 62), left_wrist=(180, 64)), world=world)
    assert "stretching the left arm out towards the camera" in action_phrase(forward, LIMITS)


def test_hidden_joints_are_not_spoken_of():
    hidden = body(
        joints(left_elbow=None, left_wrist=None, left_knee=None, right_knee=None, left_ankle=None, right_ankle=None)
    )
    assert "left arm" not in arms_phrase(hidden) and legs_phrase(hidden) is None
    assert body_phrase(hidden).startswith("from the hips up")
    assert body_phrase(body(joints(left_ankle=None, right_ankle=None))).startswith("down to the knees")
    below = body(
        joints(**dict.fromkeys(("left_knee", "right_knee", "left_ankle", "right_ankle"))), box=(110, 10, 100, 230)
    )
    assert legs_phrase(below) == "largely outside the picture, which ends above the knees"
    assert body_phrase(body()) == "with an outline that is taller than wide in the picture"
    assert arms_phrase(body()) is None and head_phrase(body()) is None and legs_phrase(body()) is None


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (face(), "turned straight to the camera"),
        (face(turn=0.3), "turned slightly to the right of the picture"),
        (face(turn=-0.6), "turned to the left of the picture"),
        (face(turn=1.5), "turned far to the right of the picture"),
        (face(drop=5), "turned straight to the camera and tilted slightly to the right of the picture"),
        (face(nod=0.9), "apparently lowered"),
        (face(nod=0.2), "apparently raised"),
    ],
)
def test_words_of_five_landmarks(features, words):
    assert words in head_phrase(body(**features))


def shapes(**scores: float) -> dict:
    both = {f"{name}{side}": score for name, score in scores.items() for side in ("Left", "Right")}
    return {"jawOpen": scores.get("jawOpen", 0.0), "browInnerUp": scores.get("browInnerUp", 0.0), **both}


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ({}, "what appears to be a neutral expression, with the lips together"),
        ({"mouthSmile": 0.8}, "a broad smile, with the lips together"),
        ({"mouthSmile": 0.3, "jawOpen": 0.2}, "a slight smile, with the mouth a little open"),
        ({"jawOpen": 0.9, "browDown": 0.5}, "a tense expression, with the mouth wide open and lowered brows"),
        ({"mouthFrown": 0.5}, "a downturned mouth"),
        ({"browInnerUp": 0.5, "eyeWide": 0.5}, "the lips together, raised brows and widened eyes"),
    ],
)
def test_words_of_blendshapes(scores, words):
    assert words in expression_phrase(body(**face(), blendshapes=shapes(**scores)), LIMITS)


def test_the_gaze_is_the_head_s_unless_the_eyes_tell_otherwise():
    assert (
        gaze_phrase(body(**face(turn=0.5)), LIMITS)
        == "apparently directed to the right of the picture, the way the head is turned"
    )
    assert "towards the camera" in gaze_phrase(body(**face(), blendshapes=shapes()), LIMITS)
    aside = {**shapes(), "eyeLookOutLeft": 0.8, "eyeLookInRight": 0.8}  # the person's own left is the picture's right
    assert "turned to the right of the picture by the eyes" in gaze_phrase(body(**face(), blendshapes=aside), LIMITS)
    assert gaze_phrase(body(), LIMITS) is None and expression_phrase(body(), LIMITS) is None
    assert expression_phrase(body(**face(turn=0.6)), LIMITS) is None, "the mouth is foreshortened"


@pytest.mark.parametrize("name", COLOURS)
def test_every_colour_of_the_table_is_its_own_nearest(name):
    assert named_colours(lab_of(np.array([[COLOURS[name]]], np.uint8))[0], 0.2) == [name]


def mirrored(points: np.ndarray) -> np.ndarray:
    """The same person in a mirror: x turned around, left and right joints exchanged."""
    swapped = points[[0, 4, 5, 6, 1, 2, 3, 8, 7, 10, 9, *(i + 1 if i % 2 else i - 1 for i in range(11, 33))]].copy()
    swapped[:, 0] = np.where(swapped[:, 2] > 0, WIDTH - 1 - swapped[:, 0], 0)
    return swapped


points = st.tuples(st.integers(1, WIDTH - 2), st.integers(1, HEIGHT - 2))
scores = st.dictionaries(
    st.sampled_from(
        [
            "jawOpen",
            "browInnerUp",
            *shapes(mouthSmile=1, mouthFrown=1, browDown=1, eyeBlink=1, eyeLookOut=1, eyeLookUp=1),
        ]
    ),
    st.floats(0, 1),
)


@st.composite
def skeletons(draw) -> np.ndarray:
    values = np.zeros((33, 3), np.float32)
    for index in (0, *range(7, 9), *range(11, 17), *range(23, 29)):
        values[index] = (*draw(points), draw(st.sampled_from((0.0, 0.9, 0.9))))
    return values


@UNHURRIED
@given(skeletons())
def test_a_mirror_exchanges_left_and_right(skeleton):
    shoulders, hips = skeleton[[11, 12], 0].mean(), skeleton[[23, 24], 0].mean()
    assume(skeleton[0, 0] != shoulders and shoulders != hips)  # what lies in line is on neither side
    before, after = body(skeleton), body(mirrored(skeleton))

    def exchanged(text: str | None) -> list[str]:
        """Words, sorted: the left limb is told before the right one."""
        sides = {"left": "right", "right": "left"}
        return sorted(sides.get(word, word) for word in (text or "").replace(",", "").split())

    for tell in (body_phrase, arms_phrase, legs_phrase, lambda it: action_phrase(it, LIMITS)):
        assert exchanged(tell(before)) == sorted((tell(after) or "").replace(",", "").split())


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_whatever_is_measured_becomes_an_annotation_whose_prompt_the_linter_accepts(data):
    count = data.draw(st.integers(2, 4))
    image = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, (24, 32, 3)).astype(np.uint8)
    image = image.repeat(10, 0).repeat(10, 1)
    people = []
    for slot in "ABCD"[:count]:
        (x, y), seen = data.draw(points), data.draw(st.booleans())
        box = [min(x, WIDTH - 20), min(y, HEIGHT - 20), *data.draw(st.tuples(st.integers(2, 300), st.integers(2, 220)))]
        landmarks = np.array(data.draw(st.lists(points, min_size=5, max_size=5)), float) if seen else None
        people.append(
            Person(
                slot,
                box,
                box_mask(box),
                face_box=(float(x), float(y), 30.0, 40.0) if seen else None,
                face=landmarks,
                joints=data.draw(st.none() | skeletons()),
                blendshapes=data.draw(st.none() | scores) if seen else None,
            )
        )
    annotation = measured_annotation(image, people, LIMITS)
    prompt = compile_prompt(annotation)
    assert lint_prompt(prompt, annotation) == []
    assert "skin" not in annotation.to_json()
