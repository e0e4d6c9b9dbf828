"""Planes as items of a scene: axes, marks and the legend of their names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from lattend.draw.charts.plane import Arrows, Dots, Mark, Plane, Point, Stroke, holds, inside, legend
from lattend.draw.charts.ticks import round_numbers, tick
from lattend.draw.formats.palette import FAINT_TEXT, FRAME, PAPER, TEXT
from lattend.draw.formats.scene import Item, Line, Path, Rect, Text, text_width

GRID = "#e6e9ed"
LABEL, TICK = 11.0, 9.0
SWATCH = 20.0
Place = tuple[float, float]


class Block:
    """A plane measured before it is placed, as the panels of a picture are."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.x, self.y = plane.ends()
        self.wide, self.high = plane.sides()
        ticks = [max(2, round(length / 42)) for length in (self.wide, self.high)]
        self.ticks = round_numbers(*self.x, ticks[0]), round_numbers(*self.y, ticks[1])
        numbers = max(text_width(tick(place), TICK) for place in self.ticks[1])
        self.left = (LABEL + 6 if plane.up else 0) + numbers + 6
        self.head = (LABEL + 8 if plane.title else 0) + 2
        title = text_width(plane.title, LABEL, bold=True)
        self.width = math.ceil(self.left + max(self.wide + 6, title))
        self.height = math.ceil(self.head + self.high + TICK + 6 + (LABEL + 6 if plane.across else 0))

    def items(self, x: float, y: float) -> Iterator[Item]:
        left, top = x + self.left, y + self.head
        if self.plane.title:
            yield Text(left, y + LABEL, self.plane.title, LABEL, TEXT, bold=True)
        yield from self._axes(x, left, top)
        for mark in self.plane.layers():
            yield from self._mark(mark, left, top)

    def _place(self, point: Point, left: float, top: float) -> Place:
        across = (float(point[0]) - self.x[0]) / (self.x[1] - self.x[0])
        up = (float(point[1]) - self.y[0]) / (self.y[1] - self.y[0])
        return left + self.wide * across, top + self.high * (1 - up)

    def _axes(self, x: float, left: float, top: float) -> Iterator[Item]:
        right, bottom = left + self.wide, top + self.high
        for place in self.ticks[0]:
            at = self._place((place, self.y[0]), left, top)[0]
            yield Line(at, top, at, bottom, GRID, 1)
            yield Text(at, bottom + TICK + 4, tick(place), TICK, FAINT_TEXT, "middle")
        for place in self.ticks[1]:
            at = self._place((self.x[0], place), left, top)[1]
            yield Line(left, at, right, at, GRID, 1)
            yield Text(left - 5, at + 0.35 * TICK, tick(place), TICK, FAINT_TEXT, "end")
        corners = ((left, top), (right, top), (right, bottom), (left, bottom))
        yield Path(corners, FRAME, 0.8, closed=True)
        if self.plane.across:
            at = bottom + TICK + LABEL + 8
            yield Text((left + right) / 2, at, self.plane.across, LABEL, TEXT, "middle")
        if self.plane.up:
            yield Text(x + LABEL, (top + bottom) / 2, self.plane.up, LABEL, TEXT, "middle", turned=True)

    def _mark(self, mark: Mark, left: float, top: float) -> Iterator[Item]:
        match mark:
            case Stroke():
                for part in inside(mark.points, self.x, self.y):
                    places = tuple(self._place(point, left, top) for point in part)
                    yield Path(places, mark.colour, mark.width)
                    if mark.headed:
                        yield from _heads(places, mark.colour, mark.width)
            case Arrows():
                for tail, tip in mark.pairs:
                    if holds(tail, self.x, self.y) and holds(tip, self.x, self.y):
                        ends = self._place(tail, left, top), self._place(tip, left, top)
                        yield from _arrow(*ends, mark.colour, mark.width)
            case Dots():
                shown = [holds(point, self.x, self.y) for point in mark.points]
                places = [self._place(point, left, top) for point in mark.points]
                for place in itertools.compress(places, shown):
                    yield from _dot(place, mark)
                yield from _labels(mark, places, shown)


