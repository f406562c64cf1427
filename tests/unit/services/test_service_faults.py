"""Every fault of a server, met by the real clients through the courier: what is asked again, kept, told and paid."""

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from bindbench.errors import UserError
from bindbench.services import courier
from bindbench.services.accounts import spent_usd, uncertain
from bindbench.services.buying import answers, estimate
from bindbench.services.calling import Clients, send
from bindbench.services.requests import InputImage, Request
from bindbench.services.store import Store
from fake_services import png
from service_requests import GEMINI_KEY, OPENAI_KEY, courier_of, gemini_picture, pictures, question, wait_until

pytestmark = pytest.mark.usefixtures("courier_thread")


def bought(requests, settings) -> list:
    return list(answers(requests, settings))


def test_all_kinds_are_answered_kept_and_not_asked_again(server, settings):
    requests = [*pictures(5), question(), gemini_picture()]
    first = bought(requests, settings)
    assert all(answer.accepted and not answer.held for answer in first)
    again = bought(requests, settings)
    assert [answer.payload for answer in again] == [
        next(answer.payload for answer in first if answer.request.key == request.key) for request in requests
    ]
    assert all(answer.held for answer in again)
    assert server.counts() == [1] * 7


def test_what_the_store_holds_needs_no_key(settings, monkeypatch):
    bought(pictures(2), settings)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert len(bought(pictures(2), settings)) == 2
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set"):
        bought(pictures(3), settings)


def test_the_same_request_twice_is_asked_once_and_answered_twice(server, settings):
    assert len(bought([*pictures(2), *pictures(2)], settings)) == 4
    assert server.counts() == [1, 1]


def test_a_remake_is_asked_once_more(server, settings):
    bought([*pictures(2), replace(pictures(1)[0], attempt=2)], settings)
    assert server.counts() == [1, 2]


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "status", "status": 500},
        {"fault": "status", "status": 503, "body": "overloaded"},
        {"fault": "status", "status": 429, "code": "rate_limit_exceeded"},
        {"fault": "status", "status": 408},
        {"fault": "status", "status": 409},
        {"fault": "cut"},
        {"fault": "cut_half"},
        {"fault": "wrong_json"},
        {"fault": "half_base64"},
        {"fault": "wrong_size"},
        {"fault": "not_image"},
    ],
    ids=lambda fault: f"{fault['fault']}{fault.get('status', '')}",
)
def test_one_fault_of_a_picture_is_got_over(server, settings, fault):
    server.faults({**fault, "match": "picture 1", "times": 1})
    assert all(answer.accepted for answer in bought(pictures(3), settings))
    assert server.counts() == [1, 1, 2]


def gemini_error(code: int, status: str, reason: str = "") -> dict:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
    return {
        "fault": "status",
        "status": code,
        "body": {"error": {"code": code, "message": "on order", "status": status, "details": details}},
    }


@pytest.mark.parametrize(
    "fault",
    [
        *({"fault": name} for name in ("half_base64", "no_image", "wrong_json", "cut", "cut_half", "length")),
        gemini_error(429, "RESOURCE_EXHAUSTED"),
        gemini_error(503, "UNAVAILABLE"),
    ],
    ids=lambda fault: f"{fault['fault']}{fault.get('status', '')}",
)
def test_one_fault_of_gemini_is_got_over(server, settings, fault):
    server.faults(fault)
    assert bought([gemini_picture()], settings)[0].accepted
    assert server.counts() == [2]


def test_gemini_s_retry_after_is_respected(server, settings):
    server.faults({**gemini_error(429, "RESOURCE_EXHAUSTED"), "headers": {"Retry-After": "1"}})
    start = time.monotonic()
    assert bought([gemini_picture()], settings)[0].accepted
    assert time.monotonic() - start >= 1


