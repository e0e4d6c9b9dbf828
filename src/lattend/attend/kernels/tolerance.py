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
    torch.float32: 3e-6,  # IEEE products; with TF32 allowed, 2e-3
    torch.float16: 3e-3,
    torch.bfloat16: 2e-2,
    # e4m3 has 3 bits behind the point: a weight is rounded by at most 1/16, by 1/16/sqrt(3) = 3.6e-2 in the
    # square mean where it lies just above a power of two, by 2.6e-2 on average. The errors of many keys'
    # weights are independent, as their values are, so they stay what they are relative to the output. To
    # what q, k and v stand for when they are multiplied by their scales; how these were rounded is not in it
    torch.float8_e4m3fn: 5e-2,
}


def uses_tf32() -> bool:
    """Whether float32 products on a GPU may round their factors to TF32, as torch is told for its own."""
    if _fp32_precision is not None:  # by the newer name: then the older may not be asked for
        return _fp32_precision("cuda", "matmul") == "tf32"
    return bool(torch.backends.cuda.matmul.allow_tf32)
