"""The embedded annotation: what can be measured of a photograph, in words (section 3.2 has a vision-language model write it).

Colours by region of the mask, named by the nearest of a small table in CIELAB; posture, arms and legs from MediaPipe's joints;
the turn of the head from five landmarks of the face; expression and gaze from blendshapes; position and relations from boxes;
background, light and camera from pixels. Nothing is claimed that was not measured: where a word goes beyond the figure, it
says `apparently`, and what is hidden or outside the picture is left out. Bare skin is never described.

Picture coordinates: x to the right, y down, pixels of the target. Left and right of a person are the person's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np

from ..config.multibind_annotation import Measures
from ..language import article
from .annotation import Annotation, position_of

BACKGROUND_SHARE, PLACE_SHARE = 0.12, 0.15  # of an area, that a colour covers to be named
WORKING_SIDE = 512  # pixels; colours and light are measured on a picture no larger than this

# Ours: sRGB of colours as people name them.
COLOURS = {
    "black": (20, 20, 22),
    "dark grey": (70, 70, 72),
    "grey": (125, 125, 127),
    "light grey": (190, 190, 192),
    "white": (245, 245, 243),
    "dark red": (110, 20, 25),
    "red": (200, 35, 40),
    "pink": (235, 150, 170),
    "dark brown": (65, 42, 30),
    "brown": (120, 80, 50),
    "tan": (190, 150, 110),
    "beige": (222, 205, 175),
    "orange": (235, 130, 40),
    "yellow": (240, 215, 70),
    "olive green": (110, 110, 50),
    "dark green": (25, 70, 45),
    "green": (60, 150, 75),
    "turquoise": (65, 180, 180),
    "dark blue": (25, 35, 80),
    "blue": (45, 100, 190),
    "light blue": (150, 190, 230),
    "purple": (105, 55, 130),
    "lilac": (185, 160, 210),
}
_NAMES = tuple(COLOURS)

NOSE, EARS, SHOULDERS, ELBOWS, WRISTS = 0, (7, 8), (11, 12), (13, 14), (15, 16)  # the left one first
HIPS, KNEES, ANKLES = (23, 24), (25, 26), (27, 28)
SIDES = ("left", "right")


@dataclass(frozen=True)
class Person:
    """What is known of one subject.

    box: [x, y, width, height]; mask: (height, width) bool of the target's size; face_box and face: box, and (5, 2) right eye,
    left eye, nose, right and left corner of the mouth; joints: (33, 3) x, y and visibility; blendshapes: score by name.
    """

    slot: str
    box: list[float]
    mask: np.ndarray
    face_box: tuple[float, ...] | None = None
    face: np.ndarray | None = None
    joints: np.ndarray | None = None
    blendshapes: dict[str, float] | None = None


def measured_annotation(image: np.ndarray, people: Sequence[Person], limits: Measures) -> Annotation:
    """The annotation of a (height, width, 3) uint8 RGB target and its people, in the order of their slots."""
    height, width = image.shape[:2]
    scale = min(1.0, WORKING_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    lab = lab_of(cv2.resize(image, size, interpolation=cv2.INTER_AREA))
    masks = [_resized(person.mask, size) for person in people]
    bodies = [Body(person, width, height, limits.visibility) for person in people]
    subjects = {
        body.person.slot: {
            "clothes": clothes_of(lab, mask, body, scale, limits),
            "appearance": {"hair": hair_of(lab, mask, body, scale, limits)},
            "pose": {
                "body": body_phrase(body),
                "head": head_phrase(body),
                "arms": arms_phrase(body),
                "legs": legs_phrase(body),
            },
            "action": action_phrase(body, limits),
            "expression": expression_phrase(body, limits),
            "gaze": gaze_phrase(body, limits),
            "position": position_of(body.person.box, width, height),
        }
        for body, mask in zip(bodies, masks, strict=True)
    }
    behind = ~cv2.dilate(np.any(masks, 0).astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
    return Annotation.model_validate(
        {
            "subjects": subjects,
            "relations": relations_of(bodies),
            "background": background_of(lab, behind, limits),
            "light": light_of(lab),
            "camera": camera_of(image, np.any([person.mask for person in people], 0), bodies),
        }
    )


def _resized(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST).astype(bool)


# Colours -------------------------------------------------------------------------------------------------------------


def lab_of(image: np.ndarray) -> np.ndarray:
    """(height, width, 3) float32 CIELAB of uint8 RGB: L* from 0 to 100."""
    return cv2.cvtColor(np.asarray(image, np.float32) / 255, cv2.COLOR_RGB2LAB)


_TABLE = lab_of(np.array([list(COLOURS.values())], np.uint8))[0]


def named_colours(pixels: np.ndarray, least_share: float) -> list[str]:
    """The names that at least this share of (n, 3) CIELAB pixels are nearest to, the most frequent first; at least one."""
    nearest = np.argmin(((pixels[:, None] - _TABLE) ** 2).sum(-1), axis=1)
    shares = np.bincount(nearest, minlength=len(_NAMES)) / len(pixels)
    order = np.argsort(-shares, kind="stable")
    return [_NAMES[index] for rank, index in enumerate(order) if rank == 0 or shares[index] >= least_share]


def clothes_of(lab: np.ndarray, mask: np.ndarray, body: "Body", scale: float, limits: Measures) -> dict:
    """Colour and pattern of the clothes by region of the mask; what they are cannot be measured."""
    clothed = mask & ~_bare(lab, body, scale, limits)
    names = {"upper_body": "clothing of the upper body", "lower_body": "clothing of the lower body", "feet": "footwear"}
    clothes = {}
    for region, (top, bottom) in body.regions().items():
        area = np.zeros_like(mask)
        area[max(0, round(top * scale)) : max(0, round(bottom * scale))] = True
        area &= clothed
        if area.sum() >= 40:
            colours = named_colours(lab[area], limits.colour_share)[:2]
            pattern = "patterned" if _spread(lab[..., 0], area) >= limits.patterned else "plain"
            clothes[region] = {"garment": names[region], "colour": " and ".join(colours), "pattern": pattern}
    return clothes


def hair_of(lab: np.ndarray, mask: np.ndarray, body: "Body", scale: float, limits: Measures) -> dict | None:
    """The colour above the face, where it is another than the face's own; a hat cannot be told from hair."""
    if body.person.face_box is None:
        return None
    x, y, width, height = (value * scale for value in body.person.face_box)
    area = np.zeros_like(mask)
    area[
        max(0, round(y - 0.35 * height)) : max(0, round(y + 0.05 * height)), max(0, round(x)) : max(0, round(x + width))
    ] = True
    area &= mask
    bare = _bare_colour(lab, body, scale)
    if bare is None or area.sum() < 20:
        return None
    colour = np.median(lab[area], axis=0)
    # A bald head is as tinted as the face, and lit more brightly; light hair of such a tint cannot be told from it.
    if np.hypot(*(colour - bare)[1:]) < limits.bare_distance / 2 and colour[0] > bare[0] - 2 * limits.bare_distance:
        return None
    return {"colour": named_colours(colour[None], limits.colour_share)[0]}


