"""The tree of a formula: numbers, names, operations, sums, pieces; each remembers its span in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from lattend.rules.language.expr import CompareOp, Name, Span
from lattend.rules.language.grammar import Parsed

Op = Literal["+", "-", "*", "/", "^", "//", "%", "neg", "floor", "ceil", "min", "max", "abs"]
OrderSign = Literal["O", "Theta", "Omega", "o", "omega"]


@dataclass(frozen=True, slots=True)
class Number:
    value: Fraction
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Apply:
    op: Op
    args: tuple[Formula, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of `body` for `variable` from `low` to `high`, both included; 0 when high < low."""

    body: Formula
    variable: str
    low: Formula
    high: Formula
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FormulaRelation:
    """A comparison of two formulas; `w divides n` is `n % w == 0`."""

    sign: CompareOp
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Junction:
    """Conditions joined by `and` or by `or`; without any, `and` is true."""

    op: Literal["and", "or"]
    args: tuple[Condition, ...]


Condition = FormulaRelation | Junction
ALWAYS = Junction("and", ())


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The formula of the first condition that holds; undefined if none holds."""

    pieces: tuple[tuple[Formula, Condition], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BigO:
    """A claim about growth only: O(n*t), or one of its relatives, Θ(n*t), Ω(n), o(n^2), ω(1)."""

    body: Formula
    sign: OrderSign = "O"
    span: Span | None = field(default=None, compare=False, repr=False)


Formula = Number | Name | Apply | Sum | Piecewise


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
    """A parsed part of a formula, with bounds on the terms and the degree of its expansion.

    `summands` are the pieces of a sum as it is written, each with its sign; a bracket holds none.
    """

    terms: int = 1
    degree: int = 0
    quotient: bool = False
    summands: tuple[Summand, ...] = ()


Summand = tuple[Op, ParsedFormula]


def walk(
    node: Formula | BigO, bound: frozenset[str] = frozenset()
) -> Iterator[tuple[Formula, frozenset[str]]]:
    """Yields every node of a formula, with the indices of the sums around it."""
    match node:
        case BigO():
            yield from walk(node.body, bound)
            return
        case Apply():
            below = [(arg, bound) for arg in node.args]
        case Sum():
            below = [(node.low, bound), (node.high, bound), (node.body, bound | {node.variable})]
        case Piecewise():
            below = [(part, bound) for piece, when in node.pieces for part in (piece, *_compared(when))]
        case Number() | Name():
            below = []
    yield node, bound
    for part, inside in below:
        yield from walk(part, inside)


def _compared(condition: Condition) -> Iterator[Formula]:
    """The formulas that a condition compares."""
    match condition:
        case FormulaRelation():
            yield from (condition.left, condition.right)
        case Junction():
            for arg in condition.args:
                yield from _compared(arg)


def substituted(formula: Formula, replacements: Mapping[str, Formula]) -> Formula:
    """The formula with names replaced; the index of a sum hides a name of the same spelling."""
    match formula:
        case Name():
            return replacements.get(formula.name, formula)
        case Number():
            return formula
        case Apply():
            args = tuple(substituted(arg, replacements) for arg in formula.args)
            return Apply(formula.op, args, formula.span)
        case Piecewise():
            pieces = (
                (substituted(piece, replacements), _substituted(when, replacements))
                for piece, when in formula.pieces
            )
            return Piecewise(tuple(pieces), formula.span)
        case Sum():
            low, high = substituted(formula.low, replacements), substituted(formula.high, replacements)
            taken = {n.name for new in replacements.values() for n, _ in walk(new) if isinstance(n, Name)}
            index = formula.variable
            while index in taken:
                index += "_"  # a replacement must not be caught by the sum
            inner = {**replacements, formula.variable: Name(index)}
            return Sum(substituted(formula.body, inner), index, low, high, formula.span)


def _substituted(condition: Condition, replacements: Mapping[str, Formula]) -> Condition:
    match condition:
        case FormulaRelation():
            left, right = (substituted(side, replacements) for side in (condition.left, condition.right))
            return FormulaRelation(condition.sign, left, right)
        case Junction():
            return Junction(condition.op, tuple(_substituted(arg, replacements) for arg in condition.args))
