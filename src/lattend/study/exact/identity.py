"""Whether an exact expression is 0, and what it tends to: decided by algebra, not by digits.

Exponentials and logarithms become letters: e^(a/2) is x with e^a = x^2, log 12 is 2 log 2 + log 3. What is 0
as a quotient of polynomials in these letters is 0.
"""

from __future__ import annotations

from math import lcm
from typing import Any

import sympy
from sympy.polys.fields import FracField


def is_zero(value: Any) -> bool:
    """Whether the expression is 0 for all values of its symbols.

    >>> is_zero(sympy.log(6) - sympy.log(2) - sympy.log(3)), is_zero(sympy.exp(2) - sympy.exp(1) ** 2 - 1)
    (True, False)
    """
    value = sympy.sympify(value)
    if value.is_Rational:
        return bool(value == 0)
    letters, _ = _in_letters(sympy.expand_log(value, force=True, factor=True))
    return bool(_quotient(letters) == 0 if _is_rational(letters) else sympy.simplify(letters.expand()) == 0)


def limit(value: Any, name: str) -> Any:
    """What the expression tends to as the real symbol of this name grows without end.

    >>> limit(1 / (1 + sympy.exp(-sympy.Symbol("a", real=True))), "a")
    1
    """
    symbol = sympy.Symbol(name, real=True)
    letters, powers = _in_letters(sympy.sympify(value))
    if letters.free_symbols != {powers.get(symbol)} or not _is_rational(letters):
        return sympy.limit(value, symbol, sympy.oo)
    quotient = _quotient(letters)
    above, below = quotient.numer, quotient.denom
    leading = sympy.QQ.to_sympy(above.LC / below.LC)
    if above.degree() > below.degree():
        return sympy.oo * leading
    return leading if above.degree() == below.degree() else sympy.Integer(0)


def _in_letters(value: Any) -> tuple[Any, dict[Any, Any]]:
    """The expression with letters for exponentials and logarithms, and the letter of each exponent."""
    exponentials = value.atoms(sympy.exp) | (value.atoms(sympy.E.func) & {sympy.E})
    exponents = {one: one.as_base_exp()[1].expand().as_coefficients_dict() for one in exponentials}
    units: dict[Any, int] = {}
    for exponent in exponents.values():
        for part, many in exponent.items():
            units[part] = lcm(units.get(part, 1), int(many.q))
    letters = {part: sympy.Dummy(f"e{index}", positive=True) for index, part in enumerate(units)}
    new = {
        one: sympy.Mul(*(letters[part] ** (many * units[part]) for part, many in exponent.items()))
        for one, exponent in exponents.items()
    }
    new |= {one: sympy.Dummy(str(one)) for one in value.atoms(sympy.log)}
    return value.xreplace(new), letters


def _is_rational(value: Any) -> bool:
    """Whether this is a quotient of polynomials whose coefficients are fractions, without roots."""
    roots = any(not power.exp.is_Integer for power in value.atoms(sympy.Pow))
    return not roots and bool(value.is_rational_function())


def _quotient(value: Any) -> Any:
    """The expression as a quotient of two polynomials without a common factor."""
    symbols = sorted(value.free_symbols, key=str)
    return FracField(symbols or ["x"], sympy.QQ).from_expr(value)
