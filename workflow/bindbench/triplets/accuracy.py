"""Triplet accuracy: how often a model holds the positive closer to the query than the negative (B.5, Table 10).

    python -m bindbench score-triplets --help
    python -m bindbench tabulate-triplets --help

Each example gives two triplets. Closer means strictly closer: a tie is wrong, as it would be for a retrieval system that
has to choose. Chance is 50 %.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from ..config.scoring import Tables
from ..errors import UserError
from ..files import csv_text, write_text
from ..statistics import mean_interval, percent, random_generator
from ..tables import (
    TRIPLET_ROLES,
    TRIPLET_SCORES,
    TRIPLETS,
    read_embeddings,
    read_table,
    read_tables,
    right_triplets,
    write_table,
)

NEGATIVES = TRIPLET_ROLES[2:]
HEADER = ["model", "split", "construction", "negative", "triplets", "accuracy", "low", "high", "tied"]


def triplet_texts(splits: list[Path]) -> dict[str, str]:
    """The four texts of every example of some splits, by item id. Raises UserError when there is none at all."""
    texts = {
        f"{row['example']}:{role}": row[role]
        for row in read_tables(TRIPLETS, splits).select(["example", *TRIPLET_ROLES]).to_pylist()
        for role in TRIPLET_ROLES
    }
    if not texts:
        raise UserError(f"{splits[0]}: has no examples; raise triplets.counts or triplets.splits.test")
    return texts


def score_triplets(splits: list[Path], embeddings: Path, output: Path) -> None:
    """Writes the cosine of each query with its positive and both negatives.

    splits: tables named by their split, those whose texts were embedded. Raises UserError for files that do not match.
    """
    tables = {path.stem: read_table(TRIPLETS, path) for path in splits}
    names = [name for table in tables.values() for name in table["example"].to_pylist()]
    items, vectors = read_embeddings(embeddings)
    if items != [f"{name}:{role}" for name in names for role in TRIPLET_ROLES]:
        raise UserError(f"{embeddings}: not the embeddings of {', '.join(map(str, splits))}; delete it and run again")
    # (examples, roles, dimensions) in float32; equal texts tie exactly
    cube = vectors.reshape(len(names), len(TRIPLET_ROLES), -1)
    similarities = np.einsum("nd,nrd->nr", cube[:, 0], cube[:, 1:])
    write_table(
        TRIPLET_SCORES,
        {
            "example": names,
            "split": [split for split, table in tables.items() for _ in range(len(table))],
            "construction": [name for table in tables.values() for name in table["construction"].to_pylist()],
            **dict(zip(TRIPLET_ROLES[1:], similarities.T.astype(np.float32), strict=True)),
        },
        output,
    )


def tabulate_accuracy(scores: dict[str, Path], settings: Tables, output: Path) -> None:
    """Writes the table: accuracy of each model and split, by construction and by negative, with intervals, in percent.

    scores: by model. The bootstrap draws examples, so both triplets of an example together.
    """
    rows = [["chance", "", "all", "both", "", "50.00", "", "", ""]]
    for model, path in scores.items():
        table = read_table(TRIPLET_SCORES, path)
        splits = table["split"].to_pylist()
        for split in dict.fromkeys(splits):
            rows += _rows(model, split, table.filter(np.array([name == split for name in splits], bool)), settings)
    write_text(output, csv_text(HEADER, rows))


def _rows(model: str, split: str, table: pa.Table, settings: Tables) -> list[list]:
    """Rows of one split: all of it, then each of its constructions where there are several."""
    positive = table["positive"].to_numpy()
    negatives = np.stack([table[name].to_numpy() for name in NEGATIVES])
    right, tied = right_triplets(table), positive == negatives
    constructions = table["construction"].to_numpy(zero_copy_only=False)
    names = sorted(set(constructions))
    rows = []
    for construction in ["all", *(names if len(names) > 1 else [])]:
        kept = np.full(len(table), True) if construction == "all" else constructions == construction
        for negative, chosen in (("both", [0, 1]), *((name, [i]) for i, name in enumerate(NEGATIVES))):
            values = right[chosen][:, kept]
            generator = random_generator(settings.seed, f"triplets {split} {construction} {negative}")
            estimate = mean_interval(values.mean(axis=0), settings.bootstrap_samples, settings.confidence, generator)
            rows.append(
                [
                    *(model, split, construction, negative, values.size),
                    *(percent(float(part)) for part in estimate),
                    percent(float(tied[chosen][:, kept].mean())),
                ]
            )
    return rows
