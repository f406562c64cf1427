"""A sentence in the making: its pieces, its number of words, and what of the context it has not told yet."""

from collections.abc import Callable
from random import Random

from ...language import article
from ..constructions import MORE, Binding, Construction, Specification
from .fragments import Fragment, Need, Pool
from .reading import Grammar, Voice
from .words import MADE, MOVABLE, Thing, Words

NAMES = (
    "Ruth", "Clara", "Oscar", "Hugo", "Nora", "Felix", "Greta", "Amir", "Lena", "Tom", "Ida", "Samuel", "Priya", "Marta",
    "Jonas", "Alice", "Rosa", "Leo", "Hanna", "Yusuf", "Edith", "Arthur", "Mina", "Pavel", "Sofia", "Henry", "Aisha", "Karl",
    "Elsa", "Daniel", "Mei", "Victor",
)  # fmt: skip
SURNAMES = (
    "Harlow", "Bennett", "Okafor", "Lindqvist", "Moreau", "Castellano", "Whitlock", "Novak", "Fairfax", "Ferreira", "Duval",
    "Ashworth", "Brandt", "Kowalski", "Holloway", "Ibsen", "Larsen", "Quigley", "Sato", "Thackeray",
)  # fmt: skip
REPEATS = 4  # draws of a fragment that stands in the sentence already
AIMED_UNTIL, SHORTER_AFTER, TIGHT_AFTER, ROOM_AFTER = 6, 3, 4, 15  # failed sentences before the plan gives way
TOLD = 0.8  # chance that the time, and then the weather, goes with the place
BY_DAY, DARK = ("bright sunshine",), ("dawn", "dusk", "evening", "night")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip


