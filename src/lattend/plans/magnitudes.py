"""How large numbers become on the way to a part's bounds and conditions: whether 32 bits hold them, or 64."""

from __future__ import annotations

from collections.abc import Mapping

from lattend.plans.part import Part
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Num, Term
from lattend.rules.language.intervals import Interval, interval

UNKNOWN = 1 << 61  # more than 32 bits hold, and no reason to refuse


def largest(part: Part, *more: Term, names: Mapping[str, Interval] | None = None) -> int:
    """The greatest magnitude of any number on the way to the part's bounds and conditions, and to `more`.

    `names` are further whole numbers in these; what has other names is no whole number.
    """
    ends = {name: Interval(value, value) for name, value in part.numbers.items()} | dict(names or {})
    ends[HEAD] = Interval(0, part.numbers.get(HEADS, 1))
    for axis in part.axes:
        ends |= {axis.outer: Interval(0, axis.outer_size), axis.inner: Interval(0, axis.inner_size)}
    terms = [t for a in part.axes for t in (*a.lows, *a.highs, *a.near_lows, *a.near_highs)]
    nodes = [node for root in (*terms, part.rest, *more) for node in expr.walk(root)]
    found = [0]
    for node in nodes:
        if isinstance(node, (Num, Arith)) and not expr.arrays(node) and ends.keys() >= set(expr.names(node)):
            try:
                found += [abs(int(end)) for end in interval(node, ends)]
            except ZeroDivisionError:  # by what is 0 at an end that is no position
                return UNKNOWN
    return max(found)
