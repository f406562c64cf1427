"""Tables of ablations: values as in the tables they repeat, paired differences, settings in words, the paper's rows."""

import csv
from pathlib import Path

import numpy as np
import pytest
from bindbench.config import check
from bindbench.config.ablations import AblationPlan
from bindbench.config.finetuning import Data, Run
from bindbench.config.scoring import Tables
from bindbench.errors import UserError
from bindbench.saber.ablations import (
    LATER,
    PAPER_DATA,
    SPLITS,
    paper_name,
    paper_values,
    settings_text,
    tabulate_ablations,
)
from bindbench.saber.scoring import score_saber
from bindbench.saber.table_page import read_reference
from bindbench.saber.tabulate import tabulate_saber
from bindbench.snakemake_support import ablation_models, ablation_plan, measured_bases, measured_seeds
from bindbench.tables import PAIRINGS, TRIPLET_SCORES, write_table
from bindbench.triplets.accuracy import tabulate_accuracy
from bindbench.vocabulary import Attribute, Vocabulary
from synthetic_saber import ATTRIBUTES, binding_embeddings, tiny_saber, word_embeddings, write_embeddings, write_rows

REFERENCE = Path(__file__).parents[3] / "resources/reference/saber_paper.csv"
SETTINGS = Tables(bootstrap_samples=200)
VOCABULARY = Vocabulary({}, {a: Attribute(a, "standalone", "warm", a, (), a) for a in ATTRIBUTES}, ())
RUNS = {
    "bound": {"base": "nano", "examples": 300},
    "bound-random": {"base": "nano", "examples": 300, "data": "random"},
    "bound-attention": {"base": "nano", "examples": 300, "attention_weight": 0.5},
    "bound-images": {"base": "nano", "examples": 300, "data": "image_triplets"},
}
MODELS = ["nano", "minilm", "bound", "bound-nolines", "bound-random", "bound-attention", "bound-images"]
TABLES = {
    "data": {"title": "Data <ablation>", "baseline": "bound", "models": ["nano", "bound-random"]},
    "lines": {"title": "LiNeS", "baseline": "bound", "models": ["bound-nolines", "minilm"]},
}
SETTINGS_OF_ALL = {"models": MODELS, "finetuning": {"runs": RUNS}, "ablations": TABLES}


def plan_of(**changes) -> AblationPlan:
    return AblationPlan.model_validate(ablation_plan(check({**SETTINGS_OF_ALL, **changes})))


def noisy(embed, amount, seed):
    def embedder(scenes):
        exact = embed(scenes)
        return exact + amount * np.random.default_rng(seed).normal(size=exact.shape)

    return embedder


def triplet_rows(seed, lead):
    generator = np.random.default_rng(seed)
    rows = []
    for split in SPLITS:
        for number in range(40):
            positive, *negatives = generator.normal(size=3)
            cells = {"positive": positive + lead, "attribute_negative": negatives[0], "object_negative": negatives[1]}
            rows.append({"example": f"{split}/{number}", "split": split, "construction": f"pair{number % 2}", **cells})
    return rows


class Measured:
    def __init__(self, folder: Path):
        questions, scenes = tiny_saber(independent=8, nested=6)
        self.folder, self.results = folder, folder / "results"
        self.questions, self.scenes = write_rows(folder, questions, scenes)
        items = [scene["scene"] for scene in scenes]
        self.scores, self.triplets = {}, {}
        for seed, name in enumerate(["nano", "minilm", "bound", "bound-nolines", "bound-random"]):
            embed = noisy(
                word_embeddings if name in ("nano", "minilm") else binding_embeddings, 0.3 + 0.05 * seed, seed
            )
            text = write_embeddings(folder / f"{name}.text.parquet", items, embed(scenes))
            image = None if name == "minilm" else write_embeddings(folder / f"{name}.i.parquet", items, embed(scenes))
            self.scores[name] = folder / f"{name}.parquet"
            score_saber(self.questions, self.scenes, text, image, self.scores[name])
            self.triplets[name] = folder / f"{name}.triplets.parquet"
            write_table(TRIPLET_SCORES, triplet_rows(seed, 0.4 * seed), self.triplets[name])

    def tabulate(self, plan=None, folder=None, scores=None, triplets=None, settings=SETTINGS):
        folder = folder or self.results
        tabulate_ablations(
            *(plan or plan_of(), scores or self.scores, self.questions, triplets or self.triplets, settings, REFERENCE),
            *(folder / "ablations.csv", folder / "ablations.html"),
        )
        return read(folder / "ablations.csv")

    def tabulate_saber(self, folder, bases=None, seeds=None):
        paths = self.questions, self.scenes
        tabulate_saber(self.scores, *paths, VOCABULARY, SETTINGS, REFERENCE, folder, bases, seeds)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def row(rows, **cells):
    (found,) = [r for r in rows if all(r[name] == value for name, value in cells.items())]
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    made = Measured(tmp_path_factory.mktemp("ablations"))
    made.rows = made.tabulate()
    return made


