"""What is in a set of triplets, as numbers: counts, rejects, lengths, distances, words, diversity (Appendix B).

The card, the pages and the plots are drawn from this summary alone. It is read construction by construction, column by
column, so that a hundred thousand examples take seconds; only the examples that are shown become Python objects.

Diversity is told in two ways: distinct-n (Li et al. 2016, "A Diversity-Promoting Objective Function for Neural
Conversation Models"), the share of different n-grams among all n-grams, and self-BLEU (Zhu et al. 2018, "Texygen"), the mean
BLEU-4 of each sentence against the others. Both depend on how many sentences there are: compare those of the samples.
"""

import re
from collections import Counter
from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..vocabulary import Vocabulary
from .constructions import CONSTRUCTIONS, LENGTH_BANDS, SHIFTS, Range
from .usage import LEAST_CAP

NEGATIONS = (
    "no",
    "not",
    "never",
    "without",
    "neither",
    "nor",
    "none",
    "nothing",
    "nobody",
    "nowhere",
    "cannot",
)
OUTSIDE = "outside the pool"  # the family of an attribute that none of the pool's families holds
TOP_WORDS = 15
RANDOM_EXAMPLES = 10
SAMPLE = 500  # sentences whose self-BLEU is computed: its cost is that of their n-grams
SEED = 0  # of the sample and of the examples that are shown

