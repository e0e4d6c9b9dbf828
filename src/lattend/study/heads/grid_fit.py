"""How near the centres of heads come to the taps of a K × K kernel: the cheapest assignment, and chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, TensorError
from lattend.nn.attention.gaussian_heads import kernel_heads

Floats = NDArray[np.float64]
DRAWS = 199  # of random directions


@dataclass(frozen=True)
class GridFit:
    """Each head's tap (dy, dx), no tap twice, so that the sum of squared distances is the least there is.

    `distance` is their root mean square, in positions. `chance` is that of heads as far from the query in
    random directions, the median of 199 draws, and `nearer` the share of draws that come at least as near.
    """

    taps: tuple[tuple[float, float], ...]
    distance: float
    chance: float
    nearer: float


def grid_distance(centres: Sequence[Any] | Floats, dilation: int = 1) -> float:
    """The root mean square distance from K² centres to the taps of a K × K kernel, each to one of its own.

    >>> from lattend.nn.attention.gaussian_heads import kernel_heads
    >>> taps = [head.centre for head in kernel_heads(2)]  # (0, 0), (0, 1), (1, 0), (1, 1)
    >>> grid_distance([(y + 0.3, x - 0.4) for y, x in reversed(taps)])  # each is √(0.3² + 0.4²) off
    0.5
    """
    places, taps = _places(centres, dilation)
    return _distance(places, taps)


def fit_grid(centres: Sequence[Any] | Floats, dilation: int = 1, seed: int = 0) -> GridFit:
    """The taps of a K × K kernel assigned to K² centres, how far these are, and how far by chance.

    >>> fit = fit_grid([(0.1, 0), (0, 1), (1, 0), (1, 1)])
    >>> fit.taps, fit.distance  # √(0.1²/4)
    (((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)), 0.05)
    """
    places, taps = _places(centres, dilation)
    own = assign(_squares(places, taps))
    distance = _distance(places, taps)
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, (DRAWS, len(places)))
    radii = np.hypot(*places.T)
    drawn = np.stack([radii * np.sin(angles), radii * np.cos(angles)], -1)
    chances = np.array([_distance(one, taps) for one in drawn])
    return GridFit(
        tuple((float(y), float(x)) for y, x in taps[own]),
        distance,
        float(np.median(chances)),
        float((chances <= distance).mean()),
    )


def assign(costs: Floats) -> NDArray[np.int64]:
    """The column of each row, no column twice, with the least sum of costs [n, n] (Kuhn and Munkres).

    Rows are added one by one; each takes the cheapest chain of changes, found as a shortest path in costs
    that the potentials of rows and columns keep from being negative.

    >>> assign(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()  # 2 + 0 beats 1 + 3
    [1, 0]
    """
    n = len(costs)
    row_of = np.full(n + 1, -1)  # of each column; the last column stands for the row that is added
    rows, columns = np.zeros(n), np.zeros(n + 1)  # potentials
    for added in range(n):
        row_of[n], column = added, n
        far, before, done = np.full(n, np.inf), np.full(n, n), np.zeros(n + 1, bool)
        while row_of[column] >= 0:
            done[column] = True
            row = row_of[column]
            reduced = costs[row] - rows[row] - columns[:n]
            closer = (reduced < far) & ~done[:n]
            far[closer], before[closer] = reduced[closer], column
            following = int(np.argmin(np.where(done[:n], np.inf, far)))
            step = far[following]
            rows[row_of[done]] += step
            columns[done] -= step
            far[~done[:n]] -= step
            column = following
        while column != n:
            row_of[column], column = row_of[before[column]], before[column]
    column_of = np.empty(n, np.int64)
    column_of[row_of[:n]] = np.arange(n)
    return column_of


def _places(centres: Sequence[Any] | Floats, dilation: int) -> tuple[Floats, Floats]:
    """The centres [K², 2] and the taps of the kernel that has as many."""
    places = np.asarray(centres, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 2:
        raise TensorError(f"centres are [heads, 2], got {list(places.shape)}")
    if not np.isfinite(places).all():
        raise DomainError("centres must be finite")
    side = round(len(places) ** 0.5)
    if side * side != len(places) or not side:
        raise DomainError(f"a K × K grid has K² heads, as 4 or 9, not {len(places)}")
    return places, np.array([head.centre for head in kernel_heads(side, dilation)], dtype=np.float64)


def _squares(places: Floats, taps: Floats) -> Floats:
    return np.square(places[:, None] - taps).sum(-1)


def _distance(places: Floats, taps: Floats) -> float:
    squares = _squares(places, taps)
    return float(np.sqrt(squares[np.arange(len(places)), assign(squares)].mean()))
