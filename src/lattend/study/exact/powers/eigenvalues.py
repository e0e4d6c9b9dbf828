"""Eigenvalues as formulas in h: of factors of degree 1 and 2, and what splits into those with i."""

from __future__ import annotations

from typing import Any

import sympy

from lattend.study.exact.powers.disc import Z
from lattend.study.exact.powers.matrix import H
from lattend.study.exact.roots import Poly

MOST_DEGREE = 6  # of a factor that is split with i


Pair = tuple[Any, Any]  # middle and spread, for middle ± spread; no spread means one root


def eigenvalues(factor: Poly) -> list[Pair] | None:
    """The roots z = middle ± spread of an irreducible factor, in h; None where square roots do not suffice.

    >>> eigenvalues(sympy.Poly(Z**2 - 2 * Z + 1 + H**2, Z, H))
    [(1, I*h)]
    """
    degree = factor.degree(Z)
    if degree <= 2:
        return [middle_and_spread(factor.as_expr(), Z)]
    if degree > MOST_DEGREE:
        return None
    parts = [part for part, _ in sympy.factor_list(factor.as_expr(), Z, H, gaussian=True)[1]]
    if any(sympy.degree(part, Z) > 2 for part in parts):
        return None
    return [middle_and_spread(part, Z) for part in parts]


def roots_by_squares(expression: Any, name: Any) -> list[Any]:
    """The roots of a polynomial of degree 1 or 2 in one name."""
    middle, spread = middle_and_spread(expression, name)
    return [middle + spread, middle - spread] if spread != 0 else [middle]


def middle_and_spread(expression: Any, name: Any) -> Pair:
    """The roots middle ± spread of a polynomial of degree 1 or 2, squares taken out of the root.

    >>> x = sympy.Symbol("x")
    >>> middle_and_spread(x**2 - 2 * x - 7, x)
    (1, 2*sqrt(2))
    """
    coefficients = sympy.Poly(expression, name).all_coeffs()
    lead = coefficients[0]
    if len(coefficients) == 2:
        return sympy.expand(-coefficients[1] / lead), sympy.Integer(0)
    half = sympy.expand(-coefficients[1] / (2 * lead))
    outside, inside = square_part(sympy.expand(half**2 - coefficients[2] / lead))
    return half, sympy.expand(outside * sympy.sqrt(inside))


def square_part(expression: Any) -> tuple[Any, Any]:
    """A and b with expression = a^2·b, b without square factors or a negative constant in front.

    >>> square_part(sympy.expand(-8 * H**2 * (1 - H)))
    (2*h, 2*h - 2)
    """
    if expression.is_number:
        return sympy.Integer(1), expression
    split: Any = sympy.factor_list(expression)
    number, factors = split
    outside, inside = sympy.Integer(1), sympy.Integer(1)
    for factor, power in factors:
        outside *= factor ** (power // 2)
        inside *= factor ** (power % 2)
    taken = sympy.sqrt(abs(number)) if number.is_Rational else sympy.Integer(1)
    rational = taken if taken.is_Rational else taken.as_coeff_Mul()[0]  # 2 of 2·sqrt(3)
    return sympy.expand(outside * rational), sympy.expand(number / rational**2 * inside)
