"""shard, unshard and positions: tensors cut for ranks and put together, and where a rank's shard stands."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lattend.errors import DomainError, TensorError
from lattend.parallel.arguments import CUTS
from lattend.parallel.cut import Cut, contiguous, zigzag
from lattend.parallel.ranks import Ranks, ranks_of


def shard(x: Tensor, mesh: Any = None, *, cut: Cut | str | None = None, dim: int = 2) -> Tensor:
    """The part of this rank of a tensor that all have whole; `dim` is the axis of positions, 2 of q, k, v.

    >>> import torch.distributed as dist  # in a program that torchrun starts on two ranks, on the second
    >>> lt.parallel.shard(torch.arange(5), dim=0)  # doctest: +SKIP
    tensor([3, 4])
    """
    return x.index_select(dim, positions(x.shape[dim], mesh, cut=cut, device=x.device))


def unshard(x: Tensor, mesh: Any = None, *, cut: Cut | str | None = None, dim: int = 2) -> Tensor:
    """The whole tensor on every rank, from their parts; over CPUs, without gradients: to look at."""
    ranks = ranks_of(mesh)
    told = ranks.told((x.detach().cpu(), str(x.dtype)))
    lengths = [part.shape[dim] for part, _ in told]
    found = _cut_for(cut, sum(lengths), ranks)
    if cut is not None and [found.length(rank) for rank in range(ranks.size)] != lengths:
        raise TensorError(
            f"the ranks have {', '.join(map(str, lengths))} positions, which is not the cut {found}"
        )
    whole = torch.cat([part for part, _ in told], dim)
    if cut is not None:
        places = torch.cat([_places(found, rank) for rank in range(ranks.size)])
        whole = whole.index_select(dim, places.argsort())
    return whole.to(x.device)


def positions(
    n: int, mesh: Any = None, *, cut: Cut | str | None = None, device: torch.device | str | None = None
) -> Tensor:
    """The positions that this rank has of n, in the order of its tensors: position_ids of a model's shard."""
    ranks = ranks_of(mesh)
    return _places(_cut_for(cut, n, ranks), ranks.rank).to(device)


def _places(cut: Cut, rank: int) -> Tensor:
    pieces = [torch.arange(a, b) for a, b in cut.pieces[rank]]
    return torch.cat(pieces) if pieces else torch.zeros(0, dtype=torch.int64)


def _cut_for(cut: Cut | str | None, n: int, ranks: Ranks) -> Cut:
    if isinstance(cut, Cut):
        if (cut.n, cut.ranks) != (n, ranks.size):
            raise DomainError(
                f"cut is of {cut.n} positions for {cut.ranks} ranks, and there are {n} for {ranks.size}"
            )
        return cut
    if cut is not None and cut not in CUTS:
        raise DomainError(f"cut is a Cut, or one of {', '.join(CUTS)}, not {cut!r}")
    return (zigzag if cut == "zigzag" else contiguous)(n, ranks.size)
