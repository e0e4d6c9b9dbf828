"""Where a result lies in memory: as the tensor it belongs to, so that no copy is made around attention."""

from __future__ import annotations

from torch import Tensor


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
