"""GridRNN over ranks: each has a strip of rows, and hands on the states of its last row, piece by piece.

A state needs its left and top neighbours, so a rank can begin once the one above has done its first columns:
a pipeline of wavefronts, layer by layer, since a layer reads all directions of the one before. All that
travels is a row of states for each layer and direction, batch · cols · h numbers (twice as many for an lstm),
down or up as the direction goes, and its gradients the other way in the backward pass.

A direction takes the strips in turn, down from the first or up from the last, and hands a piece on to the
next strip a step later. Where some go up, pieces that go down are done at every second step and those that go
up at the steps between, so that a strip that would wait for one side works for the other:

    P = 3 strips, C = 1 piece, directions=4: 4·1 + 2 = 6 steps; directions 0 and 1 go down, 2 and 3 up
    strip 0  0 . 1 2 . 3
    strip 1  . 0 2 1 3 .
    strip 2  . 2 0 3 1 .

Between two of its pieces a strip sends the last row of one and gets the row above the other, both at once.
Each row leaves after a step and is needed at the next, so all that a strip waits for is from earlier steps:
there is no deadlock, even where messages are not buffered. Backward is the same in reverse.
"""

# torch.autograd.Function has no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.nn.grid.cells import Edges
from lattend.nn.grid.layout import side_by_side
from lattend.nn.grid.rnn import FLIPS, GridRNN, Weights, of_direction
from lattend.nn.grid.scan import chosen, scan
from lattend.nn.grid.states import ROWS, format_tensor
from lattend.parallel.exchange import Addressed, Exchange, make_ready
from lattend.parallel.ranks import Ranks, agree, ranks_of, refuse

PIECES = 4  # of a layer in all directions, for each strip: so much of a pass is spent until the last begins
FEWEST = 8  # columns of a piece


