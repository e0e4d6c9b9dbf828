"""GridRNN over ranks: each has a strip of rows, and hands on the states of its last row, piece by piece.

A state needs its left and top neighbours, so a rank can begin once the one above has done its first columns:
a pipeline of wavefronts. All that travels is a row of states, batch · cols · h numbers for each layer (twice
as many for an lstm), down in the forward pass and as gradients up in the backward pass.
"""

# torch.autograd.Function has no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lattend.errors import DomainError, LattendError, TensorError
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.states import GridStates, Side, format_tensor
from lattend.parallel.agreement import agree, refuse
from lattend.parallel.exchange import Exchange
from lattend.parallel.ranks import Ranks, ranks_of

PIECES = 4  # of the columns for each rank: so much of a step is spent until the last rank begins
FEWEST = 8  # columns of a piece


def grid_rnn(
    net: GridRNN, x: Tensor, *, mesh: Any = None, mask: Tensor | None = None, columns: int | None = None
) -> Tensor:
    """What `net` gives for an image whose rows are cut over ranks: local rows in, their states out.

    x is [batch, rows of this rank, cols, c], strips in the order of the ranks; some may have no rows. So many
    `columns` are done before the next rank is told; left out, a quarter of a rank's share of them. Every rank
    has the same weights, and their gradients are this rank's share, as DistributedDataParallel adds them; all
    ranks with rows call backward, or none. The net goes down and right, directions=1.
    """
    ranks = ranks_of(mesh)
    try:
        _check(net, x, mask, columns)
    except LattendError as error:
        refuse(ranks, error)
    learns = torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in net.parameters()))
    said = {
        "call": "a net on a grid", "net": repr(net), "image": (x.shape[0], *x.shape[2:]),
        "dtype": str(x.dtype), "mask": mask is not None, "columns": columns, "gradients": learns,
    }  # fmt: skip
    agreed = agree(ranks, said, {}, x.shape[1], x.shape[1], 0, False)
    if not x.shape[1]:
        return x.new_zeros((*x.shape[:3], net.directions * net.h))
    busy = [rank for rank, rows in enumerate(agreed.queries) if rows]
    place = busy.index(ranks.rank)
    above, below = (busy[i] if 0 <= i < len(busy) else None for i in (place - 1, place + 1))
    width = columns or max(FEWEST, -(-x.shape[2] // (PIECES * ranks.size)))
    return _strip(net, x, mask, _Link(ranks, above, below, learns), width)


def _strip(net: GridRNN, x: Tensor, mask: Tensor | None, link: _Link, width: int) -> Tensor:
    """The states of a strip, piece by piece from the left."""
    pairs, left, found = net.cell.name == "lstm", None, list[Tensor]()
    size = (net.layers * (2 if pairs else 1), x.shape[0], 0, net.h)
    for begin in range(0, x.shape[2], width):
        piece = x[:, :, begin : begin + width]
        top: Side = None
        if link.above is not None:
            border = link.taken(x.new_empty((*size[:2], piece.shape[2], net.h)))
            top = _side(border, pairs)
        there = None if mask is None else mask[:, :, begin : begin + width]
        out, ends = net(piece, GridStates(left, top), there, return_states=True)
        if link.below is not None:
            last = ends.top
            out = link.handed(out, torch.cat(last) if isinstance(last, tuple) else last)
        found.append(out)
        left = ends.left
    link.finish()
    return torch.cat(found, 2)


def _side(border: Tensor, pairs: bool) -> Side:
    """A border as the net takes it: h, or h and c."""
    if not pairs:
        return border
    h, c = border.chunk(2)
    return h, c


@dataclass(eq=False)
class _Link:
    """A rank's neighbours in the pipeline, and what is on its way to them."""

    ranks: Ranks
    above: int | None
    below: int | None
    learns: bool
    flights: list[Exchange] = field(default_factory=list[Exchange])
    pieces: int = 0

    def taken(self, room: Tensor) -> Tensor:
        """The states of the row above, which have gradients there."""
        self.pieces += 1
        anchor = room.new_zeros((), requires_grad=self.learns)  # what comes depends on no tensor of this rank
        return _Taken.apply(self, self.pieces == 1, room, anchor)  # pyright: ignore[reportReturnType]

    def handed(self, out: Tensor, border: Tensor) -> Tensor:
        """The output as it is, once the states of the last row are on their way down."""
        return _Handed.apply(self, out, border)  # pyright: ignore[reportReturnType]

    def send(self, rank: int | None, what: str, x: Tensor) -> None:
        assert rank is not None
        self.flights.append(Exchange.begin(self.ranks, self.ranks.whole.group, what, [(rank, x)], []))

    def get(self, rank: int | None, what: str, room: Tensor) -> Tensor:
        assert rank is not None
        group = self.ranks.whole.group
        return Exchange.begin(self.ranks, group, what, [], [(rank, room)]).wait()[0]

    def finish(self) -> None:
        """Waits until everything that was sent is gone."""
        while self.flights:
            self.flights.pop(0).wait()


class _Taken(torch.autograd.Function):
    """States that come from the rank above; their gradients go there."""

    @staticmethod
    def forward(ctx: Any, link: _Link, first: bool, room: Tensor, anchor: Tensor) -> Tensor:
        ctx.link, ctx.first = link, first
        return link.get(link.above, "states", room.detach().clone())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.link.send(ctx.link.above, "gradients of states", grads[0])
        if ctx.first:  # the last to come: pieces go backward from the right
            ctx.link.finish()
        return None, None, None, grads[0].new_zeros(())


class _Handed(torch.autograd.Function):
    """The output of a piece; with its gradient come those of the states that went to the rank below."""

    @staticmethod
    def forward(ctx: Any, link: _Link, out: Tensor, border: Tensor) -> Tensor:
        ctx.link, ctx.like = link, (border.shape, border.dtype)
        link.send(link.below, "states", border.detach())
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        shape, dtype = ctx.like
        room = grads[0].new_empty(shape, dtype=dtype)
        return None, grads[0], ctx.link.get(ctx.link.below, "gradients of states", room)


def _check(net: object, x: object, mask: Tensor | None, columns: object) -> None:
    if not isinstance(net, GridRNN):
        raise TensorError(f"net must be an lt.nn.GridRNN, got {type(net).__name__}")
    if net.directions != 1:
        raise DomainError(
            f"directions={net.directions}: over ranks a net goes down and right, directions=1; from other "
            "corners a strip would wait for all ranks below it"
        )
    if not isinstance(x, Tensor) or x.dim() != 4 or x.shape[-1] != net.c or not x.shape[2]:
        got = format_tensor(x) if isinstance(x, Tensor) else type(x).__name__
        raise TensorError(f"x must be [batch, rows of this rank, cols, c] with c = {net.c}, got {got}")
    if mask is not None and mask.shape != x.shape[:3]:
        raise TensorError(
            f"mask must be bool {list(x.shape[:3])}, True where a pixel is, got {format_tensor(mask)}"
        )
    if columns is not None and (isinstance(columns, bool) or not isinstance(columns, int) or columns < 1):
        raise DomainError(f"columns must be a whole number from 1 on, got {columns!r}")


def border_bytes(net: GridRNN, shape: Sequence[int], rows: Sequence[int], itemsize: int) -> list[int]:
    """What each rank gets in the forward pass: a row of states, if there are rows above; backward, if below.

    >>> border_bytes(GridRNN(3, 8, cell="lstm"), (2, 20), [4, 0, 5], 4)  # 2 · 2 · 20 · 8 numbers of 4 bytes
    [0, 0, 2560]
    """
    numbers = shape[0] * shape[1] * net.h * net.layers * (2 if net.cell.name == "lstm" else 1)
    return [numbers * itemsize if own and any(rows[:rank]) else 0 for rank, own in enumerate(rows)]