def _bare(lab: np.ndarray, body: "Body", scale: float, limits: Measures) -> np.ndarray:
    """(height, width) bool: as coloured as the middle of the face. It serves to leave skin out, and is not written down."""
    bare = _bare_colour(lab, body, scale)
    if bare is None:
        return np.zeros(lab.shape[:2], bool)
    return np.sqrt(((lab - bare) ** 2).sum(-1)) < limits.bare_distance


def _bare_colour(lab: np.ndarray, body: "Body", scale: float) -> np.ndarray | None:
    """(3,) CIELAB, the median of the middle of the face; None without a face."""
    if body.person.face_box is None:
        return None
    x, y, width, height = (value * scale for value in body.person.face_box)
    rows = slice(max(0, round(y + 0.3 * height)), max(1, round(y + 0.8 * height)))
    columns = slice(max(0, round(x + 0.25 * width)), max(1, round(x + 0.75 * width)))
    middle = lab[rows, columns].reshape(-1, 3)
    return np.median(middle, axis=0) if len(middle) else None


def _spread(lightness: np.ndarray, area: np.ndarray) -> float:
    """Mean local standard deviation of lightness, in windows of 5 x 5 pixels that lie within the area."""
    inner = cv2.erode(area.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
    if not inner.any():
        return 0.0
    mean, square = cv2.blur(lightness, (5, 5)), cv2.blur(lightness**2, (5, 5))
    return float(np.sqrt(np.maximum(square - mean**2, 0))[inner].mean())


# Bodies --------------------------------------------------------------------------------------------------------------


class Body:
    """A person's joints as points, without those that are hidden or outside the picture."""

    def __init__(self, person: Person, width: int, height: int, visibility: float):
        self.person, self.width, self.height = person, width, height
        self.position = position_of(person.box, width, height)
        self._points: dict[int, np.ndarray] = {}
        for index, (x, y, seen) in enumerate(person.joints if person.joints is not None else ()):
            if seen >= visibility and 0 <= x < width and 0 <= y < height:
                self._points[index] = np.array([x, y], float)

    def at(self, joint: int) -> np.ndarray | None:
        return self._points.get(joint)

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


def bend(first: np.ndarray, joint: np.ndarray, last: np.ndarray) -> float:
    """Angle at a joint in degrees, 180 for a straight limb, as the picture shows it."""
    one, other = first - joint, last - joint
    cosine = one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-9)
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def from_down(start: np.ndarray, end: np.ndarray) -> float:
    """Angle of a limb to straight down in degrees: 90 level, 180 straight up."""
    across, down = end - start
    return float(np.degrees(np.arctan2(abs(across), down)))


