"""LoRA on the query, key, value and output projections of every layer of the text model (Hu et al., 2022; B.5).

Decoders of the Qwen kind: `q_proj`, `k_proj`, `v_proj`, `o_proj`. Encoders of the BERT kind such as MiniLM: `query`, `key`,
`value` and the dense layer of the attention's output. Nothing else is trained: a vision tower, word embeddings and norms
stay as they are, to the bit. At r = 4 these are 3,833,856 parameters of Qwen3-VL-Embedding-8B and 1,605,632 of the 2B.

An adapter is a folder as PEFT writes it: adapter_model.safetensors and adapter_config.json.
"""

import json
import re
import warnings
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from ..errors import UserError
from ..files import write_bytes, write_json

# Names of the projections inside a transformers model; the group is the layer's number, from 0.
PROJECTIONS = (
    re.compile(r"(?:.*\.)?language_model\.layers\.(\d+)\.self_attn\.[qkvo]_proj"),  # decoder beside a vision tower
    re.compile(r"(?:model\.)?layers\.(\d+)\.self_attn\.[qkvo]_proj"),  # decoder of texts alone
    re.compile(r"(?:bert\.)?encoder\.layer\.(\d+)\.attention\.(?:self\.(?:query|key|value)|output\.dense)"),
)
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
_PREFIX = "base_model.model."


def layer_of(name: str) -> int | None:
    """Number, from 0, of the layer that a projection belongs to; None for any other module."""
    found = next((match for kind in PROJECTIONS if (match := kind.fullmatch(name))), None)
    return int(found.group(1)) if found else None


def target_modules(network: nn.Module, name: str) -> str:
    """The expression that names a model's projections. Raises UserError for a model without any that we know."""
    linear = [module for module, part in network.named_modules() if isinstance(part, nn.Linear)]
    for kind in PROJECTIONS:
        if any(map(kind.fullmatch, linear)):
            return kind.pattern
    raise UserError(
        f"embedders.{name}: a {type(network).__name__} has no attention projections that are known here "
        "(q_proj, k_proj, v_proj, o_proj of a decoder's layers; query, key, value of a BERT's); choose another base"
    )


def check_rank(network: nn.Module, name: str, rank: int, key: str) -> None:
    """Refuses a rank beyond the smallest dimension of the projections: more would train nothing further.

    name: of the embedder, key: of the rank in the config, both for messages. Raises UserError, also as `target_modules`.
    """
    targets = re.compile(target_modules(network, name))
    sizes = {module: min(part.weight.shape) for module, part in network.named_modules() if targets.fullmatch(module)}
    smallest = min(sizes, key=sizes.get)
    if rank > sizes[smallest]:
        raise UserError(
            f"{key}: must be <= {sizes[smallest]}, the smallest dimension of {name}'s projections ({smallest}) (got {rank})"
        )


def add_adapter(network: nn.Module, name: str, rank: int, alpha: float, seed: int):
    """Adds an adapter to the transformers model in place; at first it changes nothing (its B is zero).

    name: of the embedder, for messages. Returns PEFT's model around it; all but the adapter is frozen.
    Raises UserError as `target_modules` does.
    """
    from peft import LoraConfig, get_peft_model

    targets = target_modules(network, name)
    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=0.0, bias="none", target_modules=targets)
    network.requires_grad_(False)
    with torch.random.fork_rng(), without_future_warnings():
        torch.manual_seed(seed)
        return get_peft_model(network, config)


@contextmanager
def without_future_warnings():
    """PEFT asks transformers for its checkpointing in a way that ends with version 6: nothing a user could mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def trainable(network: nn.Module) -> dict[str, nn.Parameter]:
    """The weights that are trained, by name, in the order of the model."""
    return {name: weight for name, weight in network.named_parameters() if weight.requires_grad}


def write_adapter(adapted, base: str, folder: Path) -> None:
    """Writes the adapter of PEFT's model. base: what the config calls the embedder, for the reader of the file."""
    from peft import get_peft_model_state_dict

    # PEFT would write this machine's path of the base.
    config = {**adapted.peft_config["default"].to_dict(), "base_model_name_or_path": base, "inference_mode": True}
    weights = {name: tensor.contiguous().cpu() for name, tensor in get_peft_model_state_dict(adapted).items()}
    write_weights(weights, config, folder)


def write_weights(weights: dict[str, torch.Tensor], config: dict, folder: Path) -> None:
    """The two files of an adapter, each whole, the config last: without it a folder is no adapter."""
    (folder / CONFIG).unlink(missing_ok=True)
    write_bytes(folder / WEIGHTS, save(weights, metadata={"format": "pt"}))
    write_json(folder / CONFIG, config)


def read_adapter(folder: Path) -> tuple[dict[str, torch.Tensor], dict]:
    """Weights, by name, and config of an adapter. Raises UserError for a folder that holds none."""
    try:
        weights = load((folder / WEIGHTS).read_bytes())
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(
            f"{error.filename}: no such file; finetune first, or give the folder of a PEFT adapter"
        ) from None
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(
            f"{folder}: not a readable adapter ({str(error)[:200]}); delete it and finetune again"
        ) from None
    return weights, config


def module_of(weight: str) -> tuple[str, str] | None:
    """The module that a weight of an adapter belongs to, and lora_A or lora_B; None for any other weight."""
    found = re.fullmatch(re.escape(_PREFIX) + r"(.+)\.(lora_[AB])\.weight", weight)
    return (found.group(1), found.group(2)) if found else None
