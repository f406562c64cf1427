"""The section of a run: the paper's values are the defaults, and nonsense is refused (B.5)."""

import json

import pytest
from bindbench.config import stage_from_json
from bindbench.config.finetuning import Finetuning, Run
from bindbench.errors import UserError


def test_the_defaults_are_the_papers():
    run = Run(base="nano")
    assert (run.rank, run.alpha, run.margin, run.learning_rate, run.weight_decay, run.epochs) == (
        4,
        4,
        0.05,
        5e-5,
        0.01,
        1,
    )
    assert run.data == "train" and run.examples is None and run.lines_alpha == 0 and run.attention_weight == 0


def test_a_run_survives_its_json():
    run = Run(base="nano", lines_alpha="sweep", attention_layers=(2, 3), attention_weight=0.1, data="mixed_lengths")
    assert stage_from_json(Run, run.model_dump_json()) == run


def test_every_key_is_described():
    assert all(field.description for model in (Run, Finetuning) for field in model.model_fields.values())


@pytest.mark.parametrize(
    "given, said",
    [
        ({"margin": -1}, r"margin: must be > 0 \(got -1\)"),
        ({"data": "all"}, "data: must be one of"),
        ({"lines_alpha": 1.5}, "lines_alpha"),
        ({"lines_alpha": "some"}, "lines_alpha"),
        ({"attention_layers": [3, 2]}, r"attention_layers: the first layer comes after the last \(got 3, 2\)"),
        ({"checkpoint_minutes": 0}, "checkpoint_minutes: must be > 0"),
        ({"learning_rat": 1}, "learning_rat: unknown key"),
        ({"base": "no such/name"}, "base: a name has at most 100 letters"),
    ],
)
def test_nonsense_is_refused_with_its_key(given, said):
    with pytest.raises(UserError, match=said):
        stage_from_json(Run, json.dumps({"base": "nano"} | given))
