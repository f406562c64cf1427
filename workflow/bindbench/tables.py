"""The Parquet tables that travel between rules: one schema each, checked on write and on read.

A column has a name, a type and a meaning with its unit; ids are strings and stable: the same question keeps its id when
the benchmark grows. Files are the same bytes for the same rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .errors import UserError
from .files import written_whole

AT_ONCE = 2000  # rows that read_batches and write_rows hold

BINDING = pa.struct(
    [
        ("attribute", pa.string()),  # base form: "striped"
        ("realised", pa.string()),  # generation form: "white and orange striped"
        ("object", pa.string()),
        ("slots", pa.list_(pa.string())),  # what fills the template's slots, in order: ["white", "orange"]
    ]
)


@dataclass(frozen=True)
class Column:
    name: str
    type: pa.DataType
    meaning: str
    optional: bool = False


@dataclass(frozen=True)
class Table:
    """One kind of file. `key` names the columns that identify a row; they never repeat."""

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [pa.field(c.name, c.type, c.optional, {"meaning": c.meaning}) for c in self.columns],
            {"bindbench.table": self.name},
        )


QUESTIONS = Table(
    "saber/questions",
    ("question",),
    (
        Column("question", pa.string(), "id"),
        Column("subset", pa.string(), "independent or nested"),
        Column("chain", pa.string(), "id of the nested chain", optional=True),
        Column("n_objects", pa.int32(), "objects in the query"),
    ),
)

SCENES = Table(
    "saber/scenes",
    ("scene",),
    (
        Column("scene", pa.string(), "id: the question's and the role's"),
        Column("question", pa.string(), "id"),
        Column("role", pa.string(), "query, candidate_1, candidate_2, candidate_3 or candidate_4"),
        Column("kind", pa.string(), "query, preserving, attribute_swap, object_swap, joint_swap or replacement (A.2)"),
        Column("bindings", pa.list_(BINDING), "attribute-object pairs in the order of the caption"),
        Column("caption", pa.string(), "text form (A.3): the text modality of the benchmark"),
        Column("generation_caption", pa.string(), "generation form (A.3): what the image shows"),
        Column("moved", pa.int32(), "query bindings that this scene does not hold"),
    ),
)

CANDIDATE_ROLES = ("candidate_1", "candidate_2", "candidate_3", "candidate_4")
SCENE_ROLES = ("query", *CANDIDATE_ROLES)
# What people read for the kind of a candidate (A.2).
KIND_TITLES = {
    "preserving": "keeps the bindings",
    "attribute_swap": "attributes swapped",
    "object_swap": "objects swapped",
    "joint_swap": "both swapped",
    "replacement": "one part replaced",
}

IMAGES = Table(
    "saber/images",
    ("scene",),
    (
        Column("scene", pa.string(), "id"),
        Column("path", pa.string(), "PNG, relative to this table's folder"),
        Column("sha256", pa.string(), "of the file's bytes"),
        Column(
            "flipped",
            pa.bool_(),
            "the image is mirrored (A.4); drawn from scenes.seed and the scene's id by scenes.layout.is_flipped",
        ),
        Column("renderer", pa.string(), "what drew it"),
    ),
)


VERDICTS = Table(
    "saber/verdicts",
    ("scene",),
    (
        Column("scene", pa.string(), "id"),
        Column("sha256", pa.string(), "of the image that was judged: verdicts belong to bytes"),
        Column("verdict", pa.string(), "accepted, rejected or open"),
        Column("reason", pa.string(), "why it was rejected", optional=True),
        Column("by", pa.string(), "who judged it, or the model that proposes", optional=True),
        Column("proposed", pa.string(), "accepted or rejected: what a model proposes while it is open", optional=True),
        Column("attempt", pa.int32(), "images of the scene that stand rejected: the attempt, from 0, to be made now"),
    ),
)


def embeddings_table(dimensions: int) -> Table:
    """Embeddings of one model for one corpus and modality; `dimensions` float32 values of unit norm a row."""
    return Table(
        "embeddings",
        ("item",),
        (
            Column("item", pa.string(), "id of the scene"),
            Column("embedding", pa.list_(pa.float32(), dimensions), "unit norm"),
        ),
    )


PAIRINGS = ("text_text", "text_image", "image_text", "image_image")

SCORES = Table(
    "saber/scores",
    ("question", "pairing"),
    (
        Column("question", pa.string(), "id"),
        Column("subset", pa.string(), "independent or nested"),
        Column("chain", pa.string(), "id of the nested chain", optional=True),
        Column("n_objects", pa.int32(), "objects in the query"),
        Column("pairing", pa.string(), "query modality, then candidate modality"),
        Column("similarities", pa.list_(pa.float32(), 4), "cosine of the query with candidates 1 to 4"),
        Column("correct", pa.bool_(), "multiple choice: candidate 1 strictly above the other three"),
        Column("tied", pa.bool_(), "multiple choice: candidate 1 equals the best of the other three"),
        Column("rank", pa.int32(), "rank of candidate 1 in the gallery, ties against the model"),
        Column("average_precision", pa.float64(), "over the whole gallery, ties against the model"),
        Column("expected_average_precision", pa.float64(), "of a random ranking: the chance level"),
        Column("n_positives", pa.int32(), "candidates of the gallery that hold all bindings of the query"),
        Column("top_four", pa.bool_(), "the four candidates of the question hold the top four places"),
        Column(
            "subset_exact_pairs",
            pa.int32(),
            "candidates that hold a strict subset of the query's bindings, times exact",
        ),
        Column(
            "subset_above_exact", pa.int32(), "of these, pairs in which the subset ranks strictly above the exact match"
        ),
        Column("subset_superset_pairs", pa.int32(), "strict subsets times candidates that hold all bindings and more"),
        Column("subset_above_superset", pa.int32(), "of these, pairs in which the subset ranks strictly above"),
    ),
)


PAIR = pa.struct([("attributes", pa.list_(pa.string())), ("object", pa.string())])

_CONTROLS = (
    Column("example", pa.string(), "id: the construction and the number of the attempt"),
    Column("construction", pa.string(), "one of the seven of B.2"),
    Column("bindings", pa.list_(PAIR), "what the query asks for, in the order in which the objects are mentioned"),
    Column("slots", pa.list_(pa.string()), "attr_bundle: the two semantic slots, in the order of the attributes"),
    Column("distractors", pa.list_(PAIR), "further pairs of the sentence that are not in the query"),
    Column("scene", pa.string(), "place (B.3)"),
    Column("time_of_day", pa.string(), "empty: none"),
    Column("weather", pa.string(), "empty: none"),
    Column("register", pa.string(), "writing register"),
    Column("opener", pa.string(), "opener style"),
    Column("length_low", pa.int32(), "target band of the length, words"),
    Column("length_high", pa.int32(), "its end, which belongs to it"),
    Column("distance_low", pa.int32(), "target window of the binding distance, words"),
    Column("distance_high", pa.int32(), "its end, which belongs to it"),
    Column("n_distractors", pa.int32(), "distractors asked for"),
    Column("kept", pa.int32(), "triple_bind_swap: number of the binding that both negatives keep", optional=True),
    Column(
        "swapped_slot",
        pa.int32(),
        "attr_bundle: number of the slot that the attribute negative exchanges",
        optional=True,
    ),
    Column("source", pa.string(), "what proposed it: grammar, or the backend and the model's name"),
)

TRIPLETS = Table(
    "triplets/examples",
    ("example",),
    (
        *_CONTROLS,
        Column("query", pa.string(), "the bindings in random order"),
        Column("positive", pa.string(), "the sentence as proposed"),
        Column("attribute_negative", pa.string(), "the same words, attributes permuted"),
        Column("object_negative", pa.string(), "the same words, objects permuted"),
        Column("words", pa.int32(), "words of the positive"),
        Column("distance", pa.int32(), "measured binding distance, words"),
    ),
)

TRIPLET_ROLES = ("query", "positive", "attribute_negative", "object_negative")

IMAGE_TRIPLETS = Table(
    "image_triplets/examples",
    ("example",),
    (
        Column("example", pa.string(), "id: the part and a number"),
        Column("n_objects", pa.int32(), "objects in each of the four scenes"),
        Column("query", pa.list_(BINDING), "what the query's scene holds"),
        Column("positive", pa.list_(BINDING), "the same bindings, in another layout"),
        Column("attribute_negative", pa.list_(BINDING), "every attribute on another object"),
        Column("object_negative", pa.list_(BINDING), "every object under another attribute"),
    ),
)


def triplet_scene(example: str, role: str) -> str:
    """Id of one of the four scenes of an image triplet, in the tables of its images."""
    return f"{example}-{role}"


TRIPLET_REJECTS = Table(
    "triplets/rejects",
    ("example",),
    (
        *_CONTROLS,
        Column("positive", pa.string(), "the sentence as proposed; empty when there was none"),
        Column("reason", pa.string(), "name of the rule"),
        Column("detail", pa.string(), "the words concerned"),
    ),
)


TRIPLET_SCORES = Table(
    "triplets/scores",
    ("example",),
    (
        Column("example", pa.string(), "id"),
        Column("split", pa.string(), "test, or the held-out construction"),
        Column("construction", pa.string(), "one of the seven of B.2"),
        Column("positive", pa.float32(), "cosine of the query with the positive"),
        Column("attribute_negative", pa.float32(), "cosine of the query with the attribute negative"),
        Column("object_negative", pa.float32(), "cosine of the query with the object negative"),
    ),
)


PHRASES = Table(
    "single_objects/phrases",
    ("phrase",),
    (
        Column("phrase", pa.string(), "id"),
        Column("attribute", pa.string(), "base form"),
        Column("object", pa.string(), "name"),
        Column("caption", pa.string(), "text form (A.3)"),
    ),
)


def phrase_id(attribute: str, thing: str) -> str:
    """Id of the phrase of one combination; no name of a vocabulary has the stroke."""
    return f"{attribute}/{thing}"


SINGLE_OBJECTS = Table(
    "single_objects/scenes",
    ("scene",),
    (
        Column("scene", pa.string(), "id"),
        Column("held_out", pa.bool_(), "the combination was held out of the pretraining of the nano embedder"),
        Column("bindings", pa.list_(BINDING), "the one attribute-object pair"),
        Column("generation_caption", pa.string(), "generation form (A.3): what the image shows"),
    ),
)

NAMINGS = Table(
    "single_objects/scores",
    ("scene",),
    (
        Column("scene", pa.string(), "id"),
        Column("held_out", pa.bool_(), "the combination was held out of the pretraining of the nano embedder"),
        Column("rank", pa.int32(), "of the scene's own phrase among all phrases, ties against the model"),
        Column("object_right", pa.bool_(), "the best phrase of its object is strictly above those of other objects"),
        Column("attribute_right", pa.bool_(), "the best phrase of its attribute is strictly above those of others"),
        Column("nearest", pa.string(), "id of the closest phrase; of equally close ones the first"),
    ),
)


NANO_SCENES = Table(
    "nano/scenes",
    ("scene",),
    (
        Column("scene", pa.int32(), "number"),
        Column("attributes", pa.list_(pa.string()), "of each binding"),
        Column("objects", pa.list_(pa.string()), "of each binding"),
        Column("tokens", pa.list_(pa.list_(pa.int8())), "of each view the binding that each visual token shows, or -1"),
    ),
)

TEXT_SETS = ("queries", "positives", "saber")

ATTENTION_MARGINS = Table(
    "attention/margins",
    ("model", "text_set", "caption", "layer"),
    (
        Column("model", pa.string(), "name of the embedder"),
        Column("text_set", pa.string(), "queries, positives or saber (C.3)"),
        Column("caption", pa.string(), "id of the example or of the scene"),
        Column("layer", pa.int32(), "of the text tower, from 1"),
        Column(
            "margin",
            pa.float32(),
            "mean attention of an object with its own attribute words minus that with the others', mean over objects;"
            " empty where no object has both",
            optional=True,
        ),
    ),
)


def write_table(table: Table, rows: list[dict] | dict | pa.Table, path: str | Path) -> None:
    """Writes rows (dicts, columns or a pyarrow table) after checking them against the schema.

    Raises ValueError when a row does not fit: a fault of the program, never of the user.
    """
    if isinstance(rows, pa.Table):
        data = rows.select(table.schema.names).cast(table.schema)
    elif isinstance(rows, dict):
        data = pa.table(rows, schema=table.schema)
    else:
        data = pa.Table.from_pylist(rows, schema=table.schema)
    problem = _problem(table, data)
    if problem:
        raise ValueError(f"{table.name}: {problem}")
    with written_whole(path) as temporary:
        pq.write_table(
            data.replace_schema_metadata(table.schema.metadata), temporary, compression="zstd", write_page_checksum=True
        )


def write_rows(table: Table, rows: Iterable[dict], path: str | Path) -> None:
    """As `write_table`, of rows that are never all in memory; every AT_ONCE of them become a row group."""
    rows, seen = iter(rows), set()
    options = {"compression": "zstd", "write_page_checksum": True}
    with written_whole(path) as temporary, pq.ParquetWriter(temporary, table.schema, **options) as writer:
        while batch := list(islice(rows, AT_ONCE)):
            data = pa.Table.from_pylist(batch, schema=table.schema)
            problem = _problem(table, data, seen)
            if problem:
                raise ValueError(f"{table.name}: {problem}")
            writer.write_table(data)


def read_table(table: Table, path: str | Path) -> pa.Table:
    """Reads and checks one table. Raises UserError for a file that is missing, unreadable or of another schema."""
    try:
        data = _opened(path).read()
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(path, error) from None
    return _checked(table, data, path)


def read_batches(table: Table, path: str | Path) -> Iterator[pa.Table]:
    """One table in pieces of at most AT_ONCE rows, never all in memory where `write_rows` wrote it.

    Raises UserError as `read_table` does, for a broken piece when it comes to it.
    """
    seen: set = set()
    file = _opened(path, mapped=False)
    try:
        # Group by group: left to itself, pyarrow reads all of them ahead.
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(AT_ONCE, row_groups=[group]):
                yield _checked(table, pa.Table.from_batches([batch]), path, seen)
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(path, error) from None


def read_rows(table: Table, path: str | Path) -> Iterator[dict]:
    """As `read_batches`, row by row."""
    for batch in read_batches(table, path):
        yield from batch.to_pylist()


def count_rows(path: str | Path) -> int:
    """Of one table, by its footer. Raises UserError for a file that is missing or unreadable."""
    return _opened(path).metadata.num_rows


def _opened(path: str | Path, mapped: bool = True) -> pq.ParquetFile:
    """mapped: the file's pages count as the program's memory, once they were read."""
    if not Path(path).exists():
        raise UserError(f"{path}: no such file; run snakemake to make it")
    try:
        return pq.ParquetFile(path, memory_map=mapped, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str | Path, error: Exception) -> UserError:
    return UserError(f"{path}: not a readable Parquet file ({_first_line(error)}); delete it and run again")


def _checked(table: Table, data: pa.Table, path: str | Path, seen: set | None = None) -> pa.Table:
    missing = set(table.schema.names) - set(data.schema.names)
    if missing:
        raise UserError(
            f"{path}: not a {table.name} table of this version (no column {', '.join(sorted(missing))}); delete it and run again"
        )
    try:
        data = data.select(table.schema.names).cast(table.schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise UserError(
            f"{path}: not a {table.name} table of this version ({_first_line(error)}); delete it and run again"
        ) from None
    problem = _problem(table, data, seen)
    if problem:
        raise UserError(f"{path}: {problem}; delete it and run again")
    return data


def read_embeddings(path: Path) -> tuple[list[str], np.ndarray]:
    """Item ids and (n_items, dimensions) float32 of one embeddings table. Raises UserError when it is none."""
    path = Path(path)
    try:
        column = pq.read_schema(path).field("embedding").type
        dimensions = column.list_size
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run snakemake to make it") from None
    except (pa.ArrowInvalid, OSError, KeyError, AttributeError):
        raise UserError(f"{path}: not a table of embeddings; delete it and run again") from None
    table = read_table(embeddings_table(dimensions), path)
    chunks = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in table["embedding"].chunks]
    values = chunks[0] if len(chunks) == 1 else np.concatenate(chunks or [np.empty(0, np.float32)])
    return table["item"].to_pylist(), values.reshape(-1, dimensions)


def right_triplets(scores: pa.Table) -> np.ndarray:
    """From rows of TRIPLET_SCORES: (2, n_examples) float64, 1 where the positive is strictly closer to the query than the
    attribute and than the object negative, else 0: a tie is wrong (B.5).
    """
    negatives = np.stack([scores[name].to_numpy() for name in ("attribute_negative", "object_negative")])
    return (scores["positive"].to_numpy() > negatives).astype(float)


def read_tables(table: Table, paths: list[str | Path]) -> pa.Table:
    """The rows of several files of one table, in the order of the paths."""
    return pa.concat_tables([read_table(table, path) for path in paths])


def _problem(table: Table, data: pa.Table, seen: set | None = None) -> str | None:
    """seen: keys of the pieces before this one, which its own join."""
    for column in table.columns:
        if not column.optional and data[column.name].null_count:
            return f"column {column.name} has empty cells"
    repeats = len(data) and len(data.group_by(list(table.key)).aggregate([])) != len(data)
    if seen is not None:
        keys = set(zip(*(data[name].to_pylist() for name in table.key), strict=True))
        repeats = repeats or not seen.isdisjoint(keys)
        seen |= keys
    return f"{' and '.join(table.key)} repeat" if repeats else None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
