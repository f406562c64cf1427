"""LiNeS: layer-increasing scaling of what finetuning changed (Wang et al., ICLR 2025), after training (B.5, C.2).

Layer l of L keeps the share alpha + (1 - alpha) (l - 1) / (L - 1) of its update: early layers, which general features rest
on, go back towards the base, the last layer keeps all. A LoRA update is linear in `lora_B`, so scaling that matrix scales the
update exactly and leaves a plain PEFT adapter. alpha = 0 is the default of the authors' notebook.

`sweep` is the choice of alpha in the authors' code for a single finetuned model: 1.0, 0.9 ... 0.0, by the sum of target and
control accuracy, the target weighing twice as much. Here the target is triplet accuracy on validation examples, relative to
the unscaled adapter's, and the control how well similarities between neutral texts are kept (correlation with the base's).
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ..errors import UserError

SWEEP = tuple(tenths / 10 for tenths in range(10, -1, -1))
TARGET_WEIGHT = 2.0


def lines_factor(layer: int, layers: int, alpha: float) -> float:
    """The share that layer `layer` of `layers`, counted from 1, keeps. A single layer is the last one and keeps all."""
    if not 1 <= layer <= layers:
        raise ValueError(f"layer {layer} of {layers}")
    return alpha + (1 - alpha) * ((layer - 1) / (layers - 1) if layers > 1 else 1.0)


def scale_adapter(adapter: Path, output: Path, alpha: float) -> None:
    """Writes the adapter, scaled. alpha: share that the first layer keeps, 0 to 1; 1 leaves all as it is.

    Raises UserError for a folder that holds no adapter, and for one with weights outside of layers, without every layer, or
    of a kind whose update is not linear in `lora_B`: it could not be scaled as the paper says.
    """
    from .lora import layer_of, module_of, read_adapter, write_weights

    weights, config = read_adapter(adapter)
    if config.get("use_dora"):
        raise UserError(f"{adapter}: DoRA's update is not linear in its weights; LiNeS scales LoRA adapters")
    layers = {}
    for name in weights:
        place = module_of(name)
        layer = layer_of(place[0]) if place else None
        if layer is None:
            raise UserError(f"{adapter}: {name} lies in no layer of the text model, LiNeS cannot scale it")
        layers[name] = layer
    count = max(layers.values(), default=-1) + 1
    if missing := sorted(set(range(count)) - set(layers.values())) or (not count and [0]):
        raise UserError(f"{adapter}: has no weights for layer {missing[0] + 1}; LiNeS needs an update of every layer")
    scaled = {
        name: tensor * lines_factor(layers[name] + 1, count, alpha) if ".lora_B." in name else tensor
        for name, tensor in weights.items()
    }
    write_weights(scaled, config, output)


def scale_in_place(adapted, alpha: float) -> None:
    """As `scale_adapter`, for PEFT's model in memory; always from what was trained, so alpha = 1 takes it back."""
    from .lora import layer_of

    layers = {
        part: layer_of(name) for name, part in adapted.get_base_model().named_modules() if hasattr(part, "lora_B")
    }
    count = max(layers.values()) + 1
    config = adapted.peft_config["default"]
    for part, layer in layers.items():
        part.scaling["default"] = config.lora_alpha / config.r * lines_factor(layer + 1, count, alpha)


def sweep(
    adapted, accuracy: Callable[[], float], neutral: Callable[[], np.ndarray]
) -> tuple[float, list[dict[str, float]]]:
    """The alpha of the best trade-off, and what each one scored; among equals the larger. Leaves the adapter unscaled.

    accuracy: of the model as it is, on validation triplets. neutral: its embeddings (n, d) of texts that ask for no binding.
    """
    with adapted.disable_adapter():
        base = neutral()
    rows = []
    try:
        for alpha in SWEEP:
            scale_in_place(adapted, alpha)
            target, control = accuracy(), retention(base, neutral())
            score = TARGET_WEIGHT * target / (rows[0]["target"] if rows else target or 1) + control
            rows.append({"alpha": alpha, "target": target, "control": control, "score": score})
    finally:
        scale_in_place(adapted, 1.0)
    return max(rows, key=lambda row: row["score"])["alpha"], rows


def retention(base: np.ndarray, changed: np.ndarray) -> float:
    """Correlation of the pairwise similarities of texts before and after, 1 where nothing changed. Both (n, d), unit norm."""
    pairs = np.triu_indices(len(base), 1)
    before, after = ((vectors @ vectors.T)[pairs] for vectors in (base.astype(float), changed.astype(float)))
    if before.std() == 0 or after.std() == 0:
        return 0.0
    return float(np.corrcoef(before, after)[0, 1])


def neutral_texts(bindings: Sequence[Sequence[dict]], count: int) -> list[str]:
    """Phrases of one object with its attributes, each once: texts in which nothing can be confused."""
    phrases = (f"{' '.join(pair['attributes'])} {pair['object']}" for pairs in bindings for pair in pairs)
    return list(dict.fromkeys(phrases))[:count]
