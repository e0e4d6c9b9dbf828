"""Heat: which colour stands for which number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lattend.draw.formats.palette import AMOUNTS, SIGNED, Look
from lattend.errors import DomainError
from lattend.report.numbers import format_number


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


def amounts(label: str, values: NDArray[np.float64], low: float = 0.0) -> Scale:
    """A scale from `low` to the greatest of these numbers."""
    high = float(_finite(values).max())
    return Scale(label, low, high if high > low else low + 1.0)


def signed(label: str, values: NDArray[np.float64]) -> Scale:
    """A scale as far below 0 as above it, so that white is 0."""
    most = float(np.abs(_finite(values)).max()) or 1.0
    return Scale(label, -most, most, SIGNED)


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if not values.size or not np.isfinite(values).all():
        raise DomainError("a heat map needs finite numbers, at least one")
    return values
