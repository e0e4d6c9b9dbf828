"""Interval arithmetic: where a term lies when each of its names lies between two numbers.

Names may have arrays of ends, one for each tile, so that one call bounds a term on all tiles. The
result always contains the true range; for terms that rise or fall in each name it is the range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Lookup, Name, Num, Term
from lattend.rules.language.linear import Atom, Linear, Quotient, Remainder

Ends = int | NDArray[np.int64]


class Interval(NamedTuple):
    """All integers from `low` to `high`."""

    low: Ends
    high: Ends


def interval(term: Term, names: Mapping[str, Interval]) -> Interval:
    """Where the term lies.

    >>> from lattend.rules.language.parser import parse
    >>> interval(parse("q - t <= 0").left, {"q": Interval(4, 7), "t": Interval(3, 3)})
    Interval(low=1, high=4)
    """
    match term:
        case Num():
            return Interval(term.value, term.value)
        case Name():
            return names[term.name]
        case Lookup():
            raise DomainError(f"{expr.term_text(term)} is data: its range is found from the data")
        case Arith():
            return OPERATIONS[term.op](*(interval(arg, names) for arg in term.args))


def linear_interval(form: Linear, names: Mapping[str, Interval]) -> Interval:
    """Where a linear form lies, its divisors being numbers."""
    low = high = form.constant
    for atom, count in form.terms:
        a, b = _atom_interval(atom, names)
        low += count * (a if count > 0 else b)
        high += count * (b if count > 0 else a)
    return Interval(low, high)


def _atom_interval(atom: Atom, names: Mapping[str, Interval]) -> Interval:
    if isinstance(atom, str):
        return names[atom]
    by = names[atom.by] if isinstance(atom.by, str) else Interval(atom.by, atom.by)
    return OPERATIONS["//" if isinstance(atom, Quotient) else "%"](linear_interval(atom.of, names), by)


def least(form: Linear, names: Mapping[str, Interval]) -> Ends:
    """A number that the form is never below."""
    low = linear_interval(form, names).low
    for atom, count in form.terms:
        if isinstance(atom, Quotient) and isinstance(atom.by, int) and count % atom.by == 0:
            # by*(x // by) is x - x % by: the names may cancel then
            factor = count // atom.by
            rest = Linear(((Remainder(atom.of, atom.by), 1),))
            other = form.plus(Linear(((atom, count),)), -1).plus(atom.of, factor).plus(rest, -factor)
            low = _greatest(low, linear_interval(other, names).low)
    return low


def _add(a: Interval, b: Interval) -> Interval:
    return Interval(a.low + b.low, a.high + b.high)


def _subtract(a: Interval, b: Interval) -> Interval:
    return Interval(a.low - b.high, a.high - b.low)


def _negate(a: Interval) -> Interval:
    return Interval(-a.high, -a.low)


def _multiply(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return Interval(_least(*corners), _greatest(*corners))


def _divide(a: Interval, b: Interval) -> Interval:
    corners = [x // y for x in a for y in b]
    return Interval(_least(*corners), _greatest(*corners))


def _remainder(a: Interval, b: Interval) -> Interval:
    blocks = _divide(a, b)
    inside = blocks.low == blocks.high  # no multiple of b is passed, so the remainder rises with a
    one = b.low == b.high
    low = _where(inside & one, a.low - blocks.low * b.low, 0)
    high = _where(inside & one, a.high - blocks.low * b.low, b.high - 1)
    return Interval(low, high)


def _magnitude(a: Interval) -> Interval:
    return Interval(_greatest(0, a.low, -a.high), _greatest(-a.low, a.high))


def _smaller(*args: Interval) -> Interval:
    return Interval(_least(*(a.low for a in args)), _least(*(a.high for a in args)))


def _larger(*args: Interval) -> Interval:
    return Interval(_greatest(*(a.low for a in args)), _greatest(*(a.high for a in args)))


def _least(*ends: Ends) -> Ends:
    return _folded(np.minimum, min, ends)


def _greatest(*ends: Ends) -> Ends:
    return _folded(np.maximum, max, ends)


def _folded(ufunc: Callable[..., Any], plain: Callable[..., Any], ends: tuple[Ends, ...]) -> Ends:
    best = ends[0]
    for end in ends[1:]:
        numbers = isinstance(best, int) and isinstance(end, int)
        best = plain(best, end) if numbers else ufunc(best, end)
    return best


def _where(condition: Any, yes: Ends, no: Ends) -> Ends:
    if isinstance(condition, (bool, np.bool_)):
        return yes if condition else no
    return np.where(condition, yes, no)


OPERATIONS: dict[str, Callable[..., Interval]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "//": _divide,
    "%": _remainder,
    "neg": _negate,
    "abs": _magnitude,
    "min": _smaller,
    "max": _larger,
}
