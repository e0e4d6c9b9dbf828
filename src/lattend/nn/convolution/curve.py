"""Curve: the leak of a head against α, logarithmic upwards, below its bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from lattend.draw.charts.chart import Chart, Dots, curves
from lattend.draw.formats.palette import TEXT
from lattend.draw.picture import Picture
from lattend.errors import DomainError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lattend.nn.convolution.sharpness import Sharpness

STEPS = 160
TITLE, BOUND, LEAK = "Leaked weight as α grows", "1/cosh²(α/2)", "leak"


def draw_curve(found: Sharpness, low: float, high: float, ax: Axes | None = None) -> Picture:
    """The leak between two α; a straight line where the nearest neighbours' share is all that leaks."""
    if not 0 < low < high < math.inf:
        raise DomainError(f"a curve runs between two α with 0 < low < high, not from {low:g} to {high:g}")

    def line(value: Callable[[Sharpness], float]) -> list[tuple[float, float]]:
        places = (low + (high - low) * step / STEPS for step in range(STEPS + 1))
        points = ((alpha, value(found.at(alpha))) for alpha in places)
        return [(alpha, share) for alpha, share in points if share > 0]  # no logarithm of 0

    lines = [(BOUND, line(lambda at: at.bound)), (LEAK, line(lambda at: at.leak))]
    shown = curves([(name, points) for name, points in lines if points])
    own, dots = found.alpha, ()
    if own and low <= own <= high and found.leak > 0:
        dots = (Dots([(own, found.leak)], colour=TEXT, size=3.0, shape="square", labels=[f"α = {own:g}"]),)
    ends = tuple((f"α = {alpha:g}", f"leak {found.at(alpha).leak:.3g}") for alpha in (low, high))
    chart = Chart("", "α", LEAK, shown, dots, log_y=10)
    return Picture(TITLE, subtitle=(found.place,), charts=(chart,), facts=ends).onto(ax)
