"""The bindings in their construction (B.2), with the binding distance (B.3) met by choosing fragments by their words.

Each function adds the core to the draft and returns whether it succeeded; after a failure the draft is begun anew.
"""

from .draft import Draft, noun_phrase, with_determiner
from .fragments import Fragment, Need, Pool

WITHOUT_MODIFIER = 0.6
CHANGING = 0.5  # chance that an attribute that can come about has come about
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
        if predicate:
            part = "links and"
        elif index == 1:
            part = "links second"
        elif mode == "subject":
            part = "links verbal"
        else:
            part = _named(draft, mode)
        before = draft.written
        if gaps == 2 and index == 0 and most >= low and low <= 1 and part == "links and":
            draft.add(",", 0)  # a, b and c
        elif not _gap(draft, draft.pools[part], low - 1, most - 1):
            return False
        draft.add(with_determiner(draft, phrases[index + 1][0]), phrases[index + 1][1] + 1)
        rest -= draft.written - before - phrases[index + 1][1]
    if predicate:
        found = draft.draw(draft.plural["predicates"], 2, max(3, min(rest + 3, 9)))
        if found is None:
            return False
        draft.add_fragment(found)
    return True


def _named(draft: Draft, mode: str) -> str:
    """The links that can follow what the opening has said."""
    chance = draft.generator.random()
    if mode == "nominal":
        return "links spatial" if chance < 0.5 else "links and" if chance < 0.85 else "links joint"
    return "links and" if chance < 0.65 else "links joint"


def _gap(draft: Draft, links: Pool, low: int, high: int) -> bool:
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
        apart = links is draft.pools["links spatial"]
        if _modify(draft, max(least, 1), most, "modifiers apart" if apart else "modifiers"):
            if apart:
                draft.add(",", 0)
            draft.add_fragment(link)
            return True
    return False


def _modify(draft: Draft, low: int, high: int, part: str = "modifiers") -> bool:
    """A modifier of low to high words: the place, a relative clause, a distractor, or two of these."""
    chance = draft.generator.random()
    if chance < 0.55 and draft.place_fits(high):
        return _modify_by_place(draft, low, high, chance < 0.15)
    if (
        high >= 5
        and chance < 0.6
        and draft.construction.attachment == "adjacent"
        and _distract_between(draft, low, high)
    ):
        return True
    found = draft.draw(draft.pools[part], low, high)
    if found is None:
        return False
    draft.add_fragment(found)
    return True


def _modify_by_place(draft: Draft, low: int, high: int, described: bool) -> bool:
    """The place, with what it is like where it is described or the place alone has too few words."""
    place = draft.word_counts["place"]
    if not described and place >= low:
        return draft.tell_place(high)
    found = draft.draw(draft.pools["where"], max(low - place, 3), high - place)
    if found is None:
        return place >= low and draft.tell_place(high)
    draft.tell_place(high, alone=True)
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
    tops[int(generator.random() * 2)] += 4 if draft.told & Need.place else 1 + draft.word_counts["place"]
    spare -= 4 + things[0].words + things[1].words
    copulas = mode == "subject" and generator.random() < 0.75
    if copulas and (draft.determiner == "one" or generator.random() < 0.95):
        draft.determiner = "the"
    if copulas:
        joining = draft.draw(draft.pools["conjunctions"], 1, spare - 2 * low)
    else:
        low = max(low, 2)
        links = draft.pools["links verbal" if mode == "subject" else _named(draft, mode)]
        joining = draft.draw(links, 1, min(9, spare - 2 * low))
    if joining is None:
        return False
    spare -= joining.words
    for index, binding in enumerate(draft.words.bindings):
        most = min(tops[index], spare - (low if index == 0 else 0))
        draft.add(with_determiner(draft, binding.object), things[index].words + 1)
        before = draft.written
        part = "copulas" if copulas else "relatives"
        if binding.attributes[0] in draft.grammar.lexicon.becomes and generator.random() < CHANGING:
            part += " of change"
        if not _predicate_of(draft, binding.attributes[0], part, low, most, modified=copulas):
            return False
        spare -= draft.written - before - 1
        if index == 0:
            draft.add_fragment(joining)
    return True


