"""The store: what is put in comes out; damage is noticed and moved away; it travels by tar without harm."""

import io
import json
import os
import resource
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import bindbench
import pytest
from bindbench.config.services import Services
from bindbench.errors import UserError
from bindbench.services.accounts import Journal, add_uncertain, intent, read_lines
from bindbench.services.requests import Request
from bindbench.services.store import Store, export_store, header_line, import_store, make_header, store_folder
from hypothesis import given, settings
from hypothesis import strategies as st
from service_requests import pictures, question


def entry(request: Request, payload: bytes = b"payload", **more) -> tuple[dict, bytes]:
    given = {"status": "answer", "content_type": "image/png", "tokens": {}, "cost_usd": 0.25, "cost_from": "usage"}
    return make_header(request, payload, **{**given, **more}), payload


def filled(root, count: int = 3) -> Store:
    store = Store(root)
    for request in pictures(count, stage="scenes"):
        store.put(*entry(request))
    return store


@settings(max_examples=50, deadline=None)
@given(payload=st.binary(max_size=2000), text=st.text(max_size=50), cost=st.floats(0, 1e6))
def test_what_is_put_in_comes_out(tmp_path_factory, payload, text, cost):
    store = Store(tmp_path_factory.mktemp("store"))
    request = Request("chat", "m", {"messages": [text]}, stage=text)
    header, _ = entry(request, payload, reason=text, cost_usd=cost)
    store.put(header, payload)
    found = store.read(request.key)
    assert (found.header, found.payload) == (header, payload)
    assert store.peek(request.key) == store.verify(request.key) == header


def test_an_entry_is_one_file_a_line_of_json_and_the_payload(tmp_path):
    store, request = Store(tmp_path), question()
    store.put(*entry(request, b"\n{}\n"))
    line, payload = store.path(request.key).read_bytes().split(b"\n", 1)
    header = json.loads(line)
    assert payload == b"\n{}\n"
    assert header["request"]["body"] == request.identity["body"] and header["key"] == request.key


@pytest.mark.parametrize("where", ["first byte", "header", "payload", "cut", "empty", "another's"])
def test_a_damaged_entry_is_moved_away_told_and_can_be_bought_again(tmp_path, capsys, where):
    store, request = Store(tmp_path), pictures(1)[0]
    store.put(*entry(request))
    path = store.path(request.key)
    data = bytearray(path.read_bytes())
    if where == "first byte":
        data[0] ^= 1
    elif where == "header":
        data[data.index(b"0.25")] ^= 1
    elif where == "payload":
        data[-1] ^= 1
    elif where == "cut":
        del data[-3:]
    elif where == "empty":
        data.clear()
    else:
        header, payload = entry(pictures(2)[1])
        data = header_line(header) + payload
    path.write_bytes(data)
    assert store.verify(request.key) is None
    assert not path.exists() and len(list((tmp_path / "damaged").iterdir())) == 1
    assert f"entry {request.key[:12]} is damaged" in capsys.readouterr().err
    store.put(*entry(request))
    assert store.read(request.key).payload == b"payload"


def test_a_good_entry_is_never_written_over(tmp_path):
    store, request = Store(tmp_path), pictures(1)[0]
    store.put(*entry(request, b"first"))
    store.put(*entry(request, b"second"))
    assert store.read(request.key).payload == b"first"


def test_broken_payloads_lead_to_the_next_try_and_a_refusal_ends_it(tmp_path):
    store, request = Store(tmp_path), pictures(1)[0]
    assert store.resolve(request, 3)[0] is request
    store.put(*entry(request, status="reject", final=False, reason="half"))
    attempt, header = store.resolve(request, 3)
    assert attempt.try_number == 2 and header is None
    store.put(*entry(attempt, status="reject", final=True, reason="moderation"))
    assert store.resolve(request, 3)[1]["reason"] == "moderation"


