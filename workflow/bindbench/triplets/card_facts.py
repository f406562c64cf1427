"""What the card of a set of triplets says: sections of sentences and tables, every number of them the summary's.

The README and the page are written from the same sections (card.py), so that they cannot differ. The examples mark the
words that moved, as Table 9 of the paper does.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..tables import TRIPLETS
from .constructions import CONSTRUCTIONS, FEWER, LENGTH_BANDS, MORE, MOST_DISTRACTORS, SHIFTS, windows_of
from .summary import NEGATIONS, SAMPLE

Fragments = list[tuple[str, bool]]  # a sentence: pieces, and whether each moved
Cell = str | Fragments  # `code` in a str is code; everything else stands as it is

PAPER = "Stuck on Shuffle: On Attribute–Object Binding in Vision–Language Models"
PAPER_URL = "https://arxiv.org/abs/2610.22602"
GRAMMAR = "grammar"
SHOWN_WORDS = 8
TEXTS = {
    "query": "query",
    "positive": "positive",
    "attribute_negative": "attribute negative",
    "object_negative": "object negative",
}
DESCRIPTIONS = {
    "pair_swap": "Two objects, each directly after its attribute. One negative exchanges the attributes, the other the nouns.",
    "triple_bind_cycle": "Three objects. The negatives rotate the attributes, or the nouns, by one: all three bindings break.",
    "triple_bind_swap": "Three objects, of which one, chosen at random, stays bound rightly in both negatives.",
    "attr_bundle": "Two objects with two attributes each, from two semantic slots. The attribute negative exchanges the "
    "attributes of one slot only.",
    "predicative": "Two objects that are told their attributes by a copula, a change of state or a relative clause: attribute "
    "and object are never neighbours.",
    "deferred_bind_anaphoric": "Both objects come first, the attributes later by back-reference. In half of the examples the "
    "second object is described first.",
    "deferred_bind_respective": "Both objects come first, the attributes later, jointly and in the order of the nouns.",
}
LOADING = """\
from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss

examples = load_dataset("FOLDER", split="train")  # the folder of this card


def two_triplets(batch):
    negatives = zip(batch["attribute_negative"], batch["object_negative"], strict=True)
    return {
        "anchor": [text for text in batch["query"] for _ in range(2)],
        "positive": [text for text in batch["positive"] for _ in range(2)],
        "negative": [text for pair in negatives for text in pair],
    }


# TripletLoss takes the columns in this order, and no others.
triplets = examples.map(two_triplets, batched=True, remove_columns=examples.column_names)

model = SentenceTransformer("sentence-transformers/all-MiniLM-L6-v2")
loss = TripletLoss(model, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=0.05)  # the paper's
SentenceTransformerTrainer(model=model, train_dataset=triplets, loss=loss).train()
"""


@dataclass(frozen=True)
class Facts:
    """A table. numbers: whether its cells are numbers."""

    caption: str
    header: list[str]
    rows: list[list[Cell]]
    numbers: bool = True


@dataclass(frozen=True)
class Section:
    """Sentences, then tables, then program text."""

    title: str
    paragraphs: list[str]
    tables: list[Facts]
    code: str = ""


def facts(summary: dict) -> list[Section]:
    """The sections of the card and of the page, without the random examples."""
    return [
        _what_it_is(summary),
        _constructions(summary),
        _counts(summary),
        _controls(summary),
        _validation(),
        _rejects(summary),
        _words(summary),
        _overlap(summary),
        _diversity(summary),
        _columns(),
        Section("Loading", ["With `datasets` and the `TripletLoss` of sentence-transformers:"], [], LOADING),
        _limits(summary),
        _citation(),
    ]


def who_wrote(summary: dict) -> str:
    """Who wrote the sentences, said plainly: the grammar is no language model, and nothing here is the paper's data."""
    sources = summary["sources"]
    models = {name: count for name, count in sources.items() if name != GRAMMAR}
    said = []
    if sources.get(GRAMMAR):
        every = "Every sentence" if not models else f"{number(sources[GRAMMAR])} of the sentences"
        said.append(
            f"{every} was written by the grammar of bindbench (`{GRAMMAR}`): no language model was used."
            if not models
            else f"{every} were written by the grammar of bindbench (`{GRAMMAR}`), without a language model."
        )
    said += [
        f"{number(count)} sentences were proposed by the language model `{name}`." for name, count in models.items()
    ]
    if models:
        said.append("The terms of a model may apply to what it wrote.")
    said.append(
        "The set is made by the recipe of the paper's Appendix B; it is not the paper's data"
        + ("." if models else ", which Gemma 4 31B-IT wrote.")
    )
    return " ".join(said)


