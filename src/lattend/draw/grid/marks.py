"""Marks: shapes and words on a panel, placed in cells: (row, column) from its upper left corner."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lattend.draw.formats.palette import TEXT
from lattend.draw.formats.scene import Item, Path, Text, text_width

Place = tuple[float, float]
CORNERS = 72  # of an ellipse
LARGEST, SMALLEST = 12.0, 4.0  # sizes of a word; what would be smaller is left out


@dataclass(frozen=True, slots=True)
class Shape:
    """An outline where it has a `colour`, an area where it has a `fill`."""

    points: tuple[Place, ...]
    colour: str = ""
    width: float = 1.0
    fill: str = ""
    opacity: float = 1.0
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Label:
    """A word in the middle of a place, as large as `room` cells across allow.

    Words that belong together name the longest of them in `like`, and are of one size.
    """

    row: float
    col: float
    text: str
    colour: str = TEXT
    room: float = 1.0
    bold: bool = False
    like: str = ""


Mark = Shape | Label


def box(
    top: float, left: float, bottom: float, right: float, colour: str, width: float, fill: str = ""
) -> Shape:
    """A rectangle."""
    return Shape(((top, left), (top, right), (bottom, right), (bottom, left)), colour, width, fill)


def ellipse(centre: Place, precision: tuple[float, float, float], level: float) -> tuple[Place, ...]:
    """The places around the centre where a dy² + 2b dy dx + c dx² is `level`, for a positive form.

    >>> [round(y, 9) for y, _ in ellipse((0, 0), (4, 0, 1), 1)[::36]]  # 4 dy² = 1
    [0.5, -0.5]
    """
    a, b, c = precision
    half, turn = math.hypot((a - c) / 2, b), 0.5 * math.atan2(2 * b, a - c)
    long, across = math.sqrt(level / ((a + c) / 2 + half)), math.sqrt(level / ((a + c) / 2 - half))
    cos, sin = math.cos(turn), math.sin(turn)
    points: list[Place] = []
    for corner in range(CORNERS):
        u = long * math.cos(2 * math.pi * corner / CORNERS)
        v = across * math.sin(2 * math.pi * corner / CORNERS)
        points.append((centre[0] + u * cos - v * sin, centre[1] + u * sin + v * cos))
    return tuple(points)


def clipped(points: Sequence[Place], rows: float, cols: float) -> tuple[Place, ...]:
    """The part of a convex area inside a panel of so many rows and columns; empty where none is."""
    corners = list(points)
    for axis, bound, sign in ((0, 0.0, 1), (0, rows, -1), (1, 0.0, 1), (1, cols, -1)):
        kept: list[Place] = []
        for before, corner in zip([corners[-1], *corners[:-1]] if corners else [], corners, strict=True):
            inside, was = sign * (corner[axis] - bound) >= 0, sign * (before[axis] - bound) >= 0
            if inside != was:
                kept.append(_between(before, corner, (bound - before[axis]) / (corner[axis] - before[axis])))
            if inside:
                kept.append(corner)
        corners = kept
    return tuple(corners)


def inside(points: Sequence[Place], rows: float, cols: float) -> Iterator[tuple[Place, ...]]:
    """The parts of a closed line that lie inside such a panel, each as an open line."""
    run: list[Place] = []
    for place in (*points, points[0]):
        if 0 <= place[0] <= rows and 0 <= place[1] <= cols:
            run.append(place)
        else:
            if len(run) > 1:
                yield tuple(run)
            run = []
    if len(run) > 1:
        yield tuple(run)


def _between(a: Place, b: Place, along: float) -> Place:
    return a[0] + along * (b[0] - a[0]), a[1] + along * (b[1] - a[1])


def word_size(label: Label, height: float, width: float) -> float:
    """How large a word is on cells of this size; 0 where there is no room for it."""
    fits = 0.86 * label.room * width / text_width(label.like or label.text, 1.0, label.bold)
    size = min(LARGEST, 0.8 * label.room * height, fits)
    return size if size >= SMALLEST else 0.0


def items(marks: Sequence[Mark], left: float, top: float, height: float, width: float) -> Iterator[Item]:
    """The marks on a panel whose corner and cells these are."""
    for mark in marks:
        if isinstance(mark, Shape):
            points = tuple((left + col * width, top + row * height) for row, col in mark.points)
            yield Path(points, mark.colour, mark.width, mark.fill, mark.opacity, mark.closed)
        else:
            size = word_size(mark, height, width)
            if size:
                x, y = left + mark.col * width, top + mark.row * height + 0.36 * size
                yield Text(x, y, mark.text, size, mark.colour, "middle", mark.bold)
