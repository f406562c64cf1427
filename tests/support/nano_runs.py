"""Pretraining of a small nano, in this process or in one that is killed. Not in a test's module: a started process finds
modules by name, and torch-fidelity brings a package `tests` of its own.
"""

import os

import torch
from bindbench.nano.making import make_nano


def run_in(folder, small, settings, parts):
    torch.set_num_threads(1)
    held = parts["held"]
    make_nano(small, settings, parts["pixels"], parts["tables"], *held, parts["triplets"][0], folder, threads=1)


def run_slowly(folder, small, settings, parts):
    """With a checkpoint at every step, and no C++ compiler."""
    os.environ["PATH"] = ""
    run_in(folder, small, settings.model_copy(update={"checkpoint_minutes": 1e-9}), parts)
