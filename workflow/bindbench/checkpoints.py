"""Checkpoints of a training: kill -9 costs the minutes since the last one, and what follows is as if nothing had been.

    <folder>/<sha256 of what the training is>/step-<number of steps>-<sha256 of the file>.safetensors

One file holds everything: the adapter, the optimizer's state, the random generators, and as JSON the record so far and what
the training is (its settings, base and data). The name is the file's own checksum: one that was cut short or has a flipped
bit is noticed, removed, and the one before it is used; the last two are kept. A changed setting makes another training, and
leaves the checkpoints of the one before alone.
"""

import json
import re
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load, save

from .files import canonical_json, sha256, write_bytes

KEPT = 2
_NAME = re.compile(r"step-(\d+)-([0-9a-f]{64})\.safetensors")


def write_checkpoint(
    root: Path, step: int, identity: dict, record: dict, weights: dict[str, torch.Tensor], *optimizers
) -> None:
    """identity: what the training is. record: JSON that grows with it. weights: that the optimizers train, by name."""
    tensors = {f"weight/{name}": weight.detach().cpu().contiguous() for name, weight in weights.items()}
    for name, weight in weights.items():
        for optimizer in optimizers:
            for key, value in optimizer.state.get(weight, {}).items():
                tensors[f"optimizer/{key}/{name}"] = value.detach().cpu().contiguous()
    tensors["random/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random/cuda"] = torch.cuda.get_rng_state()
    data = save(tensors, metadata={"identity": canonical_json(identity), "record": canonical_json(record)})
    write_bytes(_folder(root, identity) / f"step-{step:08}-{sha256(data)}.safetensors", data)
    for path in _paths(root, identity)[:-KEPT]:
        path.unlink(missing_ok=True)


def restore(root: Path, identity: dict, weights: dict[str, torch.Tensor], *optimizers) -> tuple[int, dict] | None:
    """Puts the newest whole checkpoint of this training into the weights and the optimizers.

    Returns its step and record; None where there is none. Broken ones are reported on standard error and removed.
    """
    for path in reversed(_paths(root, identity)):
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # another process of this training found it broken first
            continue
        step, digest = _NAME.fullmatch(path.name).groups()
        if sha256(data) != digest:
            print(f"{path}: does not match its checksum; removed, the one before it is used", file=sys.stderr)
            path.unlink(missing_ok=True)
            continue
        _put(load(data), weights, optimizers)
        with safe_open(path, "pt") as file:
            return int(step), json.loads(file.metadata()["record"])
    return None


def _folder(root: Path, identity: dict) -> Path:
    return root / sha256(canonical_json(identity))


def _paths(root: Path, identity: dict) -> list[Path]:
    return sorted(path for path in _folder(root, identity).glob("step-*.safetensors") if _NAME.fullmatch(path.name))


def _put(tensors: dict[str, torch.Tensor], weights: dict[str, torch.Tensor], optimizers) -> None:
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(tensors[f"weight/{name}"])
    states: dict[str, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer/"):
            _, part, name = key.split("/", 2)
            states.setdefault(name, {})[part] = value
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            trained = {id(weight) for weight in group["params"]}
            for name, weight in weights.items():
                if id(weight) in trained and name in states:
                    # The number of steps stays on the CPU, the rest beside the weights.
                    optimizer.state[weight] = {
                        part: value if part == "step" else value.to(weight.device)
                        for part, value in states[name].items()
                    }
    torch.set_rng_state(tensors["random/cpu"])
    if torch.cuda.is_available() and "random/cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random/cuda"])
