"""Answers for requests: from the store when they are there, else bought through the courier or a batch.

    for answer in answers(requests, settings):
        ...

Each request is answered once, in the order in which the answers come. Nothing that the store holds is asked for again, and
an answer is in the store before it is handed out. When the run is stopped (budget, key, kill), the same call goes on later.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..config.services import Services
from ..errors import UserError
from .accounts import spent_usd
from .batches import buy_in_batches, open_batches, wait_for_batches
from .keys import fingerprint, key_for
from .prices import TOKEN_KINDS, cost, expected_tokens, price_of
from .requests import Request
from .spool import Lease, try_lock
from .store import Store, store_folder

MODULES = {"openai": "openai", "gemini": "google.genai", "seedream": "openai"}
WITHOUT_BATCHES = ("seedream",)  # services that are asked online in either mode
POLL_S = 0.02
STARTS = 5  # couriers that end without serving, before the run gives up
FAILURES_IN_A_ROW = 10


@dataclass(frozen=True)
class Answer:
    """What came of a request: a payload, or a reject with its reason.

    accepted: the payload is an image or text as asked for. payload: of a reject, what the service said instead.
    held: it was in the store already. cost_usd, tokens: of this answer and of the broken ones before it, whenever they
    were bought.
    """

    request: Request
    accepted: bool
    payload: bytes
    content_type: str
    reason: str
    cost_usd: float
    tokens: dict[str, int]
    held: bool


def answers(requests: Iterable[Request], settings: Services) -> Iterator[Answer]:
    """Yields an Answer for every request.

    Memory: payloads are read one by one as they are yielded; of the requests, only those that wait are kept.
    Raises UserError, after everything in flight is stored: budget reached, key refused or missing, unknown model, client
    library missing, or requests that failed for passing reasons until services.max_retries was used up.
    """
    store = Store(store_folder(settings))
    if settings.mode == "batch":
        yield from _batched(store, requests, settings)
    else:
        yield from _online(store, requests, settings)


def _held(store: Store, request: Request, settings: Services, held: bool) -> Answer | None:
    """The answer in the store, verified; None when there is none yet."""
    attempt, header = store.resolve(request, settings.max_attempts_payload)
    entry = store.read(attempt.key) if header is not None else None
    if entry is None:
        return None
    header = entry.header
    broken = [store.peek(request.at_try(number).key) or {} for number in range(1, attempt.try_number)]
    paid = [header, *(earlier for earlier in broken if earlier)]
    reason = header["reason"] if header["final"] else f"broken {attempt.try_number} times: {header['reason']}"
    return Answer(
        request,
        header["status"] == "answer",
        entry.payload,
        header["content_type"],
        reason,
        round(sum(part["cost_usd"] for part in paid), 8),
        {kind: sum(part["tokens"].get(kind, 0) for part in paid) for kind in TOKEN_KINDS},
        held,
    )


def check_can_buy(service: str, model: str, settings: Services) -> None:
    """Raises UserError when the service's client library or key is missing; a server of one's own needs no key."""
    if importlib.util.find_spec(MODULES[service].split(".")[0]) is None:
        raise UserError(f"{MODULES[service]} is not installed; install the dependency group services")
    if model not in settings.servers:
        key_for(service)


def _online(store: Store, requests: Iterable[Request], settings: Services) -> Iterator[Answer]:
    desk: _Desk | None = None
    coming = iter(requests)
    exhausted = False
    checked: set[tuple[str, str]] = set()
    window = max(64, 4 * settings.concurrency)
    try:
        while True:
            asked = []
            while not exhausted and (desk is None or len(desk.waiting) < window):
                request = next(coming, None)
                if request is None:
                    exhausted = True
                    break
                answer = _held(store, request, settings, held=True)
                if answer is not None:
                    yield answer
                    continue
                price_of(request, settings)
                if (request.service, request.model) not in checked:
                    check_can_buy(request.service, request.model, settings)
                    checked.add((request.service, request.model))
                desk = desk or _Desk(store, settings)
                if desk.add(request):
                    asked.append(request)
                if len(asked) >= settings.concurrency:
                    break  # let the courier begin while we look up the rest
            if desk is None:
                return
            desk.lease.ask(asked)
            for request in desk.served(asked):
                answer = _held(store, request, settings, held=False)
                if answer is None:  # damaged between storing and reading: ask again
                    desk.add(request)
                    desk.lease.ask([request])
                else:
                    yield answer
            if exhausted and not desk.waiting:
                break
        desk.raise_failures()
    finally:
        if desk is not None:
            desk.lease.close()


class _Desk:
    """The run's side of the counter: who waits for what, and whether a courier is there."""

    def __init__(self, store: Store, settings: Services):
        self.store, self.settings = store, settings
        self.fingerprint = fingerprint(settings.model_dump_json())
        self.lease = Lease(store, self.fingerprint)
        self.waiting: dict[str, list[Request]] = {}
        self.failures: list[str] = []
        self.failed_in_a_row = 0
        self.starts = 0
        self.courier: subprocess.Popen | None = None
        self.next_look = 0.0
        self.told_of_another = False

    def add(self, request: Request) -> bool:
        """Whether it has to be asked for; a second request with the same key waits for the first one's answer."""
        self.waiting.setdefault(request.key, []).append(request)
        return len(self.waiting[request.key]) == 1

    def served(self, just_asked: list[Request]) -> Iterator[Request]:
        """Requests that have become answered since the last call; waits a moment when there are none."""
        self._see_to_a_courier()
        news = self.lease.news()
        if not news and not just_asked:
            time.sleep(POLL_S)
        in_batches: list[Request] = []
        for line in news:
            if "stop" in line:
                raise UserError(line["stop"])
            if "note" in line:
                print(f"services: {line['note']}", file=sys.stderr)
            requests = self.waiting.pop(line.get("key"), [])
            if line.get("state") == "failed":
                self._failed(requests, line.get("reason", ""))
            elif line.get("state") == "batch":
                in_batches += requests
            elif requests:
                self.failed_in_a_row, self.starts = 0, 0
                yield from requests
        if in_batches:
            wait_for_batches(self.store, in_batches, self.settings)
            # What an expired batch left over is asked online now.
            for request in in_batches:
                if self.store.resolve(request, self.settings.max_attempts_payload)[1] is None:
                    if self.add(request):
                        self.lease.ask([request])
                else:
                    yield request

    def _failed(self, requests: list[Request], reason: str) -> None:
        self.failures += [reason] * len(requests)
        self.failed_in_a_row += len(requests)
        if self.failed_in_a_row >= FAILURES_IN_A_ROW:
            self.raise_failures()

    def raise_failures(self) -> None:
        if self.failures:
            raise UserError(
                f"{len(self.failures)} requests got no answer (the last: {self.failures[-1]}); run the same command again"
            )

    def _see_to_a_courier(self) -> None:
        """Starts one when the store has none."""
        if not self.waiting or time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + 0.25
        if self.courier is not None and self.courier.poll() is None:
            return
        with try_lock(self.store.root / "courier.lock") as free:
            pass
        if free:
            if self.starts >= STARTS:
                log = self.store.root / "courier.log"
                raise UserError(f"the courier ends {STARTS} times in a row without an answer; {log} says why")
            self.starts += 1
            self.courier = start_courier(self.store, self.settings)
        elif not self.told_of_another and _courier_fingerprint(self.store) not in (None, self.fingerprint):
            self.told_of_another = True
            print(
                f"{self.store.root}: another run buys with other settings or keys; waiting for its end", file=sys.stderr
            )


