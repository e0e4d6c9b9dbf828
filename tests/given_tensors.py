"""Random tensors for attention, and what it should give: torch's own, with the rule's mask."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def qkv(
    n: int = 7,
    m: int | None = None,
    batch: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    width: int = 8,
    value_width: int = 5,
    dtype: torch.dtype = torch.float32,
    grad: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v with sizes that all differ, so that dynamic shapes are not taken for one another."""
    source = torch.Generator().manual_seed(0)
    shapes = (heads, n, width), (kv_heads, m or n, width), (kv_heads, m or n, value_width)
    q, k, v = (torch.randn(batch, *shape, generator=source, dtype=torch.float64) for shape in shapes)
    return (
        q.to(dtype).requires_grad_(grad),
        k.to(dtype).requires_grad_(grad),
        v.to(dtype).requires_grad_(grad),
    )


def each(
    change: Callable[[Tensor], Tensor], given: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v, each changed; leaves of their own where the given ones are."""
    q, k, v = (change(x.detach()).detach().requires_grad_(x.requires_grad) for x in given)
    return q, k, v


def heads_inside(x: Tensor) -> Tensor:
    """The same numbers, laid out as [batch, n, heads, D]."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def expected(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float | None = None) -> Tensor:
    """Torch's attention in float64 under a mask [n, m] or [heads, n, m]; zeros where a row is empty."""
    empty = ~mask.any(-1, keepdim=True)
    out = scaled_dot_product_attention(
        q.double(), k.double(), v.double(), attn_mask=mask | empty, scale=scale, enable_gqa=True
    )
    return out.masked_fill(empty, 0)
