"""Small functions of tensors: layouts in memory, shared heads, and products that keep a NaN in its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan, prod
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


# Results lie in memory as the tensor they belong to, so that no copy is made around attention


def empty_like(x: Tensor, width: int) -> Tensor:
    """An empty [batch, heads, n, width] in the order of x: heads outside positions, or inside them.

    q.view(batch, n, heads, D).transpose(1, 2) has its heads inside, and so has its output.
    """
    return x.new_empty_strided((*x.shape[:-1], width), strides(x, width))


def strides(x: Tensor, width: int) -> tuple[int, int, int, int]:
    """The strides of [batch, heads, n, width] in the order of x."""
    _, heads, n, _ = x.shape
    inside = x.stride(1) < x.stride(2)
    return (heads * n * width, *((width, heads * width) if inside else (n * width, width)), 1)


def in_layout_of(result: Tensor, like: Tensor) -> Tensor:
    """The result [batch, heads, n, width] in the order of `like`, copied if it is in another."""
    order = strides(like, result.shape[-1])
    return result if result.stride() == order else empty_like(like, result.shape[-1]).copy_(result)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor of this shape.

    >>> contiguous_strides((4, 2, 3))
    (6, 3, 1)
    """
    return tuple(prod(max(1, size) for size in shape[axis + 1 :]) for axis in range(len(shape)))


def row_strides(x: Tensor) -> tuple[int, int, int]:
    """The strides of [batch, heads, n, …] as kernels take them, whose rows are whole."""
    return x.stride(0), x.stride(1), x.stride(2)


def per_query_head(x: Tensor, heads: int) -> Tensor:
    """The kv heads of x [batch, kv_heads, …] repeated, one for each of so many query heads."""
    return x.repeat_interleave(heads // x.shape[1], dim=1)


def per_kv_head(grad: Tensor, x: Tensor) -> Tensor:
    """The gradients [batch, heads, …] of the query heads that share a kv head of x, added up."""
    kv_heads = x.shape[1]
    return grad.reshape(grad.shape[0], kv_heads, grad.shape[1] // kv_heads, *grad.shape[2:]).sum(2)
