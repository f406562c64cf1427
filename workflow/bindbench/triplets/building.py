"""One shard of the examples of a construction: proposals in, accepted examples and rejects out (B.1, B.3, B.4).

    python -m bindbench propose-triplets --help

Every attempt has a number, and its controls are drawn from that number. Proposals are judged in that order, so the accepted
set is the same for the same answers, however many requests are in flight. A model is asked in rounds: the requests of a
round share the word lists as they stood at its start, and only as many of them are sent as examples are still missing, so
that a larger count goes on where a smaller one stopped, and buys nothing twice. A shard begins where the one before it
ended: words counted, number of the next attempt, word lists of the round.
"""

import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count as numbers
from pathlib import Path

from ..config.services import Services
from ..config.triplets import Generation
from ..errors import UserError
from ..files import progress, write_json, write_text
from ..paths import resolve
from ..services.buying import answers
from ..services.requests import Request
from ..services.store import Store, store_folder
from ..tables import TRIPLET_REJECTS, TRIPLETS, write_table
from .constructions import Binding, Example, Guidance, Proposal, Reject, Specification
from .controls import Controls, read_controls, sample_specification
from .prompting import build_request, no_answer_reason, read_proposals, refusals
from .usage import Usage, suggested, whole_number
from .validation import check

STAGE = "triplets"
PATIENCE = 500  # proposals after which too few accepted ones end the shard
HOPED_ACCEPTANCE = 0.7  # of a model, before anything is known


@dataclass
class State:
    """Where a construction stands. guidance: the word lists of the round that attempt `next_index` belongs to, if begun."""

    usage: Usage
    next_index: int = 0
    guidance: Guidance | None = None

    def to_json(self) -> dict:
        guidance = self.guidance
        return {
            "usage": self.usage.to_json(),
            "next_index": self.next_index,
            "guidance": guidance
            and {"avoid": guidance.avoid, "banned": guidance.banned, "suggestions": guidance.suggestions},
        }

    @classmethod
    def from_json(cls, value: dict) -> "State":
        guidance = value["guidance"]
        if guidance:
            suggestions = {family: tuple(words) for family, words in guidance["suggestions"].items()}
            guidance = Guidance(tuple(guidance["avoid"]), tuple(guidance["banned"]), suggestions)
        return cls(Usage.from_json(value["usage"]), whole_number(value["next_index"]), guidance)


def read_state(path: Path | None, construction: str) -> State:
    """The state after the shard before; a fresh one for the first shard. Raises UserError for a broken file."""
    if path is None:
        return State(Usage(construction))
    try:
        state = State.from_json(json.loads(path.read_text(encoding="utf-8")))
        if state.usage.construction.name != construction:
            raise ValueError(f"the state of {state.usage.construction.name}")
        return state
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run snakemake to make it") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path}: not a state of triplets; delete it and run again") from None


@dataclass
class Bought:
    """What the requests of a shard came to."""

    requests: int = 0
    cost_usd: float = 0.0
    tokens: Counter = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)

    def add(self, answer, first_index: int) -> None:
        self.requests += 1
        self.cost_usd += answer.cost_usd
        self.tokens.update({kind: count for kind, count in answer.tokens.items() if count})
        if not answer.accepted:
            self.refused[f"attempt {first_index}"] = answer.reason


def build_shard(
    construction: str,
    size: int,
    before: Path | None,
    settings: Generation,
    services: Services | None,
    *outputs: Path,
) -> None:
    """Writes examples, rejects, the state after them, and the record of what was bought.

    size: accepted examples to make. before: state after the shard before; None for the first. services: of the paid
    backends. outputs: the four files, in this order.
    Raises UserError when too few proposals are accepted, and whatever services.buying.answers raises.
    """
    if size < 1:
        raise UserError(f"{construction}: a shard has at least one example (got {size})")
    examples_path, rejects_path, state_path, record_path = outputs
    controls = read_controls(resolve(settings.resources))
    state, bought = read_state(before, construction), Bought()
    source = "grammar" if settings.backend == "grammar" else f"{settings.backend}/{settings.model}"
    examples: list[dict] = []
    rejects: list[dict] = []
    reasons: Counter[str] = Counter()
    recent: list[str] = []  # the reason of each reject since the last count, "" for an accepted one
    first = state.next_index
    with progress(None, construction, total=size, unit="example") as bar:
        for proposed in _proposals(construction, state, size, controls, settings, services, bought):
            outcome = judged(proposed, state.usage, controls.families)
            state.next_index = outcome.specification.index + 1
            if isinstance(outcome, Example):
                examples.append({**_controls_row(outcome, source), **_texts_row(outcome)})
                bar.update()
            else:
                rejects.append(_reject_row(outcome, source))
                reasons[outcome.reason] += 1
            recent.append("" if isinstance(outcome, Example) else outcome.reason)
            if len(examples) == size:
                break
            if len(recent) == PATIENCE:
                _stop_if_hopeless(construction, recent, settings)
                recent.clear()
    write_table(TRIPLETS, examples, examples_path)
    write_table(TRIPLET_REJECTS, rejects, rejects_path)
    write_json(
        record_path,
        {
            "stage": STAGE,
            "construction": construction,
            "source": source,
            "proposed": state.next_index - first,
            "accepted": len(examples),
            "reasons": dict(reasons),
            "requests": bought.requests,
            "refused": bought.refused,
            "cost_usd": round(bought.cost_usd, 6),
            "tokens": dict(bought.tokens),
        },
    )
    # In its own order: prompts name the families as the state does, and a prompt is what an answer is kept under.
    write_text(state_path, json.dumps(state.to_json(), separators=(",", ":"), ensure_ascii=False) + "\n")


