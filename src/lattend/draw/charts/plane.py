"""Plane: lines, dots and arrows placed by two numbers, beside the panels of a figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError

Point = Sequence[float]
Points = Sequence[Point] | NDArray[np.floating[Any]]
Ends = tuple[float, float]
Shape = Literal["dot", "ring", "square", "diamond", "triangle", "cross"]

# Told apart by people who see few colours, and with their shapes in grey as well
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00"),
    *("#56b4e9", "#1c1f26", "#e69f00", "#7a4fb5", "#7d8590"),
)
SHAPES: tuple[Shape, ...] = ("dot", "square", "triangle", "diamond", "ring", "cross")
SIDE = 252.0  # length of the longer side
FLATTEST = 3.0  # the longer side over the shorter one, where both have one unit


@dataclass(frozen=True)
class Stroke:
    """A line through points; `headed` has an arrow head on every stretch, `under` lies below all else."""

    points: Points
    name: str = ""
    colour: str = COLOURS[0]
    width: float = 1.6
    headed: bool = False
    under: bool = False


@dataclass(frozen=True)
class Dots:
    """Points of one look, with words beside them where `labels` has some; `glyph` stands in a terminal."""

    points: Points
    name: str = ""
    colour: str = COLOURS[0]
    size: float = 2.6
    shape: Shape = "dot"
    labels: Sequence[str] = ()
    opacity: float = 1.0
    glyph: str = ""


@dataclass(frozen=True)
class Arrows:
    """Arrows of one look, each from a tail to a tip."""

    pairs: Sequence[tuple[Point, Point]]
    name: str = ""
    colour: str = "#8c96a3"
    width: float = 1.0


Mark = Stroke | Dots | Arrows


@dataclass(frozen=True)
class Plane:
    """Marks between the ends of x and y, which hold every point and a margin where none are given.

    Marks with a name stand in the legend, those with the same name as one. `equal` gives both axes one unit;
    what lies outside is cut off.

    >>> Plane("A step", lines=(Stroke(((0, 0), (2, 1))),)).ends()  # a margin of 2 * 0.06 on each side
    ((-0.12, 2.12), (-0.12, 1.12))
    """

    title: str = ""
    across: str = "x"
    up: str = "y"
    x: Ends | None = None
    y: Ends | None = None
    lines: tuple[Stroke, ...] = ()
    dots: tuple[Dots, ...] = ()
    arrows: tuple[Arrows, ...] = ()
    equal: bool = True
    side: float = SIDE

    def __post_init__(self) -> None:
        for name, ends in (("x", self.x), ("y", self.y)):
            if ends is not None and not (math.isfinite(ends[1] - ends[0]) and ends[0] < ends[1]):
                raise DomainError(f"{name} of a plane is (least, greatest), not {tuple(ends)}")
        for point in self._points():
            if not (math.isfinite(point[0]) and math.isfinite(point[1])):
                raise DomainError(
                    f"a plane needs finite numbers, and ({point[0]}, {point[1]}) is among them; leave it out"
                )

    def _points(self) -> Iterator[Point]:
        for mark in (*self.lines, *self.dots):
            yield from mark.points
        for mark in self.arrows:
            yield from itertools.chain.from_iterable(mark.pairs)

    def ends(self) -> tuple[Ends, Ends]:
        """The least and greatest x and y that are shown."""
        points = list(self._points()) or [(0.0, 0.0)]
        most = max(_span(point[axis] for point in points) for axis in (0, 1))
        found = [
            given or _around((point[axis] for point in points), most if self.equal else 0.0)
            for axis, given in enumerate((self.x, self.y))
        ]
        if self.equal:
            least = max(high - low for low, high in found) / FLATTEST
            found = [_widened(ends, least) for ends in found]
        return found[0], found[1]

    def sides(self) -> tuple[float, float]:
        """Width and height in units of the scene."""
        (left, right), (bottom, top) = self.ends()
        if not self.equal:
            return self.side, self.side
        longer = max(right - left, top - bottom)
        return self.side * (right - left) / longer, self.side * (top - bottom) / longer

    def layers(self) -> tuple[Mark, ...]:
        """The marks in painting order."""
        under = tuple(line for line in self.lines if line.under)
        over = tuple(line for line in self.lines if not line.under)
        return (*under, *self.arrows, *over, *self.dots)


def classes(
    points: Points, labels: Sequence[Any], size: float = 2.4, opacity: float = 0.85
) -> tuple[Dots, ...]:
    """The points of each class as Dots of a colour and a shape of its own, classes in their order.

    >>> [(dots.name, len(dots.points)) for dots in classes([(0, 0), (1, 1), (2, 0)], [1, 0, 1])]
    [('0', 1), ('1', 2)]
    """
    names = sorted(set(labels))
    return tuple(
        Dots(
            [point for point, label in zip(points, labels, strict=True) if label == name],
            str(name),
            COLOURS[place % len(COLOURS)],
            size,
            SHAPES[place % len(SHAPES)],
            opacity=opacity,
            glyph=str(name)[:1],
        )
        for place, name in enumerate(names)
    )


def legend(planes: Sequence[Plane]) -> list[tuple[str, tuple[Mark, ...]]]:
    """The names of the marks and one mark of each look that has them; marks of nothing are left out."""
    found: dict[str, list[Mark]] = {}
    for mark in itertools.chain.from_iterable(plane.layers() for plane in planes):
        many = len(mark.pairs if isinstance(mark, Arrows) else mark.points)
        same = found.setdefault(mark.name, []) if mark.name and many else []
        if not any(type(mark) is type(other) for other in same):
            same.append(mark)
    return [(name, tuple(marks)) for name, marks in found.items()]


def inside(points: Points, x: Ends, y: Ends) -> Iterator[list[tuple[float, float]]]:
    """The parts of an open line between these ends.

    >>> list(inside([(-1, 0), (1, 2)], (0, 5), (0, 5)))  # enters at x = 0, half-way, where y = 1
    [[(0.0, 1.0), (1.0, 2.0)]]
    """
    run: list[tuple[float, float]] = []
    for a, b in itertools.pairwise(points):
        cut = _cut(a, b, x, y)
        if cut is None or (run and run[-1] != cut[0]):
            if run:
                yield run
            run = []
        if cut is not None:
            run = [*run, cut[1]] if run else list(cut)
    if run:
        yield run


def holds(point: Point, x: Ends, y: Ends) -> bool:
    """Whether the point lies between these ends."""
    return x[0] <= point[0] <= x[1] and y[0] <= point[1] <= y[1]


def _cut(a: Point, b: Point, x: Ends, y: Ends) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """The stretch of a to b between the ends, None where there is none."""
    first, last = 0.0, 1.0
    for axis, (low, high) in enumerate((x, y)):
        step = float(b[axis]) - float(a[axis])
        if step == 0:
            if not low <= a[axis] <= high:
                return None
            continue
        enters, leaves = sorted(((low - float(a[axis])) / step, (high - float(a[axis])) / step))
        first, last = max(first, enters), min(last, leaves)
    if first >= last:
        return None
    start, stop = (
        tuple(float(a[axis]) + at * (float(b[axis]) - float(a[axis])) for axis in (0, 1))
        for at in (first, last)
    )
    # A corner inside stays the number it is, so that stretches meet in it
    ends = start if first else (float(a[0]), float(a[1])), stop if last < 1 else (float(b[0]), float(b[1]))
    return (ends[0][0], ends[0][1]), (ends[1][0], ends[1][1])


def _span(numbers: Iterable[float]) -> float:
    found = [float(number) for number in numbers]
    return max(found) - min(found)


def _around(numbers: Iterable[float], most: float) -> Ends:
    """The least and the greatest, with 6% of the longer side on either side."""
    found = [float(number) for number in numbers]
    margin = 0.06 * max(max(found) - min(found), most) or 1.0
    return min(found) - margin, max(found) + margin


def _widened(ends: Ends, least: float) -> Ends:
    more = max(0.0, least - (ends[1] - ends[0])) / 2
    return ends[0] - more, ends[1] + more
