"""The review's server: this machine and this session alone, and a press is on disk before it is called saved."""

import json
import os
import signal
import threading
import webbrowser
from pathlib import Path

import pytest
import review_client
from bindbench.errors import UserError
from bindbench.review.journal import Journal, append_proposal, read_journal
from bindbench.review.scenes import SceneReview
from bindbench.review.serving import serve_until_stopped, server_of, usual_port
from review_client import PRESS


def serving(saber, by=None, **more):
    return review_client.serving(SceneReview(*saber.tables, by=by), **more)


@pytest.fixture
def client(saber):
    with serving(saber) as client:
        yield client


def judged(saber, scene, verdict="accepted", reason=None):
    return {"scene": scene, "sha256": saber.hashes[scene], "verdict": verdict, "reason": reason}


# ---- who may ask


@pytest.mark.parametrize("path", ["/state", "/questions/i2-0", "/images/i2-0.query", "/nothing"])
@pytest.mark.parametrize("token", [False, "", "wrong", "ä"])
def test_without_the_token_nothing_is_told(client, path, token):
    response, data = client.ask("GET", path, token=token and token.encode())
    assert response.status == 403 and json.loads(data) == {"error": "wrong token"}


def test_without_the_token_nothing_is_written(client, saber):
    response, _ = client.ask(
        "POST", "/presses", {"press": PRESS, "verdicts": [judged(saber, "i2-0.query")]}, token="no"
    )
    assert response.status == 403 and not saber.journal.exists()


def test_the_token_is_new_each_time_long_and_in_no_request_s_address(saber):
    with serving(saber) as one, serving(saber) as two:
        assert one.token != two.token and len(one.token) >= 32
        assert one.server.url == f"http://127.0.0.1:{one.port}/#{one.token}"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "169.254.1.1", "", "a b"],
)
@pytest.mark.parametrize("path", ["/", "/state", "/page.js", "/review.js"])
def test_a_name_that_was_made_to_point_here_is_refused(client, host, path):
    response, data = client.ask("GET", path, Host=host)
    assert response.status == 403 and json.loads(data) == {"error": "wrong Host"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8217", "[::1]:1"])
def test_this_machine_s_own_names_are_served_also_through_a_tunnel_s_port(client, host):
    assert client.ask("GET", "/state", Host=host)[0].status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_another_site_s_page_is_refused_even_with_the_token(client, saber, origin):
    body = {"press": PRESS, "verdicts": [judged(saber, "i2-0.query")]}
    assert client.ask("POST", "/presses", body, Origin=origin)[0].status == 403
    assert not saber.journal.exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "", "10.0.0.1"])
def test_nothing_but_loopback_is_bound(saber, host):
    with pytest.raises(UserError, match="only this machine"):
        server_of(SceneReview(*saber.tables), host=host)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2"])
def test_loopback_is_bound_and_only_it(saber, host):
    server = server_of(SceneReview(*saber.tables), host=host)
    assert server.server_address[0] == ("127.0.0.1" if host == "localhost" else host)
    server.server_close()


def test_a_port_that_is_taken_or_no_port_is_told_in_one_line(saber, client):
    with pytest.raises(UserError, match=f"port {client.port} is taken"):
        server_of(SceneReview(*saber.tables), port=client.port)
    with pytest.raises(UserError, match="must be from 0 to 65535"):
        server_of(SceneReview(*saber.tables), port=70000)


# ---- what may be asked


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    response, _ = client.ask(method, "/state")
    assert response.status == 405 and response.getheader("Allow") == "GET, POST"
    assert client.ask("BREW", "/state")[0].status == 501


@pytest.mark.parametrize(
    "path",
    [
        "/images/../../../../etc/passwd",
        "/images/..%2f..%2f..%2fetc%2fpasswd",
        "/images/%2fetc%2fpasswd",
        "/images/0000/0.png",
        "/images/0.png",
        "/images/",
        "/images/i2-0.query/",
        "/../page/page.js",
        "/page/page.js",
        "//etc/passwd",
        "/questions/",
        "/questions/nothing",
        "/images/nothing",
        "/presses",
        "/%00",
    ],
)
def test_only_known_names_are_served_never_paths(client, path):
    response, data = client.ask("GET", path)
    assert response.status == 404 and "error" in json.loads(data)


