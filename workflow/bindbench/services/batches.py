"""Batch APIs: many requests in one file or call, answered within a day for half the price.

A batch lives at the provider, so the run itself makes and collects it, without the courier:

    batches/<name>.json    the plan, fsynced before the batch is made, and the provider's id, fsynced after
    batches/<name>.jsonl   its requests

The name goes with the batch (OpenAI: metadata, Gemini: display name). A run that is killed between making a batch and
noting its id finds it again by that name instead of making a second one. What a batch answered before it ended, expired or
was cancelled becomes entries; the rest is asked again. Batches are made under the courier's lock: no request can be in a
batch and online at once.

Limits: OpenAI takes 50,000 requests and 200 MB in a file, Gemini 20 MB inline; chunks with images stay smaller
(services.batch_images), since their answers are large.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import uuid4

from ..config.services import Services
from ..errors import UserError
from ..files import canonical_json, write_bytes, write_json
from .accounts import read_lines, recover_journals, spent_usd
from .calling import Reply, backoff_s, gemini_arguments, openai_arguments, outcome_of
from .judging import Judgement, judge
from .keys import redacted
from .prices import cost, expected_cost, expected_tokens, price_of, wants_image
from .requests import Request
from .spool import try_lock
from .store import Store, make_header
from .wire import ENDPOINTS, gemini_contents, openai_body

OPENAI_BYTES = 190_000_000
GEMINI_BYTES = 15_000_000
GEMINI_IMAGES = 50  # all answers of an inline batch come in one response
LOOKS = 4  # how often a batch whose making was not confirmed is looked for, before it is made again
ROUNDS_WITHOUT_PROGRESS = 3
HTTP_OF_GRPC = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}


@dataclass(frozen=True)
class Batch:
    """remote: the provider's id, None while it is only planned."""

    name: str
    service: str
    kind: str
    model: str
    keys: tuple[str, ...]
    expected_usd: float
    planned: float
    remote: str | None = None


@dataclass
class Ended:
    """A batch that runs no more. error: why it failed as a whole."""

    error: str | None
    answers: Iterator[tuple[str, int, bytes]]  # key, HTTP status, body


def open_batches(store: Store) -> list[Batch]:
    """Batches that are planned or made and not wholly collected; their expected cost is that of what is not collected.

    A record whose requests are all in the store, left by a run that was killed just then, is removed.
    """
    found = []
    for path in sorted((store.root / "batches").glob("*.json")):
        try:
            value = json.loads(path.read_text())
        except FileNotFoundError:
            continue
        except ValueError:
            raise UserError(
                f"{path}: the record of a batch cannot be read; look its id up at the provider, or delete it"
            ) from None
        batch = Batch(**{**value, "keys": tuple(value["keys"])})
        left = sum(not store.path(key).exists() for key in batch.keys)
        if left:
            found.append(replace(batch, expected_usd=batch.expected_usd * left / len(batch.keys)))
        else:
            _forget(store, batch)
    return found


def buy_in_batches(store: Store, missing: list[Request], settings: Services) -> Iterator[Request]:
    """Yields the requests as their outcomes reach the store.

    Raises UserError once all open batches are collected: budget reached, key refused, a batch refused as a whole, or no
    progress in several rounds.
    """
    rounds = 0
    while missing:
        problem = _submit(store, missing, settings)
        before = len(missing)
        if _of_interest(store, missing, settings):
            _collect_next(store, missing, settings)
        elif problem:
            raise UserError(problem)
        answered = [request for request in missing if _is_settled(store, request, settings)]
        yield from answered
        done = {id(request) for request in answered}
        missing = [request for request in missing if id(request) not in done]
        rounds = 0 if len(missing) < before else rounds + 1
        if rounds >= ROUNDS_WITHOUT_PROGRESS and not _of_interest(store, missing, settings):
            raise UserError(
                f"{len(missing)} requests were left unanswered by {rounds} batches in a row; run the same command again"
            )


def wait_for_batches(store: Store, requests: list[Request], settings: Services) -> None:
    """Collects the open batches that hold any of the requests."""
    while _of_interest(store, requests, settings):
        _collect_next(store, requests, settings)


def _is_settled(store: Store, request: Request, settings: Services) -> bool:
    return store.resolve(request, settings.max_attempts_payload)[1] is not None


def _of_interest(store: Store, requests: list[Request], settings: Services) -> list[Batch]:
    keys = {
        request.at_try(number).key for request in requests for number in range(1, settings.max_attempts_payload + 1)
    }
    return [batch for batch in open_batches(store) if batch.remote and not keys.isdisjoint(batch.keys)]


