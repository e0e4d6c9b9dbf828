"""Cones of directions: which key wins all weight as a query of two numbers grows, in any direction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from lattend.errors import TensorError
from lattend.study.steering.numbers import NumberArray, check_scale, read

Point = tuple[Any, Any]  # floats or Fractions


class WinningCone(NamedTuple):
    """The directions in which these keys win: those of one corner of the hull, which are equal.

    `start` and `end` are its sides, unit vectors, counter-clockwise; on a side the keys of an edge share.
    Both are None where all keys are equal, and every direction is as good.
    """

    keys: tuple[int, ...]
    start: tuple[float, float] | None
    end: tuple[float, float] | None


def winning_cones(keys: Any, scale: float | str = 1) -> tuple[WinningCone, ...]:
    """The cone of every corner of the hull of `keys` [m, 2], counter-clockwise; keys inside never win.

    A query in the cone has its greatest logit on that corner, however long it is.

    >>> cones = winning_cones([[0, 0], [2, 0], [0, 2], [0.5, 0.5]])  # the last is inside
    >>> [cone.keys for cone in cones], cones[0].end  # key 0 wins down to the direction (0, -1)
    ([(0,), (1,), (2,)], (0.0, -1.0))
    """
    rows = read("keys", keys)
    if rows.floats.ndim != 2 or rows.floats.shape[1] != 2:
        raise TensorError(f"keys has shape {rows.floats.shape}; cones are drawn for keys of two numbers")
    sign = math.copysign(1.0, check_scale(scale, 2))
    points = _points(rows)
    corners = hull(points)
    if len(corners) == 1:
        return (WinningCone(tuple(range(len(points))), None, None),)
    normals = [
        _normal(corner, after, sign) for corner, after in zip(corners, corners[1:] + corners[:1], strict=True)
    ]
    return tuple(
        WinningCone(
            tuple(key for key, point in enumerate(points) if point == corner), normals[at - 1], normals[at]
        )
        for at, corner in enumerate(corners)
    )


def _points(rows: NumberArray) -> list[Point]:
    numbers = rows.floats if rows.fractions is None else rows.fractions
    return [(row[0], row[1]) for row in numbers.tolist()]


def _normal(corner: Point, after: Point, sign: float) -> tuple[float, float]:
    """The unit vector out of the hull at the edge from a corner to the one after it."""
    across, up = float(after[0] - corner[0]), float(after[1] - corner[1])
    length = math.hypot(across, up)
    return sign * up / length, -sign * across / length


def hull(points: Iterable[Point]) -> list[Point]:
    """The corners of the convex hull, counter-clockwise from the leftmost: the lower side, then the upper.

    >>> hull([(0, 0), (1, 1), (2, 0), (1, 3), (1, 0)])
    [(0, 0), (2, 0), (1, 3)]
    """
    ordered = sorted(set(points))
    if len(ordered) < 2:
        return ordered

    def side(along: list[Point]) -> list[Point]:
        corners: list[Point] = []
        for point in along:
            while len(corners) > 1 and _turn(corners[-2], corners[-1], point) <= 0:
                corners.pop()
            corners.append(point)
        return corners[:-1]

    return side(ordered) + side(ordered[::-1])


def _turn(a: Point, b: Point, c: Point) -> Any:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
