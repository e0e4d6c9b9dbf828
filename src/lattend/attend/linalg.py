"""What attention takes of torch.linalg, which has no types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_linalg: Any = torch.linalg
vecdot: Callable[[Tensor, Tensor], Tensor] = _linalg.vecdot
vector_norm: Callable[..., Tensor] = _linalg.vector_norm
