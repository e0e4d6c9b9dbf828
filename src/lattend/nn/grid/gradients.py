"""Gradients of x, the weights and the edges, from those at the sums and the states."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lattend.nn.grid.call import GridOptions
from lattend.nn.grid.cells import CellKind, beside, gate_values
from lattend.nn.grid.inputs import by_direction, pixels, unflipped_sum
from lattend.nn.grid.layout import RowMajorLayout


def gates_again(
    cell: CellKind, layout: RowMajorLayout, pre: Tensor, left: Tensor, top: Tensor, h: Tensor
) -> Tensor:
    """The gates of all pixels from the saved states: products over many pixels, no recurrence."""
    gates = pre.new_empty(*pre.shape[:-1], 5 * h.shape[-1])
    weights = beside(*(w.view(len(h), -1, h.shape[-1]) for w in (left, top)))
    for rows, near in layout.near(h):
        torch.cat(gate_values(cell, pre[:, rows], near @ weights), -1, out=gates[:, rows])
    return gates


def gradients(
    how: GridOptions, layout: RowMajorLayout, wanted: tuple[bool, ...], x: Tensor, into: Tensor, left: Tensor,
    top: Tensor, h: Tensor, gates: Tensor | None, d_pre: Tensor, d_hidden: Tensor, d_state: Tensor | None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of x, into, bias, left, top and the four edges; None where none is wanted."""
    found: list[Tensor | None] = [None] * 9
    if wanted[0]:
        found[0] = unflipped_sum(how.flips, layout.give(torch.bmm(d_pre, by_direction(how.flips, into))))
    if wanted[1]:
        seen = pixels(how.flips, layout, x)
        # This way round the thin side comes first: much faster
        found[1] = torch.bmm(seen.mT, d_pre).mT.reshape(into.shape)
    if wanted[2]:
        found[2] = d_pre.sum(1).view(into.shape[:-1])
    if wanted[3] or wanted[4]:
        both = _of_weights(layout, h, d_hidden).view(*left.shape[:-1], -1)
        found[3], found[4] = both.chunk(2, -1)
    if any(wanted[5:]):
        found[5:] = edge_gradients(how, layout, wanted, left, top, gates, d_hidden, d_state)
    return tuple(g if w else None for g, w in zip(found, wanted, strict=True))


def _of_weights(layout: RowMajorLayout, h: Tensor, d_hidden: Tensor) -> Tensor:
    """The gradients of W_left and W_top side by side, [D, gates*h, 2h]."""
    total: Tensor | None = None
    for rows, near in layout.near(h):
        grads = d_hidden[:, rows].mT
        total = torch.bmm(grads, near) if total is None else total.baddbmm_(grads, near)
    assert total is not None
    return total


def edge_gradients(
    how: GridOptions, layout: RowMajorLayout, wanted: tuple[bool, ...], left: Tensor, top: Tensor,
    gates: Tensor | None, d_hidden: Tensor, d_state: Tensor | None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of the four edges; None where none is wanted."""
    found = _of_edges(how, layout, left, top, gates, d_hidden, d_state)
    return tuple(g if w else None for g, w in zip(found, wanted[5:], strict=True))


def _of_edges(
    how: GridOptions, layout: RowMajorLayout, left: Tensor, top: Tensor, gates: Tensor | None,
    d_hidden: Tensor, d_state: Tensor | None,
) -> list[Any]:  # fmt: skip
    """The gradients of the states on the left and the top edge, and of their c."""
    d_left = layout.first_col(d_hidden) @ by_direction(how.flips, left)[:, None]
    d_top = layout.first_row(d_hidden) @ by_direction(how.flips, top)[:, None]
    if gates is None or d_state is None:
        return [d_left, d_top, None, None]
    at_left, at_top = layout.first_col(d_state), layout.first_row(d_state)
    on_left, on_top = layout.first_col(gates).chunk(5, -1), layout.first_row(gates).chunk(5, -1)
    # Of what an lstm keeps by f, or a gru by z, the share l comes from the left
    back_left, back_top = at_left * on_left[1] * on_left[2], at_top * on_top[1] * (1 - on_top[2])
    if how.cell.name == "lstm":
        return [d_left, d_top, back_left, back_top]
    return [d_left + back_left, d_top + back_top, None, None]
