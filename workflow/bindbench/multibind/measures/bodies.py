"""A person as points and boxes, and the geometry that poses, faces and relations share.

Picture coordinates: x to the right, y down, pixels of the target. Left and right of a person are the person's own.
"""

from dataclasses import dataclass

import numpy as np

from ..annotation import position_of

NOSE, EARS, SHOULDERS, ELBOWS, WRISTS = 0, (7, 8), (11, 12), (13, 14), (15, 16)  # the left one first
HIPS, KNEES, ANKLES = (23, 24), (25, 26), (27, 28)
SIDES = ("left", "right")


@dataclass(frozen=True)
class Person:
    """What is known of one subject.

    box: [x, y, width, height]; mask: (height, width) bool of the target's size; face_box and face: box, and (5, 2) right eye,
    left eye, nose, right and left corner of the mouth; joints: (33, 3) x, y and visibility; world: (33, 3) the joints in space,
    x, y and z in metres, z away from the camera; blendshapes: score by name.
    """

    slot: str
    box: list[float]
    mask: np.ndarray
    face_box: tuple[float, ...] | None = None
    face: np.ndarray | None = None
    joints: np.ndarray | None = None
    world: np.ndarray | None = None
    blendshapes: dict[str, float] | None = None


class Body:
    """A person's joints as points, without those that are hidden or outside the picture.

    Angles are of the joints in space where those are known: a picture shows a limb that points at the camera as a short one, in
    any direction.
    """

    def __init__(self, person: Person, width: int, height: int, visibility: float):
        self.person, self.width, self.height = person, width, height
        self.position = position_of(person.box, width, height)
        self._points: dict[int, np.ndarray] = {}
        for index, (x, y, seen) in enumerate(person.joints if person.joints is not None else ()):
            if seen >= visibility and 0 <= x < width and 0 <= y < height:
                self._points[index] = np.array([x, y], float)
        self._space = self._points
        if person.world is not None:
            self._space = {index: np.asarray(person.world[index], float) for index in self._points}

    def at(self, joint: int) -> np.ndarray | None:
        return self._points.get(joint)

    def sees(self, *joints: int) -> bool:
        return all(joint in self._points for joint in joints)

    def bend(self, first: int, joint: int, last: int) -> float:
        """Angle at a joint in degrees, 180 for a straight limb. All three have to be seen."""
        return bend(self._space[first], self._space[joint], self._space[last])

    def from_down(self, start: int, end: int) -> float:
        """Angle of a limb to straight down in degrees: 90 level, 180 straight up. Both joints have to be seen."""
        return from_down(self._space[start], self._space[end])

    def reach(self, start: int, end: int) -> np.ndarray:
        """From one joint to another: x, y and, where it is known, z. Both have to be seen."""
        return self._space[end] - self._space[start]

    def middle(self, pair: tuple[int, int]) -> np.ndarray | None:
        """Between two joints, where both are seen."""
        first, second = self.at(pair[0]), self.at(pair[1])
        return None if first is None or second is None else (first + second) / 2

    @property
    def shoulder_width(self) -> float:
        """In pixels; of a person whose shoulders are not both seen, a third of the box's height or its width."""
        left, right = self.at(SHOULDERS[0]), self.at(SHOULDERS[1])
        if left is None or right is None:
            return min(self.person.box[2], self.person.box[3] / 3)
        return max(float(np.linalg.norm(left - right)), 0.3 * min(self.person.box[2], self.person.box[3] / 3))

    def regions(self) -> dict[str, tuple[float, float]]:
        """Rows of the upper body, the lower body and the feet: from joints, else by height of the box."""
        _, top, _, height = self.person.box
        bottom = top + height
        shoulders, hips = self.middle(SHOULDERS), self.middle(HIPS)
        ankles = [point[1] for joint in ANKLES if (point := self.at(joint)) is not None]
        if shoulders is not None:
            regions = {"upper_body": (shoulders[1], hips[1] if hips is not None else bottom)}
            if hips is not None:
                regions["lower_body"] = (hips[1], min(ankles, default=bottom))
            if ankles:
                regions["feet"] = (max(ankles), bottom)
            return {name: rows for name, rows in regions.items() if rows[1] > rows[0]}
        if "bottom" in self.position.cut_by:
            return {"upper_body": (top + 0.4 * height, bottom)}
        parts = {"upper_body": (0.2, 0.5), "lower_body": (0.55, 0.9), "feet": (0.94, 1.0)}
        return {name: (top + low * height, top + high * height) for name, (low, high) in parts.items()}


def torso_of(body: Body) -> float:
    """Height of the trunk in pixels; where the hips are hidden, one and a half times from shoulders to nose."""
    shoulders, hips, nose = body.middle(SHOULDERS), body.middle(HIPS), body.at(NOSE)
    if hips is not None:
        return float(np.linalg.norm(shoulders - hips))
    return 1.5 * float(np.linalg.norm(shoulders - nose)) if nose is not None else body.person.box[3] / 2


def bend(first: np.ndarray, joint: np.ndarray, last: np.ndarray) -> float:
    """Angle at a joint in degrees, 180 for a straight limb, of points in the plane or in space."""
    one, other = first - joint, last - joint
    cosine = one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-9)
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def from_down(start: np.ndarray, end: np.ndarray) -> float:
    """Angle of a limb to straight down in degrees: 90 level, 180 straight up. Points in the plane or in space."""
    way = end - start
    return float(np.degrees(np.arctan2(np.linalg.norm(np.delete(way, 1)), way[1])))


def length(start: np.ndarray, end: np.ndarray) -> float:
    return float(np.linalg.norm(end - start))


def side_of(across: float) -> str:
    return "right" if across > 0 else "left"


def word_below(value: float, *limits: tuple[float, str]) -> str:
    """The word of the first limit that the value is below; the last one is for the rest."""
    return next((word for limit, word in limits if value < limit), limits[-1][1])