def _side(across: float) -> str:
    return "right" if across > 0 else "left"


def _upto(value: float, *limits: tuple[float, str]) -> str:
    """The word of the first limit that the value is below; the last one is for the rest."""
    return next((word for limit, word in limits if value < limit), limits[-1][1])


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def body_phrase(body: Body) -> str:
    """Posture, lean and which way the chest is turned; without joints only the outline."""
    if body.middle(SHOULDERS) is None:
        _, _, width, height = body.person.box
        shape = (
            "taller than wide"
            if height > 1.2 * width
            else "about as wide as tall"
            if height > 0.8 * width
            else "wider than tall"
        )
        return f"with an outline that is {shape} in the picture"
    # Without the hips the trunk's height, which the turn is measured by, is a guess.
    hedge = "apparently " if body.middle(HIPS) is None else ""
    return f"{_posture(body)}{_lean(body)}, with the shoulders {hedge}{_facing(body)}"


def is_sitting(body: Body) -> bool | None:
    """Whether a thigh is nearly level over a bent knee; None where no hip is seen with its knee."""
    thighs = [(hip, knee, ankle) for hip, knee, ankle in zip(HIPS, KNEES, ANKLES, strict=True)]
    seen = [(body.at(hip), body.at(knee), body.at(ankle)) for hip, knee, ankle in thighs]
    seen = [limbs for limbs in seen if limbs[0] is not None and limbs[1] is not None]
    if not seen:
        return None
    return any(from_down(h, k) > 55 and (a is None or bend(h, k, a) < 140) for h, k, a in seen)


def _posture(body: Body) -> str:
    sitting = is_sitting(body)
    if sitting is None:
        return "from the chest up" if body.middle(HIPS) is None else "from the hips up"
    return "apparently sitting" if sitting else "standing"


def _lean(body: Body) -> str:
    shoulders, hips = body.middle(SHOULDERS), body.middle(HIPS)
    if hips is None:
        return ""
    angle = 180 - from_down(hips, shoulders)
    if angle < 8:
        return " upright" if is_sitting(body) is False else ", upright"
    much = "slightly" if angle < 20 else "clearly"
    return f", leaning {much} to the {_side(shoulders[0] - hips[0])} of the picture"


def _facing(body: Body) -> str:
    left, right = body.at(SHOULDERS[0]), body.at(SHOULDERS[1])
    across = (left[0] - right[0]) / max(_torso(body), 1e-9)
    if across < -0.25:
        return "turned away from the camera"
    if across > 0.55:
        return "turned towards the camera"
    nose = body.at(NOSE)
    if nose is None:
        return "turned sideways"
    side = _side(nose[0] - (left[0] + right[0]) / 2)
    return f"turned {'halfway' if across > 0.25 else 'mostly'} to the {side} of the picture"


