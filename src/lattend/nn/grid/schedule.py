"""When each cell of a grid runs: cell (row, col) at step row + col, which tests prove to be the earliest."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WAITS = ((0, -1), (-1, 0))  # the left neighbour and the top one


class Diagonal(NamedTuple):
    """The cells of one step; places are those of `wavefront_order` on the grid with its edges.

    Cell number i of the step is at here + i, its left neighbour at left + i, its top neighbour at top + i.
    """

    here: int
    left: int
    top: int
    before: int  # where the step before begins, which has all these neighbours
    cells: int  # how many


class WavefrontOrder(NamedTuple):
    """All cells of a grid, step after step, and within a step row after row."""

    cells: NDArray[np.int64]  # the cell at each place, numbered row by row
    places: NDArray[np.int64]  # the place of each cell, [rows, cols]
    counts: list[int]  # how many cells run at each step


def steps(rows: int, cols: int) -> NDArray[np.int64]:
    """The step of every cell, [rows, cols].

    >>> steps(2, 3)  # 2 + 3 - 1 = 4 steps
    array([[0, 1, 2],
           [1, 2, 3]])
    """
    return np.add.outer(np.arange(rows), np.arange(cols))


@lru_cache(maxsize=64)
def wavefront_order(rows: int, cols: int) -> WavefrontOrder:
    """The cells in the order they run.

    >>> wavefront_order(2, 3).cells.tolist()  # pixels 0 1 2 over 3 4 5
    [0, 1, 3, 2, 4, 5]
    """
    step = steps(rows, cols).ravel()
    cells = np.argsort(step, kind="stable")  # numbered row by row, so rows ascend within a step
    places = np.empty_like(cells)
    places[cells] = np.arange(len(cells))
    return WavefrontOrder(cells, places.reshape(rows, cols), np.bincount(step).tolist())


@lru_cache(maxsize=64)
def diagonals(rows: int, cols: int) -> tuple[Diagonal, ...]:
    """The steps of an image of rows x cols pixels.

    >>> diagonals(2, 3)[0]  # pixel 0; before it the corner, the top edge's first and the left edge's first
    Diagonal(here=4, left=2, top=1, before=1, cells=1)
    """
    inner, framed = wavefront_order(rows, cols), wavefront_order(rows + 1, cols + 1)
    found: list[Diagonal] = []
    first, before = 0, framed.counts[0]  # the corner of the edges is nobody's neighbour
    for step, cells in enumerate(inner.counts):
        row, col = divmod(int(inner.cells[first]), cols)
        here, left, top = (int(framed.places[row + a, col + b]) for a, b in ((1, 1), (1, 0), (0, 1)))
        found.append(Diagonal(here, left, top, before, cells))
        first, before = first + cells, before + framed.counts[step + 1]
    return tuple(found)