class Draft:
    """The state that the steps of `writing` share. Placeholders are filled when a piece is added."""

    __slots__ = (
        "available", "construction", "determiner", "distracted", "generator", "grammar", "high", "low", "phrases", "pieces",
        "places", "plural", "pools", "references", "specification", "things", "tight", "told", "used", "voice",
        "word_counts", "words", "written",
    )  # fmt: skip

    def __init__(
        self,
        grammar: Grammar,
        specification: Specification,
        construction: Construction,
        words: Words,
        generator: Random,
    ):
        self.grammar, self.specification, self.construction = grammar, specification, construction
        self.generator, self.words = generator, words
        self.voice: Voice = grammar.voices[specification.register]
        self.pools, self.plural = self.voice.pools, self.voice.plural
        weather = grammar.weathers.get(specification.weather, ("", ""))
        when = grammar.times.get(specification.time_of_day, "")
        # Of "in sunny weather at night" only one is told.
        impossible = specification.weather in BY_DAY and specification.time_of_day in DARK
        if impossible and specification.opener == "surroundings first":
            when = ""
        elif impossible:
            weather = ("", "")
        self.phrases = {
            "place": specification.scene,
            "when": when,
            "weather": weather[0],
            "sky": "" if self.voice.present else weather[1],
            "weathername": specification.weather if weather[0] else "",
        }
        self.word_counts = {name: phrase.count(" ") + 1 for name, phrase in self.phrases.items()}
        self.available = self._available(words)
        self.things: tuple[Thing, ...] = words.things
        self.places = grammar.shorter_places(specification.scene)
        self.restart(0)

    def restart(self, failures: int) -> None:
        """An empty sentence of the same words. Where several failed, the place is told in fewer words and the length may
        exceed the band by the words that B.3 allows. tight: of the fragments rather the short ones are taken. At first a
        length within the band is aimed at, since sentences otherwise fill it to its end.
        """
        self.low, self.high = self.specification.length
        if failures < AIMED_UNTIL:
            self.high -= int(self.generator.random() * (self.high - self.low + 1))
        self.tight = failures > TIGHT_AFTER
        if failures > ROOM_AFTER:
            self.high += MORE
        place = self.places[min(failures // SHORTER_AFTER, len(self.places) - 1)]
        self.phrases["place"], self.word_counts["place"] = place, place.count(" ") + 1
        self.pieces: list[str] = []
        self.written = 0
        self.distracted = 0  # distractors written
        self.used: set[str] = set()  # texts of fragments with several words, and names
        self.told = 0  # bits of the context that the sentence has told
        self.references: tuple[str, ...] = ()
        self.determiner = _determiner(self)

    def _available(self, words: Words) -> int:
        things = words.things
        available = Need.indoor if self.grammar.scenes.get(self.specification.scene) == "indoor" else Need.outdoor
        if all(thing.kind in MOVABLE for thing in things):
            available |= Need.movable
        if all(thing.kind in MADE for thing in things):
            available |= Need.made
        if len(things) == 2 and not words.distractors:
            available |= Need.two
        if self.construction.attachment == "adjacent":
            available |= Need.adjacent
        available |= Need.place
        available |= Need.when if self.phrases["when"] else 0
        available |= 0 if self.specification.time_of_day else Need.notime
        if not self.specification.weather:
            available |= Need.noweather
        else:
            available |= Need.weather if self.phrases["weather"] else 0
        return int(available)

    def draw(self, pool: Pool, low: int, high: int) -> Fragment | None:
        """As `Pool.draw`; no fragment of several words twice in a sentence."""
        for _ in range(REPEATS):
            found = pool.draw(self.generator, low, high, self.available & ~self.told)
            if found is None or found.text not in self.used:
                return found
        return None

    def context_words(self, found: Fragment) -> int:
        return sum([self.word_counts[name] for name in found.context])

    def add(self, text: str, words: int) -> None:
        self.pieces.append(text)
        self.written += words

    def use(self, found: Fragment) -> None:
        """Not to be drawn again for this sentence."""
        if found.words > 1:
            self.used.add(found.text)

    def add_fragment(self, found: Fragment) -> None:
        """A fragment without attributes, its placeholders filled."""
        words = found.words
        self.use(found)
        if found.context:
            words += self.context_words(found)
            for name in found.context:
                self.told |= BIT[name]
        self.pieces.append(self.fill(found.text))
        self.written += words

    def tell(self, name: str) -> None:
        """A phrase of the context as it is."""
        self.add(self.phrases[name], self.word_counts[name])
        self.told |= BIT[name]

    def untold(self, name: str) -> bool:
        return bool(self.phrases[name]) and not self.told & BIT[name]

    def place_fits(self, limit: int) -> bool:
        """Whether the place is untold and has at most limit words, shortened where need be."""
        if self.told & Need.place:
            return False
        for place in self.places:
            words = place.count(" ") + 1
            if words <= limit:
                self.phrases["place"], self.word_counts["place"] = place, words
                return True
        return False

    def tell_place(self, limit: int, alone: bool = False) -> bool:
        """The place, as a rule with the time or the weather, in at most limit words. False where nothing was written."""
        if not self.place_fits(limit):
            return False
        words = self.word_counts["place"]
        self.tell("place")
        if self.voice.group != "listing" and not alone:  # an offer has no time of day
            for name in ("when", "weather"):
                if self.untold(name) and words + self.word_counts[name] <= limit and self.generator.random() < TOLD:
                    self.tell(name)
                    words += self.word_counts[name]
        return True

    def fill(self, text: str, **more: str) -> str:
        if "{" not in text:
            return text
        return text.format_map(_Values(self, more))

    def posture(self, thing: Thing) -> str:
        forms = self.grammar.postures[thing.kind, self.voice.present, False]
        return forms[int(self.generator.random() * len(forms))]

    def posture_of_all(self) -> str:
        """A posture that all the things can have; "were" where they have none in common."""
        present = self.voice.present
        forms = set(self.grammar.postures[self.things[0].kind, present, True])
        for thing in self.things[1:]:
            forms.intersection_update(self.grammar.postures[thing.kind, present, True])
        if not forms:
            return "are" if present else "were"
        ordered = sorted(forms)
        return ordered[int(self.generator.random() * len(ordered))]


BIT = {name: int(Need[name]) for name in ("place", "when", "weather")} | {
    "sky": int(Need.weather),
    "weathername": int(Need.weather),
}


class _Values(dict):
    """What placeholders stand for, worked out when one is met; each {name} is another one."""

    def __init__(self, draft: Draft, more: dict[str, str]):
        super().__init__(more)
        self.draft = draft

    def __missing__(self, name: str) -> str:
        draft = self.draft
        return _MAKERS[name](draft)


def _one_of(values: tuple[str, ...]) -> Callable[[Draft], str]:
    return lambda draft: values[int(draft.generator.random() * len(values))]


def _clock(draft: Draft) -> str:
    return f"{int(draft.generator.random() * 16) + 6:02d}:{int(draft.generator.random() * 60):02d}"


def _name(draft: Draft) -> str:
    """A first name that the sentence has not used."""
    while True:
        name = NAMES[int(draft.generator.random() * len(NAMES))]
        if name not in draft.used:
            draft.used.add(name)
            return name


_MAKERS: dict[str, Callable[[Draft], str]] = {
    "n": lambda draft: str(11 + int(draft.generator.random() * 880)),
    "m": lambda draft: str(2 + int(draft.generator.random() * 8)),
    "year": lambda draft: str(1921 + int(draft.generator.random() * 98)),
    "clock": _clock,
    "date": lambda draft: str(1 + int(draft.generator.random() * 28)),
    "day": _one_of(DAYS),
    "month": _one_of(MONTHS),
    "name": _name,
    "surname": _one_of(SURNAMES),
    "place": lambda draft: draft.phrases["place"],
    "when": lambda draft: draft.phrases["when"],
    "weather": lambda draft: draft.phrases["weather"],
    "sky": lambda draft: draft.phrases["sky"],
    "weathername": lambda draft: draft.phrases["weathername"],
    "stood": lambda draft: draft.posture(draft.things[0]),
    "stood2": lambda draft: draft.posture_of_all(),
}


def _determiner(draft: Draft) -> str:
    """Either a (with a/an by pronunciation), the or one, for the whole sentence."""
    chance = draft.generator.random()
    if draft.voice.nominal and chance < 0.2:
        return "one"
    return "the" if chance > 0.78 else "a"


def noun_phrase(binding: Binding, thing: Thing) -> tuple[str, int]:
    """Attributes and object without determiner, and their words."""
    return " ".join((*binding.attributes, binding.object)), len(binding.attributes) + thing.words


def with_determiner(draft: Draft, phrase: str) -> str:
    determiner = draft.determiner
    if determiner == "a":
        determiner = article(phrase.split(" ", 1)[0])
    return f"{determiner} {phrase}"
