"""How far a kernel may be from the reference: ‖found - exact‖ / ‖exact‖, for outputs and gradients alike."""

from __future__ import annotations

from typing import Any

import torch

TOLERANCE: dict[torch.dtype, float] = {
    torch.float64: 1e-12,
    torch.float32: 3e-6,  # IEEE products; with TF32 allowed, 2e-3
    torch.float16: 3e-3,
    torch.bfloat16: 2e-2,
}


def uses_tf32() -> bool:
    """Whether float32 products on a GPU may round their factors to TF32, as torch is told for its own."""
    matmul: Any = torch.backends.cuda.matmul
    said = getattr(matmul, "fp32_precision", None)  # the newer name, by which the older may not be asked for
    return matmul.allow_tf32 if said is None else said == "tf32"