def names(planes: Sequence[Plane], x: float, y: float, inner: float) -> tuple[list[Item], float]:
    """The names of the marks from y on, wrapped to the width, and where they end."""
    items: list[Item] = []
    at = x
    for name, marks in legend(planes):
        width = SWATCH + 6 + text_width(name, LABEL)
        if at > x and at + width > x + inner:
            at, y = x, y + LABEL + 7
        for mark in marks:
            items += _swatch(mark, at, y + 6)
        items.append(Text(at + SWATCH + 6, y + 10, name, LABEL, TEXT))
        at += width + 16
    return items, y + LABEL + 9 if items else y


def _swatch(mark: Mark, x: float, y: float) -> Iterator[Item]:
    match mark:
        case Stroke():
            yield Line(x, y, x + SWATCH, y, mark.colour, mark.width)
        case Arrows():
            yield from _arrow((x + 1, y), (x + SWATCH - 1, y), mark.colour, mark.width)
        case Dots():
            yield from _dot((x + SWATCH / 2, y), mark)


def _arrow(tail: Place, tip: Place, colour: str, width: float) -> Iterator[Item]:
    length = math.dist(tail, tip)
    if length < 0.5:  # nothing moves here
        yield Rect(tail[0] - width, tail[1] - width, 2 * width, 2 * width, colour)
        return
    size = min(4.2 + width, 0.6 * length)
    back = tuple(b - (b - a) / length * 0.8 * size for a, b in zip(tail, tip, strict=True))
    yield Line(*tail, back[0], back[1], colour, width)
    yield _head(tail, tip, size, colour)


def _head(tail: Place, tip: Place, size: float, colour: str) -> Path:
    angle = math.atan2(tip[1] - tail[1], tip[0] - tail[0])
    turns = angle + 0.4, angle - 0.4
    sides = ((tip[0] - size * math.cos(turn), tip[1] - size * math.sin(turn)) for turn in turns)
    return Path((tip, *sides), fill=colour, closed=True)


def _heads(places: Sequence[Place], colour: str, width: float) -> Iterator[Path]:
    """A head a little past the middle of every stretch that is long enough for one."""
    size = 3.5 + 1.6 * width
    for a, b in itertools.pairwise(places):
        length = math.dist(a, b)
        if length > 2.2 * size:
            along = 0.5 + size / 2 / length
            tip = a[0] + along * (b[0] - a[0]), a[1] + along * (b[1] - a[1])
            yield _head(a, tip, size, colour)


def _dot(place: Place, mark: Dots) -> Iterator[Item]:
    x, y = place
    size = mark.size
    match mark.shape:
        case "dot":
            yield Path(_round(x, y, size), fill=mark.colour, opacity=mark.opacity, closed=True)
        case "ring":
            yield Path(_round(x, y, size), fill=mark.colour, closed=True)
            yield Path(_round(x, y, 0.6 * size), fill=PAPER, closed=True)
        case "cross":
            for sign in (1, -1):
                ends = (x - size, y - sign * size), (x + size, y + sign * size)
                yield Path(ends, mark.colour, max(1.0, 0.45 * size))
        case _:
            points = tuple((x + size * across, y + size * down) for across, down in _CORNERS[mark.shape])
            yield Path(points, fill=mark.colour, opacity=mark.opacity, closed=True)


_CORNERS = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "triangle": ((0, -1.25), (1.1, 0.75), (-1.1, 0.75)),
}


def _round(x: float, y: float, size: float) -> tuple[Place, ...]:
    many = 10 if size < 3 else 24
    turns = (2 * math.pi * (corner + 0.5) / many for corner in range(many))
    return tuple((x + size * math.cos(turn), y + size * math.sin(turn)) for turn in turns)


def _labels(mark: Dots, places: Sequence[Place], shown: Sequence[bool]) -> Iterator[Text]:
    """The words beside their dots, on the side away from the middle of all."""
    if not mark.labels:
        return
    middle = tuple(sum(place[axis] for place in places) / len(places) for axis in (0, 1))
    for place, text, seen in zip(places, mark.labels, shown, strict=True):
        if not seen or not text:
            continue
        away = math.dist(place, middle) or 1.0
        cos, sin = (place[0] - middle[0]) / away, (place[1] - middle[1]) / away
        x = place[0] + (mark.size + 4 + 0.5 * text_width(text, TICK) * abs(cos)) * (cos if away > 1 else 1)
        y = place[1] + (mark.size + 0.7 * TICK) * (sin if away > 1 else -1)
        yield Text(x, y + 0.35 * TICK, text, TICK, TEXT, "middle")
