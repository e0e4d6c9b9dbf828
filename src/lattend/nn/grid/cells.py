"""Cells of a recurrent net on a grid: what one pixel makes of its input and of its left and top neighbours.

Gates are stacked along the first axis of the weights, [gates*h, ·]. With pre = W_in x (+ b) and
hidden = W_left h_left + W_top h_top:

    rnn   h = σ(pre + hidden)
    lstm  i, f, l, g, o:  c = f (l c_left + (1 - l) c_top) + i g,  h = o tanh(c)
    gru   r, z, l, n:  n = tanh(pre_n + r hidden_n),  h = (1 - z) n + z (l h_left + (1 - l) h_top)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lattend.cost.reference.recurrence import GATES, check_cell
from lattend.nn.grid.layout import PackedLayout, RowMajorLayout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "identity": lambda a: a,
}


class CellKind(NamedTuple):
    """The kind of a cell: CellKind("rnn", "tanh"), CellKind("lstm"), CellKind("gru")."""

    name: str
    activation: str = "tanh"

    @property
    def gates(self) -> int:
        """How many numbers it sums up for each number of h: 1, 5 or 4."""
        return GATES[self.name]


class Neighbours(NamedTuple):
    """The states left of each pixel and above it; c for an lstm alone."""

    h_left: Tensor
    h_top: Tensor
    c_left: Tensor | None = None
    c_top: Tensor | None = None


def checked(name: str, activation: str) -> CellKind:
    """The cell of that name, or an error that lists those there are."""
    check_cell(name, activation)
    return CellKind(name, activation)


def neighbours(h: Tensor, c: Tensor | None = None) -> Neighbours:
    """The left and top states of all pixels at once, out of h [.., rows + 1, cols + 1, h] with its edges."""
    left = None if c is None else c[..., 1:, :-1, :]
    top = None if c is None else c[..., :-1, 1:, :]
    return Neighbours(h[..., 1:, :-1, :], h[..., :-1, 1:, :], left, top)


def beside(left: Tensor, top: Tensor) -> Tensor:
    """W_left and W_top [D, gates*h, h] as one matrix [D, 2h, gates*h], so that one product does both."""
    return torch.cat((left, top), -1).mT


def hidden(near: Neighbours, weights: Tensor) -> Tensor:
    """W_left h_left + W_top h_top of many pixels: states [D, .., h], weights those of `beside`."""
    pairs = torch.cat((near.h_left, near.h_top), -1)
    return (pairs.flatten(1, -2) @ weights).view(*pairs.shape[:-1], weights.shape[-1])


def gate_values(cell: CellKind, pre: Tensor, hidden: Tensor) -> tuple[Tensor, ...]:
    """The gates as backward needs them: lstm i, f, l, g, o; gru r, z, l, n and hidden_n."""
    size = pre.shape[-1] // cell.gates
    if cell.name == "lstm":
        i, f, share, g, o = (pre + hidden).split(size, -1)
        return i.sigmoid(), f.sigmoid(), share.sigmoid(), g.tanh(), o.sigmoid()
    here, past = pre[..., 3 * size :], hidden[..., 3 * size :]
    r, z, share = torch.sigmoid(pre[..., : 3 * size] + hidden[..., : 3 * size]).split(size, -1)
    return r, z, share, torch.tanh(here + r * past), past


def state(cell: CellKind, pre: Tensor, hidden: Tensor, near: Neighbours) -> tuple[Tensor, Tensor | None]:
    """The states h and, for an lstm, c of pixels whose neighbours are known; torch differentiates it."""
    if cell.name == "rnn":
        return ACTIVATIONS[cell.activation](pre + hidden), None
    gates = gate_values(cell, pre, hidden)
    if cell.name == "lstm":
        assert near.c_left is not None and near.c_top is not None
        i, f, share, g, o = gates
        c = f * (share * near.c_left + (1 - share) * near.c_top) + i * g
        return o * torch.tanh(c), c
    _, z, share, n, _ = gates
    return (1 - z) * n + z * (share * near.h_left + (1 - share) * near.h_top), None


def masked(found: tuple[Tensor, Tensor | None], mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """States that are zero where the mask [..] is False."""
    if mask is None:
        return found
    h, c = found
    gone = ~mask[..., None]
    return h.masked_fill(gone, 0), None if c is None else c.masked_fill(gone, 0)


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
