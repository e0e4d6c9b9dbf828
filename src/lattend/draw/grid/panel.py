"""Panel: one grid of cells with its two sides, made from plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.draw.formats.palette import (
    AMOUNTS,
    ATTENDED,
    BOTH,
    EMPTY,
    HERE,
    LEVELS,
    MIXED,
    ONLY_A,
    ONLY_B,
    OWN,
    SHADES,
    SIGNED,
    Look,
)
from lattend.draw.grid.marks import Label, Mark
from lattend.report.numbers import compact

Bools = NDArray[np.bool_]
Cells = NDArray[np.uint8]

SQUARE_LOOKS = (EMPTY, ATTENDED, OWN, HERE)
CLASS_LOOKS = (EMPTY, ONLY_A, ONLY_B, BOTH, MIXED)
_MIXED = CLASS_LOOKS.index(MIXED)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a grid: its label, its length in cells, ticks (place, text) and heavier lines.

    A length of 51.4 says that the last of 52 cells is cut to 0.4.
    """

    label: str
    length: float
    ticks: tuple[tuple[float, str], ...] = ()
    heavy: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Panel:
    """A grid whose cell [i, j] has the look `looks[cells[i, j]]`; look 0 is the empty one.

    `marks` are drawn over it; in a terminal, a label stands in its cell.
    """

    cells: Cells
    looks: tuple[Look, ...]
    rows: Side
    cols: Side
    title: str = ""
    marks: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        self.cells.setflags(write=False)

    def rows_of_looks(self) -> list[list[Look]]:
        """The looks of the cells, row by row."""
        indices: list[list[int]] = self.cells.tolist()
        return [[self.looks[index] for index in row] for row in indices]

    def labels(self) -> dict[tuple[int, int], str]:
        """The words in cells."""
        return {(int(mark.row), int(mark.col)): mark.text for mark in self.marks if isinstance(mark, Label)}

    def merged(self, rows: int, cols: int) -> Panel:
        """The panel with `rows` by `cols` cells made one: shaded by fullness, or by class."""
        height, width = (-(-size // step) for size, step in zip(self.cells.shape, (rows, cols), strict=True))
        parts = [
            [self.cells[i * rows : (i + 1) * rows, j * cols : (j + 1) * cols] for j in range(width)]
            for i in range(height)
        ]
        shares = np.array([look.share for look in self.looks], dtype=float)
        if self.looks in (AMOUNTS, SIGNED):  # steps of numbers, so that the middle one is their mean
            means = np.array([[part.mean() for part in row] for row in parts]).reshape(height, width)
            cells, styles = np.rint(means).astype(np.uint8), self.looks
        elif np.isnan(shares).any():
            only_a, only_b, both, mixed = (
                np.array([[(part == look).any() for part in row] for row in parts]).reshape(height, width)
                for look in (1, 2, 3, _MIXED)
            )
            cells, styles = _classes(only_a | mixed, only_b | mixed, both), self.looks
        else:
            means = np.array([[shares[part].mean() for part in row] for row in parts]).reshape(height, width)
            cells, styles = np.ceil(means * LEVELS - 1e-9).astype(np.uint8), SHADES
        return Panel(cells, styles, _shrunk(self.rows, rows), _shrunk(self.cols, cols), self.title)


def _shrunk(side: Side, step: int) -> Side:
    ticks = tuple((place / step, text) for place, text in side.ticks)
    return Side(side.label, side.length / step, ticks, tuple(place / step for place in side.heavy))


def _classes(only_a: Bools, only_b: Bools, both: Bools) -> Cells:
    """0 for nothing, 1 only A, 2 only B, 3 both, 4 where more than one of these is present."""
    cells = np.select([only_a, only_b, both], [1, 2, 3], 0)
    several = only_a.astype(int) + only_b + both > 1
    return np.where(several, _MIXED, cells).astype(np.uint8)


def squares(attended: Bools, rows: Side, cols: Side, own: Bools | None = None, title: str = "") -> Panel:
    """One cell a pair; `own` says which pairs are the query's own position."""
    cells = attended.astype(np.uint8)
    if own is not None:
        cells[own & attended] = SQUARE_LOOKS.index(OWN)
    return Panel(cells, SQUARE_LOOKS, rows, cols, title)


def neighbourhood(
    attended: Bools, center: tuple[int, int] | None, rows: Side, cols: Side, title: str = ""
) -> Panel:
    """One cell a pixel, the keys of the pixel `center` dark, and the pixel itself told apart."""
    cells = attended.astype(np.uint8)
    if center is not None:
        cells[center] = SQUARE_LOOKS.index(OWN if attended[center] else HERE)
    return Panel(cells, SQUARE_LOOKS, rows, cols, title)


def compared(a: Bools, b: Bools, rows: Side, cols: Side, title: str = "") -> Panel:
    """One cell a pair, of the class only A, only B or both."""
    return Panel(_classes(a & ~b, b & ~a, a & b), CLASS_LOOKS, rows, cols, title)


def tiles(counts: NDArray[Any], areas: NDArray[Any], rows: Side, cols: Side, title: str = "") -> Panel:
    """One cell a tile, shaded by counts / areas: level i of 20 stands for (i - 1)/20 to i/20.

    Integers throughout, so that a single attended pair among 10**24 is still a shade apart from none.
    """
    levels = -(-counts.astype(object) * LEVELS // np.maximum(areas.astype(object), 1))
    return Panel(levels.astype(np.uint8), SHADES, rows, cols, title)


def compared_tiles(
    only_a: NDArray[Any], only_b: NDArray[Any], both: NDArray[Any], rows: Side, cols: Side, title: str = ""
) -> Panel:
    """One cell a tile, by which classes of pairs lie in it; several in one tile have their own look."""
    return Panel(_classes(only_a > 0, only_b > 0, both > 0), CLASS_LOOKS, rows, cols, title)


def cell_side(label: str, length: int, start: int = 0, every: int = 0) -> Side:
    """A side with one cell a position, numbered from `start`; a heavier line after every `every`."""
    step = nice_step(length, 16 if length <= 16 else 8)
    first = -(-start // step) * step
    ticks = tuple((index - start + 0.5, str(index)) for index in range(first, start + length, step))
    return Side(label, length, ticks, tuple(range(every, length, every)) if every else ())


def tile_side(label: str, length: int, tile: int, start: int = 0) -> Side:
    """A side with one cell every `tile` positions; ticks stand at positions, between the cells."""
    step = nice_step(length, 6)
    first = -(-start // step) * step
    ticks = tuple(
        ((index - start) / tile, compact(index)) for index in range(first, start + length + 1, step)
    )
    return Side(label, length / tile, ticks)


def nice_step(length: int, most: int) -> int:
    """The least of 1, 2, 5, 10, 20, 50, ... that cuts `length` into at most `most` steps."""
    step = 1
    while length > most * step:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step
