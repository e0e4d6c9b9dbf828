"""Trend: the factor by which gradients change with every step of distance, and how certain it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.report.numbers import fixed_beside, format_number

# Student's t at 97.5%, by degrees of freedom: of a mean of two to ten numbers
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
MOST_SEEDS = len(STUDENT) + 1
VANISHING, GROWING = 0.95, 1.05  # factors per step


@dataclass(frozen=True)
class ConfidenceInterval:
    """A mean and the 95% interval around it."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(numbers: Sequence[float]) -> ConfidenceInterval:
        """Of the mean of two to ten independent numbers, by Student's t.

        >>> ConfidenceInterval.of([1.0, 3.0])  # 2 ± 12.706 · √2/√2
        ConfidenceInterval(mean=2.0, low=-10.706, high=14.706)
        """
        mean = fmean(numbers)
        half = STUDENT[len(numbers) - 2] * stdev(numbers) / math.sqrt(len(numbers))
        return ConfidenceInterval(mean, mean - half, mean + half)

    def exp(self) -> ConfidenceInterval:
        """The same of the exponentials: a geometric mean."""
        return ConfidenceInterval(
            *(math.exp(min(number, 700.0)) for number in (self.mean, self.low, self.high))
        )

    def __str__(self) -> str:
        low, high = (_format(end, VANISHING, GROWING) for end in (self.low, self.high))
        return f"{_format(self.mean)} ({low} to {high})"


def _format(number: float, *compared: float) -> str:
    """Three places, and more beside a number that it is compared with."""
    return fixed_beside(number, 3, *compared) if 0.01 <= abs(number) < 1000 else format_number(number)


def factor(sizes: NDArray[Any]) -> ConfidenceInterval | None:
    """The factor per step of distance, from sizes [seeds, distances].

    For each seed the slope of log size against distance by least squares, from distance 1 on and where the
    size is not 0; then the mean over seeds with its interval. None where a seed has no two such sizes.

    >>> halves = np.array([[9.0, 0.5, 0.25, 0.125], [9.0, 5.0, 2.5, 1.25]])
    >>> round(factor(halves).mean, 9)  # from distance 1 on
    0.5
    """
    slopes: list[float] = []
    for row in sizes:
        at = np.flatnonzero(row > 0)
        at = at[at >= 1]
        if len(at) < 2:
            return None
        slopes.append(float(np.polyfit(at, np.log(row[at]), 1)[0]))
    return ConfidenceInterval.of(slopes).exp()


def ratio(left: NDArray[Any], right: NDArray[Any]) -> ConfidenceInterval | None:
    """How many times as large the sizes [seeds] on the left are; None where one of them is 0."""
    if not (left > 0).all() or not (right > 0).all():
        return None
    return ConfidenceInterval.of(np.log(left / right).tolist()).exp()
