"""What the specialists measure: on real photographs, and that nothing that cannot be measured passes for a zero."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from bindbench.config.embedders import DEFAULT_EMBEDDERS, Embedder
from bindbench.config.multibind_evaluation import (
    AppearanceSpecialist,
    Evaluation,
    ExpressionSpecialist,
    FaceSpecialist,
    PoseSpecialist,
)
from bindbench.config.multibind_scoring import DIMENSIONS
from bindbench.errors import UserError
from bindbench.multibind import similarities
from bindbench.multibind.evaluation_tables import SIMILARITIES, SLOTS_MATCHED, VALIDITY
from bindbench.multibind.similarities import Pair, comparable, compare, measure_similarities, specialists_of
from bindbench.multibind.similarity_arrays import read_evaluation
from bindbench.multibind.specialists import appearance, expression, face, pose
from bindbench.multibind.specialists.base import Crop, Specialist
from bindbench.multibind.specialists.faces import largest_inside
from bindbench.multibind.specialists.features import Place, checked, crop_of, features_of
from bindbench.multibind.specialists.similarity import cosines
from bindbench.people.masks import box_of_mask, encode_mask
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from people_models import people_models_folder
from photograph_instances import make_photographs
from pydantic import ValidationError
from tiny_models import qwen3_vl

SCORE = 0.7
POSE = PoseSpecialist()
values = st.floats(-8, 8, width=32)
vectors = arrays(np.float32, st.tuples(st.integers(1, 4), st.just(5)), elements=values)


@pytest.fixture(scope="module")
def models():
    return people_models_folder()


@pytest.fixture(scope="module")
def photographs(tmp_path_factory, models):
    return make_photographs(tmp_path_factory.mktemp("photographs"), models)


def crop(photographs, name: str, slot: str) -> Crop:
    return crop_of(photographs.images[name], photographs.masks[name]["AB".index(slot)])


def measured(specialist: Specialist, *crops: Crop) -> list:
    with specialist.open() as measure:
        return measure(list(crops))


class TestCosines:
    @given(vectors, vectors)
    @settings(max_examples=100, deadline=None)
    def test_symmetric_to_the_last_bit_whatever_else_is_compared(self, first, second):
        together = cosines(first, second)
        assert np.array_equal(together, cosines(second, first).T, equal_nan=True)
        for i in range(len(first)):
            assert np.array_equal(together[i : i + 1], cosines(first[i : i + 1], second), equal_nan=True)
        assert (np.isnan(together) | (np.abs(together) <= 1)).all()

    @given(vectors)
    @settings(max_examples=100, deadline=None)
    def test_equal_features_are_exactly_one_and_zeros_undefined(self, rows):
        diagonal = np.diag(cosines(rows, rows.copy()))
        assert np.array_equal(diagonal == 1, rows.any(1)) and np.array_equal(np.isnan(diagonal), ~rows.any(1))


def skeletons(places, seen) -> np.ndarray:
    """(n, 52) of (n, 17, 2) places and (n, 17) seen, of boxes twice as high as wide."""
    data = np.concatenate([places, seen[..., None]], -1).reshape(len(places), -1)
    return np.column_stack([data, np.full(len(places), 0.5)]).astype(np.float32)


def random_skeletons(seed: int, n: int = 3, seen: float = 0.8) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return skeletons(generator.random((n, 17, 2)), generator.random((n, 17)) < seen)


class TestPoseSimilarity:
    @pytest.mark.parametrize("similarity", [pose.oks, pose.joint_angles])
    @given(st.integers(0, 10**6))
    @settings(max_examples=50, deadline=None)
    def test_one_for_the_same_symmetric_and_within_bounds(self, similarity, seed):
        people = random_skeletons(seed)
        alike = similarity(people, people.copy(), 5)
        known = np.isfinite(alike)
        assert (np.diag(alike)[np.diag(known)] == 1).all()
        assert np.array_equal(alike, alike.T, equal_nan=True)
        assert ((alike[known] >= 0) & (alike[known] <= 1)).all()
        if similarity is pose.oks:
            common = (people[:, 2:51:3] @ people[:, 2:51:3].T).round()
            assert np.array_equal(known, common >= 5) and (alike[known] > 0).all()

    def test_oks_is_cocos(self):
        places = np.full((1, 17, 2), 0.5)
        moved = places + np.array([0.1, 0])
        expected = np.exp(-(0.1**2) / (2 * (2 * pose.SIGMAS) ** 2)).mean()
        everything = np.ones((1, 17), bool)
        assert pose.oks(skeletons(places, everything), skeletons(moved, everything), 5)[0, 0] == pytest.approx(
            expected, rel=1e-5
        )
        # The eyes' tolerance is a quarter of the hips'.
        only = np.zeros((2, 17), bool)
        only[0, 1], only[1, 11] = True, True
        alike = pose.oks(skeletons(np.repeat(places, 2, 0), only), skeletons(np.repeat(moved, 2, 0), only), 1)
        assert alike[0, 0] < 0.2 < 0.8 < alike[1, 1] and np.isnan(alike[0, 1])

    def test_fewer_common_keypoints_than_the_least_are_undefined_never_zero(self):
        places = np.random.default_rng(0).random((2, 17, 2))
        seen = np.zeros((2, 17), bool)
        seen[0, :9], seen[1, 5:] = True, True  # four in common
        people = skeletons(places, seen)
        assert np.isnan(pose.oks(people, people, 5)[0, 1]) and np.isnan(pose.joint_angles(people, people, 5)[0, 1])
        assert pose.oks(people, people, 4)[0, 1] > 0

    @given(st.integers(0, 10**6), st.floats(0.3, 1))
    @settings(max_examples=50, deadline=None)
    def test_joint_angles_heed_neither_place_nor_size(self, seed, scale):
        generator = np.random.default_rng(seed)
        places, seen = generator.random((1, 17, 2)), np.ones((1, 17), bool)
        moved = places * scale + (1 - scale) * generator.random(2)
        assert pose.joint_angles(skeletons(places, seen), skeletons(moved, seen), 5)[0, 0] == pytest.approx(1)

    def test_a_bent_elbow_changes_its_angle_alone(self):
        places = np.random.default_rng(3).random((1, 17, 2))
        bent = places.copy()
        upper = (places[0, 5] - places[0, 7]) * [0.5, 1]
        fore = (places[0, 9] - places[0, 7]) * [0.5, 1]
        turned = np.array([-fore[1], fore[0]])  # by a right angle
        bent[0, 9] = places[0, 7] + turned / [0.5, 1]
        seen = np.ones((1, 17), bool)
        assert upper.any()
        # Seven of eight joints agree, one differs by a right angle: (1 + cos 90°) / 2.
        alike = pose.joint_angles(skeletons(places, seen), skeletons(bent, seen), 5)[0, 0]
        assert alike == pytest.approx((7 + 0.5) / 8, abs=1e-6)

    def test_a_skeleton_is_in_the_unit_of_its_box(self):
        generator = np.random.default_rng(1)
        points, seen = generator.random((17, 2)) * [30, 60], np.ones(17)
        small = Crop(np.zeros((60, 30, 3), np.uint8), np.ones((60, 30), bool))
        large = Crop(np.zeros((180, 90, 3), np.uint8), np.ones((180, 90), bool))
        first, second = (pose.skeleton(points * k, seen, c, POSE) for k, c in ((1, small), (3, large)))
        assert np.allclose(first, second)
        points[:13] += 100  # outside: not seen, so that four are left
        assert pose.skeleton(points, seen, small, POSE) == "few_keypoints"
        points[5] = np.nan
        assert pose.skeleton(points, seen, small, POSE) == "few_keypoints"


class TestOwnFace:
    @given(
        st.lists(st.tuples(*[st.floats(-5, 15)] * 2, *[st.floats(0.5, 9)] * 2), max_size=5),
        arrays(bool, (10, 12)),
    )
    @settings(max_examples=100, deadline=None)
    def test_the_largest_whose_middle_lies_in_the_mask(self, boxes, mask):
        def inside(box):
            x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
            return 0 <= x < 12 and 0 <= y < 10 and mask[int(y), int(x)]

        index = largest_inside(boxes, mask)
        areas = [box[2] * box[3] for box in boxes if inside(box)]
        assert (index is None) == (not areas)
        assert index is None or (inside(boxes[index]) and boxes[index][2] * boxes[index][3] == max(areas))


class TestFace:
    def test_the_same_person_is_alike_and_another_is_not(self, photographs):
        people = [crop(photographs, name, slot) for name in ("bus", "zidane") for slot in "AB"]
        other = [Crop((one.pixels[3:, 4:] * 0.8).astype(np.uint8), one.mask[3:, 4:]) for one in people]
        features = measured(face.specialist(FaceSpecialist(), SCORE, 1), *people, *other)
        alike = cosines(np.stack(features[:4]), np.stack(features[4:]))
        assert (np.diag(alike) > 0.7).all() and alike[~np.eye(4, dtype=bool)].max() < 0.35

    def test_without_an_own_face_it_is_invalid(self, photographs):
        whole = crop(photographs, "zidane", "B")
        without = whole.mask.copy()
        without[: len(without) // 2] = False  # the face is there, and not in the mask
        blurred = Crop(cv2.GaussianBlur(whole.pixels, (0, 0), 25), whole.mask)
        tiny = Crop(whole.pixels[:1, :1], whole.mask[:1, :1])
        measure = face.specialist(FaceSpecialist(), SCORE, 1)
        assert measured(measure, Crop(whole.pixels, without), blurred, tiny) == ["no_face"] * 3

    def test_insightface_that_is_not_installed_says_what_to_install(self, tmp_path, monkeypatch):
        (tmp_path / "det_10g.onnx").write_bytes(b"")
        monkeypatch.setattr(face, "find_spec", lambda name: None)
        specialist = face.specialist(FaceSpecialist(method="insightface", pack=str(tmp_path)), SCORE, 1)
        with pytest.raises(UserError, match="pip install insightface onnxruntime"):
            measured(specialist, Crop(np.zeros((4, 4, 3), np.uint8), np.ones((4, 4), bool)))

    def test_insightface_that_cannot_be_imported_says_why_and_what_to_install(self, tmp_path, monkeypatch):
        for name, code in {
            "insightface": "",
            "onnxruntime": "",
            "insightface/app": "import libgl_of_no_machine",
        }.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text(code)
            monkeypatch.delitem(sys.modules, name.replace("/", "."), raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "det_10g.onnx").write_bytes(b"")
        specialist = face.specialist(FaceSpecialist(method="insightface", pack=str(tmp_path)), SCORE, 1)
        with pytest.raises(
            UserError, match=r"face\.method: .*No module named 'libgl_of_no_machine'.*pip install --upgrade"
        ):
            measured(specialist, Crop(np.zeros((4, 4, 3), np.uint8), np.ones((4, 4), bool)))
        for name in ("insightface", "onnxruntime"):
            sys.modules.pop(name, None)

    def test_a_pack_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(UserError, match=r"face\.pack: .*no folder with \.onnx files"):
            face.specialist(FaceSpecialist(method="insightface", pack=str(tmp_path)), SCORE, 1)
        with pytest.raises(ValidationError, match="needs the folder of a model pack"):
            FaceSpecialist(method="insightface")

    def test_another_pack_is_another_specialist(self, tmp_path):
        settings = FaceSpecialist(method="insightface", pack=str(tmp_path))
        (tmp_path / "a.onnx").write_bytes(b"1")
        first = face.specialist(settings, SCORE, 1)
        (tmp_path / "a.onnx").write_bytes(b"2")
        assert first.fingerprint != face.specialist(settings, SCORE, 1).fingerprint
        assert first.name == f"insightface/{tmp_path.name}"

    def test_insightface_sees_bgr_and_takes_the_own_face(self):
        faces = [
            SimpleNamespace(bbox=np.array([0, 0, 20, 20.0]), embedding=np.full(512, 1.0)),  # larger, not in the mask
            SimpleNamespace(bbox=np.array([30, 0, 40, 10.0]), embedding=np.full(512, 2.0)),
        ]
        pixels, mask = np.zeros((40, 60, 3), np.uint8), np.zeros((40, 60), bool)
        pixels[..., 0], mask[:, 25:] = 255, True
        seen = []
        analysis = SimpleNamespace(get=lambda picture: seen.append(picture) or faces)
        assert np.array_equal(face.insightface_features(analysis, Crop(pixels, mask)), np.full(512, 2, np.float32))
        assert (seen[0] == [0, 0, 255]).all()
        assert face.insightface_features(analysis, Crop(pixels, np.zeros_like(mask))) == "no_face"


class TestAppearance:
    def test_nothing_outside_of_the_mask_is_seen(self, photographs):
        person = crop(photographs, "bus", "A")
        elsewhere = person.pixels.copy()
        elsewhere[~person.mask] = np.random.default_rng(0).integers(0, 256, elsewhere[~person.mask].shape)
        pictures = [appearance.person_alone(Crop(pixels, person.mask)) for pixels in (person.pixels, elsewhere)]
        assert np.array_equal(*pictures)
        side = max(person.mask.shape)
        assert pictures[0].shape == (side, side, 3)
        counted = (pictures[0] != appearance.GREY).any(-1).sum()
        assert 0.95 * person.mask.sum() <= counted <= person.mask.sum()

    def test_a_shifted_crop_is_nearer_than_another_person(self, photographs):
        own, other = (crop(photographs, "bus", slot) for slot in "AB")
        dim = Crop((own.pixels * 0.8).astype(np.uint8)[8:], own.mask[8:])
        specialist = appearance.specialist(AppearanceSpecialist(), DEFAULT_EMBEDDERS, 1)
        features = np.stack(measured(specialist, own, other, dim))
        alike = cosines(features, features)
        assert alike[0, 2] > alike[0, 1] + 0.1 and specialist.name == "efficientnet-lite0"

    @pytest.mark.parametrize(
        ("name", "fault"), [("nowhere", "nowhere is not among the embedders"), ("minilm", "minilm embeds no images")]
    )
    def test_an_embedder_that_cannot_is_named(self, name, fault):
        with pytest.raises(UserError, match=rf"appearance\.embedder: {fault}"):
            appearance.specialist(AppearanceSpecialist(embedder=name), DEFAULT_EMBEDDERS, 1)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory) -> dict[str, Embedder]:
    """A Qwen3-VL of a few thousand random weights, as an entry of the config."""
    folder = qwen3_vl(tmp_path_factory.mktemp("qwen"))
    return {"qwen": Embedder(path=str(folder), max_pixels=4096, instruction="Represent the user's input.")}


class TestExpression:
    def test_a_read_face_gives_blendshapes_and_a_profile_none(self, photographs, models):
        specialist = expression.specialist(ExpressionSpecialist(), {}, SCORE, models, 1)
        blurred = Crop(np.full((80, 80, 3), 90, np.uint8), np.ones((80, 80), bool))
        people = [crop(photographs, name, slot) for name, slot in (("zidane", "B"), ("bus", "A"), ("zidane", "A"))]
        frontal, other, profile, nobody = measured(specialist, *people, blurred)
        assert frontal.shape == other.shape == (52,) and ((frontal >= 0) & (frontal <= 1)).all()
        assert 0 < cosines(frontal[None], other[None])[0, 0] < 0.999
        assert (profile, nobody) == ("face_not_read", "no_face")

    def test_an_embedder_sees_the_face_alone_with_the_instruction(self, photographs, models, qwen):
        def features(people, **more):
            settings = ExpressionSpecialist(method="embedder", embedder="qwen", **more)
            return measured(expression.specialist(settings, qwen, SCORE, models, 1), *people)

        person = crop(photographs, "zidane", "B")
        legs = person.pixels.copy()
        legs[600:] = 0
        nobody = Crop(person.pixels, np.zeros_like(person.mask))
        one, same, none = features([person, Crop(legs, person.mask), nobody])
        assert np.allclose(one, same) and none == "no_face"
        (asked,) = features([person], instruction="Represent the colour of the picture.")
        assert not np.allclose(one, asked)

    def test_an_embedder_that_heeds_no_instruction_takes_none(self, photographs, models):
        settings = ExpressionSpecialist(method="embedder", embedder="efficientnet-lite0")
        with pytest.raises(
            UserError, match=r"expression\.instruction: .*efficientnet-lite0 heeds none; set it to null"
        ):
            expression.specialist(settings, DEFAULT_EMBEDDERS, SCORE, models, 1)
        settings = ExpressionSpecialist(method="embedder", embedder="efficientnet-lite0", instruction=None)
        specialist = expression.specialist(settings, DEFAULT_EMBEDDERS, SCORE, models, 1)
        assert measured(specialist, crop(photographs, "zidane", "A"))[0].shape == (1280,)

    def test_the_instruction_is_part_of_what_it_is(self, models, qwen):
        settings = [
            ExpressionSpecialist(method="embedder", embedder="qwen", instruction=words) for words in ("One.", "Two.")
        ]
        prints = {expression.specialist(each, qwen, SCORE, models, 1).fingerprint for each in settings}
        assert len(prints) == 2


@pytest.fixture(scope="module")
def vitpose(tmp_path_factory):
    """Saves a real ViTPose of few random weights."""
    import torch
    from transformers import VitPoseBackboneConfig, VitPoseConfig, VitPoseForPoseEstimation, VitPoseImageProcessor

    def save(name: str, keypoints: int = 17, **more):
        folder = tmp_path_factory.mktemp(name)
        torch.manual_seed(0)
        backbone = VitPoseBackboneConfig(
            image_size=[64, 48], patch_size=[16, 16], hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            out_features=["stage2"], out_indices=[2], **more,
        )  # fmt: skip
        labels = {str(number): f"k{number}" for number in range(keypoints)}
        config = VitPoseConfig(backbone_config=backbone, use_simple_decoder=True, scale_factor=4, id2label=labels)
        model = VitPoseForPoseEstimation(config)
        for parameter in model.head.parameters():
            parameter.data.normal_()
        model.save_pretrained(folder)
        VitPoseImageProcessor(size={"height": 64, "width": 48}).save_pretrained(folder)
        return folder

    return save


def vitpose_settings(folder, **more) -> PoseSpecialist:
    return PoseSpecialist(method="vitpose", checkpoint=str(folder), min_visibility=0, common_keypoints=1, **more)


class TestPose:
    def test_of_two_people_in_a_box_the_one_in_the_mask(self, photographs, models):
        image, masks = photographs.images["bus"], photographs.masks["bus"]
        left, top = 30, 350
        part = image[top:950, left:400]
        specialist = pose.specialist(POSE, models, 1)
        crops = [Crop(part, mask[top:950, left:400]) for mask in masks]
        found = measured(specialist, *crops)
        assert any(not isinstance(features, str) for features in found) and not np.array_equal(*found)
        for each, features in zip(crops, found, strict=True):
            if not isinstance(features, str):
                points = features[:51].reshape(17, 3)
                places = points[points[:, 2] > 0, :2] * each.mask.shape[::-1]
                inside = [
                    each.mask[min(int(y), len(each.mask) - 1), min(int(x), each.mask.shape[1] - 1)] for x, y in places
                ]
                assert len(places) >= 5 and np.mean(inside) >= 0.5

    def test_nobody_has_no_pose(self, models):
        empty = Crop(np.full((90, 60, 3), 120, np.uint8), np.ones((90, 60), bool))
        assert measured(pose.specialist(POSE, models, 1), empty) == ["no_pose"]

    @pytest.mark.parametrize("experts", [1, 6])
    def test_vitpose_runs_from_its_folder(self, photographs, models, vitpose, experts):
        more = {"num_experts": experts, "part_features": 4} if experts > 1 else {}
        specialist = pose.specialist(vitpose_settings(vitpose("good", **more)), models, 1)
        people = [crop(photographs, "bus", slot) for slot in "AB"]
        first, second, again = measured(specialist, *people, people[0])
        assert first.shape == (52,) and np.array_equal(first, again) and not np.array_equal(first, second)
        places = first[:51].reshape(17, 3)
        assert places[:, 2].any() and ((places[:, :2] >= 0) & (places[:, :2] <= 1)).all()
        assert specialist.name.startswith("vitpose/")

    def test_vitpose_that_is_none_is_named(self, models, vitpose, tmp_path):
        with pytest.raises(UserError, match=r"pose\.checkpoint: .*no such folder"):
            pose.specialist(vitpose_settings(tmp_path / "nowhere"), models, 1)
        other = vitpose("other", keypoints=5)
        broken = vitpose("broken")
        (broken / "model.safetensors").write_bytes(b"broken")
        for folder, fault in ((tmp_path, "not a ViTPose"), (other, "has 5 keypoints"), (broken, "not a ViTPose")):
            with pytest.raises(UserError, match=fault):
                measured(pose.specialist(vitpose_settings(folder), models, 1))
        with pytest.raises(ValidationError, match="needs the folder of a checkpoint"):
            PoseSpecialist(method="vitpose")

    def test_missing_models_say_how_they_are_made(self, tmp_path):
        with pytest.raises(UserError, match="build-people-models"):
            measured(pose.specialist(POSE, tmp_path, 1))


def plain(measure=None, identity=0, batch=2, similarity=cosines) -> Specialist:
    """A specialist without a model."""

    @contextmanager
    def opened():
        yield measure

    return Specialist("appearance", "plain", {"plain": identity}, opened, similarity, batch)


class TestComparing:
    def test_v_and_r_are_the_papers(self):
        a, b, c = (np.array(v, np.float32) for v in ([1, 0], [0.6, 0.8], [0, 1]))
        slots = {"A": Pair(a, b), "B": Pair(b, None), "C": Pair("no_face", c), "D": Pair(c, "no_face")}
        found = compare(plain(), slots)
        by = {(row["row"], row["column"]): row for row in found.similarities}
        assert set(by) == {("A", "A"), ("A", "B"), ("A", "D")}
        assert (by["A", "A"]["s_gt"], by["A", "A"]["s_gen"]) == (1, pytest.approx(0.6))
        assert by["A", "B"]["s_gen"] == 1 and by["A", "B"]["delta"] == 1 - by["A", "B"]["s_gt"]
        states = {
            row["slot"]: (row["matched"], row["valid_true"], row["valid_generated"], row["reason"])
            for row in found.validity
        }
        assert states == {
            "A": (True, True, True, None),
            "B": (False, True, False, None),
            "C": (True, False, True, "no_face"),
            "D": (True, True, False, "no_face"),
        }

    def test_an_undefined_similarity_makes_its_row_invalid(self):
        def undefined(first, second):  # whoever is negative cannot be compared with whoever is 2
            known = (first[:, None, 0] >= 0) | (second[None, :, 0] != 2)
            return np.where(known, 1.0, np.nan)

        one, two, negative = (np.array([v], np.float32) for v in (1, 2, -1))
        found = compare(plain(similarity=undefined), {"A": Pair(one, negative), "B": Pair(two, two)})
        assert {row["row"] for row in found.similarities} == {"B"}
        assert all(np.isfinite([row["s_gen"], row["s_gt"]]).all() for row in found.similarities)
        assert found.validity[0]["valid_true"] and not found.validity[0]["valid_generated"]
        assert found.validity[0]["reason"] == "few_common"

    @given(st.permutations("ABCD"), st.sets(st.sampled_from([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])))
    @settings(max_examples=100, deadline=None)
    def test_real_crops_that_cannot_be_compared_are_left_out_in_any_order(self, order, undefined):
        def similarity(first, second):
            pairs = [[tuple(sorted((int(a[0]), int(b[0])))) for b in second] for a in first]
            return np.array([[np.nan if pair in undefined else 1.0 for pair in row] for row in pairs])

        real = {slot: np.array([index], np.float32) for index, slot in enumerate("ABCD")}
        kept = comparable(plain(similarity=similarity), {slot: real[slot] for slot in order})
        assert set(kept) == set(comparable(plain(similarity=similarity), real))
        numbers = [int(value[0]) for value in kept.values()]
        assert not any(tuple(sorted((a, b))) in undefined for a in numbers for b in numbers)
        assert len(kept) == 4 or undefined

    @pytest.mark.parametrize("bad", [[np.nan, 1], [np.inf, 1], [0, 0]])
    def test_features_that_are_no_numbers_are_invalid(self, bad):
        assert checked(np.array(bad, np.float32)) == "not_a_number"


def places_of(n: int = 5) -> list[Place]:
    """People of as many pictures; the mean colour of a crop is the picture's number and more."""
    generator = np.random.default_rng(0)
    found = []
    for number in range(n):
        pixels = np.full((8, 9, 3), 10 * (number + 1), np.uint8)
        mask = generator.random((8, 9)) < 0.5
        found.append(Place(f"{number:064x}", 8, 9, encode_mask(mask), lambda pixels=pixels: pixels))
    return found


