"""Tally: pairs and keys of every shard of a complete rule, at numbers, whatever n is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import LARGE, Closed, by_axis
from lattend.counts.tiles import CORNER, LEFT, MAX_PAIRS, TOP, data_boxes, tile_counts
from lattend.errors import NoClosedForm, NotAffineError, TooLarge
from lattend.parallel.intervals import IntervalTable, interval_table, mask_spans, merged_spans
from lattend.parallel.keyset import KeySet
from lattend.parallel.layout import Ends, Ints, Layout
from lattend.parallel.reached import crossing, reached_by_pairs
from lattend.rules.axes import HEADS, LINE, Axis
from lattend.rules.flat import on_line
from lattend.rules.language import expr
from lattend.rules.language.expr import (
    FLIPPED,
    Arith,
    Compare,
    Condition,
    Name,
    Num,
    Term,
    Truth,
    all_of,
    any_of,
)
from lattend.rules.language.linear import Linear
from lattend.rules.rule import Rule
from lattend.sets import PointSet
from lattend.sets.bound import Bound
from lattend.sets.guard import remembered
from lattend.sets.region import Piece

MOST_PARTS = 4  # products whose union is counted: 2⁴ - 1 of their intersections
START, LENGTH = "_first", "_length"  # of a stretch of positions; no text can hold these names
STRETCH = (Axis("q", "k", LENGTH, LENGTH),)


@dataclass(frozen=True)
class Form:
    """A count of pairs in boxes: of all, or of none, and the sum of others with their signs."""

    whole: bool
    parts: Sequence[tuple[int, Closed]]

    @staticmethod
    def of(rule: Rule) -> Form:
        """The pairs of a rule on a line, or all without those outside, which may be the simpler set."""
        points = PointSet.of_rule(rule)
        gaps = points.gaps()
        sign, counted = (1, points) if gaps is None else (-1, gaps)
        return Form(gaps is not None, [(sign * s, _counted(part)) for s, part in counted.overlapping()])

    def values(self, at: Mapping[str, Any], queries: Ints, keys: Ints | int, heads: int) -> NDArray[Any]:
        """The counts at numbers, in boxes with these numbers of queries and keys."""
        widest = keys if isinstance(keys, int) else int(keys.max(initial=0))
        most = int(queries.max(initial=0)) * widest * heads
        kind = np.int64 if most <= LARGE else object
        total = queries.astype(kind) * keys * heads if self.whole else np.zeros(queries.shape, kind)
        for sign, closed in self.parts:
            counts = closed.values_at(at, queries.shape, most)
            total = total + counts if sign > 0 else total - counts
        return total


def _counted(points: PointSet) -> Closed:
    """The count of points, its regions said shortly, since they are looked at often."""
    pieces = [Piece(one.region.within(points.domain), one.formula) for one in points.counted()]
    return Closed(points.domain.space, points.domain, pieces).ready()


class LineTally:
    """Counts of a complete rule on a line without parameters."""

    def __init__(self, line: Rule) -> None:
        self.line = line = replace(line, condition=expr.pushed(line.condition, _by_sign))
        self.size = line.values[line.axes[0].keys]
        self.heads = line.values.get(HEADS, 1)

    @cached_property
    def total(self) -> int:
        """All pairs."""
        return int(self.above(np.array([self.size]))[0])

    def above(self, top: Ints) -> NDArray[Any]:
        """The pairs of queries below each place."""
        at = {**self.line.values, TOP: top, LEFT: self.size}
        return self._above.values(at, top, self.size, self.heads)

    def inside(self, first: Ints, end: Ints) -> NDArray[Any]:
        """The pairs whose query and key lie in first … end - 1."""
        length = end - first
        at = {**self.line.values, START: first, LENGTH: length}
        return self._inside.values(at, length, length, self.heads)

    def pairs(self, pieces: Sequence[Ends]) -> NDArray[Any]:
        """The pairs of each shard, which has such pieces."""
        below = self.above(np.concatenate([side for piece in pieces for side in piece]))
        first, end = np.moveaxis(below.reshape(len(pieces), 2, -1), 1, 0)
        return (end - first).sum(0)

    def own(self, pieces: Sequence[Ends]) -> NDArray[Any]:
        """The pairs of each shard with its own keys.

        Between two pieces a … b - 1 and c … d - 1 they are the pairs inside a … d - 1 that are not inside
        a … c - 1, nor inside b … d - 1; those inside b … c - 1 were then taken off twice.
        """
        first, end = np.array(pieces).swapaxes(0, 1)
        order = np.argsort(first, 0, kind="stable")
        first, end = (np.take_along_axis(side, order, 0) for side in (first, end))
        terms = [(1, a, b) for a, b in zip(first, end, strict=True)]
        for (a, c), (b, d) in zip(combinations(first, 2), combinations(end, 2), strict=True):
            terms += [(1, a, d), (-1, a, c), (-1, b, d), (1, b, c)]
        signs, firsts, ends = zip(*terms, strict=True)
        counts = self.inside(np.concatenate(firsts), np.concatenate(ends)).reshape(len(signs), -1)
        return (np.array(signs)[:, None] * counts).sum(0)

    def reached(self, ends: Ends) -> list[IntervalTable]:
        """The keys that the queries between these ends reach, in tables that share none."""
        names, clauses = self._reached
        values = {**self.line.values, **dict(zip(names, ends, strict=True))}
        key = self.line.axes[0].key
        return [interval_table(bounds, key, self.size, values, len(ends[0])) for bounds in clauses]

    @cached_property
    def _reached(self) -> tuple[tuple[str, ...], list[list[Bound]]]:
        """The names of a shard's ends, and the conditions on the keys that it reaches, clause by clause."""
        cut, axis = crossing(self.line), self.line.axes[0]
        first, end = cut.ends
        known = [(first, 1)], [(axis.queries, 1), (end, -1)], [(axis.key, 1)]  # from 0 up in all shards
        always = {Bound(Linear.of(form), False) for form in known}
        return cut.ends, [
            [bound for bound in clause if bound not in always] for clause in cut.reached.clauses
        ]

    @cached_property
    def _above(self) -> Form:
        return remembered(_above_form, self.line, budget=self.line.budget)

    @cached_property
    def _inside(self) -> Form:
        return remembered(_inside_form, self.line, budget=self.line.budget)


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
        """The pairs of each rank with its own keys."""
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

    def reached(self, layout: Layout) -> KeySet:
        """The keys that each rank reaches, its own among them."""
        shards, boxes = _shards(layout), [*product(*_pieces(layout))]
        if (many := len(boxes) * len(self.products)) > MOST_PARTS:
            raise NoClosedForm(f"the keys of a shard are a union of {many} products")
        return KeySet(
            layout,
            [
                [
                    [table.of(shard) for table in line.reached(ends)]
                    for line, ends, shard in zip(lines, box, shards, strict=True)
                ]
                for box, lines in product(boxes, self.products)
            ],
        )


