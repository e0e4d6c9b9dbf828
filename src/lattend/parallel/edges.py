"""Edges: which keys travel from which rank to which, and the blocks of pairs that each rank then computes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from lattend.errors import NoClosedForm, NotAffineError
from lattend.parallel.keyset import Box, Keys, ListedKeys, Mask, Pieces, boxes_of
from lattend.parallel.layout import Layout
from lattend.parallel.reached import crossing
from lattend.rules.language import expr
from lattend.rules.rule import Rule

MOST_BOXES = 4  # of one rank's keys, each a call


@dataclass(frozen=True)
class Edge:
    """Keys that `target` needs of `source`, by their positions, in order."""

    source: int
    target: int
    keys: tuple[Keys, ...]

    @property
    def total(self) -> int:
        """How many keys travel."""
        return sum(box.total for box in self.keys)


@dataclass(frozen=True)
class BoxView:
    """Some positions of a rank's tensors [batch, heads, n, …]: a box inside one of the boxes it has.

    `start` is where that box begins, `shape` its sizes.
    """

    start: int
    shape: tuple[int, ...]
    inside: Pieces

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in self.inside)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its box, in order."""
        return self.start == 0 and self.sizes == self.shape

    def view(self, x: Any) -> Any:
        """These positions of a tensor, with an axis for each of theirs."""
        whole = x[:, :, self.start : self.start + prod(self.shape)]
        if len(self.shape) > 1:
            whole = whole.unflatten(2, self.shape)
        return whole[(slice(None), slice(None), *(slice(a, b) for a, b in self.inside))]

    def of(self, x: Any) -> Any:
        """These positions of a tensor, on one axis again."""
        return self.view(x).flatten(2, 1 + len(self.shape))

    def put(self, x: Any, values: Any) -> None:
        """Writes them."""
        self.view(x).copy_(values.unflatten(2, self.sizes))

    def add(self, x: Any, values: Any) -> None:
        """Adds to them."""
        self.view(x).add_(values.unflatten(2, self.sizes))


@dataclass(frozen=True)
class PairBlock:
    """Pairs of a box of queries and a box of keys: both by their positions, and where tensors hold them."""

    queries: Box
    part: BoxView
    keys: Keys
    key_place: int  # among the keys of one source

    @property
    def key_part(self) -> BoxView:
        """Where the tensors of that source hold the keys."""
        return BoxView(self.key_place, (self.m,), ((0, self.m),))

    @property
    def n(self) -> int:
        return self.queries.total

    @property
    def m(self) -> int:
        return self.keys.total


def edges_of(mask: Mask, keys: Layout, target: int, divisors: Collection[int] | None) -> list[Edge]:
    """What a rank that reaches these keys needs of the others, in the order of their ranks.

    The keys of a rank are boxes, or a list where they are too many, given the rule's `divisors`.
    """
    edges: list[Edge] = []
    for source in range(keys.ranks):
        if source == target:
            continue
        parts = [(tuple(slice(a, b) for a, b in some), [a for a, _ in some]) for some in keys.boxes(source)]
        boxes = [box for part, firsts in parts for box in boxes_of(mask[part], firsts)]
        if divisors is not None and _too_many(boxes, divisors):
            owned = np.zeros_like(mask)
            for part, _ in parts:
                owned[part] = mask[part]
            edges.append(Edge(source, target, (ListedKeys(np.flatnonzero(owned), mask.shape),)))
        elif boxes:
            edges.append(Edge(source, target, tuple(boxes)))
    return edges


def _too_many(boxes: Sequence[Box], divisors: Collection[int]) -> bool:
    """Whether boxes become a list that is looked up.

    Many boxes are many calls, and where pieces follow each other at a distance that does not go with the
    rule's own divisors, their plan would take seconds.
    """
    periods = {one.period for box in boxes for one in box.along if one.count > 1}
    return len(boxes) > MOST_BOXES or any(a % b and b % a for a in periods for b in divisors)


def blocks_of(rule: Rule, boxes: Sequence[Pieces], keys: Sequence[Keys]) -> Iterator[PairBlock]:
    """The blocks of these queries with keys that one tensor holds in order, as far as the set has pairs."""
    start = 0
    for pieces in boxes:
        shape = tuple(b - a for a, b in pieces)
        key_place = 0
        for box in keys:
            reaching = queries_reaching(rule, pieces, box)
            if all(b > a for a, b in reaching):
                inside = tuple(
                    (a - first, b - first) for (a, b), (first, _) in zip(reaching, pieces, strict=True)
                )
                yield PairBlock(Box.of(reaching), BoxView(start, shape, inside), box, key_place)
            key_place += box.total
        start += prod(shape)


def queries_reaching(rule: Rule, queries: Pieces, keys: Keys) -> Pieces:
    """The least box of queries beyond which none reaches a key of a box; all where no set says."""
    if expr.arrays(rule.condition):
        return queries
    try:
        reach = crossing(_transposed(rule), len(rule.axes))
        region = reach.reached
    except (NotAffineError, NoClosedForm):
        return queries
    places = np.ix_(*(np.arange(*piece) for piece in queries))
    at = dict(zip((axis.query for axis in rule.axes), places, strict=True))
    ends = dict(zip(reach.ends, chain(*keys.hull), strict=True))
    held = np.broadcast_to(region.holds({**rule.values, **ends, **at}), [b - a for a, b in queries])
    axes = {*range(held.ndim)}
    there = [np.flatnonzero(held.any(tuple(axes - {axis}))) for axis in range(held.ndim)]
    return tuple(
        (a + int(some[0]), a + int(some[-1]) + 1) if len(some) else (a, a)
        for (a, _), some in zip(queries, there, strict=True)
    )


def _transposed(rule: Rule) -> Rule:
    """The same pairs with keys in the place of queries."""
    turned = tuple(
        replace(axis, query=axis.key, key=axis.query, queries=axis.keys, keys=axis.queries)
        for axis in rule.axes
    )
    return replace(rule, axes=turned, about=None, source=None)
