"""Attended pairs of a rule, in three columns, and the queries and keys that have any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lattend.cost.amount import ONE, Amount
from lattend.cost.layer import Columns
from lattend.cost.points import Sizes, count_pairs, defined, known_numbers, substitute, with_parameters
from lattend.cost.sizes import multiply, number_of
from lattend.counts.closed import Closed, counted_points
from lattend.errors import DeadlineError, LattendError, NamingError, TooLarge
from lattend.plans.plan import TILE, plan
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Name, Term
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import Rule
from lattend.sets import PointSet
from lattend.sets.guard import guarded, remembered

MOST_MASK = 1 << 24


@dataclass(frozen=True)
class AttendedPairs:
    """The pairs of all heads, the rows that have any, the keys that have any, and the whole grid."""

    pairs: Columns
    rows: Columns
    keys: Columns
    queries: Polynomial
    all_keys: Polynomial
    per_head: bool  # heads differ, and all are in the numbers
    shifts: Polynomial  # different k - q on the whole grid
    rule: Rule
    sizes: Sizes

    def used_shifts(self) -> Columns:
        """The shifts k - q of attended pairs."""
        every = Amount.of(self.shifts)
        return Columns.of(_touched(self.rule, self.sizes, "shift"), every)

    def any(self) -> Columns:
        """1 where there is a pair at all, else 0."""
        return Columns.of(_touched(self.rule, self.sizes, "any"), ONE)


def attended_pairs(rule: Rule, sizes: Sizes) -> AttendedPairs:
    """A rule's attended pairs at these sizes, as numbers or formulas, all within one budget."""
    shared_rule = replace(rule, budget=rule.budget.shared())
    try:
        needed = count_pairs(shared_rule, sizes)
        rows, columns = (_touched(shared_rule, sizes, side) for side in ("query", "key"))
    except DeadlineError as reason:
        raise DeadlineError(
            f'rule "{rule.text}": its pairs were not counted: {reason}; give its sizes numbers'
        ) from None
    sides = [(sizes[axis.queries], sizes[axis.keys]) for axis in rule.axes]
    queries, keys = (multiply(*along) for along in zip(*sides, strict=True))
    shifts = multiply(*(along + other - Polynomial.constant(1) for along, other in sides))
    heads = (sizes["heads"],) if rule.has_heads else ()
    every_row, every_key = Amount.of(multiply(queries, *heads)), Amount.of(multiply(keys, *heads))
    dense = Amount.of(multiply(queries, keys, *heads))
    needed, rows, columns = (replace(amount, budget=rule.budget) for amount in (needed, rows, columns))
    return AttendedPairs(
        Columns(needed, lambda values: _executed(rule, sizes, values), dense),
        Columns(rows, lambda values: rows, every_row),  # a row without keys is not summed in tiles either
        Columns(columns, lambda values: columns, every_key),
        queries,
        keys,
        rule.has_heads,
        shifts,
        rule,
        sizes,
    )


def _executed(rule: Rule, sizes: Sizes, values: Mapping[str, int]) -> Amount | None:
    """The pairs of the plan's tiles, 64 queries by 64 keys; None while a size has no number."""
    numbers = {name: number_of(size.at(values)) for name, size in sizes.items()}
    known = {name: number for name in rule.free if (number := numbers[name]) is not None}
    if len(known) < len(rule.free) or rule.open:
        return None
    heads = numbers["heads"] if rule.has_heads else 1
    return None if heads is None else _tiled(rule.at(**known), heads)


def executed_pairs(bound: Rule, tile: int = TILE) -> int:
    """The pairs of the tiles of one head that a plan runs, whole; all of them where there is no plan."""
    tiled = _tiled(bound, 1, tile)
    value = None if tiled is None else tiled.value()
    return bound.dense if value is None else value


@lru_cache(maxsize=64)
def _tiled(bound: Rule, heads: int, tile: int = TILE) -> Amount | None:
    try:
        tiled_plan = plan(bound)
    except DeadlineError:
        raise
    except LattendError:  # there is no plan
        return None
    return Amount.number(tiled_plan.executed(tile, heads))