def _predicate_of(draft: Draft, attribute: str, part: str, low: int, high: int, modified: bool) -> bool:
    """With low to high words between the object and its attribute; modified: also by a modifier of the object."""
    for _ in range(TRIES):
        found = draft.draw(draft.pools[part], 1, high)
        if found is None:
            return False
        least, most = low - found.words, high - found.words
        if least <= 0 or (modified and _modify(draft, least, most)):
            draft.add(draft.fill(found.text, a=attribute), found.words + found.more + 1)
            draft.use(found)
            return True
    return False


# Both objects first, then the attributes.


def _deferred(draft: Draft, mode: str, spare: int, anaphoric: bool) -> bool:
    things = draft.words.things
    low, high = draft.specification.distance
    spare -= 4 + things[0].words + things[1].words
    attached, middle, linking = _plan(draft, mode, anaphoric)
    longest = 2 if draft.tight else min(8 if linking == "links verbal" else 4, spare - low - 4)
    link = draft.draw(draft.pools[linking], 1, max(2 if linking == "links verbal" else 1, longest))
    if link is None:
        return False
    spare -= link.words
    for _ in range(TRIES):
        assignment = draft.draw(draft.plural[attached], min(4, low) if draft.tight else 1, high)
        if assignment is None:
            return False
        if draft.tight and assignment.more > 2:
            continue
        most = min(high, spare - assignment.more) - assignment.words
        least = max(low - assignment.words, 0)
        stretch = _stretch(draft, least, most, middle) if most >= least else None
        if stretch is not None:
            break
    else:
        return False
    draft.add(with_determiner(draft, draft.words.bindings[0].object), things[0].words + 1)
    draft.add_fragment(link)
    draft.add(with_determiner(draft, draft.words.bindings[1].object), things[1].words + 1)
    for found in stretch:
        draft.add_fragment(found)
    _assign(draft, assignment, anaphoric)
    return True


def _plan(draft: Draft, mode: str, anaphoric: bool) -> tuple[str, str, str]:
    """The part that assigns the attributes, what may stand before it (a predicate, a modifier of both, only the place), and
    the links between the two objects.
    """
    chance = draft.generator.random()
    verbal = mode == "subject" and (draft.specification.distance[1] < 7 or chance < 0.4)
    if not anaphoric and mode == "subject" and (draft.tight or draft.generator.random() < 0.6):
        return "respective predicate", "both", "links and"
    assigning = "references" if anaphoric else "respective clause"
    if verbal:
        return assigning, "place", "links verbal"
    if mode == "subject":
        return assigning, "predicate", "links and"
    if not anaphoric and chance < (1 if draft.tight and draft.specification.distance[1] < 7 else 0.4):
        return "respective appositive", "", "links and"
    return assigning, "both", _named(draft, mode)


def _stretch(draft: Draft, low: int, high: int, middle: str) -> list[Fragment] | None:
    """What stands between the last object and the attributes' clause, of low to high words."""
    found: list[Fragment] = []
    words = 0
    if middle == "predicate":
        first = draft.draw(draft.plural["predicates"], 2, high)
        if first is None:
            return None
        found.append(first)
        words = first.words
    if middle and draft.place_fits(high - words) and draft.generator.random() < 0.85:
        words += draft.word_counts["place"]
        time = draft.word_counts["when"]
        if draft.untold("when") and low <= words + time <= high and draft.voice.group != "listing":
            found.append(PLACE_AND_TIME)
            words += time
        else:
            found.append(PLACE)
    part = ""
    if middle == "both" and (words < low or (not found and high > 3 and draft.generator.random() < 0.3)):
        part = "modifiers of both"
    elif found and words < low:
        part = "where" if found[-1] is PLACE else "adverbials"
    if part:
        more = draft.draw(draft.plural[part], low - words, high - words)
        if more is not None:
            found.append(more)
            words += more.words
    return found if words >= low else None


PLACE_AND_TIME = Fragment(0, "{place} {when}", int(Need.place | Need.when), 0, ("place", "when"))
PLACE = Fragment(0, "{place}", int(Need.place), 0, ("place",))


def _assign(draft: Draft, assignment: Fragment, anaphoric: bool) -> None:
    (first,), (second,) = (binding.attributes for binding in draft.words.bindings)
    if anaphoric:
        references = ("the former", "the latter") if draft.generator.random() < 0.65 else ("the first", "the second")
        if draft.specification.reversed:
            references, first, second = references[::-1], second, first
        draft.references = references
        text = draft.fill(assignment.text, a=first, b=second, r=references[0], s=references[1])
    else:
        text = draft.fill(assignment.text, a=first, b=second)
    draft.add(text, assignment.words + assignment.more + 2)
