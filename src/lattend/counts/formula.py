"""Formulas: the terms of rules, with fractions, powers, sums and pieces; claims, and exact values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal, cast, overload

from lattend.rules.language import expr
from lattend.rules.language.evaluation import ARITHMETIC, COMPARE
from lattend.rules.language.expr import (
    And,
    Arith,
    ArithOp,
    Compare,
    Condition,
    Lookup,
    Name,
    Not,
    Num,
    Or,
    Span,
    Term,
    Truth,
)
from lattend.rules.language.grammar import Parsed

MAX_SUMMANDS = 100_000
MAX_POWER = 10_000
ALWAYS = Truth(True)

OrderSign = Literal["O", "Theta", "Omega", "o", "omega"]


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of `body` for `variable` from `low` to `high`, both included; 0 when high < low."""

    body: Formula
    variable: str
    low: Formula
    high: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The formula of the first condition that holds; undefined if none holds."""

    pieces: tuple[tuple[Formula, Condition], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


# The arguments of an Arith in a formula, and the sides of a Compare, may be sums and pieces too
Formula = Term | Sum | Piecewise


@dataclass(frozen=True, slots=True)
class BigO:
    """A claim about growth only: O(n*t), or one of its relatives, Θ(n*t), Ω(n), o(n^2), ω(1)."""

    body: Formula
    sign: OrderSign = "O"
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ClaimSide:
    """One side of an equation, and the text it was read from."""

    node: Formula | BigO
    text: str


@dataclass(frozen=True, slots=True)
class WrittenClaim:
    """A claim about a count: one formula, or several that are claimed to be equal, `N = a = b`.

    `name` is what the text calls the count itself; `readings` say how dots and the like were understood, and
    `bracketed` are texts with brackets that may have been left out.
    """

    sides: tuple[ClaimSide, ...]
    name: str = ""
    readings: tuple[str, ...] = ()
    bracketed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedFormula(Parsed):
    """A parsed part of a formula: whether it is a quotient, and the pieces of a sum as it is written.

    The summands have their signs; a bracket holds none.
    """

    quotient: bool = False
    summands: tuple[Summand, ...] = ()


Summand = tuple[ArithOp, ParsedFormula]


def applied(op: ArithOp, *args: Formula, span: Span | None = None) -> Arith:
    """Returns an operation on formulas."""
    return Arith(op, cast(tuple[Term, ...], args), span)


def rational(value: int | Fraction, span: Span | None = None) -> Term:
    """Returns a number as a formula; a fraction is a quotient of two.

    >>> rational(Fraction(1, 2))
    Arith(op='/', args=(Num(value=1), Num(value=2)))
    """
    above, below = Num(value.numerator, span), Num(value.denominator, span)
    return above if value.denominator == 1 else applied("/", above, below, span=span)


def children(node: Formula | Condition) -> tuple[Formula | Condition, ...]:
    """Returns the children of a node; the body of a sum is the last."""
    match node:
        case Sum():
            return (node.low, node.high, node.body)
        case Piecewise():
            return tuple(part for piece in node.pieces for part in piece)
        case _:
            return expr.children(node)


def walk(
    node: Formula | Condition | BigO, bound: frozenset[str] = frozenset()
) -> Iterator[tuple[Formula | Condition, frozenset[str]]]:
    """Yields every node of a formula, with the indices of the sums around it."""
    top = node.body if isinstance(node, BigO) else node
    yield top, bound
    *outer, last = children(top) or (None,)
    for part in outer:
        yield from walk(cast(Formula, part), bound)
    if last is not None:
        yield from walk(last, bound | {top.variable} if isinstance(top, Sum) else bound)


@overload
def substituted(formula: Formula, replacements: Mapping[str, Formula]) -> Formula: ...
@overload
def substituted(formula: Formula | BigO, replacements: Mapping[str, Formula]) -> Formula | BigO: ...
def substituted(formula: Formula | BigO, replacements: Mapping[str, Formula]) -> Formula | BigO:
    """The formula with names replaced; the index of a sum hides a name of the same spelling."""
    return _substituted(formula, replacements)


def _substituted(node: Formula | BigO | Condition, replacements: Mapping[str, Formula]) -> Any:
    match node:
        case BigO():
            return BigO(_substituted(node.body, replacements), node.sign, node.span)
        case Name():
            return replacements.get(node.name, node)
        case Piecewise():
            pieces = (tuple(_substituted(part, replacements) for part in piece) for piece in node.pieces)
            return Piecewise(tuple(cast(Any, pieces)), node.span)
        case Sum():
            taken = {n.name for new in replacements.values() for n, _ in walk(new) if isinstance(n, Name)}
            index = node.variable
            while index in taken:
                index += "_"  # a replacement must not be caught by the sum
            low, high = _substituted(node.low, replacements), _substituted(node.high, replacements)
            inner = {**replacements, node.variable: Name(index)}
            return Sum(_substituted(node.body, inner), index, low, high, node.span)
        case _:
            return expr.rebuilt(node, [_substituted(part, replacements) for part in expr.children(node)])


# Values


def value_at(formula: Formula, values: Mapping[str, int]) -> Fraction | None:
    """Returns the exact value of a formula at numbers; None if it is undefined, as for a division by 0."""
    try:
        return _value(formula, values)
    except (ZeroDivisionError, OverflowError):
        return None


def _value(node: Formula, values: Mapping[str, int]) -> Fraction:
    match node:
        case Num():
            return Fraction(node.value)
        case Name():
            return Fraction(values[node.name])
        case Arith():
            return Fraction(_OPERATIONS[node.op](*(_value(arg, values) for arg in node.args)))
        case Sum():
            low, high = ceil(_value(node.low, values)), floor(_value(node.high, values))
            if high - low > MAX_SUMMANDS:
                raise OverflowError
            summands = (_value(node.body, {**values, node.variable: i}) for i in range(low, high + 1))
            return sum(summands, Fraction(0))
        case Piecewise():
            for piece, when in node.pieces:
                if _holds(when, values):
                    return _value(piece, values)
            raise ZeroDivisionError
        case Lookup():
            raise ValueError("a formula looks up no data")


def _holds(condition: Condition, values: Mapping[str, int]) -> bool:
    match condition:
        case Truth():
            return condition.value
        case And(args=args):
            return all(_holds(arg, values) for arg in args)
        case Or(args=args):
            return any(_holds(arg, values) for arg in args)
        case Not():
            return not _holds(condition.arg, values)
        case Compare():
            return COMPARE[condition.op](_value(condition.left, values), _value(condition.right, values))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > MAX_POWER:
        raise OverflowError
    return base ** int(exponent)


_OPERATIONS: dict[str, Callable[..., Any]] = {  # of fractions
    **ARITHMETIC,
    **{"/": Fraction.__truediv__, "//": Fraction.__floordiv__, "%": Fraction.__mod__, "^": _power},
    **{"floor": floor, "ceil": ceil, "min": min, "max": max},
}
