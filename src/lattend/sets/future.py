"""The future of a key: the last query that reaches it, for a rule on a line without open numbers.

Whether a decoder may forget a key follows from it: key k is in use at position p while
`k <= p <= last(k)`. The last query is a piecewise affine function of k, or there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

import islpy as isl
import numpy as np

from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Condition, Name, Num
from lattend.rules.language.linear import Linear, Quotient
from lattend.sets.bound import Bound, any_clause_holds, quotient_of
from lattend.sets.build import Described, describe
from lattend.sets.region import Region
from lattend.sets.set_to_condition import bound_condition, remainder_conditions
from lattend.sets.space import Space

MAX_PIECES = 3  # more are not written out
_KEYS = Space(("k",), (), {})
_UP_TO = isl.Map("{ [q] -> [p] : p <= q }")  # the positions up to a query
_PRESENT = isl.Set("[v_k] -> { [p] : p >= v_k >= 0 }")  # the positions at which key k is there
_DISTANCE = isl.Map("{ [k, p] -> [p - k] }")


@dataclass(frozen=True)
class LastQuery:
    """The last query of the keys that satisfy all bounds of a clause; None if there is no last one."""

    where: tuple[tuple[Bound, ...], ...]
    query: Linear | None

    def holds(self, k: Any) -> Any:
        """Returns whether key k belongs to it; an array of keys gives an array."""
        return any_clause_holds(self.where, {"k": k})

    def __str__(self) -> str:
        where = " or ".join(map(_clause_text, self.where))
        how = "for good" if self.query is None else f"until query {self.query}"
        return f"{how} when {where}" if where else how


@dataclass(frozen=True)
class Future:
    """The keys that later queries reach. A key in no piece is never reached.

    `ahead` is the least pair with k > q, if any; nothing else is known then. `whole`: each query
    reaches all keys in use at its position. Keys from `pinned` on are in use for at most `reach`
    positions after their own, and from `settled` on again in the same way `period` positions later;
    None where there is no such number.
    """

    ahead: tuple[int, int] | None = None
    pieces: tuple[LastQuery, ...] = ()
    whole: bool = False
    pinned: int | None = None
    reach: int | None = None
    settled: int | None = None
    period: int = 1

    def last(self, k: Any, forever: int, never: int) -> Any:
        """The last query of key k, or of each of an array of keys."""
        last: Any = never
        for piece in self.pieces:
            query = forever if piece.query is None else piece.query.value({"k": k})
            last = np.where(piece.holds(k), query, last)
        return last

    def __str__(self) -> str:
        """How long a key is kept: `key k is kept for good when k <= 3, until query k + 5 when k >= 4`."""
        if not self.pieces:
            return "no key is kept: no query reaches any"
        if len(self.pieces) > MAX_PIECES:
            return "key k is kept until the last query that reaches it"
        lines = [str(piece) for piece in self.pieces]
        if lines == ["for good"]:
            return "every key is kept: each is within reach of queries to come"
        last = ", the last that reaches it" if any(piece.query for piece in self.pieces) else ""
        return f"key k is kept {', '.join(lines)}{last}"


def future(condition: Condition, length: int | None = None, heads: int | None = None) -> Future:
    """Returns which keys future queries reach, for a condition on q, k (and head).

    `length` is the number of positions where it is known, `heads` that of the heads if the condition
    speaks of them.

    >>> from lattend.rules.language.parser import parse
    >>> found = future(parse("k <= q and q - k <= 3"))
    >>> [str(piece.query) for piece in found.pieces], found.reach, found.whole
    (['k + 3'], 3, True)
    """
    described = _described(condition, length, heads)
    attended = described.points
    if heads is not None:
        attended = attended.project_out(isl.dim_type.set, 0, 1)
    ahead = _least_ahead(attended)
    if ahead is not None:
        return Future(ahead)
    used = attended.apply(_UP_TO).intersect(_PRESENT).coalesce()
    ending = _PRESENT.subtract(used).params()
    forever = used.params().subtract(ending).coalesce()
    passing = attended.intersect_params(ending)
    pieces = [] if forever.is_empty() else [LastQuery(_clauses(forever), None)]
    pieces += _last_queries(passing)
    in_turn = _flat(used.intersect_params(ending))
    reach = _greatest(in_turn.apply(_DISTANCE))
    period = _period(in_turn)
    return Future(
        pieces=tuple(pieces),
        whole=heads is None and bool(used.is_subset(attended)),
        pinned=_after(forever.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, 1)),
        reach=reach,
        settled=None if reach is None else _settled(in_turn, period),
        period=period,
    )


def _described(condition: Condition, length: int | None, heads: int | None) -> Described:
    dims = ("q",) if heads is None else (HEAD, "q")
    limits = {"q": length, "k": length, HEAD: heads}
    inside = {name: _within(name, limit) for name, limit in limits.items()}
    return describe(
        condition,
        parameters=("k",),
        dims=dims,
        bounds=expr.all_of(*(inside[name] for name in dims)),
        domain=inside["k"],
        tied={"q": (), "k": ()},
    )


def _within(name: str, limit: int | None) -> Condition:
    least = Compare(">=", Name(name), Num(0))
    return least if limit is None else expr.all_of(least, Compare("<", Name(name), Num(limit)))


def _flat(points: isl.Set) -> isl.Set:
    """The points (k, p) rather than points p for each k."""
    return points.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, 1)


def _least_ahead(attended: isl.Set) -> tuple[int, int] | None:
    """The first pair (q, k) with k > q, queries in order."""
    ahead = attended.subtract(isl.Set("[v_k] -> { [q] : q >= v_k }"))
    if ahead.is_empty():
        return None
    first = ahead.move_dims(isl.dim_type.set, 1, isl.dim_type.param, 0, 1).lexmin().sample_point()
    return _coordinate(first, 0), _coordinate(first, 1)


def _last_queries(attended: isl.Set) -> list[LastQuery]:
    """Returns the last query of each key that has one, by pieces."""
    pieces: list[tuple[isl.Set, isl.MultiAff]] = []
    best = attended.lexmax_pw_multi_aff().coalesce()
    best.foreach_piece(lambda where, value: pieces.append((where, value)))
    queries: list[LastQuery] = []
    for where, value in pieces:
        quotient = quotient_of(value.get_aff(0), _KEYS.atoms)  # its form over its denominator
        query = quotient.of if quotient.by == 1 else Linear(((Quotient(quotient.of, quotient.by), 1),))
        queries.append(LastQuery(_clauses(where.params()), query))
    return queries


def _clauses(keys: isl.Set) -> tuple[tuple[Bound, ...], ...]:
    """Returns a set of keys as alternatives of bounds, without bounds that always hold."""
    known = isl.Set("[v_k] -> { : v_k >= 0 }").params()
    region = Region(_KEYS, keys.coalesce().gist(known))
    return tuple(tuple(clause) for clause in region.clauses)


def _greatest(line: isl.Set) -> int | None:
    """Returns the maximum of a set of numbers from 0 up: -1 if it is empty, None if it is unbounded."""
    line = line.compute_divs()  # what only exists, isl holds for unbounded
    if line.is_empty():
        return -1
    return _coordinate(line.lexmax().sample_point(), 0) if line.is_bounded() else None


def _after(line: isl.Set) -> int | None:
    greatest = _greatest(line)
    return None if greatest is None else greatest + 1


def _period(points: isl.Set) -> int:
    """A number of positions after which the set may look the same: that of its remainders."""
    divisors = [1]
    for part in points.compute_divs().get_basic_sets():
        for dim in range(part.dim(isl.dim_type.div)):
            divisors.append(int(str(part.get_div(dim).get_denominator_val())))
    return lcm(*divisors)


def _settled(points: isl.Set, period: int) -> int | None:
    """Returns the key from which the set repeats with `period`; None if it never does."""
    moved = points.apply(isl.Map(f"{{ [k, p] -> [k + {period}, p + {period}] }}"))
    late = points.intersect(isl.Set(f"{{ [k, p] : k >= {period} }}"))
    unlike = moved.subtract(points).union(late.subtract(moved))
    return _after(unlike.project_out(isl.dim_type.set, 1, 1))


def _coordinate(point: isl.Point, dim: int) -> int:
    return int(str(point.get_coordinate_val(isl.dim_type.set, dim)))


def _clause_text(clause: tuple[Bound, ...]) -> str:
    """Returns a bound as text: `k >= 4`, `k % 4 == 1`."""
    remainders, others = remainder_conditions(clause, ("k",))
    return " and ".join(map(expr.text, [*remainders, *(bound_condition(bound, ("k",)) for bound in others)]))