@pytest.mark.parametrize(
    "fault",
    [
        gemini_error(400, "INVALID_ARGUMENT", "API_KEY_INVALID"),
        gemini_error(403, "PERMISSION_DENIED"),
        gemini_error(404, "NOT_FOUND"),
    ],
    ids=["wrong key", "forbidden", "unknown model"],
)
def test_gemini_s_trouble_with_key_or_model_stops_the_run(server, settings, fault):
    server.faults({**fault, "times": 99})
    with pytest.raises(UserError, match=r"gemini (refuses the key or the account|knows no model)"):
        bought([gemini_picture(f"{i}") for i in range(30)], settings)
    assert sum(server.counts()) <= settings.concurrency


def test_gemini_s_refusal_of_a_request_is_final(server, settings):
    server.faults(gemini_error(400, "INVALID_ARGUMENT"))
    assert "invalid request (400 INVALID_ARGUMENT" in bought([gemini_picture()], settings)[0].reason
    bought([gemini_picture()], settings)
    assert server.counts() == [1]


@pytest.mark.parametrize("fault", ["wrong_schema", "not_json", "length", "wrong_json", "cut_half"])
def test_one_fault_of_a_chat_is_got_over(server, settings, fault):
    server.faults({"fault": fault})
    assert bought([question()], settings)[0].accepted
    assert server.counts() == [2]


def test_a_broken_payload_is_asked_again_under_another_idempotency_key_a_passing_error_under_the_same(server, settings):
    server.faults({"fault": "status", "status": 500, "times": 2}, {"fault": "half_base64"})
    assert bought(pictures(1), settings)[0].accepted
    one, two, three, four = server.seen()[0]["idempotency"]
    assert one == two == three == pictures(1)[0].key
    assert four == pictures(1)[0].at_try(2).key


def test_payloads_that_stay_broken_become_a_reject_that_is_not_asked_again(server, settings):
    server.faults({"fault": "wrong_size", "match": "picture 0", "times": 99})
    rejects = [answer for answer in bought(pictures(2), settings) if not answer.accepted]
    assert len(rejects) == 1 and rejects[0].reason == "broken 3 times: the image is 32x64, not 64x64"
    assert server.counts() == [1, 3]
    bought(pictures(2), settings)
    assert server.counts() == [1, 3]
    # All three were paid.
    assert rejects[0].cost_usd == pytest.approx(0.09, abs=0.001)
    assert spent_usd(Store(settings.store)) == pytest.approx(0.12, abs=0.001)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"fault": "status", "status": 400, "code": "moderation_blocked"}, "moderation"),
        ({"fault": "status", "status": 400, "code": "invalid_value"}, "invalid request"),
    ],
)
def test_a_final_refusal_is_kept_with_its_reason_and_never_asked_again(server, settings, fault, reason):
    server.faults({**fault, "match": "picture 1", "times": 99})
    rejects = [answer for answer in bought(pictures(3), settings) if not answer.accepted]
    assert len(rejects) == 1 and reason in rejects[0].reason and rejects[0].cost_usd == 0
    bought(pictures(3), settings)
    assert server.counts() == [1, 1, 1]
    server.faults()
    assert bought([replace(pictures(2)[1], attempt=2)], settings)[0].accepted


def test_refusals_of_a_chat_and_of_gemini_are_final(server, settings):
    server.faults(
        {"fault": "refusal", "match": "Is it right"},
        {"fault": "refusal", "match": "one"},
        {"fault": "withheld", "match": "two"},
    )
    requests = [question(), gemini_picture("one"), gemini_picture("two")]
    assert [answer.accepted for answer in bought(requests, settings)] == [False] * 3
    bought(requests, settings)
    assert server.counts() == [1, 1, 1]


def test_a_slow_answer_is_waited_for(server, settings):
    server.faults({"fault": "slow", "seconds": 0.2, "times": 99})
    patient = settings.model_copy(update={"read_timeout_s": 0.7})
    assert all(answer.accepted for answer in bought(pictures(2), patient))
    assert server.counts() == [1, 1]


