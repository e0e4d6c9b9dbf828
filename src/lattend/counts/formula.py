"""The tree of a formula: numbers, names, operations, sums; each remembers the span it was read from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

Span = tuple[int, int]
Op = Literal["+", "-", "*", "/", "^", "//", "%", "neg", "floor", "ceil", "min", "max", "abs"]
OrderSign = Literal["O", "Theta", "Omega", "o", "omega"]


@dataclass(frozen=True, slots=True)
class Number:
    value: Fraction
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str
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
class BigO:
    """A claim about growth only: O(n*t), or one of its relatives, Θ(n*t), Ω(n), o(n^2), ω(1)."""

    body: Formula
    sign: OrderSign = "O"
    span: Span | None = field(default=None, compare=False, repr=False)


Formula = Number | Symbol | Apply | Sum


@dataclass(frozen=True, slots=True)
class ClaimSide:
    """One side of an equation, and the text it was read from."""

    node: Formula | BigO
    text: str


@dataclass(frozen=True, slots=True)
class WrittenClaim:
    """What is claimed of a count: one formula, or several that are all said to be equal, `N = a = b`.

    `name` is what the text calls the count itself; `readings` say how dots and the like were understood, and
    `bracketed` are texts with brackets that may have been left out.
    """

    sides: tuple[ClaimSide, ...]
    name: str = ""
    readings: tuple[str, ...] = ()
    bracketed: tuple[str, ...] = ()


def walk(
    node: Formula | BigO, bound: frozenset[str] = frozenset()
) -> Iterator[tuple[Formula, frozenset[str]]]:
    """Every node of a formula, with the indices of the sums around it."""
    match node:
        case BigO():
            yield from walk(node.body, bound)
            return
        case Apply():
            below = [(arg, bound) for arg in node.args]
        case Sum():
            below = [(node.low, bound), (node.high, bound), (node.body, bound | {node.variable})]
        case Number() | Symbol():
            below = []
    yield node, bound
    for part, inside in below:
        yield from walk(part, inside)
