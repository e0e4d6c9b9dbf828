"""How far a kernel may be from the reference: ‖found - exact‖ / ‖exact‖, for outputs and gradients alike."""

from __future__ import annotations

import torch

TOLERANCE: dict[torch.dtype, float] = {
    torch.float64: 1e-12,
    torch.float32: 3e-6,  # IEEE products; with TF32 allowed, 2e-3
    torch.float16: 3e-3,
    torch.bfloat16: 2e-2,
}
