"""Dropout: which pairs are dropped, from a seed and the pair alone.

No stream of random numbers is drawn in any order: a pair's number is a hash of the seed, its head, its query
and its key. So forward and backward agree, and the same pairs drop on every kernel, whatever its tiles are.
The same sums in Triton are in kernels/triton/pairs.py.

A seed is a tensor [1]; where a call is a part of a larger one, whose pairs it must drop, the places of its
heads, queries and keys there come after it, as `placed_seed` makes it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall

BITS = 24  # of a pair's number that are compared with the rate
MASK = 0xFFFFFFFF
FIRST, SECOND, ODD = 0x7FEB352D, 0x846CA68B, 0x9E3779B9  # multipliers whose hash has little bias
MOST_SEED = 2**62
PLACED = 6  # numbers of a seed before the places of its queries


def new_seed(like: Tensor) -> Tensor:
    """A seed [1] from torch's own generator on the device: torch.manual_seed fixes it."""
    return torch.randint(MOST_SEED, (1,), dtype=torch.int64, device=like.device)


def placed_seed(
    seed: Tensor, queries: Tensor, keys: Tensor, heads: tuple[int, int, int] = (1, 1, 0)
) -> Tensor:
    """The seed of a part of a larger call: the positions there of its queries and keys, [n] and [m].

    `heads` are how many the part has, how many there are in all, and the first of the part.
    """
    sizes = torch.tensor([*heads, len(queries), len(keys)], dtype=torch.int64, device=seed.device)
    return torch.cat([seed[:1], sizes, queries, keys])


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
    heads, all_heads, head, n, m = seed[1:PLACED]  # no numbers: nothing waits for the device
    members = members // heads * all_heads + members % heads + head
    queries, keys = PLACED + torch.minimum(queries, n - 1), PLACED + n + torch.minimum(keys, m - 1)
    return members, seed[queries], seed[keys]


def _mixed(x: Tensor) -> Tensor:
    """A hash of the low 32 bits."""
    x = x & MASK
    x = ((x ^ (x >> 16)) * FIRST) & MASK
    x = ((x ^ (x >> 15)) * SECOND) & MASK
    return x ^ (x >> 16)
