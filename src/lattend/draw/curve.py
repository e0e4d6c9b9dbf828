"""Curve: numbers against a number, beside the panels of a figure; the upright scale is logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lattend.draw.heat import short
from lattend.draw.palette import FAINT_TEXT, FRAME, TEXT
from lattend.draw.scene import Item, Line, Path, Rect, Text, text_width

COLOURS = ("#e69f00", "#0072b2", "#1c1f26", "#007a5a", "#a04b86")
GRID = "#e6e9ed"
WIDE, HIGH, LABEL, TICK = 250.0, 168.0, 11.0, 9.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """Named lines of points (x, y) with y > 0, points in order of x; `dots` are named places on them."""

    title: str
    across: str
    up: str
    lines: tuple[tuple[str, tuple[Point, ...]], ...]
    dots: tuple[tuple[str, Point], ...] = ()

    def ends(self) -> tuple[float, float, int, int]:
        """The least and greatest x, and the powers of ten below and above every y."""
        points = [point for _, line in self.lines for point in line] + [point for _, point in self.dots]
        low, high = min(x for x, _ in points), max(x for x, _ in points)
        powers = [math.log10(y) for _, y in points]
        bottom, top = math.floor(min(powers)), math.ceil(max(powers))
        return low, high if high > low else low + 1.0, bottom, max(top, bottom + 1)

    def table(self, columns: int) -> list[tuple[str, ...]]:
        """A heading and rows of the numbers at some of the places, for a terminal."""
        places = [x for x, _ in self.lines[0][1]]
        step = max(1, -(-(len(places) - 1) // (columns - 1)))
        shown = range(0, len(places), step)
        head = (self.across, *(short(places[at]) for at in shown))
        return [head, *((name, *(short(line[at][1]) for at in shown)) for name, line in self.lines)]


class Block:
    """A curve measured before it is placed, as the panels of a picture are."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.low, self.high, self.bottom, self.top = curve.ends()
        self.step = max(1, -(-(self.top - self.bottom) // 6))
        powers = range(self.top, self.bottom - 1, -self.step)
        self.ticks = [(power, _power(power)) for power in powers]
        self.left = LABEL + 8 + max(text_width(text, TICK) for _, text in self.ticks) + 6
        self.head = (LABEL + 8 if curve.title else 0) + 6
        names = sum(text_width(name, LABEL) + 30 for name, _ in curve.lines)
        title = text_width(curve.title, LABEL, bold=True)
        self.width = math.ceil(self.left + max(WIDE + 10, title, names))
        self.height = math.ceil(self.head + HIGH + 2 * LABEL + 14 + (LABEL + 8))

    def items(self, x: float, y: float) -> Iterator[Item]:
        left, top = x + self.left, y + self.head
        if self.curve.title:
            yield Text(left, y + LABEL, self.curve.title, LABEL, TEXT, bold=True)
        yield from self._axes(x, left, top)
        at = left
        for place, (name, points) in enumerate(self.curve.lines):
            colour = COLOURS[place % len(COLOURS)]
            thick = 1.6 + 1.6 * (len(self.curve.lines) - 1 - place)  # so that one over another is seen
            yield Path(tuple(self._place(point, left, top) for point in points), colour, thick)
            below = top + HIGH + 2 * LABEL + 22
            yield Line(at, below - 4, at + 14, below - 4, colour, 2.2)
            yield Text(at + 18, below, name, LABEL, TEXT)
            at += text_width(name, LABEL) + 30
        yield from self._dots(left, top)

    def _place(self, point: Point, left: float, top: float) -> Point:
        across = (point[0] - self.low) / (self.high - self.low)
        up = (math.log10(point[1]) - self.bottom) / (self.top - self.bottom)
        return left + WIDE * across, top + HIGH * (1 - up)

    def _axes(self, x: float, left: float, top: float) -> Iterator[Item]:
        for power, text in self.ticks:
            y = self._place((self.low, 10.0**power), left, top)[1]
            yield Line(left, y, left + WIDE, y, GRID, 1)
            yield Text(left - 5, y + 0.35 * TICK, text, TICK, FAINT_TEXT, "end")
        for place in _round(self.low, self.high):
            at = self._place((place, 10.0**self.bottom), left, top)[0]
            yield Line(at, top, at, top + HIGH, GRID, 1)
            yield Text(at, top + HIGH + TICK + 4, short(place), TICK, FAINT_TEXT, "middle")
        yield Line(left, top + HIGH, left + WIDE, top + HIGH, FRAME, 0.8)
        yield Line(left, top, left, top + HIGH, FRAME, 0.8)
        yield Text(x + LABEL, top + HIGH / 2, self.curve.up, LABEL, TEXT, "middle", turned=True)
        yield Text(left + WIDE / 2, top + HIGH + TICK + LABEL + 10, self.curve.across, LABEL, TEXT, "middle")

    def _dots(self, left: float, top: float) -> Iterator[Item]:
        for name, point in self.curve.dots:
            x, y = self._place(point, left, top)
            yield Rect(x - 3, y - 3, 6, 6, TEXT)
            beyond = x + 8 + text_width(name, LABEL) > left + WIDE
            if beyond:  # lines fall, so that there is room below to the left and above to the right
                yield Text(x - 7, y + 13, name, LABEL, TEXT, "end")
            else:
                yield Text(x + 7, y - 5, name, LABEL, TEXT)


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 3 else f"1e{power}".replace("-", "−")


def _round(low: float, high: float) -> Sequence[float]:
    """Round numbers between the two, at most nine."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    for more in (1, 2, 5, 10):
        if (high - low) / (more * step) <= 8:
            step *= more
            break
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]
