"""The triplets in the forms that others read: CSV and JSONL for sentence-transformers, a Hugging Face data set folder.

    FOLDER/README.md                           the card, whose configs name the files
    FOLDER/data/SPLIT-00000-of-00001.parquet   one row per example, with every column (config "default")
    FOLDER/triplets/SPLIT.csv, SPLIT.jsonl     two rows per example (config "triplets")

sentence-transformers gives every column to the loss, in order and whatever its name, and TripletLoss takes three: so these
files hold anchor, positive and negative and nothing else. The rows of an example follow each other, first the one with the
attribute negative, then the one with the object negative: row r belongs to example r // 2 of the Parquet file (B.5).
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from ..errors import UserError
from ..files import written_whole
from ..tables import TRIPLETS, read_table, write_table
from .card import write_card

COLUMNS = ("anchor", "positive", "negative")


def read_summary(path: Path) -> dict:
    """The summary beside the card. Raises UserError for a file that is missing or none."""
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        summary["splits"], summary["constructions"], summary["sources"]
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run snakemake to make it") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path}: not a summary of triplets; delete it and run again") from None
    return summary


def export_triplets(tables: dict[str, Path], summary: dict, folder: Path) -> None:
    """Writes the folder. tables: TRIPLETS of each split; summary: of the same tables (summarise).

    The card is written last: a folder that has one is whole.
    Raises UserError for a table that is missing or broken, or that is not the summary's.
    """
    folder = Path(folder)
    if set(tables) != set(summary["splits"]):
        raise UserError(f"{folder}: the summary is of {', '.join(summary['splits'])}; run snakemake to make it again")
    (folder / "README.md").unlink(missing_ok=True)
    files: dict[str, dict[str, str]] = {"default": {}, "triplets": {}}
    for split, path in tables.items():
        examples = read_table(TRIPLETS, path)
        if len(examples) != summary["splits"][split]:
            raise UserError(f"{path}: has {len(examples)} rows, the summary {summary['splits'][split]}; run snakemake")
        files["default"][split] = f"data/{split}-00000-of-00001.parquet"
        files["triplets"][split] = f"triplets/{split}.jsonl"
        write_table(TRIPLETS, examples, folder / files["default"][split])
        write_csv(examples, folder / "triplets" / f"{split}.csv")
        write_jsonl(examples, folder / files["triplets"][split])
    write_card(summary, folder / "README.md", files)


def triplets_of(examples: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Anchor, positive and negative, two for each example: the attribute negative, then the object negative."""
    texts = examples.select(["query", "positive", "attribute_negative", "object_negative"])
    for batch in texts.to_batches(max_chunksize=4096):
        for anchor, positive, *negatives in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            for negative in negatives:
                yield anchor, positive, negative


def write_csv(examples: pa.Table, path: Path) -> None:
    """Writes the triplets with a header. Every cell is quoted: sentences hold commas, and may hold quotes and newlines."""
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(triplets_of(examples))


def write_jsonl(examples: pa.Table, path: Path) -> None:
    """Writes the triplets, one JSON object a line."""
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for triplet in triplets_of(examples):
            file.write(json.dumps(dict(zip(COLUMNS, triplet, strict=True)), ensure_ascii=False) + "\n")