def test_an_answer_that_does_not_come_is_asked_again_and_counted_as_possibly_paid(server, settings):
    server.faults({"fault": "hang", "times": 2})
    impatient = settings.model_copy(update={"read_timeout_s": 0.5})
    requests = [pictures(1)[0], gemini_picture()]
    assert all(answer.accepted for answer in bought(requests, impatient))
    assert server.counts() == [2, 2]
    lost = uncertain(Store(settings.store))
    assert {line["sent"] for line in lost} == {request.key for request in requests}
    assert {line["cause"] for line in lost} == {f"no answer from {server.url.removeprefix('http://')} in time"}


@pytest.mark.parametrize("in_words", [False, True])
def test_retry_after_is_respected_by_all_requests_to_the_service(server, settings, in_words):
    header = "1"
    if in_words:
        header = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 2))
    server.faults({"fault": "status", "status": 429, "headers": {"Retry-After": header}})
    one_by_one = settings.model_copy(update={"concurrency": 1})
    start = time.monotonic()
    assert len(bought(pictures(2), one_by_one)) == 2
    assert time.monotonic() - start >= 1


def test_a_long_wait_is_told(server, settings, monkeypatch, capsys):
    monkeypatch.setattr(courier, "LONG_WAIT_S", 0.5)
    server.faults({"fault": "status", "status": 429, "code": "rate_limit", "headers": {"Retry-After": "1"}})
    bought(pictures(1), settings)
    assert "services: openai asks to wait 1 s (429 rate_limit" in capsys.readouterr().err


def test_passing_errors_that_last_end_the_run_and_leave_it_resumable(server, settings):
    server.faults({"fault": "status", "status": 503, "match": "picture 1", "times": 99})
    few = settings.model_copy(update={"max_retries": 2})
    got = []
    with pytest.raises(UserError, match=r"1 requests got no answer \(the last: 503.*run the same command again"):
        got.extend(answers(pictures(3), few))
    assert sorted(server.counts()) == [1, 1, 3]
    server.faults()
    assert len(bought(pictures(3), few)) == 3
    assert sorted(server.counts()) == [1, 1, 4]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"status": 429, "code": "insufficient_quota"}, "insufficient_quota"),
        ({"status": 401, "code": "invalid_api_key"}, "401 invalid_api_key"),
        ({"status": 403, "code": "unverified"}, "403 unverified"),
        ({"status": 404, "code": "model_not_found"}, "model_not_found"),
        ({"status": 400, "code": "billing_hard_limit_reached"}, "billing_hard_limit_reached"),
    ],
    ids=lambda value: str(value.get("status", "")) if isinstance(value, dict) else "",
)
def test_trouble_with_key_quota_or_model_stops_the_run_after_few_requests(server, settings, fault, message):
    server.faults({"fault": "status", "times": 999, **fault})
    with pytest.raises(UserError, match=message) as stop:
        bought(pictures(100), settings)
    assert "\n" not in str(stop.value)
    assert sum(server.counts()) <= settings.concurrency
    assert list(Store(settings.store).every_key()) == []
    server.faults()
    assert len(bought(pictures(20), settings)) == 20


def test_a_run_that_is_stopped_gets_what_was_in_flight(server, settings):
    server.faults(
        {"fault": "status", "status": 401, "match": "picture 3", "code": "invalid_api_key"},
        {"fault": "delay", "seconds": 0.7, "times": 99},
    )
    with pytest.raises(UserError):
        bought(pictures(4), settings)
    assert len(list(Store(settings.store).every_key())) == 3
    bought(pictures(4), settings)
    assert server.counts() == [1, 1, 1, 2]


def test_the_same_mistake_in_many_requests_stops_the_run(server, settings):
    server.faults({"fault": "status", "status": 400, "code": "unknown_parameter", "times": 999})
    with pytest.raises(UserError, match="5 requests in a row were refused: invalid request"):
        bought(pictures(100), settings.model_copy(update={"concurrency": 2}))
    assert sum(server.counts()) <= 7


