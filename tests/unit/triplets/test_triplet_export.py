"""The exported files hold every triplet whole, and sentence-transformers trains on them."""

import csv
import json

import pyarrow.parquet as pq
import pytest
import torch
import yaml
from bindbench.errors import UserError
from bindbench.tables import TRIPLETS, read_table, write_table
from bindbench.triplets import export
from bindbench.triplets.export import export_triplets, read_summary, triplets_of, write_csv, write_jsonl
from bindbench.triplets.summary import summarise
from bindbench.vocabulary import Vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_triplets import FAMILIES, examples_table, rows, small_set
from tiny_models import qwen3_vl

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)


def naive(examples):
    return [
        (row["query"], row["positive"], row[negative])
        for row in examples.to_pylist()
        for negative in ("attribute_negative", "object_negative")
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tables of the splits, their summary, and the exported folder."""
    source, folder = tmp_path_factory.mktemp("tables"), tmp_path_factory.mktemp("export") / "triplets"
    examples, rejects, splits = small_set(30)
    tables, start = {}, 0
    for split, count in splits.items():
        tables[split] = source / f"{split}.parquet"
        write_table(TRIPLETS, examples.slice(start, count), tables[split])
        start += count
    summary = summarise(examples, rejects, splits, FAMILIES, Vocabulary({}, {}, ()))
    export_triplets(tables, summary, folder)
    return tables, summary, folder


def configs_of(folder):
    header = yaml.safe_load((folder / "README.md").read_text().split("---\n", 2)[1])
    return {
        config["config_name"]: {entry["split"]: folder / entry["path"] for entry in config["data_files"]}
        for config in header["configs"]
    }


def test_card_names_every_data_file_and_nothing_is_left_over(made):
    _, summary, folder = made
    configs = configs_of(folder)
    assert list(configs) == ["default", "triplets"]
    named = {path for paths in configs.values() for path in paths.values()}
    spare = {folder / "triplets" / f"{split}.csv" for split in summary["splits"]} | {folder / "README.md"}
    assert {path for path in folder.rglob("*") if path.is_file()} == named | spare


def test_parquet_of_each_split_is_the_table_with_its_columns(made):
    tables, _, folder = made
    for split, path in configs_of(folder)["default"].items():
        assert path.name == f"{split}-00000-of-00001.parquet"
        exported = pq.read_table(path)
        assert exported.schema.names == TRIPLETS.schema.names
        assert exported.equals(read_table(TRIPLETS, tables[split]))


def test_jsonl_and_csv_hold_two_triplets_of_each_example_in_its_order(made):
    tables, _, folder = made
    for split, path in configs_of(folder)["triplets"].items():
        expected = naive(read_table(TRIPLETS, tables[split]))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert all(list(line) == ["anchor", "positive", "negative"] for line in lines)
        assert [tuple(line.values()) for line in lines] == expected
        with path.with_suffix(".csv").open(newline="") as file:
            header, *cells = csv.reader(file, strict=True)
        assert header == ["anchor", "positive", "negative"]
        assert [tuple(row) for row in cells] == expected


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), max_size=4))
def test_any_text_comes_back_from_csv_and_jsonl(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("any")
    keys = ("query", "positive", "attribute_negative", "object_negative")
    generated = [
        {**row, **dict(zip(keys, four, strict=True))}
        for row, four in zip(rows("pair_swap", len(texts)), texts, strict=True)
    ]
    examples = examples_table(generated)
    write_csv(examples, folder / "x.csv")
    write_jsonl(examples, folder / "x.jsonl")
    with (folder / "x.csv").open(newline="", encoding="utf-8") as file:
        assert [tuple(row) for row in csv.reader(file, strict=True)][1:] == naive(examples)
    with (folder / "x.jsonl").open(newline="\n", encoding="utf-8") as file:
        assert [tuple(json.loads(line).values()) for line in file] == naive(examples)


def test_commas_quotes_and_newlines_are_quoted_for_every_reader(tmp_path):
    import pandas
    from pyarrow import csv as arrow_csv

    row = rows("pair_swap", 1)[0] | {"positive": 'A "red" mug,\nand a blue oar;\r\n', "query": ' red mug, "blue" oar '}
    examples = examples_table([row])
    write_csv(examples, tmp_path / "x.csv")
    frame = pandas.read_csv(tmp_path / "x.csv", keep_default_na=False, lineterminator="\n")
    assert frame["anchor"].tolist() == [row["query"]] * 2
    options = arrow_csv.ParseOptions(newlines_in_values=True)
    table = arrow_csv.read_csv(tmp_path / "x.csv", parse_options=options)
    assert table["positive"].to_pylist() == [row["positive"]] * 2
    assert table["negative"].to_pylist() == [row["attribute_negative"], row["object_negative"]]


def test_batches_do_not_lose_rows():
    examples = examples_table(rows("pair_swap", 4097))
    assert list(triplets_of(examples)) == naive(examples)


def test_a_step_of_triplet_loss_on_the_csv_pulls_the_positive_closer(made, tmp_path):
    """The collator and the loss of sentence-transformers take the file's columns as they stand."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
    from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss

    _, _, folder = made
    with (folder / "triplets" / "train.csv").open(newline="") as file:
        triplets = list(csv.DictReader(file))[:6]
    model = SentenceTransformer(str(qwen3_vl(tmp_path / "tiny")), device="cpu")
    batch = SentenceTransformerDataCollator(preprocess_fn=model.preprocess)(triplets)
    columns = list(triplets[0])
    features = [
        {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(f"{name}_")}
        for name in columns
    ]
    loss = TripletLoss(model, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=0.05)
    anchor, positive, negative = (
        model.encode([row[name] for row in triplets], convert_to_tensor=True) for name in columns
    )
    by_hand = torch.relu(0.05 - (anchor * positive).sum(1) + (anchor * negative).sum(1)).mean()
    before = loss(features, None)
    assert before.item() == pytest.approx(by_hand.item(), abs=1e-4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    before.backward()
    optimizer.step()
    assert loss(features, None).item() < before.item()


def test_a_table_that_is_not_the_summarys_is_refused(made, tmp_path):
    tables, summary, _ = made
    with pytest.raises(UserError, match="has 30 rows, the summary 29"):
        splits = {**summary["splits"], "deferred_bind_respective": 29}
        export_triplets(tables, {**summary, "splits": splits}, tmp_path / "one")
    with pytest.raises(UserError, match="the summary is of train"):
        export_triplets({"train": tables["train"]}, summary, tmp_path / "two")
    with pytest.raises(UserError, match="no such file"):
        export_triplets({**tables, "test": tmp_path / "no.parquet"}, summary, tmp_path / "three")
    assert not list(tmp_path.rglob("README.md"))


def test_a_write_that_fails_leaves_no_half_file_and_no_card(made, tmp_path, monkeypatch):
    tables, summary, _ = made
    folder = tmp_path / "export"
    export_triplets(tables, summary, folder)
    before = (folder / "triplets" / "validation.csv").read_bytes()
    real = triplets_of

    def failing(examples):
        for number, triplet in enumerate(real(examples)):
            if number == 5 and len(examples) == summary["splits"]["validation"]:
                raise OSError("disk full")
            yield triplet

    monkeypatch.setattr(export, "triplets_of", failing)
    with pytest.raises(OSError, match="disk full"):
        export_triplets(tables, summary, folder)
    assert not (folder / "README.md").exists()
    assert (folder / "triplets" / "validation.csv").read_bytes() == before
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


def test_the_same_tables_export_to_the_same_bytes(made, tmp_path):
    tables, summary, folder = made
    export_triplets(tables, summary, tmp_path)
    for path in folder.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / path.relative_to(folder)).read_bytes()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"splits": {}}', "\x00", "[" * 100])
def test_a_broken_summary_is_told_by_its_name(tmp_path, text):
    path = tmp_path / "summary.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"summary\.json: not a summary of triplets; delete it and run again"):
        read_summary(path)
    path.unlink()
    with pytest.raises(UserError, match=r"summary\.json: no such file"):
        read_summary(path)
