"""Outputs are whole or absent, tables are checked, a killed run's lock is released and a living one's is not."""

import contextlib
import errno
import itertools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bindbench import cli
from bindbench import snakemake_support as support
from bindbench.config.reading import source_of
from bindbench.errors import UserError
from bindbench.files import canonical_json, sha256, write_bytes, write_json, written_whole
from bindbench.tables import AT_ONCE, QUESTIONS, SCORES, count_rows, read_rows, read_table, write_rows, write_table
from PIL import Image

ROW = {"question": "q1", "subset": "nested", "chain": "c1", "n_objects": 2}


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), written_whole(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_killed_writer_never_leaves_half_a_file(tmp_path):
    program = (
        "import sys; from bindbench.files import write_bytes\n"
        "from pathlib import Path\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1; write_bytes(Path(sys.argv[1]), bytes([n % 256]) * 1_000_000, durable=False); print(n, flush=True)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "big")], stdout=subprocess.PIPE)
    writer.stdout.readline()
    time.sleep(0.3)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    content = (tmp_path / "big").read_bytes()
    assert len(content) == 1_000_000 and len(set(content)) == 1


def test_written_files_are_as_readable_as_others(tmp_path):
    write_bytes(tmp_path / "a", b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_canonical_json_ignores_the_order_of_keys():
    assert (
        canonical_json({"b": 1, "a": [True, "é"]})
        == canonical_json({"a": [True, "é"], "b": 1})
        == '{"a":[true,"é"],"b":1}'
    )


def test_a_table_comes_back_as_it_was_and_is_the_same_bytes_twice(tmp_path):
    for name in ("a", "b"):
        write_table(QUESTIONS, [ROW], tmp_path / name)
    assert read_table(QUESTIONS, tmp_path / "a").to_pylist() == [ROW]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([ROW, ROW], "question repeat"),
        ([{**ROW, "n_objects": None}], "n_objects has empty cells"),
        ([{**ROW, "n_objects": "x"}], "x"),
    ],
)
def test_a_wrong_row_is_never_written(tmp_path, rows, reason):
    with pytest.raises((ValueError, pa.ArrowException), match=reason):
        write_table(QUESTIONS, rows, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def numbered(count: int) -> Iterator[dict]:
    return ({**ROW, "question": f"q{number}"} for number in range(count))


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, 2 * AT_ONCE + 1])
def test_rows_that_are_written_and_read_in_pieces_are_the_same_rows(tmp_path, count):
    write_rows(QUESTIONS, numbered(count), tmp_path / "pieces")
    write_table(QUESTIONS, list(numbered(count)), tmp_path / "whole")
    for name in ("pieces", "whole"):
        assert read_table(QUESTIONS, tmp_path / name).to_pylist() == list(numbered(count))
        assert list(read_rows(QUESTIONS, tmp_path / name)) == list(numbered(count))
        assert count_rows(tmp_path / name) == count


