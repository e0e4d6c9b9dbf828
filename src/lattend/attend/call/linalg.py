"""What attention takes of torch.linalg, which has no types, and a product that keeps a NaN in its rows."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import torch
from torch import Tensor

_linalg: Any = torch.linalg
vecdot: Callable[[Tensor, Tensor], Tensor] = _linalg.vecdot
vector_norm: Callable[..., Tensor] = _linalg.vector_norm


def is_finite(*tensors: Tensor) -> bool:
    """Whether there is no NaN and no infinity in them, nor numbers whose sum overflows."""
    return all(bool(x.sum(dtype=torch.promote_types(x.dtype, torch.float32)).isfinite()) for x in tensors)


def masked_product(weights: Tensor, attended: Tensor, x: Tensor) -> Tensor:
    """The product weights @ x, to which a pair that is not attended adds nothing, whatever x holds.

    The weights of such pairs are 0, but 0 times a NaN or an infinity is NaN. Attended ones give NaN.

    >>> masked_product(torch.eye(2), torch.eye(2) > 0, torch.tensor([[1.0], [nan]])).tolist()
    [[1.0], [nan]]
    """
    strange = ~x.isfinite()
    reached = attended.to(weights.dtype) @ strange.to(weights.dtype) > 0
    return (weights @ x.masked_fill(strange, 0)).masked_fill(reached, nan)
