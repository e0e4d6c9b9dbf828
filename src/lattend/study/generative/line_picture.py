"""draw_line: the Gaussian model of one number with q beside the posterior, and the q of equal gap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lattend.draw.charts.chart import COLOURS, Chart, Dots, Stroke, curves
from lattend.draw.picture import Picture
from lattend.report.numbers import significant
from lattend.study.exact.function import as_float
from lattend.study.exact.numbers import exact
from lattend.study.exact.writing import format_exact
from lattend.study.generative.exact_bound import GaussianLine

GAPS = (0.02, 0.1, 0.3, 0.7, 1.5, 3.0)  # nats
PLACES = 121  # of a density
FAR = 4.0  # standard deviations that are shown of each density


def draw_line(line: GaussianLine, mean: Any, variance: Any) -> Picture:
    """The terms of the bound for q = N(mean, variance), the densities, and lines of equal gap.

    >>> [chart.title for chart in draw_line(GaussianLine(1, 0, 1, 3), 0, 1).charts]
    ['Densities of z', 'Gap of every q']
    """
    bound = line.bound(mean, variance)
    charts = densities(line, mean, variance), gaps(line, mean, variance)
    report = bound.report()
    facts = tuple(row for part in report.parts if not isinstance(part, str) for row in part.rows)
    middle, width = map(format_exact, line.posterior)
    pairs = (*((row[0], row[1]) for row in facts), ("posterior", f"mean {middle}, variance {width}"))
    return Picture("The evidence lower bound, in nats", facts=pairs, charts=charts, data=bound.json())


def densities(line: GaussianLine, mean: Any, variance: Any) -> Chart:
    """The prior, the posterior and q as curves over z."""
    known = {"prior": (0.0, 1.0), "posterior": line.posterior, "q": (exact(mean), exact(variance))}
    pairs = {name: (as_float(m), math.sqrt(as_float(s))) for name, (m, s) in known.items()}
    low = min(m - FAR * s for m, s in pairs.values())
    high = max(m + FAR * s for m, s in pairs.values())
    near = [np.linspace(m - FAR * s, m + FAR * s, PLACES // 2) for m, s in pairs.values()]
    places = np.unique(np.concatenate([np.linspace(low, high, PLACES), *near]))
    strokes = [
        (name, list(zip(places.tolist(), _density(places, m, s).tolist(), strict=True)))
        for name, (m, s) in pairs.items()
    ]
    return Chart("Densities of z", "z", "density", curves(strokes))


def gaps(line: GaussianLine, mean: Any, variance: Any) -> Chart:
    """All q by mean and variance: lines of equal gap around the posterior, where it is 0."""
    lines = tuple(
        Stroke(line.equal_gap(gap), f"gap {significant(gap, 2)}", COLOURS[9], 1.0, under=True) for gap in GAPS
    )
    best = [as_float(one) for one in line.posterior]
    parameters = [as_float(exact(mean)), as_float(exact(variance))]
    dots = (
        Dots([best], "posterior", COLOURS[0], 3.4, "ring"),
        Dots([[0.0, 1.0]], "prior", COLOURS[1], 3.0, "square"),
        Dots([parameters], "q", COLOURS[6], 3.4, "diamond"),
    )
    return Chart("Gap of every q", "mean of q", "variance of q", lines, dots)


def _density(places: Any, mean: float, deviation: float) -> Any:
    return np.exp(-(((places - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
