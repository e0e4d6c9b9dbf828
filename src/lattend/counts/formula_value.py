"""Formulas at numbers, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor

from lattend.counts.formula import Apply, Formula, Number, Sum, Symbol

MAX_SUMMANDS = 100_000
MAX_POWER = 10_000


def value_at(formula: Formula, values: Mapping[str, int]) -> Fraction | None:
    """The formula's exact value at numbers; None where it is not defined, as at a division by 0."""
    try:
        return _value(formula, values)
    except (ZeroDivisionError, OverflowError):
        return None


def _value(node: Formula, values: Mapping[str, int]) -> Fraction:
    match node:
        case Number():
            return node.value
        case Symbol():
            return Fraction(values[node.name])
        case Sum():
            low, high = ceil(_value(node.low, values)), floor(_value(node.high, values))
            if high - low > MAX_SUMMANDS:
                raise OverflowError
            return sum(
                (_value(node.body, {**values, node.variable: i}) for i in range(low, high + 1)), Fraction(0)
            )
        case Apply():
            args = [_value(arg, values) for arg in node.args]
            return _applied(node.op, args)


def _applied(op: str, args: list[Fraction]) -> Fraction:
    match op, args:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            return a / b
        case "//", [a, b]:
            return Fraction(a // b)
        case "%", [a, b]:
            return a % b
        case "^", [a, b]:
            if b.denominator != 1 or abs(b) > MAX_POWER:
                raise OverflowError
            return a ** int(b)
        case "neg", [a]:
            return -a
        case "abs", [a]:
            return abs(a)
        case "floor", [a]:
            return Fraction(floor(a))
        case "ceil", [a]:
            return Fraction(ceil(a))
        case "min", _:
            return min(args)
        case "max", _:
            return max(args)
        case _:
            raise ValueError(f"{op} with {len(args)} arguments")
