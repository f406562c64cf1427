"""Batches of both services: resumed by id at each step, partial results kept, never made twice."""

import json
from pathlib import Path

import pytest
from bindbench.errors import UserError
from bindbench.services import batches
from bindbench.services.accounts import spent_usd
from bindbench.services.batches import open_batches
from bindbench.services.buying import answers
from bindbench.services.requests import InputImage, Request
from bindbench.services.store import Store
from fake_services import png
from service_requests import gemini_picture, pictures, question


@pytest.fixture(autouse=True)
def _thread(courier_thread):
    """Where a courier is needed, it runs in a thread."""


@pytest.fixture
def settings(settings):
    return settings.model_copy(update={"mode": "batch"})


def gemini_pictures(count: int) -> list[Request]:
    return [gemini_picture(f"gemini {i}") for i in range(count)]


def answered_once(server) -> int:
    """How many requests the server answered inside batches; none of them twice."""
    counts = [
        record["count"] for record in server.seen() if record["path"] in ("/v1/images/generations", "gemini batch")
    ]
    assert set(counts) == {1}
    return len(counts)


class Killed(BaseException):
    """Stands for kill -9: nothing of the program catches it."""


def killing(monkeypatch, name: str, when: str, times: int = 1):
    """Makes a function of the batches module die before or after its work."""
    real, left = getattr(batches, name), [times]

    def dying(*arguments, **named):
        if left[0]:
            left[0] -= 1
            if when == "after":
                real(*arguments, **named)
            raise Killed
        return real(*arguments, **named)

    monkeypatch.setattr(batches, name, dying)


def test_all_kinds_are_answered_at_half_the_price(server, settings, tmp_path):
    (tmp_path / "a.png").write_bytes(png(8, 8, 1))
    image = (InputImage.of(tmp_path / "a.png"),)
    edit = Request("image_edit", "gpt-image-2", {"prompt": "more", "size": "64x64"}, image)
    requests = [*pictures(3), edit, question(), *gemini_pictures(2)]
    got = list(answers(requests, settings))
    assert all(answer.accepted for answer in got)
    assert {answer.request.key for answer in got} == {request.key for request in requests}
    assert len(server.control("seen")["batches"]) == 4  # one for each service, kind and model
    picture = next(answer for answer in got if answer.request.kind == "image_generation")
    assert picture.cost_usd == pytest.approx(0.015, abs=0.001)
    assert all(answer.held for answer in answers(requests, settings))
    assert open_batches(Store(settings.store)) == []
    assert list((Path(settings.store) / "batches").iterdir()) == []


def test_chunks_respect_the_limits(server, settings, monkeypatch):
    list(answers(pictures(7), settings.model_copy(update={"batch_images": 3})))
    assert len(server.control("seen")["batches"]) == 3
    monkeypatch.setattr(batches, "OPENAI_BYTES", 2200)
    list(answers([question("x" * 200 + str(i)) for i in range(4)], settings))
    assert len(server.control("seen")["batches"]) == 5
    monkeypatch.setattr(batches, "GEMINI_IMAGES", 2)
    list(answers(gemini_pictures(5), settings))
    assert len(server.control("seen")["batches"]) == 8


@pytest.mark.parametrize("service", ["openai", "gemini"])
@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_a_batch_answered_before_it_ended_is_kept_and_the_rest_asked_again(server, settings, service, status):
    requests = pictures(8) if service == "openai" else gemini_pictures(8)
    server.batch_plan(next={"status": status, "part": 0.5})
    got = list(answers(requests, settings))
    assert len(got) == 8 and all(answer.accepted for answer in got)
    assert len(server.control("seen")["batches"]) == 2
    assert answered_once(server) == 8


STEPS = [
    ("_note", "before", 1),  # nothing is planned yet
    ("_note", "after", 1),  # planned, not made
    ("_create", "before", 1),
    ("_create", "after", 1),  # made, its id not noted
    ("_retrieve", "before", 1),
    ("_retrieve", "after", 1),
    ("_keep", "before", 1),  # ended, nothing stored
    ("_keep", "after", 2),  # some stored
    ("_forget", "before", 1),  # all stored, the record still there
]


@pytest.mark.parametrize("service", ["openai", "gemini"])
@pytest.mark.parametrize(("name", "when", "times"), STEPS)
def test_a_run_killed_at_any_step_goes_on_with_the_same_batch(
    server, settings, monkeypatch, service, name, when, times
):
    requests = pictures(4) if service == "openai" else gemini_pictures(4)
    full = f"{name}_{service}" if name in ("_create", "_retrieve") else name
    for _ in range(times):
        with monkeypatch.context() as patched:
            killing(patched, full, when)
            with pytest.raises(Killed):
                list(answers(requests, settings))
    assert len(list(answers(requests, settings))) == 4
    assert len(server.control("seen")["batches"]) == 1
    assert answered_once(server) == 4
    assert open_batches(Store(settings.store)) == []