def tally_of(rule: Rule) -> PairTally | DataTally:
    """The counts of a complete rule: of its set, or from its data where it looks some up.

    A rule that is not affine is counted from its pairs.
    """
    if expr.arrays(rule.condition):
        return DataTally(rule)
    try:
        tally = PairTally(rule)
        small = Layout.of_mesh(tally.sizes, (1,))
        tally.pairs(small)
        tally.reached(small)
        return tally
    except (NoClosedForm, NotAffineError):
        return DataTally(rule)


def _pieces(layout: Layout) -> list[list[Ends]]:
    """Along each axis, the pieces of all shards of its cut; of an axis that is not cut, the whole."""
    whole: list[list[Ends]] = [
        [(np.zeros(1, np.int64), np.array([n]))] for n in layout.sizes[len(layout.cuts) :]
    ]
    none = [np.zeros(cut.ranks, np.int64) for cut in layout.cuts]
    return [*(cut.ends or [(zeros, zeros)] for cut, zeros in zip(layout.cuts, none, strict=True)), *whole]


def _shards(layout: Layout) -> list[Ints]:
    """Along each axis, which shard of its cut each rank has."""
    shards = [cut.ranks for cut in layout.cuts] + [1] * (len(layout.sizes) - len(layout.cuts))
    return [*np.indices(shards).reshape(len(shards), -1)]