def test_the_page_needs_nothing_from_outside_and_may_not_ask_for_it(client):
    for path, kind in {
        "/": "text/html",
        "/page.js": "text/javascript",
        "/review.js": "text/javascript",
        "/furniture.js": "text/javascript",
        "/page.css": "text/css",
        "/review.css": "text/css",
        "/style.css": "text/css",
    }.items():
        response, data = client.ask("GET", path, token=False)
        assert response.status == 200 and response.getheader("Content-Type") == f"{kind}; charset=utf-8"
        assert (
            b"://" not in data
            and b"innerHTML" not in data
            and b"style=" not in data
            and client.token.encode() not in data
        )
        policy = response.getheader("Content-Security-Policy")
        assert (
            policy.startswith("default-src 'none'; script-src 'self'; ")
            and "unsafe" not in policy
            and "*" not in policy
        )
        assert response.getheader("Set-Cookie") is None and response.getheader("Cache-Control") == "no-store"
        assert response.getheader("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("{}", {"Content_Type": "text/plain"}, 415),
        ("{}", {}, 415),
        ("no", {"Content_Type": "application/json"}, 400),
        ("[1]", {"Content_Type": "application/json"}, 400),
        ("[" * 60000, {"Content_Type": "application/json"}, 400),
        ("\xff".encode("latin-1"), {"Content_Type": "application/json"}, 400),
        ("x" * 70000, {"Content_Type": "application/json"}, 413),
    ],
)
def test_a_body_that_is_no_small_json_object_is_refused(client, body, headers, status):
    assert client.ask("POST", "/presses", body, **headers)[0].status == status


def test_a_press_that_makes_no_sense_is_refused_and_nothing_written(client, saber):
    good = judged(saber, "i2-0.query")
    for status, items, press in [
        (400, [], PRESS),
        (400, [good] * 2, PRESS),
        (400, [good] * 6, PRESS),
        (400, ["accepted"], PRESS),
        (400, [good | {"verdict": "fine"}], PRESS),
        (400, [good | {"verdict": ["accepted"]}], PRESS),
        (400, [good | {"verdict": "rejected"}], PRESS),
        (400, [good | {"verdict": "rejected", "reason": "  "}], PRESS),
        (400, [good | {"reason": "x" * 501}], PRESS),
        (400, [good | {"reason": 7}], PRESS),
        (400, [good], "short"),
        (400, [good], 7),
        (404, [good | {"scene": "nothing"}], PRESS),
        (404, [good | {"scene": 7}], PRESS),
        (409, [good | {"sha256": "0" * 64}], PRESS),
    ]:
        assert client.press(*items, press=press)[0] == status, items
    assert client.undo("f" * 32, PRESS)[0] == 404
    assert client.undo("f" * 32, ["x"])[0] == 404
    assert not saber.journal.exists() or saber.journal.read_bytes() == b""


# ---- what is told


def test_a_question_is_shown_with_everything_that_judging_needs(client, saber):
    question = client.get("/questions/i3-0")
    rows = [row for row in saber.scene_rows if row["question"] == "i3-0"]
    assert [scene["role"] for scene in question["scenes"]] == ["query", *(f"candidate {i}" for i in range(1, 5))]
    for shown, row in zip(question["scenes"], rows, strict=True):
        assert shown["caption"] == row["caption"] and shown["generation_caption"] == row["generation_caption"]
        assert [b["object"] for b in shown["bindings"]] == [b["object"] for b in row["bindings"]]
        assert shown["sha256"] == saber.hashes[row["scene"]]
        response, data = client.ask("GET", f"/images/{shown['scene']}")
        assert response.getheader("Content-Type") == "image/png" and data.startswith(b"\x89PNG")
    marks = [[binding["held"] for binding in scene["bindings"]] for scene in question["scenes"]]
    assert all(marks[0]) and all(marks[1]) and not any(all(mark) for mark in marks[2:])


