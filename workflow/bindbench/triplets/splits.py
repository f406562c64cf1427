"""Training, validation, test and held-out sets (B.5), and the sets of the ablations (C.1, section 6).

    python -m bindbench split-triplets --help

Both deferred constructions are held out whole. The rest is split by example, both negatives of an example together, and
examples with the same set of attributes and objects, which different constructions may share, go to the same split.
"""

import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..config.triplets import Splits
from ..errors import UserError
from ..files import progress, write_json
from ..tables import TRIPLETS, read_table, write_table
from ..vocabulary import Vocabulary
from .constructions import DEFERRED, Binding, Specification
from .negatives import attribute_negative, object_negative, query_of
from .summary import has_negation
from .usage import set_of, words_of

SPLITS = ("train", "validation", "test")
SETS = ("no_overlap", "random", "overlap_only", "mixed_lengths", "no_negation")


def write_splits(shards: list[Path], settings: Splits, folder: Path) -> None:
    """Writes train, validation, test and one table for each deferred construction into the folder.

    Raises UserError for shards that are broken or hold the same example, and as `split_of` does.
    """
    tables = [read_table(TRIPLETS, shard) for shard in shards]
    _check_distinct(dict(zip(shards, tables, strict=True)))
    examples = pa.concat_tables(tables)
    constructions = examples["construction"].to_numpy(zero_copy_only=False)
    for name in DEFERRED:
        write_table(TRIPLETS, examples.filter(constructions == name), folder / f"{name}.parquet")
    rest = examples.filter(~np.isin(constructions, DEFERRED))
    parts = split_of(rest["bindings"].to_pylist(), settings)
    for number, name in enumerate(SPLITS):
        write_table(TRIPLETS, rest.filter(parts == number), folder / f"{name}.parquet")


def _check_distinct(tables: dict[Path, pa.Table]) -> None:
    """A shard begins where the one before it ended: the same example in both means that one of them is of another run."""
    seen: dict[str, Path] = {}
    for shard, table in tables.items():
        for example in table["example"].to_pylist():
            if example in seen:
                raise UserError(f"{shard}: holds {example}, as {seen[example]} does; delete both and run again")
            seen[example] = shard


def bindings_of(pairs: list[dict]) -> tuple[Binding, ...]:
    """From the rows of a table."""
    return tuple(Binding(tuple(pair["attributes"]), pair["object"]) for pair in pairs)


def split_of(bindings: list[list[dict]], settings: Splits) -> np.ndarray:
    """0 (train), 1 (validation) or 2 (test) of each example, int8.

    Sizes are exact, the training split takes what rounding leaves: whole groups of equal sets are dealt in random order,
    the larger groups first, each to a split that still has room, with a chance proportional to that room.
    Raises UserError when a split stays empty that should not be.
    """
    groups: dict[bytes, list[int]] = {}
    for row, pairs in enumerate(bindings):
        groups.setdefault(set_of(bindings_of(pairs)), []).append(row)
    total = len(bindings)
    room = [0, round(total * settings.validation), round(total * settings.test)]
    room[0] = total - room[1] - room[2]
    draw = random.Random(f"bindbench/splits/{settings.seed}")
    order = sorted(groups)  # digests: not the order of the shards
    draw.shuffle(order)
    order.sort(key=lambda key: -len(groups[key]))
    parts = np.full(total, -1, np.int8)
    for key in order:
        size = len(groups[key])
        open_room = [left if left >= size else 0 for left in room]
        part = draw.choices(range(3), open_room)[0] if any(open_room) else int(np.argmax(room))
        room[part] -= size
        parts[groups[key]] = part
    for number, wanted in ((1, settings.validation), (2, settings.test)):
        if wanted and not (parts == number).any():
            raise UserError(
                f"triplets.splits.{SPLITS[number]}: {total} examples are too few for a split of {wanted:g};"
                " raise triplets.counts or set it to 0"
            )
    return parts