def test_every_table_has_its_baseline_first_and_its_models_in_their_order(measured):
    assert [(r["table"], r["model"], r["role"]) for r in measured.rows] == [
        ("data", "bound", "baseline"),
        ("data", "nano", "ablation"),
        ("data", "bound-random", "ablation"),
        ("lines", "bound", "baseline"),
        ("lines", "bound-nolines", "ablation"),
        ("lines", "minilm", "ablation"),
    ]


def test_accuracies_and_intervals_are_those_of_table_2(measured, tmp_path):
    measured.tabulate_saber(tmp_path)
    table2 = read(tmp_path / "saber_table2.csv")
    for cells in measured.rows:
        same = row(table2, model=cells["model"], protocol="mcq")
        columns = PAIRINGS if cells["model"] == "minilm" else (*PAIRINGS, "mean")
        for name in (column + end for column in columns for end in ("", "_low", "_high")):
            assert cells[name] == same[name], name


def test_triplet_accuracies_and_intervals_are_those_of_table_10(measured, tmp_path):
    tabulate_accuracy(measured.triplets, SETTINGS, tmp_path / "table10.csv")
    table10 = read(tmp_path / "table10.csv")
    for cells in measured.rows:
        for split in SPLITS:
            same = row(table10, model=cells["model"], split=split, construction="all", negative="both")
            values = [cells[f"triplets_{split}{end}"] for end in ("", "_low", "_high")]
            assert values == [same["accuracy"], same["low"], same["high"]]


def test_a_difference_is_the_model_minus_the_baseline_and_paired(measured, tmp_path):
    measured.tabulate_saber(tmp_path)
    differences = read(tmp_path / "saber_differences.csv")
    cells = row(measured.rows, table="data", model="bound-random")
    for pairing in (*PAIRINGS, "mean"):
        same = row(differences, model="bound", other_model="bound-random", protocol="mcq", pairing=pairing)
        assert float(cells[f"{pairing}_difference"]) == -float(same["difference"])
        bounds = [float(cells[f"{pairing}_difference{end}"]) for end in ("_low", "_high")]
        assert bounds == [-float(same["high"]), -float(same["low"])]
    baseline = row(measured.rows, table="data", model="bound")
    for split in SPLITS:
        difference = float(cells[f"triplets_{split}"]) - float(baseline[f"triplets_{split}"])
        assert float(cells[f"triplets_{split}_difference"]) == pytest.approx(difference, abs=0.0101)
        assert {baseline[f"triplets_{split}_difference{end}"] for end in ("", "_low", "_high")} == {""}


def test_the_interval_of_a_triplet_difference_is_that_of_the_paired_examples(tmp_path):
    """A model that is right wherever the baseline is and often elsewhere is ahead in every resample."""
    measured = Measured(tmp_path)
    base, better = triplet_rows(0, 0.0), triplet_rows(0, 0.0)
    for cells in better:
        cells["attribute_negative"] -= 9
    for name, rows in (("bound", base), ("bound-random", better)):
        write_table(TRIPLET_SCORES, rows, measured.triplets[name])
    cells = row(measured.tabulate(), table="data", model="bound-random")
    assert 0 < float(cells["triplets_test_difference_low"]) < float(cells["triplets_test_difference_high"]) < 50


def test_a_model_against_its_own_scores_differs_by_nothing(measured, tmp_path):
    scores = measured.scores | {"bound-random": measured.scores["bound"]}
    triplets = measured.triplets | {"bound-random": measured.triplets["bound"]}
    cells = row(measured.tabulate(folder=tmp_path, scores=scores, triplets=triplets), model="bound-random")
    names = [name for name in cells if "_difference" in name]
    assert len(names) == 3 * (5 + len(SPLITS)) and {cells[name] for name in names} == {"0.00"}


