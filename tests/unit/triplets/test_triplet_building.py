"""Shards of a construction: judged in the order of their numbers, the same whatever is in flight, nothing asked twice."""

import itertools
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from bindbench.config.services import Services
from bindbench.config.triplets import Generation
from bindbench.errors import UserError
from bindbench.paths import REPOSITORY
from bindbench.services.buying import Answer
from bindbench.services.requests import Request
from bindbench.services.store import Store, make_header
from bindbench.tables import TRIPLET_REJECTS, TRIPLETS, read_table
from bindbench.triplets import building
from bindbench.triplets.building import build_shard, planned_requests
from bindbench.triplets.controls import read_controls, sample_specification

CONTROLS = read_controls(REPOSITORY / "resources/triplets")
ADJECTIVES = [word for word in CONTROLS.families if word.isalpha() and word.islower()]
OBJECTS = [
    f"{first}{last}" for first in ("lamp", "oar", "cup", "bell", "kite") for last in ("stand", "box", "case", "rack")
]
TAIL = (
    "beyond the gate near the wall where people had often stopped to look around before they went home again for supper and "
    "talked about their day until somebody at last began to sing quietly near that tall window over there while we listened"
)
FILLERS = TAIL.split()
SETTINGS = Generation(backend="openai", model="some-model", examples_per_request=4, requests_per_round=3, seed=5)


def sentence(specification, generator: random.Random) -> dict:
    """A pair_swap example that obeys its controls in length and distance, with distractors in its tail."""
    first, second, *others = generator.sample(ADJECTIVES, 2 + specification.distractors)
    thing, other, *things = generator.sample(OBJECTS, 2 + specification.distractors)
    words = ["the", first, thing, *FILLERS[: max(1, specification.distance[0] - 1)], "the", second, other]
    for adjective, noun in zip(others, things, strict=True):
        words += ["beside", "the", adjective, noun]
    words += FILLERS[10 : 10 + max(0, specification.length[0] - len(words))]
    return {
        "attributes": [[first], [second]],
        "distractors": [{"attribute": a, "object": o} for a, o in zip(others, things, strict=True)],
        "objects": [thing, other],
        "positive": " ".join(words).capitalize() + ".",
    }


class Model:
    """Stands for services and store: answers by the text of the request, counts what is asked, may fail on order."""

    def __init__(self):
        self.store: dict[str, bytes] = {}
        self.bought: Counter = Counter()
        self.requests: list[Request] = []
        self.guidance: dict[int, object] = {}
        self.order = random.Random(0)
        self.refuses: set[int] = set()
        self.dies_after: int | None = None

    def build_request(self, specifications, guidance, registers, openers, **settings) -> Request:
        first = specifications[0].index
        self.guidance[first] = guidance
        words = [list(guidance.avoid), list(guidance.banned), sorted(guidance.suggestions.items())]
        body = {"messages": [{"role": "user", "content": json.dumps([first, len(specifications), words])}]}
        return Request("chat", settings["model"], body, stage=settings["stage"])

    def answers(self, requests, services):
        waiting = list(requests)
        self.order.shuffle(waiting)  # as they come, not as they were asked
        for request in waiting:
            first, count, words = json.loads(request.body["messages"][0]["content"])
            held = request.key in self.store
            if not held:
                if self.dies_after is not None and sum(self.bought.values()) >= self.dies_after:
                    raise UserError("killed")
                generator = random.Random(f"{first} {words}")
                rows = [
                    sentence(sample_specification(CONTROLS, "pair_swap", 5, first + i), generator) for i in range(count)
                ]
                if first % 8 == 0:
                    rows[1]["positive"] = "Too short."
                self.store[request.key] = json.dumps({"examples": rows}).encode()
                self.bought[request.key] += 1
                self.requests.append(request)
            if first in self.refuses:
                yield Answer(request, False, b"", "text/plain", "moderation", 0.0, {}, held)
            else:
                yield Answer(
                    request, True, self.store[request.key], "application/json", "", 0.25, {"output_text": 90}, held
                )


@pytest.fixture
def model(monkeypatch):
    model = Model()
    monkeypatch.setattr(building, "answers", model.answers)
    monkeypatch.setattr(building, "build_request", model.build_request)
    return model


def build(folder: Path, sizes: list[int], settings: Generation = SETTINGS) -> list[dict]:
    """The rows of consecutive shards."""
    folder.mkdir(exist_ok=True)
    rows, before = [], None
    for number, size in enumerate(sizes):
        paths = [folder / f"{number}{ending}" for ending in (".parquet", ".rejects.parquet", ".state.json", ".json")]
        build_shard("pair_swap", size, before, settings, Services(), *paths)
        before = paths[2]
        shard = read_table(TRIPLETS, paths[0]).to_pylist()
        assert len(shard) == size
        rows += shard
    return rows


def test_the_accepted_set_does_not_depend_on_the_order_in_which_answers_come(model, tmp_path):
    first = build(tmp_path / "a", [60])
    model.store.clear()
    model.order.seed(1)
    assert build(tmp_path / "b", [60]) == first
    assert (tmp_path / "a/0.rejects.parquet").read_bytes() == (tmp_path / "b/0.rejects.parquet").read_bytes()