# Making --------------------------------------------------------------------------------------------------------------


def _submit(store: Store, missing: list[Request], settings: Services) -> str | None:
    """Makes batches of what is neither answered nor in an open one. Returns why it had to stop, if it had to."""
    with _buying_lock(store):
        recover_journals(store)
        settle_plans(store, settings)
        waiting = open_batches(store)
        in_batches = {key for batch in waiting for key in batch.keys}
        asked: dict[str, Request] = {}
        for request in missing:
            attempt, header = store.resolve(request, settings.max_attempts_payload)
            if header is None and attempt.key not in in_batches:
                asked[attempt.key] = attempt
        left = settings.budget_usd - spent_usd(store) - sum(batch.expected_usd for batch in waiting)
        for chunk in _chunks(list(asked.values()), settings):
            affordable, expected = _affordable(chunk, left, settings)
            if affordable:
                _make(store, affordable, expected, settings)
                left -= expected
            if len(affordable) < len(chunk):
                needed = expected_cost(chunk[len(affordable)], settings, batch=True)
                spent = settings.budget_usd - left
                return (
                    f"services.budget_usd: the budget of ${settings.budget_usd:.2f} is reached: ${spent:.4f} spent or in "
                    f"open batches, the next request costs about ${needed:.4f}; raise it and run the same command to go on"
                )
    return None


class _buying_lock:
    """The courier's lock; waits for a courier's end."""

    def __init__(self, store: Store):
        self._path = store.root / "courier.lock"

    def __enter__(self):
        told = False
        while True:
            self._context = try_lock(self._path)
            if self._context.__enter__():
                return self
            self._context.__exit__(None, None, None)
            if not told:
                print("services: waiting for the end of another purchase in this store", file=sys.stderr)
                told = True
            time.sleep(0.1)

    def __exit__(self, *problem):
        return self._context.__exit__(*problem)


def _chunks(requests: list[Request], settings: Services) -> Iterator[list[Request]]:
    """Requests of one kind and model, within the documented limits of number and bytes."""
    groups: dict[tuple, list[Request]] = {}
    for request in requests:
        groups.setdefault((request.service, request.kind, request.model), []).append(request)
    for group in groups.values():
        most = settings.batch_images if wants_image(group[0]) else settings.batch_requests
        most_bytes = OPENAI_BYTES
        if group[0].service == "gemini":
            most_bytes = GEMINI_BYTES
            most = min(most, GEMINI_IMAGES) if wants_image(group[0]) else most
        chunk, size = [], 0
        for request in group:
            length = _wire_bytes(request)
            if chunk and (len(chunk) >= most or size + length > most_bytes):
                yield chunk
                chunk, size = [], 0
            chunk.append(request)
            size += length
        if chunk:
            yield chunk


def _wire_bytes(request: Request) -> int:
    """Bytes of a request in a batch, images as base64."""
    images = sum(Path(image.path).stat().st_size for image in request.images)
    return len(canonical_json(request.body).encode()) + images * 4 // 3 + 300


def _affordable(chunk: list[Request], left: float, settings: Services) -> tuple[list[Request], float]:
    total = 0.0
    for index, request in enumerate(chunk):
        expected = expected_cost(request, settings, batch=True)
        if total + expected > left + 1e-9:
            return chunk[:index], total
        total += expected
    return chunk, total


def _make(store: Store, requests: list[Request], expected: float, settings: Services) -> None:
    first = requests[0]
    batch = Batch(
        f"bindbench-{uuid4().hex}",
        first.service,
        first.kind,
        first.model,
        tuple(request.key for request in requests),
        expected,
        time.time(),
    )
    folder = store.root / "batches"
    write_bytes(
        folder / f"{batch.name}.jsonl", b"".join(canonical_json(item.to_json()).encode() + b"\n" for item in requests)
    )
    _note(store, batch)
    create = _create_gemini if batch.service == "gemini" else _create_openai
    for look in range(LOOKS):
        try:
            remote = create(batch, requests, settings)
            break
        except Exception as error:
            judgement = _judgement(error, first)
            if judgement.verdict != "passing":
                _forget(store, batch)
                raise UserError(redacted(judgement.reason)) from None
            if look == LOOKS - 1:
                raise UserError(
                    f"the batch could not be made ({redacted(judgement.reason)}); run the same command again"
                ) from None
            time.sleep(judgement.retry_after_s or backoff_s(look, settings))
            remote = _find(batch, settings) if judgement.uncertain else None
            if remote:
                break
    _note(store, replace(batch, remote=remote))


