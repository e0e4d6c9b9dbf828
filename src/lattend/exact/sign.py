"""The sign of an exact number, decided: 0 is proved, never taken for what is close to 0."""

from __future__ import annotations

from math import prod
from typing import Any

import sympy
from sympy.core.evalf import PrecisionExhausted

from lattend.errors import DomainError

DIGITS = 1000  # beyond these a number that is not 0 is not told from 0
LARGEST_DEGREE = 64  # of an algebraic number that is proved to be 0
LONGEST = 200  # operations in a formula that is simplified


def sign_of(number: Any) -> int:
    """-1, 0 or 1; an error where neither digits nor algebra decide.

    >>> sign_of(sympy.sqrt(2) - 1), sign_of(sympy.sqrt(5 + 2 * sympy.sqrt(6)) - sympy.sqrt(2) - sympy.sqrt(3))
    (1, 0)
    """
    value = sympy.sympify(number)
    try:
        near = value.evalf(5, maxn=DIGITS, strict=True)
    except PrecisionExhausted:
        near = sympy.Integer(0)
    if not near.is_real:
        raise DomainError(f"{value!s:.60} is not a real number")
    if near == 0 and not _vanishes(value):
        raise DomainError(f"whether {value!s:.60} is 0 or only close to it could not be decided")
    return int(sympy.sign(near))


def _vanishes(value: Any) -> bool:
    """Whether a number of a thousand zeros is 0: by its minimal polynomial, else by simplifying."""
    degree = prod(int(root.exp.q) for root in value.atoms(sympy.Pow) if root.exp.is_Rational)
    if value.is_algebraic and degree <= LARGEST_DEGREE:
        x = sympy.Symbol("x")
        return sympy.minimal_polynomial(value, x) == x
    return value.count_ops() <= LONGEST and sympy.simplify(value) == 0
