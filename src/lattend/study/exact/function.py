"""Functions: a formula as something to call, on fractions, surds, floats and arrays of floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from math import comb, inf, log10, prod
from typing import Any

import numpy as np
import sympy
from sympy.polys.polyerrors import BasePolynomialError

from lattend.errors import DomainError
from lattend.study.exact.sign import sign_of

MOST_DERIVATIVES = 12
MOST_TERMS = 500  # of a polynomial; beyond them it is not expanded
MOST_OPERATIONS = 200  # of a formula that is simplified
EXACT_FLOATS = 2**53  # whole numbers up to here are floats


def symbols(names: Sequence[str]) -> tuple[Any, ...]:
    """The symbols that `formula` makes of these names."""
    return tuple(sympy.Symbol(name, real=True) for name in names)


def is_formula(value: Any) -> bool:
    """Whether this is a sympy expression."""
    return isinstance(value, sympy.Expr)


def as_float(number: Any) -> float:
    """The nearest float, infinite where the number is beyond all of them.

    >>> as_float(sympy.Rational(1, 4)), as_float(-(sympy.Integer(10) ** 400))
    (0.25, -inf)
    """
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


class Function:
    """A formula in several names; a polynomial with rational coefficients is summed term by term."""

    def __init__(self, formula: Any, names: Sequence[Any]) -> None:
        self.formula = sympy.sympify(formula)
        self.names = tuple(names)
        self._coefficients: dict[Any, list[Any]] = {}

    @cached_property
    def _polynomial(self) -> Any | None:
        """The formula multiplied out; None where it is no polynomial or has too many terms."""
        if most_terms(self.formula) > MOST_TERMS:
            return None
        try:
            return sympy.Poly(self.formula, *self.names)
        except BasePolynomialError:
            return None

    @property
    def degree(self) -> int | None:
        """The total degree of a polynomial, with any coefficients; None for other formulas."""
        return None if self._polynomial is None else int(max(0, self._polynomial.total_degree()))

    @cached_property
    def terms(self) -> list[tuple[Fraction, tuple[int, ...]]] | None:
        """Coefficients and powers; None where this is no polynomial with rational coefficients."""
        own_terms = [] if self._polynomial is None else self._polynomial.terms()
        if self._polynomial is None or not all(c.is_Rational for _, c in own_terms):
            return None
        return [(Fraction(int(c.p), int(c.q)), tuple(map(int, powers))) for powers, c in own_terms]

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        # Python's whole numbers may be too large for a float, sympy's decimals become infinite
        long = [n for n in self.formula.atoms(sympy.Rational) if max(abs(n.p), n.q) > EXACT_FLOATS]
        return sympy.lambdify(self.names, self.formula.xreplace({n: n.evalf(17) for n in long}), "numpy")

    def derivative(self, name: Any) -> Function:
        """The derivative by one name; abs(u) has the slope sign(u), which is 0 at its kink."""
        bent = self.formula.replace(sympy.Abs, _Abs).replace(sympy.sign, _Sign)
        slope = sympy.diff(bent, name).replace(_Abs, sympy.Abs).replace(_Sign, sympy.sign)
        return Function(slope, self.names)

    def at(self, values: Sequence[Any]) -> Any:
        """The formula with these exact values put in."""
        return self.formula.subs(dict(zip(self.names, values, strict=True)))

    def kinked(self, values: Sequence[Any]) -> bool:
        """Whether the formula has an abs(u) with u = 0 at these exact values."""
        inner = [one.args[0] for one in self.formula.atoms(sympy.Abs)]
        return any(Function(one, self.names).vanishes(values) for one in inner)

    def vanishes(self, values: Sequence[Any]) -> bool:
        """Whether the formula is 0 at these exact values, as far as can be decided."""
        return _sign_or_none(self.at(values)) == 0

    def __call__(self, values: Sequence[Any], number: Callable[[Fraction], Any] = float) -> Any:
        """The value at these numbers or arrays; `number` makes coefficients of their kind."""
        if number is not float:
            return self._summed(values, number)
        floats = [np.float64(value) for value in values]  # their powers and quotients do not raise errors
        with np.errstate(all="ignore"):  # far out, an infinity is an answer
            return self._compiled(*floats) if self.terms is None else self._summed(floats, as_float)

    def _summed(self, values: Sequence[Any], number: Callable[[Fraction], Any]) -> Any:
        assert self.terms is not None
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
        if line == 0 or (line.count_ops() <= MOST_OPERATIONS and sympy.simplify(line) == 0):
            return 0, 0
        sign = _sign_or_none(one.at(values))
        if sign is None:
            return None
        if sign:
            return order, sign
    return None


def _sign_or_none(number: Any) -> int | None:
    """The sign of a number; None where it has no value or could not be decided."""
    if not number.is_number or number.is_finite is False:
        return None
    try:
        return sign_of(number)
    except DomainError:
        return None


def most_digits(formula: Any) -> int:
    """The digits of the longest whole number in a formula, a fraction's two counted apart, or one more.

    >>> most_digits(symbols(["x"])[0] / 1000 + 12)
    4
    """
    numbers = (part for number in formula.atoms(sympy.Rational) for part in (number.p, number.q))
    return max((1 + int(int(part).bit_length() * log10(2)) for part in numbers), default=0)


def most_terms(formula: Any) -> int:
    """At most how many terms a formula has, multiplied out: (x + y)^9 has 10.

    >>> x, y = symbols(["x", "y"])
    >>> most_terms((x + y) ** 9 * (x - 1))
    20
    """
    if formula.is_Add:
        return sum(map(most_terms, formula.args))
    if formula.is_Mul:
        return prod(map(most_terms, formula.args))
    if formula.is_Pow and formula.exp.is_Integer and formula.exp > 0:
        inner = most_terms(formula.base)
        return comb(int(formula.exp) + inner - 1, inner - 1)
    return 1


class _Abs(sympy.Function):  # sympy's own has a slope with a Dirac delta in it, or with re and im
    def fdiff(self, argindex: int = 1) -> Any:
        return _Sign(self.args[0])


class _Sign(sympy.Function):
    def fdiff(self, argindex: int = 1) -> Any:
        return sympy.Integer(0)
