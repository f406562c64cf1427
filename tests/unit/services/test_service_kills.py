"""kill -9 at every step: the server is asked for each request once, whoever dies; only a courier's death costs what is in
flight, and that is told.
"""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from bindbench.services.accounts import recover_journals, uncertain
from bindbench.services.buying import answers
from bindbench.services.store import Store, export_store, import_store
from service_requests import KillableRun, courier_of, pictures, wait_until


@pytest.fixture
def slow(server):
    """Every answer takes a while, so that there is something to kill in."""
    server.faults({"fault": "delay", "seconds": 0.6, "times": 9999})
    return server


def in_flight(server) -> int:
    return server.control("seen")["in_flight"]


def stored(settings) -> int:
    return len(list(Store(settings.store).every_key()))


def test_killed_after_spooling_nothing_was_asked(slow, settings):
    run = KillableRun(pictures(6), settings, courier=False)
    spool = Path(settings.store) / "spool"
    wait_until(lambda: any(len(path.read_bytes().splitlines()) == 7 for path in spool.glob("*.requests")))
    run.kill()
    assert slow.counts() == []
    assert len(list(answers(pictures(6), settings))) == 6
    assert slow.counts() == [1] * 6
    assert list(spool.glob("*.requests")) == []


def test_killed_while_in_flight_the_courier_finishes_that_and_starts_nothing_more(slow, settings):
    few = settings.model_copy(update={"concurrency": 3})
    run = KillableRun(pictures(12), few)
    wait_until(lambda: in_flight(slow) == 3)
    run.kill()
    wait_until(lambda: courier_of(Path(settings.store)) is None)
    assert stored(settings) == len(slow.counts()) == 3
    assert len(list(answers(pictures(12), few))) == 12
    assert slow.counts() == [1] * 12
    assert uncertain(Store(settings.store)) == []


def test_killed_while_the_answer_arrives(server, settings):
    server.faults({"fault": "slow", "seconds": 0.4, "times": 9999})
    run = KillableRun(pictures(3), settings)
    wait_until(lambda: len(server.counts()) == 3)
    run.kill()
    assert len(list(answers(pictures(3), settings))) == 3
    assert server.counts() == [1] * 3


def test_killed_while_waiting_after_a_passing_error_it_is_not_asked_again_for_the_dead(server, settings):
    server.faults({"fault": "status", "status": 500, "times": 9999})
    patient = settings.model_copy(update={"backoff_s": 1000, "backoff_limit_s": 1000})
    run = KillableRun(pictures(3), patient)
    wait_until(lambda: len(server.counts()) == 3)
    run.kill()
    wait_until(lambda: courier_of(Path(settings.store)) is None)
    assert server.counts() == [1] * 3


def test_killed_after_storing(slow, settings):
    run = KillableRun(pictures(10), settings.model_copy(update={"concurrency": 2}))
    run.first_answer()
    run.kill()
    assert len(list(answers(pictures(10), settings))) == 10
    assert slow.counts() == [1] * 10


def test_killed_ten_times_at_random(server, settings):
    server.faults({"fault": "delay", "seconds": 0.15, "times": 9999})
    generator = random.Random(3)
    requests = pictures(200)
    for _ in range(10):
        run = KillableRun(requests, settings)
        run.first_answer()
        time.sleep(generator.uniform(0, 0.3))
        run.kill()
    held = stored(settings)
    run = KillableRun(requests, settings)
    assert len(run.answers()) == 200
    assert server.counts() == [1] * 200
    assert 10 <= held < 200  # it was killed in the middle, not after the end


def test_two_runs_at_once_share_each_answer(slow, settings):
    runs = [KillableRun(pictures(20, start), settings) for start in (0, 10)]
    results = [run.answers() for run in runs]
    assert [len(result) for result in results] == [20, 20]
    assert slow.counts() == [1] * 30


def test_one_of_two_runs_is_killed_the_other_is_served(slow, settings):
    few = settings.model_copy(update={"concurrency": 2})
    first = KillableRun(pictures(12), few)
    first.first_answer()
    second = KillableRun(pictures(12), few)
    second.first_answer()
    first.kill()
    assert len(second.answers()) == 11
    assert slow.counts() == [1] * 12


