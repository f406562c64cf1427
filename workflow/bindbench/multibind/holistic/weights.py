"""Files of weights, read so that nothing in them can run."""

from pathlib import Path

from ...errors import UserError


def read_weights(path: Path, key: str) -> dict:
    """Tensors by name, of a file of torch or safetensors. key: of the config, for the message.

    Raises UserError for a file that is missing, or that holds anything but tensors by name.
    """
    import torch
    from safetensors.torch import load_file

    if not path.is_file():
        raise UserError(f"{key}: {path}: no such file; put the weights there")
    try:
        found = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
    except Exception as error:  # torch, pickle, zipfile and safetensors raise their own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(f"{key}: {path}: not a file of weights ({reason})") from None
    if not isinstance(found, dict) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise UserError(f"{key}: {path}: holds other things than tensors by name; give the file of weights alone")
    return found