def _products(rule: Rule) -> list[tuple[Rule, ...]]:
    """The rule as a union of disjoint products of rules on lines, one for each axis."""
    baked = rule.baked()
    if len(rule.axes) == 1:
        return [(baked,)]
    products = None if rule.has_heads else by_axis(baked.condition, baked.axes)
    if products is None:
        return [(on_line(rule),)]
    return [
        tuple(_line(baked, axis, condition) for axis, condition in zip(baked.axes, conditions, strict=True))
        for conditions in products
    ]


def _line(rule: Rule, axis: Axis, condition: Condition) -> Rule:
    """The condition of one axis as a rule on a line, other sizes written in."""
    names: dict[str, Term] = {name: Num(value) for name, value in rule.values.items()}
    names |= {axis.query: Name("q"), axis.key: Name("k"), axis.queries: Name("n")}
    size = {"n": rule.values[axis.queries]}
    return Rule(expr.substituted(condition, names), LINE, values=size, budget=rule.budget)


# Counts along one axis


def _by_sign(node: Compare) -> Condition:
    """`abs(x) <= y` as `x <= y and -x <= y`, a set of fewer parts; other comparisons as they are."""
    turned = isinstance(node.right, Arith) and node.right.op == "abs"
    op, left, right = (
        (FLIPPED[node.op], node.right, node.left) if turned else (node.op, node.left, node.right)
    )
    if not isinstance(left, Arith) or left.op != "abs" or op in ("==", "!="):
        return node
    signed = left.args[0], Arith("neg", left.args)
    return (all_of if op in ("<", "<=") else any_of)(*(Compare(op, one, right) for one in signed))


def _above_form(line: Rule) -> Form:
    """The pairs of queries below TOP."""
    sizes = _sizes(line)
    limits = [Compare("<=", Name(TOP), sizes[line.axes[0].queries])]
    limits += [Compare("==", Name(LEFT), sizes[line.axes[0].keys])]
    domain = all_of(expr.substituted(line.where, sizes), *limits)
    return Form.of(Rule(expr.substituted(line.condition, sizes), CORNER, where=domain))


def _inside_form(line: Rule) -> Form:
    """The pairs inside LENGTH positions from START on."""
    axis, sizes, start = line.axes[0], _sizes(line), Name(START)
    moved = {name: Arith("+", (Name(name), start)) for name in (axis.query, axis.key)}
    limits = [Compare(">=", start, Num(0))]
    limits += [Compare("<=", Arith("+", (start, Name(LENGTH))), sizes[axis.queries])]
    domain = all_of(expr.substituted(line.where, sizes), *limits)
    return Form.of(Rule(expr.substituted(line.condition, {**sizes, **moved}), STRETCH, where=domain))


def _sizes(line: Rule) -> dict[str, Term]:
    """The sizes as numbers: fewer letters are counted in less time."""
    return {size: Num(line.values[size]) for size in (line.axes[0].queries, line.axes[0].keys)}


# Rules that look up data

GRID = 4096  # places at which pairs are counted to balance shards
Spans = tuple[Ints, Ints]  # where spans of keys begin and end


