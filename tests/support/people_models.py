"""The models of people for tests, built once and kept beside pytest's cache; photographs; and a tiny random YOLO."""

import fcntl
import importlib.util
from pathlib import Path

import numpy as np
from bindbench.files import sha256
from bindbench.people.building import FACE_MODEL, FACES, POSE_MODEL, POSES, build_people_models
from bindbench.people.photographs import read_photograph

REPOSITORY = Path(__file__).resolve().parents[2]


def people_models_folder() -> Path:
    """pose_landmarker.task and face_landmarker.task. The first call asks the package index, as the rule does (62 MB)."""
    folder = REPOSITORY / ".pytest_cache" / f"people-models-{sha256(FACES.sha256 + POSES.sha256)[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all((folder / name).exists() for name in (FACE_MODEL, POSE_MODEL, "README.md")):
            build_people_models(folder)
    return folder


def builtin_path(name: str) -> Path:
    """zidane.jpg (2 people) or bus.jpg (2 whole ones, 2 cut by its border) of the installed ultralytics package."""
    return Path(importlib.util.find_spec("ultralytics").submodule_search_locations[0]) / "assets" / name


def builtin(name: str) -> np.ndarray:
    return read_photograph(builtin_path(name), 10**8)


def save_tiny_yolo(path: Path, names=("bus", "person"), task: str = "segment") -> Path:
    """Weights of a real ultralytics model of a few thousand random parameters, which is sure of the last class everywhere."""
    import torch
    import yaml
    from bindbench.people.segmentation import import_yolo

    YOLO = import_yolo()

    head = [[2, 3], 1, "Segment", ["nc", 4, 8]] if task == "segment" else [[2, 3], 1, "Detect", ["nc"]]
    layers = [[-1, 1, "Conv", [channels, 3, 2]] for channels in (8, 16, 16)]
    drawing = {"nc": len(names), "scales": {"n": [1, 1, 1024]}, "backbone": layers}
    drawing["head"] = [[-1, 1, "Conv", [16, 3, 2]], head]
    path.parent.mkdir(parents=True, exist_ok=True)
    plan = path.with_suffix(".yaml")
    plan.write_text(yaml.safe_dump(drawing))
    torch.manual_seed(0)
    model = YOLO(str(plan), task=task)
    model.model.names = dict(enumerate(names))
    for branch in model.model.model[-1].cv3:
        branch[-1].bias.data[-1] = 3.0
    # At first a network draws nearly nothing; louder weights make boxes and masks that differ from place to place.
    for name, parameter in model.model.named_parameters():
        if name.endswith("conv.weight"):
            parameter.data *= 3
    for branch in getattr(model.model.model[-1], "cv4", ()):
        branch[-1].weight.data.normal_()
    model.save(str(path))
    return path