def _torso(body: Body) -> float:
    """Height of the trunk in pixels; where the hips are hidden, one and a half times from shoulders to nose."""
    shoulders, hips, nose = body.middle(SHOULDERS), body.middle(HIPS), body.at(NOSE)
    if hips is not None:
        return float(np.linalg.norm(shoulders - hips))
    return 1.5 * float(np.linalg.norm(shoulders - nose)) if nose is not None else body.person.box[3] / 2


def arms_phrase(body: Body) -> str | None:
    """Each arm that is seen from shoulder to elbow."""
    if _crossed(body):
        return "apparently folded in front of the body, each hand near the other arm"
    seen = {side: _arm(body, number) for number, side in enumerate(SIDES)}
    told = [f"the {side} arm is {words}" for side, words in seen.items() if words]
    if not told:
        return None
    return "posed so that " + ", while ".join(told)


def _crossed(body: Body) -> bool:
    """Both hands lie on the other side of the chest, at its height."""
    shoulders, wrists = [body.at(j) for j in SHOULDERS], [body.at(j) for j in WRISTS]
    if any(point is None for point in (*shoulders, *wrists)):
        return False
    across = shoulders[0][0] - shoulders[1][0]
    middle = (shoulders[0][0] + shoulders[1][0]) / 2
    low = (shoulders[0][1] + shoulders[1][1]) / 2 + _torso(body)
    turned = [(point[0] - middle) * across for point in wrists]
    return turned[0] < 0 < turned[1] and all(point[1] < low for point in wrists)


def _arm(body: Body, side: int) -> str | None:
    shoulder, elbow, wrist = body.at(SHOULDERS[side]), body.at(ELBOWS[side]), body.at(WRISTS[side])
    if shoulder is None or elbow is None:
        return None
    words = _upto(
        from_down(shoulder, elbow),
        (25, "hanging down from the shoulder"),
        (65, "held a little away from the body"),
        (115, "raised to about shoulder height"),
        (181, "raised above the shoulder"),
    )
    if wrist is None:
        return words
    angle = bend(shoulder, elbow, wrist)
    elbow_words = _upto(angle, (70, "sharply bent"), (115, "bent"), (150, "slightly bent"), (181, "nearly straight"))
    return f"{words} and {elbow_words} at the elbow, with the hand {_hand(body, side)}"


def _hand(body: Body, side: int) -> str:
    """Where the hand is, in terms of the body and of the picture."""
    shoulder, wrist = body.at(SHOULDERS[side]), body.at(WRISTS[side])
    middle, hips, nose = body.middle(SHOULDERS), body.middle(HIPS), body.at(NOSE)
    middle = shoulder if middle is None else middle
    torso = _torso(body) if body.middle(SHOULDERS) is not None else 1.5 * body.shoulder_width
    down = (wrist[1] - middle[1]) / max(torso if hips is None else hips[1] - middle[1], 1e-9)
    if nose is not None and wrist[1] < nose[1]:
        height = "at the height of the head"
    else:
        height = "at the height of the " + _upto(
            down, (0.2, "shoulders"), (0.6, "chest"), (0.95, "waist"), (1.25, "hips"), (99, "thighs")
        )
    out = wrist[0] - middle[0]
    if abs(out) > 1.1 * body.shoulder_width:
        return f"{height}, far out to the {_side(out)} of the picture"
    return f"{height}, in front of or close to the body" if abs(out) < 0.6 * body.shoulder_width else height


def legs_phrase(body: Body) -> str | None:
    """Step and knees; of legs that no joint is seen of, that the picture ends above them, where it does."""
    knees = {side: _knee(body, number) for number, side in enumerate(SIDES)}
    seen = {side: words for side, words in knees.items() if words}
    if not seen:
        none = all(body.at(joint) is None for joint in (*KNEES, *ANKLES))
        cut = body.person.joints is not None and none and "bottom" in body.position.cut_by
        return "largely outside the picture, which ends above the knees" if cut else None
    step = _step(body)
    if len(seen) == 2 and len(set(seen.values())) == 1:
        told = f"both knees {seen['left']}"
    else:
        told = _and([f"the {side} knee {words}" for side, words in seen.items()])
    return f"{step}, with {told}" if step else f"held with {told}"


