"""Findings that are kept from run to run: a JSON file for each, under what it depends on, checked by its own hash when read."""

import json
from pathlib import Path
from typing import Any

from ..files import canonical_json, sha256, write_bytes


def write_sealed(folder: Path, key: str, found: Any) -> None:
    """found: what JSON can hold. key: hex digits of a hash."""
    write_bytes(_file(folder, key), canonical_json(_sealed(found)).encode(), durable=False)


def read_sealed(folder: Path, key: str) -> Any | None:
    """What was written under the key, or None where nothing was, or where the file is no longer what was written."""
    try:
        sealed = json.loads(_file(folder, key).read_bytes())
        return sealed["found"] if sealed == _sealed(sealed["found"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _file(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.json"


def _sealed(found: Any) -> dict:
    return {"sha256": sha256(canonical_json(found)), "found": found}
