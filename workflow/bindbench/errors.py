"""Errors that are the user's to mend: shown as one line without a traceback, exit code 2."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

# As torch (CUDA, cuBLAS, MPS) and onnxruntime say it; none of them is imported for it.
FULL = re.compile(r"out of memory|ALLOC_FAILED|Failed to allocate memory", re.IGNORECASE)


class UserError(Exception):
    """Something in the config, the inputs or the environment is wrong; the message says what, where and what to do."""


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error of a library says that the memory of the GPU is full."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return "OutOfMemoryError" in kinds or bool(FULL.search(str(error)))


@contextmanager
def room_on_gpu(what: str, remedy: str) -> Iterator[None]:
    """Turns a full memory of the GPU into a UserError: `what` needs more than there is; the remedy says what to lower."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        line = " ".join(str(error).split())[:200]
        raise UserError(
            f"{what}: the GPU has not enough free memory ({line}); {remedy}, or give it a GPU with more"
        ) from None
