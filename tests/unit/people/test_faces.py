"""YuNet and SFace on real photographs: who is found where, and whose face is whose."""

import cv2
import numpy as np
import pytest
from bindbench.people import faces
from bindbench.people.faces import Face, face_features, find_faces
from people_models import builtin


@pytest.fixture(scope="module")
def zidane():
    return builtin("zidane.jpg")


def cosine(first, second):
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_two_faces_from_left_to_right(zidane):
    faces = find_faces(zidane)
    assert [face.centre[0] for face in faces] == pytest.approx([605, 985], abs=25)
    assert [face.centre[1] for face in faces] == pytest.approx([342, 186], abs=25)
    assert all(0.7 <= face.score <= 1 for face in faces)


def test_landmarks_lie_in_their_face_and_are_the_persons_own_left_and_right():
    for face in find_faces(builtin("bus.jpg")):
        x, y, width, height = face.box
        assert all(x <= a <= x + width and y <= b <= y + height for a, b in face.landmarks)
        right_eye, left_eye, nose, right_mouth, left_mouth = face.landmarks
        assert right_eye[0] < left_eye[0] and right_mouth[0] < left_mouth[0]  # both look at us
        assert max(right_eye[1], left_eye[1]) < nose[1] < min(right_mouth[1], left_mouth[1])


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_the_same_faces_whatever_the_size_of_the_photograph(zidane, scale):
    scaled = cv2.resize(
        zidane, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    )
    faces = find_faces(scaled)
    assert len(faces) == 2
    for face, original in zip(faces, find_faces(zidane), strict=True):
        assert np.array(face.centre) / scale == pytest.approx(np.array(original.centre), abs=15)


def test_a_face_of_a_thousand_pixels_is_found(zidane):
    """YuNet itself looks for faces of up to about 300 pixels."""
    head = cv2.resize(zidane[40:340, 850:1150], (2000, 2000), interpolation=cv2.INTER_CUBIC)
    assert len(find_faces(head)) == 1
    assert find_faces(head)[0].box[2] > 700


def test_a_stricter_score_finds_fewer_and_nothing_is_remembered(zidane):
    assert find_faces(zidane, 0.99) == []
    assert len(find_faces(zidane)) == 2


def test_no_face_in_noise_or_in_a_tiny_picture():
    noise = np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8)
    assert find_faces(noise) == []
    assert find_faces(noise[:1, :1]) == []


def test_the_same_picture_gives_the_same_answer(zidane):
    first, second = find_faces(zidane), find_faces(zidane.copy())
    assert first == second
    assert np.array_equal(face_features(zidane, first[0]), face_features(zidane, second[0]))


@pytest.mark.parametrize("size", [(20, 20), (1, 1), (32, 200), (190, 31), (33, 64), (20, 700)])
def test_small_and_narrow_pictures_give_the_same_answer_whatever_was_looked_at_before(size):
    """With a side of 32 pixels or less, YuNet's answer hung on what lay in memory."""
    draw = np.random.default_rng(0).integers
    picture = draw(0, 256, (*size, 3), np.uint8)
    first = find_faces(picture, 0.001)
    for side in (96, 20, 160):
        find_faces(draw(0, 256, (side, 160, 3), np.uint8))
        assert find_faces(picture, 0.001) == first
    assert all(np.isfinite([*face.box, *np.ravel(face.landmarks), face.score]).all() for face in first)


@pytest.mark.parametrize("place", [0, 3, 9, 14])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_no_number_is_no_face(monkeypatch, place, value):
    good = np.array([10, 20, 30, 40, *range(10), 0.9], np.float32)
    bad = good.copy()
    bad[place] = value

    class Detector:
        setInputSize = setScoreThreshold = staticmethod(lambda given: None)

        def detect(self, image):
            return 1, self.rows

    detector = Detector()
    monkeypatch.setattr(faces, "_detector", lambda: detector)
    detector.rows = np.stack([bad, good])
    assert [face.box for face in find_faces(np.zeros((100, 100, 3), np.uint8))] == [(10, 20, 30, 40)]
    detector.rows = bad[None]
    assert find_faces(np.zeros((100, 100, 3), np.uint8)) == []


def test_features_know_the_same_face_in_another_light_and_size(zidane):
    faces = find_faces(zidane)
    other = cv2.resize((zidane * 0.7).astype(np.uint8), None, fx=0.8, fy=0.8, interpolation=cv2.INTER_AREA)
    others = find_faces(other)
    mine = [face_features(zidane, face) for face in faces]
    theirs = [face_features(other, face) for face in others]
    assert all(features.shape == (128,) and features.dtype == np.float32 for features in mine)
    assert min(cosine(mine[0], theirs[0]), cosine(mine[1], theirs[1])) > 0.6
    assert max(cosine(mine[0], theirs[1]), cosine(mine[1], theirs[0])) < 0.363


def test_features_are_no_view_of_what_the_next_call_writes(zidane):
    faces = find_faces(zidane)
    first = face_features(zidane, faces[0])
    kept = first.copy()
    face_features(zidane, faces[1])
    assert np.array_equal(first, kept)


def test_mirrored_photographs_have_mirrored_faces(zidane):
    # Here Zidane's fist looks like a third face; the segmentation drops a face without a body.
    surest = sorted(find_faces(np.ascontiguousarray(zidane[:, ::-1])), key=lambda face: -face.score)[:2]
    assert sorted(1280 - face.centre[0] for face in surest) == pytest.approx([605, 985], abs=25)


def test_a_face_is_a_value():
    face = Face((1.0, 2.0, 3.0, 4.0), ((1.0, 1.0),) * 5, 0.9)
    assert face.centre == (2.5, 4.0)
    with pytest.raises(AttributeError):
        face.score = 1.0
