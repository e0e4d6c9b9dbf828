"""Formulas at numbers, exactly."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any

from lattend.counts.formula import (
    Apply,
    Condition,
    Formula,
    FormulaRelation,
    Junction,
    Number,
    Piecewise,
    Sum,
)
from lattend.rules.language.expr import Name

MAX_SUMMANDS = 100_000
MAX_POWER = 10_000


def value_at(formula: Formula, values: Mapping[str, int]) -> Fraction | None:
    """Returns the exact value of a formula at numbers; None if it is undefined, as for a division by 0."""
    try:
        return _value(formula, values)
    except (ZeroDivisionError, OverflowError):
        return None


def _value(node: Formula, values: Mapping[str, int]) -> Fraction:
    match node:
        case Number():
            return node.value
        case Name():
            return Fraction(values[node.name])
        case Sum():
            low, high = ceil(_value(node.low, values)), floor(_value(node.high, values))
            if high - low > MAX_SUMMANDS:
                raise OverflowError
            return sum(
                (_value(node.body, {**values, node.variable: i}) for i in range(low, high + 1)), Fraction(0)
            )
        case Piecewise():
            for piece, when in node.pieces:
                if _holds(when, values):
                    return _value(piece, values)
            raise ZeroDivisionError
        case Apply():
            return Fraction(_OPERATIONS[node.op](*(_value(arg, values) for arg in node.args)))


def _holds(condition: Condition, values: Mapping[str, int]) -> bool:
    match condition:
        case Junction():
            held = (_holds(arg, values) for arg in condition.args)
            return all(held) if condition.op == "and" else any(held)
        case FormulaRelation():
            return _RELATIONS[condition.sign](_value(condition.left, values), _value(condition.right, values))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > MAX_POWER:
        raise OverflowError
    return base ** int(exponent)


_RELATIONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    **{"==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt},
    **{">=": operator.ge, ">": operator.gt},
}
_OPERATIONS: dict[str, Callable[..., Any]] = {  # numbers in, numbers out
    **{"+": Fraction.__add__, "-": Fraction.__sub__, "*": Fraction.__mul__, "/": Fraction.__truediv__},
    **{"//": Fraction.__floordiv__, "%": Fraction.__mod__, "^": _power, "neg": Fraction.__neg__},
    **{"abs": abs, "floor": floor, "ceil": ceil, "min": min, "max": max},
}
