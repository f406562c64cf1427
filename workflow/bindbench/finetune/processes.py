"""Training on several GPUs: every process takes its share of each batch, and the gradients of the adapter are summed.

Started by `torchrun --nproc-per-node N` or `accelerate launch`, which set WORLD_SIZE; otherwise there is one process. The
base is not split: each GPU holds it whole. Only the adapter's gradients travel, 15 MB a step at 8B.
"""

import os
from typing import NamedTuple

import torch


class Processes(NamedTuple):
    """Which process this is, of how many, and the device it should use (None: as for a single one)."""

    rank: int = 0
    count: int = 1
    device: str | None = None

    @property
    def writes(self) -> bool:
        return self.rank == 0


ONE = Processes()


def start(device: str | None) -> Processes:
    """Joins the other processes where there are any. device: asked for by the user."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Processes(device=device)
    from accelerate import PartialState

    state = PartialState(cpu=device == "cpu")
    return Processes(state.process_index, state.num_processes, str(state.device))


def sum_gradients(weights: list[torch.Tensor], loss: float, processes: Processes) -> float:
    """Sums the gradients over all processes, in place; returns the sum of their losses."""
    if processes.count == 1:
        return loss
    from torch import distributed

    device = weights[0].device
    missing = [weight for weight in weights if weight.grad is None]  # a process without a share of a small batch
    for weight in missing:
        weight.grad = torch.zeros_like(weight)
    flat = torch.cat([*(weight.grad.reshape(-1) for weight in weights), torch.tensor([loss], device=device)])
    distributed.all_reduce(flat)
    for weight, part in zip(weights, flat[:-1].split([weight.numel() for weight in weights]), strict=True):
        weight.grad.copy_(part.view_as(weight))
    return float(flat[-1])
