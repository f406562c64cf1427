"""The bindings in their construction (B.2), with the binding distance (B.3) met by choosing fragments by their words.

Each function adds the core to the draft and returns whether it succeeded; after a failure the draft is begun anew.
"""

from .draft import Draft, noun_phrase, with_determiner
from .fragments import Fragment, Need

WITHOUT_MODIFIER = 0.6
TRIES = 6


def core(draft: Draft, mode: str, spare: int) -> bool:
    """spare: the most words that the core may have."""
    attachment = draft.construction.attachment
    if attachment == "adjacent":
        return _adjacent(draft, mode, spare)
    if attachment == "predicative":
        return _predicative(draft, mode, spare)
    return _deferred(draft, mode, spare, attachment == "anaphoric")


# Attributes directly before their objects.


def _adjacent(draft: Draft, mode: str, spare: int) -> bool:
    bindings, things = draft.words.bindings, draft.words.things
    phrases = [noun_phrase(binding, thing) for binding, thing in zip(bindings, things, strict=True)]
    low, high = draft.specification.distance
    rest = spare - sum(words for _, words in phrases) - 1
    gaps = len(phrases) - 1
    tops = [high] * gaps
    if gaps == 2:  # the smaller of the two gaps is in the window
        tops[int(draft.generator.random() * 2)] += 3
    if rest < low * gaps:
        return False
    predicate = mode == "subject" and (high < 4 or draft.generator.random() < 0.3)
    if predicate:
        rest -= 3
    draft.add(with_determiner(draft, phrases[0][0]), phrases[0][1] + 1)
    for index in range(gaps):
        most = min(tops[index], rest - low * (gaps - 1 - index))
        if index == 1:
            pool = draft.pools["links second"]
        elif mode == "subject" and not predicate:
            pool = draft.pools["links verbal"]
        elif predicate or mode != "nominal" or draft.generator.random() < 0.4:
            pool = draft.pools["links joint"]
        else:
            pool = draft.pools["links spatial"]
        before = draft.written
        if gaps == 2 and index == 0 and most >= low and low <= 1 and pool is draft.pools["links joint"]:
            draft.add(",", 0)  # a, b and c
        elif not _gap(draft, pool, low - 1, most - 1):
            return False
        draft.add(with_determiner(draft, phrases[index + 1][0]), phrases[index + 1][1] + 1)
        rest -= draft.written - before - phrases[index + 1][1]
    if predicate:
        found = draft.draw(draft.plural["predicates"], 2, max(3, min(rest + 3, 9)))
        if found is None:
            return False
        draft.add_fragment(found)
    return True


def _gap(draft: Draft, links, low: int, high: int) -> bool:
    """Between two core phrases, without the determiner: perhaps a modifier of the first, then a link to the second."""
    low = max(low, 0)
    if high < low:
        return False
    for _ in range(TRIES):
        aim = low + int(draft.generator.random() * (high - low + 1))
        link = draft.draw(links, 1, aim)
        if link is None:
            continue
        least, most = low - link.words, high - link.words
        if least <= 0 and (most < 2 or draft.generator.random() < WITHOUT_MODIFIER):
            draft.add_fragment(link)
            return True
        if _modify(draft, max(least, 1), most, draft.pools):
            draft.add_fragment(link)
            return True
    return False


def _modify(draft: Draft, low: int, high: int, pools) -> bool:
    """A modifier of low to high words: the place, a relative clause, a distractor, or two of these."""
    chance = draft.generator.random()
    place = draft.word_counts["place"]
    if chance < 0.35 and not draft.told & Need.place and place <= high:
        draft.add(draft.phrases["place"], place)
        draft.told |= Need.place
        low, high = low - place, high - place
        if low <= 0 and (high < 3 or chance < 0.25):
            return True
        found = draft.draw(pools["where" if chance < 0.25 else "modifiers"], max(low, 2), high)
        if found is None:
            return low <= 0
        draft.add_fragment(found)
        return True
    if (
        high >= 5
        and chance < 0.6
        and draft.construction.attachment == "adjacent"
        and _distract_between(draft, low, high)
    ):
        return True
    found = draft.draw(pools["modifiers"], low, high)
    if found is None:
        return False
    draft.add_fragment(found)
    return True


def _distract_between(draft: Draft, low: int, high: int) -> bool:
    waiting = draft.words.distractors[draft.distracted :]
    if not waiting:
        return False
    phrase, words = noun_phrase(waiting[0], draft.words.distracting[draft.distracted])
    found = draft.draw(draft.pools["distractors between"], low - words - 1, high - words - 1)
    if found is None:
        return False
    draft.add(draft.fill(found.text, d=with_determiner(draft, phrase)), found.words + words + 1)
    draft.distracted += 1
    return True


# Attributes detached from their objects.


