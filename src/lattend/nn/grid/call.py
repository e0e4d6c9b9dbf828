"""A call of the recurrence: how it runs, and the edges it starts from."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.layout import PackedLayout, RowMajorLayout

Flips = tuple[tuple[int, ...], ...]


class Edges(NamedTuple):
    """The states that come in over the left edge [D, batch, rows, h] and the top edge [D, batch, cols, h]."""

    left: Tensor | None = None  # None is zeros
    top: Tensor | None = None
    left_c: Tensor | None = None
    top_c: Tensor | None = None


NO_EDGES = Edges()


class GridOptions(NamedTuple):
    """Everything about a call that is not a tensor."""

    cell: CellKind
    flips: Flips = ((),)
    kernel: str = "cpu"
    save_gates: bool = True  # for backward, which works them out again without
    joined: bool = False  # gives one map for all directions, in place of the states of each

    def layout(self, x: Tensor) -> RowMajorLayout:
        """In which order the kernel holds the pixels of x [batch, rows, cols, c]."""
        batch, rows, cols, _ = x.shape
        kind = PackedLayout if self.kernel == "cpu" else RowMajorLayout
        return kind(len(self.flips), batch, rows, cols)
