"""Examples and the batches that they are trained in (B.5): four texts an example, batches of examples of like length.

The two triplets of an example share their query and their positive, so an example is four texts, not six. Its positive and
its negatives hold the same words: one length stands for all three.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ..errors import UserError
from ..tables import TRIPLETS, read_table

Length = tuple[int, int]  # tokens of the positive and of the query


class Example(NamedTuple):
    """The four texts of one example, as columns of a table of triplets; and its bindings, for the attention loss."""

    query: str
    positive: str
    attribute_negative: str
    object_negative: str
    bindings: list[dict]


def read_examples(path: Path, count: int | None, seed: int, key: str, all_if_fewer: bool = False) -> list[Example]:
    """Examples of a table, all or so many of them, drawn by the seed; in the order of the table.

    key: the config key of the count, for messages. all_if_fewer: a table with fewer examples gives all it has.
    Raises UserError for a table with fewer examples than that, or with none.
    """
    table = read_table(TRIPLETS, path)
    if not len(table):
        raise UserError(f"{path}: has no examples; raise triplets.counts")
    if count is not None and len(table) < count and not all_if_fewer:
        raise UserError(f"{key}: {count} is more than {path} has ({len(table)}); lower it or leave it empty")
    if count is not None and count < len(table):
        rows = random.Random(f"bindbench/finetune/examples/{seed}").sample(range(len(table)), count)
        table = table.take(pa.array(sorted(rows), pa.int64()))
    return [Example(**row) for row in table.select(Example._fields).to_pylist()]


def training_batches(lengths: Sequence[Length], size: int, seed: int, epoch: int) -> list[list[int]]:
    """Indices of one epoch in batches of examples of like length, the batches in random order.

    Examples of equal length are mixed anew in every epoch. The batch of the longest comes first: what does not fit into
    memory fails at once. Depends on nothing but the arguments, so a resumed run meets the same batches.
    """
    draw = random.Random(f"bindbench/finetune/batches/{seed}/{epoch}")
    order = list(range(len(lengths)))
    draw.shuffle(order)
    order.sort(key=lambda index: lengths[index], reverse=True)
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    rest = batches[1:]
    draw.shuffle(rest)
    return batches[:1] + rest


def steps_of(lengths: Sequence[Length], size: int, accumulate: int, seed: int, epochs: int) -> list[list[list[int]]]:
    """All steps of a run: of each step its batches. An epoch's last step may have fewer of them."""
    steps = []
    for epoch in range(epochs):
        batches = training_batches(lengths, size, seed, epoch)
        steps += [batches[start : start + accumulate] for start in range(0, len(batches), accumulate)]
    return steps
