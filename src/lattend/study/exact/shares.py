"""Shares of a softmax over m keys, as formulas in β and m."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from lattend.study.exact.writing import latex, polynomial_text

BETA = sympy.Symbol("β", real=True)


def letter(name: str) -> Any:
    """A symbol for a number of keys."""
    return sympy.Symbol(name, positive=True)


def total_of(numbers: Sequence[Any]) -> Any:
    """The sum of exact numbers."""
    return sympy.simplify(sympy.Add(*numbers))


def shares(wanted: Sequence[Any], keys: Any) -> tuple[tuple[Any, ...], Any, Any]:
    """The softmax of logits β + log(s·wanted) on the s wanted keys, and 0 on all others.

    The share of each of the first keys, that of any other, and what all that are not wanted get together.

    >>> [share_text(share) for share in shares([sympy.Integer(1)], letter("m"))[1:]]
    ['1/(e^β + m - 1)', '(m - 1)/(e^β + m - 1)']
    """
    s = sum(weight != 0 for weight in wanted)
    raised = {weight: s * weight * sympy.exp(BETA) if weight else sympy.Integer(1) for weight in set(wanted)}
    total = sympy.factor(sympy.Add(*(raised[weight] for weight in wanted if weight))) + keys - s
    by_weight = {weight: _one_fraction(power / total) for weight, power in raised.items()}
    other, leak = _one_fraction(1 / total), _one_fraction((keys - s) / total)
    return tuple(by_weight[weight] for weight in wanted), other, leak


def _one_fraction(value: Any) -> Any:
    return sympy.cancel(sympy.together(value))


def share_numbers(formulas: Sequence[Any], keys: Any, sharpness: float, size: int) -> list[float]:
    """The formulas at a sharpness and a number of keys, in floats."""
    distinct = list(dict.fromkeys(formulas))
    name = sympy.Symbol("size") if keys.is_Integer else keys
    values = sympy.lambdify([BETA, name], distinct, "math")(sharpness, size)
    value_of = dict(zip(distinct, map(float, values), strict=True))
    return [value_of[formula] for formula in formulas]


def share_text(value: Any) -> str:
    """The fraction with powers of e first: `e^β/(2e^β + m - 2)`."""
    power = sympy.Symbol("e^β")
    above, below = (
        polynomial_text(part.subs(sympy.exp(BETA), power), [power]) for part in sympy.fraction(value)
    )
    above, below = (f"({part})" if " " in part else part for part in (above, below))
    return above if below == "1" else f"{above}/{below}"


def share_latex(value: Any) -> str:
    """The fraction in LaTeX."""
    return latex(value.subs(BETA, sympy.Symbol("beta")))
