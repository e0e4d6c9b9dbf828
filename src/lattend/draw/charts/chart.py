"""Chart: lines, dots, arrows and color scales, drawn by matplotlib, or in a terminal in braille."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lattend.draw.formats.palette import AMOUNTS, SIGNED, Look
from lattend.errors import DomainError
from lattend.report.numbers import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = Sequence[float]
Points = Sequence[Point] | NDArray[np.floating[Any]]
Ends = tuple[float, float]
Shape = Literal["dot", "ring", "square", "diamond", "triangle", "cross"]
Base = Literal[0, 2, 10]  # of a logarithmic scale; 0 is a linear one

# Told apart by people who see few colours, and with their shapes in grey as well
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00"),
    *("#56b4e9", "#1c1f26", "#e69f00", "#7a4fb5", "#7d8590"),
)
SHAPES: tuple[Shape, ...] = ("dot", "square", "triangle", "diamond", "ring", "cross")
FLATTEST = 3.0  # the longer side over the shorter one, where both axes have one unit
ROOM = 0.06  # left around the points, of the longer side


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


Series = Stroke | Dots | Arrows


@dataclass(frozen=True)
class Chart:
    """Series between the ends of x and y, which hold every point where none are given.

    Series with a name stand in the legend, those with the same name as one. `equal` gives both axes one unit;
    `log_x` and `log_y` are the bases of logarithmic scales. What lies outside is cut off. `size` is the
    width and the height between the axes; where they are equal, the longer side. With `down` the axis calls
    a height y −y, as rows of an image are counted downwards.

    >>> Chart("A step", lines=(Stroke(((0, 0), (2, 1))),), equal=True).ends()  # 2 * 0.06 left on each side
    ((-0.12, 2.12), (-0.12, 1.12))
    """

    title: str = ""
    across: str = "x"
    up: str = "y"
    lines: tuple[Stroke, ...] = ()
    dots: tuple[Dots, ...] = ()
    arrows: tuple[Arrows, ...] = ()
    x: Ends | None = None
    y: Ends | None = None
    equal: bool = False
    log_x: Base = 0
    log_y: Base = 0
    size: tuple[float, float] = (252.0, 168.0)
    down: bool = False

    def __post_init__(self) -> None:
        for name, ends in (("x", self.x), ("y", self.y)):
            if ends is not None and not (math.isfinite(ends[1] - ends[0]) and ends[0] < ends[1]):
                raise DomainError(f"{name} of a chart is (least, greatest), not {tuple(ends)}")
        for point in self._points():
            if not (math.isfinite(point[0]) and math.isfinite(point[1])):
                raise DomainError(
                    f"a chart needs finite numbers, and ({point[0]}, {point[1]}) is among them; leave it out"
                )
            if (self.log_x and point[0] <= 0) or (self.log_y and point[1] <= 0):
                raise DomainError(
                    f"a logarithmic scale needs numbers above 0, and ({point[0]}, {point[1]}) is among them"
                )

    def _points(self) -> Iterator[Point]:
        for series in (*self.lines, *self.dots):
            yield from series.points
        for series in self.arrows:
            yield from itertools.chain.from_iterable(series.pairs)

    def ends(self) -> tuple[Ends, Ends]:
        """The least and greatest x and y that are shown."""
        points = np.array([tuple(point) for point in self._points()] or [(0.0, 0.0)], dtype=float)
        low, high = points.min(axis=0), points.max(axis=0)
        room = ROOM * (np.full(2, (high - low).max()) if self.equal else high - low)
        if self.lines and not self.equal:
            room[0] = 0.0  # lines run from side to side
        ends = [
            self.x or _around(low[0], high[0], room[0], self.log_x),
            self.y or _around(low[1], high[1], room[1], self.log_y),
        ]
        if self.equal:
            least = max(end - start for start, end in ends) / FLATTEST
            more = [max(0.0, least - (end - start)) / 2 for start, end in ends]
            ends = [(start - add, end + add) for (start, end), add in zip(ends, more, strict=True)]
        return ends[0], ends[1]

    def sides(self) -> tuple[float, float]:
        """Width and height between the axes, in units of the picture."""
        if not self.equal:
            return self.size
        wide, high = (end - start for start, end in self.ends())
        return self.size[0] * wide / max(wide, high), self.size[0] * high / max(wide, high)

    def layers(self) -> tuple[Series, ...]:
        """The series in painting order."""
        under = tuple(line for line in self.lines if line.under)
        over = tuple(line for line in self.lines if not line.under)
        return (*under, *self.arrows, *over, *self.dots)

    @property
    def words(self) -> str:
        """What it shows, as a screen reader says it."""
        return self.title

    def names(self) -> list[str]:
        """What stands in the legend."""
        return [name for name, _ in legend([self])]

    def draw(self, ax: Axes) -> None:
        """Draws the chart into the axes of a matplotlib figure."""
        from lattend.draw.charts.axes import draw

        draw(self, ax)


def _around(low: float, high: float, room: float, base: Base) -> Ends:
    """The ends of a scale that shows these numbers: with room around them, or powers of the base."""
    if base:
        powers = math.floor(math.log(low, base) + 1e-9), math.ceil(math.log(high, base) - 1e-9)
        return float(base) ** powers[0], float(base) ** max(powers[1], powers[0] + 1)
    room = room if high + room > low - room else 1.0
    return float(low - room), float(high + room)


def curves(lines: Sequence[tuple[str, Points]]) -> tuple[Stroke, ...]:
    """Named lines in colours of their own, the first ones thicker, so that one below another is seen."""
    last = len(lines) - 1
    return tuple(
        Stroke(points, name, COLOURS[at % len(COLOURS)], 1.6 + 2.0 * (last - at) / max(1, last))
        for at, (name, points) in enumerate(lines)
    )


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
            COLOURS[index % len(COLOURS)],
            size,
            SHAPES[index % len(SHAPES)],
            opacity=opacity,
            glyph=str(name)[:1],
        )
        for index, name in enumerate(names)
    )


def legend(charts: Sequence[Chart]) -> list[tuple[str, tuple[Series, ...]]]:
    """The names of the series, and for each one series of every kind that has it; empty ones are left out."""
    entries: dict[str, list[Series]] = {}
    for series in itertools.chain.from_iterable(chart.layers() for chart in charts):
        many = len(series.pairs if isinstance(series, Arrows) else series.points)
        same = entries.setdefault(series.name, []) if series.name and many else []
        if not any(type(series) is type(other) for other in same):
            same.append(series)
    return [(name, tuple(series)) for name, series in entries.items()]


def round_numbers(low: float, high: float, most: int = 8) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between the two, at most `most` steps of them.

    >>> round_numbers(-1.2, 2.5, 4)  # steps of 1: of 0.5 there would be more than 4 between the ends
    [-1.0, 0.0, 1.0, 2.0]
    """
    step = round_step(low, high, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def round_step(low: float, high: float, most: int = 8) -> float:
    """1, 2 or 5 times a power of ten that goes at most so many times from the one to the other."""
    if high <= low:
        return 1.0
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    return next(more * step for more in (1, 2, 5, 10) if (high - low) / (more * step) <= most + 1e-9)


def tick(place: float) -> str:
    """A round number as an axis has it, with all its digits, so that no two ticks are called the same.

    >>> tick(2500.0), tick(-105.5), tick(3 * 0.1), tick(0.00002)
    ('2,500', '−105.5', '0.3', '2e−5')
    """
    if place and not 1e-4 <= abs(place) < 1e6:
        digits, power = f"{place:.9e}".split("e")
        text = f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    else:
        text = f"{place + 0.0:,.10g}"
    return text.replace("-", "−")


@dataclass(frozen=True, eq=False, slots=True)
class Scale:
    """Which colour stands for which number, and what the number is."""

    label: str
    low: float
    high: float
    looks: tuple[Look, ...] = AMOUNTS
    least: str = ""  # how the ends are written, if not as plain numbers
    most: str = ""

    def cells(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """The nearest step of each number; those beyond an end have its colour."""
        last = len(self.looks) - 1
        along = (values - self.low) / (self.high - self.low)
        return np.rint(last * np.clip(along, 0.0, 1.0)).astype(np.uint8)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Places from 0 to 1 and the numbers there: both ends, and the middle."""
        middle = (self.low + self.high) / 2
        ends = ((0.0, self.least or format_number(self.low)), (1.0, self.most or format_number(self.high)))
        return ends[0], (0.5, format_number(middle)), ends[1]


def amount_scale(label: str, values: NDArray[np.float64], low: float = 0.0) -> Scale:
    """A scale from `low` to the greatest of these numbers."""
    high = float(_finite(values).max())
    return Scale(label, low, high if high > low else low + 1.0)


def signed_scale(label: str, values: NDArray[np.float64]) -> Scale:
    """A scale as far below 0 as above it, so that white is 0."""
    most = float(np.abs(_finite(values)).max()) or 1.0
    return Scale(label, -most, most, SIGNED)


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if not values.size or not np.isfinite(values).all():
        raise DomainError("a heat map needs finite numbers, at least one")
    return values
