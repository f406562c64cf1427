"""What joins two subjects: order, gaps, sizes and heights from their boxes, and to whom the heads are turned."""

from collections.abc import Sequence
from itertools import pairwise

from .bodies import Body, word_below
from .faces import turn_of


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
        words = word_below(
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
