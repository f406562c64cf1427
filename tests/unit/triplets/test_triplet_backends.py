"""Both paid backends with their real clients against the local server: good, malformed, truncated, repetitive and
rule-breaking answers, online and in batches; what is accepted, by reason; nothing is asked again after a kill.
"""

import json
import re
from dataclasses import replace

import pytest
from bindbench.config.services import Services
from bindbench.services.buying import answers
from bindbench.services.requests import Request
from bindbench.triplets.constructions import CONSTRUCTIONS, Example, Guidance, Proposal, Reject, Specification
from bindbench.triplets.prompting import build_request, no_answer_reason, read_proposals, refusals
from bindbench.triplets.usage import Usage
from bindbench.triplets.validation import check
from service_requests import KillableRun

BACKENDS, MODES = ("openai", "google-genai"), ("online", "batch")
EACH = 3  # examples of a request
PLACES = ("harbour", "foundry", "library", "orchard", "chapel", "garage", "bakery", "dairy")
REGISTERS, OPENERS = {"field notebook": "Terse notes."}, {"place first": "Begin with the place."}


# Requests and answers ------------------------------------------------------------------------------------------------


def specifications(place: str, construction: str = "pair_swap") -> list[Specification]:
    scene = f"in the {place}"
    first = Specification(construction, 0, scene, "shop", "", "", "field notebook", "place first", (12, 18), (3, 5))
    order = tuple(range(CONSTRUCTIONS[construction].objects))
    return [replace(first, index=index, query_order=order) for index in range(EACH)]


def request_of(asked: list[Specification], backend: str) -> Request:
    named = {"model": "gemma-4-31b-it", "temperature": 1.0, "max_tokens": 800, "stage": "triplets"}
    return build_request(asked, Guidance(), REGISTERS, OPENERS, kind=backend, **named)


ADJECTIVES = ("dented", "teal", "oval", "rusty", "spotless", "woven", "narrow", "antique", "damp", "sturdy")
OBJECTS = ("kettle", "ledger", "bench", "crate", "lantern", "basket", "ladder", "mirror", "barrel", "stool")


def written(place: str, number: int = 0) -> dict:
    """An example that keeps every rule: 14 words, distance 4. number: another one, with other words."""
    first, second = (number * 2) % 10, (number * 2 + 1) % 10
    turn = number // 5
    things = [OBJECTS[first], OBJECTS[(second + turn) % 10]]
    how = [ADJECTIVES[first], ADJECTIVES[(second + turn) % 10]]
    return {
        "attributes": [[how[0]], [how[1]]],
        "distractors": [],
        "objects": things,
        "positive": f"In the {place} a {how[0]} {things[0]} stood close beside a {how[1]} {things[1]} that day.",
    }


def rewritten(example: dict, old: str, new: str) -> dict:
    assert old in example["positive"]
    return {**example, "positive": example["positive"].replace(old, new)}


def script(place: str, *examples: dict, times: int = 1, cut: int = 0) -> dict:
    """What the server answers to the request about a place. cut: characters that are missing at the end."""
    text = json.dumps({"examples": list(examples)})
    return {"match": f"in the {place}", "text": text[: len(text) - cut], "times": times}


def outcomes(requests: dict[str, tuple[Request, list[Specification]]], settings: Services) -> dict[str, list]:
    """By place what became of each example: accepted, or the reason. Judged in the order of the requests."""
    came = {answer.request.key: answer for answer in answers((request for request, _ in requests.values()), settings)}
    usages: dict[str, Usage] = {}
    result = {}
    for place, (request, asked) in requests.items():
        answer = came[request.key]
        if answer.accepted:
            proposals = read_proposals(asked, answer.payload)
        else:
            proposals = refusals(asked, no_answer_reason(answer.reason), answer.reason)
        usage = usages.setdefault(asked[0].construction, Usage(asked[0].construction))
        result[place] = [judged(one, proposal, usage) for one, proposal in zip(asked, proposals, strict=True)]
    return result


def judged(one: Specification, proposal: Proposal | Reject, usage: Usage) -> str:
    outcome = proposal if isinstance(proposal, Reject) else check(one, proposal)
    if isinstance(outcome, Reject):
        return outcome.reason
    assert isinstance(outcome, Example)
    refusal = usage.refusal(outcome.bindings)
    if refusal:
        return refusal[0]
    usage.add(outcome.bindings)
    return "accepted"


def paid(server) -> list[int]:
    """How often each content was asked for, outside of making and watching batches."""
    kinds = ("/v1/chat/completions", ":generateContent", "gemini batch")
    return sorted(record["count"] for record in server.seen() if record["path"].endswith(kinds))


def asked_about(places, backend: str) -> dict[str, tuple[Request, list[Specification]]]:
    return {place: (request_of(specifications(place), backend), specifications(place)) for place in places}


