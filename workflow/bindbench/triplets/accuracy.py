"""Triplet accuracy: how often a model holds the positive closer to the query than the negative (B.5, Table 10).

    python -m bindbench score-triplets --help
    python -m bindbench tabulate-triplets --help

Each example gives two triplets. Closer means strictly closer: a tie is wrong, as it would be for a retrieval system that
has to choose. Chance is 50 %.
"""

from pathlib import Path

import numpy as np

from ..config.scoring import Tables
from ..errors import UserError
from ..files import csv_text, write_text
from ..statistics import mean_interval, percent, random_generator
from ..tables import TRIPLET_SCORES, TRIPLETS, read_embeddings, read_table, write_table

ROLES = ("query", "positive", "attribute_negative", "object_negative")
NEGATIVES = ROLES[2:]
HEADER = ["model", "split", "construction", "negative", "triplets", "accuracy", "low", "high", "tied"]


def triplet_texts(examples: Path) -> dict[str, str]:
    """The four texts of every example, by item id. Raises UserError for an empty table: there is nothing to embed."""
    table = read_table(TRIPLETS, examples)
    if not len(table):
        raise UserError(f"{examples}: has no examples; raise triplets.counts or leave this split out")
    return {
        f"{row['example']}:{role}": row[role] for row in table.select(["example", *ROLES]).to_pylist() for role in ROLES
    }


def score_triplets(examples: Path, embeddings: Path, output: Path) -> None:
    """Writes the cosine of each query with its positive and both negatives. Raises UserError for files that do not match."""
    table = read_table(TRIPLETS, examples)
    items, vectors = read_embeddings(embeddings)
    names = table["example"].to_pylist()
    if items != [f"{name}:{role}" for name in names for role in ROLES]:
        raise UserError(f"{embeddings}: not the embeddings of {examples}; delete it and run again")
    # (examples, roles, dimensions) in float32: negatives share their words, so equal texts tie exactly
    cube = vectors.reshape(len(names), len(ROLES), -1)
    similarities = np.einsum("nd,nrd->nr", cube[:, 0], cube[:, 1:])
    columns = dict(zip(ROLES[1:], similarities.T.astype(np.float32), strict=True))
    write_table(
        TRIPLET_SCORES,
        {"example": names, "construction": table["construction"].to_pylist(), **columns},
        output,
    )


def tabulate_accuracy(scores: dict[tuple[str, str], Path], settings: Tables, output: Path) -> None:
    """Writes the table: accuracy of each model and split, by construction and by negative, with intervals, in percent.

    scores: by model and split. The bootstrap draws examples, so both triplets of an example together.
    """
    rows = [["chance", "", "all", "both", "", "50.00", "", "", ""]]
    for (model, split), path in scores.items():
        table = read_table(TRIPLET_SCORES, path)
        positive = table["positive"].to_numpy()
        negatives = np.stack([table[name].to_numpy() for name in NEGATIVES])
        right, tied = (positive > negatives).astype(float), positive == negatives
        constructions = table["construction"].to_numpy(zero_copy_only=False)
        names = sorted(set(constructions))
        for construction in ["all", *(names if len(names) > 1 else [])]:
            kept = np.full(len(table), True) if construction == "all" else constructions == construction
            for negative, chosen in (("both", slice(None)), *((name, [i]) for i, name in enumerate(NEGATIVES))):
                values = right[chosen][:, kept].mean(axis=0)
                generator = random_generator(settings.seed, f"triplets {split} {construction} {negative}")
                estimate = mean_interval(values, settings.bootstrap_samples, settings.confidence, generator)
                rows.append(
                    [
                        *(model, split, construction, negative, right[chosen][:, kept].size),
                        *(percent(float(part)) for part in estimate),
                        percent(float(tied[chosen][:, kept].mean())),
                    ]
                )
    write_text(output, csv_text(HEADER, rows))
