"""Curve: numbers against a number, beside the panels of a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lattend.draw.charts.heat import short
from lattend.draw.charts.ticks import round_numbers, round_step, tick
from lattend.draw.formats.palette import FAINT_TEXT, FRAME, TEXT
from lattend.draw.formats.scene import Item, Line, Path, Rect, Text, text_width

COLOURS = ("#e69f00", "#0072b2", "#1c1f26", "#007a5a", "#a04b86", "#56b4e9", "#d55e00", "#8c96a3")
GRID = "#e6e9ed"
WIDE, HIGH, LABEL, TICK = 250.0, 168.0, 11.0, 9.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """Named lines of points (x, y), points in order of x; `dots` are named places on them.

    All lines have the same x. The upright scale is logarithmic, for y > 0, unless `log` is off.
    """

    title: str
    across: str
    up: str
    lines: tuple[tuple[str, tuple[Point, ...]], ...]
    dots: tuple[tuple[str, Point], ...] = ()
    log: bool = True

    def ends(self) -> tuple[float, float, float, float]:
        """The least and greatest x, and heights below and above every y: on a log scale powers of ten."""
        points = [point for _, line in self.lines for point in line] + [point for _, point in self.dots]
        low, high = min(x for x, _ in points), max(x for x, _ in points)
        heights = [self.height(y) for _, y in points]
        bottom, top = min(heights), max(heights)
        step = 1.0 if self.log else round_step(bottom, top)
        bottom, top = step * math.floor(bottom / step + 1e-9), step * math.ceil(top / step - 1e-9)
        return low, high if high > low else low + 1.0, bottom, max(top, bottom + step)

    def height(self, y: float) -> float:
        """Where y stands on the upright scale."""
        return math.log10(y) if self.log else y

    def ticks(self) -> list[tuple[float, str]]:
        """Heights with their names, from the top."""
        _, _, bottom, top = self.ends()
        if not self.log:
            return [(place, tick(place)) for place in reversed(round_numbers(bottom, top))]
        step = max(1, -(-int(top - bottom) // 6))
        return [(power, _power(power)) for power in range(int(top), int(bottom) - 1, -step)]

    def places(self) -> list[float]:
        """The ticks across; whole numbers where every x is one, as there is no epoch 1.5."""
        low, high, _, _ = self.ends()
        whole = all(x == round(x) for _, line in self.lines for x, _ in line)
        found = round_numbers(low, high)
        return [place for place in found if abs(place - round(place)) < 1e-9] if whole else found

    def table(self, columns: int) -> list[tuple[str, ...]]:
        """A heading and rows of the numbers at some of the places, for a terminal."""
        places = [x for x, _ in self.lines[0][1]]
        step = max(1, -(-(len(places) - 1) // (columns - 1)))
        shown = range(0, len(places), step)
        head = (self.across, *(tick(x) if x == round(x) else short(x) for x in (places[at] for at in shown)))
        return [head, *((name, *(short(line[at][1]) for at in shown)) for name, line in self.lines)]


class Block:
    """A curve measured before it is placed, as the panels of a picture are."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.low, self.high, self.bottom, self.top = curve.ends()
        self.ticks = curve.ticks()
        self.left = LABEL + 8 + max(text_width(text, TICK) for _, text in self.ticks) + 6
        self.head = (LABEL + 8 if curve.title else 0) + 6
        self.names, rows, wide = self._legend()
        title = text_width(curve.title, LABEL, bold=True)
        self.width = math.ceil(self.left + max(WIDE + 10, title, wide))
        self.height = math.ceil(self.head + HIGH + 2 * LABEL + 14 + rows * (LABEL + 8))

    def items(self, x: float, y: float) -> Iterator[Item]:
        left, top = x + self.left, y + self.head
        if self.curve.title:
            yield Text(left, y + LABEL, self.curve.title, LABEL, TEXT, bold=True)
        yield from self._axes(x, left, top)
        last = len(self.curve.lines) - 1
        for place, (name, points) in enumerate(self.curve.lines):
            colour = COLOURS[place % len(COLOURS)]
            thick = 1.6 + min(1.6, 3.2 / max(1, last)) * (last - place)  # so that one over another is seen
            yield Path(tuple(self._place(point, left, top) for point in points), colour, thick)
            across, row = self.names[place]
            at, below = left + across, top + HIGH + 2 * LABEL + 22 + row * (LABEL + 8)
            yield Line(at, below - 4, at + 14, below - 4, colour, 2.2)
            yield Text(at + 18, below, name, LABEL, TEXT)
        yield from self._dots(left, top)

    def _legend(self) -> tuple[list[tuple[float, int]], int, float]:
        """Where each name stands, across and in which row, how many rows there are, and how wide they get."""
        places: list[tuple[float, int]] = []
        at, row, widest = 0.0, 0, 0.0
        for name, _ in self.curve.lines:
            wide = text_width(name, LABEL) + 30
            if at and at + wide > WIDE + 60:
                at, row = 0.0, row + 1
            places.append((at, row))
            at += wide
            widest = max(widest, at)
        return places, row + 1, widest

    def _place(self, point: Point, left: float, top: float) -> Point:
        return self._at(point[0], self.curve.height(point[1]), left, top)

    def _at(self, x: float, height: float, left: float, top: float) -> Point:
        across = (x - self.low) / (self.high - self.low)
        up = (height - self.bottom) / (self.top - self.bottom)
        return left + WIDE * across, top + HIGH * (1 - up)

    def _axes(self, x: float, left: float, top: float) -> Iterator[Item]:
        for height, text in self.ticks:
            y = self._at(self.low, height, left, top)[1]
            yield Line(left, y, left + WIDE, y, GRID, 1)
            yield Text(left - 5, y + 0.35 * TICK, text, TICK, FAINT_TEXT, "end")
        for place in self.curve.places():
            at = self._at(place, self.bottom, left, top)[0]
            yield Line(at, top, at, top + HIGH, GRID, 1)
            yield Text(at, top + HIGH + TICK + 4, tick(place), TICK, FAINT_TEXT, "middle")
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
                below = y + 13 < top + HIGH
                yield Text(x - 7, y + 13 if below else y - 7, name, LABEL, TEXT, "end")
            else:
                yield Text(x + 7, y - 5, name, LABEL, TEXT)


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 3 else f"1e{power}".replace("-", "−")
