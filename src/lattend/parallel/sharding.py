"""shard, unshard and positions: cut tensors for ranks, join them again, and number a rank's positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.errors import DomainError, TensorError
from lattend.parallel.arguments import CUTS
from lattend.parallel.keyset import Box
from lattend.parallel.layout import Cut, Layout, contiguous, zigzag
from lattend.parallel.ranks import AXES, Ranks, ranks_of


def shard(x: Tensor, mesh: Any = None, *, cut: Cut | str | None = None, dim: int | None = None) -> Tensor:
    """The part of this rank of a tensor that all have whole; `dim` is the axis of positions, 2 of q, k, v.

    Of a mesh whose dimensions are called "rows" and "cols", `dim` is the first axis that is cut; left out,
    they are those of q, k and v, which come before the last.

    >>> import torch.distributed as dist  # in a program that torchrun starts on two ranks, on the second
    >>> lt.parallel.shard(torch.arange(5), dim=0)  # doctest: +SKIP
    tensor([3, 4])
    """
    ranks = ranks_of(mesh)
    axes = _axes(ranks, x, dim)
    for axis, (axis_cut, index) in zip(
        axes, _cuts(ranks, [x.shape[axis] for axis in axes], cut), strict=True
    ):
        x = x.index_select(axis, _places(axis_cut, index).to(x.device))
    return x


def unshard(x: Tensor, mesh: Any = None, *, cut: Cut | str | None = None, dim: int | None = None) -> Tensor:
    """The whole tensor on every rank, from their parts; over CPUs, without gradients: to look at."""
    ranks = ranks_of(mesh)
    axes = _axes(ranks, x, dim)
    if len(axes) > 1:
        _check_blocks(cut)
        return _joined(ranks.told(x.detach().cpu()), axes, [count for _, count in ranks.axes]).to(x.device)
    (dim,), parts = axes, ranks.told(x.detach().cpu())
    lengths = [part.shape[dim] for part in parts]
    found = _cut_for(cut, sum(lengths), ranks)
    if cut is not None and [found.length(rank) for rank in range(ranks.size)] != lengths:
        raise TensorError(
            f"the ranks have {', '.join(map(str, lengths))} positions, which is not the cut {found}"
        )
    whole = torch.cat(parts, dim)
    if cut is not None:
        places = torch.cat([_places(found, rank) for rank in range(ranks.size)])
        whole = whole.index_select(dim, places.argsort())
    return whole.to(x.device)


def positions(
    n: int | Sequence[int],
    mesh: Any = None,
    *,
    cut: Cut | str | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """The positions that this rank has of n, in the order of its tensors: position_ids of a model's shard.

    Of an image n is (rows, cols), and positions are those of its pixels row by row.
    """
    ranks, sizes = ranks_of(mesh), (n,) if isinstance(n, int) else tuple(n)
    names = AXES[-len(sizes) :] if len(sizes) > 1 else ()
    if ranks.axes and not {name for name, _ in ranks.axes} <= {*names}:
        named = ", ".join(name for name, _ in ranks.axes)
        raise DomainError(f"mesh cuts {named}, and n = {n} does not have them: give n as (rows, cols)")
    axes = [names.index(name) for name, _ in ranks.axes] or [0]
    own = dict(zip(axes, _cuts(ranks, [sizes[axis] for axis in axes], cut), strict=True))
    whole = [own.get(axis, (contiguous(size, 1), 0)) for axis, size in enumerate(sizes)]
    one_rank = tuple(Cut(axis_cut.name, (axis_cut.pieces[index],)) for axis_cut, index in whole)
    flat = [Box.of(pieces).flat(sizes) for pieces in Layout(one_rank, sizes).boxes(0)]
    return torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *flat])).to(device)


def _axes(ranks: Ranks, x: Tensor, dim: int | None) -> list[int]:
    """The axes of a tensor that are cut, beginning with `dim`."""
    places = [AXES.index(name) - len(AXES) for name, _ in ranks.axes]  # before the last: cols are -1
    if not places:
        return [2 if dim is None else dim]
    first = x.dim() - 1 + places[0] if dim is None else dim
    return [first + place - places[0] for place in places]


def _cuts(ranks: Ranks, sizes: Sequence[int], cut: Cut | str | None) -> list[tuple[Cut, int]]:
    """For each axis that is cut, its cut and the place of this rank along it."""
    if len(sizes) == 1:
        return [(_cut_for(cut, sizes[0], ranks), ranks.rank)]
    _check_blocks(cut)
    counts = [count for _, count in ranks.axes]
    places = np.unravel_index(ranks.rank, counts)
    return [(contiguous(n, count), int(i)) for n, count, i in zip(sizes, counts, places, strict=True)]


def _check_blocks(cut: object) -> None:
    if cut not in (None, "contiguous"):
        raise DomainError(f"cut={cut!r}: blocks of an image follow each other; leave it out")


def _joined(parts: Sequence[Tensor], axes: Sequence[int], counts: Sequence[int]) -> Tensor:
    """Blocks put together, the last axis first."""
    while counts:
        *counts, last = counts
        *axes, axis = axes
        parts = [torch.cat([*parts[i : i + last]], axis) for i in range(0, len(parts), last)]
    return parts[0]


def _places(cut: Cut, rank: int) -> Tensor:
    pieces = [torch.arange(a, b) for a, b in cut.pieces[rank]]
    return torch.cat(pieces) if pieces else torch.zeros(0, dtype=torch.int64)


def _cut_for(cut: Cut | str | None, n: int, ranks: Ranks) -> Cut:
    if isinstance(cut, Cut):
        if (cut.n, cut.ranks) != (n, ranks.size):
            raise DomainError(
                f"cut is of {cut.n} positions for {cut.ranks} ranks, and there are {n} for {ranks.size}"
            )
        return cut.checked()
    if cut is not None and cut not in CUTS:
        raise DomainError(f"cut is a Cut, or one of {', '.join(CUTS)}, not {cut!r}")
    return (zigzag if cut == "zigzag" else contiguous)(n, ranks.size)