def _what_it_is(summary: dict) -> Section:
    return Section(
        "What it is",
        [
            f"{number(summary['examples'])} examples, each a short query, a longer positive sentence that holds the query's "
            "attribute-object pairs, and two hard negatives of exactly the same words as the positive: one with the attributes "
            f"permuted, one with the objects. An example gives two triplets, {number(summary['triplets'])} in all. They "
            "teach and test whether an embedder keeps which attribute belongs to which object.",
            who_wrote(summary),
        ],
        [],
    )


def _constructions(summary: dict) -> Section:
    tables = [
        Facts(f"{name}: {DESCRIPTIONS[name]}", ["", "text"], example_rows(part["random"][0]), numbers=False)
        for name, part in summary["constructions"].items()
        if part["random"]
    ]
    return Section("Constructions", ["One example of each; bold marks the words that moved."], tables)


def example_rows(example: dict) -> list[list[Cell]]:
    return [[label, text] for label, text in zip(TEXTS.values(), marked_texts(example), strict=True)]


def _counts(summary: dict) -> Section:
    splits = list(summary["splits"])
    rows = [
        [f"`{name}`", number(part["accepted"]), *(number(part["splits"][split]) for split in splits)]
        for name, part in summary["constructions"].items()
    ]
    rows.append(["all", number(summary["examples"]), *(number(count) for count in summary["splits"].values())])
    return Section(
        "Counts and splits",
        [
            "Splits are by example, so both negatives of an example stay together; no set of attributes and objects is in two "
            "of train, validation and test. The deferred constructions are held out whole, to test sentence structures "
            "that training never shows.",
        ],
        [Facts("Examples; each gives two triplets", ["construction", "examples", *map(_spaced, splits)], rows)],
    )


def _controls(summary: dict) -> Section:
    drawn = summary["controls"]
    times, weathers = (sum(1 for name in drawn[key] if name) for key in ("times", "weathers"))
    bands = ", ".join(f"{low} to {high}" for low, high in LENGTH_BANDS)
    rows = []
    for name, part in summary["constructions"].items():
        windows = ", ".join(f"{low} to {high}" for low, high in windows_of(CONSTRUCTIONS[name]))
        extra = ", ".join(f"{pairs}: {number(count)}" for pairs, count in part["distractors"])
        rows.append([f"`{name}`", _spread(part["length"]), _spread(part["distance"]), windows, extra or "–"])
    return Section(
        "Controls",
        [
            "Each property is drawn by itself, from its own seed, for every example (Appendix B.3).",
            f"Places: {number(drawn['scenes'])}, with one of {times} times of day and {weathers} kinds of weather, or none: "
            f"{number(drawn['contexts'])} different contexts.",
            f"Writing registers ({len(drawn['registers'])}): {_listed(drawn['registers'])}.",
            f"Styles of the opening ({len(drawn['openers'])}): {_listed(drawn['openers'])}.",
            f"Length: a target band of {bands} words, with three objects {SHIFTS[0]} to {SHIFTS[-1]} words more; a sentence "
            f"may have {FEWER} word less or {MORE} more.",
            "Binding distance: the words between neighbouring attribute-object phrases, between an object and its attribute "
            "(`predicative`), or between the last object and the first attribute (deferred).",
            f"Distractors: up to {MOST_DISTRACTORS} further pairs in the sentence that the query does not ask about.",
        ],
        [
            Facts(
                "As measured: mean (least to most), in words; windows; examples by number of distractors",
                ["construction", "length", "distance", "windows of the distance", "distractors"],
                rows,
                numbers=False,
            )
        ],
    )