def test_the_mean_is_over_the_pairings_that_a_model_has_and_of_a_difference_that_both_have(measured):
    cells, baseline = row(measured.rows, model="minilm"), row(measured.rows, table="lines", model="bound")
    assert cells["n_pairings"] == "1" and baseline["n_pairings"] == "4"
    assert cells["mean"] == cells["text_text"] != "" and cells["image_text"] == cells["image_text_difference"] == ""
    assert cells["mean_difference"] == cells["text_text_difference"]
    assert float(cells["mean_difference"]) == pytest.approx(
        float(cells["text_text"]) - float(baseline["text_text"]), abs=0.0101
    )


def test_columns_of_later_benchmarks_are_there_and_empty(measured):
    assert {"mmeb_v3", "negbench_coco"} <= set(LATER)
    assert {cells[name] for cells in measured.rows for name in LATER} == {""}


def test_a_model_without_triplets_or_a_split_that_is_empty_has_empty_cells(measured, tmp_path):
    triplets = {name: path for name, path in measured.triplets.items() if name != "nano"}
    write_table(TRIPLET_SCORES, [r for r in triplet_rows(2, 0.8) if r["split"] == "test"], tmp_path / "bound.parquet")
    rows = measured.tabulate(folder=tmp_path, triplets=triplets | {"bound": tmp_path / "bound.parquet"})
    assert row(rows, model="nano")["triplets_test"] == "" != row(rows, model="nano")["text_text"]
    cells = row(rows, table="data", model="bound-random")
    assert cells["triplets_test_difference"] != "" == cells["triplets_deferred_bind_anaphoric_difference"]


def test_scores_of_other_triplets_are_refused(measured, tmp_path):
    rows = triplet_rows(2, 0.8)
    rows[0]["example"] = "another"
    write_table(TRIPLET_SCORES, rows, tmp_path / "bound.parquet")
    with pytest.raises(UserError, match="nano and bound: scores of other triplets"):
        measured.tabulate(folder=tmp_path, triplets=measured.triplets | {"bound": tmp_path / "bound.parquet"})


def test_no_table_is_one_line_that_says_what_to_do(measured, tmp_path):
    with pytest.raises(UserError, match=r"no table is configured; add --configfile config/ablations\.yaml"):
        measured.tabulate(plan=AblationPlan(tables=(), runs={}), folder=tmp_path)


def test_settings_in_words_are_those_that_differ_from_the_baseline():
    runs = plan_of(
        ablations={"all": {"title": "x", "baseline": "bound", "models": [m for m in MODELS if m != "bound"]}}
    ).runs
    said = {model: settings_text(model, "bound", runs) for model in MODELS}
    assert said == {
        "nano": "not finetuned",
        "minilm": "not finetuned",
        "bound": "finetuned from nano, data train, examples 300, with LiNeS",
        "bound-nolines": "without LiNeS",
        "bound-random": "data random",
        "bound-attention": "attention weight 0.5",
        "bound-images": "data image triplets",
    }
    assert settings_text("bound-nolines", "nano", runs).endswith("examples 300, without LiNeS")
    assert settings_text("bound", "bound-nolines", runs) == "with LiNeS"


@pytest.mark.parametrize("key", [key for key in Run.model_fields if key != "base"])
def test_any_setting_that_differs_is_named(key):
    values = {
        "data": "random", "dtype": "bfloat16", "gradient_checkpointing": True, "lines_alpha": "sweep",
        "attention_layers": [2, 3], "attention_margin": 0.5, "max_tokens": 64,
    }  # fmt: skip
    runs = {"a": Run(base="nano"), "b": Run(base="nano", **{key: values.get(key, 1 if key != "epochs" else 2)})}
    if runs["a"] != runs["b"]:
        assert settings_text("b", "a", runs).startswith(key.replace("_", " "))
    assert settings_text("a", "c", runs | {"c": runs["a"]}) == "no difference in settings"


