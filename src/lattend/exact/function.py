"""Functions: a formula as something to call, on fractions, surds, floats and arrays of floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from sympy.polys.polyerrors import BasePolynomialError

MOST_DERIVATIVES = 12


def symbols(names: Sequence[str]) -> tuple[Any, ...]:
    """The symbols that `formula` makes of these names."""
    return tuple(sympy.Symbol(name, real=True) for name in names)


def is_formula(value: Any) -> bool:
    """Whether this is a sympy expression."""
    return isinstance(value, sympy.Expr)


class Function:
    """A formula in several names; a polynomial with rational coefficients is summed term by term."""

    def __init__(self, formula: Any, names: Sequence[Any]) -> None:
        self.formula = sympy.sympify(formula)
        self.names = tuple(names)
        self._coefficients: dict[Any, list[Any]] = {}

    @cached_property
    def terms(self) -> list[tuple[Fraction, tuple[int, ...]]] | None:
        """Coefficients and powers; None where this is no polynomial with rational coefficients."""
        try:
            polynomial = sympy.Poly(self.formula, *self.names, domain="QQ")
        except BasePolynomialError:
            return None
        return [(Fraction(int(c.p), int(c.q)), tuple(map(int, powers))) for powers, c in polynomial.terms()]

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        return sympy.lambdify(self.names, self.formula, "numpy")

    def derivative(self, name: Any) -> Function:
        return Function(sympy.diff(self.formula, name), self.names)

    def at(self, values: Sequence[Any]) -> Any:
        """The formula with these exact values put in."""
        return self.formula.subs(dict(zip(self.names, values, strict=True)))

    def vanishes(self, values: Sequence[Any]) -> bool:
        """Whether the formula is 0 at these exact values."""
        found = self.at(values)
        return bool(found.is_zero or sympy.simplify(found) == 0)

    def __call__(self, values: Sequence[Any], number: Callable[[Fraction], Any] = float) -> Any:
        """The value at these numbers or arrays; `number` makes coefficients of their kind."""
        if self.terms is None:
            with np.errstate(all="ignore"):  # far out, an infinity is an answer
                return self._compiled(*values)
        if number not in self._coefficients:
            self._coefficients[number] = [number(c) for c, _ in self.terms]
        total = number(Fraction(0))
        for coefficient, (_, powers) in zip(self._coefficients[number], self.terms, strict=True):
            term = coefficient
            for value, power in zip(values, powers, strict=True):
                if power:
                    term = term * value**power
            total = total + term
        return total


def first_change(function: Function, place: int, values: Sequence[Any]) -> tuple[int, int] | None:
    """Which derivative by one name is the first that is not 0 at a point, and its sign; (0, 0): constant.

    None where twelve derivatives do not tell.

    >>> x, y = symbols(["x", "y"])
    >>> first_change(Function(y - x**4, (x, y)), 0, (0, 0))
    (4, -1)
    """
    one, held = function, list(zip(function.names, values, strict=True))
    for order in range(1, MOST_DERIVATIVES + 1):
        one = one.derivative(function.names[place])
        line = one.formula.subs([pair for pair in held if pair[0] != function.names[place]])
        if sympy.simplify(line) == 0:
            return 0, 0
        value = one.at(values)
        if not value.is_zero and sympy.simplify(value) != 0:
            return order, 1 if value.evalf() > 0 else -1
    return None