# A hyphenated word is one word: "a no-frills lamp" denies nothing, and neither does "lot no. 7".
_NEGATION = re.compile(rf"(?<![\w-])(?:{'|'.join(NEGATIONS)})(?![\w-]|\. ?\d)|n['’]t(?![\w-])", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_WORD_BITS = 21  # three numbers of words fit into 63 bits


def has_negation(sentence: str) -> bool:
    """Whether one of NEGATIONS, or a verb that ends in n't, stands in the sentence (the paper: 7.1 % of examples)."""
    return _NEGATION.search(sentence) is not None


def cap_of(construction: str, accepted: int) -> int:
    """How many accepted examples of a construction may hold one word: the larger of ten and its fraction (B.3)."""
    return max(LEAST_CAP, int(CONSTRUCTIONS[construction].cap_fraction * accepted))


def summarise(
    examples: pa.Table, rejects: pa.Table, splits: dict[str, int], families: dict[str, str], saber: Vocabulary
) -> dict:
    """Everything that the card, the pages and the plots show, ready for JSON.

    examples: TRIPLETS, the splits one after the other. rejects: TRIPLET_REJECTS. splits: rows of each split, in the order
    of `examples`. families: adjective of the pool to its family. saber: the benchmark's vocabulary (C.1).
    Raises ValueError when the splits do not add up to the examples, or for an unknown construction.
    """
    if sum(splits.values()) != len(examples):
        raise ValueError(f"splits hold {sum(splits.values())} rows, the table {len(examples)}")
    names = set(pc.unique(examples["construction"]).to_pylist()) | set(pc.unique(rejects["construction"]).to_pylist())
    if names - CONSTRUCTIONS.keys():
        raise ValueError(f"unknown construction {sorted(names - CONSTRUCTIONS.keys())[0]}")
    numbers = Numbers()
    constructions = {
        name: _construction(name, examples, rejects, splits, families, saber, numbers)
        for name in CONSTRUCTIONS
        if name in names
    }
    return {
        "examples": len(examples),
        "triplets": 2 * len(examples),
        "rejected": len(rejects),
        "splits": dict(splits),
        "sources": _counts(examples["source"]),
        "constructions": constructions,
        "negation": sum(c["negation"] for c in constructions.values()),
        "saber": _added([c["saber"] for c in constructions.values()]),
        "families": _added([c["families"] for c in constructions.values()]),
        "diversity": {
            "distinct": numbers.distinct(),
            "sample": _sample_diversity(examples["positive"], len(CONSTRUCTIONS)),
        },
        "controls": _controls(examples),
    }


def _construction(
    name: str,
    examples: pa.Table,
    rejects: pa.Table,
    splits: dict[str, int],
    families: dict[str, str],
    saber: Vocabulary,
    numbers: "Numbers",
) -> dict:
    rows = np.flatnonzero(pc.equal(examples["construction"], name).to_numpy())
    split_of_row = np.searchsorted(np.cumsum(list(splits.values())), rows, side="right")
    table = examples.take(pa.array(rows))
    reasons = _counts(rejects.filter(pc.equal(rejects["construction"], name))["reason"])
    accepted, rejected = len(table), sum(reasons.values())
    attributes, objects = parts(table["bindings"])
    sentences = table["positive"].to_pylist()
    place = list(CONSTRUCTIONS).index(name)
    return {
        "accepted": accepted,
        "rejected": rejected,
        "acceptance": accepted / (accepted + rejected),
        "rejects": reasons,
        "splits": {split: int((split_of_row == number).sum()) for number, split in enumerate(splits)},
        "length": _histogram(table, "words", "length"),
        "distance": _histogram(table, "distance", "distance"),
        "words": {
            "cap": cap_of(name, accepted),
            "attributes": _top(attributes.values),
            "objects": _top(objects.values),
        },
        "families": _families(attributes.values, families),
        "saber": _saber_overlap(table, saber),
        "negation": sum(map(has_negation, sentences)),
        "distractors": [list(pair) for pair in sorted(_counts(pc.list_value_length(table["distractors"])).items())],
        "diversity": {
            "distinct": numbers.add(sentences),
            "sample": _sample_diversity(table["positive"], place),
        },
        "random": _random_examples(table, split_of_row, list(splits), place),
    }


class Parts(NamedTuple):
    """Words of a column of pairs."""

    values: pa.Array
    rows: np.ndarray  # (n,) the row of each word


def parts(pairs: pa.ChunkedArray) -> tuple[Parts, Parts]:
    """Attributes and objects of a column of pairs, in order."""
    pairs = pairs.combine_chunks()
    rows = pc.list_parent_indices(pairs).to_numpy()
    flat = pairs.flatten()
    attributes = pc.struct_field(flat, "attributes")
    owners = pc.list_parent_indices(attributes).to_numpy()
    return Parts(attributes.flatten(), rows[owners]), Parts(pc.struct_field(flat, "object"), rows)


def _counts(column: pa.Array | pa.ChunkedArray) -> dict:
    """Values and how often they stand in a column, the most frequent first."""
    pairs = [(pair["values"], pair["counts"]) for pair in pc.value_counts(column).to_pylist()]
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def _added(counts: list[dict[str, int]]) -> dict[str, int]:
    return {key: sum(count[key] for count in counts) for key in counts[0]} if counts else {}


def _histogram(table: pa.Table, measured: str, target: str) -> dict:
    """How often each measured value occurs, apart for each target range that was asked for. band: before its shift."""
    low, high = f"{target}_low", f"{target}_high"
    groups = table.group_by([low, high, measured]).aggregate([([], "count_all")])
    groups = groups.sort_by([(low, "ascending"), (high, "ascending"), (measured, "ascending")])
    targets: dict[tuple[int, int], list] = {}
    for row in groups.to_pylist():
        targets.setdefault((row[low], row[high]), []).append([row[measured], row["count_all"]])
    values = table[measured]
    return {
        "mean": pc.mean(values).as_py(),
        "least": pc.min(values).as_py(),
        "most": pc.max(values).as_py(),
        "targets": [
            {
                "low": low,
                "high": high,
                "band": list(_unshifted(low, high) if target == "length" else (low, high)),
                "counts": counts,
            }
            for (low, high), counts in targets.items()
        ],
    }


def _unshifted(low: int, high: int) -> Range:
    """The length band that a target was made of; the target itself when it is none of B.3's."""
    for shift in (0, *SHIFTS):
        if (low - shift, high - shift) in LENGTH_BANDS:
            return low - shift, high - shift
    return low, high


def _top(words: pa.Array) -> dict:
    counts = _counts(words)
    return {"distinct": len(counts), "top": [list(pair) for pair in list(counts.items())[:TOP_WORDS]]}


def _families(attributes: pa.Array, families: dict[str, str]) -> dict[str, int]:
    """Attributes by family, in the pool's order, those outside the pool last."""
    found = dict.fromkeys([*families.values(), OUTSIDE], 0)
    for attribute, count in _counts(attributes).items():
        found[families.get(attribute, OUTSIDE)] += count
    return found


def _saber_overlap(table: pa.Table, saber: Vocabulary) -> dict[str, int]:
    """Examples whose own attributes or objects, not their distractors', are words of SABER (C.1)."""
    known = pa.array(sorted({name.lower() for name in (*saber.attributes, *saber.objects)}), pa.string())
    held = np.zeros((2, len(table)), bool)
    for role, found in zip(held, parts(table["bindings"]), strict=True):
        role[found.rows[pc.is_in(pc.utf8_lower(found.values), known).to_numpy(zero_copy_only=False)]] = True
    either = int(held.any(axis=0).sum())
    return {
        "attribute": int(held[0].sum()),
        "object": int(held[1].sum()),
        "either": either,
        "none": len(table) - either,
    }


def _controls(examples: pa.Table) -> dict:
    """What was drawn (B.3): names with their counts, and how many scenes and contexts there are."""
    contexts = examples.group_by(["scene", "time_of_day", "weather"]).aggregate([])
    return {
        "registers": _counts(examples["register"]),
        "openers": _counts(examples["opener"]),
        "times": _counts(examples["time_of_day"]),
        "weathers": _counts(examples["weather"]),
        "scenes": pc.count_distinct(examples["scene"]).as_py(),
        "contexts": len(contexts),
    }


def _random_examples(table: pa.Table, split_of_row: np.ndarray, splits: list[str], place: int) -> list[dict]:
    """Ten examples of a construction; place: its number, so that each has a seed of its own."""
    generator = np.random.default_rng([SEED, place])
    rows = generator.choice(len(table), min(RANDOM_EXAMPLES, len(table)), replace=False)
    shown = table.take(pa.array(rows, pa.int64())).to_pylist()
    return [{**example, "split": splits[split_of_row[row]]} for row, example in zip(rows, shown, strict=True)]


def words_of(sentence: str) -> list[str]:
    """The words in small letters; a hyphenated word is one, and so is "mug's"."""
    return _WORD.findall(sentence.lower())


class Numbers:
    """Words as numbers and the n-grams met so far, as sorted arrays of numbers: distinct-n of any number of sentences."""

    def __init__(self):
        self.number_of: dict[str, int] = {}
        self.ngrams = [np.empty(0, np.int64)] * 3
        self.totals = [0, 0, 0]

    def add(self, sentences: Sequence[str]) -> list[float | None]:
        """Takes the sentences up; returns their own distinct-1, -2 and -3 (None without an n-gram)."""
        number_of = self.number_of
        lines = [[number_of.setdefault(word, len(number_of)) for word in words_of(text)] for text in sentences]
        lengths = np.array([len(line) for line in lines], np.int64)
        words = np.fromiter((number for line in lines for number in line), np.int64, lengths.sum())
        owner = np.repeat(np.arange(len(lines)), lengths)
        shares = []
        for place in range(3):
            count = max(len(words) - place, 0)
            keys = np.zeros(count, np.int64)
            for offset in range(place + 1):
                keys = (keys << _WORD_BITS) | words[offset : offset + count]
            keys = keys[owner[:count] == owner[place : place + count]]
            distinct = np.unique(keys)
            shares.append(len(distinct) / len(keys) if len(keys) else None)
            self.ngrams[place] = np.union1d(self.ngrams[place], distinct)
            self.totals[place] += len(keys)
        return shares

    def distinct(self) -> list[float | None]:
        """distinct-1, -2 and -3 of all sentences."""
        return [len(n) / total if total else None for n, total in zip(self.ngrams, self.totals, strict=True)]


def _sample_diversity(sentences: pa.ChunkedArray, place: int) -> dict:
    """Diversity of a sample whose size is the same for every construction, so that the numbers compare."""
    generator = np.random.default_rng([SEED, SAMPLE, place])
    rows = np.sort(generator.choice(len(sentences), min(SAMPLE, len(sentences)), replace=False))
    sample = sentences.take(pa.array(rows, pa.int64())).to_pylist()
    return {
        "sentences": len(sample),
        "distinct": Numbers().add(sample),
        "self_bleu": self_bleu([words_of(sentence) for sentence in sample]),
    }


def self_bleu(sentences: list[list[str]]) -> float | None:
    """Mean BLEU-4 of each sentence (its words) against all the others, between 0 and 1; None for fewer than two.

    Self-BLEU is of Zhu et al. 2018; BLEU of Papineni et al. 2002: the geometric mean of the clipped precisions of 1- to
    4-grams, times the brevity penalty against the closest length. A precision of zero counts 0.1 matches (method 1 of Chen
    and Cherry 2014, "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU"), and a sentence that
    shares no word with the others scores 0.
    """
    if len(sentences) < 2:
        return None
    lengths = np.array([len(sentence) for sentence in sentences])
    logs = np.zeros(len(sentences))
    for size in range(1, 5):
        counts = [Counter(zip(*(words[place:] for place in range(size)), strict=False)) for words in sentences]
        most = _two_largest(counts)
        for number, own in enumerate(counts):
            matches = sum(min(count, _most_of_others(most[ngram], number)) for ngram, count in own.items())
            if size == 1 and not matches:
                logs[number] = -np.inf
            logs[number] += log((matches or 0.1) / max(own.total(), 1)) / 4
    return float(np.mean([exp(logs[n]) * _brevity(n, lengths) for n in range(len(sentences))]))


def _two_largest(counts: list[Counter]) -> dict[tuple, tuple[int, int, int]]:
    """For each n-gram its largest count in one sentence, that sentence's number, and the largest in another one."""
    most: dict[tuple, tuple[int, int, int]] = {}
    for number, own in enumerate(counts):
        for ngram, count in own.items():
            first, owner, second = most.get(ngram, (0, -1, 0))
            most[ngram] = (count, number, first) if count > first else (first, owner, max(second, count))
    return most


def _most_of_others(most: tuple[int, int, int], number: int) -> int:
    first, owner, second = most
    return second if owner == number else first


def _brevity(number: int, lengths: np.ndarray) -> float:
    """Brevity penalty against the closest length of another sentence, of two equally close ones the shorter."""
    own, others = int(lengths[number]), np.delete(lengths, number)
    closest = min(others.tolist(), key=lambda length: (abs(length - own), length))
    return 1.0 if own >= closest else exp(1 - closest / own) if own else 0.0
