"""Real roots of polynomials as exact numbers, in order, and simple fractions between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

import sympy

from lattend.errors import NoClosedForm
from lattend.study.exact.sign import sign_of

Poly = Any  # sympy.Poly, whose own types cannot be checked
DIGITS = 40
PRECISIONS = (40, 80, 160, 320, 640)  # digits; asked for in turn until numbers come apart
HIGHEST = 12  # degree of a polynomial whose roots are isolated; 18 has taken minutes


def positive_roots(polynomials: Iterable[Poly]) -> list[Any]:
    """The real roots above 0 of any of these polynomials in one name, each once, in order.

    >>> x = sympy.Symbol("x")
    >>> positive_roots([sympy.Poly(x**2 - 3, x), sympy.Poly(x**3 - x, x)])
    [1, sqrt(3)]
    """
    factors = {factor for one in polynomials if not one.is_ground for factor, _ in one.factor_list()[1]}
    roots = [root for factor in factors if factor.count_roots(0, None) for root in real_roots(factor)]
    return _in_order([root for root in roots if sign_of(root) > 0])


def real_roots(irreducible: Poly) -> list[Any]:
    """The real roots of an irreducible polynomial; by square roots where its even powers allow it."""
    if irreducible.degree() > HIGHEST:
        raise NoClosedForm(
            f"the roots of a polynomial of degree {irreducible.degree()}; {HIGHEST} is the limit"
        )
    coefficients = irreducible.all_coeffs()
    if irreducible.degree() == 4 and not any(coefficients[1::2]):
        squares: Any = sympy.Poly(coefficients[::2], irreducible.gen).real_roots()
        above = [sympy.sqrtdenest(sympy.sqrt(square)) for square in squares if sign_of(square) > 0]
        return sorted([-root for root in above] + above, key=near)
    return irreducible.real_roots()


def near(number: Any, digits: int = DIGITS) -> Any:
    """The number to so many digits."""
    return number.evalf(digits, maxn=4 * digits)


def at_most(a: Any, b: Any) -> bool:
    """Whether a <= b, exactly, however close they are; either may be infinite.

    >>> at_most(sympy.sqrt(2), sympy.Rational(3, 2)), at_most(sympy.oo, sympy.Integer(7))
    (True, False)
    """
    return a == b or (b == sympy.oo if sympy.oo in (a, b) else sign_of(b - a) >= 0)


def horner(coefficients: Sequence[Any], at: Any, zero: Any) -> Any:
    """A polynomial, its highest coefficient first, at a number.

    >>> horner([1, 0, -3], 2, 0)
    1
    """
    total = zero
    for c in coefficients:
        total = total * at + c
    return total


def between(low: Any, high: Any) -> Any:
    """The simplest fraction strictly between two numbers; high may be infinite.

    >>> between(sympy.Rational(1, 3), sympy.sqrt(2))
    1
    """
    if high == sympy.oo:
        return sympy.floor(low) + 1
    for digits in PRECISIONS:
        above, below = _fraction(low, digits, 1), _fraction(high, digits, -1)
        if above < below:
            fraction = _simplest(above, below)
            return sympy.Rational(fraction.numerator, fraction.denominator)
    raise NoClosedForm(f"a fraction between numbers that agree to {PRECISIONS[-1]} digits")


def _in_order(numbers: Sequence[Any]) -> list[Any]:
    """Different numbers above 0, the least first."""
    for digits in PRECISIONS:
        ordered = sorted(((near(number, digits), number) for number in numbers), key=lambda pair: pair[0])
        if all(b - a > b * sympy.Float(10) ** (10 - digits) for (a, _), (b, _) in pairwise(ordered)):
            return [number for _, number in ordered]
    raise NoClosedForm(f"the order of numbers that agree to {PRECISIONS[-1]} digits")


def _fraction(number: Any, digits: int, side: int) -> Fraction:
    """The number if it is a fraction; else one near it, above (side 1) or below it (side -1)."""
    exactly: Any = sympy.Rational(number if number.is_Rational else near(number, digits))
    exact_fraction = Fraction(int(exactly.p), int(exactly.q))
    return (
        exact_fraction
        if number.is_Rational
        else exact_fraction + side * abs(exact_fraction) / 10 ** (digits - 10)
    )


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the least denominator in the open interval."""
    floor_low = floor(low)
    if floor_low + 1 < high:
        return Fraction(floor_low + 1)
    if low == floor_low:  # below a whole number plus 1/n, however small
        return floor_low + Fraction(1, floor(1 / (high - floor_low)) + 1)
    upper = 1 / (low - floor_low)
    lower = 1 / (high - floor_low) if high > floor_low else Fraction(0)
    return floor_low + 1 / _simplest(lower, upper)