def test_no_server_is_a_passing_error_that_costs_nothing(settings):
    nowhere = settings.model_copy(update={"openai_base_url": "http://127.0.0.1:9/v1", "max_retries": 1})
    with pytest.raises(UserError, match=r"no connection to 127\.0\.0\.1:9 "):
        bought(pictures(1), nowhere)
    assert uncertain(Store(settings.store)) == []


@pytest.mark.parametrize("kind", ["openai", "own server", "gemini"])
@pytest.mark.parametrize("fault", ["no connection to", "no answer from", "the connection to"])
def test_a_server_that_fails_is_named_without_the_keys_in_its_address(server, settings, kind, fault):
    """No server at all, one that is too slow, one that breaks off."""
    if fault == "no answer from":
        server.faults({"fault": "delay", "seconds": 3})
    elif fault == "the connection to":
        server.faults({"fault": "cut"})
    host = "127.0.0.1:9" if fault == "no connection to" else server.url.removeprefix("http://")
    address = f"http://me:{OPENAI_KEY}@{host}/"
    bases = {"openai": "openai_base_url", "gemini": "gemini_base_url"}
    where = {bases[kind]: address} if kind in bases else {"servers": {"gpt-image-2": f"{address}v1"}}
    if kind == "openai":
        where = {"openai_base_url": f"{address}v1?key={GEMINI_KEY}"}
    there = settings.model_copy(update={**where, "read_timeout_s": 0.5})

    async def answer():
        clients = Clients(there)
        try:
            return await send(gemini_picture() if kind == "gemini" else pictures(1)[0], clients)
        finally:
            await clients.close()

    reason = asyncio.run(answer()).reason
    assert reason.startswith(f"{fault} {host} "), reason
    assert len(reason.splitlines()) == 1 and not any(key in reason for key in (OPENAI_KEY, GEMINI_KEY, "me:"))


def test_input_images_go_along_by_multipart_data_url_and_inline(server, settings, tmp_path):
    paths = []
    for shade in (1, 2):
        paths.append(tmp_path / f"{shade}.png")
        paths[-1].write_bytes(png(8, 8, shade))
    images = tuple(InputImage.of(path) for path in paths)
    edit = Request("image_edit", "gpt-image-2", {"prompt": "merge", "size": "64x64"}, images)
    chat = Request(
        "chat",
        "chatty",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "what?"}, {"image": 1}]}]},
        images,
    )
    parts = [{"text": "what?"}, {"image": 0}, {"image": 1}]
    gemini = Request("gemini_content", "gemma-4-31b-it", {"contents": [{"role": "user", "parts": parts}]}, images)
    answered = bought([edit, chat, gemini], settings)
    assert all(answer.accepted for answer in answered)
    bodies = {record["path"].rsplit("/", 1)[1]: record["body"] for record in server.seen()}
    assert bodies["edits"].count('name="image[]"') == 2
    assert "data:image/png;base64," in bodies["completions"]
    assert bodies["gemma-4-31b-it:generateContent"].count("inlineData") == 2
    # 300 tokens an image, by the answer's own count.
    tokens = next(answer.tokens for answer in answered if answer.request is edit)
    assert tokens["input_image"] == 600


def test_an_input_image_that_changed_meanwhile_is_not_sent(server, settings, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png(8, 8, 1))
    request = Request("image_edit", "gpt-image-2", {"prompt": "merge", "size": "64x64"}, (InputImage.of(path),))
    path.write_bytes(png(8, 8, 2))
    with pytest.raises(UserError, match=r"a\.png: input image of a request changed meanwhile"):
        bought([request], settings)
    assert server.counts() == []