def _knee(body: Body, side: int) -> str | None:
    hip, knee, ankle = body.at(HIPS[side]), body.at(KNEES[side]), body.at(ANKLES[side])
    if hip is None or knee is None or ankle is None:
        return None
    return _upto(
        bend(hip, knee, ankle), (100, "strongly bent"), (150, "bent"), (168, "slightly bent"), (181, "nearly straight")
    )


def _stride(body: Body) -> float | None:
    """Distance of the ankles across the picture, in lengths of a leg."""
    left, right, hips = body.at(ANKLES[0]), body.at(ANKLES[1]), body.middle(HIPS)
    if left is None or right is None or hips is None:
        return None
    return abs(left[0] - right[0]) / max(float(np.linalg.norm((left + right) / 2 - hips)), 1e-9)


def _step(body: Body) -> str | None:
    stride = _stride(body)
    return None if stride is None else _upto(stride, (0.2, "close together"), (0.5, "apart"), (99, "far apart"))


# Faces ---------------------------------------------------------------------------------------------------------------


def turn_of(body: Body) -> float | None:
    """How far the head is turned, in eye distances that the nose lies off the middle of the eyes: above 0 to the right."""
    if body.person.face is not None:
        right_eye, left_eye, nose = body.person.face[:3]
        distance = max(float(np.linalg.norm(left_eye - right_eye)), 0.2 * body.person.face_box[2])
        return float(nose[0] - (right_eye[0] + left_eye[0]) / 2) / distance
    nose, ears = body.at(NOSE), [body.at(joint) for joint in EARS]
    if nose is None or any(ear is None for ear in ears):
        return None
    return float(2 * (nose[0] - (ears[0][0] + ears[1][0]) / 2) / max(np.linalg.norm(ears[0] - ears[1]), 1e-9))


def head_phrase(body: Body) -> str | None:
    """Turn, tilt and nod of the head."""
    turn = turn_of(body)
    if turn is None:
        return None
    much = _upto(abs(turn), (0.15, ""), (0.4, "turned slightly to"), (0.9, "turned to"), (99, "turned far to"))
    parts = [f"{much} the {_side(turn)} of the picture" if much else "turned straight to the camera"]
    if body.person.face is not None:
        right_eye, left_eye, nose, right_mouth, left_mouth = body.person.face
        roll = float(np.degrees(np.arctan2(left_eye[1] - right_eye[1], left_eye[0] - right_eye[0])))
        # Of a head in profile the eyes' line says nothing.
        if abs(turn) < 0.9 and 7 <= abs(roll) < 60:
            parts.append(f"tilted {'slightly' if abs(roll) < 18 else 'clearly'} to the {_side(roll)}")
        eyes, mouth = (right_eye[1] + left_eye[1]) / 2, (right_mouth[1] + left_mouth[1]) / 2
        nod = (nose[1] - eyes) / max(mouth - eyes, 1e-9)
        if abs(turn) < 0.9 and mouth > eyes and not 0.42 <= nod <= 0.72:
            parts.append("apparently lowered" if nod > 0.72 else "apparently raised")
    return _and(parts)


def expression_phrase(body: Body, limits: Measures) -> str | None:
    """From blendshapes; else the mouth's width in a face that is turned to the camera: five points tell no more."""
    if body.person.blendshapes is not None:
        return _expression(body.person.blendshapes, limits)
    turn = turn_of(body)
    if body.person.face is None or turn is None:
        return None
    if abs(turn) >= 0.9:
        return "mainly its side"
    if abs(turn) >= 0.4:  # the mouth is foreshortened
        return None
    right_eye, left_eye, _, right_mouth, left_mouth = body.person.face
    width = float(np.linalg.norm(left_mouth - right_mouth) / max(np.linalg.norm(left_eye - right_eye), 1e-9))
    return _upto(
        width,
        (0.7, "a mouth that appears narrow"),
        (1.0, "a mouth that appears to be of ordinary width"),
        (1e9, "a mouth that appears drawn wide"),
    )


