"""Part: a solved conjunction of a rule: on each axis an interval of inner positions for each outer position.

In the forward pass the outer positions are queries and the inner ones keys; the gradients of keys and
values take the same part the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.plans.block_table import BlockTable, block_table
from lattend.plans.branches import Branch
from lattend.plans.limits import Limits, solve
from lattend.plans.order import Order, Pairing, PlanAxis, pairing, residue_group
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import And, Compare, Condition, Lookup, Name, Term, Truth
from lattend.rules.language.intervals import Interval, least
from lattend.rules.language.linear import Linear, linear_of

Ints = NDArray[np.int64]


class SameEntry(NamedTuple):
    """`doc[q] == doc[k]`: the entry at the outer position, and that at the inner one."""

    outer: Lookup
    inner: Lookup


@dataclass(frozen=True, eq=False)
class PartAxis(PlanAxis):
    """One axis of a part: a plan's axis, solved.

    Outer positions come in classes, each with its own base in both orders. A row's inner positions are
    those from the greatest of `lows` to the least of `highs`; `near` bounds hold too, but mention other
    inner positions, so that they only help to place tiles.
    """

    outer_order: Order
    inner_order: Order
    outer_bases: Ints
    inner_bases: Ints
    class_slots: int | None  # how many slots a class has, where it is not all up to the size
    first: int  # of the outer positions that can have keys
    last: int
    lows: tuple[Term, ...]
    highs: tuple[Term, ...]
    near_lows: tuple[Term, ...]
    near_highs: tuple[Term, ...]

    @cached_property
    def slots(self) -> tuple[Ints, Ints]:
        """The first outer slot of each class, and the end of its slots: all that tiles are cut from."""
        begin = self.outer_order.below(self.first, self.outer_bases)
        end = self.outer_order.below(self.last + 1, self.outer_bases)
        if self.class_slots is not None:
            begin, end = np.maximum(begin, 0), np.minimum(end, self.class_slots)
        return begin, np.maximum(begin, end)

    @property
    def rows(self) -> int:
        """The number of outer positions in its tiles."""
        begin, end = self.slots
        return int((end - begin).sum())

    @property
    def covers(self) -> bool:
        """Whether every outer position is in one of its tiles."""
        return self.rows == self.outer_size


@dataclass(frozen=True, eq=False)
class Part:
    """A conjunction, its axes, and the conditions left for each pair and each head."""

    branch: Branch
    axes: tuple[PartAxis, ...]
    rest: Condition
    gates: tuple[Condition, ...]
    numbers: Mapping[str, int]
    same: tuple[SameEntry, ...]  # entries at the outer and the inner position that must be equal
    block_table: BlockTable | None = None  # a table of blocks, each class of outer positions one row of it

    @cached_property
    def windowed(self) -> bool:
        """Whether windows are its classes of outer positions."""
        return self.block_table is None and any(axis.class_slots is not None for axis in self.axes)

    @cached_property
    def data(self) -> list[str]:
        """The arrays it looks up."""
        return expr.arrays(expr.all_of(*self.branch))

    @cached_property
    def data_bounds(self) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
        """The lower and upper bounds on a line that look up data at the outer position."""
        if len(self.axes) != 1:
            return (), ()
        lows, highs = self.axes[0].lows, self.axes[0].highs
        return tuple(filter(expr.arrays, lows)), tuple(filter(expr.arrays, highs))

    @cached_property
    def cut_by(self) -> list[str]:
        """The arrays that leave fewer inner positions to its tiles than the plan knows of."""
        looked_up = [name for terms in self.data_bounds for term in terms for name in expr.arrays(term)]
        return list(dict.fromkeys([*(entry.array for pair in self.same for entry in pair), *looked_up]))

    @cached_property
    def by_head(self) -> bool:
        """Whether heads differ."""
        return HEAD in expr.names(expr.all_of(*self.branch))

    @property
    def blocks(self) -> tuple[int, int, int]:
        """How many heads, rows and columns its table of blocks has."""
        if self.block_table is None:
            raise ValueError("the part has no table of blocks")
        axis, heads = self.axes[0], self.numbers["heads"] if self.block_table.by_head else 1
        return (
            heads,
            -(-axis.outer_size // self.block_table.outer),
            -(-axis.inner_size // self.block_table.inner),
        )

    @cached_property
    def rows(self) -> int:
        """How many outer positions are in its tiles."""
        return prod(axis.rows for axis in self.axes)

    @cached_property
    def covers(self) -> bool:
        """Whether every outer position is in one of its tiles."""
        return all(axis.covers for axis in self.axes)

    @cached_property
    def exact(self) -> bool:
        """Whether the bounds, and the blocks that are listed, say which pairs are attended."""
        return self.rest == Truth(True)

    @cached_property
    def knows_full(self) -> bool:
        """Whether bounds say which tiles are full: on a line, where only equal entries are left to ask."""
        left = self.rest.args if isinstance(self.rest, And) else (self.rest,)
        known = self.exact or len(left) == len(self.same)
        return len(self.axes) == 1 and known

    @cached_property
    def template(self) -> Template:
        """Its bounds and conditions with names for numbers, which parts of other numbers share."""
        return _template(self)

    def __str__(self) -> str:
        return expr.text(expr.all_of(*self.branch))


@dataclass(frozen=True)
class Template:
    """The bounds of each axis (outer, inner, lows, highs) and the rest, with `literal 0`, … for numbers."""

    axes: tuple[tuple[str, str, tuple[Term, ...], tuple[Term, ...]], ...]
    rest: Condition
    literals: tuple[int, ...]


def _template(part: Part) -> Template:
    literals: list[int] = []

    def name(node: expr.Num) -> Term:
        if abs(node.value) <= 1:
            return node
        literals.append(node.value)
        return Name(f"literal {len(literals) - 1}")

    def put(terms: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(expr.replaced(term, lambda leaf: leaf, name) for term in terms)

    axes = [(axis.outer, axis.inner, put(axis.lows), put(axis.highs)) for axis in part.axes]
    rest = expr.replaced(part.rest, lambda leaf: leaf, name)
    return Template(tuple(axes), rest, tuple(literals))


class _Solver:
    """The bounds that a conjunction puts on each axis."""

    def __init__(self, axes: Sequence[PlanAxis], numbers: Mapping[str, int]) -> None:
        self.axes, self.numbers = axes, numbers
        self.outer = [axis.outer for axis in axes]
        self.inner = [axis.inner for axis in axes]
        self.lows: list[list[Term]] = [[] for _ in axes]
        self.highs: list[list[Term]] = [[] for _ in axes]
        self.near_lows: list[list[Term]] = [[] for _ in axes]
        self.near_highs: list[list[Term]] = [[] for _ in axes]
        self.ends = [[0, axis.outer_size - 1] for axis in axes]
        self.rest: list[Condition] = []
        self.gates: list[Condition] = []
        self.same: list[SameEntry] = []
        self.never = False

    def take(self, condition: Condition) -> None:
        names = expr.names(condition)
        outer = [name for name in self.outer if name in names]
        inner = [name for name in self.inner if name in names]
        if not inner and not outer and not expr.arrays(condition):
            self._without_positions(condition, HEAD in names)
        elif not isinstance(condition, Compare):
            self.rest.append(condition)
        elif not inner and len(outer) == 1 and HEAD not in names:
            self._outer_only(condition, outer[0])
        elif not inner:
            self.rest.append(condition)
        else:
            self._inner(condition, inner)

    def _without_positions(self, condition: Condition, heads: bool) -> None:
        if heads:
            self.gates.append(condition)
        elif not evaluate(condition, self.numbers, {}):
            self.never = True

    def _outer_only(self, condition: Compare, name: str) -> None:
        bound = solve(condition, name)
        low, high = (None, None) if bound is None else (self._number(bound.low), self._number(bound.high))
        known = bound is not None and (bound.low is None or low is not None)
        if bound is None or not known or (bound.high is not None and high is None):
            self.rest.append(condition)
            return
        ends = self.ends[self.outer.index(name)]
        ends[0] = ends[0] if low is None else max(ends[0], low)
        ends[1] = ends[1] if high is None else min(ends[1], high)

    def _number(self, term: Term | None) -> int | None:
        value = None if term is None else linear_of(term, self.numbers)
        return None if value is None or value.terms else value.constant

    def _inner(self, condition: Compare, inner: list[str]) -> None:
        bounds = {name: solve(condition, name) for name in inner}
        alone = len(inner) == 1 and bounds[inner[0]] is not None
        if not alone:
            self.rest.append(condition)
        if expr.arrays(condition) and not alone:
            same = same_entry(condition, self.outer, self.inner)
            self.same += [same] if same else []
            return
        for name, bound in bounds.items():
            if bound is not None:
                self._add(self.inner.index(name), bound, near=not alone)

    def _add(self, axis_index: int, bound: Limits, *, near: bool) -> None:
        lows, highs = (self.near_lows, self.near_highs) if near else (self.lows, self.highs)
        if bound.low is not None:
            lows[axis_index].append(bound.low)
        if bound.high is not None:
            highs[axis_index].append(bound.high)

    def empty(self) -> bool:
        """Returns whether provably no pair is left."""
        if self.never or any(low > high for low, high in self.ends):
            return True
        ranges = {HEAD: Interval(0, max(0, self.numbers.get("heads", 1) - 1))}
        for axis, (low, high) in zip(self.axes, self.ends, strict=True):
            ranges[axis.outer] = Interval(low, high)
            ranges[axis.inner] = Interval(0, axis.inner_size - 1)
        return any(self._crossed(axis_index, ranges) for axis_index in range(len(self.axes)))

    def _crossed(self, axis_index: int, ranges: Mapping[str, Interval]) -> bool:
        """Returns whether a lower bound on the inner positions lies above an upper bound everywhere."""
        first, last = Linear(), Linear(constant=self.axes[axis_index].inner_size - 1)
        lows, highs = (
            [form for term in terms if (form := linear_of(term, self.numbers)) is not None]
            for terms in (
                (*self.lows[axis_index], *self.near_lows[axis_index]),
                (*self.highs[axis_index], *self.near_highs[axis_index]),
            )
        )
        gaps = (low.plus(high, -1) for low in (first, *lows) for high in (last, *highs))
        return any(least(gap, ranges) > 0 for gap in gaps)


def same_entry(condition: Condition, outer: Sequence[str], inner: Sequence[str]) -> SameEntry | None:
    """The entries of `A[q] == B[k]`."""
    match condition:
        case Compare("==", Lookup(_, (Name(x),)) as a, Lookup(_, (Name(y),)) as b):
            if x in outer and y in inner:
                return SameEntry(a, b)
            return SameEntry(b, a) if y in outer and x in inner else None
        case _:
            return None


def is_empty(branch: Branch, axes: Sequence[PlanAxis], numbers: Mapping[str, int]) -> bool:
    """Returns whether the conjunction provably holds nowhere; False means unknown."""
    return _solved(branch, axes, numbers).empty()


def _solved(branch: Branch, axes: Sequence[PlanAxis], numbers: Mapping[str, int]) -> _Solver:
    solver = _Solver(axes, numbers)
    for condition in branch:
        solver.take(condition)
    return solver


def make_part(
    branch: Branch, axes: Sequence[PlanAxis], numbers: Mapping[str, int], *, windows: bool = False
) -> Part | None:
    """Returns a conjunction as a part, or None if it is empty; with `windows`, windows become classes."""
    branch = tuple(_one_sided(branch, index, axes, numbers) for index in range(len(branch)))
    branch = looked_up_outside(branch, axes)
    left = list(branch)
    blocks = _take_block_table(left, axes, numbers)
    orders: list[tuple[Pairing | None, Order, int, Order, int]] = []
    for axis in axes:
        pair = _take_pairing(left, axis, numbers, windows) if blocks is None else None
        if blocks is not None:
            orders.append((Pairing("blocks", blocks.outer), Order(), 0, Order(), 0))
        elif pair is not None and pair.kind == "residues":
            orders.append((pair, Order(pair.modulus), 0, Order(pair.modulus), 0))
        elif pair is not None:  # windows, whose positions follow each other: residues are asked of each pair
            orders.append((pair, Order(), 0, Order(), 0))
        else:
            outer_order, outer_base = _take_group(left, axis.outer, numbers)
            inner_order, inner_base = _take_group(left, axis.inner, numbers)
            orders.append((pair, outer_order, outer_base, inner_order, inner_base))
    solver = _solved(tuple(left), axes, numbers)
    if solver.empty():
        return None
    solved = tuple(
        PartAxis(
            axis.outer,
            axis.inner,
            axis.outer_size,
            axis.inner_size,
            outer_order,
            inner_order,
            *_bases(pair, axis, outer_base, inner_base),
            class_slots=pair.modulus if pair is not None and pair.kind != "residues" else None,
            first=solver.ends[index][0],
            last=solver.ends[index][1],
            lows=tuple(solver.lows[index]),
            highs=tuple(solver.highs[index]),
            near_lows=tuple(solver.near_lows[index]),
            near_highs=tuple(solver.near_highs[index]),
        )
        for index, (axis, (pair, outer_order, outer_base, inner_order, inner_base)) in enumerate(
            zip(axes, orders, strict=True)
        )
    )
    rest = expr.all_of(*solver.rest)
    return Part(branch, solved, rest, tuple(solver.gates), numbers, tuple(solver.same), blocks)


def looked_up_outside(branch: Branch, axes: Sequence[PlanAxis]) -> Branch:
    """Replaces the entry at the inner position by the equal one at the outer position, given `A[q] == B[k]`.

    >>> from lattend.rules.language.parser import parse
    >>> branch = expr.conjuncts(parse("seq[q] == seq[k] and k - begin[seq[k]] < 4"))
    >>> expr.text(expr.all_of(*looked_up_outside(branch, [PlanAxis("q", "k", 9, 9)])))
    'seq[q] == seq[k] and k - begin[seq[q]] < 4'
    """
    outer, inner = [axis.outer for axis in axes], [axis.inner for axis in axes]
    for condition in branch:
        same = same_entry(condition, outer, inner)
        if same is not None:
            branch = tuple(
                one if one == condition else expr.exchanged(one, same.inner, same.outer) for one in branch
            )
    return branch


def _one_sided(branch: Branch, index: int, axes: Sequence[PlanAxis], numbers: Mapping[str, int]) -> Condition:
    """Returns `a != b` as `a < b` or `a > b` if the rest of the conjunction excludes the other."""
    condition = branch[index]
    if not isinstance(condition, Compare) or condition.op != "!=":
        return condition
    others = branch[:index] + branch[index + 1 :]
    below, above = replace(condition, op="<"), replace(condition, op=">")
    if is_empty((*others, above), axes, numbers):
        return below
    return above if is_empty((*others, below), axes, numbers) else condition


def _take_block_table(
    left: list[Condition], axes: Sequence[PlanAxis], numbers: Mapping[str, int]
) -> BlockTable | None:
    """The first table of blocks on a line; what else is asked stays bounds, and conditions on pairs."""
    for condition in left if len(axes) == 1 else []:
        table = block_table(condition, axes[0].outer, axes[0].inner, numbers)
        if table is not None:
            left.remove(condition)
            return table
    return None


def _take_pairing(
    left: list[Condition], axis: PlanAxis, numbers: Mapping[str, int], windows: bool
) -> Pairing | None:
    for condition in left:
        paired = pairing(condition, axis.outer, axis.inner, numbers)
        if paired is not None and paired.kind == "residues" and paired.modulus > 1:
            left.remove(condition)  # said by the order; windows stay as bounds of the row
            return paired
        if paired is not None and paired.kind == "windows" and windows:
            return paired
    return None


def _take_group(left: list[Condition], name: str, numbers: Mapping[str, int]) -> tuple[Order, int]:
    group, used = residue_group(left, name, numbers)
    if group is None or group.size == group.period:
        return Order(), 0
    for index in sorted(used, reverse=True):
        del left[index]
    wraps = group.start + group.size > group.period
    return Order(group.period, group.size), group.start - (group.period if wraps else 0)


def _bases(pair: Pairing | None, axis: PlanAxis, outer_base: int, inner_base: int) -> tuple[Ints, Ints]:
    if pair is None:
        return np.array([outer_base]), np.array([inner_base])
    if pair.kind == "residues":
        classes = np.arange(min(pair.modulus, max(1, axis.outer_size)))
        return classes, (classes + pair.shift) % pair.modulus
    first = pair.shift // pair.modulus * pair.modulus  # the window of position 0, which may begin before it
    bases = np.arange(first, axis.outer_size + pair.shift, pair.modulus) - pair.shift
    return bases, bases if pair.kind == "windows" else np.zeros_like(bases)
