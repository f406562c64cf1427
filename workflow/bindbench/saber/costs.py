"""What the images of SABER cost, for the manifest of its tables."""

import json
from pathlib import Path

from ..errors import UserError


def read_costs(records: list[Path]) -> dict:
    """Money and tokens of several shards together, for the manifest of the tables. Raises UserError."""
    total = {"requests": 0, "refused": 0, "cost_usd": 0.0, "tokens": {}}
    for path in records:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be read ({error}); delete its images' table and run again") from None
        total["requests"] += record["requests"]
        total["refused"] += len(record["refused"])
        total["cost_usd"] = round(total["cost_usd"] + record["cost_usd"], 6)
        for kind, count in record["tokens"].items():
            total["tokens"][kind] = total["tokens"].get(kind, 0) + count
    return total