@pytest.mark.parametrize("service", ["openai", "gemini"])
def test_a_batch_whose_making_is_not_confirmed_is_found_by_its_name(server, settings, service):
    server.faults({"fault": "lost", "path": "/v1/batches" if service == "openai" else ":batchGenerateContent"})
    requests = pictures(4) if service == "openai" else gemini_pictures(4)
    assert len(list(answers(requests, settings))) == 4
    assert len(server.control("seen")["batches"]) == 1


def test_a_batch_that_could_not_be_made_is_made_again(server, settings):
    server.faults({"fault": "status", "status": 500, "path": "/v1/batches"})
    assert len(list(answers(pictures(4), settings))) == 4
    assert len(server.control("seen")["batches"]) == 1


def test_passing_errors_while_waiting_are_got_over(server, settings):
    server.batch_plan(polls=3)
    server.faults(
        {"fault": "status", "status": 502, "path": "/v1/batches/"},
        {"fault": "cut", "path": "/v1/batches/"},
        {"fault": "status", "status": 500, "path": "/content"},
        {"fault": "cut_half", "path": "/content"},
    )
    assert len(list(answers(pictures(4), settings))) == 4
    assert len(server.control("seen")["batches"]) == 1


def test_a_line_that_is_refused_is_final_and_one_that_is_broken_asked_again(server, settings):
    server.faults(
        {"fault": "status", "status": 400, "code": "moderation_blocked", "match": "picture 0", "path": "/generations"},
        {"fault": "half_base64", "match": "picture 1", "path": "/generations"},
        {"fault": "status", "status": 500, "match": "picture 2", "path": "/generations"},
    )
    got = {answer.request.body["prompt"]: answer for answer in answers(pictures(4), settings)}
    assert not got["picture 0"].accepted and "moderation" in got["picture 0"].reason
    assert all(got[f"picture {i}"].accepted for i in (1, 2, 3))
    assert len(server.control("seen")["batches"]) == 2


def test_a_batch_that_fails_as_a_whole_is_told_and_may_be_made_again(server, settings):
    server.batch_plan(next={"status": "failed"})
    with pytest.raises(UserError, match=r"batch batch_0: the file is not right"):
        list(answers(pictures(4), settings))
    assert len(list(answers(pictures(4), settings))) == 4


def test_batches_that_never_answer_end_the_run(server, settings):
    server.batch_plan(status="expired", part=0)
    with pytest.raises(UserError, match="2 requests were left unanswered by 3 batches in a row"):
        list(answers(pictures(2), settings))


def test_a_wrong_key_is_one_line(server, settings):
    server.faults({"fault": "status", "status": 401, "path": "/files", "code": "invalid_api_key"})
    with pytest.raises(UserError, match="401 invalid_api_key"):
        list(answers(pictures(2), settings))
    assert open_batches(Store(settings.store)) == []


def test_budget_shortens_a_batch_and_a_higher_one_goes_on(server, settings):
    # 1.5 cents a picture: six fit into a dime.
    poor = settings.model_copy(update={"budget_usd": 0.10})
    got = []
    with pytest.raises(UserError, match=r"services\.budget_usd: the budget of \$0\.10 is reached"):
        got.extend(answers(pictures(10), poor))
    assert len(got) == 6 and spent_usd(Store(settings.store)) <= 0.10
    assert len(list(answers(pictures(10), settings))) == 10
    assert answered_once(server) == 10


def test_an_online_run_waits_for_what_is_in_a_batch(server, settings, monkeypatch):
    with monkeypatch.context() as patched:
        killing(patched, "_retrieve_openai", "before")
        with pytest.raises(Killed):
            list(answers(pictures(4), settings))
    online = settings.model_copy(update={"mode": "online"})
    assert len(list(answers(pictures(6), online))) == 6
    assert answered_once(server) == 6


def test_an_online_run_finds_a_batch_whose_id_was_not_noted(server, settings, monkeypatch):
    with monkeypatch.context() as patched:
        killing(patched, "_create_openai", "after")
        with pytest.raises(Killed):
            list(answers(pictures(4), settings))
    assert open_batches(Store(settings.store))[0].remote is None
    online = settings.model_copy(update={"mode": "online"})
    assert len(list(answers(pictures(4), online))) == 4
    assert answered_once(server) == 4


def test_a_record_that_cannot_be_read_is_told(settings):
    folder = Path(settings.store) / "batches"
    folder.mkdir(parents=True)
    (folder / "bindbench-x.json").write_text("{")
    with pytest.raises(UserError, match=r"bindbench-x\.json: the record of a batch cannot be read"):
        list(answers(pictures(1), settings))


def test_lines_of_a_batch_are_what_the_api_documents(server, settings, monkeypatch):
    sent = []
    real = batches._create_openai

    def looking(batch, requests, settings):
        answer = real(batch, requests, settings)
        with batches._openai(batch, settings) as client:
            sent.extend(client.files.content(client.batches.retrieve(answer).input_file_id).text.splitlines())
        return answer

    monkeypatch.setattr(batches, "_create_openai", looking)
    request = pictures(1)[0]
    list(answers([request], settings))
    assert json.loads(sent[0]) == {
        "custom_id": request.key,
        "method": "POST",
        "url": "/v1/images/generations",
        "body": {"model": "gpt-image-2", **request.body},
    }