def test_an_image_that_changed_on_disk_or_is_gone_is_never_shown_as_the_one_to_judge(client, saber):
    folder = saber.folder / "images/0000"
    (folder / "0.png").write_bytes((folder / "1.png").read_bytes())
    (folder / "1.png").unlink()
    first, second = saber.scene_rows[0]["scene"], saber.scene_rows[1]["scene"]
    assert client.ask("GET", f"/images/{first}")[0].status == 409
    assert client.ask("GET", f"/images/{second}")[0].status == 404


def test_a_question_waits_until_all_its_images_exist(saber):
    saber.scene_rows.pop()
    saber.write_images()
    with serving(saber) as client:
        state = client.get("/state")
        assert len(state["questions"]) == 3 and state["without_images"] == 1
    saber.scene_rows.clear()
    saber.write_images()
    with pytest.raises(UserError, match="no question has all five images yet"):
        server_of(SceneReview(*saber.tables))


def test_the_embedded_renderer_s_images_are_accepted_until_a_person_says_otherwise(saber):
    saber.write_images("builtin/1")
    with serving(saber) as client:
        assert client.get("/state")["standings"]["i2-0.query"] == {"verdict": "accepted", "by_person": False}
        client.press(judged(saber, "i2-0.query", "rejected", "cut off"))
        assert client.get("/state")["standings"]["i2-0.query"]["verdict"] == "rejected"
        client.undo("f" * 32, PRESS)
        assert client.get("/state")["standings"]["i2-0.query"]["verdict"] == "accepted"


def test_a_proposal_is_told_and_counts_as_open_until_a_person_judges(client, saber):
    append_proposal(Journal(saber.journal), "i2-0.query", saber.hashes["i2-0.query"], "rejected", "cut off", "model")
    standing = client.get("/questions/i2-0")["standings"]["i2-0.query"]
    assert standing["verdict"] == "open" and not standing["by_person"]
    assert standing["proposal"] == {"verdict": "rejected", "reason": "cut off", "by": "model"}
    client.press(judged(saber, "i2-0.query"))
    standing = client.get("/questions/i2-0")["standings"]["i2-0.query"]
    assert standing["verdict"] == "accepted" and "proposal" not in standing


def test_a_damaged_journal_is_told_at_the_start(saber):
    saber.journal.parent.mkdir()
    saber.journal.write_text("nonsense\n")
    with pytest.raises(UserError, match="line 1: not JSON"):
        server_of(SceneReview(*saber.tables))


# ---- presses