class TestFeatures:
    def measure(self, calls):
        def measure(crops):
            calls.append(len(crops))
            means = [float(each.pixels.mean()) for each in crops]
            return ["no_face" if mean == 20 else np.array([mean, 1], np.float32) for mean in means]

        return measure

    def test_measured_once_whatever_the_order(self, tmp_path):
        calls, places = [], places_of()
        first = features_of(plain(self.measure(calls)), [*places, places[0]], tmp_path)
        assert calls == [2, 2, 1] and [first[place.key][0] for place in places if place != places[1]] == [
            10,
            30,
            40,
            50,
        ]
        assert first[places[1].key] == "no_face"
        again = features_of(plain(self.measure(calls)), places[::-1], tmp_path)
        assert calls == [2, 2, 1] and again.keys() == first.keys()
        assert all(np.array_equal(again[key], first[key]) for key in first)

    def test_what_is_kept_needs_neither_picture_nor_model(self, tmp_path):
        places = places_of()
        features_of(plain(self.measure([])), places, tmp_path)
        unread = [Place(place.sha256, 8, 9, place.mask, lambda: pytest.fail("read")) for place in places]
        closed = plain()
        object.__setattr__(closed, "open", lambda: pytest.fail("opened"))
        assert features_of(closed, unread, tmp_path)[places[1].key] == "no_face"

    def test_only_what_is_new_is_measured(self, tmp_path):
        calls, places = [], places_of()
        features_of(plain(self.measure(calls)), places[:3], tmp_path)
        features_of(plain(self.measure(calls)), places, tmp_path)
        assert sum(calls) == 5
        features_of(plain(self.measure(calls), identity=1), places, tmp_path)
        assert sum(calls) == 10

    def test_a_run_that_dies_keeps_what_it_has(self, tmp_path):
        calls, places = [], places_of()

        def dies(crops):
            if calls:
                raise RuntimeError("killed")
            return self.measure(calls)(crops)

        with pytest.raises(RuntimeError):
            features_of(plain(dies), places, tmp_path)
        features_of(plain(self.measure(calls)), places, tmp_path)
        assert sum(calls) == 5

    def test_another_mask_or_picture_is_another_crop(self):
        one = places_of(1)[0]
        other = Place(one.sha256, 8, 9, encode_mask(np.ones((8, 9), bool)), one.read)
        assert len({one.key, other.key, Place("f" * 64, 8, 9, one.mask, one.read).key}) == 3


