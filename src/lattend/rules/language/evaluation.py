"""Evaluation of conditions at positions: exact Python integers, or NumPy arrays that never overflow."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, NamingError
from lattend.rules.language import expr
from lattend.rules.language.expr import (
    And,
    Arith,
    Compare,
    CompareOp,
    Condition,
    Lookup,
    Name,
    Node,
    Not,
    Num,
    Or,
    Term,
    Truth,
)
from lattend.rules.language.intervals import OPERATIONS, Interval

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LOW, _HIGH = -(2**63), 2**63 - 1
COMPARE: dict[CompareOp, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def evaluate(condition: Condition, env: Mapping[str, Any], data: Mapping[str, NDArray[Any]]) -> bool | Bools:
    """Returns whether a condition holds at these values: integers, or integer arrays.

    Arrays are combined as NumPy does; where all entries agree, the answer may be a single bool.

    >>> from lattend.rules.language.parser import parse
    >>> evaluate(parse("q - k <= 2"), {"q": np.arange(4), "k": 0}, {}).tolist()
    [True, True, True, False]
    """
    return expr.fold(condition, _Evaluator(env, data).step)


def evaluate_term(term: Term, env: Mapping[str, Any], data: Mapping[str, NDArray[Any]]) -> int | Ints:
    """Returns the value of a term at these values."""
    return expr.fold(term, _Evaluator(env, data).step).value


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A number or an array of int64, with a lower and an upper bound."""

    value: int | Ints
    low: int
    high: int

    @property
    def exact(self) -> int | None:
        return self.value if isinstance(self.value, int) else None


