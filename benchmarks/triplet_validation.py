"""How many proposals one core validates a second. Goal: 5,000 (B.3 and B.4, every rule, negatives made and read again).

python benchmarks/triplet_validation.py        writes benchmarks/triplet_validation.md

Sentences of 20 to 34 words, two frames a construction with drawn words, and the same with a fault, as a language model
would make it. The peer, in the same process, only splits the four accepted texts at white space and compares their words
as multisets: the least that "the same words" of B.4 can cost, and no rule besides. Seconds are CPU seconds.
"""

import random
import time
from collections import Counter
from pathlib import Path
from statistics import mean

from bindbench.language import article
from bindbench.triplets.constructions import CONSTRUCTIONS, Binding, Example, Proposal, Reject, Specification
from bindbench.triplets.validation import check
from machine import describe

REPOSITORY = Path(__file__).resolve().parents[1]
GOAL = 5000
PROPOSALS_EACH = 300
ROUNDS = 5

COLORS = "red ivory teal amber black olive violet orange navy silver"
MATERIALS = "wooden metal enamel canvas leather glass copper oak woolen clay"
ATTRIBUTES = (
    "rusty chipped oval dented unused striped heavy icy antique polished uneven dusty honest-looking Victorian hollow sturdy "
    "faded oiled narrow empty humid elegant glossy ornate brittle cracked angular upright woven itchy"
)
OBJECTS = (
    "kettle,envelope,fishing rod,lantern,umbrella,toolbox,hourglass,rocking chair,anchor,basin,ukulele,oar,ladder,music stand,"
    "apron,saddle,ironing board,vase,easel,mirror,unicycle,teapot,barrel,inkwell,coat rack,accordion,helmet,urn,trunk,X-ray machine"
)
# {0}: an adjacent binding with its article; {p0} and {a0}: object with article, attribute; {d}: a distractor.
FRAMES = {
    "pair_swap": (
        "At dawn {0} leaned against the counter of the roadside stall while the clerk, humming softly, wiped {1} beside {d} "
        "near the door.",
        "Stock note: {0} was moved to the upper shelf on a foggy day—{1} stayed below, next to {d}, until the auditors came.",
    ),
    "triple_bind_cycle": (
        "Under pouring rain the porter carried {0} into the hall, left {1} by the stairs, and then set {2} down close to the "
        "window.",
        "On the inventory of the estate, {0} follows the clocks, {1} opens the second page, and {2} closes it with no further "
        "remark.",
    ),
    "attr_bundle": (
        "In the back room of the pawn shop {0} stood on the highest shelf, and far below, between two crates, lay {1} for "
        "collection.",
        "The guide says that {0} greets every visitor at the entrance, whereas {1} waits in the last room beyond the archive.",
    ),
    "predicative": (
        "In the workshop by the canal, {p0} that stood nearest the window had turned {a0}, while {p1} on the bench was still "
        "{a1}, beside {d}.",
        "After the storm the keeper wrote that {p0} looked rather {a0}; {p1}, which nobody had covered with {d}, seemed very "
        "{a1} too.",
    ),
    "deferred_bind_anaphoric": (
        "Near {d}, the surveyor placed {p0} and {p1} on the long bench by the gate, noting that the former was {a0} and the "
        "latter {a1}.",
        "By late morning {p0} and {p1} had reached the museum's loading dock, where the first proved {a0} while the second "
        "looked {a1}, unlike {d}.",
    ),
    "deferred_bind_respective": (
        "By {d}, the clerk recorded {p0} and {p1} in the ledger of the harbour office, where they were listed as {a0} and {a1} "
        "respectively.",
        "She photographed {p0} and {p1} for the auction at dusk, and in her notes they were, respectively, {a0} and {a1}, not "
        "like {d}.",
    ),
}
FRAMES["triple_bind_swap"] = FRAMES["triple_bind_cycle"]


def proposals() -> list[tuple[Specification, Proposal]]:
    generator = random.Random(0)
    return [
        _proposal(generator, construction, number) for construction in CONSTRUCTIONS for number in range(PROPOSALS_EACH)
    ]


def faulty(sound: list[tuple[Specification, Proposal]]) -> list[tuple[Specification, Proposal]]:
    """The same with a word doubled, an attribute missing, an end without full stop, or too many words, in turn."""
    faults = (
        lambda bindings, text: text.replace(bindings[0].object, f"{bindings[0].object} and {bindings[0].object}", 1),
        lambda bindings, text: text.replace(bindings[0].attributes[0], "plain"),
        lambda _, text: text.rstrip("."),
        lambda _, text: text[:-1] + ", as it had been agreed upon long before by all the people who had come there.",
    )
    return [
        (
            specification,
            Proposal(
                proposal.bindings,
                faults[number % len(faults)](proposal.bindings, proposal.positive),
                proposal.distractors,
                proposal.slots,
            ),
        )
        for number, (specification, proposal) in enumerate(sound)
    ]


