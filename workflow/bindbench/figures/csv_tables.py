"""Reads CSV tables that this package wrote, for its figures: a table that was cut off draws nothing."""

import csv
from pathlib import Path

from ..errors import UserError


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV table; none of one that is no CSV or whose last line has no end.

    Whether its columns and cells are those that are drawn, the caller checks; see `not_whole`.
    Raises UserError when it is missing.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            lines = list(file)
            rows = list(csv.DictReader(lines, strict=True))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run snakemake to make it") from None
    except (UnicodeDecodeError, csv.Error):
        return []
    return rows if lines and lines[-1].endswith("\n") else []


def not_whole(path: Path) -> UserError:
    return UserError(f"{path}: not a whole table; delete it and run again")
