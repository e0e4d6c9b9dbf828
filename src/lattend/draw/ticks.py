"""Ticks: round numbers along an axis."""

from __future__ import annotations

import math

from lattend.draw.heat import short


def round_numbers(low: float, high: float, most: int = 8) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between the two, at most `most` steps of them.

    >>> round_numbers(-1.2, 2.5, 4)  # steps of 1: of 0.5 there would be more than 4 between the ends
    [-1.0, 0.0, 1.0, 2.0]
    """
    step = round_step(low, high, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def round_step(low: float, high: float, most: int = 8) -> float:
    """1, 2 or 5 times a power of ten that goes at most so many times from the one to the other."""
    if high <= low:
        return 1.0
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    return next(more * step for more in (1, 2, 5, 10) if (high - low) / (more * step) <= most + 1e-9)


def tick(place: float) -> str:
    """A number as an axis has it, in full where it is whole and not too long.

    >>> tick(2500.0), tick(0.25)
    ('2,500', '0.25')
    """
    if 1000 <= abs(place) < 1e6 and place == round(place):
        return f"{place:,.0f}".replace("-", "−")
    return short(place)
