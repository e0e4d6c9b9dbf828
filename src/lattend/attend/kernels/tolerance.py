"""How far a kernel may be from the reference: ‖found - exact‖ / ‖exact‖, for outputs and gradients alike."""

from __future__ import annotations

from collections.abc import Callable

import torch

try:  # what torch.backends.cuda.matmul.fp32_precision asks, without the way there
    from torch._C import _get_fp32_precision_getter as _fp32_precision  # pyright: ignore
except ImportError:  # an older torch
    _fp32_precision: Callable[[str, str], str] | None = None

TOLERANCE: dict[torch.dtype, float] = {
    torch.float64: 1e-12,
    torch.float32: 3e-6,  # IEEE products; with TF32 allowed 2e-3, gradients of long rows 4e-3
    torch.float16: 3e-3,
    torch.bfloat16: 2e-2,
    # Beside what q, k and v stand for when they are multiplied by their scales. Weights are rounded to e4m3,
    # 3 bits behind the point, by 1/16 at most: in the square mean by 3.6e-2 of one just above a power of two,
    # 2.6e-2 over all. Errors of many keys are as independent as their values are, and so stay what they are
    # relative to the output; measured on an H200, 1.2e-2 to 2.6e-2 where values have mean 0
    torch.float8_e4m3fn: 5e-2,
}


def uses_tf32() -> bool:
    """Whether float32 products on a GPU may round their factors to TF32, as torch is told for its own."""
    if _fp32_precision is not None:  # by the newer name: then the older may not be asked for
        return _fp32_precision("cuda", "matmul") == "tf32"
    return bool(torch.backends.cuda.matmul.allow_tf32)
