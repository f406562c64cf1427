"""The courier: the process that sends requests and stores answers, so that no answer is lost with the run that asked.

    python -m bindbench.services.courier STORE SETTINGS      started by a run on demand, in a session of its own

A request in flight is paid for, whoever dies. So runs send nothing themselves: they spool their wishes (spool.py), the
courier sends, stores and tells. When a run is killed, process group and all, the courier finishes what is in flight,
starts nothing more for it, and ends when nobody is left. There is one courier for a store (courier.lock); runs with the
same settings and keys share it, a run with others waits for its end. Its own death is what journal/ is for (accounts.py).
"""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ..config.services import Services
from ..errors import UserError
from ..files import write_json
from .accounts import Journal, add_uncertain, intent, recover_journals, spent_usd
from .batches import open_batches, settle_plans
from .calling import Clients, Reply, backoff_s, send
from .judging import Judgement
from .keys import fingerprint, redacted
from .prices import cost, expected_cost, expected_tokens, price_of
from .requests import Request
from .spool import Run, try_lock
from .store import Store, make_header

WRITERS = 4
LONG_WAIT_S = 30.0  # a person is told of waits from here on
IDLE_S = 2.0  # without a run for so long, the courier ends
TICK_S = 0.02
LOCK_PATIENCE_S = 3.0
INVALID_IN_A_ROW = 5  # so many invalid requests without an answer between them are a mistake of the caller
WRITE_PATIENCE_S = 600.0  # how long an answer is held in memory for a disk that is full


class Unanswered(Exception):
    """Passing errors outlasted the retries; the message is the last of them."""


@dataclass
class Wanted:
    """A request that runs wait for."""

    request: Request
    runs: list[Run] = field(default_factory=list)