def judged(proposed: "Proposed", usage: Usage, families: dict[str, str]) -> Example | Reject:
    """An accepted example, counted in `usage`, or the reject with its reason. The validator alone decides."""
    if isinstance(proposed.proposal, Reject):
        return proposed.proposal
    outcome = check(proposed.specification, proposed.proposal, families=families)
    if isinstance(outcome, Reject):
        return outcome
    refusal = usage.refusal(outcome.bindings)
    if refusal:
        return Reject(proposed.specification, proposed.proposal, *refusal)
    usage.add(outcome.bindings)
    return outcome


def _stop_if_hopeless(construction: str, recent: list[str], settings: Generation) -> None:
    """Raises UserError for too few accepted ones, or none at all: the shard would never end."""
    reasons = Counter(filter(None, recent))
    accepted = len(recent) - reasons.total()
    if accepted and accepted >= settings.least_acceptance * len(recent):
        return
    most = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(4))
    advice = (
        "another model or prompt may do better, or lower triplets.generation.least_acceptance; what was bought is kept"
    )
    if settings.backend == "grammar":
        advice = f"longer lists in {settings.resources} would do better, or lower triplets.counts.{construction}"
    raise UserError(
        f"{construction}: only {accepted} of {len(recent)} proposals were accepted (rejects: {most}); {advice}"
    )


@dataclass(frozen=True)
class Proposed:
    specification: Specification
    proposal: Proposal | Reject


def _proposals(
    construction: str,
    state: State,
    size: int,
    controls: Controls,
    settings: Generation,
    services: Services | None,
    bought: Bought,
) -> Iterator[Proposed]:
    """Proposals in the order of their numbers, without end. `state` moves on while they are judged."""
    if settings.backend == "grammar":
        return _of_grammar(construction, state, controls, settings)
    return _of_model(construction, state, size, controls, settings, services, bought)


def _of_grammar(construction: str, state: State, controls: Controls, settings: Generation) -> Iterator[Proposed]:
    from .grammar import propose, read_grammar

    grammar = read_grammar(resolve(settings.resources))
    for index in numbers(state.next_index):
        specification = sample_specification(controls, construction, settings.seed, index)
        generator = random.Random(f"bindbench/grammar/{settings.seed}/{construction}/{index}")
        yield Proposed(specification, propose(grammar, specification, generator, state.usage.is_banned))


def _of_model(
    construction: str,
    state: State,
    size: int,
    controls: Controls,
    settings: Generation,
    services: Services,
    bought: Bought,
) -> Iterator[Proposed]:
    target = state.usage.accepted + size
    each = settings.examples_per_request
    while True:
        # The request that the next attempt belongs to: the shard before may have judged a part of its answer.
        number = state.next_index // each
        begin_round(state, controls, settings)
        left = settings.requests_per_round - number % settings.requests_per_round
        wanted = math.ceil((target - state.usage.accepted) / (each * hoped_acceptance(state)))
        asked = [
            request_number(number + step, construction, state.guidance, controls, settings)
            for step in range(min(left, wanted))
        ]
        came = {}
        coming = answers([request for request, _ in asked], services)
        for answer in progress(coming, f"{construction}: answers", total=len(asked), unit="answer"):
            came[answer.request.key] = answer
        for request, specifications in asked:
            answer = came[request.key]
            if specifications[0].index >= state.next_index:  # else the shard before has it in its books
                bought.add(answer, specifications[0].index)
            if answer.accepted:
                proposals = read_proposals(specifications, answer.payload)
            else:
                proposals = refusals(specifications, no_answer_reason(answer.reason), answer.reason)
            for specification, proposal in zip(specifications, proposals, strict=True):
                if specification.index >= state.next_index:
                    yield Proposed(specification, proposal)