def matched_rows(pictures, photographs) -> list[dict]:
    """Everyone at the true masks; nobody where there is no picture, nor in slot A of the generator `missing`."""
    rows = []
    for (generator, name), pixels in pictures.items():
        for slot, mask in zip("AB", photographs.masks[name], strict=True):
            there = pixels is not None and (generator, slot) != ("missing", "A")
            rows.append(
                {"generator": generator, "instance": name, "slot": slot, "matched": there,
                 "iou": 1.0 if there else None, "box": box_of_mask(mask) if there else None,
                 "mask": encode_mask(mask) if there else None, "reason": None if there else "not_found"}
            )  # fmt: skip
    return rows


def exchanged_mask(photographs, name: str, slot: str) -> np.ndarray:
    """The outline of the other one, scaled to the slot's box as `Photographs.swapped` does with the pixels."""
    own, other = photographs.masks[name] if slot == "A" else reversed(photographs.masks[name])
    x, y, width, height = map(int, box_of_mask(own))
    part = crop_of(photographs.images[name], other).mask.astype(np.uint8)
    mask = np.zeros(own.shape, bool)
    mask[y : y + height, x : x + width] = cv2.resize(part, (width, height), interpolation=cv2.INTER_NEAREST) > 0
    return mask


@pytest.fixture(scope="module")
def tables(photographs, models, tmp_path_factory):
    """Pictures, the table of who was matched, and a function that measures into a folder."""
    folder = tmp_path_factory.mktemp("evaluation")
    pictures = {(kind, name): None for kind in ("target", "swap", "blur", "missing") for name in photographs.images}
    for name, image in photographs.images.items():
        pictures |= {("target", name): image, ("missing", name): image, ("blur", name): photographs.blurred(name)}
    pictures["swap", "bus"] = photographs.swapped("bus")
    rows = matched_rows(pictures, photographs)
    for row in rows:
        if row["generator"] == "swap" and row["matched"]:
            row["mask"] = encode_mask(exchanged_mask(photographs, "bus", row["slot"]))
    generated = photographs.write_generated(pictures, folder)

    def measure(place, rows=rows, generated=generated, cache=folder / "cache", **more):
        write_table(SLOTS_MATCHED, rows, place / "matched.parquet")
        specialists = specialists_of(Evaluation(**more), DEFAULT_EMBEDDERS, models)
        out = place / "similarities.parquet", place / "validity.parquet"
        measure_similarities(
            place / "matched.parquet", generated, folder, *photographs.tables, photographs.folder, specialists, cache, *out
        )  # fmt: skip
        return [place / "matched.parquet", *out]

    return SimpleNamespace(pictures=pictures, rows=rows, measure=measure, files=measure(folder), folder=folder)


