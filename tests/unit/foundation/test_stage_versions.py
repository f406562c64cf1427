"""A stage that writes something else on the same inputs must have another version, and only then."""

import json

import numpy as np
import pytest
from bindbench.config.versions import VERSIONS
from stage_outputs import RECORD, outputs

RECORDED = json.loads(RECORD.read_text())
UPDATE = "run `python tests/support/stage_outputs.py` and commit the record"


@pytest.fixture(scope="module")
def current(fetched_shapes, tmp_path_factory):
    return outputs(fetched_shapes, tmp_path_factory.mktemp("stages"))


def test_every_stage_is_recorded():
    assert set(RECORDED) == set(VERSIONS)


@pytest.mark.parametrize("stage", VERSIONS)
def test_another_output_needs_another_version(current, stage):
    recorded, now = RECORDED[stage], current[stage]
    assert recorded["version"] == VERSIONS[stage], f"version of {stage} moved: {UPDATE}"
    same = recorded.get("digest") == now.get("digest")
    if "numbers" in recorded:
        tolerance = {
            **{"scenes": 3, "embedding": 2e-3, "scoring": 2e-3, "finetuning": 2e-3, "attention": 1e-4},
            "nano": 0.15,  # trained in bfloat16
            **{"nano_scenes": 3, "segmentation": 0.02, "selection": 3, "references": 3},
            **{"generation": 3, "matching": 0.02, "specialists": 0.03, "holistic": 0.02},
            "backgrounds": 8,  # PatchMatch's nearest patches are near to one another
        }[stage]
        before, after = np.array(recorded["numbers"]), np.array(now["numbers"])
        same = before.shape == after.shape and bool(np.abs(before - after).max() <= tolerance)
    assert same, f"{stage} writes something else: bump its version in bindbench/config/versions.py, then {UPDATE}"
