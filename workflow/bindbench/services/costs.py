"""What was bought for a table, from the records beside its shards; for its manifest."""

import json
from pathlib import Path

from ..errors import UserError
from ..manifest import is_number


def read_costs(records: list[Path]) -> dict:
    """Money and tokens of several shards together, for the manifest of the tables. Raises UserError."""
    total = {"requests": 0, "refused": 0, "cost_usd": 0.0, "tokens": {}}
    for path in records:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{path}: no such file; delete {path.with_suffix('.parquet')} and run again") from None
        except (OSError, ValueError):
            record = None
        if not _is_record(record):
            raise UserError(f"{path}: not a record of what was bought; delete it and run again")
        total["requests"] += record["requests"]
        total["refused"] += len(record["refused"])
        total["cost_usd"] = round(total["cost_usd"] + record["cost_usd"], 6)
        for kind, count in record["tokens"].items():
            total["tokens"][kind] = total["tokens"].get(kind, 0) + count
    return total


def _is_record(record) -> bool:
    return (
        isinstance(record, dict)
        and is_number(record.get("requests"))
        and is_number(record.get("cost_usd"))
        and isinstance(record.get("refused"), dict)
        and isinstance(record.get("tokens"), dict)
        and all(map(is_number, record["tokens"].values()))
    )