def _proposal(generator: random.Random, name: str, number: int) -> tuple[Specification, Proposal]:
    construction = CONSTRUCTIONS[name]
    things = generator.sample(OBJECTS.split(","), construction.objects + 1)
    attributes = generator.sample(ATTRIBUTES.split(), construction.objects + 1)
    if construction.attributes == 2:
        slots = (generator.sample(COLORS.split(), 2), generator.sample(MATERIALS.split(), 2))
        bindings = tuple(Binding(pair, thing) for pair, thing in zip(zip(*slots, strict=True), things, strict=False))
    else:
        bindings = tuple(Binding((word,), thing) for word, thing in zip(attributes, things[:-1], strict=False))
    distractors = (Binding((attributes[-1],), things[-1]),) if construction.distractors else ()
    words = {"d": _with_article(f"{attributes[-1]} {things[-1]}")}
    for index, binding in enumerate(bindings):
        words[f"p{index}"] = _with_article(binding.object)
        words[f"a{index}"] = binding.attributes[0]
    phrases = [_with_article(f"{' '.join(binding.attributes)} {binding.object}") for binding in bindings]
    text = FRAMES[name][number % 2].format(*phrases, **words)
    specification = Specification(
        name, number, "", "", "", "", "", "", (20, 30), (0, 26), distractors=len(distractors), kept=number % 3,
        swapped_slot=number % 2, query_order=tuple(generator.sample(range(construction.objects), construction.objects)),
    )  # fmt: skip
    slots_named = ("color", "material") if construction.attributes == 2 else ()
    return specification, Proposal(bindings, text, distractors, slots_named)


def _with_article(phrase: str) -> str:
    return f"{article(phrase.split()[0])} {phrase}"


def seconds(work, *arguments) -> float:
    """The fastest of a few rounds, CPU seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work(*arguments)
        times.append(time.process_time() - start)
    return min(times)


def validate(cases: list[tuple[Specification, Proposal]], families: dict[str, str]) -> list[Example | Reject]:
    return [check(specification, proposal, families=families) for specification, proposal in cases]


def compare_words(texts: list[tuple[str, str, str, str]]) -> int:
    """The peer: words of the query among the positive's, and the three long texts with the same words."""
    same = 0
    for query, positive, by_attribute, by_object in texts:
        words = Counter(positive.split())
        same += Counter(by_attribute.split()) == words and Counter(by_object.split()) == words
        same += Counter(query.split()) <= words
    return same


def main() -> None:
    families = {**dict.fromkeys(COLORS.split(), "color"), **dict.fromkeys(MATERIALS.split(), "material")}
    sound = proposals()
    unsound = faulty(sound)
    accepted = validate(sound, families)
    rejects = [outcome for outcome in accepted if isinstance(outcome, Reject)]
    assert not rejects, rejects[0]
    rejected = validate(unsound, families)
    assert all(isinstance(outcome, Reject) for outcome in rejected)
    texts = [(e.query, e.positive, e.attribute_negative, e.object_negative) for e in accepted]
    floor = seconds(compare_words, texts) / len(texts)
    lines = [
        "# Validation of triplets",
        "",
        describe(),
        "",
        f"{len(sound):,} sound proposals, {mean(e.words for e in accepted):.1f} words each, and as many with a fault; one "
        f"process, fastest of {ROUNDS} rounds, CPU time.",
        "",
        "| proposals | checks a second | µs a check | times the peer |",
        "|---|---|---|---|",
    ]
    rows = [(name, [case for case in sound if case[0].construction == name]) for name in CONSTRUCTIONS]
    for name, cases in [*rows, ("all seven, accepted", sound), ("all seven, rejected", unsound)]:
        each = seconds(validate, cases, families) / len(cases)
        lines.append(f"| {name} | {1 / each:,.0f} | {each * 1e6:.0f} | {each / floor:.1f} |")
    lines += [
        "",
        f"The peer splits the four texts at white space and compares their words with `collections.Counter`: "
        f"{floor * 1e6:.0f} µs an example, no rule checked. Goal: {GOAL:,} checks a second.",
    ]
    (REPOSITORY / "benchmarks/triplet_validation.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