def _courier_fingerprint(store: Store) -> str | None:
    try:
        return json.loads((store.root / "courier.json").read_text())["fingerprint"]
    except (OSError, ValueError, KeyError):
        return None


def start_courier(store: Store, settings: Services) -> subprocess.Popen:
    """In a session of its own, so that neither a Ctrl-C nor a kill of the run's group reaches it; keys go by environment."""
    package = str(Path(__file__).resolve().parents[2])
    log = store.root / "courier.log"
    if log.exists() and log.stat().st_size > 10 << 20:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "bindbench.services.courier", str(store.root), settings.model_dump_json()],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))},
            start_new_session=True,
        )


def _batched(store: Store, requests: Iterable[Request], settings: Services) -> Iterator[Answer]:
    missing: list[Request] = []
    online: list[Request] = []
    for request in requests:
        answer = _held(store, request, settings, held=True)
        if answer is not None:
            yield answer
        else:
            (online if request.service in WITHOUT_BATCHES else missing).append(request)
    if online:
        yield from _online(store, online, settings)
    if not missing:
        return
    for service, model in sorted({(request.service, request.model) for request in missing}):
        check_can_buy(service, model, settings)
    for request in buy_in_batches(store, missing, settings):
        answer = _held(store, request, settings, held=False)
        if answer is not None:
            yield answer


@dataclass(frozen=True)
class Estimate:
    """Before anything is bought. tokens and price_usd are of what has to be bought; spent_usd is the store's total."""

    requests: int
    held: int
    tokens: dict[str, int]
    price_usd: float
    spent_usd: float
    budget_usd: float

    @property
    def fits(self) -> bool:
        return self.spent_usd + self.price_usd <= self.budget_usd


def estimate(requests: Iterable[Request], settings: Services) -> Estimate:
    """What buying the requests would take, and what the store already holds of them. Raises UserError without a price."""
    store = Store(store_folder(settings))
    total, held, price_usd = 0, 0, 0.0
    tokens = dict.fromkeys(TOKEN_KINDS, 0)
    seen: set[str] = set()
    for request in requests:
        total += 1
        attempt, header = store.resolve(request, settings.max_attempts_payload)
        if header is not None or request.key in seen:
            held += header is not None
            continue
        seen.add(request.key)
        price = price_of(attempt, settings)
        expected = expected_tokens(attempt, price)
        for kind, count in expected.items():
            tokens[kind] += count
        price_usd += cost(expected, price, settings.mode == "batch" and request.service not in WITHOUT_BATCHES)
    waiting = sum(batch.expected_usd for batch in open_batches(store))
    return Estimate(total, held, tokens, round(price_usd, 6), round(spent_usd(store) + waiting, 6), settings.budget_usd)
