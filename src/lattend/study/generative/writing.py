"""How numbers are written: a minus sign that is one, and no more digits than an error leaves."""

from __future__ import annotations

import math

from torch import Tensor

from lattend.report import numbers

LEAST = 1e-6  # an error below it is rounding


def number(value: Tensor | float, error: float | None = None) -> str:
    """A number with two digits of its error, or four places where there is none.

    >>> number(-84.3123, 0.0512)
    '−84.312 ± 0.051'
    """
    plain = value.item() if isinstance(value, Tensor) else value
    if not error or error < LEAST or not math.isfinite(error):
        return fixed(plain, 4)
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{fixed(plain, places)} ± {fixed(error, places)}"


def fixed(value: float, places: int = 2) -> str:
    """A number with so many places.

    >>> fixed(-1234.5), fixed(-0.001)
    ('−1,234.50', '0.00')
    """
    return numbers.fixed(value, places, grouped=True).replace("-", "−")
