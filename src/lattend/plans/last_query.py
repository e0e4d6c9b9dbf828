"""The last query that can reach a key, read off the rule's condition: no integer sets, so no isl.

Each comparison bounds q from above, given k, or does not; `and` takes the lesser bound, `or` the
greater. The bound is never below the truth. It is the truth where each part, once false for a key,
stays false: k <= q, q - k <= t, q // w == k // w and conditions on k alone are such parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, CompareOp, Condition
from lattend.rules.language.linear import Atom, Linear, Quotient, atom_names, gap_of

FOREVER = 1 << 62  # a last query that never comes
NEVER = -1


@dataclass(frozen=True)
class LastQueryBound:
    """An upper bound on the last query of key k, which keys from `pinned` on pass by `reach` at most.

    `steady`: a key that one query reaches is reached by all before it, from its own on, so that `last`
    is exact. `back`: no pair has k > q. `endless`: no query is the last, whatever k is.
    """

    last: Callable[[Any], Any]
    pinned: int = FOREVER
    reach: int = FOREVER
    steady: bool = False
    back: bool = False
    endless: bool = False


def last_query_bound(condition: Condition) -> LastQueryBound:
    """The bound for a condition on q and k with numbers for all other names.

    >>> from lattend.rules.language.parser import parse
    >>> found = last_query_bound(parse("k <= q and (k < 2 or q - k <= 5)"))
    >>> int(found.last(7)), found.pinned, found.reach, found.steady, found.back
    (12, 2, 5, True, True)
    """
    return expr.without_not(
        condition, _compared, lambda value: _always() if value else _never(), _both, _either
    )


def _always(steady: bool = True, back: bool = False) -> LastQueryBound:
    return LastQueryBound(lambda _: FOREVER, steady=steady, back=back, endless=True)


def _never() -> LastQueryBound:
    return LastQueryBound(lambda _: NEVER, pinned=0, reach=NEVER, steady=True, back=True)


def _both(a: LastQueryBound, b: LastQueryBound) -> LastQueryBound:
    near = min(a, b, key=lambda part: part.pinned + part.reach)
    return LastQueryBound(
        lambda k: np.minimum(a.last(k), b.last(k)),
        near.pinned,
        near.reach,
        a.steady and b.steady,
        a.back or b.back,
        a.endless and b.endless,
    )


def _either(a: LastQueryBound, b: LastQueryBound) -> LastQueryBound:
    return LastQueryBound(
        lambda k: np.maximum(a.last(k), b.last(k)),
        max(a.pinned, b.pinned),
        max(a.reach, b.reach),
        a.steady and b.steady,
        a.back and b.back,
        a.endless or b.endless,
    )


def _compared(node: Compare, op: CompareOp) -> LastQueryBound:
    below = gap_of(node, {})
    if below is None:
        return _always(steady=False)
    above, one = below.times(-1), Linear(constant=1)
    match op:
        case "<=":
            return _at_most_zero(below)
        case "<":
            return _at_most_zero(below.plus(one))
        case ">=":
            return _at_most_zero(above)
        case ">":
            return _at_most_zero(above.plus(one))
        case "==":
            return _both(_at_most_zero(below), _at_most_zero(above))
        case "!=":
            return _either(_at_most_zero(below.plus(one)), _at_most_zero(above.plus(one)))


def _at_most_zero(gap: Linear) -> LastQueryBound:
    """The bound for `gap <= 0`."""
    with_query = [(atom, count) for atom, count in gap.terms if "q" in atom_names(atom)]
    if not with_query:
        return _of_keys(gap)
    atom, count = with_query[0]
    block = _block(atom)
    if len(with_query) > 1 or block is None:
        return _always(steady=False)
    rest = gap.plus(Linear(((atom, count),)), -1)
    shift, w = block
    if count < 0:
        return _from_below(gap, rest)

    def last(k: Any) -> Any:
        # count * ((q + shift) // w) + rest(k) <= 0
        return (-rest.value({"k": k}) // count + 1) * w - 1 - shift

    beyond = gap.at({"q": "k"})  # what is left of it once the key's own block is taken off
    near = not beyond.terms or (w == 1 and all(a == "k" and c > 0 for a, c in beyond.terms))
    reach = (-beyond.constant // count) * w + w - 1 if near else FOREVER
    return LastQueryBound(last, 0 if near else FOREVER, reach, steady=True)


def _of_keys(gap: Linear) -> LastQueryBound:
    """A condition on k alone: its keys are reached for ever, the others never."""
    pinned = FOREVER
    if not gap.terms:
        return _always() if gap.constant <= 0 else _never()
    if len(gap.terms) == 1 and gap.terms[0][0] == "k" and gap.terms[0][1] > 0:
        pinned = max(0, -gap.constant // gap.terms[0][1] + 1)
    return LastQueryBound(
        lambda k: np.where(gap.value({"k": k}) <= 0, FOREVER, NEVER),
        pinned,
        FOREVER if pinned == FOREVER else NEVER,
        steady=True,
    )


def _from_below(gap: Linear, rest: Linear) -> LastQueryBound:
    """`q` at least something: no bound from above; k <= q is of this kind."""
    own = gap.at({"q": "k"})
    holds_from_own = own.constant <= 0 and all(a == "k" and c <= 0 for a, c in own.terms)
    plain = all(isinstance(atom, str) for atom, _ in gap.terms)
    slope, step = own.coefficient("k"), rest.coefficient("k")
    back = plain and slope >= 0 and step + gap.constant > 0
    return _always(holds_from_own, back)


def _block(atom: Atom) -> tuple[int, int] | None:
    """(c, w) where the atom is (q + c) // w; q itself is q // 1."""
    match atom:
        case str():
            return 0, 1
        case Quotient(Linear((("q", 1),), shift), int(by)):
            return shift, by
        case _:
            return None