def _expression(scores: dict[str, float], limits: Measures) -> str:
    def both(name: str) -> float:
        return (scores.get(f"{name}Left", 0.0) + scores.get(f"{name}Right", 0.0)) / 2

    slight, strong = limits.slight_expression, limits.strong_expression
    smile, frown, open_mouth = both("mouthSmile"), both("mouthFrown"), scores.get("jawOpen", 0.0)
    parts = [
        "the mouth wide open"
        if open_mouth >= strong
        else "the mouth a little open"
        if open_mouth >= slight / 2
        else "the lips together"
    ]
    if both("browDown") >= slight:
        parts.append("lowered brows")
    elif max(scores.get("browInnerUp", 0.0), both("browOuterUp")) >= slight:
        parts.append("raised brows")
    if both("eyeBlink") >= strong:
        parts.append("eyes that appear nearly shut")
    elif both("eyeSquint") >= strong:
        parts.append("narrowed eyes")
    elif both("eyeWide") >= slight:
        parts.append("widened eyes")
    main = (
        "broad smile"
        if smile >= strong
        else "slight smile"
        if smile >= slight
        else "downturned mouth"
        if frown >= slight
        else ""
    )
    if not main:
        main = (
            "neutral expression"
            if len(parts) == 1 and open_mouth < slight
            else "tense expression"
            if both("browDown") >= slight
            else "moderate expression"
        )
    return f"what appears to be {article(main)} {main}, with {_and(parts)}"


def gaze_phrase(body: Body, limits: Measures) -> str | None:
    """The way the head points, and how the eyes depart from it where blendshapes tell."""
    turn = turn_of(body)
    if turn is None:
        return None
    head = f"to the {_side(turn)} of the picture" if abs(turn) >= 0.25 else "towards the camera"
    scores = body.person.blendshapes
    if scores is None:
        return f"apparently directed {head}, the way the head is turned"
    if (scores.get("eyeBlinkLeft", 0.0) + scores.get("eyeBlinkRight", 0.0)) / 2 >= limits.strong_expression:
        return "apparently lowered behind nearly shut eyelids"
    to_left = (scores.get("eyeLookInLeft", 0.0) + scores.get("eyeLookOutRight", 0.0)) / 2
    to_right = (scores.get("eyeLookOutLeft", 0.0) + scores.get("eyeLookInRight", 0.0)) / 2
    up = (scores.get("eyeLookUpLeft", 0.0) + scores.get("eyeLookUpRight", 0.0)) / 2
    down = (scores.get("eyeLookDownLeft", 0.0) + scores.get("eyeLookDownRight", 0.0)) / 2
    aside = [
        f"to the {side} of the picture"
        for side, score in (("left", to_left), ("right", to_right))
        if score >= 2 * limits.slight_expression
    ]
    aside += [word for word, score in (("upwards", up), ("downwards", down)) if score >= 2 * limits.slight_expression]
    if aside:
        return f"apparently turned {_and(aside)} by the eyes, while the head points {head}"
    return f"apparently directed {head}, the eyes following the turn of the head"


def action_phrase(body: Body, limits: Measures) -> str | None:
    """What joints and face show of an action; most actions cannot be measured."""
    parts = []
    for number, side in enumerate(SIDES):
        shoulder, elbow, wrist = body.at(SHOULDERS[number]), body.at(ELBOWS[number]), body.at(WRISTS[number])
        if shoulder is None or elbow is None or wrist is None:
            continue
        straight = bend(shoulder, elbow, wrist) > 140
        if straight and 60 < from_down(shoulder, wrist) < 120:
            parts.append(f"stretching the {side} arm out to the {_side(wrist[0] - shoulder[0])} of the picture")
        elif straight and from_down(shoulder, wrist) >= 120:
            parts.append(f"raising the {side} arm")
    if (body.person.blendshapes or {}).get("jawOpen", 0.0) >= limits.strong_expression:
        parts.append("apparently speaking or calling out")
    stride = _stride(body)
    if stride is not None and stride > 0.35 and not is_sitting(body):
        parts.append("apparently taking a step")
    return _and(parts) if parts else None


# What the subjects share ---------------------------------------------------------------------------------------------