def test_rows_are_never_all_in_memory(tmp_path):
    alive = peak = 0

    class Counted(dict):
        def __init__(self, row):
            nonlocal alive, peak
            super().__init__(row)
            alive += 1
            peak = max(peak, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    write_rows(QUESTIONS, map(Counted, numbered(4 * AT_ONCE)), tmp_path / "pieces")
    assert peak <= 2 * AT_ONCE + 1


def test_faults_of_rows_are_found_across_pieces(tmp_path):
    again = itertools.chain(numbered(AT_ONCE), numbered(1))
    with pytest.raises(ValueError, match="question repeat"):
        write_rows(QUESTIONS, again, tmp_path / "pieces")
    assert not list(tmp_path.iterdir())
    rows = [*numbered(AT_ONCE), *numbered(1)]
    pq.write_table(pa.Table.from_pylist(rows, schema=QUESTIONS.schema), tmp_path / "pieces")
    with pytest.raises(UserError, match="question repeat; delete it"):
        list(read_rows(QUESTIONS, tmp_path / "pieces"))
    with pytest.raises(UserError, match="no such file"):
        list(read_rows(QUESTIONS, tmp_path / "none"))
    with pytest.raises(UserError, match="no column"):
        list(read_rows(SCORES, tmp_path / "pieces"))


def test_an_empty_cell_where_one_is_allowed(tmp_path):
    write_table(QUESTIONS, [{**ROW, "chain": None}], tmp_path / "a")
    assert read_table(QUESTIONS, tmp_path / "a")["chain"].to_pylist() == [None]


def test_a_missing_damaged_or_other_table_is_told_in_one_line(tmp_path):
    path = tmp_path / "t.parquet"
    with pytest.raises(UserError, match="no such file"):
        read_table(QUESTIONS, path)
    write_table(QUESTIONS, [ROW], path)
    with pytest.raises(UserError, match="not a saber/scores table"):
        read_table(SCORES, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="not a readable Parquet file"):
        read_table(QUESTIONS, path)
    pq.write_table(pa.table({**{k: [v, v] for k, v in ROW.items()}}), path)
    with pytest.raises(UserError, match="question repeat"):
        read_table(QUESTIONS, path)


@pytest.mark.parametrize("place", range(0, 400, 7))
def test_a_flipped_bit_in_the_data_of_a_table_is_noticed(tmp_path, place):
    """Not every byte is data: what a flip leaves unchanged may pass, what it changes may not."""
    rows = [{**ROW, "question": f"question {n * 7919 % 10007}", "n_objects": n} for n in range(300)]
    write_table(QUESTIONS, rows, tmp_path / "t.parquet")
    data = bytearray((tmp_path / "t.parquet").read_bytes())
    data[4 + place * len(data) // 800] ^= 16  # the first half: pages
    (tmp_path / "t.parquet").write_bytes(data)
    with contextlib.suppress(UserError):
        assert read_table(QUESTIONS, tmp_path / "t.parquet").to_pylist() == rows
    with contextlib.suppress(UserError):
        assert list(read_rows(QUESTIONS, tmp_path / "t.parquet")) == rows


@contextlib.contextmanager
def files_of_at_most(size: int):
    """A disk that takes so many bytes of each file: a real fault, met by whatever really writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def csv_file(path):
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(str(number) for number in range(100_000))


def picture(path):
    with written_whole(path) as temporary:
        Image.effect_noise((256, 256), 50).save(temporary)


WRITERS = {
    "json": lambda path: write_json(path, list(range(100_000))),
    "parquet": lambda path: write_table(
        QUESTIONS, [{**ROW, "question": sha256(str(index))} for index in range(10_000)], path
    ),
    "csv": csv_file,
    "png": picture,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_disk_without_room_is_one_line_with_the_path_of_the_output(tmp_path, monkeypatch, capsys, kind):
    path = tmp_path / f"out/file.{kind}"
    monkeypatch.setattr(cli, "COMMANDS", [("fill", "", [], lambda options: WRITERS[kind](path)), *cli.COMMANDS])
    with files_of_at_most(5000):
        assert cli.main(["fill"]) == 2
    line = f"{path}: cannot be written or read (File too large); mend that and run again\n"
    assert capsys.readouterr().err == line and list(path.parent.iterdir()) == []


def test_a_full_disk_that_is_only_met_at_the_end_names_the_output(tmp_path, monkeypatch):
    """Space is given when the data goes to the disk, which fsync waits for; its error names no file."""

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as caught:
        write_bytes(tmp_path / "a", b"x")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a"))


def test_other_errors_and_other_files_keep_their_names(tmp_path):
    for number, name in ((errno.EIO, None), (errno.ENOSPC, "elsewhere")):
        with pytest.raises(OSError) as caught, written_whole(tmp_path / "a"):
            raise OSError(number, "what was said", name)
        assert (caught.value.errno, caught.value.strerror, caught.value.filename) == (number, "what was said", name)


def test_a_full_disk_and_bad_json_are_one_line(tmp_path, monkeypatch, capsys):
    def full(options):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "x"))

    monkeypatch.setattr(cli, "COMMANDS", [("fill", "", [], full), *cli.COMMANDS])
    assert cli.main(["fill"]) == 2
    assert "x: cannot be written or read (No space left on device)" in capsys.readouterr().err
    assert cli.main(["sample-questions", "--vocabulary", "{", "--config", "{}"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_weights_are_inputs_file_by_file(tmp_path):
    (tmp_path / "m/.git").mkdir(parents=True)
    for name in ("model.safetensors", "README.md", ".git/x", "config.json"):
        (tmp_path / "m" / name).write_text("x")
    (tmp_path / "w.bin").write_text("x")
    found = support.weight_files(str(tmp_path / "m"), None, str(tmp_path / "w.bin"), "hub/id")
    assert [path.name for path in found] == ["config.json", "model.safetensors", "w.bin"]


def test_braces_and_spaces_of_a_folder_survive_the_shell_prefix(tmp_path):
    folder = tmp_path / "it's {v1} $x"
    prefix = support.shell_prefix(folder, None).format()
    shown = subprocess.run(
        ["bash", "-c", prefix + 'echo "$PYTHONPATH"'], capture_output=True, text=True, env={"PATH": os.environ["PATH"]}
    )
    assert shown.stdout.strip() == str(folder)


@pytest.mark.parametrize("name", ["{v1}", "a { v.1 } b", "{x, a{3}}", "<results>", "a<b>c"])
def test_a_path_that_snakemake_would_take_for_a_pattern_is_one_line(name, capsys):
    from snakemake.pathvars import PATHVAR_REGEX
    from snakemake_interface_storage_plugins.io import WILDCARD_REGEX

    assert WILDCARD_REGEX.search(name) or PATHVAR_REGEX.search(name)
    with pytest.raises(SystemExit) as ended:
        support.input_path(f"/photographs/{name}/a.jpg")
    told = capsys.readouterr().err
    assert (
        ended.value.code == 2
        and told.count("\n") == 1
        and told.startswith(f"/photographs/{name}/a.jpg: Snakemake takes")
    )


@pytest.mark.parametrize("name", ["it's {a b} $x", "{}", "{{", "a}b{", "<A>", "< b >", "ü 'ö' ~"])
def test_every_other_path_is_an_input_as_it_is(name):
    from snakemake.pathvars import PATHVAR_REGEX
    from snakemake_interface_storage_plugins.io import WILDCARD_REGEX

    assert not WILDCARD_REGEX.search(name) and not PATHVAR_REGEX.search(name)
    assert support.input_path(name) == name


@pytest.fixture
def locked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    support.LOCKS.mkdir(parents=True)
    lock = support.LOCKS / "0.output.lock"
    lock.write_text("x")
    return lock


def test_the_lock_of_a_killed_run_is_released(locked, capsys):
    holder = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    note = {"host": socket.gethostname(), "pid": holder.pid, "started": support._started(holder.pid)}
    write_json(support.NOTE, note)
    support.release_stale_lock()
    assert locked.exists(), "its holder still runs"
    holder.kill()
    holder.wait()
    support.release_stale_lock()
    assert not locked.exists() and str(holder.pid) in capsys.readouterr().err


@pytest.mark.parametrize("note", ['{"host": "another", "pid": 1, "started": "x"}', "{", "{}", "[]"])
def test_the_lock_of_another_machine_or_of_nobody_known_stays(locked, note):
    support.NOTE.write_text(note)
    support.release_stale_lock()
    assert locked.exists()


def test_a_process_id_that_was_given_to_another_process_does_not_hold_the_lock(locked):
    support.NOTE.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": "another boot/1"}))
    support.release_stale_lock()
    assert not locked.exists()


def test_an_error_names_the_file_that_gave_the_value():
    files = {"default.yaml": {"a": {"b": 1, "c": 2}}, "mine.yaml": {"a": {"b": 3}}}
    config = {"a": {"b": 3, "c": 5}, "d": 1}
    assert source_of(config, files, ("a", "b")) == "mine.yaml"
    assert source_of(config, files, ("a", "c")) == "--config"
    assert source_of({"a": {"b": 3, "c": 2}}, files, ("a", "c")) == "default.yaml"


def test_a_path_at_home_is_found_and_watched(tmp_path, monkeypatch):
    from bindbench.paths import resolve
    from bindbench.snakemake_support import weight_files

    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.safetensors").write_bytes(b"1")
    assert resolve("~/model") == tmp_path / "model"
    assert weight_files("~/model") == [tmp_path / "model/model.safetensors"], "another training is embedded again"
