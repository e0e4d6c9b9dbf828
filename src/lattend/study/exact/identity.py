"""Whether two exact expressions are equal, and what they tend to: decided by algebra, not by digits."""

from __future__ import annotations

from typing import Any

import sympy


def is_zero(value: Any) -> bool:
    """Whether the expression is 0 for all values of its symbols; logarithms are split into those of primes.

    >>> is_zero(sympy.log(6) - sympy.log(2) - sympy.log(3)), is_zero(sympy.exp(2) - sympy.exp(1) ** 2 - 1)
    (True, False)
    """
    value = sympy.sympify(value)
    if value.is_Rational:
        return bool(value == 0)
    split = sympy.expand_log(value, force=True, factor=True)
    return bool(sympy.cancel(sympy.expand(split)) == 0)


def limit(value: Any, name: str) -> Any:
    """What the expression tends to as the real symbol of this name grows without end.

    >>> limit(1 / (1 + sympy.exp(-sympy.Symbol("a", real=True))), "a")
    1
    """
    return sympy.limit(value, sympy.Symbol(name, real=True), sympy.oo)
