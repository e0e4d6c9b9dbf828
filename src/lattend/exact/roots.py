"""Real roots of polynomials as exact numbers, and simple fractions between them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import floor
from typing import Any

import sympy

from lattend.errors import NoClosedForm

Poly = Any  # sympy.Poly
DIGITS = 40
HIGHEST = 12  # degree of a polynomial whose roots are isolated; 18 has taken minutes


def positive_roots(polynomials: Iterable[Poly]) -> list[Any]:
    """The real roots above 0 of any of these polynomials in one name, each once, in order.

    >>> x = sympy.Symbol("x")
    >>> positive_roots([sympy.Poly(x**2 - 3, x), sympy.Poly(x**3 - x, x)])
    [1, sqrt(3)]
    """
    factors = {factor for one in polynomials if not one.is_ground for factor, _ in one.factor_list()[1]}
    found = [root for factor in factors if factor.count_roots(0, None) for root in real_roots(factor)]
    return sorted((root for root in found if root > 0), key=near)


def real_roots(irreducible: Poly) -> list[Any]:
    """The real roots of an irreducible polynomial; by square roots where its even powers allow it."""
    if irreducible.degree() > HIGHEST:
        raise NoClosedForm(
            f"the roots of a polynomial of degree {irreducible.degree()}; {HIGHEST} is the limit"
        )
    coefficients = irreducible.all_coeffs()
    if irreducible.degree() == 4 and not any(coefficients[1::2]):
        squares: Any = sympy.Poly(coefficients[::2], irreducible.gen).real_roots()
        above = [sympy.sqrtdenest(sympy.sqrt(square)) for square in squares if square > 0]
        return sorted([-root for root in above] + above, key=near)
    return irreducible.real_roots()


def near(number: Any) -> Any:
    """The number to 40 digits."""
    return number.evalf(DIGITS)


def between(low: Any, high: Any) -> Any:
    """The simplest fraction strictly between two numbers; high may be infinite.

    >>> between(sympy.Rational(1, 3), sympy.sqrt(2))
    1
    """
    if high == sympy.oo:
        return sympy.Integer(floor(low) + 1)
    doubt = Fraction(1, 10 ** (DIGITS - 10))
    found = _simplest(_fraction(low, doubt), _fraction(high, -doubt))
    return sympy.Rational(found.numerator, found.denominator)


def _fraction(number: Any, doubt: Fraction) -> Fraction:
    """The number if it is a fraction; else one near it, on the side of `doubt`."""
    exactly: Any = sympy.Rational(number if number.is_Rational else near(number))
    found = Fraction(int(exactly.p), int(exactly.q))
    return found if number.is_Rational else found + doubt


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the least denominator in the open interval."""
    whole = floor(low)
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:  # below a whole number plus 1/n, however small
        return whole + Fraction(1, floor(1 / (high - whole)) + 1)
    upper = 1 / (low - whole)
    lower = 1 / (high - whole) if high > whole else Fraction(0)
    return whole + 1 / _simplest(lower, upper)