def _validation() -> Section:
    return Section(
        "Validation",
        [
            "Whatever wrote a sentence only proposed it. A validator alone accepts; it reads the texts, and every failure is "
            "kept in the table of rejects with the name of the rule (Appendix B.4).",
            "Attributes are single words. All attributes and objects of an example differ, and each stands exactly once in the "
            "query, the positive and both negatives.",
            "Each negative is a permutation of the positive's words, a and an being equal; it breaks the bindings that its "
            "construction is to break, holds all intended wrong ones, and differs from the positive and from the other "
            "negative. Articles that a permutation put wrong are mended; a sentence with an article error left is rejected.",
            "Attributes stand directly before their objects in the adjacent constructions, never beside them in the others, and "
            "after both objects in the deferred ones, where a bare “it” or “they” is rejected.",
            "Length and binding distance lie in what was asked for. No set of attributes and objects comes twice in a "
            "construction, and no word more often than its cap.",
        ],
        [],
    )


def _rejects(summary: dict) -> Section:
    constructions = summary["constructions"]
    totals: dict[str, int] = {}
    for part in constructions.values():
        for reason, count in part["rejects"].items():
            totals[reason] = totals.get(reason, 0) + count
    reasons = sorted(totals, key=lambda reason: (-totals[reason], reason))
    rows: list[list[Cell]] = [["accepted, %", *(_percent(part["acceptance"]) for part in constructions.values())]]
    rows.append(["accepted", *(number(part["accepted"]) for part in constructions.values())])
    rows.append(["rejected", *(number(part["rejected"]) for part in constructions.values())])
    rows += [[f"`{r}`", *(number(part["rejects"].get(r, 0)) for part in constructions.values())] for r in reasons]
    proposals = summary["examples"] + summary["rejected"]
    share = _percent(summary["examples"] / proposals) if proposals else "–"
    return Section(
        "Rejects",
        [
            f"Of {number(proposals)} proposals {share} % were accepted. A reject counts under the first rule that it broke."
        ],
        [Facts("Proposals by construction and reason", ["", *map(_spaced, constructions)], rows)],
    )


def _words(summary: dict) -> Section:
    rows = []
    for name, part in summary["constructions"].items():
        words = part["words"]
        rows.append(
            [f"`{name}`", number(words["cap"]), *(_top_words(words[role]) for role in ("attributes", "objects"))]
        )
    total = max(sum(summary["families"].values()), 1)
    families = [[name, number(count), _percent(count / total)] for name, count in summary["families"].items()]
    return Section(
        "Words",
        [
            "No attribute and no object may be in more accepted examples of a construction than its cap: the larger of ten and "
            "1.5 % for every two attributes of an example, at any time while the set grows."
        ],
        [
            Facts(
                "The most frequent words and how many different ones there are",
                ["construction", "cap", "attributes", "objects"],
                rows,
                numbers=False,
            ),
            Facts("Attributes by family of the pool", ["family", "attributes", "%"], families),
        ],
    )


def _top_words(words: dict) -> str:
    top = ", ".join(f"{word} {number(count)}" for word, count in words["top"][:SHOWN_WORDS])
    return f"{top} ({number(words['distinct'])} different)"


def _overlap(summary: dict) -> Section:
    rows = [
        [
            f"`{name}`" if name in CONSTRUCTIONS else name,
            *(number(held[key]) for key in ("none", "either", "attribute", "object")),
        ]
        for name, held in [
            *((n, part["saber"]) for n, part in summary["constructions"].items()),
            ("all", summary["saber"]),
        ]
    ]
    return Section(
        "Overlap with SABER",
        [
            "Examples whose queried attributes or objects are also words of the SABER benchmark: a model that was trained on them "
            "has met those words, though not the benchmark's questions."
        ],
        [Facts("Examples", ["construction", "no word of SABER", "at least one", "an attribute", "an object"], rows)],
    )


def _diversity(summary: dict) -> Section:
    named = [(f"`{name}`", part, part["negation"], part["accepted"]) for name, part in summary["constructions"].items()]
    rows = []
    for name, part, negation, count in [*named, ("all", summary, summary["negation"], summary["examples"])]:
        diversity = part["diversity"]
        shares = [_share(value) for value in (*diversity["distinct"], *diversity["sample"]["distinct"])]
        share = _percent(negation / count) if count else "–"
        rows.append([name, *shares, _share(diversity["sample"]["self_bleu"]), share])
    sizes = [f"distinct-{n}" for n in (1, 2, 3)]
    return Section(
        "Diversity",
        [
            "distinct-n is the share of different n-grams among all n-grams of the positives; it falls as a set grows, so it is "
            f"also told for samples of {number(SAMPLE)} sentences, or of as many as there are. "
            "Self-BLEU is the mean BLEU-4 of each sentence "
            "of the sample against all the others: 0 when they share nothing, 1 when they are the same.",
            f"Negation: positives with one of {', '.join(NEGATIONS)}, or a verb in n't (the paper: 7.1 %).",
        ],
        [
            Facts(
                "Diversity of the positives",
                ["", *sizes, *(f"{size}, sample" for size in sizes), "self-BLEU, sample", "negation, %"],
                rows,
            )
        ],
    )