def begin_round(state: State, controls: Controls, settings: Generation) -> None:
    """Fixes the word lists when the next attempt is the first of a round."""
    if state.next_index % (settings.examples_per_request * settings.requests_per_round) == 0 or state.guidance is None:
        name = f"bindbench/guidance/{settings.seed}/{state.usage.construction.name}/{state.next_index}"
        state.guidance = state.usage.guidance(controls.families, random.Random(name))


def hoped_acceptance(state: State) -> float:
    return max(0.1, state.usage.accepted / state.next_index) if state.next_index else HOPED_ACCEPTANCE


def planned_requests(
    construction: str, size: int, before: Path | None, settings: Generation, services: Services
) -> Iterator[Request]:
    """The requests that making `size` examples would send, for an estimate.

    Answers that the store holds are judged; from the first missing one on, the share that was accepted until then is expected
    of the rest, and the word lists stand still.
    """
    controls = read_controls(resolve(settings.resources))
    state, store = read_state(before, construction), Store(store_folder(services))
    target, expected = state.usage.accepted + size, 0.0
    hoped = hoped_acceptance(state)
    while state.usage.accepted + expected < target:
        begin_round(state, controls, settings)
        number = state.next_index // settings.examples_per_request
        request, specifications = request_number(number, construction, state.guidance, controls, settings)
        yield request
        attempt, header = store.resolve(request, services.max_attempts_payload)
        entry = store.read(attempt.key) if header is not None and header["status"] == "answer" else None
        if entry is not None and not expected:
            for specification, proposal in zip(
                specifications, read_proposals(specifications, entry.payload), strict=True
            ):
                if specification.index >= state.next_index:
                    judged(Proposed(specification, proposal), state.usage, controls.families)
            hoped = max(0.1, state.usage.accepted / (specifications[-1].index + 1))
        elif header is None:
            expected += hoped * len(specifications)
        state.next_index = specifications[-1].index + 1


def request_number(
    number: int, construction: str, guidance: Guidance, controls: Controls, settings: Generation
) -> tuple[Request, list[Specification]]:
    """A request and the attempts that it asks for."""
    first = number * settings.examples_per_request
    specifications = [
        sample_specification(controls, construction, settings.seed, index)
        for index in range(first, first + settings.examples_per_request)
    ]
    draw = random.Random(f"bindbench/suggestions/{settings.seed}/{construction}/{number}")
    request = build_request(
        specifications,
        suggested(guidance, draw),
        controls.registers,
        controls.openers,
        kind=settings.backend,
        model=settings.model,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        stage=STAGE,
    )
    return request, specifications


def _pairs(bindings: tuple[Binding, ...]) -> list[dict]:
    return [{"attributes": list(binding.attributes), "object": binding.object} for binding in bindings]


def example_id(specification: Specification) -> str:
    return f"{specification.construction}-{specification.index:07d}"


def _controls_row(outcome: Example | Reject, source: str) -> dict:
    """Columns that examples and rejects share."""
    specification = outcome.specification
    said = outcome if isinstance(outcome, Example) else outcome.proposal or Proposal((), "")
    return {
        "example": example_id(specification),
        "construction": specification.construction,
        "bindings": _pairs(said.bindings),
        "slots": list(said.slots),
        "distractors": _pairs(said.distractors),
        "scene": specification.scene,
        "time_of_day": specification.time_of_day,
        "weather": specification.weather,
        "register": specification.register,
        "opener": specification.opener,
        "length_low": specification.length[0],
        "length_high": specification.length[1],
        "distance_low": specification.distance[0],
        "distance_high": specification.distance[1],
        "n_distractors": specification.distractors,
        "kept": specification.kept if specification.construction == "triple_bind_swap" else None,
        "swapped_slot": specification.swapped_slot if specification.construction == "attr_bundle" else None,
        "source": source,
    }


def _texts_row(example: Example) -> dict:
    return {
        "query": example.query,
        "positive": example.positive,
        "attribute_negative": example.attribute_negative,
        "object_negative": example.object_negative,
        "words": example.words,
        "distance": example.distance,
    }


def _reject_row(reject: Reject, source: str) -> dict:
    said = reject.proposal.positive if reject.proposal else ""
    return {
        **_controls_row(reject, source),
        "positive": said,
        "reason": reject.reason,
        "detail": reject.detail,
    }
