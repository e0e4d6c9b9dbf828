"""Tally: pairs and keys of every shard of a complete rule, at numbers, whatever n is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.factor import by_axis
from lattend.errors import NoClosedForm, NotAffineError
from lattend.parallel.crossing import crossing
from lattend.parallel.data_tally import DataTally
from lattend.parallel.layout import Ends, Ints, Layout
from lattend.parallel.prefix import pairs_above, pairs_within
from lattend.parallel.progressions import Product, Progressions, Union, progressions
from lattend.parallel.runs import Run, runs_of_spans
from lattend.rules.axes import LINE, Axis
from lattend.rules.flat import on_line
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Name, Num, Term
from lattend.rules.rule import Rule
from lattend.sets.region import Bound

MOST_PARTS = 4  # products whose union is counted: 2⁴ - 1 of their intersections


class Tally:
    """Counts of a complete affine rule, by its conditions along each axis.

    A condition on an image is a union of products, one condition an axis; so are the keys that a box of
    queries reaches.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.products = _products(rule)
        self._clauses: dict[int, tuple[tuple[str, ...], list[list[Bound]]]] = {}  # of its lines
        self.sizes = tuple(rule.values[axis.queries] for axis in rule.axes)
        if self.products and len(self.products[0]) < len(self.sizes):
            self.sizes = (prod(self.sizes),)  # read row by row
        self.unit = prod(rule.values[axis.queries] for axis in rule.axes[1:]) if len(self.sizes) == 1 else 1

    def upto(self, tops: Ints) -> NDArray[Any]:
        """The pairs of queries below each of these places on the first axis."""
        total: Any = 0
        for first, *rest in self.products:
            others = prod(int(pairs_above(line, line.values["n"])) for line in rest)
            total = total + pairs_above(first, tops) * others
        return np.zeros(np.shape(tops), object) + total

    def pairs(self, layout: Layout) -> NDArray[Any]:
        """The pairs of each rank, over all heads where the rule speaks of them."""
        total = np.zeros(layout.ranks, object)
        for box, lines in product(layout.ends, self.products):
            total += prod(
                pairs_above(line, end) - pairs_above(line, first)
                for line, (first, end) in zip(lines, (_shared(*ends) for ends in box), strict=True)
            )
        return total

    def own_pairs(self, layout: Layout, ranks: Ints | None = None) -> NDArray[Any]:
        """Those whose keys the rank has itself, of all ranks or of these."""
        try:
            return self._own_pairs(layout, np.arange(layout.ranks) if ranks is None else ranks)
        except NoClosedForm:
            if len(layout.sizes) > 1:
                raise
            return DataTally(self.rule).own_pairs(layout, ranks)

    def _own_pairs(self, layout: Layout, ranks: Ints) -> NDArray[Any]:
        total = np.zeros(len(ranks), object)
        boxes = [[_shared(first[ranks], end[ranks]) for first, end in box] for box in layout.ends]
        for queries, keys, lines in product(boxes, boxes, self.products):
            total += prod(
                sum(s * t * pairs_within(line, row, col) for (s, row), (t, col) in product(rows, cols))
                for line, rows, cols in zip(lines, map(_signed, queries), map(_signed, keys), strict=True)
            )
        return total

    def reached(self, layout: Layout) -> Reached:
        """The keys that each rank reaches, its own among them."""
        parts: list[Product] = []
        for queries, lines in product(layout.ends, self.products):
            parts.append([self._along(line, ends, layout) for line, ends in zip(lines, queries, strict=True)])
        if len(parts) > MOST_PARTS:
            raise NoClosedForm(f"the keys of a shard are a union of {len(parts)} products")
        return Reached(layout, parts)

    def _along(self, line: Rule, ends: Ends, layout: Layout) -> list[Progressions]:
        if id(line) not in self._clauses:
            found = crossing(line)
            self._clauses[id(line)] = found.ends, found.reached.clauses
        names, clauses = self._clauses[id(line)]
        key, size = line.axes[0].key, line.values[line.axes[0].keys]
        values = {**line.values, **dict(zip(names, ends, strict=True))}
        return [progressions(clause, key, size, values, layout.ranks) for clause in clauses]


def tally_of(rule: Rule) -> Tally | DataTally:
    """The counts of a complete rule: of its set, or from its data where it looks some up.

    A rule that is not affine is counted from its pairs.
    """
    if expr.arrays(rule.condition):
        return DataTally(rule)
    try:
        found = Tally(rule)
        small = Layout.of_mesh(found.sizes, (1,))
        found.pairs(small)
        found.reached(small)
        return found
    except (NoClosedForm, NotAffineError):
        return DataTally(rule)