class _Evaluator:
    def __init__(self, env: Mapping[str, Any], data: Mapping[str, NDArray[Any]]) -> None:
        self.env = env
        self.data = data
        self.values: dict[str, _Bounded] = {}

    def step(self, node: Node, parts: Sequence[Any]) -> Any:
        """Returns the value of a node from its parts' values: a _Bounded or, for a condition, bools."""
        match node:
            case Truth():
                return node.value
            case Num():
                return _Bounded(node.value, node.value, node.value)
            case Name():
                if node.name not in self.values:
                    self.values[node.name] = self.read(node.name)
                return self.values[node.name]
            case Lookup():
                return self.look_up(node, parts)
            case Arith():
                result = self.arithmetic(node, parts)
                exact = result.exact
                return result if exact is None else _Bounded(exact, exact, exact)
            case Compare():
                return _compared(node.op, *parts)
            case And():
                return reduce(lambda a, b: a & b, parts)
            case Or():
                return reduce(lambda a, b: a | b, parts)
            case Not():
                return not parts[0] if isinstance(parts[0], bool) else ~parts[0]

    def read(self, name: str) -> _Bounded:
        if name not in self.env:
            raise NamingError(f"no value is given for {name}")
        return _value(self.env[name], name)

    def arithmetic(self, node: Arith, args: Sequence[_Bounded]) -> _Bounded:
        if node.op in ("min", "max"):
            return reduce(lambda a, b: _extreme(node.op, a, b), args)
        if node.op in ("//", "%"):
            return self.divided(node, *args)
        low, high = _bounds(node.op, args)
        if all(arg.exact is not None for arg in args):
            return _Bounded(ARITHMETIC[node.op](*(arg.value for arg in args)), low, high)
        ends = [low, high, *(end for arg in args for end in (arg.low, arg.high))]
        if min(ends) < _LOW or max(ends) > _HIGH:
            raise DomainError(
                f"{expr.term_text(node)} may lie between {low:,} and {high:,}, more than 64 bits hold; "
                "use smaller numbers, or contains(…) for one pair"
            )
        return _Bounded(ARITHMETIC[node.op](*(arg.value for arg in args)), low, high)

    def divided(self, node: Arith, value: _Bounded, divisor: _Bounded) -> _Bounded:
        least = divisor.low if divisor.exact is not None else _least(divisor)
        if least < 1:
            raise DomainError(
                f"{expr.term_text(node)}: the divisor {expr.term_text(node.args[1])} is {least}, "
                "and it must be at least 1"
            )
        if value.low >= 0 and value.high < least:  # also for divisors beyond 64 bits
            return _Bounded(0, 0, 0) if node.op == "//" else value
        if value.exact is None or divisor.exact is None:
            ends = (value.low, value.high, divisor.high)
            if min(ends) < _LOW or max(ends) > _HIGH:
                raise DomainError(
                    f"{expr.term_text(node)} needs numbers of more than 64 bits; "
                    "use smaller ones, or contains(…) for one pair"
                )
        if node.op == "%":
            return _Bounded(value.value % divisor.value, 0, divisor.high - 1)
        corners = [end // by for end in (value.low, value.high) for by in (least, divisor.high)]
        return _Bounded(value.value // divisor.value, min(corners), max(corners))

    def look_up(self, node: Lookup, indices: Sequence[_Bounded]) -> _Bounded:
        if node.array not in self.data:
            raise NamingError(
                f"no array is given for {node.array}; pass it as data={{{node.array!r}: array}}"
            )
        array = np.asarray(self.data[node.array])
        if array.ndim != len(node.indices):
            raise DomainError(
                f"{expr.term_text(node)} gives {len(node.indices)} places, "
                f"and {node.array} has {array.ndim} axes"
            )
        for index, value, length in zip(node.indices, indices, array.shape, strict=True):
            _check_place(node, index, value, length)
        entries = array[tuple(value.value for value in indices)]
        return _value(entries, node.array, array)


def _check_place(node: Lookup, index: Term, value: _Bounded, length: int) -> None:
    if value.low >= 0 and value.high < length:
        return
    if value.exact is None:
        array = cast(Ints, value.value)
        outside = array[(array < 0) | (array >= length)]
        if outside.size == 0:
            return
        wrong = int(outside.flat[0])
    else:
        wrong = value.exact
    shown, inside = expr.term_text(index), f"0 … {length - 1}" if length else "none, it is empty"
    where = f"{shown} = {wrong}" if shown != str(wrong) else shown
    raise DomainError(f"{expr.term_text(node)} is read at {where}, outside the {node.array} given ({inside})")


def _value(entries: Any, name: str, whole: NDArray[Any] | None = None) -> _Bounded:
    """Returns a number, or an array of integers with its bounds, taken from `whole` if it is known."""
    if isinstance(entries, int):
        return _Bounded(int(entries), int(entries), int(entries))
    array: NDArray[Any] = np.asarray(entries)
    if array.dtype != bool and not np.issubdtype(array.dtype, np.integer):
        raise DomainError(f"{name} must hold whole numbers, got {array.dtype}")
    if array.ndim == 0:
        return _value(int(array.item()), name)
    if array.size == 0:
        return _Bounded(array.astype(np.int64), 0, 0)
    span = array if whole is None or whole.size > array.size else whole
    low, high = int(span.min()), int(span.max())
    if high > _HIGH:
        raise DomainError(f"{name} holds {high}, more than 64 bits hold")
    return _Bounded(array.astype(np.int64, copy=False), low, high)


def _least(value: _Bounded) -> int:
    array = cast(Ints, value.value)
    return value.low if value.low >= 1 or array.size == 0 else int(array.min())


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "neg": operator.neg,
    "abs": operator.abs,
}


def _bounds(op: str, args: Sequence[_Bounded]) -> tuple[int, int]:
    """The least and greatest value `op` can give between the bounds of its arguments."""
    return cast(tuple[int, int], OPERATIONS[op](*(Interval(arg.low, arg.high) for arg in args)))


def _extreme(op: str, a: _Bounded, b: _Bounded) -> _Bounded:
    if op == "max":
        if a.low >= b.high or b.low >= a.high:
            return a if a.low >= b.high else b
        choose, pick = np.maximum, max
    else:
        if a.high <= b.low or b.high <= a.low:
            return a if a.high <= b.low else b
        choose, pick = np.minimum, min
    if a.exact is not None and b.exact is not None:
        return _Bounded(pick(a.exact, b.exact), pick(a.low, b.low), pick(a.high, b.high))
    # neither is beyond the other, so a number that meets an array fits into 64 bits
    return _Bounded(choose(a.value, b.value), pick(a.low, b.low), pick(a.high, b.high))


def _compared(op: CompareOp, a: _Bounded, b: _Bounded) -> bool | Bools:
    if a.exact is not None and b.exact is not None:
        return COMPARE[op](a.exact, b.exact)
    if a.high < b.low or a.low > b.high:  # decided by the bounds, which may exceed 64 bits
        return COMPARE[op](a.low, b.low)
    return COMPARE[op](a.value, b.value)
