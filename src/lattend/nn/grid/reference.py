"""The recurrence cell by cell, row after row: slow, plain, and differentiated by torch alone."""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.nn.grid.cells import CellKind, Neighbours, beside, hidden, masked, state


def grid(
    cell: CellKind, pre: Tensor, left: Tensor, top: Tensor, h: Tensor, c: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The states h of all pixels, [D, batch, rows, cols, h], and c for an lstm.

    pre [D, batch, rows, cols, gates*h]; left, top [D, gates*h, h]; mask [D, batch, rows, cols]. Of h and c
    [D, batch, rows + 1, cols + 1, h] only row 0 and column 0 are read, the states on the edges.
    """
    rows, cols = pre.shape[2:4]
    weights = beside(left, top)
    all_h = [[h[:, :, row, col] for col in range(cols + 1)] for row in range(rows + 1)]
    all_c = [[None if c is None else c[:, :, row, col] for col in range(cols + 1)] for row in range(rows + 1)]
    for row in range(1, rows + 1):
        for col in range(1, cols + 1):
            h_left, h_top = all_h[row][col - 1], all_h[row - 1][col]
            near = Neighbours(h_left, h_top, all_c[row][col - 1], all_c[row - 1][col])
            found = state(cell, pre[:, :, row - 1, col - 1], hidden(near, weights), near)
            here = None if mask is None else mask[:, :, row - 1, col - 1]
            all_h[row][col], all_c[row][col] = masked(found, here)
    return _stacked(all_h), None if c is None else _stacked(all_c)


def _stacked(states: list[list[Tensor]] | list[list[Tensor | None]]) -> Tensor:
    """The inner states as one tensor [D, batch, rows, cols, h]."""
    rows = [torch.stack([x for x in row[1:] if x is not None], 2) for row in states[1:]]
    return torch.stack(rows, 2)
