"""MediaPipe's poses and blendshapes on real photographs."""

import numpy as np
import pytest
from bindbench.errors import UserError
from bindbench.people.building import FACE_MODEL, POSE_MODEL
from bindbench.people.faces import find_faces
from bindbench.people.poses import blendshapes_of, face_crop, open_face_model, open_pose_model, pose_of, poses_of
from people_models import builtin


@pytest.fixture(scope="module")
def pose_model(people_models):
    with open_pose_model(people_models / POSE_MODEL) as model:
        yield model


@pytest.fixture(scope="module")
def face_model(people_models):
    with open_face_model(people_models / FACE_MODEL) as model:
        yield model


@pytest.fixture(scope="module")
def walker():
    """The man with the light coat in bus.jpg, from head to foot."""
    return builtin("bus.jpg")[380:920, 20:260]


def test_a_standing_man_from_head_to_foot(pose_model, walker):
    pose = pose_of(pose_model, walker)
    assert pose.landmarks.shape == (33, 3) and pose.world.shape == (33, 3)
    heights = [pose.landmarks[joints, 1].mean() for joints in ([0], [11, 12], [23, 24], [25, 26], [27, 28])]
    assert heights == sorted(heights)  # nose, shoulders, hips, knees, ankles
    assert pose.landmarks[11, 0] > pose.landmarks[12, 0]  # he looks at us: his left shoulder is on our right
    assert (pose.landmarks[[0, 11, 12, 23, 24], 2] > 0.9).all()
    assert (pose.landmarks[:, 2] >= 0).all() and (pose.landmarks[:, 2] <= 1).all()


def test_landmarks_are_in_pixels_of_the_picture_that_was_given(pose_model, walker):
    pose = pose_of(pose_model, walker)
    face = find_faces(walker)[0]
    x, y, width, height = face.box
    assert x < pose.landmarks[0, 0] < x + width and y < pose.landmarks[0, 1] < y + height


def test_world_landmarks_are_metres_around_the_hips(pose_model, walker):
    world = pose_of(pose_model, walker).world
    assert np.abs(world[[23, 24]].mean(0)).max() < 0.05
    assert 0.2 < np.linalg.norm(world[11] - world[12]) < 0.6


def test_the_mask_covers_the_body_and_not_the_corners(pose_model, walker):
    pose = pose_of(pose_model, walker)
    assert pose.mask.shape == walker.shape[:2] and pose.mask.dtype == np.float32
    assert pose.mask.min() >= 0 and pose.mask.max() <= 1
    joints = pose.landmarks[[0, 11, 12, 23, 24], :2].round().astype(int)
    assert all(pose.mask[y, x] > 0.5 for x, y in joints)
    assert pose.mask[:20, :20].max() < 0.5 and pose.mask[:20, -20:].max() < 0.5


def test_the_mask_outlives_the_next_call(pose_model, walker):
    pose = pose_of(pose_model, walker)
    kept = pose.mask.copy()
    pose_of(pose_model, walker[::-1])
    assert np.array_equal(pose.mask, kept)


def test_no_memory_from_picture_to_picture(pose_model, walker):
    first = pose_of(pose_model, walker)
    pose_of(pose_model, builtin("zidane.jpg"))
    again = pose_of(pose_model, walker.copy())
    assert np.array_equal(first.landmarks, again.landmarks) and np.array_equal(first.mask, again.mask)


def test_nobody_in_noise(pose_model):
    noise = np.random.default_rng(0).integers(0, 256, (120, 90, 3), np.uint8)
    assert pose_of(pose_model, noise) is None
    assert poses_of(pose_model, noise) == []


def test_blendshapes_are_fifty_two_shares_by_name(face_model):
    zidane = builtin("zidane.jpg")
    shapes = blendshapes_of(face_model, face_crop(zidane, find_faces(zidane)[1].box))
    assert len(shapes) == 52 and {"mouthSmileLeft", "jawOpen", "eyeBlinkRight", "browInnerUp"} <= set(shapes)
    assert all(0 <= share <= 1 for share in shapes.values())
    assert shapes["jawOpen"] < 0.3 and shapes["mouthSmileLeft"] < 0.3  # Ancelotti's mouth is closed, and he is grave


def test_a_small_face_is_enlarged(face_model):
    bus = builtin("bus.jpg")
    crop = face_crop(bus, find_faces(bus)[0].box)
    assert max(crop.shape) < 150
    assert blendshapes_of(face_model, crop) is not None


def test_no_face_no_blendshapes(face_model):
    assert blendshapes_of(face_model, np.full((300, 300, 3), 128, np.uint8)) is None
    assert blendshapes_of(face_model, np.zeros((0, 40, 3), np.uint8)) is None


@pytest.mark.parametrize("box, shape", [([10, 20, 40, 50], (100, 74, 3)), ([80, 70, 40, 50], (60, 44, 3))])
def test_a_face_crop_ends_at_the_border(box, shape):
    assert face_crop(np.zeros((100, 100, 3), np.uint8), box).shape == shape


def test_a_face_beyond_the_border_has_no_pixels():
    assert face_crop(np.zeros((100, 100, 3), np.uint8), [300, 20, 40, 50]).size == 0
    assert face_crop(np.zeros((100, 100, 3), np.uint8), [-300, -300, 40, 50]).size == 0


@pytest.mark.parametrize("opened", [open_pose_model, open_face_model])
def test_a_missing_or_broken_model_is_one_line_that_names_it(opened, tmp_path):
    with (
        pytest.raises(UserError, match=r"gone\.task: cannot be read .*run build-people-models"),
        opened(tmp_path / "gone.task"),
    ):
        pass
    (tmp_path / "broken.task").write_bytes(b"PK\x03\x04 no bundle")
    with pytest.raises(UserError, match=r"broken\.task: not a model") as raised, opened(tmp_path / "broken.task"):
        pass
    assert "\n" not in str(raised.value)


def test_a_model_of_another_kind_is_refused(people_models):
    with pytest.raises(UserError, match="not a model"), open_pose_model(people_models / FACE_MODEL):
        pass