def test_after_the_last_try_a_broken_payload_is_the_outcome(tmp_path):
    store, request = Store(tmp_path), pictures(1)[0]
    for number in (1, 2):
        store.put(*entry(request.at_try(number), status="reject", final=False, reason=f"half {number}"))
    assert store.resolve(request, 2)[1]["reason"] == "half 2"
    assert store.resolve(request, 3)[1] is None  # a raised limit asks once more


def test_export_and_import_carry_everything_and_keep_what_is_there(tmp_path):
    store = filled(tmp_path / "here")
    assert export_store(store, tmp_path / "out.tar") == 3
    other = Store(tmp_path / "there")
    mine = pictures(1)[0]
    other.put(*entry(mine, b"mine"))
    counts = import_store(other, tmp_path / "out.tar")
    assert (counts.added, counts.held, counts.refused) == (2, 1, 0)
    assert other.read(mine.key).payload == b"mine"
    assert sorted(other.every_key()) == sorted(store.every_key())


def test_export_selects_by_service_and_stage(tmp_path):
    store = filled(tmp_path / "here")
    store.put(*entry(question(stage="screening")))
    assert export_store(store, tmp_path / "a.tar", stages=["screening"]) == 1
    assert export_store(store, tmp_path / "b.tar", services=["gemini"]) == 0
    assert export_store(store, tmp_path / "c.tar", services=["openai"]) == 4


def test_export_leaves_damaged_entries_out(tmp_path):
    store = filled(tmp_path / "here")
    store.path(pictures(1)[0].key).write_bytes(b"x")
    assert export_store(store, tmp_path / "out.tar") == 2


def test_an_export_that_cannot_be_written_is_one_line(tmp_path):
    store = filled(tmp_path / "here")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"out\.tar: cannot be written"):
        export_store(store, tmp_path / "file" / "out.tar")
    with pytest.raises(UserError, match="is a folder"):
        export_store(store, tmp_path)


def test_an_export_that_stops_leaves_the_older_one(tmp_path, monkeypatch):
    store = filled(tmp_path / "here")
    export_store(store, tmp_path / "out.tar")
    before = (tmp_path / "out.tar").read_bytes()

    def full(*arguments):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(UserError, match="No space left"):
        export_store(store, tmp_path / "out.tar")
    assert (tmp_path / "out.tar").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"here", "out.tar"}


def test_a_folder_in_place_of_an_entry_is_set_aside(tmp_path):
    store, request = filled(tmp_path), pictures(1)[0]
    store.path(request.key).unlink()
    store.path(request.key).mkdir()
    assert len(list(store.headers())) == 2 and len(store.damaged()) == 1


def test_an_entry_that_cannot_be_read_stays_where_it_is(tmp_path, monkeypatch):
    store, request = filled(tmp_path), pictures(1)[0]

    def denied(*arguments):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(UserError, match="cannot be read"):
        store.peek(request.key)
    assert store.path(request.key).exists() and store.damaged() == []


def test_import_refuses_what_is_not_an_entry(tmp_path):
    header, payload = entry(pictures(1)[0])
    forged = {**header, "request": {**header["request"], "model": "another"}}
    members = {
        "entries/aa/" + "a" * 64: b"nothing",
        "../../escaped": b"x",
        f"entries/{header['key'][:2]}/{header['key']}": header_line(forged) + payload,
    }
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("b" * 64)
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("end-of-export-0"))
    counts = import_store(Store(tmp_path / "store"), tmp_path / "bad.tar")
    assert (counts.added, counts.held, counts.refused) == (0, 0, 4)
    assert not (tmp_path.parent / "escaped").exists()


@pytest.mark.parametrize("kept", [0, 100, 5000, 512 * 12, 512 * 13])
def test_a_cut_export_is_told_in_one_line(tmp_path, kept):
    export_store(filled(tmp_path / "here", 30), tmp_path / "out.tar")
    data = (tmp_path / "out.tar").read_bytes()
    (tmp_path / "out.tar").write_bytes(data[:kept])
    with pytest.raises(UserError, match=r"not a whole export .*entries were taken over"):
        import_store(Store(tmp_path / "there"), tmp_path / "out.tar")
    with pytest.raises(UserError, match="no such file"):
        import_store(Store(tmp_path / "there"), tmp_path / "none.tar")