def _touched(rule: Rule, sizes: Sizes, side: str) -> Amount:
    """How many queries, keys or shifts k - q are in at least one pair, over all heads; "any" is 1 or 0."""
    known = known_numbers(rule, sizes)
    if len(known) == len(rule.free) and expr.arrays(rule.condition):
        return Amount.number(_touched_by_data(rule.at(**known), side))
    bare = with_parameters(rule, known)
    plain = replace(bare, values={})
    if side != "shift" and remembered(_attends_to_itself, plain, budget=rule.budget):
        return ONE if side == "any" else Amount.of(multiply(*(sizes[axis.queries] for axis in rule.axes)))
    closed = remembered(_projected, plain, side, budget=rule.budget)
    chosen = {name: sizes[name] for name in (*bare.sizes, *bare.parameters)}
    return replace(guarded(substitute, closed, chosen, defined(bare), budget=rule.budget), budget=rule.budget)


def _touched_by_data(bound: Rule, side: str) -> int:
    """The same for a rule that looks up data: from its mask, or where all attend to themselves."""
    line = len(bound.axes) == 1 and not bound.has_heads and len(set(bound.lengths.values())) == 1
    if bound.dense > MOST_MASK:
        n = next(iter(bound.lengths.values()))
        itself = {name: np.arange(n) for name in bound.positions}
        if (
            line
            and side != "shift"
            and np.all(evaluate(bound.condition, {**bound.values, **itself}, bound.data))
        ):
            return 1 if side == "any" else n
        raise TooLarge(
            f"which of {n:,} positions attend to any is read off a mask of at most {MOST_MASK:,} pairs"
        )
    mask = bound.mask()
    if side in ("any", "shift"):
        return int(mask.any()) if side == "any" else _shifts_of(mask)
    axes = len(bound.axes)
    lead = mask.ndim - 2 * axes
    others = range(lead + axes, mask.ndim) if side == "query" else range(lead, lead + axes)
    return int(mask.any(tuple(others)).sum())


def _attends_to_itself(rule: Rule) -> bool:
    """Whether every position attends to itself, so that every query and every key is in a pair."""
    if rule.has_heads or any(axis.queries != axis.keys for axis in rule.axes):
        return False
    own: dict[str, Term] = {axis.key: Name(axis.query) for axis in rule.axes}
    others = expr.negated(expr.substituted(rule.condition, own))
    diagonal = PointSet.of(
        others, rule.axes, domain=defined(rule), parameters=(*rule.sizes, *rule.parameters)
    )
    return diagonal.is_empty()


def _projected(rule: Rule, side: str) -> Closed:
    closed = PointSet.of_rule(rule, defined(rule))
    if side == "shift":
        closed = closed.shifts([(axis.query, axis.key) for axis in rule.axes])
    else:
        sides = {"query": {"key"}, "key": {"query"}, "any": {"query", "key"}}[side]
        gone = [getattr(axis, other) for axis in rule.axes for other in sides]
        closed = closed.without([*gone, *([HEAD] if side == "any" and rule.has_heads else [])])
    return counted_points(closed)


def _shifts_of(mask: NDArray[np.bool_]) -> int:
    """How many different k - q the pairs of a mask have."""
    places = np.argwhere(mask.reshape(-1, *mask.shape[-2:]).any(0)) if mask.ndim <= 3 else np.argwhere(mask)
    half = places.shape[1] // 2
    return len(np.unique(places[:, -half:] - places[:, -2 * half : -half], axis=0))


def need_sizes(rule: Rule, sizes: Sizes) -> None:
    """Raises when a size or parameter of the rule is missing."""
    missing = [name for name in rule.free if name not in sizes]
    if missing:
        raise NamingError(f'rule "{rule.text}" needs {missing[0]}: give {missing[0]}=… , a number or a name')
