"""Decimals: numbers rounded as a hand does it, halves away from 0; the only place that rounds to be read."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import SupportsFloat

DIGITS = 60

Number = int | Fraction | Decimal | SupportsFloat


def context(digits: int = DIGITS, rounding: str = ROUND_HALF_UP) -> Context:
    """So many digits, of numbers of any size; nothing is trapped: 0/0 is NaN, which is near no number."""
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def decimal_of(number: Number, digits: int = DIGITS) -> Decimal:
    """The number as a decimal; a float as its shortest one, a fraction cut to so many digits.

    The last digit of a cut one is never 0 or 5, so that a half is a half only if the fraction is.

    >>> decimal_of(0.1), decimal_of(Fraction(2, 3), 5)
    (Decimal('0.1'), Decimal('0.66666'))
    """
    if isinstance(number, int | Decimal):
        return Decimal(number)
    if isinstance(number, Fraction):
        cut = context(digits, ROUND_05UP)
        return cut.divide(Decimal(number.numerator), Decimal(number.denominator))
    return Decimal(repr(float(number)))


def fixed(number: Number, places: int, grouped: bool = False) -> str:
    """The number with so many places, thousands apart where `grouped`.

    >>> fixed(Fraction(3, 32), 4), fixed(2.5, 0), fixed(-1234.5, 2, grouped=True)
    ('0.0938', '3', '-1,234.50')
    """
    if isinstance(number, Fraction):
        above = max(0, number.numerator.bit_length() - number.denominator.bit_length()) // 3
        value = decimal_of(number, above + places + 4)
    else:
        value = decimal_of(number)
    if not value.is_finite():
        return str(float(value))
    wide = context(max(DIGITS, value.adjusted() + places + 2))
    found = wide.quantize(value, Decimal(1).scaleb(-places))
    return f"{found if found else abs(found):{',' if grouped else ''}f}"


def significant(number: Number, digits: int) -> str:
    """The number with at most so many digits, with a power of ten where others write one.

    >>> significant(0.1234565, 6), significant(200.0, 6), significant(1.5e-12, 6)
    ('0.123457', '200', '1.5e-12')
    """
    found = context(digits).plus(decimal_of(number))
    if not found.is_finite():
        return str(float(found))
    found = found.normalize(context()) if found else Decimal(0)
    return f"{found:f}" if -4 <= found.adjusted() < digits else _with_power(f"{found:e}")


def scientific(number: Number, places: int) -> str:
    """The number with a power of ten and so many places before it.

    >>> scientific(10**9 + 50000, 4)
    '1.0001e9'
    """
    return _with_power(f"{context(places + 1).plus(decimal_of(number)):.{places}e}")


def _with_power(text: str) -> str:
    digits, power = text.split("e")
    return f"{digits}e{int(power)}"