KILLED = """
import os, sys
from bindbench.services import store as module
from bindbench.services.requests import Request
store = module.Store(sys.argv[1])
request = Request("chat", "m", {})
header = module.make_header(request, b"x" * 100, status="answer", content_type="text/plain", tokens={}, cost_usd=0,
                            cost_from="usage")
step = int(sys.argv[2])
calls = []
def dying(name, real):
    def call(*arguments, **named):
        calls.append(name)
        if len(calls) == step:
            os.kill(os.getpid(), 9)
        return real(*arguments, **named)
    return call
os.fsync = dying("fsync", os.fsync)
module.Path.replace = dying("replace", module.Path.replace)
store.put(header, b"x" * 100)
"""


@pytest.mark.parametrize("step", range(1, 5))
def test_a_writer_that_is_killed_leaves_a_whole_entry_or_none(tmp_path, step):
    """Before the folder's fsync, the file's, the renaming and the last fsync."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(step)], env=_environment())
    assert killed.returncode == -9
    store, request = Store(tmp_path), Request("chat", "m", {})
    assert (store.read(request.key) is not None) == (step == 4)
    assert not (tmp_path / "damaged").exists()
    assert list(store.every_key()) == ([request.key] if step == 4 else [])
    store.clean(older_than_s=-1)
    left = [item for item in store.entries.rglob("*") if item.is_file()]
    assert len(left) == (step == 4)


def _environment() -> dict:
    return {**os.environ, "PYTHONPATH": str(Path(bindbench.__file__).parents[1])}


def test_store_is_found_by_config_and_by_environment(tmp_path, monkeypatch):
    assert store_folder(Services(store=str(tmp_path / "a"))) == tmp_path / "a"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store_folder(Services()) == tmp_path / ".local/share/bindbench/store"
    monkeypatch.setenv("BINDBENCH_STORE", str(tmp_path / "b"))
    assert store_folder(Services(store=str(tmp_path / "a"))) == tmp_path / "b"


def test_a_store_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"services\.store: .*file/store: cannot be made"):
        Store(tmp_path / "file/store")


def test_a_remake_is_another_entry(tmp_path):
    store, request = filled(tmp_path), pictures(1, stage="scenes")[0]
    assert store.peek(replace(request, attempt=2).key) is None


@pytest.fixture
def little_room():
    """Files of at most 2,000 bytes: a real fault of writing."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_store_without_room_names_the_file(tmp_path, little_room):
    store, request = Store(tmp_path), pictures(1)[0]
    with pytest.raises(OSError) as caught:
        store.put(*entry(request, b"p" * 9000))
    assert caught.value.filename == str(store.path(request.key))
    assert list(store.every_key()) == [] and list(store.path(request.key).parent.iterdir()) == []
    with pytest.raises(OSError) as caught:
        add_uncertain(store, [intent(request, 0.1)] * 50)
    assert caught.value.filename == str(tmp_path / "uncertain.jsonl")


def test_a_journal_without_room_keeps_whole_lines_and_takes_shorter_ones(tmp_path, little_room):
    store = Store(tmp_path)
    journal = Journal(store)
    first, *many = pictures(50)
    journal.sent([intent(first, 0.5)])
    with pytest.raises(OSError) as caught:
        journal.sent([intent(request, 0.5) for request in many])
    assert caught.value.filename == str(journal.path)
    journal.sent([intent(many[0], 0.5)])
    assert [line["sent"] for line in read_lines(journal.path)] == [first.key, many[0].key]


def test_an_import_into_a_store_without_room_says_so(tmp_path, request):
    large, small = filled(tmp_path / "a", 1), Store(tmp_path / "b")
    large.put(*entry(question(), b"p" * 9000))
    export_store(large, tmp_path / "all.tar")
    request.getfixturevalue("little_room")
    with pytest.raises(
        UserError, match=r"cannot be written \(File too large\); [01] entries were taken over: make room"
    ):
        import_store(small, tmp_path / "all.tar")
