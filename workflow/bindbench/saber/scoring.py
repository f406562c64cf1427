"""Scores of one embedder on SABER (sections 3 and 5.1): multiple choice and retrieval in every pairing that it can do.

All comparisons are made between float32 cosines. Two scenes with the same embedding have the same similarity to every
query, to the last bit: a matrix product alone does not promise that, since its edges are summed in another order.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import UserError
from ..files import progress
from ..tables import CANDIDATE_ROLES, PAIRINGS, QUESTIONS, SCENES, SCORES, read_embeddings, read_table, write_table
from .multiple_choice import is_correct, is_tied
from .retrieval import (
    Relations,
    average_precision,
    binding_relations,
    expected_average_precision,
    hold_top_places,
    pairs_above,
    rank,
)

# Similarities that are held at once: few calls of the matrix product, and not more memory than needed.
BLOCK_BYTES = 32 * 2**20
# Farther from 1 than float16 rounding leaves a normalised embedding: not normalised.
NORM_TOLERANCE = 1e-2


class Benchmark(NamedTuple):
    """Questions and their gallery in one fixed order: candidates 1 to 4 of the first question, of the second ..."""

    questions: pa.Table  # QUESTIONS, one row a question
    query_scenes: list[str]  # scene id of each question's query
    gallery_scenes: list[str]  # scene id of each candidate
    own: np.ndarray  # (n_questions, 4) gallery indices of the question's candidates
    relations: list[Relations]  # of each query to the gallery


class Split(NamedTuple):
    """Embeddings of one modality."""

    queries: np.ndarray  # (n_questions, dimensions) float32, unit norm
    gallery: np.ndarray  # (n_candidates, dimensions) float32, unit norm


def score_saber(questions: Path, scenes: Path, texts: Path | None, images: Path | None, output: Path) -> None:
    """Scores one model and writes the table SCORES, with rows only for pairings whose two modalities exist.

    texts, images: embeddings of the scenes' captions and pictures; None where the model lacks the modality.
    Raises UserError when a table is missing or broken, an embedding is missing or not of unit norm, or both are None.
    """
    if texts is None and images is None:
        raise UserError(f"{output}: neither text nor image embeddings are given; a model needs at least one modality")
    benchmark = read_benchmark(questions, scenes)
    paths = {"text": texts, "image": images}
    splits = {modality: read_split(path, benchmark) for modality, path in paths.items() if path is not None}
    if len({split.queries.shape[1] for split in splits.values()}) > 1:
        widths = " and ".join(f"{paths[m]} has {split.queries.shape[1]} dimensions" for m, split in splits.items())
        raise UserError(f"{widths}: text and images of one model must share one space")
    write_table(SCORES, score_pairings(benchmark, splits), output)


def read_benchmark(questions: Path, scenes: Path) -> Benchmark:
    """Reads both tables and relates every query to the whole gallery. Raises UserError when they don't fit together."""
    question_table, by_question = read_scenes(questions, scenes, ["scene", "question", "role", "bindings"])
    ids = question_table["question"].to_pylist()
    queries = [by_question[q]["query"] for q in ids]
    gallery = [by_question[q][role] for q in ids for role in CANDIDATE_ROLES]
    return Benchmark(
        questions=question_table,
        query_scenes=[scene["scene"] for scene in queries],
        gallery_scenes=[scene["scene"] for scene in gallery],
        own=np.arange(len(gallery)).reshape(len(ids), len(CANDIDATE_ROLES)),
        relations=binding_relations([binding_set(s) for s in queries], [binding_set(s) for s in gallery]),
    )


def read_scenes(
    questions: Path, scenes: Path, columns: list[str] = SCENES.schema.names
) -> tuple[pa.Table, dict[str, dict[str, dict]]]:
    """The table QUESTIONS, and the scenes by question and role.

    columns: of SCENES, `question` and `role` among them. Raises UserError when the tables don't fit together.
    """
    question_table, scene_table = read_table(QUESTIONS, questions), read_table(SCENES, scenes)
    by_question: dict[str, dict[str, dict]] = {}
    for scene in scene_table.select(columns).to_pylist():
        by_question.setdefault(scene["question"], {})[scene["role"]] = scene
    ids = question_table["question"].to_pylist()
    roles = {"query", *CANDIDATE_ROLES}
    broken = [q for q in ids if set(by_question.get(q, ())) != roles]
    if broken or len(scene_table) != len(roles) * len(ids):
        where = (
            f"question {broken[0]} has not one query and four candidates" if broken else "they hold different questions"
        )
        raise UserError(f"{questions} and {scenes}: do not belong together ({where}); delete both and run again")
    return question_table, by_question


def binding_set(scene: dict) -> frozenset[tuple[str, str]]:
    """The scene's bindings by base attribute: `striped` is the same whichever colours it was drawn in."""
    return frozenset((binding["attribute"], binding["object"]) for binding in scene["bindings"])


