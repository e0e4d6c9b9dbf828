"""Charts as characters: lines in braille, eight points a character, dots and arrows as signs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lattend.draw.charts.chart import (
    Arrows,
    Base,
    Chart,
    Dots,
    Ends,
    Point,
    Series,
    Shape,
    Stroke,
    legend,
    round_numbers,
    tick,
)
from lattend.draw.formats.scene import spelt
from lattend.report.table import wrap_text

UNITS = 11.5  # of a chart that are one line of characters
BRAILLE = 0x2800
# Bits of a braille character, by row and column of its point
BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
TURNS, PLAIN_TURNS = "→↗↑↖←↙↓↘", ">/^\\</v\\"
GLYPHS: dict[Shape, str] = {
    **{"dot": "●", "ring": "○", "square": "■"},
    **{"diamond": "◆", "triangle": "▲", "cross": "×"},
}
PLAIN: dict[Shape, str] = {
    **{"dot": "*", "ring": "o", "square": "#"},
    **{"diamond": "%", "triangle": "^", "cross": "x"},
}
LINE, PLAIN_LINE, PLAIN_POINT = "⠤", "+", "."
CONTOURS = "-=+~:%"
FINE = 2.0  # dots smaller than this are points
RESET = "\x1b[0m"
Cell = tuple[int, int]  # row, column


def fine(series: Dots) -> bool:
    """Whether the dots are so small that each is one point of braille."""
    return series.size < FINE and not series.glyph and not series.labels


@dataclass
class Pen:
    """How signs are written: in colour or not, in Unicode or ASCII."""

    colour: bool
    encoding: str
    letters: Mapping[str, str] = field(default_factory=dict[str, str])  # which tell lines of a chart apart
    contours: Mapping[str, str] = field(default_factory=dict[str, str])  # signs of lines under all else

    def __post_init__(self) -> None:
        signs = LINE + TURNS + "".join(GLYPHS.values())
        self.plain = spelt(signs, self.encoding) != signs

    def sign(self, series: Series, way: int = 0) -> str:
        """The character of a series: of an arrow that turns by `way` eighths, of the dot with this number."""
        match series:
            case Stroke():
                usual = LINE if not self.plain else PLAIN_POINT if series.under else PLAIN_LINE
                return self.contours.get(series.name, usual)
            case Arrows():
                return (PLAIN_TURNS if self.plain else TURNS)[way % 8]
            case Dots():
                label = series.labels[way] if series.labels else ""
                usual = (PLAIN if self.plain else GLYPHS)[series.shape]
                if fine(series):
                    return PLAIN_POINT if self.plain else "⠂"
                return series.glyph or (label if len(label) == 1 and label.isascii() else usual)

    def tinted(self, text: str, colour: str) -> str:
        return f"\x1b[38;5;{ansi(colour)}m{text}{RESET}" if self.colour and colour else text


@dataclass
class _Canvas:
    """Characters and their colours; points of lines gather in braille until a sign stands there."""

    wide: int
    high: int
    pen: Pen
    signs: dict[Cell, tuple[str, str]] = field(default_factory=dict[Cell, tuple[str, str]])
    bits: dict[Cell, int] = field(default_factory=dict[Cell, int])

    def line(self, places: Sequence[tuple[float, float]], series: Stroke) -> None:
        """The points nearest to a line; of one that lies under others two in five, in every direction."""
        for a, b in pairwise(places):
            steps = max(1, math.ceil(max(abs(b[0] - a[0]), abs(b[1] - a[1]))))
            for step in range(steps + 1):
                x, y = (round(p + (q - p) * step / steps) for p, q in zip(a, b, strict=True))
                if series.name in self.pen.contours:
                    if (y // 4 + 2 * (x // 2)) % 3 == 0:  # a third of the characters it crosses
                        self.sign((x, y), self.pen.sign(series), series.colour)
                elif not series.under or (x + 2 * y) % 5 in (0, 2):
                    self.point((x, y), self.pen.sign(series), series.colour)

    def point(self, place: tuple[float, float], plain: str, colour: str) -> None:
        """The braille point nearest to the place, or the plain sign."""
        x, y = min(round(place[0]), 2 * self.wide - 1), min(round(place[1]), 4 * self.high - 1)
        cell = y // 4, x // 2
        self.bits[cell] = self.bits.get(cell, 0) | BITS[y % 4][x % 2]
        self.signs[cell] = plain if self.pen.plain else chr(BRAILLE + self.bits[cell]), colour

    def sign(self, place: tuple[float, float], text: str, colour: str) -> None:
        cell = min(self.high - 1, int(place[1] / 4)), min(self.wide - 1, int(place[0] / 2))
        self.bits.pop(cell, None)
        self.signs[cell] = text, colour

    def lines(self) -> Iterator[str]:
        for row in range(self.high):
            cells = (self.signs.get((row, col), (" ", "")) for col in range(self.wide))
            yield "".join(self.pen.tinted(*cell) for cell in cells)


class ChartText:
    """One chart as lines of one printed width."""

    def __init__(self, chart: Chart, width: int, pen: Pen) -> None:
        self.chart = chart
        x, y = chart.ends()
        self.x, self.y = _scaled(x, chart.log_x), _scaled(y, chart.log_y)
        wide, high = chart.sides()
        rows = max(4, round(high / UNITS))
        ticks = _ticks(self.y, chart.log_y, max(2, rows // 5))
        if chart.down:
            ticks = [(place, tick(0.0 - place)) for place, _ in ticks]
        margin = max(len(text) for _, text in ticks) + 1
        cols = max(8, min(width - margin - 1, round(2 * wide / UNITS)))
        if chart.equal:
            rows = max(4, min(rows, round(cols * high / wide / 2)))
        self.canvas = _Canvas(cols, rows, pen)
        for series in chart.layers():
            self._draw(series, pen)
        for line in chart.lines:
            self._name(line, pen)
        sides = ((chart.up, "down" if chart.down else "up"), (chart.across, "across"))
        titles = chart.title, ", ".join(f"{name} {way}" for name, way in sides if name)
        head = [line for part in titles for line in wrap_text(spelt(part, pen.encoding), width)]
        names = {min(rows - 1, int(self._place((self.x[0], at))[1] / 4)): text for at, text in ticks}
        self.width = max(margin + cols + 1, *map(len, head), 0)
        rest = " " * (self.width - margin - cols - 1)
        bar = "|" if pen.plain else "│"
        self.lines = [line.ljust(self.width) for line in head]
        for row, line in enumerate(self.canvas.lines()):
            name = spelt(names.get(row, ""), pen.encoding)
            self.lines.append(f"{name:>{margin - 1}} {bar}{line}{rest}")
        corner = "+" if pen.plain else "└"
        self.lines.append((" " * margin + corner + ("-" if pen.plain else "─") * cols).ljust(self.width))
        self.lines.append(spelt((" " * (margin + 1) + self._below()).ljust(self.width), pen.encoding))

    def _at(self, point: Point) -> tuple[float, float]:
        """The point in numbers of the scales: logarithms where they are logarithmic."""
        return _scaled(point, self.chart.log_x)[0], _scaled(point, self.chart.log_y)[1]

    def _place(self, point: Point) -> tuple[float, float]:
        """Where a point of the scales is, in points of braille from the upper left corner."""
        across = (float(point[0]) - self.x[0]) / (self.x[1] - self.x[0])
        up = (float(point[1]) - self.y[0]) / (self.y[1] - self.y[0])
        return across * (2 * self.canvas.wide - 1), (1 - up) * (4 * self.canvas.high - 1)

    def _draw(self, series: Series, pen: Pen) -> None:
        match series:
            case Stroke():
                for a, b in pairwise(map(self._at, series.points)):
                    part = _cut(a, b, self.x, self.y)
                    self.canvas.line([self._place(point) for point in part], series)
            case Arrows():
                for pair in series.pairs:
                    tail, tip = map(self._at, pair)
                    if self._holds(tail) and self._holds(tip):
                        a, b = self._place(tail), self._place(tip)
                        way = round(math.atan2(a[1] - b[1], b[0] - a[0]) / (math.pi / 4))
                        middle = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
                        still = "." if pen.plain else "·"
                        sign = pen.sign(series, way) if math.dist(a, b) > 0.1 else still
                        self.canvas.sign(middle, sign, series.colour)
            case Dots():
                for number, point in enumerate(map(self._at, series.points)):
                    if not self._holds(point):
                        continue
                    if fine(series):
                        self.canvas.point(self._place(point), pen.sign(series), series.colour)
                    else:
                        self.canvas.sign(self._place(point), pen.sign(series, number), series.colour)

    def _name(self, series: Stroke, pen: Pen) -> None:
        """The letter of a line on it, that of the next line further on."""
        letter = pen.letters.get(series.name)
        points = [at for at in map(self._at, series.points) if self._holds(at)]
        if letter and points and not self.chart.equal:
            along = (list(pen.letters).index(series.name) + 1) / (len(pen.letters) + 1)
            self.canvas.sign(self._place(points[int(along * len(points))]), letter, series.colour)

    def _holds(self, point: Point) -> bool:
        return self.x[0] <= point[0] <= self.x[1] and self.y[0] <= point[1] <= self.y[1]

    def _below(self) -> str:
        """The numbers under their columns, those that would touch a neighbour left out."""
        line = ""
        for at, text in _ticks(self.x, self.chart.log_x, max(2, self.canvas.wide // 8)):
            start = max(0, int(self._place((at, self.y[0]))[0] / 2) - len(text) // 2)
            start = min(start, self.canvas.wide - len(text))
            if start >= 0 and (not line or len(line) < start):
                line = line.ljust(start) + text
        return line


def _scaled(numbers: Point, base: Base) -> tuple[float, float]:
    """Both numbers, or their logarithms."""
    first, second = (math.log(number, base) if base and number > 0 else float(number) for number in numbers)
    return first, second


def _ticks(ends: Ends, base: Base, most: int) -> list[tuple[float, str]]:
    """Places on a scale and the numbers there; of a logarithmic one whole powers."""
    if not base:
        return [(place, tick(place)) for place in round_numbers(*ends, most)]
    low, high = round(ends[0]), round(ends[1])
    powers = range(low, high + 1, max(1, -(-(high - low) // most)))
    return [(float(power), tick(float(base) ** power)) for power in powers]


def _cut(a: Point, b: Point, x: Ends, y: Ends) -> tuple[Point, ...]:
    """The ends of the stretch of a to b that lies between these ends; none where there is none."""
    first, last = 0.0, 1.0
    for axis, (low, high) in enumerate((x, y)):
        step = b[axis] - a[axis]
        if step == 0:
            if not low <= a[axis] <= high:
                return ()
            continue
        enters, leaves = sorted(((low - a[axis]) / step, (high - a[axis]) / step))
        first, last = max(first, enters), min(last, leaves)
    if first > last:
        return ()
    return tuple([p + at * (q - p) for p, q in zip(a, b, strict=True)] for at in (first, last))


def letters(charts: Sequence[Chart]) -> dict[str, str]:
    """A letter for each named line of the charts that are no maps, where there are several."""
    curves = legend([replace(chart, dots=(), arrows=()) for chart in charts if not chart.equal])
    return {name: chr(ord("a") + at % 26) for at, (name, _) in enumerate(curves)} if len(curves) > 1 else {}


def contours(charts: Sequence[Chart]) -> dict[str, str]:
    """A sign for each named line that lies under all else, where there are several: told without colour."""
    names = dict.fromkeys(line.name for chart in charts for line in chart.lines if line.under and line.name)
    return dict(zip(names, itertools.cycle(CONTOURS))) if len(names) > 1 else {}


def legend_lines(charts: Sequence[Chart], width: int, pen: Pen) -> list[str]:
    """The names of the series with their signs, as many a line as fit."""
    lines, used = [""], 0
    for name, kinds in legend(charts):
        text = spelt(name, pen.encoding)
        line = pen.letters.get(name)
        signs = [(_key(series, line, pen), series.colour) for series in kinds]
        length = sum(len(sign) for sign, _ in signs) + 1 + len(text)
        if used and used + 3 + length > width:
            lines.append("")
            used = 0
        shown = "".join(pen.tinted(*sign) for sign in signs)
        lines[-1] += ("   " if used else "") + f"{shown} {text}"
        used += length + (3 if used else 0)
    return [line for line in lines if line]


def _key(series: Series, letter: str | None, pen: Pen) -> str:
    """The sign of a series in the legend; of dots with signs of their own all of them: `0, 1:`."""
    match series:
        case Stroke():
            return pen.sign(series) + (letter or pen.sign(series))
        case Dots() if series.labels:
            signs = dict.fromkeys(pen.sign(series, at) for at in range(len(series.labels)))
            own = [sign for sign in signs if sign in series.labels]
            return f"{', '.join(signs)}:" if own else pen.sign(series)
        case _:
            return pen.sign(series)


def ansi(colour: str) -> int:
    """The nearest of a terminal's 216 colours and 24 greys.

    >>> ansi("#ff0000"), ansi("#ffffff")  # 16 + 36 * 5, and the cube's last
    (196, 231)
    """
    rgb = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    steps = (0, 95, 135, 175, 215, 255)
    cube = [min(range(6), key=lambda step, part=part: abs(steps[step] - part)) for part in rgb]
    grey = min(range(24), key=lambda step: abs(8 + 10 * step - sum(rgb) / 3))
    far = sum((steps[step] - part) ** 2 for step, part in zip(cube, rgb, strict=True))
    near = sum((8 + 10 * grey - part) ** 2 for part in rgb)
    return 232 + grey if near < far else 16 + 36 * cube[0] + 6 * cube[1] + cube[2]