class DataTally:
    """Counts of a complete rule on a line, or of an image read row by row: documents, chosen blocks.

    Keys are spans: inside runs of positions along which the data stays the same, a rule is affine.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.line = on_line(rule)
        self.sizes = (self.line.values["n"],)
        self.unit = self.sizes[0] // max(1, rule.values[rule.axes[0].queries])

    def upto(self, tops: Ints) -> NDArray[Any]:
        """The pairs of queries below each of these places, to the nearest of GRID places below it."""
        edges, before = self._before
        return before[np.searchsorted(edges, tops, "right") - 1]

    @cached_property
    def _before(self) -> tuple[Ints, NDArray[Any]]:
        n = self.sizes[0]
        edges = np.unique(np.linspace(0, n, min(n, GRID) + 1).astype(np.int64))
        rows = tile_counts(self.line, edges.tolist(), [0, n])[:, 0] if n else np.zeros(0, object)
        return edges, np.concatenate([np.zeros(1, object), np.cumsum(rows)])

    def pairs(self, layout: Layout) -> NDArray[Any]:
        """The pairs of each rank, over all heads where the rule speaks of them."""
        return self._tiles(layout).sum(1)

    def own_pairs(self, layout: Layout) -> NDArray[Any]:
        """The pairs of each rank with its own keys."""
        return self._tiles(layout).diagonal()

    def _tiles(self, layout: Layout) -> NDArray[Any]:
        """The pairs of each rank's queries with each rank's keys."""
        total = np.zeros((layout.ranks, layout.ranks), object)
        if self.sizes[0]:
            edges = _edges(layout)
            owner = _owner(layout, edges)
            counts = tile_counts(self.line, edges.tolist(), edges.tolist())
            np.add.at(total, (owner[:, None], owner[None, :]), counts)
        return total

    def reached(self, layout: Layout) -> KeySet:
        """The keys that each rank reaches, its own among them."""
        try:
            spans = self._from_runs(layout)
        except (NoClosedForm, NotAffineError) as reason:
            if self.line.dense > MAX_PAIRS:
                why = f"{self.line.dense:,} pairs are too many to look at one by one: {reason}"
                raise TooLarge(why) from None
            spans = [
                mask_spans(reached_by_pairs(self.line, layout.boxes(rank))) for rank in range(layout.ranks)
            ]
        return KeySet(layout, [[[IntervalTable.of_spans(spans)]]])

    def _from_runs(self, layout: Layout) -> list[Spans]:
        """From the boxes along which the data stays the same."""
        line, edges = self.line, _edges(layout)
        if line.has_heads or not line.data or not self.sizes[0]:
            raise NoClosedForm("it has no runs of data that all heads share")
        owner = _owner(layout, edges)
        spans: list[tuple[Ints, Ints, Ints]] = []  # the rank, and its span
        for residual, tops, bottoms, lefts, rights in data_boxes(line, edges, edges[[0, -1]]):
            ranks = owner[np.searchsorted(edges, tops, "right") - 1]
            if residual == Truth(True):
                spans.append((ranks, lefts, rights))
                continue
            cut = crossing(Rule(residual, LINE, values=line.baked().values, budget=line.budget))
            values = {**cut.rule.values, **dict(zip(cut.ends, (tops, bottoms), strict=True))}
            for bounds in cut.reached.clauses:
                table = interval_table(bounds, line.axes[0].key, self.sizes[0], values, len(tops))
                box, first, end = table.spans()
                spans.append((ranks[box], np.maximum(first, lefts[box]), np.minimum(end, rights[box])))
        rank, first, end = (
            np.concatenate([*parts, np.zeros(0, np.int64)]) for parts in zip(*spans, strict=True)
        )
        return [merged_spans(first[rank == one], end[rank == one]) for one in range(layout.ranks)]


def _edges(layout: Layout) -> Ints:
    """Where pieces of all ranks begin and end."""
    return np.unique(np.concatenate([[0], *(side for ((a, b),) in layout.ends for side in (a, b))]))


def _owner(layout: Layout, edges: Ints) -> Ints:
    """The rank that has the positions between each two edges."""
    owner = np.zeros(len(edges) - 1, np.int64)
    for rank in range(layout.ranks):
        for ((a, b),) in layout.boxes(rank):
            owner[np.searchsorted(edges, a) : np.searchsorted(edges, b)] = rank
    return owner