def test_a_run_with_another_budget_waits_for_the_courier_s_end(slow, settings):
    run = KillableRun(pictures(8), settings.model_copy(update={"concurrency": 4}))
    wait_until(lambda: in_flight(slow) == 4)
    other = KillableRun(pictures(8), settings.model_copy(update={"budget_usd": 5}))
    assert len(run.answers()) == 8
    out, error = other.process.communicate(timeout=60)
    assert len(out.splitlines()) == 8
    assert "another run buys with other settings or keys; waiting" in error
    assert slow.counts() == [1] * 8


def test_a_killed_courier_costs_what_was_in_flight_and_says_so(slow, settings):
    few = settings.model_copy(update={"concurrency": 4})
    run = KillableRun(pictures(10), few)
    wait_until(lambda: stored(settings) >= 2 and in_flight(slow) == 4)
    flying = {
        record["idempotency"][0]
        for record in slow.seen()
        if Store(settings.store).peek(record["idempotency"][0]) is None
    }
    os.kill(courier_of(Path(settings.store)), signal.SIGKILL)
    assert len(run.answers()) == 10
    twice = [record["idempotency"] for record in slow.seen() if record["count"] == 2]
    assert {keys[0] for keys in twice} <= flying and len(twice) >= len(flying) - 1
    assert all(keys[0] == keys[1] for keys in twice)
    assert sum(slow.counts()) == 10 + len(twice)
    lost = uncertain(Store(settings.store))
    assert {line["sent"] for line in lost} == {keys[0] for keys in twice}
    assert {line["cause"] for line in lost} == {"courier killed"}


def test_courier_and_run_killed_together_lose_only_what_was_in_flight(slow, settings):
    few = settings.model_copy(update={"concurrency": 3})
    run = KillableRun(pictures(9), few)
    run.first_answer()
    wait_until(lambda: in_flight(slow) == 3)
    os.kill(courier_of(Path(settings.store)), signal.SIGKILL)
    run.kill()
    held = stored(settings)
    asked = len(slow.counts())
    assert len(list(answers(pictures(9), few))) == 9
    assert sum(slow.counts()) == 9 + asked - held


def test_a_courier_that_is_asked_to_end_finishes_what_is_in_flight(slow, settings):
    few = settings.model_copy(update={"concurrency": 3})
    run = KillableRun(pictures(9), few)
    wait_until(lambda: in_flight(slow) == 3)
    os.kill(courier_of(Path(settings.store)), signal.SIGTERM)
    out, error = run.process.communicate(timeout=60)
    assert len(out.splitlines()) == 3 and "asked to end; run the same command again" in error
    assert stored(settings) == 3 and uncertain(Store(settings.store)) == []
    assert len(list(answers(pictures(9), few))) == 9
    assert slow.counts() == [1] * 9


def test_recovery_counts_each_lost_request_once_though_it_is_killed_itself(tmp_path):
    from bindbench.services.accounts import Journal, intent

    store = Store(tmp_path)
    journal = Journal(store)
    journal.sent([intent(request, 0.03) for request in pictures(3)])
    journal.done(pictures(1)[0].key)
    copy = tmp_path / "copy"
    shutil.copytree(store.root / "journal", copy)
    assert recover_journals(store) == 2
    shutil.copytree(copy, store.root / "journal", dirs_exist_ok=True)  # as if killed before the journal was removed
    recover_journals(store)
    assert [line["expected_usd"] for line in uncertain(store)] == [0.03, 0.03]


def test_moved_results_and_carried_stores_buy_nothing_again(server, settings, tmp_path):
    list(answers(pictures(5), settings))
    wait_until(lambda: courier_of(Path(settings.store)) is None)
    export_store(Store(settings.store), tmp_path / "out.tar")
    import_store(Store(tmp_path / "other machine"), tmp_path / "out.tar")
    shutil.move(settings.store, tmp_path / "moved")
    for root in ("other machine", "moved"):
        elsewhere = settings.model_copy(update={"store": str(tmp_path / root)})
        assert all(answer.held for answer in answers(pictures(5), elsewhere))
    assert server.counts() == [1] * 5


def test_a_benchmark_that_grows_buys_only_what_is_new(server, settings):
    list(answers(pictures(4), settings))
    list(answers(pictures(9), settings))
    assert server.counts() == [1] * 9