def test_budget_stops_before_it_is_passed_and_a_higher_one_goes_on(server, settings):
    # A picture is expected to cost 3 cents and costs 3: with a dime, three fit.
    server.faults({"fault": "delay", "seconds": 0.1, "times": 99})
    poor = settings.model_copy(update={"budget_usd": 0.10})
    with pytest.raises(UserError, match=r"services\.budget_usd: the budget of \$0\.10 is reached: \$0\.09") as stop:
        bought(pictures(10), poor)
    assert "\n" not in str(stop.value) and "raise it" in str(stop.value)
    assert server.counts() == [1, 1, 1]
    assert spent_usd(Store(settings.store)) <= 0.10
    with pytest.raises(UserError, match="budget"):
        bought(pictures(10), poor)
    assert server.counts() == [1, 1, 1]
    assert len(bought(pictures(10), settings)) == 10
    assert server.counts() == [1] * 10


def test_budget_of_nothing_buys_nothing(server, settings):
    with pytest.raises(UserError, match=r"budget of \$0\.00"):
        bought(pictures(1), settings.model_copy(update={"budget_usd": 0}))
    assert server.counts() == []


def test_what_is_free_needs_no_budget(settings):
    request = Request("gemini_content", "gemma-4-31b-it", {"contents": "hello"})
    assert bought([request], settings.model_copy(update={"budget_usd": 0}))[0].accepted


def test_a_model_without_a_price_is_not_asked(server, settings):
    with pytest.raises(UserError, match=r"services\.prices: no price for expensive"):
        bought([Request("chat", "expensive", {"messages": []})], settings)
    assert server.counts() == []


def test_estimate_tells_what_is_held_and_what_the_rest_costs(settings):
    requests = [*pictures(10), *pictures(1), question()]
    before = estimate(requests, settings)
    assert (before.requests, before.held) == (12, 0)
    assert before.tokens["output_image"] == 10_000 and before.tokens["output_text"] == 1000
    bought(pictures(4), settings)
    after = estimate(requests, settings)
    assert (after.requests, after.held) == (12, 5)
    assert after.price_usd == pytest.approx(before.price_usd - 4 * 0.03, abs=0.002)
    assert after.spent_usd == pytest.approx(4 * 0.03, abs=0.002)
    half = estimate(requests, settings.model_copy(update={"mode": "batch"}))
    assert half.price_usd == pytest.approx(after.price_usd / 2, abs=1e-6)


@pytest.mark.usefixtures("courier_process")
def test_200_requests_are_in_flight_at_once_without_a_thread_each(server, settings):
    server.faults({"fault": "delay", "seconds": 1.5, "times": 999})
    many = settings.model_copy(update={"concurrency": 200})
    threads = 0
    for _ in answers(pictures(200), many):
        if not threads:
            threads = len(list(Path(f"/proc/{courier_of(Path(settings.store))}/task").iterdir()))
    assert server.control("seen")["most_in_flight"] >= 190
    # The loop, the journal's thread, the writers, and the few of asyncio's own pool.
    assert threads <= 2 + courier.WRITERS + min(32, os.cpu_count() + 4)


