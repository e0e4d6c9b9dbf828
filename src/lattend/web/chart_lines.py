"""Lines of the library's charts as pages draw them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from lattend.draw.charts.chart import Stroke


class ChartLine(BaseModel):
    """A line through points (x, y)."""

    name: str
    points: list[tuple[float, float]]


def chart_line(stroke: Stroke, half: float | None = None) -> ChartLine:
    """A line of a chart; on a plane of which `half` a side is known, rounded to what can be seen."""
    if half is None:
        points = [(float(f"{float(x):.6g}"), float(f"{float(y):.6g}")) for x, y in stroke.points]
    else:
        places = 4 - math.floor(math.log10(half))
        points = [(round(float(x), places), round(float(y), places)) for x, y in stroke.points]
    return ChartLine(name=stroke.name, points=points)
