"""Standing, sitting, kneeling or lying: told only where the legs show it.

A picture flattens what points at the camera: of a person who sits or kneels facing it, the thighs or shins look short and hang
down as those of a person who stands. So a posture needs a leg that is seen from hip to ankle, its angles come from MediaPipe's
joints in space where there are any, and a leg that stands has its full length in the picture besides.
"""

from typing import Literal

from .bodies import ANKLES, HIPS, KNEES, SHOULDERS, Body, from_down, length, torso_of

Posture = Literal["standing", "sitting", "kneeling", "lying"]
Leg = tuple[int, int, int]  # joints of hip, knee and ankle

# Degrees from straight down: a limb that hangs, one that is about level, and one that is level or rises.
STEEP, LEVEL, FLAT = 35.0, (55.0, 115.0), 60.0
STRAIGHT = 145.0  # degrees at the knee
# Of one who sits: degrees at the knee, and of the shin from straight down. Of one who squats the shins lean far forward.
ON_A_SEAT, OFF_A_SEAT = (65.0, 140.0), 42.0
KNEELING = 125.0
# Thigh and shin of a standing adult are about as long as each other, and both together 1.7 times the trunk.
SHORTENED = 0.6
LEAST_LEG = 1.2  # trunks
UPRIGHT = 50.0  # degrees of the trunk from straight up
LYING = (65.0, 115.0)


def posture_of(body: Body) -> Posture | None:
    """None where the legs do not show it."""
    seen = [leg for leg in zip(HIPS, KNEES, ANKLES, strict=True) if body.sees(*leg[:2])]
    whole = [leg for leg in seen if body.sees(*leg)]
    trunk = trunk_angle(body)
    if not whole or trunk is None:
        return None
    if any(_stands(body, leg) for leg in whole) and all(_hangs(body, leg) for leg in seen):
        return "standing"
    if LYING[0] < trunk < LYING[1]:
        _, _, width, height = body.person.box
        flat = all(_is_between(body.from_down(hip, knee), LYING) for hip, knee, _ in seen)
        return "lying" if flat and width > 1.2 * height else None
    if trunk > UPRIGHT or any(_looks_extended(body, leg) for leg in whole):
        return None
    if any(_sits(body, leg) for leg in whole) and all(_is_between(body.from_down(*leg[:2]), LEVEL) for leg in seen):
        return "sitting"
    return "kneeling" if len(whole) == len(seen) and all(_kneels(body, leg) for leg in whole) else None


def trunk_angle(body: Body) -> float | None:
    """Degrees from straight up, as the picture shows it; None where shoulders or hips are not both seen."""
    shoulders, hips = body.middle(SHOULDERS), body.middle(HIPS)
    return None if shoulders is None or hips is None else 180 - from_down(hips, shoulders)


def is_on_foot(body: Body) -> bool:
    """Both legs reach down from the hips, one of them straight: standing, walking or running."""
    legs = list(zip(HIPS, KNEES, ANKLES, strict=True))
    if not all(body.sees(*leg) for leg in legs):
        return False
    down = all(_looks_extended(body, leg) and body.from_down(leg[0], leg[2]) < 50 for leg in legs)
    return down and any(body.bend(*leg) > STRAIGHT for leg in legs)


def _stands(body: Body, leg: Leg) -> bool:
    hip, knee, ankle = leg
    steep = body.from_down(hip, knee) < STEEP and body.from_down(knee, ankle) < STEEP
    return steep and body.bend(*leg) > STRAIGHT and _looks_extended(body, leg)


def _hangs(body: Body, leg: Leg) -> bool:
    """Whether a leg stands, or its thigh hangs down and no ankle is seen of it."""
    if body.sees(leg[2]):
        return _stands(body, leg)
    thigh = length(body.at(leg[0]), body.at(leg[1]))
    return body.from_down(*leg[:2]) < STEEP and thigh > SHORTENED * LEAST_LEG / 2 * torso_of(body)


def _looks_extended(body: Body, leg: Leg) -> bool:
    """Thigh and shin hang in the picture, neither is shortened beside the other, and both together are long beside the trunk."""
    hip, knee, ankle = (body.at(joint) for joint in leg)
    thigh, shin = length(hip, knee), length(knee, ankle)
    hang = from_down(hip, knee) < LEVEL[0] and from_down(knee, ankle) < LEVEL[0]
    alike = min(thigh, shin) > SHORTENED * max(thigh, shin)
    return hang and alike and thigh + shin > LEAST_LEG * torso_of(body)


def _sits(body: Body, leg: Leg) -> bool:
    hip, knee, ankle = leg
    level = _is_between(body.from_down(hip, knee), LEVEL)
    return level and body.from_down(knee, ankle) < OFF_A_SEAT and _is_between(body.bend(*leg), ON_A_SEAT)


def _kneels(body: Body, leg: Leg) -> bool:
    hip, knee, ankle = leg
    return (
        body.from_down(hip, knee) < LEVEL[0]
        and body.from_down(knee, ankle) > FLAT
        and body.bend(hip, knee, ankle) < KNEELING
    )


def _is_between(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] < value < limits[1]
