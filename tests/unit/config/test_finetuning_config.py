"""Runs of finetuning as models: names, bases, and faults told by their key."""

import pytest
from bindbench.config import check
from bindbench.errors import UserError
from bindbench.snakemake_support import settings_behind_tables

RUNS = {"finetuning": {"runs": {"bound": {"base": "minilm"}, "tiny-bound": {"base": "nano"}}}}


def test_a_run_is_two_models_with_the_entry_of_its_base():
    settings = check(RUNS | {"models": ["minilm", "bound", "bound-nolines", "tiny-bound"]})
    assert [settings.run_of(model) for model in settings.models] == [None, "bound", "bound", "tiny-bound"]
    assert settings.entry_of("bound") == settings.entry_of("bound-nolines") == settings.embedders["minilm"]
    assert settings.entry_of("tiny-bound").modalities == ("text", "image")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"models": ["bound-lines"]}, "models: bound-lines is not among the embedders"),
        ({"finetuning": {"runs": {"bound": {}}}}, "finetuning.runs.bound.base: is missing"),
        ({"finetuning": {"runs": {"minilm": {"base": "nano"}}}}, "an embedder has this name already"),
        ({"finetuning": {"runs": {"x-nolines": {"base": "nano"}}}}, "must not end in -nolines"),
        ({"finetuning": {"runs": {"x": {"base": "gone"}}}}, "finetuning.runs.x.base: gone is not among the embedders"),
        ({"finetuning": {"runs": {"x": {"base": "nano", "attention_layers": [3, 2]}}}}, "the first layer comes after"),
        (
            {"finetuning": {"runs": {"x": {"base": "minilm", "data": "image_triplets"}}}},
            r"finetuning\.runs\.x\.base: minilm embeds no images, and image_triplets are images; choose another base",
        ),
        (
            {"finetuning": {"runs": {"x": {"base": "nano", "data": "image_triplets", "attention_weight": 1}}}},
            r"finetuning\.runs\.x: attention_weight: the attention loss reads words, and image_triplets have none",
        ),
        (
            {"finetuning": {"runs": {"x": {"base": "nano", "data": "image_triplets", "max_tokens": 64}}}},
            r"finetuning\.runs\.x: max_tokens: cuts texts, and image_triplets are images; leave it empty",
        ),
    ],
)
def test_a_wrong_run_or_model_is_told_by_its_key(values, message):
    with pytest.raises(UserError, match=message):
        check({**RUNS, **values})


def test_a_manifest_tells_of_image_triplets_where_a_measured_model_learned_them():
    settings = check({"finetuning": {"runs": {"seen": {"base": "nano", "data": "image_triplets"}}}, "models": ["nano"]})
    assert "image_triplets" not in settings_behind_tables(settings, screened=False)
    measured = settings.model_copy(update={"models": ("nano", "seen-nolines")})
    behind = settings_behind_tables(measured, screened=False)
    assert behind["image_triplets"]["examples"] == 4000 and behind["finetuning"]["runs"]["seen"]["base"] == "nano"


def test_the_defaults_of_a_run_are_the_paper_s():
    run = check(RUNS).finetuning.runs["bound"]
    assert (run.rank, run.alpha, run.margin, run.learning_rate) == (4, 4, 0.05, 5e-5)
    assert (run.weight_decay, run.epochs, run.data, run.lines_alpha) == (0.01, 1, "train", 0)


def test_table_8_s_total_and_the_held_out_fifth():
    """B.5: 80,000 examples for training, validation and test, and 40,000 held-out deferred triplets."""
    counts = check({}).triplets.counts
    deferred = sum(count for name, count in counts.items() if name.startswith("deferred"))
    assert sum(counts.values()) == 100_000 and 2 * deferred == 40_000
    assert check({"triplets": {"counts": {"pair_swap": 5}}}).triplets.counts == counts | {"pair_swap": 5}