def read_split(path: Path, benchmark: Benchmark) -> Split:
    """Embeddings of queries and gallery, in the benchmark's order. Raises UserError that names the first bad scene."""
    items, matrix = read_embeddings(path)
    row_of = {item: row for row, item in enumerate(items)}
    wanted = benchmark.query_scenes + benchmark.gallery_scenes
    missing = [scene for scene in wanted if scene not in row_of]
    if missing:
        raise UserError(f"{path}: no embedding of {len(missing)} scenes (first: {missing[0]}); delete it and run again")
    split = Split(
        *(matrix[[row_of[s] for s in scenes]] for scenes in (benchmark.query_scenes, benchmark.gallery_scenes))
    )
    for part, scenes in zip(split, (benchmark.query_scenes, benchmark.gallery_scenes), strict=True):
        norms = np.sqrt(np.einsum("id,id->i", part, part))
        bad = np.flatnonzero(~(np.abs(norms - 1) <= NORM_TOLERANCE))  # also true of NaN
        if len(bad):
            raise UserError(
                f"{path}: the embedding of {scenes[bad[0]]} has norm {norms[bad[0]]:.3g}, not 1; "
                "delete it and run again"
            )
    return split


def score_pairings(benchmark: Benchmark, splits: dict[str, Split]) -> pa.Table:
    """The rows of SCORES for every pairing whose two modalities are in `splits`, pairing by pairing."""
    pairings = [p for p in PAIRINGS if set(p.split("_")) <= set(splits)]
    parts = []
    for pairing in progress(pairings, "scoring", unit="pairing"):
        queries, gallery = pairing.split("_")
        scores = score_pairing(splits[queries].queries, splits[gallery].gallery, benchmark.own, benchmark.relations)
        parts.append(_rows(benchmark, pairing, scores))
    return pa.concat_tables(parts)


def score_pairing(
    queries: np.ndarray, gallery: np.ndarray, own: np.ndarray, relations: list[Relations]
) -> dict[str, np.ndarray]:
    """Everything that one pairing's similarities decide, one value a question, by the column's name in SCORES.

    queries: (n_questions, dimensions) float32; gallery: (n_candidates, dimensions) float32; both of unit norm.
    own: (n_questions, 4) gallery indices of candidates 1 to 4.
    """
    positives, exacts, supersets, subsets = zip(*relations, strict=True)
    parts = []
    for rows, similarities in similarity_blocks(queries, gallery):
        four = np.take_along_axis(similarities, own[rows], axis=1)
        parts.append(
            {
                "similarities": four,
                "correct": is_correct(four),
                "tied": is_tied(four),
                "rank": rank(similarities, own[rows, 0]),
                "average_precision": average_precision(similarities, positives[rows]),
                "top_four": hold_top_places(similarities, own[rows]),
                "subset_above_exact": pairs_above(similarities, subsets[rows], exacts[rows]),
                "subset_above_superset": pairs_above(similarities, subsets[rows], supersets[rows]),
            }
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def similarity_blocks(queries: np.ndarray, gallery: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Cosines of a run of queries with the whole gallery, block after block, in one buffer that is used again.

    queries: (n_queries, dimensions) float32; gallery: (n_candidates, dimensions) float32; both of unit norm.
    Yields (rows, similarities) with similarities (n_rows, n_candidates) float32.
    """
    same_as = first_equal_row(gallery)
    duplicates = np.flatnonzero(same_as != np.arange(len(gallery)))
    n_blocks = -(-len(queries) * len(gallery) * 4 // BLOCK_BYTES)
    n_rows = -(-len(queries) // max(n_blocks, 1))
    buffer = np.empty((n_rows, len(gallery)), dtype=np.float32)
    for start in range(0, len(queries), n_rows):
        rows = slice(start, min(start + n_rows, len(queries)))
        similarities = np.matmul(queries[rows], gallery.T, out=buffer[: rows.stop - rows.start])
        if len(duplicates):
            similarities[:, duplicates] = similarities[:, same_as[duplicates]]
        yield rows, similarities


def first_equal_row(matrix: np.ndarray) -> np.ndarray:
    """For each row the index of the first row with the same values.

    matrix: (n_rows, dimensions) float32. Returns (n_rows,) int64.
    Rows that differ in a few of their components are told apart by these; only the others are read whole.
    """
    n_rows, dimensions = matrix.shape
    probes = matrix[:, np.linspace(0, dimensions - 1, min(dimensions, 4)).astype(int)] + 0.0  # makes -0 equal to 0
    _, group, sizes = np.unique(probes, axis=0, return_inverse=True, return_counts=True)
    first, seen = np.arange(n_rows), {}
    for row in np.flatnonzero(sizes[group.ravel()] > 1).tolist():
        digest = hashlib.blake2b((matrix[row] + 0.0).tobytes(), digest_size=16).digest()
        first[row] = seen.setdefault(digest, row)
    return first


def _rows(benchmark: Benchmark, pairing: str, scores: dict[str, np.ndarray]) -> pa.Table:
    sizes = {name: np.array([len(getattr(r, name)) for r in benchmark.relations]) for name in Relations._fields}
    columns = {name: benchmark.questions[name] for name in ("question", "subset", "chain", "n_objects")}
    columns |= {
        "pairing": pa.array([pairing] * len(benchmark.questions)),
        "n_positives": sizes["positives"],
        "expected_average_precision": expected_average_precision(sizes["positives"], len(benchmark.gallery_scenes)),
        "subset_exact_pairs": sizes["subset"] * sizes["exact"],
        "subset_superset_pairs": sizes["subset"] * sizes["superset"],
    }
    columns |= {name: values for name, values in scores.items() if name != "similarities"}
    columns["similarities"] = pa.FixedSizeListArray.from_arrays(scores["similarities"].ravel(), len(CANDIDATE_ROLES))
    return pa.table(columns).select(SCORES.schema.names).cast(SCORES.schema)
