"""Ranks, solutions, relations and projections of rows: exact for Fractions, by numpy for floats."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[Any]
SMALL = 1e-9  # of the greatest number: float64 below it is taken for 0


def is_exact(rows: Rows) -> bool:
    """Whether these are Fractions."""
    return rows.dtype == object


def with_ones(keys: Rows) -> Rows:
    """The keys with a column of ones: what logits and a common constant can be made of."""
    ones = np.full((len(keys), 1), Fraction(1) if is_exact(keys) else 1.0, dtype=keys.dtype)
    return np.hstack((keys, ones))


def rank(rows: Rows, small: float = SMALL) -> int:
    """How many rows are independent."""
    if is_exact(rows):
        return len(_reduced(rows)[1])
    return int(np.linalg.matrix_rank(rows, rtol=small))


def solve(matrix: Rows, right: Rows) -> Rows:
    """X with matrix @ x = right, which has a solution; of several any one."""
    if not is_exact(matrix):
        return np.linalg.lstsq(matrix, right, rcond=None)[0]
    reduced, pivots = _reduced(np.hstack((matrix, right[:, None])))
    found = np.full(matrix.shape[1], Fraction(0), dtype=object)
    for row, column in enumerate(pivots):
        found[column] = reduced[row, -1]
    return found


def relations(rows: Rows) -> list[Rows]:
    """Whole numbers y with y @ rows = 0, from which all such y follow; rows of Fractions.

    >>> rows = np.array([[Fraction(k), Fraction(1)] for k in (0, 1, 2)])
    >>> [[int(number) for number in y] for y in relations(rows)]  # 1·0 − 2·1 + 1·2 = 0
    [[1, -2, 1]]
    """
    reduced, pivots = _reduced(rows.T)
    found: list[Rows] = []
    for free in sorted(set(range(len(rows))) - set(pivots)):
        y = np.full(len(rows), Fraction(0), dtype=object)
        y[free] = Fraction(1)
        for row, column in enumerate(pivots):
            y[column] = -reduced[row, free]
        found.append(y * math.lcm(*(number.denominator for number in y)))
    return found


def off(points: Rows, rows: Rows, small: float = SMALL) -> Rows:
    """The points less their parts in the span of the rows."""
    if is_exact(points):
        for direction in _orthogonal(rows):
            along = points @ direction / (direction @ direction)
            points = points - along[:, None] * direction
        return points
    basis = span(rows, small)
    return points - points @ basis.T @ basis


def span(rows: Rows, small: float = SMALL) -> Rows:
    """An orthonormal basis of the span of these rows of floats, a row each."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[sizes > small * max(sizes.max(initial=0.0), 1e-300)]


def _orthogonal(rows: Rows) -> list[Rows]:
    """Rows of Fractions made orthogonal one after the other, those that add nothing left out."""
    found: list[Rows] = []
    for row in rows:
        for direction in found:
            row = row - (row @ direction) / (direction @ direction) * direction  # noqa: PLW2901
        if any(row):
            found.append(row)
    return found


def _reduced(rows: Rows) -> tuple[Rows, list[int]]:
    """The reduced row echelon form of Fractions, and its pivot columns."""
    rows, pivots = rows.copy(), list[int]()
    for column in range(rows.shape[1]):
        top = len(pivots)
        pivot = next((row for row in range(top, len(rows)) if rows[row, column]), None)
        if pivot is None:
            continue
        rows[[top, pivot]] = rows[[pivot, top]]
        rows[top] = rows[top] / rows[top, column]
        for row in range(len(rows)):
            if row != top and rows[row, column]:
                rows[row] = rows[row] - rows[row, column] * rows[top]
        pivots.append(column)
    return rows, pivots