def test_rows_of_the_paper_are_found_by_what_was_done():
    """Tables 11 to 13: NoOverlap, Random, OverlapOnly, MixedLengths, without LiNeS, with the attention loss."""
    runs = {f"m-{data}": Run(base="nano", data=data) for data in PAPER_DATA}
    runs |= {f"{name}-nolines": run for name, run in runs.items()}
    runs |= {end: Run(base="nano", attention_weight=1) for end in ("attention", "attention-nolines")}
    names = {model: paper_name(model, runs) for model in [*runs, "nano"]}
    known = paper_values(read_reference(REFERENCE))
    assert known[names["m-no_overlap"]]["text → image"] == "65.7"
    assert known[names["nano"]]["MMEB-v3"] == "54.7" and known[names["nano"]]["triplets: test"] == "60.4"
    assert known[names["m-train"]]["triplets: anaphoric"] == "72.9"
    assert known[names["m-train-nolines"]] == {"mean": "93.5", "MMEB-v3": "47.8"}
    assert known[names["attention"]]["MMEB-v3"] == "55.0" and known[names["attention-nolines"]]["mean"] == "93.2"
    assert known[names["m-random"]] == {"mean": "84.1", "MMEB-v3": "55.2 to 55.3"}
    assert names["m-random-nolines"] not in known, "the paper has no such row"
    assert paper_name("x", {"x": Run(base="nano", data="image_triplets")}) is None


def test_the_paper_s_data_sets_are_runs_of_ours():
    assert set(PAPER_DATA) < set(Data.__args__)


def test_the_page_has_a_table_for_each_ablation_with_the_best_in_bold_and_the_paper_s_rows_apart(measured):
    text = (measured.results / "ablations.html").read_text()
    assert text.count("<table>") == 2 and "Data &lt;ablation&gt;" in text and "<ablation>" not in text
    assert "paper: Ours-8B Random" in text and "paper: Ours-8B without LiNeS" in text
    assert text.count("paper: Ours-8B</span>") == 2, "once a table"
    best = max(float(r["text_text"]) for r in measured.rows if r["table"] == "data")
    assert f"<strong>{best:.2f}</strong>" in text
    assert "href" not in text and "src=" not in text


def test_gains_are_those_of_every_finetuned_model_over_its_base_by_n(measured, tmp_path):
    bases = measured_bases(check(SETTINGS_OF_ALL))
    assert bases == dict.fromkeys(MODELS[2:], "nano")
    bases = {model: base for model, base in bases.items() if model in measured.scores}
    measured.tabulate_saber(tmp_path, bases)
    rows, differences = read(tmp_path / "saber_gains.csv"), read(tmp_path / "saber_differences.csv")
    assert len(rows) == 3 * 3 * 5 * 4, "models, protocols, pairings and their mean, three N and their mean"
    by_n = {"mcq": "17", "retrieval_independent": "18", "retrieval_nested": "19"}
    for cells in rows:
        key = {name: cells[name] for name in ("protocol", "pairing")}
        if cells["n_objects"] == "mean":
            same = row(differences, model="nano", other_model=cells["model"], **key)
            assert [float(cells[name]) for name in ("difference", "low", "high")] == pytest.approx(
                [-float(same[name]) for name in ("difference", "high", "low")]
            )
        else:
            table = read(tmp_path / f"saber_table{by_n[cells['protocol']]}.csv")
            pair = (row(table, model=m, pairing=cells["pairing"], statistic="value") for m in (cells["model"], "nano"))
            first, second = (float(values[cells["n_objects"]]) for values in pair)
            assert float(cells["difference"]) == pytest.approx(first - second, abs=0.0101)
            assert float(cells["low"]) <= float(cells["difference"]) <= float(cells["high"])
    page = (tmp_path / "saber_table2.html").read_text()
    shown = row(rows, model="bound", protocol="mcq", pairing="text_text", n_objects="mean")
    assert f"+{float(shown['difference']):.2f} (+{float(shown['low']):.2f}&nbsp;to" in page
    assert "bound<br><small>compared with nano</small>" in page and "nano<br>" not in page