# Tests ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_acceptance_by_reason(server, settings, courier_thread, backend, mode):
    settings = settings.model_copy(update={"mode": mode})
    good = [[written(place, EACH * row + index) for index in range(EACH)] for row, place in enumerate(PLACES[:2])]
    bad = written("garage", 6)
    server.texts(
        script("harbour", *good[0]),
        script("foundry", *good[1][:2], good[1][1]),  # repetitive: the second twice
        script("library", written("library"), times=9),  # one example in place of three
        script("orchard", *good[0], times=9, cut=5),  # not JSON
        script("chapel", *[written("chapel", 6)] * EACH),  # repetitive throughout
        script(
            "garage",
            rewritten(bad, "that day", "that day which was long and warm and full of news from all over the old town"),
            rewritten(bad, "stood close beside", "beside"),
            rewritten(bad, "that day", f"near the other {bad['objects'][0]}"),
        ),
    )
    server.faults(
        {"fault": "length", "match": "in the bakery", "times": 9},
        {"fault": "refusal", "match": "in the dairy", "times": 9},
    )
    requests = asked_about(PLACES, backend)
    found = outcomes(requests, settings)
    assert found == {
        "harbour": ["accepted"] * 3,
        "foundry": ["accepted", "accepted", "duplicate_set"],
        "library": ["broken_answer"] * 3,
        "orchard": ["broken_answer"] * 3,
        "chapel": ["accepted", "duplicate_set", "duplicate_set"],
        "garage": ["length", "binding_distance", "once_in_positive"],
        "bakery": ["cut_answer"] * 3,
        "dairy": ["refused_answer"] * 3,
    }
    # What is broken is bought three times, a refusal once; and nothing again by the same run later.
    assert paid(server) == [1] * 5 + [3] * 3
    server.reset()
    assert outcomes(requests, settings) == found
    assert server.control("seen")["log"] == []


def shown(asked: list[Specification]) -> dict:
    """The good example that a prompt shows."""
    prompt = request_of(asked, "openai").body["messages"][0]["content"]
    return json.loads(re.search(r'^{"examples".*$', prompt, re.MULTILINE)[0])["examples"][0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_constructions_come_through_and_what_breaks_their_rules_does_not(server, settings, courier_thread, backend):
    requests, texts = {}, []
    for place, construction in zip(PLACES, CONSTRUCTIONS, strict=False):
        anaphoric = CONSTRUCTIONS[construction].attachment == "anaphoric"
        asked = [
            replace(
                one,
                length=(10, 42),
                distance=(0, 26),
                reversed=anaphoric,
                distractors=CONSTRUCTIONS[construction].distractors,
            )
            for one in specifications(place, construction)
        ]
        good = shown(asked)
        longer = f"{good['positive'][:-1]} while {'some more was told of it ' * 5}."
        twice = f"{good['positive'][:-1]} near another {good['objects'][0]}."
        requests[place] = (request_of(asked, backend), asked)
        texts.append(script(place, good, {**good, "positive": longer}, {**good, "positive": twice}))
    server.texts(*texts)
    assert outcomes(requests, settings) == {place: ["accepted", "length", "once_in_positive"] for place in requests}
    assert paid(server) == [1] * len(CONSTRUCTIONS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_answer_that_is_broken_once_is_asked_for_once_more(server, settings, courier_thread, backend):
    server.texts(
        script("harbour", times=1, cut=1), script("harbour", *[written("harbour", number) for number in range(EACH)])
    )
    assert outcomes(asked_about(["harbour"], backend), settings) == {"harbour": ["accepted"] * EACH}
    assert paid(server) == [2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_schema_reaches_the_server_whole(server, settings, courier_thread, backend, mode):
    # What the server makes up, it makes by the schema that it was sent: counts and names, and words that mean nothing.
    asked = [replace(one, distractors=2) for one in specifications("harbour", "predicative")]
    (answer,) = answers([request_of(asked, backend)], settings.model_copy(update={"mode": mode}))
    proposals = read_proposals(asked, answer.payload)
    assert all(isinstance(proposal, Proposal) and len(proposal.distractors) == 2 for proposal in proposals)
    assert {check(one, proposal).reason for one, proposal in zip(asked, proposals, strict=True)} == {"distinct_words"}


def test_after_a_kill_nothing_is_asked_again(server, settings, courier_process):
    settings = settings.model_copy(update={"concurrency": 2})
    requests = {
        f"{place} {backend}": (request_of(asked, backend), asked)
        for place in PLACES[:3]
        for backend in BACKENDS
        for asked in [specifications(place)]
    }
    server.texts(*(script(place, *[written(place, row)] * EACH, times=2) for row, place in enumerate(PLACES[:3])))
    server.faults({"fault": "delay", "seconds": 0.3, "times": 99})
    run = KillableRun([request for request, _ in requests.values()], settings)
    run.first_answer()
    run.kill()
    found = outcomes(requests, settings)
    assert paid(server) == [1] * len(requests)
    # Of each place one example is accepted: the rest says the same, by whichever backend it came.
    assert [results.count("accepted") for results in found.values()] == [1, 0] * 3
    server.reset()
    assert outcomes(requests, settings) == found
    assert server.control("seen")["log"] == []
