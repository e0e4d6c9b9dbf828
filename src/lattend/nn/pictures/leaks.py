"""Leaks: how much of a head's weight misses its pixel, against α, as a curve and for one α or one error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lattend.draw.charts.chart import Chart, Dots, curves
from lattend.draw.formats.palette import TEXT
from lattend.nn.convolution.sharpness import Sharpness, sharpness
from lattend.report.numbers import format_number

LOW, HIGH, POINTS = 0.25, 16.0, 63  # of the curve
ROOM_ABOVE = 4.0  # the end of the scale of leaks, which are 1 at most: a dot near 1 has its name over it
MOST_ALPHA = 600.0  # beyond it a leak is too small for a number


@dataclass(frozen=True)
class Leaks:
    """The sharpness of heads at the pixel of an image that leaks most, and at its corner."""

    worst: Sharpness
    corner: Sharpness

    @staticmethod
    def of(size: tuple[int, int], centres: tuple[Sequence[int], Sequence[int]]) -> Leaks:
        """Of heads whose centres take these rows and columns of an image.

        A pixel with more neighbours leaks more, so that the centre nearest to the middle is the worst. One
        beyond the edge leaks less than the pixel on the edge, which stands for it where none is inside.
        """
        worst: list[int] = []
        corner: list[int] = []
        for length, places in zip(size, centres, strict=True):
            inside = [place for place in places if 0 <= place < length]
            inside = inside or [min(max(place, 0), length - 1) for place in places]
            worst.append(min(inside, key=lambda place, end=length - 1: abs(2 * place - end)))
            corner.append(min(inside))
        rows, cols = size
        return Leaks(
            sharpness(rows=rows, cols=cols, query=(worst[0], worst[1])),
            sharpness(rows=rows, cols=cols, query=(corner[0], corner[1])),
        )

    def facts(self, alpha: float | None, error: float | None) -> list[tuple[str, str]]:
        """What this α leaks, and which α this error needs."""
        found: list[tuple[str, str]] = []
        if alpha is not None:
            leak = self.worst.at(alpha).leak_text()
            found.append(
                (f"α = {format_number(alpha)}", f"at most {leak} of a head's weight misses its pixel")
            )
        if error is not None:
            enough = self.worst.for_error(error)
            closed = f"2 arcosh(1/√{format_number(error)}) = {enough.sufficient:.6g} is enough"
            found.append((f"leak of {format_number(error)}", f"α ≥ {enough.smallest:.6g}; {closed}"))
        return found

    def chart(self, alpha: float | None, error: float | None) -> Chart:
        """Leaks against α, with a dot at a given α and at the α of a given error."""
        dots: list[tuple[str, tuple[float, float]]] = []
        if alpha is not None and alpha <= MOST_ALPHA and self.worst.at(alpha).leak > 0:
            dots.append((f"α = {format_number(alpha)}", (alpha, self.worst.at(alpha).leak)))
        if error is not None and 0 < self.worst.for_error(error).smallest <= MOST_ALPHA:
            dots.append((f"leak {format_number(error)}", (self.worst.for_error(error).smallest, error)))
        high = max([HIGH, *(1.1 * x for _, (x, _) in dots)])
        places = [LOW + (high - LOW) * step / POINTS for step in range(POINTS + 1)]
        lines = [("1/cosh²(α/2)", tuple((at, self.worst.at(at).bound) for at in places))]
        for name, where in (("worst pixel", self.worst), ("corner pixel", self.corner)):
            points = tuple((at, where.at(at).leak) for at in places)
            if all(leak > 0 for _, leak in points):  # an image of one pixel leaks nothing
                lines.append((name, points))
        marks = tuple(Dots([place], "", TEXT, 3.0, "square", [name]) for name, place in dots)
        title, up = "Leak of a head against α", "weight that misses"
        least = min(leak for _, points in lines for _, leak in points)
        ends = 10.0 ** math.floor(math.log10(least)), ROOM_ABOVE
        return Chart(title, "α", up, curves(lines), marks, y=ends, log_y=10)

    def data(self, alpha: float | None, error: float | None) -> dict[str, Any]:
        """The curve and what was asked, as plain data."""
        found: dict[str, Any] = {}
        if alpha is not None:
            found |= {"alpha": alpha, "leak": self.worst.at(alpha).leak}
        if error is not None:
            enough = self.worst.for_error(error)
            found |= {"error": error, "smallest": enough.smallest, "sufficient": enough.sufficient}
        lines = self.chart(alpha, error).lines
        return {**found, "curve": {line.name: [list(point) for point in line.points] for line in lines}}