def test_runs_that_differ_in_their_seed_alone_have_a_mean_among_the_gains(measured, tmp_path):
    again = {"bound-images": RUNS["bound"] | {"seed": 1}, "bound-attention": RUNS["bound"] | {"seed": 1, "margin": 0.1}}
    models = [*MODELS, "bound-images-nolines"]
    settings = check({**SETTINGS_OF_ALL, "finetuning": {"runs": RUNS | again}, "models": models})
    assert measured_seeds(settings) == {
        "bound (mean of 2 seeds)": ["bound", "bound-images"],
        "bound-nolines (mean of 2 seeds)": ["bound-nolines", "bound-images-nolines"],
    }
    # The same run again, with another plan of checkpoints: its seed counts once.
    twice = RUNS | again | {"bound-attention": RUNS["bound"] | {"checkpoint_minutes": 9, "validate_every": 1}}
    assert measured_seeds(
        check({**SETTINGS_OF_ALL, "finetuning": {"runs": twice}, "models": models})
    ) == measured_seeds(settings)
    alone = RUNS | {"bound-images": RUNS["bound"]}
    assert measured_seeds(check({**SETTINGS_OF_ALL, "finetuning": {"runs": alone}, "models": models})) == {}
    assert measured_seeds(check(SETTINGS_OF_ALL)) == {}
    assert measured_seeds(check({**SETTINGS_OF_ALL, "models": MODELS[1:], "ablations": {}})) == {}
    pair = ["bound", "bound-nolines"]
    measured.tabulate_saber(tmp_path, dict.fromkeys(pair, "nano"), {"both": pair})
    rows = read(tmp_path / "saber_gains.csv")
    for cells in (cells for cells in rows if cells["model"] == "both"):
        key = {name: cells[name] for name in ("protocol", "pairing", "n_objects")}
        two = [float(row(rows, model=model, **key)["difference"]) for model in pair]
        assert float(cells["difference"]) == pytest.approx(sum(two) / 2, abs=0.0101)
        assert float(cells["low"]) <= float(cells["difference"]) <= float(cells["high"])
    shown = row(rows, model="both", protocol="mcq", pairing="text_text", n_objects="mean")
    narrower = [row(rows, model=model, protocol="mcq", pairing="text_text", n_objects="mean") for model in pair]
    widths = [float(cells["high"]) - float(cells["low"]) for cells in (shown, *narrower)]
    assert widths[0] <= max(widths[1:])
    page = (tmp_path / "saber_table2.html").read_text()
    assert page.count("both<br><small>minus nano</small>") == 3
    assert f"+{float(shown['difference']):.2f} (+{float(shown['low']):.2f}&nbsp;to" in page


def test_without_finetuned_models_the_gains_are_empty_and_the_page_says_nothing_of_them(measured, tmp_path):
    measured.tabulate_saber(tmp_path)
    assert read(tmp_path / "saber_gains.csv") == []
    assert "compared with" not in (tmp_path / "saber_table2.html").read_text()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"baseline": "gone"},
            "ablations.data.baseline: gone is not among the models that are measured; add it to models",
        ),
        ({"models": ["nano", "gone"]}, "ablations.data.models: gone is not among the models that are measured"),
        ({"models": []}, "ablations.data.models: "),
        ({"models": ["nano", "nano"]}, "ablations.data: models: nano is named twice"),
        ({"models": ["bound"]}, "ablations.data: models: bound is the baseline already"),
        ({"title": ""}, "ablations.data.title: "),
        ({"rows": []}, "ablations.data.rows: unknown key"),
    ],
)
def test_a_wrong_table_is_told_in_one_line(table, message):
    with pytest.raises(UserError) as raised:
        check({**SETTINGS_OF_ALL, "ablations": {"data": TABLES["data"] | table}})
    assert message in str(raised.value) and len(str(raised.value).splitlines()) == 1


def test_a_table_needs_a_usable_name():
    with pytest.raises(UserError, match="a name has at most 100 letters"):
        check({**SETTINGS_OF_ALL, "ablations": {"a/b": TABLES["data"]}})


def test_the_plan_keeps_the_order_of_the_config_and_names_only_what_stands_in_a_table():
    settings = check({**SETTINGS_OF_ALL, "ablations": dict(reversed(TABLES.items()))})
    assert [table.name for table in AblationPlan.model_validate(ablation_plan(settings)).tables] == ["lines", "data"]
    assert set(ablation_plan(settings)["runs"]) == {"bound", "bound-nolines", "bound-random"}
    assert ablation_models(settings) == ["nano", "minilm", "bound", "bound-nolines", "bound-random"]
