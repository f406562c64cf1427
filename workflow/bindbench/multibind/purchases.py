"""Buying for MultiBind: each request once, and again under its next attempt where the answer will not do (section 3.2).

An attempt is part of a request's key. The first one of a part is the number of its answers that people rejected; a run that
goes on walks over the attempts that the store holds and buys only the next one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from ..config.services import Services
from ..files import progress
from ..services.buying import Answer, answers
from ..services.requests import Request

SAME_AS_REJECTED = "the same answer as one that was rejected"


def new_record(stage: str) -> dict:
    """What was bought, to be written beside the table; see services.costs."""
    return {"stage": stage, "requests": 0, "refused": {}, "cost_usd": 0.0, "tokens": {}}


def bought(
    requests: Mapping[str, Request], services: Services | None, record: dict, what: str = "bought", unit: str = "image"
) -> Iterator[tuple[str, Answer]]:
    """Name and answer of each request as they come; the record learns what they cost and which were refused.

    A refused one is yielded too. what, unit: of the lines that tell how far it is.
    Raises UserError when the budget, the key or the service stops the run.
    """
    names: dict[str, list[str]] = {}
    for name, request in requests.items():
        names.setdefault(request.key, []).append(name)  # equal requests share an answer
    single = {request.key: request for request in requests.values()}
    record["requests"] += len(single)
    for answer in progress(answers(single.values(), services), what, len(single), unit):
        record["cost_usd"] = round(record["cost_usd"] + answer.cost_usd, 6)
        for kind, count in answer.tokens.items():
            record["tokens"][kind] = record["tokens"].get(kind, 0) + count
        for name in names[answer.request.key]:
            if not answer.accepted:
                record["refused"][name] = answer.reason
            yield name, answer


def bought_well(
    names: Iterable[str],
    ask: Callable[[str, int], Request],
    judge: Callable[[str, Answer], str],
    services: Services,
    record: dict,
    what: str = "bought",
    unit: str = "image",
) -> None:
    """Buys an answer for each name, and the next attempt while `judge` says what is wrong with it.

    ask: the request of a name; its number counts from 0. judge: keeps the answer, and says in one line what is wrong with it, or
    nothing. A refused answer is not judged and not asked for again. The record's `refused` names the last fault where
    services.max_attempts_payload answers would not do.
    Raises UserError as `bought` does.
    """
    open_names = list(names)
    for number in range(services.max_attempts_payload):
        requests = {name: ask(name, number) for name in open_names}
        faults: dict[str, str] = {}
        told = what if number == 0 else f"{what}, attempt {number + 1}"
        for name, answer in bought(requests, services, record, told, unit) if requests else ():
            if answer.accepted and (fault := judge(name, answer)):
                faults[name] = fault
        open_names = [name for name in open_names if name in faults]
    for name in open_names:
        record["refused"][name] = faults[name]
