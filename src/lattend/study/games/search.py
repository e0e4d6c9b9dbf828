"""Searches in floats where algebra does not answer: for equilibria, and for the least of a function."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lattend.study.exact.numbers import exact

Floats = NDArray[np.float64]

if TYPE_CHECKING:
    from lattend.study.games.game import Game

REACH = 3.0  # starts lie in -3 … 3
MOST_STARTS = 343
FEWER_STARTS = 49  # of a function whose gradients take longer
TURNS = 40
CLOSE, SINGULAR = 1e-9, 1e-6
DENOMINATORS = range(1, 13)  # of fractions that a decimal is tried as


def search(game: Game) -> tuple[list[tuple[Any, ...]], int]:
    """Points where the gradient is 0 to nine places, as simple fractions where that fits; and the starts."""
    many = len(game.names)
    most = MOST_STARTS if game.formula is not None else FEWER_STARTS
    side = max(2, int(most ** (1 / many)))
    starts = np.array(
        list(itertools.islice(itertools.product(np.linspace(-REACH, REACH, side), repeat=many), most))
    )
    found: list[Floats] = []
    with np.errstate(all="ignore"):
        for point in _newton(game.field(), starts, together=game.formula is not None):
            if not any(np.allclose(point, other, atol=1e-6) for other in found):
                found.append(point)
    found.sort(key=lambda point: [round(float(x), 6) for x in point])
    return [tuple(_simple(float(x)) for x in point) for point in found], len(starts)


def least(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a function of one number is least between two ends, and its value there, to about six digits."""
    best = (low, float("inf"))
    for _ in range(6):  # each round looks at 63 places, then about the lowest of them
        gap = (high - low) / 64
        best = min(((low + k * gap, function(low + k * gap)) for k in range(1, 64)), key=lambda one: one[1])
        low, high = best[0] - gap, best[0] + gap
    return best


def _newton(field: Any, starts: Floats, *, together: bool) -> Floats:
    """Where Newton's method ends in -3 … 3, a row each, of those starts from which it does.

    Far out a gradient may fade without ever being 0: a place counts only where curvature holds it.
    """
    points = starts
    for _ in range(TURNS):
        slope, curvature = _derivatives(field, points, together=together)
        fine = np.isfinite(slope).all(axis=1) & np.isfinite(curvature).all(axis=(1, 2))
        fine &= np.abs(points).max(axis=1) < 10 * REACH
        points, slope, curvature = points[fine], slope[fine], curvature[fine]
        points = points - (np.linalg.pinv(curvature) @ slope[:, :, None])[:, :, 0]
    slope, curvature = _derivatives(field, points, together=together)
    held = (np.abs(slope).max(axis=1) < CLOSE) & (np.abs(points).max(axis=1) <= REACH)
    held[held] = np.abs(np.linalg.det(curvature[held])) > SINGULAR
    return points[held]


def _derivatives(field: Any, points: Floats, *, together: bool) -> tuple[Floats, Floats]:
    """Gradients [points, names] and Hessians [points, names, names]; all at once where f is a formula."""
    many, names = points.shape
    if not together:
        slopes = [field.all(point) for point in points]
        seconds = [field.hessian(point) for point in points]
        return np.reshape(slopes, (many, names)), np.reshape(seconds, (many, names, names))
    second = [[np.broadcast_to(x, many) for x in row] for row in field.hessian(points.T)]
    slope = np.array([np.broadcast_to(x, many) for x in field.all(points.T)])
    return slope.T, np.moveaxis(np.array(second, dtype=float), 2, 0)


def _simple(number: float) -> Any:
    """A fraction with a small denominator within nine places, else the decimal itself."""
    for below in DENOMINATORS:
        above = round(number * below)
        if abs(number - above / below) < CLOSE:
            return exact(above) / below
    return exact(number)
