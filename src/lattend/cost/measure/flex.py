"""FlexAttention: the pairs its mask attends, and those of the blocks it runs."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from lattend.cost.measure.pairs import UNKNOWN, Pairs, has_values

MOST_PAIRS = 1 << 27  # of a mask that is asked pair by pair
TOO_LARGE = "mask too large to read: attention in {} is counted by its blocks"
FLEX = ("flex_attention", "flex_attention_backward")


def is_flex(func: Any) -> bool:
    """Whether an operator is FlexAttention, forward or backward."""
    return str(func) in FLEX


def pairs_of_flex(func: Any, args: tuple[Any, ...]) -> Pairs:
    """The pairs of a call; its block mask comes as a tuple whose last entry is the mask itself."""
    query, key, value = args[:3]
    block_mask = next(x for x in args[3:] if isinstance(x, tuple) and callable(x[-1]))
    batch, heads, n = query.shape[:3]
    m = key.shape[2]
    members, dense = batch * heads, batch * heads * n * m
    sizes = (query.shape[-1], value.shape[-1])
    partial, full = block_mask[2], block_mask[4]
    if not has_values(partial):
        return Pairs(dense, dense, dense, *sizes, members * n, UNKNOWN)
    area = prod(block_mask[-3:-1])
    tiles = " × ".join(map(str, block_mask[-3:-1])) + " blocks"
    blocks = int(partial.sum()) + (0 if full is None else int(full.sum()))
    executed = min(dense, blocks * area * (members // max(1, prod(partial.shape[:2]))))
    kinds = (partial.shape[0], partial.shape[1])  # batch elements and heads that differ
    if prod(kinds) * n * m > MOST_PAIRS:
        return Pairs(executed, executed, dense, *sizes, members * n, TOO_LARGE, tiles)
    attended = _attended(block_mask[-1], *kinds, n, m, query.device)
    needed = attended * (members // prod(kinds))
    return Pairs(needed, executed, dense, *sizes, min(needed, members * n), tiles=tiles)


def _attended(mask: Any, batch: int, heads: int, n: int, m: int, device: torch.device) -> int:
    from torch.nn.attention.flex_attention import create_mask

    return int(create_mask(mask, batch, heads, n, m, device=str(device)).sum())
