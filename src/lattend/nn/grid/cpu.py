"""The recurrence on the CPU: forward and backward by hand, a few operations on contiguous slabs a step.

Pixels are packed, so that [D, pixels] stands for [D, batch, rows, cols].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.cpu_backward import BACKWARD, GridBackwardInputs
from lattend.nn.grid.cpu_forward import FORWARD
from lattend.nn.grid.packed import Packing, packing


def forward(
    cell: CellKind, pre: Tensor, left: Tensor, top: Tensor, h: Tensor, c: Tensor | None, mask: Tensor | None,
    save_gates: bool,
) -> Tensor | None:  # fmt: skip
    """Fills h and c, and gives the gates if they are to be saved, [D, pixels, 5h]; pre is used up.

    pre [D, pixels, gates*h]; left, top [D, gates*h, h]; mask [D, pixels]. Row 0 and column 0 of h and c
    [D, batch, rows + 1, cols + 1, h] hold the edges.
    """
    kind = torch.promote_types(pre.dtype, torch.float32)
    if kind != pre.dtype:  # NumPy has no bfloat16
        wide_h, wide_c = h.to(kind), None if c is None else c.to(kind)
        gates = forward(cell, pre.to(kind), left.to(kind), top.to(kind), wide_h, wide_c, mask, save_gates)
        h.copy_(wide_h)
        if c is not None and wide_c is not None:
            c.copy_(wide_c)
        return None if gates is None else gates.to(pre.dtype)
    p = packing(h.shape[2] - 1, h.shape[3] - 1, h.shape[1])
    size, gates = h.shape[-1], None
    if save_gates and cell.name != "rnn":
        gates = pre if cell.name == "lstm" else pre.new_empty(*pre.shape[:-1], 5 * size)

    for d in range(len(h)):
        states = [_framed(x[d], p) for x in (h, c) if x is not None]
        gone = None if mask is None else ~mask[d].numpy()[:, None]
        room = None if gates is None else gates[d]
        with np.errstate(all="ignore"):  # as torch does: what overflows is inf, without a word
            FORWARD[cell.name](cell, pre[d], left[d].mT, top[d].mT, states, gone, room, p)
        for x, found in zip((h, c), states, strict=False):
            if x is not None:
                torch.index_select(found, 0, p.framed_rows, out=x[d].flatten(0, 2))
    return gates


def backward(
    cell: CellKind, grad_h: Tensor, grad_c: Tensor | None, left: Tensor, top: Tensor, h: Tensor,
    c: Tensor | None, gates: Tensor | None, mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """The gradients at pre, at W_left h_left + W_top h_top, and at the state that an lstm or gru hands on.

    grad_h and grad_c are [D, batch, rows, cols, h]; all that is given back is [D, pixels, ..].
    """
    kind = torch.promote_types(h.dtype, torch.float32)
    if kind != h.dtype:
        given = (grad_h, grad_c, left, top, h, c, gates)
        wide: list[Any] = [None if x is None else x.to(kind) for x in given]
        d_pre, d_hidden, d_state = backward(cell, *wide, mask=mask)
        state = None if d_state is None else d_state.to(h.dtype)
        return d_pre.to(h.dtype), d_hidden.to(h.dtype), state
    p = packing(h.shape[2] - 1, h.shape[3] - 1, h.shape[1])
    size, shape = h.shape[-1], (len(h), len(p.pixels))
    d_pre = h.new_empty(*shape, cell.gates * size)
    d_hidden = torch.empty_like(d_pre) if cell.name == "gru" else d_pre
    d_state = None if cell.name == "rnn" else h.new_empty(*shape, size)
    for d in range(len(h)):
        packed_h, packed_c = (_packed(x, d, p.framed_pixels) for x in (h, c))
        from_h, from_c = (_packed(x, d, p.framing) for x in (grad_h, grad_c))
        assert packed_h is not None and from_h is not None
        given = GridBackwardInputs(
            from_h, from_c, packed_h, packed_c,
            None if gates is None else gates[d].numpy().reshape(-1, 5, size),
            None if mask is None else ~mask[d].numpy()[:, None],
        )  # fmt: skip
        outs = d_pre[d], d_hidden[d], None if d_state is None else d_state[d]
        with np.errstate(all="ignore"):
            BACKWARD[cell.name](cell, given, left[d], top[d], *outs, p)
    return d_pre, d_hidden, d_state


def _framed(x: Tensor, p: Packing) -> Tensor:
    """Packed states with a frame, of which those on the edges are filled in."""
    found = x.new_empty(len(p.framed_rows), x.shape[-1])
    return found.index_copy_(0, p.edge_rows, x.flatten(0, 2).index_select(0, p.edge_pixels))


def _packed(x: Tensor | None, d: int, rows: Tensor) -> Tensor | None:
    return None if x is None else x[d].flatten(0, 2).index_select(0, rows)
