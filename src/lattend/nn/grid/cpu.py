"""The recurrence on the CPU: forward and backward by hand, a few operations on contiguous slabs a step.

Pixels are packed, so that [D, pixels] stands for [D, batch, rows, cols]. Small images are copied into rooms
that are kept with all their calls; large ones are worked on where they are, in rooms of their own.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack

from lattend.attend.replay.recorder import Recorder
from lattend.nn.grid.cells import CellKind, Edges
from lattend.nn.grid.cpu_backward import BackwardRoom
from lattend.nn.grid.cpu_forward import ForwardRoom
from lattend.nn.grid.cpu_room import RoomKind
from lattend.nn.grid.layout import RowMajorLayout

SMALL = 1 << 19  # numbers at the sums of one direction: two megabytes of float32
Room = TypeVar("Room", ForwardRoom, BackwardRoom)


def forward(
    recorder: Recorder, cell: CellKind, layout: RowMajorLayout, pre: Tensor, left: Tensor, top: Tensor, edges:
    Edges, mask: Tensor | None, save_gates: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    """The states h and c with their edges, and the gates [D, pixels, 5h] if they are to be saved.

    pre [D, pixels, gates*h] is used up; left, top [D*gates*h, h]; mask [D, pixels]. h and c are
    [D, batch, rows + 1, cols + 1, h], with the edges in row 0 and column 0.
    """
    kind = _room_kind(cell, layout, pre.dtype, left.shape[-1], mask is not None)
    given: Any = (pre, left, top, mask, *edges)
    return recorder.do(partial(_forward, kind, save_gates and cell.name != "rnn"), *given)


def backward(
    recorder: Recorder, cell: CellKind, layout: RowMajorLayout, grad_h: Tensor, grad_c: Tensor | None, left:
    Tensor, top: Tensor, h: Tensor, c: Tensor | None, gates: Tensor | None, mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """The gradients at pre, at W_left h_left + W_top h_top, and at the state that an lstm or gru hands on.

    grad_h and grad_c are [D, batch, rows, cols, h]; all that is given back is [D, pixels, ..].
    """
    kind = _room_kind(cell, layout, h.dtype, h.shape[-1], mask is not None)
    given: Any = (grad_h, grad_c, left, top, h, c, gates, mask)
    return recorder.do(partial(_backward, kind), *given)


def _room_kind(
    cell: CellKind, layout: RowMajorLayout, dtype: torch.dtype, size: int, masked: bool
) -> RoomKind:
    _, batch, rows, cols = layout.shape
    wide, watched = torch.promote_types(dtype, torch.float32), _len_torch_dispatch_stack() > 0
    return RoomKind(cell, rows, cols, batch, size, wide, masked, watched)


def _forward(
    kind: RoomKind, saves: bool, pre: Tensor, left: Tensor, top: Tensor, mask: Tensor | None,
    *edges: Tensor | None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    if pre.dtype != kind.dtype:  # NumPy has no bfloat16
        wide: Any = _converted(kind.dtype, pre, left, top)
        return _converted(pre.dtype, *_forward(kind, saves, *wide, mask, *_converted(kind.dtype, *edges)))
    gates = None
    if saves:
        gates = pre if kind.cell.name == "lstm" else pre.new_empty(*pre.shape[:-1], 5 * kind.size)
    shape = (pre.shape[0], kind.batch, kind.rows + 1, kind.cols + 1, kind.size)
    h, c = pre.new_empty(shape), pre.new_empty(shape) if kind.states == 2 else None
    free = _forward_rooms(kind, saves) if kind.pixels * kind.height <= SMALL else None
    weights = (x.view(len(pre), -1, kind.size).mT.unbind() for x in (left, top))
    for d, (sums, by_left, by_top) in enumerate(zip(pre.unbind(), *weights, strict=True)):
        room = (
            ForwardRoom(kind, saves, sums, None if gates is None else gates[d])
            if free is None
            else _taken(free, ForwardRoom, kind, saves)
        )
        room.take(by_left, by_top, None if mask is None else mask[d])
        room.begin(sums, [None if x is None else x[d] for x in edges])
        room.run()
        room.end(h[d], None if c is None else c[d])
        if free is not None:
            if gates is not None:
                gates[d].copy_(room.gates)
            free.append(room)
    return h, c, gates


def _backward(
    kind: RoomKind, grad_h: Tensor, grad_c: Tensor | None, left: Tensor, top: Tensor, h: Tensor,
    c: Tensor | None, gates: Tensor | None, mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    if h.dtype != kind.dtype:
        wide: Any = _converted(kind.dtype, grad_h, grad_c, left, top, h, c, gates)
        return _converted(h.dtype, *_backward(kind, *wide, mask=mask))
    d_pre = h.new_empty(len(h), kind.pixels, kind.height)
    d_hidden = torch.empty_like(d_pre) if kind.cell.name == "gru" else d_pre
    d_state = None if kind.cell.name == "rnn" else h.new_empty(len(h), kind.pixels, kind.size)
    free = _backward_rooms(kind) if kind.pixels * kind.height <= SMALL else None
    weights = (x.view(len(h), -1, kind.size).unbind() for x in (left, top))
    for d, (by_left, by_top) in enumerate(zip(*weights, strict=True)):
        given: list[Any] = [None if x is None else x[d] for x in (grad_h, grad_c, h, c, gates)]
        outs: list[Any] = [None if x is None else x[d] for x in (d_pre, d_hidden, d_state)]
        room = BackwardRoom(kind, given[4], *outs) if free is None else _taken(free, BackwardRoom, kind)
        room.take(by_left, by_top, None if mask is None else mask[d])
        room.begin(*given)
        room.run()
        if free is not None:
            room.end(*outs)
            free.append(room)
    return d_pre, d_hidden, d_state


def _converted(dtype: torch.dtype, *tensors: Tensor | None) -> Any:
    return tuple(None if x is None else x.to(dtype) for x in tensors)


def _taken(free: list[Room], make: type[Room], *kind: Any) -> Room:
    """A room that nobody uses; threads each take their own."""
    try:
        return free.pop()
    except IndexError:
        with torch.inference_mode(False):  # it outlives the call
            return make(*kind)


@lru_cache(maxsize=4)
def _forward_rooms(kind: RoomKind, saves: bool) -> list[ForwardRoom]:
    return []


@lru_cache(maxsize=4)
def _backward_rooms(kind: RoomKind) -> list[BackwardRoom]:
    return []
