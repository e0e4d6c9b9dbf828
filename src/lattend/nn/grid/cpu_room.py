"""Room: the memory that one direction of the CPU kernel works in, and all that is done there, in its order.

What a step does to small slabs takes less time than finding them. So every operation is a call with its
slabs bound to it, made once; to run the recurrence is to make the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.packed import Packing, packing

ONE_THREAD = 1 << 18  # multiply-adds of a product for which OpenBLAS takes no second thread
Array = NDArray[Any]
Call = Callable[[], Any]


class RoomKind(NamedTuple):
    """The cell, the images, and the numbers they are made of."""

    cell: CellKind
    rows: int
    cols: int
    batch: int
    size: int  # of a state
    dtype: torch.dtype
    masked: bool
    watched: bool = False  # somebody looks on at torch's operations, and is to see all products

    @property
    def packing(self) -> Packing:
        """How the images are packed."""
        return packing(self.rows, self.cols, self.batch)

    @property
    def pixels(self) -> int:
        """How many there are in all images."""
        return self.rows * self.cols * self.batch

    @property
    def height(self) -> int:
        """How many numbers a pixel sums up."""
        return self.cell.gates * self.size

    @property
    def states(self) -> int:
        """How many a pixel has: h, and c of an lstm."""
        return 2 if self.cell.name == "lstm" else 1


class Room:
    """Weights and a mask of one direction; forward and backward add what they work on, and the calls."""

    def __init__(self, kind: RoomKind, inputs: int, outputs: int) -> None:
        self.kind, self.packing = kind, kind.packing
        self.left, self.top = self.empty(inputs, outputs), self.empty(inputs, outputs)
        self.gone = torch.empty(kind.pixels, 1, dtype=torch.bool) if kind.masked else None
        self._products = self.empty(max(self.packing.inner.sizes), outputs)
        self.calls: list[Call] = []

    def take(self, left: Tensor, top: Tensor, mask: Tensor | None) -> None:
        """Takes the weights of a call and its mask [pixels]."""
        self.left.copy_(left)
        self.top.copy_(top)
        if mask is not None and self.gone is not None:
            torch.logical_not(mask[:, None], out=self.gone)

    def run(self) -> None:
        """Makes all calls."""
        with np.errstate(all="ignore"):  # as torch does: what overflows is inf, without a word
            for call in self.calls:
                call()

    def empty(self, rows: int, width: int) -> Tensor:
        """Room for so many packed rows."""
        return torch.empty(rows, width, dtype=self.kind.dtype)

    def framed(self) -> Tensor:
        """Room for the packed pixels and their edges, which are zeros."""
        found = self.empty(len(self.packing.framed_rows), self.kind.size)
        for edge in (self.packing.left_edge, self.packing.top_edge):
            found.index_fill_(0, edge, 0)
        found[: self.kind.batch] = 0  # the corner
        return found

    def product(self, rows: Tensor, weights: Tensor, out: Tensor) -> Iterator[Call]:
        """Writes rows · weights; NumPy starts a product in half of torch's time."""
        if self._by_torch(rows, weights):
            yield partial(torch.mm, rows, weights, out=out)
        else:
            yield partial(np.dot, rows.numpy(), weights.numpy(), out.numpy())

    def add_product(self, total: Tensor, rows: Tensor, weights: Tensor) -> Iterator[Call]:
        """Adds rows · weights to the total."""
        if self._by_torch(rows, weights):
            yield partial(torch.addmm, total, rows, weights, out=total)
        else:
            found = self._products[: len(rows)]
            yield from self.product(rows, weights, found)
            yield partial(np.add, total.numpy(), found.numpy(), total.numpy())

    def _by_torch(self, rows: Tensor, weights: Tensor) -> bool:
        return self.kind.watched or rows.numel() * weights.shape[1] > ONE_THREAD

    def clear(self, x: Array, rows: slice) -> Iterator[Call]:
        """Writes zeros at those rows of [rows, h] where there is no pixel."""
        if self.gone is not None:
            yield partial(np.copyto, x, 0, where=self.gone.numpy()[rows])


def parts(x: Tensor, count: int) -> list[Array]:
    """Packed rows of several gates as one array for each gate."""
    return list(x.numpy().reshape(len(x), count, -1).swapaxes(0, 1))
