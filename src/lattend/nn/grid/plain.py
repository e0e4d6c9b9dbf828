"""The recurrence in plain torch operations, which torch differentiates, twice if asked."""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.nn.grid.cells import CellKind, Neighbours, beside, hidden, masked, state
from lattend.nn.grid.schedule import Diagonal, diagonals, wavefront_order


def by_diagonals(
    cell: CellKind, pre: Tensor, left: Tensor, top: Tensor, h: Tensor, c: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The states h of all pixels, [D, batch, rows, cols, h], and c for an lstm, diagonal by diagonal.

    The arguments are those of by_cells.
    """
    rows, cols = pre.shape[2:4]
    inner = wavefront_order(rows, cols)
    cells = torch.from_numpy(inner.cells).to(pre.device)
    slabs = pre.flatten(2, 3).index_select(2, cells).split(inner.counts, 2)
    there = None if mask is None else mask.flatten(2, 3).index_select(2, cells).split(inner.counts, 2)
    weights = beside(left, top)
    fronts = [_Front(x) for x in (h, c) if x is not None]
    for step, diagonal in enumerate(diagonals(rows, cols)):
        near = Neighbours(*(side for front in fronts for side in front.neighbours(diagonal)))
        found = state(cell, slabs[step], hidden(near, weights), near)
        for front, new in zip(fronts, masked(found, None if there is None else there[step]), strict=False):
            assert new is not None
            front.states.append(new)
    places = torch.from_numpy(inner.places.ravel()).to(pre.device)
    all_h, *all_c = (
        torch.cat(f.states, 2).index_select(2, places).unflatten(2, (rows, cols)) for f in fronts
    )
    return all_h, all_c[0] if all_c else None


class _Front:
    """The states step by step, and those on the edges, which stand at the ends of the steps before."""

    def __init__(self, edges: Tensor) -> None:
        self.top = edges[:, :, 0].split(1, 2)
        self.left = edges[:, :, :, 0].split(1, 2)
        self.states: list[Tensor] = []

    def neighbours(self, diagonal: Diagonal) -> tuple[Tensor, Tensor]:
        """The left and the top states of the cells that run next."""
        step = len(self.states) + 1  # on the grid with its edges
        parts = [self.states[-1]] if self.states else []
        if step < len(self.top):
            parts.insert(0, self.top[step])
        if step < len(self.left):
            parts.append(self.left[step])
        states = torch.cat(parts, 2) if len(parts) > 1 else parts[0]
        at_left, at_top = diagonal.left - diagonal.before, diagonal.top - diagonal.before
        return states.narrow(2, at_left, diagonal.cells), states.narrow(2, at_top, diagonal.cells)


def by_cells(
    cell: CellKind, pre: Tensor, left: Tensor, top: Tensor, h: Tensor, c: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The states h of all pixels, [D, batch, rows, cols, h], and c for an lstm, row after row: slow.

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
