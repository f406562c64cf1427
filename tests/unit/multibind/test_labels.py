"""Labels of people: their journals, the table that is written from all of them, which count, and how far people agree."""

import csv

import numpy as np
import pyarrow as pa
import pytest
from bindbench.errors import UserError
from bindbench.multibind.evaluation_tables import LABELS
from bindbench.multibind.labels import LabelFiles, Pair, cohen_kappa, write_agreement
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

OWN, OTHER = (Pair("swap", "coco-a", "face", "A", column) for column in "AB")
FIRST, SECOND = "1" * 64, "2" * 64


def say(files: LabelFiles, by: str, pair: Pair, verdict: str, sha256: str = FIRST) -> None:
    journal = files.journal(by)
    journal.append(lambda: [journal.line(pair.id, sha256, verdict, None, by)])
    files.write()


def table(files: LabelFiles) -> list[tuple]:
    rows = read_table(LABELS, files.table).to_pylist()
    return [(row["by"], row["column"], row["label"], row["sha256"][0]) for row in rows]


def test_table_holds_what_counts_of_everyone_and_of_every_picture(tmp_path):
    files = LabelFiles(tmp_path / "labels.parquet")
    say(files, "Ada", OWN, "no")
    say(files, "Ada", OWN, "yes")
    say(files, "Ada", OTHER, "unclear")
    say(files, "Bea", OTHER, "yes")
    assert table(files) == [("Ada", "A", True, "1"), ("Bea", "B", True, "1")]
    say(files, "Ada", OWN, "no", SECOND)  # generated again: the earlier label stays
    say(files, "Bea", OTHER, "open")  # undone
    assert table(files) == [("Ada", "A", True, "1"), ("Ada", "A", False, "2")]


def test_labels_of_those_without_a_journal_here_stay_in_the_table(tmp_path):
    there, here = LabelFiles(tmp_path / "there.parquet"), LabelFiles(tmp_path / "here.parquet")
    say(there, "Ada", OWN, "yes")
    there.table.rename(here.table)
    say(here, "Bea", OWN, "no")
    assert table(here) == [("Ada", "A", True, "1"), ("Bea", "A", False, "1")]


def test_a_table_without_news_is_left_alone_and_a_broken_one_is_not_written_over(tmp_path):
    files = LabelFiles(tmp_path / "labels.parquet")
    say(files, "Ada", OWN, "yes")
    before = files.table.stat().st_mtime_ns
    files.write()
    assert files.table.stat().st_mtime_ns == before
    files.table.write_bytes(b"spoilt")
    with pytest.raises(UserError, match=r"labels\.parquet: .*; mend it"):
        files.write()
    assert files.table.read_bytes() == b"spoilt"


@pytest.mark.parametrize("name", ["", "../Ada", ".hidden", "a/b", "a" * 41])
def test_a_name_that_can_name_no_file_is_refused(tmp_path, name):
    with pytest.raises(UserError, match="--by"):
        LabelFiles(tmp_path / "labels.parquet").journal(name)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_kappa_is_cohen_s(pairs):
    first, second = np.array(pairs).T
    if len({*first, *second}) == 1:
        assert np.isnan(cohen_kappa(first, second))
    else:
        assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)


def test_agreement_is_of_those_who_judged_the_same_bytes(tmp_path):
    """Ten pairs by two people of whom one says yes once too often, two of a picture that was generated again in between."""
    rows = []
    for number in range(12):
        pair = Pair("swap", f"coco-{number}", "face", "A", "A")._asdict()
        for by in ("Ada", "Bea"):
            sha256 = SECOND if number > 9 and by == "Bea" else FIRST
            value = number % 2 == 0 or (number, by) == (1, "Bea")
            rows.append(pair | {"label": value, "by": by, "sha256": sha256})
    rows.append(Pair("swap", "coco-0", "face", "A", "B")._asdict() | {"label": True, "by": "Ada", "sha256": FIRST})
    write_table(LABELS, pa.Table.from_pylist(rows, LABELS.schema), tmp_path / "labels.parquet")
    write_agreement(tmp_path / "labels.parquet", tmp_path / "agreement.csv")
    with (tmp_path / "agreement.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row.values()) == ["face", "self", "Ada", "Bea", "10", "90.00", "0.8000"]
    write_agreement(None, tmp_path / "agreement.csv")
    assert (tmp_path / "agreement.csv").read_text().count("\n") == 1
