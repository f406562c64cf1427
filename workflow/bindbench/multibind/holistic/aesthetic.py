"""LAION's aesthetic predictors: a head of linear layers on the normalised image features of a CLIP.

V2 (improved-aesthetic-predictor, `linearMSE`) is five layers in a row without activations, beside the dropouts of the training;
V1 is one. A file holds no activations, so that one with other layers cannot be told and is refused.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import UserError
from .weights import read_weights

KEY = "multibind.holistic.aesthetic.head"
ENDS = ("weight", "bias")
V1 = ("",)
V2 = tuple(f"layers.{number}." for number in (0, 2, 4, 6, 7))


@dataclass(frozen=True)
class Head:
    """weights: (n_out, n_in) float64 of each layer, biases: (n_out,); the last n_out is 1."""

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    @property
    def n_features(self) -> int:
        return self.weights[0].shape[1]

    def score(self, features: np.ndarray) -> float:
        """Of (n_features,) image features of unit norm."""
        values = np.asarray(features, np.float64)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            values = weight @ values + bias
        return float(values[0])


def read_head(path: Path) -> Head:
    """Raises UserError for a file that is missing, broken, or of another layout."""
    tensors = {name: tensor.double().numpy() for name, tensor in read_weights(path, KEY).items()}
    layers = next((names for names in (V1, V2) if set(tensors) == {n + end for n in names for end in ENDS}), None)
    if layers is None:
        raise UserError(
            f"{KEY}: {path}: has other layers than LAION's predictors V1 (weight) and V2 (layers 0, 2, 4, 6, 7 without "
            "activations); give one of these"
        )
    weights, biases = (tuple(tensors[name + end] for name in layers) for end in ENDS)
    fits = all(
        weight.ndim == 2 and bias.shape == weight.shape[:1] for weight, bias in zip(weights, biases, strict=True)
    )
    sizes = [*(weight.shape[-1] for weight in weights[1:]), 1]
    if not fits or [len(bias) for bias in biases] != sizes:
        raise UserError(f"{KEY}: {path}: its layers do not fit one another; get the whole file")
    return Head(weights, biases)