def test_a_press_is_on_disk_when_it_is_called_saved(saber, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(descriptor):
        if os.path.samestat(os.fstat(descriptor), saber.journal.stat()):
            synced.append(saber.journal.read_text())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with serving(saber, by="Ada") as client:
        status, answer = client.press(judged(saber, "i2-0.query", "rejected", " wrong \n object "))
        assert status == 200 and answer["standings"]["i2-0.query"]["reason"] == "wrong object"
        line = json.loads(synced[0])
        assert (line["scene"], line["verdict"], line["by"], line["press"]) == ("i2-0.query", "rejected", "Ada", PRESS)
        assert saber.journal.read_text() == synced[0]


def test_a_press_that_is_sent_again_counts_once_even_if_it_was_half_written(client, saber):
    scenes = saber.scenes_of("i2-0")
    items = [judged(saber, scene) for scene in scenes]
    client.press(*items)
    assert client.press(*items)[0] == 200
    lines = saber.journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    saber.journal.write_bytes(b"".join(lines[:2]) + lines[2][:20])  # as a kill leaves it
    status, answer = client.press(*items)
    assert status == 200 and {standing["verdict"] for standing in answer["standings"].values()} == {"accepted"}
    journal = read_journal(saber.journal)
    assert all(journal.standing(scene, saber.hashes[scene]) for scene in scenes)
    assert len(saber.journal.read_bytes().splitlines()) == 6  # five and the torn one


def test_undo_appends_the_earlier_verdicts_of_all_scenes_of_a_press(client, saber):
    scenes = saber.scenes_of("i2-0")
    client.press(judged(saber, scenes[0], "rejected", "cut off"), press="1" * 32)
    client.press(*[judged(saber, scene) for scene in scenes], press="2" * 32)
    status, answer = client.undo("3" * 32, "2" * 32)
    assert status == 200
    assert [answer["standings"][scene]["verdict"] for scene in scenes] == ["rejected", *["open"] * 4]
    assert answer["standings"][scenes[0]]["reason"] == "cut off"
    assert len(saber.journal.read_text().splitlines()) == 11
    assert client.undo("3" * 32, "2" * 32)[0] == 200  # sent again
    assert len(saber.journal.read_text().splitlines()) == 11
    assert client.undo("4" * 32, "1" * 32)[1]["standings"][scenes[0]]["verdict"] == "open"


def test_undo_leaves_what_somebody_else_judged_since(saber):
    with serving(saber, by="Ada") as ada, serving(saber, by="Ben") as ben:
        one, two = saber.scenes_of("i2-0")[:2]
        ada.press(judged(saber, one), judged(saber, two), press="1" * 32)
        ben.press(judged(saber, one, "rejected", "cut off"), press="2" * 32)
        _, answer = ada.undo("3" * 32, "1" * 32)
        assert answer["standings"].keys() == {two} and answer["standings"][two]["verdict"] == "open"
        assert ada.get("/state")["standings"][one]["by"] == "Ben"
        assert ada.undo("4" * 32, "1" * 32)[0] == 409


def test_two_pages_that_press_at_once_lose_nothing(saber):
    scenes = [row["scene"] for row in saber.scene_rows]
    with serving(saber, by="Ada") as ada, serving(saber, by="Ben") as ben:

        def press_all(client, digit):
            for number, scene in enumerate(scenes):
                client.press(judged(saber, scene), press=f"{digit}{number:031d}")

        threads = [threading.Thread(target=press_all, args=about) for about in ((ada, "a"), (ben, "b"), (ada, "c"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = [json.loads(line) for line in saber.journal.read_text().splitlines()]
    assert len(lines) == 3 * len(scenes) == len({(line["press"], line["scene"]) for line in lines})
    assert {line["by"] for line in lines} == {"Ada", "Ben"}


def test_a_full_disk_is_told_and_the_same_press_can_be_sent_again(client, saber, monkeypatch):
    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        status, answer = client.press(judged(saber, "i2-0.query"))
        assert status == 500 and "No space left on device" in answer["error"]
    assert client.press(judged(saber, "i2-0.query"))[0] == 200
    assert len(saber.journal.read_text().splitlines()) == 1


def test_no_command_line_shows_the_token(saber, monkeypatch):
    opened = []

    def browse(address):
        path = Path(address.removeprefix("file://"))
        opened.append((address, path.read_text(), path.stat().st_mode & 0o077))
        os.kill(os.getpid(), signal.SIGTERM)  # ends the review as a person or a cluster does
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    handler = signal.getsignal(signal.SIGTERM)
    serve_until_stopped(SceneReview(*saber.tables))
    ((address, text, others),) = opened
    assert f"http://127.0.0.1:{usual_port(saber.journal)}/#" in text
    token = text.split("#")[1].split('"')[0]
    assert len(token) >= 32 and token not in address and others == 0
    assert not Path(address.removeprefix("file://")).exists() and signal.getsignal(signal.SIGTERM) is handler


def test_a_restarted_review_is_where_the_page_expects_it_unless_somebody_else_is(saber, monkeypatch):
    ports = []

    def browse(address):
        text = Path(address.removeprefix("file://")).read_text()
        ports.append(int(text.split("127.0.0.1:")[1].split("/")[0]))
        os.kill(os.getpid(), signal.SIGTERM)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    serve_until_stopped(SceneReview(*saber.tables))
    serve_until_stopped(SceneReview(*saber.tables))
    with serving(saber, port=usual_port(saber.journal)):
        serve_until_stopped(SceneReview(*saber.tables))
        with pytest.raises(UserError, match="is taken"):
            serve_until_stopped(SceneReview(*saber.tables), port=usual_port(saber.journal))
    assert ports[0] == ports[1] == usual_port(saber.journal) != ports[2]