def _columns() -> Section:
    rows: list[list[Cell]] = [
        [f"`{column.name}`", f"`{str(column.type).replace('item: ', '')}`", column.meaning]
        for column in TRIPLETS.columns
    ]
    return Section("Columns", [], [Facts("One row per example", ["column", "type", "meaning"], rows, numbers=False)])


def _limits(summary: dict) -> Section:
    limits = [
        "English only, and everyday scenes. Attributes and objects are combined for binding, not for truth: a pair may be "
        "odd.",
        "The negatives are permutations: a sentence may become strange, and a model that only judges fluency may find some "
        "of them. Results on the held-out constructions are the better test of binding.",
        "The splits share vocabulary: they hold out combinations and, in the deferred ones, structures, not words.",
        "The validator checks structure, not style or truth.",
    ]
    if summary["sources"].get(GRAMMAR):
        limits.insert(
            0,
            "A grammar repeats its sentence patterns more than people or language models do (see Diversity), and results of "
            "training on it are not those of the paper.",
        )
    return Section("Known limits", limits, [])


def _citation() -> Section:
    return Section(
        "Licence and citation",
        [
            "Apache-2.0.",
            f"The method is that of “{PAPER}” ({PAPER_URL}), Appendix B: please cite the paper, and bindbench for this set.",
        ],
        [],
    )


def number(count: int) -> str:
    return f"{count:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}" if value < 0.01 else f"{value:.3f}"


def _spread(histogram: dict) -> str:
    if histogram["mean"] is None:
        return "–"
    return f"{histogram['mean']:.1f} ({histogram['least']} to {histogram['most']})"


def _spaced(name: str) -> str:
    """A name that can be broken into lines, for a narrow column."""
    return name.replace("_", " ")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


# Which words moved (Table 9).


def marked_texts(example: dict) -> list[Fragments]:
    """Query, positive, attribute negative and object negative; the words that moved are marked in the negatives."""
    attributes = [attribute for pair in example["bindings"] for attribute in pair["attributes"]]
    objects = [pair["object"] for pair in example["bindings"]]
    return [
        [(example["query"], False)],
        [(example["positive"], False)],
        moved_words(example["positive"], example["attribute_negative"], attributes),
        moved_words(example["positive"], example["object_negative"], objects),
    ]


def moved_words(positive: str, negative: str, words: list[str]) -> Fragments:
    """The negative in pieces, with those of the words marked that stand where the positive has another of them."""
    if not words:
        return [(negative, False)]
    choices = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w-])(?:{choices})(?![\w-])", re.IGNORECASE)
    before = [found[0].lower() for found in pattern.finditer(positive)]
    fragments, end = [], 0
    for place, found in enumerate(pattern.finditer(negative)):
        moved = place >= len(before) or before[place] != found[0].lower()
        fragments += [(negative[end : found.start()], False), (found[0], moved)]
        end = found.end()
    return [(text, moved) for text, moved in [*fragments, (negative[end:], False)] if text]


def about(example: dict) -> str:
    """One line about what was drawn for an example."""
    context = ", ".join(part for part in (example["scene"], example["time_of_day"], example["weather"]) if part)
    pairs = "; ".join(f"{' '.join(pair['attributes'])} {pair['object']}" for pair in example["distractors"])
    parts = [example["split"], context, example["register"], example["opener"]]
    parts.append(f"{example['words']} words (target {example['length_low']} to {example['length_high']})")
    parts.append(f"distance {example['distance']} (target {example['distance_low']} to {example['distance_high']})")
    return " · ".join([*parts, *([f"distractors: {pairs}"] if pairs else [])])