def everything_written(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("courier_process")
def test_keys_appear_in_no_file_log_or_error(server, settings, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_LOG", "debug")
    server.faults(
        {"fault": "echo_key", "match": "picture 0"},
        {"fault": "echo_key", "match": "picture 1", "status": 500},
        {"fault": "echo_key", "match": "red cube", "code": "moderation_blocked"},
        {"fault": "echo_key", "match": "picture 3", "status": 401, "code": "invalid_api_key"},
    )
    requests = [*pictures(2), gemini_picture("a red cube"), gemini_picture("another")]
    got = bought(requests, settings)
    assert any("[OPENAI_API_KEY]" in answer.reason for answer in got)
    assert any("[GEMINI_API_KEY]" in answer.reason for answer in got)
    with pytest.raises(UserError) as stop:
        bought(pictures(4), settings)
    wait_until(lambda: courier_of(Path(settings.store)) is None)
    written = everything_written(tmp_path)
    assert any(b"openai" in data for name, data in written.items() if name.endswith("courier.log"))
    printed = "".join(capfd.readouterr())
    said = [str(stop.value), repr(stop.value), repr(got), printed, *written]
    for key in (OPENAI_KEY, GEMINI_KEY):
        assert not any(key in text for text in said)
        assert not any(key.encode() in data for data in written.values())


def test_keys_appear_in_no_traceback_of_the_courier(server, settings, tmp_path):
    """A fault of the program itself, with the key in the message of its exception."""
    program = (
        "import sys; from bindbench.services import courier\n"
        "async def broken(*a): import os; raise RuntimeError('with ' + os.environ['OPENAI_API_KEY'])\n"
        "courier.send = broken\n"
        "sys.exit(courier.main(sys.argv[1:]))"
    )
    from bindbench.services.keys import fingerprint
    from bindbench.services.spool import Lease

    store = Store(settings.store)
    lease = Lease(store, fingerprint(settings.model_dump_json()))
    lease.ask(pictures(1))
    package = str(Path(sys.modules["bindbench"].__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", program, settings.store, settings.model_dump_json()],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": package},
        text=True,
    )
    news = wait_until(lease.news)
    lease.close()
    _, error = process.communicate(timeout=60)
    assert news == [{"key": pictures(1)[0].key, "state": "failed", "reason": "with [OPENAI_API_KEY]"}]
    assert "Traceback" in error and OPENAI_KEY not in error
    assert process.returncode == 0


def test_a_courier_that_cannot_start_is_told(settings, monkeypatch):
    from bindbench.services import buying

    def broken(store, settings):
        (store.root / "courier.log").write_text("why")
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"])

    monkeypatch.setattr(buying, "start_courier", broken)
    with pytest.raises(UserError, match=r"courier ends 5 times in a row.*courier\.log says why"):
        bought(pictures(1), settings)


def test_a_missing_client_library_is_one_line(settings, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="openai is not installed"):
        bought(pictures(1), settings)


def test_an_entry_that_is_damaged_is_bought_again(server, settings, capsys):
    bought(pictures(3), settings)
    store = Store(settings.store)
    path = store.path(pictures(2)[1].key)
    path.write_bytes(path.read_bytes()[:-5])
    assert len(bought(pictures(3), settings)) == 3
    assert server.counts() == [1, 1, 2]
    assert "is damaged" in capsys.readouterr().err


def test_a_moved_results_folder_or_another_clone_finds_what_was_bought(server, settings, tmp_path, monkeypatch):
    monkeypatch.setenv("BINDBENCH_STORE", str(tmp_path / "shared"))
    bought(pictures(3), settings)
    monkeypatch.chdir(tmp_path)
    assert all(answer.held for answer in bought(pictures(3), settings.model_copy(update={"store": "elsewhere"})))
    assert server.counts() == [1, 1, 1]
    assert not Path(settings.store).exists()


def test_header_says_what_was_asked_and_what_it_cost(settings):
    bought([pictures(1, stage="scenes")[0]], settings)
    header = next(Store(settings.store).headers())
    assert header["stage"] == "scenes" and header["request"]["body"]["prompt"] == "picture 0"
    assert header["cost_from"] == "usage" and header["cost_usd"] == pytest.approx(0.03, abs=0.001)
    assert json.dumps(header)


@pytest.mark.parametrize("mode", ["online", "batch"])
def test_a_server_of_one_s_own_answers_its_model_and_never_sees_openai_s_key(server, settings, monkeypatch, mode):
    nowhere = "http://127.0.0.1:9/v1"
    own = settings.model_copy(
        update={"mode": mode, "openai_base_url": nowhere, "servers": {"chatty": f"{server.url}/v1"}}
    )
    monkeypatch.delenv("OPENAI_API_KEY")
    assert all(answer.accepted for answer in bought([question()], own))
    if mode == "online":
        monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
        monkeypatch.setenv("BINDBENCH_SERVER_KEY", "a-key-of-the-server")
        server.faults({"fault": "echo_key", "status": 400, "times": 9})
        [answer] = bought([replace(question(), attempt=2)], own)
        assert "[BINDBENCH_SERVER_KEY]" in answer.reason and "a-key-of-the-server" not in answer.reason
