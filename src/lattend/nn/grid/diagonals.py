"""The recurrence by anti-diagonals in plain torch operations, which torch differentiates, twice if asked."""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.nn.grid.cells import CellKind, Neighbours, beside, hidden, masked, state
from lattend.nn.grid.schedule import Diagonal, diagonals, wavefront_order


def grid(
    cell: CellKind, pre: Tensor, left: Tensor, top: Tensor, h: Tensor, c: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The states h of all pixels, [D, batch, rows, cols, h], and c for an lstm; takes what reference does."""
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