def _note(store: Store, batch: Batch) -> None:
    write_json(store.root / "batches" / f"{batch.name}.json", asdict(batch))


def _forget(store: Store, batch: Batch) -> None:
    folder = store.root / "batches"
    for path in (folder / f"{batch.name}.json", folder / f"{batch.name}.jsonl", *folder.glob(f".{batch.name}*")):
        path.unlink(missing_ok=True)


def settle_plans(store: Store, settings: Services) -> None:
    """Plans whose making was not noted: the batch is found by its name, or was never made. Under the courier's lock."""
    for batch in open_batches(store):
        if batch.remote is None:
            remote = _patiently(lambda batch=batch: _find(batch, settings), _some_request(store, batch), settings)
            if remote:
                _note(store, replace(batch, remote=remote))
            else:
                _forget(store, batch)


def _some_request(store: Store, batch: Batch) -> Request:
    return next(_requests_of(store, batch), Request(batch.kind, batch.model, {}))


def _requests_of(store: Store, batch: Batch) -> Iterator[Request]:
    return map(Request.from_json, read_lines(store.root / "batches" / f"{batch.name}.jsonl"))


# Collecting ----------------------------------------------------------------------------------------------------------


def _collect_next(store: Store, requests: list[Request], settings: Services) -> None:
    """Waits until one of the batches that hold the requests has ended, and stores what it answered."""
    told = False
    while waiting := _of_interest(store, requests, settings):
        for batch in waiting:
            if _collect(store, batch, settings):
                return
        if not told:
            told = True
            print(f"services: waiting for {len(waiting)} batches; it is safe to stop and go on later", file=sys.stderr)
        time.sleep(settings.batch_poll_s)


def _collect(store: Store, batch: Batch, settings: Services) -> bool:
    """Whether the batch has ended; its answers are in the store then."""
    retrieve = _retrieve_gemini if batch.service == "gemini" else _retrieve_openai
    ended = _patiently(lambda: retrieve(store, batch, settings), _some_request(store, batch), settings)
    if ended is None:
        return False
    requests = {request.key: request for request in _requests_of(store, batch)}
    stop = None
    for key, status, body in ended.answers:
        if key not in requests:
            continue
        judgement = judge(requests[key], status, body)
        if judgement.verdict in ("answer", "broken", "refused"):
            _keep(store, requests[key], judgement, settings)
        elif judgement.verdict == "stop":
            stop = judgement.reason
    _forget(store, batch)
    if ended.error or stop:
        raise UserError(redacted(f"batch {batch.remote}: {ended.error or stop}"))
    return True


