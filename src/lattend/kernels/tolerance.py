"""How far a kernel may be from the reference: ‖found - exact‖ / ‖exact‖, for outputs and gradients alike."""

from __future__ import annotations

import torch

TOLERANCE: dict[torch.dtype, float] = {
    torch.float64: 1e-12,
    torch.float32: 3e-6,  # IEEE products, the default
    torch.float16: 3e-3,
    torch.bfloat16: 2e-2,
}
TF32 = 2e-3  # float32 where torch.backends.cuda.matmul.allow_tf32 is set
