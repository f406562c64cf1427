"""Posture, arms, legs and action, from MediaPipe's joints; what is hidden or outside the picture is left out."""

import numpy as np

from ...config.multibind_annotation import Measures
from ...language import listed
from .bodies import ANKLES, ELBOWS, HIPS, KNEES, NOSE, SHOULDERS, SIDES, WRISTS, Body, side_of, torso_of, word_below
from .postures import LYING, UPRIGHT, is_on_foot, posture_of, trunk_angle


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
    shown = f"{_shown(body)}{_lean(body)}"
    # How wide the shoulders are beside the trunk's height says nothing where the trunk has no height.
    return f"{shown}, with the shoulders {hedge}{_facing(body)}" if _has_upright_trunk(body) else shown


def _has_upright_trunk(body: Body) -> bool:
    """Whether up and down of the body are those of the picture, as far as is known."""
    angle = trunk_angle(body)
    return angle is None or angle < UPRIGHT


def _shown(body: Body) -> str:
    """The posture, else how far down the body is seen."""
    posture = posture_of(body)
    if posture is not None:
        return posture if posture == "standing" else f"apparently {posture}"
    if any(body.sees(joint) for joint in ANKLES):
        return "down to the feet"
    if any(body.sees(joint) for joint in KNEES):
        return "down to the knees"
    return "from the chest up" if body.middle(HIPS) is None else "from the hips up"


def _lean(body: Body) -> str:
    angle, posture = trunk_angle(body), posture_of(body)
    if angle is None or posture == "lying":
        return ""
    if angle < 8:
        return " upright" if posture == "standing" else ", upright"
    if angle > LYING[1]:
        return ", with the shoulders below the hips in the picture"
    if angle > LYING[0]:
        return ", with the trunk about level in the picture"
    across = body.middle(SHOULDERS)[0] - body.middle(HIPS)[0]
    return f", leaning {'slightly' if angle < 20 else 'clearly'} to the {side_of(across)} of the picture"


def _facing(body: Body) -> str:
    left, right = body.at(SHOULDERS[0]), body.at(SHOULDERS[1])
    across = (left[0] - right[0]) / max(torso_of(body), 1e-9)
    if across < -0.25:
        return "turned away from the camera"
    if across > 0.55:
        return "turned towards the camera"
    nose = body.at(NOSE)
    if nose is None:
        return "turned sideways"
    side = side_of(nose[0] - (left[0] + right[0]) / 2)
    return f"turned {'halfway' if across > 0.25 else 'mostly'} to the {side} of the picture"


def arms_phrase(body: Body) -> str | None:
    """Each arm that is seen from shoulder to elbow."""
    if _has_upright_trunk(body) and _crossed(body):
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
    low = (shoulders[0][1] + shoulders[1][1]) / 2 + torso_of(body)
    turned = [(point[0] - middle) * across for point in wrists]
    return turned[0] < 0 < turned[1] and all(point[1] < low for point in wrists)


def _arm(body: Body, side: int) -> str | None:
    joints = SHOULDERS[side], ELBOWS[side], WRISTS[side]
    if not body.sees(*joints[:2]):
        return None
    words = word_below(
        body.from_down(*joints[:2]),
        (25, "hanging down from the shoulder"),
        (65, "held a little away from the body"),
        (115, "raised to about shoulder height"),
        (181, "raised above the shoulder"),
    )
    if not body.sees(*joints):
        return words if _has_upright_trunk(body) else None
    angle = body.bend(*joints)
    elbow_words = word_below(
        angle, (70, "sharply bent"), (115, "bent"), (150, "slightly bent"), (181, "nearly straight")
    )
    if not _has_upright_trunk(body):  # down in the picture is not down along the body
        return f"{elbow_words} at the elbow"
    return f"{words} and {elbow_words} at the elbow, with the hand {_hand(body, side)}"


def _hand(body: Body, side: int) -> str:
    """Where the hand is, in terms of the body and of the picture."""
    shoulder, wrist = body.at(SHOULDERS[side]), body.at(WRISTS[side])
    middle, hips, nose = body.middle(SHOULDERS), body.middle(HIPS), body.at(NOSE)
    middle = shoulder if middle is None else middle
    torso = torso_of(body) if body.middle(SHOULDERS) is not None else 1.5 * body.shoulder_width
    down = (wrist[1] - middle[1]) / max(torso if hips is None else hips[1] - middle[1], 1e-9)
    if nose is not None and wrist[1] < nose[1]:
        height = "at the height of the head"
    else:
        height = "at the height of the " + word_below(
            down, (0.2, "shoulders"), (0.6, "chest"), (0.95, "waist"), (1.25, "hips"), (99, "thighs")
        )
    out = wrist[0] - middle[0]
    if abs(out) > 1.1 * body.shoulder_width:
        return f"{height}, far out to the {side_of(out)} of the picture"
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
        told = listed([f"the {side} knee {words}" for side, words in seen.items()])
    return f"{step}, with {told}" if step else f"held with {told}"


def _knee(body: Body, side: int) -> str | None:
    joints = HIPS[side], KNEES[side], ANKLES[side]
    if not body.sees(*joints):
        return None
    return word_below(
        body.bend(*joints), (100, "strongly bent"), (150, "bent"), (168, "slightly bent"), (181, "nearly straight")
    )


def stride_of(body: Body) -> float | None:
    """Distance of the ankles across the picture, in lengths of a leg."""
    left, right, hips = body.at(ANKLES[0]), body.at(ANKLES[1]), body.middle(HIPS)
    if left is None or right is None or hips is None:
        return None
    return abs(left[0] - right[0]) / max(float(np.linalg.norm((left + right) / 2 - hips)), 1e-9)


def _step(body: Body) -> str | None:
    stride = stride_of(body)
    return None if stride is None else word_below(stride, (0.2, "close together"), (0.5, "apart"), (99, "far apart"))


def action_phrase(body: Body, limits: Measures) -> str | None:
    """What joints and face show of an action; most actions cannot be measured."""
    parts = []
    for number, side in enumerate(SIDES if _has_upright_trunk(body) else ()):
        shoulder, elbow, wrist = SHOULDERS[number], ELBOWS[number], WRISTS[number]
        if not body.sees(shoulder, elbow, wrist) or body.bend(shoulder, elbow, wrist) <= 140:
            continue
        angle = body.from_down(shoulder, wrist)
        if 60 < angle < 120:
            parts.append(f"stretching the {side} arm out {_way(body.reach(shoulder, wrist))}")
        elif angle >= 120:
            parts.append(f"raising the {side} arm")
    if (body.person.blendshapes or {}).get("jawOpen", 0.0) >= limits.strong_expression:
        parts.append("apparently speaking or calling out")
    stride = stride_of(body)
    if stride is not None and stride > 0.35 and is_on_foot(body):
        parts.append("apparently taking a step")
    return listed(parts) if parts else None


def _way(reach: np.ndarray) -> str:
    """Of a level limb: x, y and, where it is known, z."""
    if len(reach) == 3 and abs(reach[2]) > abs(reach[0]):
        return "towards the camera" if reach[2] < 0 else "away from the camera"
    return f"to the {side_of(reach[0])} of the picture"
