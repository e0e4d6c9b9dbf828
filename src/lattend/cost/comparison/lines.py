"""Lines: a comparison as a chart on logarithmic scales, with a dot where two lines cross."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lattend.cost.comparison.table import crossing_lines, format_place
from lattend.cost.summary import label as label_of
from lattend.draw.charts.chart import Chart
from lattend.draw.formats.palette import FAINT_TEXT, PAPER, TEXT
from lattend.draw.formats.scene import Item, Line, Rect, Scene, Text, text_width
from lattend.errors import NamingError

if TYPE_CHECKING:
    from lattend.cost.comparison.comparison import Comparison

# Okabe and Ito's colours, those that are dark enough for a line and its label
COLOURS = ("#0072b2", "#d55e00", "#007a5a", "#a04b86", "#8a6d00", "#4d5660", "#3a86c8")
GRID, AXIS = "#e6e9ed", "#aeb6bf"
LEFT, TOP, WIDE, HIGH, BOTTOM = 78.0, 74.0, 560.0, 360.0, 58.0
POINTS, GAP, SIZE = 120, 16.0, 12.5
Point = tuple[float, float]


@dataclass(frozen=True)
class _Frame:
    """From numbers to places on the page, both scales logarithmic."""

    low: float
    high: float
    least: float
    most: float

    def x(self, value: float) -> float:
        return LEFT + WIDE * math.log(value / self.low) / math.log(self.high / self.low)

    def y(self, value: float) -> float:
        return TOP + HIGH - HIGH * math.log(value / self.least) / math.log(self.most / self.least)


def lines(found: Comparison) -> Chart:
    """The chart of a comparison between the least and the greatest size of its table."""
    low, high = max(1, found.sizes[0]), found.sizes[-1]
    if high <= low:
        raise NamingError(f"a chart needs two sizes or more: give at={{{found.over!r}: […]}}")
    sizes = sorted({round(low * (high / low) ** (i / POINTS)) for i in range(POINTS + 1)})
    curves: dict[str, list[tuple[int, int]]] = {}
    for label in found.costs:
        values = zip(sizes, found.values(label, sizes), strict=True)
        curves[label] = [(size, value) for size, value in values if value]
    numbers = [value for curve in curves.values() for _, value in curve]
    if not numbers:
        raise NamingError(f"the {label_of(found.quantity)} of all of these is 0; there is nothing to draw")
    least, most = _decade(min(numbers), down=True), _decade(max(numbers), down=False)
    frame = _Frame(low, high, least, most if most > least else 10 * least)
    colours = {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(curves)}
    room = max(text_width(label, SIZE, bold=True) for label in curves) + 34
    width, height = float(math.ceil(LEFT + WIDE + room)), TOP + HIGH + BOTTOM
    items: list[Item] = [Rect(0, 0, width, height, PAPER), *_head(found), *_scales(frame, found)]
    drawn: list[Point] = []
    for label, curve in curves.items():
        points = [(frame.x(size), frame.y(value)) for size, value in curve]
        drawn += points
        items += [Line(*a, *b, colours[label], 2.2) for a, b in pairwise(points)]
    items += _labels(frame, curves, colours)
    items += _dots(frame, found, drawn)
    said = ". ".join(" ".join(line.split()) for line in crossing_lines(found))
    return Chart(_title(found), said, Scene(width, height, tuple(items)))


def _title(found: Comparison) -> str:
    text = label_of(found.quantity)
    return f"{text[:1].upper()}{text[1:]} as {found.over} grows"


def _head(found: Comparison) -> list[Item]:
    given = ", ".join(f"{name} = {value:,}" for name, value in found.numbers.items())
    under = [f"at {given}"] if given else []
    under += [str(width) for width in found.widths]
    return [
        Text(16, 30, _title(found), 17, TEXT, bold=True),
        Text(16, 51, "; ".join(under), 12.5, FAINT_TEXT),
    ]


def _scales(frame: _Frame, found: Comparison) -> list[Item]:
    """Grid lines at powers, thin enough to stay behind."""
    items: list[Item] = []
    decades = round(math.log10(frame.most / frame.least))
    step = max(1, -(-decades // 9))
    first = round(math.log10(frame.least))
    for power in range(first, first + decades + 1, step):
        y = frame.y(10.0**power)
        items.append(Line(LEFT, y, LEFT + WIDE, y, GRID, 1))
        items.append(Text(LEFT - 10, y + 4, _magnitude(power), 11.5, FAINT_TEXT, "end"))
    doublings = math.log2(frame.high / frame.low)
    every = max(1, math.ceil(doublings / 9))
    power = math.ceil(math.log2(frame.low))
    while 2**power <= frame.high:
        x = frame.x(2**power)
        items.append(Line(x, TOP, x, TOP + HIGH, GRID, 1))
        items.append(Text(x, TOP + HIGH + 18, f"{2**power:,}", 11.5, FAINT_TEXT, "middle"))
        power += every
    items.append(Line(LEFT, TOP + HIGH, LEFT + WIDE, TOP + HIGH, AXIS, 1.2))
    items.append(Text(LEFT + WIDE / 2, TOP + HIGH + 42, found.over, 13, TEXT, "middle", bold=True))
    return items


def _magnitude(power: int) -> str:
    """A power of ten as people say it: 100, 10,000, 10 million, 10^15."""
    for least, name in ((12, "trillion"), (9, "billion"), (6, "million")):
        if least <= power < 15:
            return f"{10 ** (power - least)} {name}"
    return f"{10**power:,}" if 0 <= power < 6 else f"10^{power}"


def _labels(frame: _Frame, curves: dict[str, list[tuple[int, int]]], colours: dict[str, str]) -> list[Item]:
    """Each line's name at its right end, moved apart where two would touch."""
    ends = sorted((frame.y(curve[-1][1]), label) for label, curve in curves.items() if curve)
    places = _apart([y for y, _ in ends])
    items: list[Item] = []
    for (end, label), y in zip(ends, places, strict=True):
        x = LEFT + WIDE
        if abs(y - end) > 1:
            items.append(Line(x + 2, end, x + 13, y, AXIS, 1))
        items.append(Text(x + 17, y + 4, label, SIZE, colours[label], bold=True))
    return items