def grid_rnn(
    net: GridRNN, x: Tensor, *, mesh: Any = None, mask: Tensor | None = None, columns: int | None = None
) -> Tensor:
    """What `net` gives for an image whose rows are cut over ranks: local rows in, their states out.

    x is [batch, rows of this rank, cols, c], strips in the order of the ranks; some may have no rows. So many
    `columns` of a direction are done before the next rank is told; left out, a quarter of a rank's share of
    those of all directions. Every rank has the same weights, and their gradients are this rank's share, as
    DistributedDataParallel adds them; all ranks with rows call backward, or none. States begin with zeros.
    """
    ranks = ranks_of(mesh)
    try:
        if {name for name, _ in ranks.axes} - {"rows"}:
            raise NamingError("mesh cuts columns, and a net on a grid runs on strips of rows: give another")
        dtype = _checked(net, x, mask, columns)
    except LattendError as error:
        refuse(ranks, error)
    learns = torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in net.parameters()))
    said = {
        "call": "a net on a grid", "net": repr(net), "image": (x.shape[0], *x.shape[2:]),
        "dtype": str(dtype), "mask": mask is not None, "columns": columns, "gradients": learns,
    }  # fmt: skip
    agreed = agree(ranks, said, {}, x.shape[1], x.shape[1], 0, False)
    make_ready(ranks, x.device)
    if not x.shape[1]:
        return x.new_zeros((*x.shape[:3], net.directions * net.h), dtype=dtype)
    roots = [x, *net.parameters(), x.new_zeros((), requires_grad=True)] if learns else []
    line = _Line.of(ranks, agreed.queries, roots)
    if len(line.strips) == 1:
        return net(x, mask=mask)
    width = columns or max(FEWEST, -(-x.shape[2] * net.directions // (PIECES * len(line.strips))))
    x = x.to(dtype)
    for layer in range(net.layers):
        x = _layer(net, layer, x, mask, line, width)
    return x


def _layer(net: GridRNN, layer: int, x: Tensor, mask: Tensor | None, line: _Line, width: int) -> Tensor:
    """The map of a layer on a strip, by all directions piece by piece."""
    weights = net.weights(layer)
    sweeps: list[_Sweep] = []
    for direction, axes in enumerate(net.flips):
        seen, there = (None if image is None else image.flip(axes) if axes else image for image in (x, mask))
        assert seen is not None
        own = Weights(*of_direction(direction, *weights))
        sweeps.append(_Sweep(net, layer, direction, seen, there, own, *line.ends(up=ROWS in axes)))
    before, pieces = None, -(-x.shape[2] // width)
    for _, direction, number in pipeline(net.directions, pieces, line.place, len(line.strips)):
        sweep = sweeps[direction]
        columns = slice(number * width, (number + 1) * width)
        sweep.go_on(columns, line.cross(before, sweep, columns))
        before = sweep
    line.cross(before, None, slice(0))
    return side_by_side(net.flips, [torch.cat(sweep.maps, 2) for sweep in sweeps])


@dataclass(eq=False)
class _Sweep:
    """A direction of a layer on a strip, all in the order in which it travels, and how far it is."""

    net: GridRNN
    layer: int
    direction: int
    x: Tensor
    mask: Tensor | None
    weights: Weights
    source: int | None  # the rank whose last row is above this strip's first
    target: int | None
    left: Sequence[Tensor | None] = (None, None)  # h and c of the last column that is done
    row: Tensor | None = None  # h and c of the last row of the last piece, [1 or 2, batch, columns, h]
    maps: list[Tensor] = field(default_factory=list[Tensor])

    def go_on(self, columns: slice, top: Tensor | None) -> None:
        """Does a piece, below the states of the row above it."""
        net, mask = self.net, None if self.mask is None else self.mask[:, :, columns]
        top_h, top_c = (None, None) if top is None else (*top.split(1), None)[:2]
        edges = Edges(self.left[0], top_h, self.left[1], top_c)
        h, c = scan(
            net.cell, self.x[:, :, columns], *self.weights,
            edges=edges, mask=mask, kernel=net.kernel, recompute=net.recompute,
        )  # fmt: skip
        self.left = [None if s is None else s[:, :, :, -1] for s in (h, c)]
        self.row = torch.cat([s[:, :, -1] for s in (h, c) if s is not None])
        found = h[0]
        if net.shift:
            found = net.shifted(self.layer, self.direction, self.weights, edges, h, c, mask)
        self.maps.append(found)

    def room(self, columns: slice) -> Tensor:
        """Room for the states of the row above a piece."""
        batch, _, cols, _ = self.x.shape
        many = 2 if self.net.cell.name == "lstm" else 1
        return self.x.new_empty((many, batch, len(range(cols)[columns]), self.net.h))


@dataclass(eq=False)
class _Line:
    """The ranks that have strips, from the top, and this one's place among them."""

    ranks: Ranks
    strips: list[int]
    place: int
    roots: Sequence[Tensor]  # whichever gradient is asked for, all messages depend on it; empty without any

    @staticmethod
    def of(ranks: Ranks, rows: Sequence[int], roots: Sequence[Tensor]) -> _Line:
        """The ranks that have rows."""
        busy = [rank for rank, many in enumerate(rows) if many]
        return _Line(ranks, busy, busy.index(ranks.rank), roots)

    def ends(self, up: bool) -> tuple[int | None, int | None]:
        """Where states come from and where they go to in a direction."""
        above, below = (
            self.strips[i] if 0 <= i < len(self.strips) else None for i in (self.place - 1, self.place + 1)
        )
        return (below, above) if up else (above, below)

    def cross(self, before: _Sweep | None, after: _Sweep | None, columns: slice) -> Tensor | None:
        """The states above the next piece; those of the last row of the piece before leave meanwhile."""
        leaves = None if before is None or before.target is None else before
        comes = None if after is None or after.source is None else after
        if leaves is None and comes is None:
            return None
        coming = None if comes is None else (comes.source, comes.room(columns))
        sent = (None, None, None) if leaves is None else (leaves.target, leaves.maps[-1], leaves.row)
        found: Any = _Crossing.apply(self, coming, *sent, *self.roots)
        if leaves is not None:
            leaves.maps[-1] = found[0]
        return found[1]

    def exchange(self, what: str, leaving: Sequence[Addressed], coming: Sequence[Addressed]) -> Tensor | None:
        """What comes, if anything, posted with what leaves: two ranks may send to each other at once."""
        found = Exchange.begin(self.ranks, self.ranks.whole, what, leaving, coming).wait()
        return found[0] if found else None


class _Crossing(torch.autograd.Function):
    """Between two pieces: the last row of one leaves and the row above the next comes; then their gradients.

    Gives the map of the piece before as it is, so that backward passes here, and the row that came.
    """

    @staticmethod
    def forward(
        ctx: Any, line: _Line, coming: Addressed | None, target: int | None, kept: Tensor | None,
        row: Tensor | None, *roots: Tensor,
    ) -> tuple[Tensor | None, Tensor | None]:  # fmt: skip
        ctx.line, ctx.target, ctx.source = line, target, None if coming is None else coming[0]
        ctx.shape, ctx.roots = None if row is None else row.shape, len(roots)
        ctx.save_for_backward(torch.empty(0))  # a checkpoint runs all again until the last tensor is saved
        top = line.exchange("states", _addressed(target, row), [] if coming is None else [coming])
        return None if kept is None else kept.view_as(kept), top

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:  # pyright: ignore
        if torch.is_grad_enabled():  # what came from another rank would be missing there, and no one told
            raise LattendError("create_graph=True: lt.parallel.grid_rnn has no second derivatives")
        _ = ctx.saved_tensors  # before any gradient is awaited, since all ranks run it again together
        kept, top = grads
        room = None if kept is None else kept.new_empty(ctx.shape)
        leaving, coming = _addressed(ctx.source, top), _addressed(ctx.target, room)
        row = ctx.line.exchange("gradients of states", leaving, coming)
        return None, None, None, kept, row, *[None] * ctx.roots


def _addressed(rank: int | None, x: Tensor | None) -> list[Addressed]:
    return [] if rank is None or x is None else [(rank, x)]


def _checked(net: object, x: object, mask: Tensor | None, columns: object) -> torch.dtype:
    """The dtype in which it runs; raises where an argument does not fit."""
    if not isinstance(net, GridRNN):
        raise TensorError(f"net must be an lt.nn.GridRNN, got {type(net).__name__}")
    if not isinstance(x, Tensor) or x.dim() != 4 or x.shape[-1] != net.c or not x.shape[2]:
        got = format_tensor(x) if isinstance(x, Tensor) else type(x).__name__
        raise TensorError(f"x must be [batch, rows of this rank, cols, c] with c = {net.c}, got {got}")
    if columns is not None and (isinstance(columns, bool) or not isinstance(columns, int) or columns < 1):
        raise DomainError(f"columns must be a whole number from 1 on, got {columns!r}")
    weights = net.weights(0)
    if x.shape[1]:
        net.check(x, mask)
        chosen(net.kernel, x.to(weights.into.dtype), weights.into, weights.left, weights.top)
    return weights.into.dtype


class PipelinePiece(NamedTuple):
    """A piece of the columns in one direction, numbered as it travels, and the step at which it is done."""

    step: int
    direction: int
    number: int


def pipeline(directions: int, pieces: int, place: int, strips: int) -> list[PipelinePiece]:
    """The pieces that a strip does in one layer, in order.

    >>> [(p.direction, p.number) for p in pipeline(4, 1, place=1, strips=3)]  # 0 and 1 go down, 2 and 3 up
    [(0, 0), (2, 0), (1, 0), (3, 0)]
    """
    up = [ROWS in axes for axes in FLIPS[directions]]
    pace = 2 if any(up) else 1
    found: list[PipelinePiece] = []
    for upward, waits, start in ((False, place, 0), (True, strips - 1 - place, strips % 2)):
        along = [direction for direction in range(directions) if up[direction] == upward]
        order = [(direction, number) for number in range(pieces) for direction in along]
        found += [PipelinePiece(pace * i + start + waits, *piece) for i, piece in enumerate(order)]
    return sorted(found)


def pipeline_steps(directions: int, layers: int, pieces: int, strips: int) -> int:
    """Steps of a pass, one piece of one direction and layer each.

    Down alone, a strip goes on to the next layer at once, and the last one begins strips - 1 steps late. With
    directions that go up, a layer ends when the first and the last strip have what comes from the other. No
    order takes fewer: the strip in the middle begins (strips - 1) // 2 steps late, and what it does last has
    as many steps to go.

    >>> pipeline_steps(1, 1, 32, 8), pipeline_steps(4, 1, 32, 8)  # 32 + 8 - 1, 4·32 + 2·3
    (39, 134)
    """
    if directions < 4:
        return layers * directions * pieces + strips - 1
    return layers * (directions * pieces + (strips - 1) // 2 * 2)


def border_bytes(
    net: GridRNN, shape: Sequence[int], rows: Sequence[int], itemsize: int, backward: bool = False
) -> list[int]:
    """What each rank gets in a pass: a row of states, or of gradients, for each layer and direction.

    shape is batch and cols. States come down if there are rows above and up if there are rows below, as the
    directions go; their gradients come from the other side.

    >>> border_bytes(GridRNN(3, 8, cell="lstm"), (2, 20), [4, 0, 5], 4)  # 2 · 2 · 20 · 8 numbers of 4 bytes
    [0, 0, 2560]
    """
    row = shape[0] * shape[1] * net.h * (2 if net.cell.name == "lstm" else 1) * itemsize
    up = sum(ROWS in axes for axes in net.flips)
    from_above, from_below = (up, net.directions - up) if backward else (net.directions - up, up)
    return [
        net.layers * row * (from_above * any(rows[:rank]) + from_below * any(rows[rank + 1 :])) if own else 0
        for rank, own in enumerate(rows)
    ]