class Reached:
    """The keys that each rank of a layout reaches, as a union of products of progressions."""

    def __init__(self, layout: Layout, parts: list[Product]) -> None:
        self.layout, self.parts = layout, parts

    @cached_property
    def union(self) -> Union:
        """Their union, in parts that can be counted."""
        return Union.of(self.parts)

    @cached_property
    def halo(self) -> Ints:
        """How many keys of others each rank reaches."""
        whole = [(0, size) for size in self.layout.sizes]
        return np.zeros(self.layout.ranks, np.int64) + self.union.between(whole) - self.own

    @cached_property
    def own(self) -> Ints:
        """How many of its own keys each rank reaches."""
        return self._summed(self.union.between, self.layout.ends)

    def table(self, ranks: Sequence[int]) -> Ints:
        """How many keys each of these ranks reaches on each rank: a row a rank."""
        return self._summed(self.union.rows(ranks).between, self.layout.ends, len(ranks))

    def within(self, rank: int, box: Sequence[tuple[Any, Any]]) -> Ints:
        """How many keys of boxes a rank reaches, their ends as arrays along every axis."""
        return np.zeros((1, len(box[0][0])), np.int64)[0] + np.ravel(self.union.rows([rank]).between(box))

    def from_each(self, rank: int) -> Ints:
        """How many keys a rank reaches on each rank, itself among them."""
        return self.table([rank])[0]

    def to_each(self, rank: int) -> Ints:
        """How many of a rank's keys each rank reaches."""
        mine = [[(ends[0][rank], ends[1][rank]) for ends in box] for box in self.layout.ends]
        return self._summed(self.union.between, mine)

    def runs(self, rank: int, source: int) -> tuple[Run, ...]:
        """The keys of `source`, by their positions on a line, that a rank reaches."""
        boxes, clauses = self.layout.boxes(source), (one for part in self.parts for one in part[0])
        found = [one.spans_in(rank, *box[0]) for one, box in product(clauses, boxes)]
        none = np.zeros(0, np.int64)
        return tuple(runs_of_spans(*(np.concatenate([none, *sides]) for sides in zip(*found, strict=True))))

    def inside(self, groups: int) -> Ints:
        """How many keys each rank reaches on the ranks of its group, as many one after another as this."""
        found = np.zeros(self.layout.ranks, np.int64)
        for first, end in self.layout.spans_of(groups):
            found += self.union.between([(first, end), *((0, n) for n in self.layout.sizes[1:])])
        return found

    def _summed(self, count: Callable[[Any], Any], boxes: Sequence[Any], rows: int = 0) -> Ints:
        shape = (rows, self.layout.ranks) if rows else (self.layout.ranks,)
        return np.zeros(shape, np.int64) + sum(count(box) for box in boxes)


def _shared(first: Ints, end: Ints) -> Ends:
    """The ends once, where they are the same for all ranks: those of an axis that is not cut."""
    if len(first) and (first == first[0]).all() and (end == end[0]).all():
        return first[:1], end[:1]
    return first, end


def _signed(ends: Ends) -> tuple[tuple[int, Ints], tuple[int, Ints]]:
    """The ends of pieces with the signs by which counts below them add up."""
    return (-1, ends[0]), (1, ends[1])


def _products(rule: Rule) -> list[tuple[Rule, ...]]:
    """Disjoint products of rules on lines, one an axis, whose union is the rule."""
    baked = rule.baked()
    if len(rule.axes) == 1:
        return [(baked,)]
    found = None if rule.has_heads else by_axis(baked.condition, baked.axes)
    if found is None:
        return [(on_line(rule),)]
    return [
        tuple(_line(baked, axis, condition) for axis, condition in zip(baked.axes, conditions, strict=True))
        for conditions in found
    ]


def _line(rule: Rule, axis: Axis, condition: Condition) -> Rule:
    """The condition of one axis as a rule on a line, other sizes written in."""
    names: dict[str, Term] = {name: Num(value) for name, value in rule.values.items()}
    names |= {axis.query: Name("q"), axis.key: Name("k"), axis.queries: Name("n")}
    size = {"n": rule.values[axis.queries]}
    return Rule(expr.substituted(condition, names), LINE, values=size, budget=rule.budget)
