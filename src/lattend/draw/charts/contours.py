"""Contours: where a function given on a grid has one value, as lines, by marching squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.floating[Any]]
Axis = Sequence[float] | Values
Edge = tuple[int, int, bool]  # row and column where it begins, and whether it runs along the row
Place = tuple[float, float]


def contours(xs: Axis, ys: Axis, values: Values, level: float) -> list[list[Place]]:
    """The lines on which values[row, column], given at (xs[column], ys[row]), is `level`; closed ones return.

    Values are taken to run straight along the edges of the grid. Cells with a corner that is not finite have
    no line.

    >>> contours([0, 1], [0, 1], np.array([[0.0, 1.0], [0.0, 1.0]]), 0.25)  # upright at x = 1/4
    [[(0.25, 0.0), (0.25, 1.0)]]
    """
    joined: dict[Edge, list[Edge]] = {}
    for a, b in _segments(values, level):
        joined.setdefault(a, []).append(b)
        joined.setdefault(b, []).append(a)
    return [
        [_place(edge, xs, ys, values, level) for edge in line] for line in _chains(joined) if len(line) > 1
    ]


def _segments(values: Values, level: float) -> Iterator[tuple[Edge, Edge]]:
    """The pairs of edges that a line joins, cell by cell."""
    above = values > level
    corners = above[:-1, :-1], above[:-1, 1:], above[1:, 1:], above[1:, :-1]
    fine = np.isfinite(values)
    whole = fine[:-1, :-1] & fine[:-1, 1:] & fine[1:, 1:] & fine[1:, :-1]
    mixed = ~((corners[0] == corners[1]) & (corners[1] == corners[2]) & (corners[2] == corners[3]))
    for row, col in np.argwhere(mixed & whole).tolist():
        around: list[Edge] = [
            *((row, col, True), (row, col + 1, False)),
            *((row + 1, col, True), (row, col, False)),
        ]
        up = [bool(corner[row, col]) for corner in corners]
        crossed = [edge for at, edge in enumerate(around) if up[at] != up[(at + 1) % 4]]
        if len(crossed) == 4:  # a saddle: its middle says which corners belong together
            middle = values[row : row + 2, col : col + 2].mean() > level
            if middle != up[0]:
                crossed = [crossed[-1], *crossed[:-1]]
            yield crossed[0], crossed[1]
            yield crossed[2], crossed[3]
        else:
            yield crossed[0], crossed[1]


def _chains(joined: dict[Edge, list[Edge]]) -> Iterator[list[Edge]]:
    """Edges one after another: open lines from their ends first, then closed ones."""
    ends = [edge for edge, others in joined.items() if len(others) == 1]
    seen: set[Edge] = set()
    for start in (*ends, *joined):
        if start in seen:
            continue
        line, here = [start], start
        seen.add(start)
        while onward := [edge for edge in joined[here] if edge not in seen]:
            here = onward[0]
            seen.add(here)
            line.append(here)
        closed = len(line) > 2 and start in joined[here]
        yield [*line, start] if closed else line


def _place(edge: Edge, xs: Axis, ys: Axis, values: Values, level: float) -> Place:
    row, col, along = edge
    first, second = float(values[row, col]), float(values[(row, col + 1) if along else (row + 1, col)])
    part = (level - first) / (second - first)
    if along:
        return float(xs[col]) + part * (float(xs[col + 1]) - float(xs[col])), float(ys[row])
    return float(xs[col]), float(ys[row]) + part * (float(ys[row + 1]) - float(ys[row]))
