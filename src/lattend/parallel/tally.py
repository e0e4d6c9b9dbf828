"""Tally: pairs and keys of every shard of a complete rule, at numbers, whatever n is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import by_axis
from lattend.errors import NoClosedForm, NotAffineError
from lattend.parallel.data_tally import DataTally
from lattend.parallel.layout import Ends, Ints, Layout
from lattend.parallel.line_tally import LineTally
from lattend.parallel.progressions import Product, Union
from lattend.parallel.runs import Run, runs_of_spans
from lattend.rules.axes import LINE, Axis
from lattend.rules.flat import on_line
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Name, Num, Term
from lattend.rules.rule import Rule

MOST_PARTS = 4  # products whose union is counted: 2⁴ - 1 of their intersections


class PairTally:
    """Counts of a complete affine rule, by its conditions along each axis.

    A condition on an image is a union of products, one condition an axis; so are the keys that a box of
    queries reaches.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        lines: dict[Rule, LineTally] = {}  # axes may be alike
        self.products = [
            [lines.setdefault(line, LineTally(line)) for line in product] for product in _products(rule)
        ]
        self.sizes = tuple(rule.values[axis.queries] for axis in rule.axes)
        if self.products and len(self.products[0]) < len(self.sizes):
            self.sizes = (prod(self.sizes),)  # read row by row
        self.unit = prod(rule.values[axis.queries] for axis in rule.axes[1:]) if len(self.sizes) == 1 else 1

    def upto(self, tops: Ints) -> NDArray[Any]:
        """The pairs of queries below each of these places on the first axis."""
        total = np.zeros(np.shape(tops), object)
        for first, *rest in self.products:
            total += first.above(tops).astype(object) * prod(line.total for line in rest)
        return total

    def pairs(self, layout: Layout) -> NDArray[Any]:
        """The pairs of each rank, over all heads where the rule speaks of them."""
        return self._summed(layout, LineTally.pairs)

    def own_pairs(self, layout: Layout) -> NDArray[Any]:
        """Those whose keys the rank has itself."""
        try:
            return self._summed(layout, LineTally.own)
        except NoClosedForm:
            if len(layout.sizes) > 1:
                raise
            return DataTally(self.rule).own_pairs(layout)

    def _summed(
        self, layout: Layout, count: Callable[[LineTally, Sequence[Ends]], NDArray[Any]]
    ) -> NDArray[Any]:
        """Counts of each rank: of each product, those along its axes multiplied."""
        axes = _pieces(layout)
        total = np.zeros(layout.ranks, object)
        for lines in self.products:
            along = [count(line, pieces).astype(object) for line, pieces in zip(lines, axes, strict=True)]
            total += reduce(np.multiply.outer, along).ravel()
        return total

    def reached(self, layout: Layout) -> Reached:
        """The keys that each rank reaches, its own among them."""
        places, boxes = _places(layout), [*product(*_pieces(layout))]
        if (many := len(boxes) * len(self.products)) > MOST_PARTS:
            raise NoClosedForm(f"the keys of a shard are a union of {many} products")
        parts: list[Product] = [
            [
                [one.of(place) for one in line.reached(ends)]
                for line, ends, place in zip(lines, box, places, strict=True)
            ]
            for box, lines in product(boxes, self.products)
        ]
        return Reached(layout, parts)


def tally_of(rule: Rule) -> PairTally | DataTally:
    """The counts of a complete rule: of its set, or from its data where it looks some up.

    A rule that is not affine is counted from its pairs.
    """
    if expr.arrays(rule.condition):
        return DataTally(rule)
    try:
        found = PairTally(rule)
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


def _pieces(layout: Layout) -> list[list[Ends]]:
    """Along each axis, the pieces of all shards of its cut; of an axis that is not cut, the whole."""
    whole: list[list[Ends]] = [
        [(np.zeros(1, np.int64), np.array([n]))] for n in layout.sizes[len(layout.cuts) :]
    ]
    return [*(cut.ends or [_nothing(cut.ranks)] for cut in layout.cuts), *whole]


def _nothing(shards: int) -> Ends:
    return np.zeros(shards, np.int64), np.zeros(shards, np.int64)


def _places(layout: Layout) -> list[Ints]:
    """Along each axis, which shard of its cut each rank has."""
    shards = [cut.ranks for cut in layout.cuts] + [1] * (len(layout.sizes) - len(layout.cuts))
    return [*np.indices(shards).reshape(len(shards), -1)]


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