@pytest.mark.parametrize("sizes", [[20, 20, 20], [1, 2, 57], [59, 1], [12] * 5])
def test_shards_cut_the_same_stream_wherever_they_end(model, tmp_path, sizes):
    whole = build(tmp_path / "whole", [60])
    bought = sum(model.bought.values())
    assert build(tmp_path / "parts", sizes) == whole
    assert sum(model.bought.values()) == bought, "another cut asks for nothing new"
    assert set(model.bought.values()) == {1}


def test_a_count_that_grows_keeps_what_it_had_and_buys_the_rest_only(model, tmp_path):
    small = build(tmp_path / "small", [13])
    before = set(model.bought)
    grown = build(tmp_path / "grown", [90])
    assert grown[:13] == small and before < set(model.bought) and set(model.bought.values()) == {1}


def test_no_more_requests_are_sent_than_are_needed(model, tmp_path):
    build(tmp_path / "run", [7])
    assert sum(model.bought.values()) <= 4, "7 examples at 4 a request, some rejected"


@pytest.mark.parametrize("after", [0, 1, 4, 9, 14])
def test_a_killed_run_goes_on_and_asks_for_nothing_again(model, tmp_path, after):
    model.dies_after = after
    with pytest.raises(UserError, match="killed"):
        build(tmp_path / "run", [80])
    assert not (tmp_path / "run/0.parquet").exists()
    model.dies_after = None
    rows = build(tmp_path / "run", [80])
    assert set(model.bought.values()) == {1}
    model.store.clear()
    assert rows == build(tmp_path / "unbroken", [80])


def test_word_lists_stand_still_within_a_round_and_move_on_after_it(model, tmp_path):
    build(tmp_path / "run", [60])
    by_round: dict[int, list] = {}
    for first, guidance in model.guidance.items():
        by_round.setdefault(first // 12, []).append(guidance)
    assert len(by_round) > 3
    assert all(len({(each.avoid, each.banned) for each in group}) == 1 for group in by_round.values())
    drawn = [sorted(each.suggestions.items()) for group in by_round.values() for each in group]
    assert all(one != other for one, other in itertools.pairwise(drawn)), "suggestions are drawn for each prompt"
    latest = [group[0].avoid for _, group in sorted(by_round.items())]
    assert latest[0] == () and len(set(latest)) == len(latest)
    assert len(latest[-1]) > 80


def test_rejects_are_kept_with_reason_and_every_attempt_has_one_outcome(model, tmp_path):
    model.refuses.add(8)
    rows = build(tmp_path / "run", [40])
    rejects = read_table(TRIPLET_REJECTS, tmp_path / "run/0.rejects.parquet").to_pylist()
    reasons = Counter(row["reason"] for row in rejects)
    assert reasons["refused_answer"] == 4 and reasons["length"] >= 3
    numbers = sorted(int(row["example"].rsplit("-", 1)[1]) for row in [*rows, *rejects])
    assert numbers == list(range(len(numbers)))
    record = json.loads((tmp_path / "run/0.json").read_text())
    assert record["accepted"] == 40 and record["proposed"] == len(numbers) and record["reasons"] == dict(reasons)
    assert record["refused"] == {"attempt 8": "moderation"}


def test_every_dollar_stands_in_one_record(model, tmp_path):
    build(tmp_path / "run", [11, 11, 11])
    records = [json.loads((tmp_path / f"run/{number}.json").read_text()) for number in range(3)]
    assert sum(record["requests"] for record in records) == sum(model.bought.values())
    assert sum(record["cost_usd"] for record in records) == pytest.approx(0.25 * sum(model.bought.values()))


def test_a_model_that_never_obeys_is_stopped_with_its_reasons(model, tmp_path, monkeypatch):
    monkeypatch.setattr(building, "PATIENCE", 40)
    model.refuses |= set(range(0, 4000, 4))
    with pytest.raises(
        UserError, match=r"pair_swap: only 0 of 40 proposals were accepted \(rejects: refused_answer 40\)"
    ):
        build(tmp_path / "run", [10])
    assert sum(model.bought.values()) <= 13


def test_a_broken_state_is_told_by_its_name(model, tmp_path):
    state = tmp_path / "0.state.json"
    state.write_text('{"usage": 3}')
    paths = [tmp_path / name for name in ("e", "r", "s", "j")]
    with pytest.raises(UserError, match=r"0\.state\.json: not a state of triplets; delete it and run again"):
        build_shard("pair_swap", 3, state, SETTINGS, Services(), *paths)


def test_an_estimate_counts_what_is_missing_and_judges_what_the_store_holds(model, tmp_path):
    services = Services(store=str(tmp_path / "store"))
    expected = list(planned_requests("pair_swap", 60, None, SETTINGS, services))
    assert 60 / 4 <= len(expected) <= 60 / (4 * 0.6), "60 examples at 4 a request, some rejected"
    build(tmp_path / "run", [60])
    assert expected[0].key in model.bought, "the first round's requests are the real ones"
    store = Store(tmp_path / "store")
    for request in model.requests:
        payload = model.store[request.key]
        facts = {"content_type": "application/json", "tokens": {}, "cost_usd": 0.0, "cost_from": "usage"}
        store.put(make_header(request, payload, status="answer", **facts), payload)
    planned = list(planned_requests("pair_swap", 60, None, SETTINGS, services))
    assert {request.key for request in planned} == set(model.bought), "all held: exactly the requests of the run"
    more = list(planned_requests("pair_swap", 80, None, SETTINGS, services))
    missing = [request for request in more if store.peek(request.key) is None]
    assert 20 / 4 <= len(missing) <= 12 and {r.key for r in more} > set(model.bought)