class Courier:
    def __init__(self, store: Store, settings: Services):
        self.store, self.settings = store, settings
        self.fingerprint = fingerprint(settings.model_dump_json())
        self.clients = Clients(settings)
        self.runs: dict[Path, Run] = {}
        self.queue: deque[str] = deque()
        self.wanted: dict[str, Wanted] = {}  # by key of the first try: queued or being asked
        self.tasks: dict[str, asyncio.Task] = {}
        # A few threads fsync and decode, so that the loop never waits for a disk; one of its own keeps the journal's order.
        self.writers = ThreadPoolExecutor(WRITERS, "writer")
        self.scribe = ThreadPoolExecutor(1, "scribe")
        self.journal = Journal(store)
        self.unsent: list[dict] = []
        self.flush: asyncio.Task | None = None
        batches = open_batches(store)
        self.in_batches = {key for batch in batches for key in batch.keys}
        self.spent = spent_usd(store) + sum(batch.expected_usd for batch in batches)
        self.reserved = 0.0
        self.money_moved = asyncio.Event()
        self.not_before: dict[str, float] = {}  # by service: the time until which it asked us to wait
        self.invalid_in_a_row = 0
        self.strangers: set[Path] = set()  # runs with other settings or keys
        self.ending = False

    # The loop ------------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        last_needed = time.monotonic()
        while True:
            self._look_for_runs()
            self._start_tasks()
            if self.ending and not self.tasks:
                break
            if self.runs or self.tasks:
                last_needed = time.monotonic()
            elif time.monotonic() - last_needed > IDLE_S:
                break
            await asyncio.sleep(TICK_S)
        self._look_for_runs()  # the last news
        await self.clients.close()
        self.writers.shutdown()
        self.scribe.shutdown()
        self.journal.close()

    def end(self) -> None:
        """Asked to end (SIGTERM): finishes what is in flight and starts nothing more."""
        self.ending = True
        self._stop("the courier was asked to end; run the same command again", list(self.runs.values()))

    def _look_for_runs(self) -> None:
        for path in sorted((self.store.root / "spool").glob("*.requests")):
            if path not in self.runs and path not in self.strangers and not self.ending:
                run = Run(path)
                requests = run.new_requests()
                if run.fingerprint != self.fingerprint:
                    self.strangers.add(path)
                    continue
                run.begin()
                self.runs[path] = run
                self._take(run, requests)
        for path, run in list(self.runs.items()):
            run.write_news()
            if not run.is_alive():
                run.remove()
                del self.runs[path]
            elif run.stop_reason is None:
                self._take(run, run.new_requests())
            elif not run.told and not any(run in self.wanted[key].runs for key in self.tasks):
                run.told = True
                run.tell(stop=run.stop_reason)

    def _take(self, run: Run, requests: list[Request]) -> None:
        for request in requests:
            wanted = self.wanted.get(request.key)
            if wanted is None:
                wanted = self.wanted[request.key] = Wanted(request)
                self.queue.append(request.key)
            wanted.runs.append(run)

    def _start_tasks(self) -> None:
        while self.queue and not self.ending and len(self.tasks) < self.settings.concurrency:
            key = self.queue.popleft()
            if self._is_wanted(self.wanted[key]):
                self.tasks[key] = asyncio.create_task(self._serve(self.wanted[key]))
                self.tasks[key].add_done_callback(lambda task, key=key: self._finished(key, task))
            else:
                del self.wanted[key]

    def _finished(self, key: str, task: asyncio.Task) -> None:
        """Whatever happened inside, every run that wants the request by now hears of it."""
        wanted = self.wanted.pop(key)
        del self.tasks[key]
        error = task.exception()
        if error is not None:
            if not isinstance(error, (UserError, Unanswered)):
                say("".join(traceback.format_exception(error)))
            reason = redacted(str(error) or type(error).__name__)
            self._tell(wanted, key=key, state="failed", reason=reason)
        elif task.result():
            self._tell(wanted, key=key, state=task.result())
        elif self._is_wanted(wanted):
            # A run came to want it just when it was given up.
            self.wanted[key] = wanted
            self.queue.append(key)

    def _is_wanted(self, wanted: Wanted) -> bool:
        """Whether a run is alive that asked for it and has not been stopped."""
        return any(run.stop_reason is None and run.is_alive() for run in wanted.runs)

    def _tell(self, wanted: Wanted, **news) -> None:
        for run in wanted.runs:
            if run.path in self.runs:
                run.tell(**news)

    def _stop(self, reason: str, runs: list[Run], at_once: bool = False) -> None:
        """Starts nothing more for the runs. They are told when nothing of theirs is in flight, or at once."""
        say(f"stop: {reason}")
        for run in runs:
            run.stop_reason = run.stop_reason or redacted(reason)
            if at_once and not run.told:
                run.told = True
                run.tell(stop=run.stop_reason)
        self._wake()

    def _wake(self) -> None:
        self.money_moved.set()
        self.money_moved = asyncio.Event()

    # One request ---------------------------------------------------------------------------------------------------

    async def _serve(self, wanted: Wanted) -> str | None:
        """Gets one answer into the store: a further try for each broken payload, further calls for passing errors.

        Returns the news: stored, or batch when it is part of one; None when it was left unasked because nobody wanted it
        any more, or because the runs have to stop.
        """
        for number in range(1, self.settings.max_attempts_payload + 1):
            request = wanted.request.at_try(number)
            header = await self._in_writer(self.store.verify, request.key)
            if header is None:
                if self._is_in_a_batch(request):
                    return "batch"
                header = await self._ask(wanted, request)
                if header is None:
                    return None
            if header["final"]:
                break
        return "stored"

    def _is_in_a_batch(self, request: Request) -> bool:
        """No batch is made while a courier lives, but one may have ended."""
        if request.key in self.in_batches:
            self.in_batches = {key for batch in open_batches(self.store) for key in batch.keys}
        return request.key in self.in_batches

    async def _ask(self, wanted: Wanted, request: Request) -> dict | None:
        """Sends one try until its answer is stored. None when nobody wants it any more.

        Raises Unanswered when passing errors outlasted the retries.
        """
        expected = expected_cost(request, self.settings)
        for retry in range(self.settings.max_retries + 1):
            await self._pause(request.service)
            if not self._is_wanted(wanted) or not await self._reserve(wanted, expected):
                return None
            judgement = await self._call(request, expected)
            if judgement.verdict in ("answer", "broken", "refused"):
                header = await self._keep(request, judgement, expected)
                self._release(expected, header["cost_usd"])
                self._watch_invalid(wanted, judgement)
                return header
            if judgement.verdict == "stop":
                self.journal.done(request.key)
                self._release(expected, 0.0)
                self._stop(judgement.reason, list(self.runs.values()) if _is_everybodys(judgement) else wanted.runs)
                return None
            say(f"{request.key[:12]}: {judgement.reason}")
            if judgement.uncertain:
                self._may_be_paid(request, expected, judgement.reason)
            else:
                self.journal.done(request.key)
                self._release(expected, 0.0)
            if judgement.retry_after_s is not None:
                until = time.monotonic() + judgement.retry_after_s
                self.not_before[request.service] = max(self.not_before.get(request.service, 0), until)
                if judgement.retry_after_s >= LONG_WAIT_S:
                    self._tell(
                        wanted,
                        note=f"{request.service} asks to wait {judgement.retry_after_s:.0f} s ({judgement.reason})",
                    )
            if retry < self.settings.max_retries:
                await self._sleep(backoff_s(retry, self.settings), wanted)
        raise Unanswered(judgement.reason)

    async def _call(self, request: Request, expected: float) -> Judgement:
        """One call, noted in the journal before."""
        try:
            await self._journal(intent(request, expected))
        except OSError:
            self._release(expected, 0.0)
            raise
        try:
            outcome = await send(request, self.clients)
        except UserError:  # nothing was sent: an input image changed
            self.journal.done(request.key)
            self._release(expected, 0.0)
            raise
        except Exception as error:
            self._may_be_paid(request, expected, f"fault of the program ({type(error).__name__})")
            raise
        if not isinstance(outcome, Reply):
            return outcome
        try:
            return await self._in_writer(outcome.judged, request)
        except Exception as error:
            self._may_be_paid(request, expected, f"fault of the program ({type(error).__name__})")
            raise

    def _may_be_paid(self, request: Request, expected: float, cause: str) -> None:
        add_uncertain(self.store, [{**intent(request, expected), "cause": cause}])
        self.journal.done(request.key)
        self._release(expected, expected)

    async def _sleep(self, seconds: float, wanted: Wanted) -> None:
        """Waits, but not for a run that is gone."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._is_wanted(wanted):
            await asyncio.sleep(min(left, 0.5))

    async def _pause(self, service: str) -> None:
        while (left := self.not_before.get(service, 0) - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.5))
            if not self.runs:
                return

    async def _keep(self, request: Request, judgement: Judgement, expected: float) -> dict:
        price = price_of(request, self.settings)
        refused = judgement.verdict == "refused"
        tokens = judgement.tokens or ({} if refused else expected_tokens(request, price))
        header = make_header(
            request,
            payload := _without_keys(judgement),
            status="answer" if judgement.verdict == "answer" else "reject",
            final=judgement.verdict != "broken",
            reason=redacted(judgement.reason),
            content_type=judgement.content_type,
            tokens=tokens,
            cost_usd=cost(tokens, price),
            cost_from="usage" if judgement.tokens else "estimate",
        )
        await self._put(header, payload)
        self.journal.done(request.key)
        return header

    async def _put(self, header: dict, payload: bytes) -> None:
        """Into the store; when the disk is full the runs are stopped, and the answer waits in memory for room."""
        deadline = time.monotonic() + WRITE_PATIENCE_S
        while True:
            try:
                return await self._in_writer(self.store.put, header, payload)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise
                reason = f"{self.store.root}: the store cannot be written ({error.strerror}); make room and run again"
                self._stop(reason, list(self.runs.values()), at_once=True)
                await asyncio.sleep(1)

    def _watch_invalid(self, wanted: Wanted, judgement: Judgement) -> None:
        if judgement.verdict == "refused" and judgement.reason.startswith("invalid request"):
            self.invalid_in_a_row += 1
            if self.invalid_in_a_row >= INVALID_IN_A_ROW:
                self._stop(f"{INVALID_IN_A_ROW} requests in a row were refused: {judgement.reason}", wanted.runs)
        else:
            self.invalid_in_a_row = 0

    # Money ---------------------------------------------------------------------------------------------------------

    async def _reserve(self, wanted: Wanted, expected: float) -> bool:
        """Sets the expected cost aside, waiting for what is in flight to get cheaper; False when the run has to stop."""
        budget = self.settings.budget_usd
        while self.spent + self.reserved + expected > budget + 1e-9:
            if self.reserved == 0:
                reason = budget_message(budget, self.spent, expected)
                self._stop(reason, list(self.runs.values()))
                return False
            await self.money_moved.wait()
            if not self._is_wanted(wanted):
                return False
        self.reserved += expected
        return True

    def _release(self, expected: float, real: float) -> None:
        self.reserved = max(0.0, self.reserved - expected)
        self.spent += real
        if not self.reserved or self.reserved < 1e-9:
            self.reserved = 0.0
        self._wake()

    # Disk ----------------------------------------------------------------------------------------------------------

    async def _in_writer(self, function, *arguments):
        return await asyncio.get_running_loop().run_in_executor(self.writers, function, *arguments)

    async def _journal(self, record: dict) -> None:
        """Durable when it returns; the intents of one turn of the loop share one fsync."""
        self.unsent.append(record)
        if self.flush is None:
            self.flush = asyncio.create_task(self._flush())
        await asyncio.shield(self.flush)

    async def _flush(self) -> None:
        await asyncio.sleep(0)
        records, self.unsent, self.flush = self.unsent, [], None
        await asyncio.get_running_loop().run_in_executor(self.scribe, self.journal.sent, records)


def budget_message(budget: float, spent: float, expected: float) -> str:
    return (
        f"services.budget_usd: the budget of ${budget:.2f} is reached: ${spent:.4f} spent in this store, the next request "
        f"costs about ${expected:.4f}; raise it and run the same command to go on"
    )


def _is_everybodys(judgement: Judgement) -> bool:
    """A wrong key stops every run; an unknown model only those that asked for it."""
    return "refuses the key" in judgement.reason


def _without_keys(judgement: Judgement) -> bytes:
    """Images stay as they are; a text that repeats a key loses it."""
    if judgement.content_type.startswith("image/"):
        return judgement.payload
    text = judgement.payload.decode("utf-8", "surrogateescape")
    return redacted(text).encode("utf-8", "surrogateescape")


def say(text: str) -> None:
    """A line of the courier's log."""
    with suppress(OSError):  # a full disk
        print(
            f"{datetime.now(UTC).isoformat(timespec='seconds')} {redacted(text).rstrip()}", file=sys.stderr, flush=True
        )


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def main(arguments: list[str]) -> int:
    handler = logging.StreamHandler()
    handler.setFormatter(_Redacting("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    return serve(*arguments)


def serve(root: str, settings_json: str) -> int:
    """Serves a store until nobody needs it. Returns the exit code; 0 also when another courier serves it already."""
    try:
        store = Store(root)
        settings = Services.model_validate_json(settings_json)
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while True:
            with try_lock(store.root / "courier.lock") as free:
                if free:
                    asyncio.run(_work(store, settings))
                    return 0
            if time.monotonic() > deadline:
                return 0
            time.sleep(0.05)
    except Exception:
        say(traceback.format_exc())
        return 1


async def _work(store: Store, settings: Services) -> None:
    lost = recover_journals(store)
    if lost:
        say(f"{lost} requests of an earlier courier may have been paid without an answer; they count as spent")
    store.clean()
    settle_plans(store, settings)
    for path in (store.root / "spool").glob("*"):
        run = Run(path.with_suffix(".requests"))
        if path.suffix != ".new" and not run.is_alive():
            run.remove()
    courier = Courier(store, settings)
    if threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, courier.end)
    write_json(store.root / "courier.json", {"pid": os.getpid(), "fingerprint": courier.fingerprint})
    say(f"started, ${courier.spent:.4f} spent so far")
    await courier.work()
    say("ended: no run is left")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