def overlaps(pairs: list[dict], words: frozenset[str]) -> bool:
    """Whether an example mentions an attribute or object of SABER as one of its own (C.1). words: lower case."""
    return not words.isdisjoint(words_of(bindings_of(pairs)))


def saber_words(vocabulary: Vocabulary) -> frozenset[str]:
    return frozenset(name.lower() for name in (*vocabulary.objects, *vocabulary.attributes))


def write_sets(train: Path, vocabulary: Vocabulary, settings: Splits, folder: Path) -> None:
    """Writes the training sets of the ablations and sizes.json, which says how large each pool and set is.

    no_overlap, random, overlap_only: of equal size (C.1). no_negation: without examples that hold a negation term in their
    positive (section 6). mixed_lengths: every example in three formats (C.1).
    Raises UserError when the configured size is more than a pool holds.
    """
    examples = read_table(TRIPLETS, train)
    words = saber_words(vocabulary)
    overlap = np.array([overlaps(pairs, words) for pairs in examples["bindings"].to_pylist()], bool)
    negation = np.array([has_negation(text) for text in examples["positive"].to_pylist()], bool)
    pools = {
        "no_overlap": np.flatnonzero(~overlap),
        "random": np.arange(len(overlap)),
        "overlap_only": np.flatnonzero(overlap),
    }
    size = settings.set_size or min(map(len, pools.values()))
    if small := [name for name, pool in pools.items() if len(pool) < size]:
        raise UserError(
            f"triplets.splits.set_size: {size} is more than {small[0]} has ({len(pools[small[0]])}); lower it, leave it"
            " empty, or make more examples"
        )
    for name, pool in pools.items():
        draw = random.Random(f"bindbench/sets/{settings.seed}/{name}")
        rows = sorted(draw.sample(pool.tolist(), size))
        write_table(TRIPLETS, examples.take(pa.array(rows, pa.int64())), folder / f"{name}.parquet")
    write_table(TRIPLETS, examples.filter(~negation), folder / "no_negation.parquet")
    mixed = mixed_lengths(examples, settings.seed)
    write_table(TRIPLETS, mixed, folder / "mixed_lengths.parquet")
    write_json(
        folder / "sizes.json",
        {
            "train": len(examples),
            "pools": {name: len(pool) for name, pool in pools.items()},
            "with_negation": int(negation.sum()),
            "sets": {
                **dict.fromkeys(pools, size),
                "no_negation": int((~negation).sum()),
                "mixed_lengths": len(mixed),
            },
        },
    )


def mixed_lengths(examples: pa.Table, seed: int) -> pa.Table:
    """Every example in three formats (C.1): as it is, short query with short candidates, long query with short candidates.

    Short candidates are conjunctions of pairs like the query, the positive's in another order than the query's wherever that
    makes another text; the long query is the positive sentence.
    """
    rows = []
    for row in progress(examples.to_pylist(), "mixed lengths", unit="example"):
        rows += [row, *_short_formats(row, random.Random(f"bindbench/mixed/{seed}/{row['example']}"))]
    return pa.Table.from_pylist(rows, schema=TRIPLETS.schema)


def _short_formats(row: dict, draw: random.Random) -> Iterable[dict]:
    bindings = bindings_of(row["bindings"])
    choices = {"kept": row["kept"] or 0, "swapped_slot": row["swapped_slot"] or 0}
    specification = Specification(row["construction"], 0, "", "", "", "", "", "", (0, 0), (0, 0), **choices)
    orders = [draw.sample(range(len(bindings)), len(bindings)) for _ in range(8)]
    order = next((order for order in orders if query_of(bindings, order) != row["query"]), orders[0])
    positive = query_of(bindings, order)
    short = {
        "positive": positive,
        "attribute_negative": attribute_negative(specification, bindings, positive),
        "object_negative": object_negative(specification, bindings, positive),
        "words": len(positive.split()),
    }
    yield {**row, **short, "example": f"{row['example']}-short"}
    yield {**row, **short, "example": f"{row['example']}-long", "query": row["positive"]}