def _keep(store: Store, request: Request, judgement: Judgement, settings: Services) -> None:
    price = price_of(request, settings)
    tokens = judgement.tokens or ({} if judgement.verdict == "refused" else expected_tokens(request, price))
    payload = judgement.payload
    if not judgement.content_type.startswith("image/"):
        payload = redacted(payload.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    header = make_header(
        request,
        payload,
        status="answer" if judgement.verdict == "answer" else "reject",
        final=judgement.verdict != "broken",
        reason=redacted(judgement.reason),
        content_type=judgement.content_type,
        tokens=tokens,
        cost_usd=cost(tokens, price, batch=True),
        cost_from="usage" if judgement.tokens else "estimate",
        mode="batch",
    )
    store.put(header, payload)


def _judgement(error: Exception, request: Request) -> Judgement:
    """Of an exception while making or asking for a batch; raises it again when it is neither service nor network."""
    outcome = outcome_of(error)
    if outcome is None:
        raise error
    if isinstance(outcome, Reply):
        judgement = outcome.judged(request)
        # A server's error or a gateway's timeout may come after the batch was made.
        return replace(judgement, uncertain=True) if outcome.status >= 500 else judgement
    return outcome


def _patiently(ask: Callable, request: Request, settings: Services):
    """Repeats a question that costs nothing through passing errors. Raises UserError when they last."""
    for retry in range(settings.max_retries + 1):
        try:
            return ask()
        except UserError:
            raise
        except Exception as error:
            judgement = _judgement(error, request)
            if judgement.verdict != "passing":
                raise UserError(redacted(judgement.reason)) from None
            time.sleep(judgement.retry_after_s or backoff_s(retry, settings))
    raise UserError(f"{redacted(judgement.reason)}; run the same command again")


# OpenAI --------------------------------------------------------------------------------------------------------------


def _openai(batch: Batch, settings: Services):
    from openai import OpenAI

    return OpenAI(**openai_arguments(settings, batch.model))


def _create_openai(batch: Batch, requests: list[Request], settings: Services) -> str:
    with _openai(batch, settings) as client, tempfile.TemporaryFile() as file:
        for request in requests:
            line = {"custom_id": request.key, "method": "POST", "url": ENDPOINTS[request.kind]}
            file.write(canonical_json({**line, "body": openai_body(request)}).encode() + b"\n")
        file.seek(0)
        uploaded = client.files.create(file=(f"{batch.name}.jsonl", file), purpose="batch")
        made = client.batches.create(
            completion_window="24h",
            endpoint=ENDPOINTS[batch.kind],
            input_file_id=uploaded.id,
            metadata={"bindbench": batch.name},
        )
    return made.id


def _find(batch: Batch, settings: Services) -> str | None:
    """The provider's id of the batch with this name; batches are listed from the newest, a day's slack for clocks."""
    if batch.service == "gemini":
        with _gemini(settings) as client:
            for found in client.batches.list(config={"page_size": 100}):
                if found.display_name == batch.name:
                    return found.name
        return None
    with _openai(batch, settings) as client:
        for found in client.batches.list(limit=100):
            if (found.metadata or {}).get("bindbench") == batch.name:
                return found.id
            if found.created_at < batch.planned - 86400:
                return None
    return None


def _retrieve_openai(store: Store, batch: Batch, settings: Services) -> Ended | None:
    with _openai(batch, settings) as client:
        state = client.batches.retrieve(batch.remote)
        if state.status not in ("completed", "failed", "expired", "cancelled"):
            return None
        files = [file for file in (state.output_file_id, state.error_file_id) if file]
        folder = store.root / "batches"
        paths = []
        for file in files:
            path = folder / f".{batch.name}.{uuid4().hex}"
            with client.files.with_streaming_response.content(file) as content:
                content.stream_to_file(path)
            paths.append(path)
    problems = state.errors.data if state.errors and state.errors.data else []
    error = None
    if state.status == "failed":
        error = "; ".join(str(problem.message) for problem in problems[:3]) or "failed without a reason"
    return Ended(error, _openai_answers(paths))


def _openai_answers(paths: list[Path]) -> Iterator[tuple[str, int, bytes]]:
    """Key, status and body of each line of the output and error files, read line by line; lines without either expired."""
    for path in paths:
        try:
            for line in read_lines(path):
                response = line.get("response") or {}
                if response.get("body") is not None:
                    body = response["body"]
                    yield line["custom_id"], response.get("status_code") or 200, canonical_json(body).encode()
        finally:
            path.unlink(missing_ok=True)


# Gemini --------------------------------------------------------------------------------------------------------------


def _gemini(settings: Services):
    from google import genai

    return genai.Client(**gemini_arguments(settings))


def _create_gemini(batch: Batch, requests: list[Request], settings: Services) -> str:
    with _gemini(settings) as client:
        made = client.batches.create(
            model=batch.model,
            src=[
                {
                    "contents": gemini_contents(request),
                    "config": request.body.get("config"),
                    "metadata": {"key": request.key},
                }
                for request in requests
            ],
            config={"display_name": batch.name},
        )
    return made.name


def _retrieve_gemini(store: Store, batch: Batch, settings: Services) -> Ended | None:
    with _gemini(settings) as client:
        state = client.batches.get(name=batch.remote)
    if not (state.done or (state.state and state.state.name == "JOB_STATE_PARTIALLY_SUCCEEDED")):
        return None
    responses = (state.dest.inlined_responses if state.dest else None) or []
    error = None
    if state.state.name == "JOB_STATE_FAILED":
        error = (state.error.message if state.error else None) or "failed without a reason"
    return Ended(error, _gemini_answers(batch, responses))


def _gemini_answers(batch: Batch, responses: list) -> Iterator[tuple[str, int, bytes]]:
    """Answers come in the order of the requests; their metadata say so where the service returns them."""
    for index, item in enumerate(responses):
        key = (item.metadata or {}).get("key") or (batch.keys[index] if index < len(batch.keys) else "")
        if item.error is not None:
            error = {"error": {"message": item.error.message, "status": item.error.code}}
            yield key, HTTP_OF_GRPC.get(item.error.code or 0, 500), canonical_json(error).encode()
        elif item.response is not None:
            body = item.response.model_dump(mode="json", by_alias=True, exclude_none=True)
            yield key, 200, canonical_json(body).encode()
