"""Attended pairs of a rule in three columns, and the paths along them: how many layers join two positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from lattend.budget import Budget
from lattend.cost.amount import ONE, Amount
from lattend.cost.layer import Columns
from lattend.cost.points import (
    Sizes,
    at_least,
    count_pairs,
    defined,
    known_numbers,
    substitute,
    with_parameters,
)
from lattend.cost.sizes import multiply, number_of
from lattend.counts.closed import Closed, counted_points
from lattend.counts.field import BANDS, band_layers, depth_of_mask
from lattend.errors import DeadlineError, LattendError, NamingError, TooLarge
from lattend.plans.plan import TILE, plan
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Name, Term
from lattend.rules.language.linear import Linear, Quotient
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.reader import rule
from lattend.rules.rule import Rule
from lattend.sets import PointSet
from lattend.sets.compare import difference
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


MOST_TRAVERSED = 128  # positions of a rule that is traversed step by step
SMALL, MOST_SMALL = 7, 64  # positions, and numbers of parameters, of masks that tell rules apart


@lru_cache(maxsize=256)
def mixes_tokens(given: Rule) -> bool:
    """Whether some query attends to a key other than its own; one such pair at small numbers is a proof."""
    if expr.arrays(given.condition) or len(given.axes) != 1 or "m" in given.sizes:
        return True
    bare, own = replace(given.baked(), values={}), rule("q == k")
    if any((bare.mask(**at) & ~own.mask(n=SMALL)).any() for at in _small_values(bare)):
        return True
    return difference(bare - own, rule("q < 0"), given.budget) is not None


@lru_cache(maxsize=256)
def attends_ahead(given: Rule) -> bool:
    """Whether some query attends to a later key: then no token can be decoded before those after it."""
    if expr.arrays(given.condition) or len(given.axes) != 1 or "m" in given.sizes:
        return False
    bare = replace(given.baked(), values={})
    if any(np.triu(bare.mask(**at), 1).any() for at in _small_values(bare)):
        return True
    return difference(bare - rule("k <= q"), rule("q < 0"), given.budget) is not None


def path_of(rule: Rule, sizes: Sizes, shared: Budget | None = None) -> Amount | None:
    """How many layers the longest path between two positions takes; None where no formula for it is known.

    Step by step at small numbers; otherwise in closed form for full and causal attention and for bands. None
    too where two positions never meet, in either direction. Raises where a deadline passes.
    """
    if expr.arrays(rule.condition) or len(rule.axes) != 1 or "m" in rule.sizes:
        return None
    known = known_numbers(rule, sizes)
    try:
        many = number_of(sizes["n"]) or MOST_TRAVERSED + 1
        if len(known) == len(rule.free) and not rule.has_heads and many <= MOST_TRAVERSED:
            return _traversed(rule.at(**known))
        bare = replace(with_parameters(rule, known), values={})
        reach = remembered(_reach, bare, budget=rule.budget.out_of(shared))
        return None if reach is None else _band(reach, sizes)
    except DeadlineError as reason:
        raise DeadlineError(f'rule "{rule.text}": its longest path is not known: {reason}') from None
    except LattendError:
        return None


def conv_path(
    rows: Polynomial, cols: Polynomial, kernel: tuple[int, int], dilation: tuple[int, int] = (1, 1)
) -> Amount | None:
    """How many centred convolutions of stride 1 it takes from one pixel to the farthest.

    ⌈(rows - 1)/r⌉ or ⌈(cols - 1)/r⌉, whichever is more, where r = dilation · ⌊kernel/2⌋ is the span of
    one. None where the kernel has no middle, or, dilated, leaves pixels out for ever.
    """
    reaches = [by * (taps // 2) for by, taps in zip(dilation, kernel, strict=True)]
    if any(taps % 2 == 0 for taps in kernel) or any(by > 1 for by in dilation):
        return None
    needed = [
        (size, reach) for size, reach in zip((rows, cols), reaches, strict=True) if number_of(size) != 1
    ]
    if not needed:
        return Amount.number(0)
    if any(reach == 0 for _, reach in needed):
        return None
    numbers = [number_of(size) for size, _ in needed]
    if all(number is not None for number in numbers):
        ways = [-(-(n - 1) // r) for n, (_, r) in zip(numbers, needed, strict=True) if n is not None]
        return Amount.number(max(ways))
    (first, reach), *others = needed
    if any(size != first or other != reach for size, other in others):
        return None
    return _rounded(first, reach)


def longest_path(mask: NDArray[np.bool_]) -> int | None:
    """The most layers between two positions that ever meet, along the attended pairs of a mask.

    None where two positions meet in neither direction, however many layers there are.
    """
    layers, connected = depth_of_mask(mask)
    return layers if (connected | connected.T).all() else None


def _reach(given: Rule) -> str | int | None:
    """The span of a band: a parameter, a number, or 0 where one layer reaches everything."""
    if any(_is(given, rule(text)) for text in ("q >= 0", "k <= q")):
        return 0
    for reach in _farthest(given):
        if any(_is(given, rule(shape.format(reach))) for shape in BANDS):
            return reach
    return None


def _farthest(rule: Rule) -> list[str | int]:
    """The greatest distances between query and key that are a number or a parameter: read off the set."""
    pairs = PointSet.of_rule(rule)
    distances: list[str | int] = []
    for piece in (*pairs.greatest("q", "k"), *pairs.greatest("k", "q")):
        farthest = piece.formula
        number = number_of(farthest) if farthest.is_constant else None
        distances += [number] if number else []
        distances += [name for name in rule.parameters if farthest == Polynomial.atom(name)]
    return list(dict.fromkeys(distances))


def _is(rule: Rule, other: Rule) -> bool:
    """Whether both attend to the same pairs; where small masks differ, nothing needs a proof."""
    if set(other.parameters) <= set(rule.parameters):
        for values in _small_values(rule):
            own = {name: value for name, value in values.items() if name in other.free}
            if not rule.has_heads and (rule.mask(**values) != other.mask(**own)).any():
                return False
    return difference(rule, other, rule.budget) is None


def _small_values(rule: Rule) -> Iterator[dict[str, int]]:
    """Some small numbers for all its names, those outside its domain left out."""
    for numbers in islice(product(range(4), repeat=len(rule.parameters)), MOST_SMALL):
        values = {"n": SMALL, **({HEADS: 2} if rule.has_heads else {})}
        values |= dict(zip(rule.parameters, numbers, strict=True))
        if evaluate(rule.domain, values, {}):
            yield values


def _band(reach: str | int, sizes: Sizes) -> Amount | None:
    """⌈(n - 1)/t⌉, and 1 where the reach is everything."""
    if reach == 0:
        return ONE
    how_far = Polynomial.constant(reach) if isinstance(reach, int) else sizes[reach]
    number, many = number_of(how_far), number_of(sizes["n"])
    if number == 0 or (number is None and many is not None):
        return None
    if number is not None:
        return _rounded(sizes["n"], number)
    return substitute(band_layers(), {"n": sizes["n"], "t": how_far}, at_least(("n", "t"), 1))


def _rounded(size: Polynomial, reach: int) -> Amount | None:
    """⌈(n - 1)/reach⌉ for a number."""
    number = number_of(size)
    if number is not None:
        return Amount.number(-(-(number - 1) // reach))
    if reach == 1:
        return Amount.of(size - Polynomial.constant(1))
    if len(size.atoms) != 1 or size != Polynomial.atom(size.atoms[0]):
        return None
    name = size.atoms[0]
    rounds = Polynomial.atom(Quotient(Linear(((name, 1),), reach - 2), reach))
    return Amount(((None, rounds),), at_least((str(name),), 1))


def _traversed(bound: Rule) -> Amount | None:
    """Any rule at small numbers: from layer to layer over its pairs."""
    longest = longest_path(np.asarray(bound.mask(), bool))
    return None if longest is None else Amount.number(longest)
