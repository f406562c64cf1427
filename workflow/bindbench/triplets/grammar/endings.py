"""How a sentence ends: distractors, the context that has not been told, and the register's last words, up to the length.

Distractors stand before the core or after it, never inside a deferred stretch (B.3).
"""

from .draft import TOLD, Draft, noun_phrase, with_determiner
from .fragments import Need

TAILS = 3  # the most endings of one sentence


def distractor_words(draft: Draft) -> int:
    """The least words that the distractors not yet written take."""
    waiting = draft.words.distracting[draft.distracted :]
    return sum([thing.words + 2 for thing in waiting]) + 1 + (len(waiting) > 1) if waiting else 0


def distract(draft: Draft, part: str, count: int, high: int) -> bool:
    """Writes the next distractors in one phrase; part: "distractors before" or "distractors after"."""
    if not count:
        return True
    start = draft.distracted
    listed, words = [], 0
    for binding, thing in zip(
        draft.words.distractors[start : start + count], draft.words.distracting[start : start + count], strict=True
    ):
        phrase, length = noun_phrase(binding, thing)
        listed.append(with_determiner(draft, phrase))
        words += length + 1
    if count > 1:
        listed[-1] = "and " + listed[-1]
        words += 1
    text = (" " if count == 2 else ", ").join(listed).replace(", and", " and")
    found = draft.draw(draft.pools[part], 1, 1 if draft.tight else max(2, high - words))
    if found is None:
        return False
    draft.add(draft.fill(found.text, d=text), found.words + words)
    draft.distracted += count
    return True


def tell_context(draft: Draft, mode: str) -> bool:
    """The context and the distractors that have not been written. False where these do not fit.

    A place belongs to the core, so it comes before distractors; "all of them at the market" comes after.
    """
    room = draft.high - draft.written - distractor_words(draft)
    if room < 0:
        return False
    limit = room if draft.generator.random() < 0.85 else int(draft.generator.random() * room)
    adjacent = draft.construction.attachment == "adjacent"
    if adjacent:
        _context(draft, limit, mode)
    if not distract(
        draft, "distractors after", len(draft.words.distractors) - draft.distracted, draft.high - draft.written
    ):
        return False
    if not adjacent:
        _context_of_predication(draft, min(limit, draft.high - draft.written))
    return True


def end_sentence(draft: Draft) -> bool:
    """Adds endings until the sentence has between low and high words. False where it cannot."""
    generator = draft.generator
    low, high = draft.low - draft.written, draft.high - draft.written
    if high < 0:
        return False
    for count in range(TAILS):
        low, high = draft.low - draft.written, draft.high - draft.written
        if low <= 0 and (high < 2 or count or generator.random() < 0.3):
            return True
        if not _tail(draft, low if count or low < 15 else low // 2, high):
            return low <= 0
    return draft.written >= draft.low


def _context(draft: Draft, aim: int, mode: str) -> None:
    """The place, the time and the weather, as far as they fit and were not told."""
    before = draft.written
    if draft.tell_place(aim):
        aim -= draft.written - before
        if draft.pieces[-1] == draft.phrases["place"] and draft.generator.random() < 0.3:
            found = draft.draw(draft.pools["where"], 3, aim)
            if found is not None:
                draft.add_fragment(found)
                return
    if draft.voice.group == "listing":
        found = draft.draw(draft.pools["tails context"], 1, 2)
        if found is not None and found.words + draft.context_words(found) <= aim:
            draft.add(",", 0)
            draft.add_fragment(found)
        return
    # "The clerk saw a lamp beside a chair at dusk", but not "was hard to overlook, unlike a chair at dusk".
    for name in ("when", "weather") if mode == "nominal" else ():
        if draft.untold(name) and draft.word_counts[name] <= aim and draft.generator.random() < TOLD:
            draft.tell(name)
            aim -= draft.word_counts[name]
    _weather_clause(draft, aim)


def _context_of_predication(draft: Draft, aim: int) -> None:
    """The same after an attribute that is predicated, where "was red at a market" would mean another thing."""
    if draft.place_fits(aim - 3) and draft.generator.random() < 0.9:
        many = len(draft.words.bindings) + len(draft.words.distractors) > 2
        draft.add(", all of them" if many else ", both of them", 3)
        before = draft.written
        draft.tell_place(aim - 3)
        aim -= draft.written - before + 3
    _weather_clause(draft, aim)


def _weather_clause(draft: Draft, aim: int) -> None:
    if draft.phrases["sky"] and not draft.told & Need.weather and draft.word_counts["sky"] < aim:
        draft.add(", while", 1)
        draft.tell("sky")


def _tail(draft: Draft, low: int, high: int) -> bool:
    """One of the register's endings, or a shared one; a shorter one where none has at least low words."""
    for part, least in (("tails", low), ("tails", 1), ("endings", 1)):
        found = draft.draw(draft.pools[part], max(least, 1), high)
        if found is not None:
            draft.add_fragment(found)
            return True
    return False
