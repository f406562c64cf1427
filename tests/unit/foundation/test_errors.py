"""A GPU that is full is one line with what to lower; every other error stays what it is."""

import pytest
from bindbench.errors import UserError, room_on_gpu


class OutOfMemoryError(RuntimeError):
    """As torch names its own."""


FULL = [
    OutOfMemoryError("CUDA. Tried to allocate 2.00 GiB.\nGPU 0 has 1.00 GiB"),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"),
    ValueError("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate memory for requested buffer of size 9"),
]


@pytest.mark.parametrize("error", FULL)
def test_a_full_gpu_is_one_line_with_what_to_lower(error):
    line = r"the\.key: the GPU has not enough free memory \(.*\); lower it, or"
    with pytest.raises(UserError, match=line) as told, room_on_gpu("the.key", "lower it"):
        raise error
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), UserError("out of memory"), KeyboardInterrupt()])
def test_other_errors_pass(error):
    with pytest.raises(type(error)) as passed, room_on_gpu("the.key", "lower it"):
        raise error
    assert passed.value is error