def _apart(places: Sequence[float]) -> list[float]:
    """Places in order, none nearer than GAP to the next and none below the axis."""
    found = list(places)
    for i in range(1, len(found)):
        found[i] = max(found[i], found[i - 1] + GAP)
    limit = TOP + HIGH
    for i in reversed(range(len(found))):
        found[i] = min(found[i], limit)
        limit = found[i] - GAP
    return found


def _dots(frame: _Frame, found: Comparison, drawn: Sequence[Point]) -> list[Item]:
    """A ring at each crossing in view, with its size beside it where there is most room."""
    places: dict[Point, str] = {}
    for pair, place in found.crossings:
        below, above = math.floor(place), math.ceil(place)
        values = [value for value in found.values(pair.first, [below, above]) if value]
        if not frame.low <= place <= frame.high or not values:
            continue
        share = place - below
        y = frame.y(values[0] ** (1 - share) * values[-1] ** share)
        if not any(abs(frame.x(place) - a) < 3 and abs(y - b) < 3 for a, b in places):
            places[frame.x(place), y] = f"{found.over} = {format_place(round(place, 2))}"
    items: list[Item] = []
    full = [*drawn, *(dot for dot in places for _ in range(6))]
    for (x, y), text in places.items():
        wide = text_width(text, 11.5)
        left, top = min(_spots(x, y, wide), key=lambda spot: _crowd(spot, wide, full))
        if abs(top + 7 - y) > 24:  # far away, so that a thin line leads there
            items.append(Line(x, y, x + math.copysign(9, left - x), top + (-1 if top > y else 14), AXIS, 1))
        items += [*_disc(x, y, 5.2, TEXT), *_disc(x, y, 3.4, PAPER)]
        items.append(Text(left, top + 11, text, 11.5, TEXT))
        full += [
            (left + wide * i / 8, top + 14 * j / 2) for i in range(9) for j in range(3) for _ in range(3)
        ]
    return items


def _spots(x: float, y: float, wide: float) -> list[Point]:
    """Where a label may begin, nearest first: below and above, to the right and to the left."""
    rows = (6.0, -20.0, 22.0, -36.0, 38.0, -52.0)
    return [(left, y + down) for down in rows for left in (x + 8, x - wide - 8)]


def _crowd(spot: Point, wide: float, drawn: Sequence[Point]) -> int:
    """How much lies under a label at this spot; outside the frame counts as full."""
    left, top = spot
    if left < LEFT or left + wide > LEFT + WIDE or top < TOP or top + 14 > TOP + HIGH:
        return 1000
    return sum(left - 4 <= x <= left + wide + 4 and top - 3 <= y <= top + 17 for x, y in drawn)


def _disc(x: float, y: float, radius: float, colour: str) -> list[Line]:
    """A regular polygon of 16 corners, as eight broad lines through its middle."""
    half, wide = radius * math.cos(math.pi / 16), 2 * radius * math.sin(math.pi / 16)
    found: list[Line] = []
    for turn in range(8):
        dx, dy = half * math.cos(math.pi * turn / 8), half * math.sin(math.pi * turn / 8)
        found.append(Line(x - dx, y - dy, x + dx, y + dy, colour, wide))
    return found


def _decade(value: float, *, down: bool) -> float:
    power = math.log10(value)
    return 10.0 ** (math.floor(power) if down else math.ceil(power))