def _predicative(draft: Draft, mode: str, spare: int) -> bool:
    generator, things = draft.generator, draft.words.things
    low, high = draft.specification.distance
    tops = [high, high]
    tops[int(generator.random() * 2)] += 3
    spare -= 4 + things[0].words + things[1].words
    copulas = mode == "subject" and generator.random() < 0.65
    if copulas:
        if draft.determiner == "one":
            draft.determiner = "the"
        joining = draft.draw(draft.pools["conjunctions"], 1, max(1, spare - 2 * low))
        if joining is None:
            return False
    else:
        least = 2 if mode == "subject" else 1
        links = draft.pools[
            "links verbal" if mode == "subject" else "links joint" if mode != "nominal" else "links spatial"
        ]
        joining = draft.draw(links, 1, max(least, min(8, spare - 2 * max(low, 2))))
        if joining is None:
            return False
    spare -= joining.words
    for index, binding in enumerate(draft.words.bindings):
        most = min(tops[index], spare - (low if index == 0 else 0))
        draft.add(with_determiner(draft, binding.object), things[index].words + 1)
        before = draft.written
        becomes = Need.becomes if binding.attributes[0] in draft.grammar.lexicon.becomes else 0
        if not _predicate_of(draft, binding.attributes[0], "copulas" if copulas else "relatives", low, most, becomes):
            return False
        spare -= draft.written - before - 1
        if index == 0:
            draft.add_fragment(joining)
    return True


def _predicate_of(draft: Draft, attribute: str, part: str, low: int, high: int, becomes: int) -> bool:
    for _ in range(TRIES):
        found = draft.draw(draft.pools[part], 1, high, becomes)
        if found is None:
            return False
        least, most = low - found.words, high - found.words
        if least <= 0 or (part == "copulas" and _modify(draft, least, most, draft.pools)):
            draft.add(draft.fill(found.text, a=attribute), found.words + found.more + 1)
            return True
    return False


# Both objects first, then the attributes.


def _deferred(draft: Draft, mode: str, spare: int, anaphoric: bool) -> bool:
    generator, things = draft.generator, draft.words.things
    (first,), (second,) = (binding.attributes for binding in draft.words.bindings)
    low, high = draft.specification.distance
    spare -= 4 + things[0].words + things[1].words
    kind, predicate, verbal = _plan(draft, mode, anaphoric)
    if verbal:
        links = draft.pools["links verbal"]
    elif mode == "nominal" and not kind and generator.random() < 0.5:
        links = draft.pools["links spatial"]
    else:
        links = draft.pools["links joint"]
    link = draft.draw(links, 1, max(2 if verbal else 1, min(8, spare - low - 4)))
    if link is None:
        return False
    spare -= link.words
    stretch = None
    for _ in range(TRIES):
        assignment = draft.draw(draft.plural[_PARTS[kind]] if not anaphoric else draft.plural["references"], 1, high)
        if assignment is None:
            return False
        least = low - assignment.words
        most = min(high, spare - assignment.more) - assignment.words
        if most < (2 if predicate else 0) or most < least:
            continue
        stretch = _stretch(draft, max(least, 0), most, predicate)
        if stretch is not None:
            break
    if stretch is None:
        return False
    draft.add(with_determiner(draft, draft.words.bindings[0].object), things[0].words + 1)
    draft.add_fragment(link)
    draft.add(with_determiner(draft, draft.words.bindings[1].object), things[1].words + 1)
    for found in stretch:
        draft.add_fragment(found)
    references = ("the former", "the latter") if generator.random() < 0.65 else ("the first", "the second")
    if draft.specification.reversed and anaphoric:
        references, first, second = references[::-1], second, first
    text = draft.fill(assignment.text, a=first, b=second, r=references[0], s=references[1])
    draft.add(text, assignment.words + assignment.more + 2)
    return True


_PARTS = {
    "": "references",
    "predicate": "respective predicate",
    "appositive": "respective appositive",
    "clause": "respective clause",
}


def _plan(draft: Draft, mode: str, anaphoric: bool) -> tuple[str, bool, bool]:
    """How a respective assignment is attached ("" for an anaphoric one), whether a predicate comes first, and whether the
    two objects are linked by a verb.
    """
    chance = draft.generator.random()
    short = draft.specification.distance[1] < 7
    if anaphoric:
        verbal = mode == "subject" and (short or chance < 0.4)
        return "", mode == "subject" and not verbal, verbal
    if mode == "subject":
        if chance < 0.55:
            return "predicate", False, False
        return "clause", not (short or chance < 0.75), short or chance < 0.75
    return ("appositive" if chance < 0.6 else "clause"), False, False


def _stretch(draft: Draft, low: int, high: int, predicate: bool) -> list[Fragment] | None:
    """What stands between the last object and the attributes' clause: a predicate, the place, a modifier."""
    found: list[Fragment] = []
    words = 0
    told = draft.told
    if predicate:
        first = draft.draw(draft.plural["predicates"], 2, high)
        if first is None:
            return None
        found.append(first)
        words = first.words
    place = draft.word_counts["place"]
    if not told & Need.place and words + place <= high and draft.generator.random() < 0.5:
        found.append(PLACE)
        words += place
    if words < low or (words == 0 and high >= 3 and draft.generator.random() < 0.4):
        part = "adverbials" if predicate else "modifiers"
        more = draft.draw(draft.plural[part], max(low - words, 1), high - words)
        if more is None:
            return None if words < low else found
        found.append(more)
    return found


PLACE = Fragment(0, "{place}", int(Need.place), 0, ("place",))