def relations_of(bodies: Sequence[Body]) -> list[dict]:
    """Order, gaps, sizes and heights from boxes, and to whom the heads are turned."""
    relations = []
    for first, second in pairwise(bodies):
        relations.append(_relation(first, "to the left of", second, _gap(first, second)))
    for number, first in enumerate(bodies):
        for second in bodies[number + 1 :]:
            relations += _sizes(first, second, second is bodies[number + 1])
    for number in range(len(bodies)):
        relations += _turned(bodies, number)
    return relations


def _relation(first: Body, words: str, second: Body, detail: str | None = None) -> dict:
    return {"first": first.person.slot, "second": second.person.slot, "relation": words, "detail": detail}


def _gap(first: Body, second: Body) -> str:
    percent = round(100 * (second.person.box[0] - first.person.box[0] - first.person.box[2]) / first.width)
    if percent >= 1:
        return f"with a gap of about {percent} percent of the picture's width between them"
    if percent > -2:
        return "with hardly any gap between them"
    return f"and the two overlap across about {-percent} percent of the picture's width"


def _sizes(first: Body, second: Body, neighbours: bool) -> list[dict]:
    """Which one is taller in the picture, and which one's outline begins higher; what is alike is told of neighbours only."""
    found = []
    ratio = first.person.box[3] / second.person.box[3]
    if 1 / 1.15 < ratio < 1.15:
        if neighbours:
            found.append(_relation(first, "about as tall in the picture as", second))
    else:
        large, small = (first, second) if ratio > 1 else (second, first)
        times = max(ratio, 1 / ratio)
        words = _upto(
            times,
            (1.4, "somewhat taller in the picture than"),
            (1.8, "much taller in the picture than"),
            (99, "far taller in the picture than"),
        )
        found.append(_relation(large, words, small))
    rise = (first.person.box[1] - second.person.box[1]) / first.height
    if abs(rise) >= 0.04:
        high, low = (second, first) if rise > 0 else (first, second)
        percent = round(100 * abs(rise))
        found.append(
            _relation(
                high,
                "higher up in the picture than",
                low,
                f"the top of the outline lying about {percent} percent of the picture's height above",
            )
        )
    return found


def _turned(bodies: Sequence[Body], number: int) -> list[dict]:
    """Towards the neighbour on the side that the head is turned to, or away from the one on the other."""
    turn = turn_of(bodies[number])
    if turn is None or abs(turn) < 0.25:
        return []
    ahead, behind = (number + 1, number - 1) if turn > 0 else (number - 1, number + 1)
    if 0 <= ahead < len(bodies):
        return [_relation(bodies[number], "apparently turned with the head towards", bodies[ahead])]
    return [_relation(bodies[number], "apparently turned with the head away from", bodies[behind])]


PLACES = {
    "along the top": (slice(0, 1), slice(0, 3)),
    "on the left": (slice(1, 2), slice(0, 1)),
    "in the middle": (slice(1, 2), slice(1, 2)),
    "on the right": (slice(1, 2), slice(2, 3)),
    "along the bottom": (slice(2, 3), slice(0, 3)),
}


