"""Lines: a comparison as a chart on logarithmic scales, with a dot where two lines cross."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lattend.cost.result import label as label_of
from lattend.draw.charts.chart import Chart, Dots, curves
from lattend.draw.formats.palette import TEXT
from lattend.draw.picture import Picture
from lattend.errors import NamingError
from lattend.report.numbers import rounded

if TYPE_CHECKING:
    from lattend.cost.comparison.comparison import Comparison

POINTS = 120
BITS = 1000  # of a whole number that a chart has a place for
NEAR = 0.015  # of a side: crossings nearer than this are one dot


def draw_lines(comparison: Comparison) -> Picture:
    """The chart of a comparison between the least and the greatest size of its table."""
    sizes = chart_sizes(comparison)
    low, high = sizes[0], sizes[-1]
    shown: list[tuple[str, list[tuple[float, float]]]] = []
    for label in comparison.costs:
        values = zip(sizes, comparison.values(label, sizes), strict=True)
        shown.append((label, [(float(size), float(value)) for size, value in values if value]))
    strokes = curves([(label, points) for label, points in shown if points])
    if not strokes:
        raise NamingError(
            f"the {label_of(comparison.quantity)} of all of these is 0; there is nothing to draw"
        )
    text = label_of(comparison.quantity)
    title = f"{text[:1].upper()}{text[1:]} as {comparison.over} grows"
    numbers = ", ".join(f"{name} = {value:,}" for name, value in comparison.numbers.items())
    under = [*([f"at {numbers}"] if numbers else []), *map(str, comparison.widths)]
    chart = Chart("", comparison.over, "", strokes, x=(low, high), log_x=2, log_y=10, size=(560.0, 360.0))
    return Picture(
        title,
        caption=tuple(" ".join(line.split()) for line in comparison.crossing_lines),
        subtitle=("; ".join(under),) if under else (),
        charts=(replace(chart, dots=_crossings(comparison, chart)),),
        data=comparison.json(),
    )


def chart_sizes(comparison: Comparison, points: int = POINTS) -> list[int]:
    """The sizes at which curves are drawn: evenly apart on a logarithmic scale, between the table's ends."""
    low, high = max(1, comparison.sizes[0]), comparison.sizes[-1]
    if high <= low:
        raise NamingError(f"a chart needs two sizes or more: give at={{{comparison.over!r}: […]}}")
    between = (round(low * (high / low) ** (i / points)) for i in range(1, points))
    return sorted({low, high, *between})


class ChartCrossing(NamedTuple):
    """A place where two layers' curves cross: the size and the quantity there; `label` tells the size."""

    first: str
    second: str
    size: float
    height: float
    label: str


def chart_height(value: int | None) -> float | None:
    """The value as a float; None where it has none, or is too large for a chart."""
    return None if value is None or value.bit_length() > BITS else float(value)


def chart_crossings(comparison: Comparison) -> list[ChartCrossing]:
    """All crossings in numbers, as far as a chart has a place for them."""
    crossings: list[ChartCrossing] = []
    for pair, place in comparison.crossings:
        below, above = math.floor(place), math.ceil(place)
        values = [
            value for value in map(chart_height, comparison.values(pair.first, [below, above])) if value
        ]
        if values:
            share = place - below
            height = values[0] ** (1 - share) * values[-1] ** share
            label = f"{comparison.over} = {rounded(place, 2)}"
            crossings.append(ChartCrossing(pair.first, pair.second, place, height, label))
    return crossings


def _crossings(comparison: Comparison, chart: Chart) -> tuple[Dots, ...]:
    """A ring at each crossing in view, with its size beside it."""
    (low, high), (least, most) = chart.ends()
    places: dict[tuple[float, float], str] = {}
    for _, _, place, height, label in chart_crossings(comparison):
        if not low <= place <= high:
            continue
        apart = [max(_apart(place, x, high / low), _apart(height, y, most / least)) for x, y in places]
        if min(apart, default=1.0) > NEAR:
            places[place, height] = label
    return (Dots(list(places), "", TEXT, 4.0, "ring", list(places.values())),) if places else ()


def _apart(a: float, b: float, span: float) -> float:
    """How far two numbers are apart on a logarithmic scale, as a share of its length."""
    return abs(math.log(a / b)) / math.log(span)
