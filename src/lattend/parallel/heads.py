"""Heads over ranks (Ulysses): each rank gets all positions of some heads, and gives its output back.

Of q each rank has H / P heads. Of k and v those that these share; where there are fewer kv heads than ranks,
one goes to several.
"""

# torch.autograd.Function has no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from lattend.parallel.exchange import Exchange
from lattend.parallel.ranks import Ranks
from lattend.parallel.running import widened

Slices = tuple[tuple[int, int], ...]  # of each rank, its heads


def head_slices(heads: int, kv_heads: int, ranks: int) -> tuple[Slices, Slices] | None:
    """The heads of q and of k that each rank has; None where they cannot be shared out evenly.

    >>> head_slices(8, 2, 4)
    (((0, 2), (2, 4), (4, 6), (6, 8)), ((0, 1), (0, 1), (1, 2), (1, 2)))
    """
    if heads % ranks or heads < 1:
        return None
    each, shared = heads // ranks, heads // kv_heads
    if each % shared and shared % each:
        return None
    queries = tuple((i * each, (i + 1) * each) for i in range(ranks))
    return queries, tuple((a // shared, -(-b // shared)) for a, b in queries)


@dataclass(frozen=True)
class Shared:
    """How a tensor is shared out: the heads of each rank, and how many positions each has."""

    heads: Slices
    lengths: tuple[int, ...]

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Where the positions of each rank begin and end among all."""
        return [*pairwise([0, *accumulate(self.lengths)])]


def _all_positions(ranks: Ranks, tensors: Sequence[Tensor], shared: Sequence[Shared]) -> list[Tensor]:
    """Each [batch, H, n of this rank, …] as [batch, h, n of all, …]: this rank's heads."""
    me, both = ranks.across.rank, [*zip(tensors, shared, strict=True)]
    others = [i for i in range(ranks.across.size) if i != me]
    leaving = [(i, x[:, slice(*how.heads[i])]) for x, how in both for i in others]
    coming = [
        (i, x.new_empty((x.shape[0], how.heads[me][1] - how.heads[me][0], how.lengths[i], *x.shape[3:])))
        for x, how in both
        for i in others
    ]
    came = iter(Exchange.begin(ranks, ranks.across, "heads", leaving, coming).wait())
    found: list[Tensor] = []
    for x, how in both:
        own = x[:, slice(*how.heads[me])]
        found.append(torch.cat([own if i == me else next(came) for i in range(ranks.across.size)], 2))
    return found


def _all_heads(ranks: Ranks, tensors: Sequence[Tensor], shared: Sequence[Shared]) -> list[Tensor]:
    """The other way; heads that several ranks had are added, in the order of the ranks."""
    me, both = ranks.across.rank, [*zip(tensors, shared, strict=True)]
    others = [i for i in range(ranks.across.size) if i != me]
    leaving = [(i, x[:, :, slice(*how.ends[i])]) for x, how in both for i in others]
    coming = [
        (i, x.new_empty((x.shape[0], how.heads[i][1] - how.heads[i][0], how.lengths[me], *x.shape[3:])))
        for x, how in both
        for i in others
    ]
    came = iter(Exchange.begin(ranks, ranks.across, "heads", leaving, coming).wait())
    found: list[Tensor] = []
    for x, how in both:
        shape = (x.shape[0], max(b for _, b in how.heads), how.lengths[me], *x.shape[3:])
        whole = x.new_zeros(shape, dtype=widened(x.dtype))
        for i, (a, b) in enumerate(how.heads):
            whole[:, a:b] += x[:, :, slice(*how.ends[i])] if i == me else next(came)
        found.append(whole.to(x.dtype))
    return found


class _ToHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, shared: Sequence[Shared], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.ranks, ctx.shared = ranks, shared
        return tuple(_all_positions(ranks, tensors, shared))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, *_all_heads(ctx.ranks, grads, ctx.shared)


class _FromHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, shared: Sequence[Shared], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.ranks, ctx.shared = ranks, shared
        return tuple(_all_heads(ranks, tensors, shared))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, *_all_positions(ctx.ranks, grads, ctx.shared)


def to_heads(ranks: Ranks, shared: Sequence[Shared], *tensors: Tensor) -> tuple[Tensor, ...]:
    """The heads of this rank at all positions; differentiable."""
    return _ToHeads.apply(ranks, shared, *tensors)  # pyright: ignore[reportReturnType]


def from_heads(ranks: Ranks, shared: Sequence[Shared], *tensors: Tensor) -> tuple[Tensor, ...]:
    """All heads at this rank's positions; differentiable."""
    return _FromHeads.apply(ranks, shared, *tensors)  # pyright: ignore[reportReturnType]