def background_of(lab: np.ndarray, behind: np.ndarray, limits: Measures) -> dict:
    """Colours outside the masks, as a whole and by place; what is to be seen there cannot be measured."""
    if behind.sum() < 100:
        return {"setting": "hardly anything beside the people"}
    colours = named_colours(lab[behind], BACKGROUND_SHARE)[:4]
    spread = _spread(lab[..., 0], behind)
    light = float(lab[..., 0][behind].mean())
    tone = _upto(light, (35, "a dark"), (65, "a medium-light"), (101, "a light"))
    textures = _upto(
        spread,
        (1.5, "mostly smooth, without fine detail"),
        (4.0, "moderately detailed"),
        (99, "full of edges and fine detail"),
    )
    places = []
    height, width = behind.shape
    rows, columns = [0, height // 3, 2 * height // 3, height], [0, width // 3, 2 * width // 3, width]
    for words, (down, across) in PLACES.items():
        part = (slice(rows[down.start], rows[down.stop]), slice(columns[across.start], columns[across.stop]))
        pixels = lab[part][behind[part]]
        if len(pixels) >= 0.2 * behind[part].size:
            named = named_colours(pixels, PLACE_SHARE)[:3]
            mainly = f"mainly {_and(named)}"
            places.append(f"a {mainly} area {words}")
    setting = f"{tone} scene behind the people"
    return {"setting": setting, "objects": places, "colours": colours, "textures": textures}


def light_of(lab: np.ndarray) -> dict:
    """Brightness, contrast and tint of the whole picture."""
    lightness = lab[..., 0]
    mean, spread = float(lightness.mean()), float(lightness.std())
    brightness = _upto(
        mean, (25, "very dim"), (40, "rather dim"), (55, "of medium strength"), (70, "bright"), (101, "very bright")
    )
    contrast = _upto(spread, (14, "low"), (23, "medium"), (99, "high"))
    dark, pale = round(100 * float((lightness < 20).mean())), round(100 * float((lightness > 85).mean()))
    details = [f"deep shadows over about {dark} percent of the picture"] if dark >= 3 else []
    details += (
        [
            f"very light areas over about {pale} percent of it"
            if details
            else f"very light areas over about {pale} percent of the picture"
        ]
        if pale >= 3
        else []
    )
    half = lightness.shape[1] // 2
    left, right = float(lightness[:, :half].mean()), float(lightness[:, half:].mean())
    even = "spread evenly over both halves of the picture"
    side = (
        even if abs(left - right) < 6 else f"stronger on the {'left' if left > right else 'right'} half of the picture"
    )
    tint = float(lab[..., 2].mean())
    temperature = _upto(
        tint,
        (-6, "apparently cool"),
        (6, "apparently neutral"),
        (14, "apparently slightly warm"),
        (999, "apparently warm"),
    )
    return {
        "brightness": f"{brightness} and {side}",
        "contrast": f"{contrast}, with {_and(details)}" if details else contrast,
        "temperature": f"{temperature}, judged by the picture as a whole",
    }


RATIOS = {"1 to 1": 1.0, "5 to 4": 1.25, "4 to 3": 4 / 3, "3 to 2": 1.5, "16 to 9": 16 / 9, "2 to 1": 2.0}


def camera_of(image: np.ndarray, people: np.ndarray, bodies: Sequence[Body]) -> dict:
    """Framing from the people's boxes and joints, depth of field from sharpness in and outside the masks."""
    heights = sorted(body.position.bottom - body.position.top for body in bodies)
    low, high = heights[0], heights[-1]
    fill = f"about {low}" if low == high else f"between {low} and {high}"
    height, width = image.shape[:2]
    ratio = max(width, height) / min(width, height)
    sides = min(RATIOS, key=lambda name: abs(RATIOS[name] - ratio))
    kind = "square" if ratio < 1.08 else "landscape" if width > height else "portrait"
    return {
        "framing": f"{_shot(bodies)}, in which the people fill {fill} percent of the picture's height",
        "depth_of_field": _depth(image, people),
        "picture": f"a {kind} format, with sides of about {sides}" if kind != "square" else "a square format",
    }


def _shot(bodies: Sequence[Body]) -> str:
    if not any("bottom" in body.position.cut_by for body in bodies):
        return "a full shot that ends below the people"
    if all("bottom" in body.position.cut_by for body in bodies):
        joints = [body for body in bodies if body.person.joints is not None]
        if any(body.at(joint) is not None for body in joints for joint in KNEES):
            return "a medium long shot from about the knees up"
        if any(body.at(joint) is not None for body in joints for joint in HIPS):
            return "a medium shot from about the hips up"
        return "a medium close shot of the upper bodies" if joints else "a shot whose lower edge cuts the people"
    return "a shot that shows some of the people to the feet and cuts others at the lower edge"


def _depth(image: np.ndarray, people: np.ndarray) -> str | None:
    """Sharpness outside the masks against that within, by the gradients of the lightest tenth of pixels of each."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    edges = np.hypot(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1))
    around = cv2.dilate(people.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(bool)
    if people.sum() < 100 or (~around).sum() < 100:
        return None
    inside, outside = np.percentile(edges[people], 95), np.percentile(edges[~around], 95)
    ratio = float(outside / max(inside, 1e-9))
    return _upto(
        ratio,
        (0.45, "apparently shallow, with the surroundings clearly softer than the people"),
        (0.8, "apparently moderate, with the surroundings a little softer than the people"),
        (1e9, "apparently deep, with the surroundings about as sharp as the people"),
    )
