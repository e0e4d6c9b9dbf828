"""Ticks: round numbers along an axis."""

from __future__ import annotations

import math


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
