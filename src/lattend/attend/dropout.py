"""Dropout: which pairs are dropped, from a seed and the pair alone.

No stream of random numbers is drawn in any order: a pair's number is a hash of the seed, its head, its query
and its key. So forward and backward agree, and the same pairs drop on every kernel, whatever its tiles are.
The same sums in Triton are in kernels/triton/pairs.py.

A seed is a tensor [1]; where a call is a part of a larger one, whose pairs it must drop, a tensor [8]: the
seed and the places of the part, as `placed_seed` makes it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.attend.call import AttentionCall

BITS = 24  # of a pair's number that are compared with the rate
MASK = 0xFFFFFFFF
FIRST, SECOND, ODD = 0x7FEB352D, 0x846CA68B, 0x9E3779B9  # multipliers whose hash has little bias
MOST_SEED = 2**62


def new_seed(like: Tensor) -> Tensor:
    """A seed [1] from torch's own generator on the device: torch.manual_seed fixes it."""
    return torch.randint(MOST_SEED, (1,), dtype=torch.int64, device=like.device)


def placed_seed(
    seed: Tensor, query: int, keys: tuple[int, int, int], heads: tuple[int, int, int] = (1, 1, 0)
) -> Tensor:
    """The seed of a part of a larger call: its query i is that call's i + query, its head h + heads[2].

    Its keys are (start, size, period): number j is the larger call's start + period*(j // size) + j % size.
    `heads` are how many the part has, how many there are in all, and the first of the part.
    """
    places = torch.tensor([query, *keys, *heads], dtype=torch.int64, device=seed.device)
    return torch.cat([seed[:1], places])


def limit_of(rate: float) -> int:
    """The numbers below it are dropped, out of 2^BITS."""
    return round(rate * 2**BITS)


def kept_share(rate: float) -> float:
    """What a kept weight is multiplied with, so that the expected sum stays."""
    return 1 / (1 - limit_of(rate) / 2**BITS)


def kept(seed: Tensor, rate: float, members: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Whether each pair is kept; `members` are batch * heads + head, positions flat, and all broadcast."""
    if len(seed) > 1:
        members, queries, keys = _in_the_whole(seed, members, queries, keys)
        seed = seed[:1]
    low, high = seed & MASK, (seed >> 32) & MASK
    row = _mixed(_mixed(_mixed(members ^ low) + queries) ^ high)
    odd = _mixed(row + ODD) | 1
    return _mixed(keys * odd + row) >> (32 - BITS) >= limit_of(rate)


def kept_weights(
    call: AttentionCall, members: Tensor, queries: Tensor, keys: Tensor, dtype: torch.dtype
) -> Tensor:
    """What dropout multiplies the weights of these pairs with: 0, or a little more than 1."""
    if call.seed is None:
        raise ValueError("the call has no dropout")
    found = kept(call.seed.to(queries.device), call.dropout, members, queries, keys)
    return found.to(dtype).mul_(kept_share(call.dropout))


def _in_the_whole(
    seed: Tensor, members: Tensor, queries: Tensor, keys: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What a part calls members, queries and keys, as the larger call does."""
    _, query, start, size, period, heads, all_heads, head = seed
    members = members // heads * all_heads + members % heads + head
    return members, queries + query, start + period * (keys // size) + keys % size


def _mixed(x: Tensor) -> Tensor:
    """A hash of the low 32 bits."""
    x = x & MASK
    x = ((x ^ (x >> 16)) * FIRST) & MASK
    x = ((x ^ (x >> 15)) * SECOND) & MASK
    return x ^ (x >> 16)
