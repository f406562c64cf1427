"""All photographs of all sources as one table, with what cannot be used and why."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ...config.multibind_sources import Photographs
from ...files import progress
from ...tables import write_rows
from ..tables import PHOTOGRAPHS
from . import check_files, read_source


def list_photographs(settings: Photographs, table_path: Path) -> None:
    """Writes PHOTOGRAPHS: the used sources in the config's order, each by id. Tells counts on standard error.

    Raises UserError for a source that is missing or broken as a whole; a single photograph that is has a reason in its row.
    """
    check_files(settings)
    counts: Counter[tuple[str, str]] = Counter()
    write_rows(PHOTOGRAPHS, _all_rows(settings, counts), table_path)
    print(summary(counts), file=sys.stderr)


def _all_rows(settings: Photographs, counts: Counter) -> Iterator[dict]:
    for name, source in settings.used.items():
        rows = read_source(name, source, settings.max_pixels)
        for row in progress(rows, f"photographs of {name}", unit="photograph"):
            counts[name, row["reason"] or "usable"] += 1
            yield row


def summary(counts: dict[tuple[str, str], int]) -> str:
    """One line: of each source the photographs, those that can be used, and the others by reason, most first."""
    parts = []
    for name in dict.fromkeys(name for name, _ in counts):
        found = {reason: count for (source, reason), count in counts.items() if source == name}
        usable, total = found.pop("usable", 0), sum(found.values())
        reasons = "".join(
            f", {count:,} {reason}" for reason, count in sorted(found.items(), key=lambda f: (-f[1], f[0]))
        )
        parts.append(f"{name} {usable + total:,} ({usable:,} usable{reasons})")
    return "Photographs: " + "; ".join(parts)
