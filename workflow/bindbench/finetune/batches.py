"""Examples and the batches that they are trained in (B.5): four texts an example, batches of examples of like length.

The two triplets of an example share their query and their positive, so an example is four texts, not six. Its positive and
its negatives hold the same words: one length stands for all three. In place of texts there may be four images (Appendix E).
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ..errors import UserError
from ..files import canonical_json, sha256
from ..tables import IMAGE_TRIPLETS, IMAGES, TRIPLET_ROLES, TRIPLETS, read_table, triplet_scene

Length = tuple[int, int]  # tokens of the positive and of the query


class Picture(NamedTuple):
    """A rendered scene: its file, and the SHA-256 (hex) that was written down when it was made."""

    path: Path
    sha256: str


class Example(NamedTuple):
    """The four texts or images of one example; and its bindings, for the attention loss and for neutral phrases."""

    query: str | Picture
    positive: str | Picture
    attribute_negative: str | Picture
    object_negative: str | Picture
    bindings: list[dict]


def read_examples(path: Path, count: int | None, seed: int, key: str, all_if_fewer: bool = False) -> list[Example]:
    """Examples of a table of triplets, all or so many of them, drawn by the seed; in the order of the table.

    key: the config key of the count, for messages. all_if_fewer: a table with fewer examples gives all it has.
    Raises UserError for a table with fewer examples than that, or with none.
    """
    table = _drawn(read_table(TRIPLETS, path), path, count, seed, key, all_if_fewer)
    return [Example(**row) for row in table.select(Example._fields).to_pylist()]


def read_image_examples(
    path: Path, images: Sequence[Path], count: int | None, seed: int, key: str, all_if_fewer: bool = False
) -> list[Example]:
    """As `read_examples`, of a table of image triplets. images: the tables of its rendered scenes.

    Raises UserError also for a scene that has no image.
    """
    table = _drawn(read_table(IMAGE_TRIPLETS, path), path, count, seed, key, all_if_fewer)
    rendered: dict[str, Picture] = {}
    for shard in images:
        columns = read_table(IMAGES, shard).select(["scene", "path", "sha256"]).to_pylist()
        rendered |= {row["scene"]: Picture(shard.parent / row["path"], row["sha256"]) for row in columns}
    examples = []
    for row in table.to_pylist():
        scenes = [triplet_scene(row["example"], role) for role in TRIPLET_ROLES]
        if missing := [scene for scene in scenes if scene not in rendered]:
            raise UserError(f"{path}: no table of images has the scene {missing[0]}; run snakemake to render it")
        bindings = [{"attributes": [pair["attribute"]], "object": pair["object"]} for pair in row["query"]]
        examples.append(Example(*(rendered[scene] for scene in scenes), bindings))
    return examples


def digest_of_images(examples: Sequence[Example]) -> str:
    """One hash of all files of image examples, however they are divided into shards."""
    return sha256(canonical_json([[picture.sha256 for picture in example[:4]] for example in examples]))


def _drawn(table: pa.Table, path: Path, count: int | None, seed: int, key: str, all_if_fewer: bool) -> pa.Table:
    """So many rows of it, as `read_examples` says."""
    if not len(table):
        share = "triplets.splits.validation or " if all_if_fewer else ""
        raise UserError(f"{path}: has no examples; raise {share}triplets.counts")
    if count is not None and len(table) < count and not all_if_fewer:
        raise UserError(f"{key}: {count} is more than {path} has ({len(table)}); lower it or leave it empty")
    if count is not None and count < len(table):
        rows = random.Random(f"bindbench/finetune/examples/{seed}").sample(range(len(table)), count)
        table = table.take(pa.array(sorted(rows), pa.int64()))
    return table


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