def deltas(path) -> dict[tuple, np.ndarray]:
    """delta by generator, instance and dimension; NaN where there is no row or column."""
    found = {}
    for row in read_table(SIMILARITIES, path).to_pylist():
        key = row["generator"], row["instance"], row["dimension"]
        found.setdefault(key, np.full((2, 2), np.nan))["AB".index(row["row"]), "AB".index(row["column"])] = row["delta"]
    return found


class TestTables:
    """All embedded specialists on the two photographs."""

    def test_the_scoring_reads_them(self, tables):
        generators = ["target", "swap", "blur", "missing"]
        evaluation = read_evaluation(generators, DIMENSIONS, *([tables.files[at]] for at in (0, 2, 1)))
        assert evaluation.specialists == ["sface", "efficientnet-lite0", "mediapipe-pose", "mediapipe-blendshapes"]
        assert evaluation.similarities.rows[:, 0].sum() == 15  # every subject but the expression of a profile

    def test_similarities_are_numbers_and_a_person_is_exactly_like_themselves(self, tables):
        rows = read_table(SIMILARITIES, tables.files[1]).to_pylist()
        assert all(np.isfinite([row["s_gen"], row["s_gt"], row["delta"]]).all() for row in rows)
        assert {row["s_gt"] for row in rows if row["row"] == row["column"]} == {1.0}
        assert all(row["s_gen"] - row["s_gt"] == row["delta"] for row in rows)
        true = {}
        for row in rows:
            true.setdefault((row["instance"], row["dimension"], *sorted((row["row"], row["column"]))), set()).add(
                row["s_gt"]
            )
        assert all(len(each) == 1 for each in true.values())

    def test_the_photograph_itself_differs_in_nothing(self, tables):
        found = {key: value for key, value in deltas(tables.files[1]).items() if key[0] == "target"}
        assert len(found) == 8 and all((value[np.isfinite(value)] == 0).all() for value in found.values())

    @pytest.mark.parametrize("dimension", ["face", "appearance"])
    def test_a_swap_falls_on_the_diagonal_and_rises_beside_it(self, tables, dimension):
        delta = deltas(tables.files[1])["swap", "bus", dimension]
        assert np.diag(delta).max() < -0.2 and min(delta[0, 1], delta[1, 0]) > 0.2

    def test_a_blur_has_no_face_and_looks_like_nobody(self, tables):
        found = deltas(tables.files[1])
        validity = read_table(VALIDITY, tables.files[2]).to_pylist()
        for name in ("bus", "zidane"):
            assert ("blur", name, "face") not in found
            delta = found["blur", name, "appearance"]
            assert np.diag(delta).max() < -0.3 and max(delta[0, 1], delta[1, 0]) < 0
        faces = [row for row in validity if (row["generator"], row["dimension"]) == ("blur", "face")]
        assert len(faces) == 4 and all((row["valid_true"], row["valid_generated"]) == (True, False) for row in faces)
        assert {row["reason"] for row in faces} == {"no_face"}

    def test_the_missed_have_no_row_but_are_columns(self, tables):
        found = deltas(tables.files[1])
        for name in ("bus", "zidane"):
            assert np.isnan(found["missing", name, "face"][0]).all() and (found["missing", name, "face"][1] == 0).all()
        assert not any(key[:2] == ("swap", "zidane") for key in found)

    def test_neither_the_order_of_rows_nor_the_cache_matter(self, tables, photographs, tmp_path):
        backwards = dict(reversed(tables.pictures.items()))
        generated = photographs.write_generated(backwards, tables.folder / "again")
        for file in tables.folder.glob("*.png"):
            assert (tables.folder / "again" / file.name).read_bytes() == file.read_bytes()
        files = tables.measure(tmp_path, tables.rows[::-1], generated, cache=tmp_path / "cache")
        for table, one, other in zip((SIMILARITIES, VALIDITY), tables.files[1:], files[1:], strict=True):
            here, there = (
                sorted(read_table(table, path).to_pylist(), key=lambda row: [row[name] for name in table.key])
                for path in (one, other)
            )
            assert here == there

    def test_a_second_run_looks_at_nothing(self, tables, tmp_path, monkeypatch):
        monkeypatch.setattr(similarities, "read_generated", lambda *arguments: pytest.fail("read"))
        monkeypatch.setattr(similarities, "decoded", lambda *arguments: pytest.fail("read"))
        files = tables.measure(tmp_path)
        assert [path.read_bytes() for path in files] == [path.read_bytes() for path in tables.files]

    def test_slots_of_other_images_are_named(self, tables, tmp_path):
        with pytest.raises(UserError, match="slot blur, bus, A is missing"):
            tables.measure(tmp_path, [row for row in tables.rows if (row["generator"], row["slot"]) != ("blur", "A")])
        with pytest.raises(UserError, match="slot target, bus, C is of no generated image"):
            tables.measure(tmp_path, [*tables.rows, tables.rows[0] | {"slot": "C"}])
        broken = [row | {"mask": row["mask"] and "11"} for row in tables.rows]
        with pytest.raises(UserError, match="run lengths of another size"):
            tables.measure(tmp_path, broken)
