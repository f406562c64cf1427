"""Turn of the head, expression and gaze: from five landmarks of the face, and blendshapes where there are any."""

import numpy as np

from ...config.multibind_annotation import Measures
from ...language import article, listed
from .bodies import EARS, NOSE, Body, side_of, word_below


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
    much = word_below(abs(turn), (0.15, ""), (0.4, "turned slightly to"), (0.9, "turned to"), (99, "turned far to"))
    parts = [f"{much} the {side_of(turn)} of the picture" if much else "turned straight to the camera"]
    if body.person.face is not None:
        right_eye, left_eye, nose, right_mouth, left_mouth = body.person.face
        roll = float(np.degrees(np.arctan2(left_eye[1] - right_eye[1], left_eye[0] - right_eye[0])))
        # Of a head in profile the eyes' line says nothing.
        if abs(turn) < 0.9 and 7 <= abs(roll) < 60:
            parts.append(f"tilted {'slightly' if abs(roll) < 18 else 'clearly'} to the {side_of(roll)} of the picture")
        eyes, mouth = (right_eye[1] + left_eye[1]) / 2, (right_mouth[1] + left_mouth[1]) / 2
        nod = (nose[1] - eyes) / max(mouth - eyes, 1e-9)
        if abs(turn) < 0.9 and mouth > eyes and not 0.42 <= nod <= 0.72:
            parts.append("apparently lowered" if nod > 0.72 else "apparently raised")
    return listed(parts)


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
    return word_below(
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
    return f"what appears to be {article(main)} {main}, with {listed(parts)}"


def gaze_phrase(body: Body, limits: Measures) -> str | None:
    """The way the head points, and how the eyes depart from it where blendshapes tell."""
    turn = turn_of(body)
    if turn is None:
        return None
    head = f"to the {side_of(turn)} of the picture" if abs(turn) >= 0.25 else "towards the camera"
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
        return f"apparently turned {listed(aside)} by the eyes, while the head points {head}"
    return f"apparently directed {head}, the eyes following the turn of the head"
