"""What the store has cost: its entries, damaged ones too, what may have been paid without an answer, and what open batches
will cost.

journal/<courier>.jsonl: before a request is sent, {"sent": key, ...} is written and fsynced there; when its fate is known,
{"done": key}. A courier that died leaves lines without an end: those requests may have been paid, and their answers lost.
uncertain.jsonl holds all such requests, one a line with their expected cost; they count as spent.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from uuid import uuid4

from ..files import canonical_json, room_for
from .requests import Request
from .store import LONGEST_HEADER, Store

COST = re.compile(rb'"cost_usd":([0-9][0-9.eE+-]*)[,}]')


class Journal:
    """The intents of one courier."""

    def __init__(self, store: Store):
        folder = store.root / "journal"
        folder.mkdir(exist_ok=True)
        self.path = folder / f"{uuid4().hex}.jsonl"
        self._file = self.path.open("ab", buffering=0)

    def sent(self, records: list[dict]) -> None:
        """Durable when it returns; called before the requests are sent."""
        self._append(records)
        with room_for(self.path):
            os.fsync(self._file.fileno())

    def done(self, key: str) -> None:
        self._append([{"done": key}])

    def _append(self, records: list[dict]) -> None:
        """All of it or nothing: a line that is cut short would take the next one with it."""
        end = os.fstat(self._file.fileno()).st_size
        try:
            append_lines(self._file, records, self.path)
        except OSError:
            self._file.truncate(end)
            raise

    def close(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


def intent(request: Request, expected_usd: float) -> dict:
    return {
        "sent": request.key,
        "service": request.service,
        "model": request.model,
        "stage": request.stage,
        "expected_usd": expected_usd,
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
    }


def recover_journals(store: Store) -> int:
    """Turns what dead couriers left open into uncertain purchases. Only for the holder of the courier's lock.

    Returns how many there were.
    """
    count = 0
    for path in sorted((store.root / "journal").glob("*.jsonl")):
        open_intents: dict[str, dict] = {}
        for line in read_lines(path):
            if "sent" in line:
                open_intents[line["sent"]] = line
            elif "done" in line:
                open_intents.pop(line["done"], None)
        lost = [line for key, line in open_intents.items() if store.peek(key) is None]
        add_uncertain(store, [{**line, "cause": "courier killed"} for line in lost])
        count += len(lost)
        path.unlink()
    return count


def add_uncertain(store: Store, records: list[dict]) -> None:
    path = store.root / "uncertain.jsonl"
    if records:
        with room_for(path), path.open("ab", buffering=0) as file:
            append_lines(file, records, path)
            os.fsync(file.fileno())


def append_lines(file: IO[bytes], records: list[dict], path: Path) -> None:
    """JSON lines to an unbuffered file; a full disk, which may take a part of them, is an OSError that names the path."""
    data = b"".join(canonical_json(record).encode() + b"\n" for record in records)
    with room_for(path):
        while data:
            data = data[file.write(data) :]


def uncertain(store: Store) -> list[dict]:
    """Each once, even when a recovery was itself killed and done again."""
    return list({canonical_json(line): line for line in read_lines(store.root / "uncertain.jsonl")}.values())


def read_lines(path: Path) -> Iterator[dict]:
    """Whole JSON lines; a last one that was cut by a kill is passed over."""
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                if isinstance(value, dict):
                    yield value
    except FileNotFoundError:
        return


def spent_usd(store: Store) -> float:
    """All that this store has cost: entries at their real price, damaged ones at what is left to read of it, uncertain
    purchases at the expected one.
    """
    costs = [header["cost_usd"] for header in store.headers()]  # first: it sets aside what is damaged
    expected = sum(line.get("expected_usd", 0.0) for line in uncertain(store))
    return sum(costs) + sum(damaged_usd(store, costs)) + expected


def damaged_usd(store: Store, costs: Sequence[float]) -> list[float]:
    """What each damaged entry has cost: they were paid for, and will be paid for again.

    costs: of the good entries; their mean stands for an entry whose header no longer tells its own.
    """
    mean = sum(costs) / len(costs) if costs else 0.0
    found = map(_told_cost, store.damaged())
    return [mean if cost is None else cost for cost in found]


def _told_cost(path: Path) -> float | None:
    """The cost in a header, even one that does not have its hash: a flipped bit is seldom in these few bytes."""
    try:
        with path.open("rb") as file:
            told = COST.search(
                file.readline(LONGEST_HEADER)
            )  # the first: the request, which may have such a key, follows
        cost = float(told[1]) if told else math.nan
    except (OSError, ValueError):
        return None
    return cost if math.isfinite(cost) else None
