"""DataTally: pairs and keys of every shard of a rule that looks up data, counted from the data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.tiles import HELD, MAX_PAIRS, data_boxes, tile_counts
from lattend.errors import NoClosedForm, NotAffineError, TooLarge
from lattend.parallel.crossing import crossing
from lattend.parallel.key_clause import KeyClause
from lattend.parallel.layout import Ints, Layout
from lattend.parallel.runs import Run, merged_spans, runs_of_spans
from lattend.rules.axes import LINE
from lattend.rules.flat import on_line
from lattend.rules.language.expr import Truth
from lattend.rules.rule import Rule

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
        """Those whose keys the rank has itself."""
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

    def reached(self, layout: Layout) -> Spanned:
        """The keys that each rank reaches, its own among them."""
        try:
            spans = self._from_runs(layout)
        except (NoClosedForm, NotAffineError) as reason:
            if self.line.dense > MAX_PAIRS:
                why = f"{self.line.dense:,} pairs are too many to look at one by one: {reason}"
                raise TooLarge(why) from None
            spans = [self._looked_at(layout, rank) for rank in range(layout.ranks)]
        return Spanned(layout, spans)

    def _from_runs(self, layout: Layout) -> list[Spans]:
        """From the boxes along which the data stays the same."""
        line, edges = self.line, _edges(layout)
        if line.has_heads or not line.data or not self.sizes[0]:
            raise NoClosedForm("it has no runs of data that all heads share")
        owner = _owner(layout, edges)
        found: list[tuple[Ints, Ints, Ints]] = []  # the rank, and its span
        for residual, tops, bottoms, lefts, rights in data_boxes(line, edges, edges[[0, -1]]):
            ranks = owner[np.searchsorted(edges, tops, "right") - 1]
            if residual == Truth(True):
                found.append((ranks, lefts, rights))
                continue
            cut = crossing(Rule(residual, LINE, values=line.baked().values, budget=line.budget))
            values = {**cut.rule.values, **dict(zip(cut.ends, (tops, bottoms), strict=True))}
            for clause in cut.reached.clauses:
                keys = KeyClause.of(clause, line.axes[0].key)
                some = keys.progressions(self.sizes[0], values, len(tops))
                found.append(_clipped(some.spans(), ranks, lefts, rights))
        rank, first, end = (
            np.concatenate([*parts, np.zeros(0, np.int64)]) for parts in zip(*found, strict=True)
        )
        return [merged_spans(first[rank == one], end[rank == one]) for one in range(layout.ranks)]

    def _looked_at(self, layout: Layout, rank: int) -> Spans:
        """From the pairs themselves, some rows at a time."""
        n = self.sizes[0]
        seen = np.zeros(n, bool)
        step = max(1, HELD // max(1, n * self.line.values.get("heads", 1)))
        for ((a, b),) in layout.boxes(rank):
            for first in range(a, b, step):
                ranges = {name: np.arange(size) for name, size in self.line.lengths.items()}
                mask = self.line.mask_at(ranges | {"q": np.arange(first, min(b, first + step))})
                seen |= mask.reshape(-1, n).any(0)
        steps = np.diff(seen.astype(np.int8), prepend=0, append=0)
        return np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)


class Spanned:
    """The keys that each rank of a layout reaches, as spans that do not touch."""

    def __init__(self, layout: Layout, spans: list[Spans]) -> None:
        self.layout, self.spans = layout, spans

    @cached_property
    def halo(self) -> Ints:
        """How many keys of others each rank reaches."""
        return np.array([int((end - first).sum()) for first, end in self.spans], np.int64) - self.own

    @cached_property
    def own(self) -> Ints:
        """How many of its own keys each rank reaches."""
        return np.array([self.from_each(rank)[rank] for rank in range(self.layout.ranks)], np.int64)

    def from_each(self, rank: int) -> Ints:
        """How many keys a rank reaches on each rank, itself among them."""
        total = np.zeros(self.layout.ranks, np.int64)
        for ((first, end),) in self.layout.ends:
            total += _below(self.spans[rank], end) - _below(self.spans[rank], first)
        return total

    def table(self, ranks: Sequence[int]) -> Ints:
        """How many keys each of these ranks reaches on each rank: a row a rank."""
        return np.array([self.from_each(rank) for rank in ranks], np.int64).reshape(-1, self.layout.ranks)

    def runs(self, rank: int, source: int) -> tuple[Run, ...]:
        """The keys of `source`, by their positions, that a rank reaches."""
        first, end = self.spans[rank]
        found = [(np.maximum(first, a), np.minimum(end, b)) for ((a, b),) in self.layout.boxes(source)]
        none = np.zeros(0, np.int64)
        return tuple(runs_of_spans(*(np.concatenate([none, *sides]) for sides in zip(*found, strict=True))))

    def inside(self, group: int) -> Ints:
        """How many keys each rank reaches on the ranks of its group, as many one after another as this."""
        groups = np.arange(self.layout.ranks) // group
        return np.array([self.from_each(r)[groups == groups[r]].sum() for r in range(self.layout.ranks)])

    def to_each(self, rank: int) -> Ints:
        """How many of a rank's keys each rank reaches."""
        return np.array([self.from_each(other)[rank] for other in range(self.layout.ranks)], np.int64)


def _below(spans: Spans, places: Ints) -> Ints:
    """How many keys lie below each place."""
    first, end = spans
    before = np.concatenate([[0], np.cumsum(end - first)])
    i = np.searchsorted(first, places, "right")
    beyond = np.where(i > 0, np.maximum(end[np.maximum(i, 1) - 1] - places, 0), 0) if len(first) else 0
    return before[i] - beyond


def _edges(layout: Layout) -> Ints:
    """Where pieces of all ranks begin and end."""
    return np.unique(np.concatenate([[0], *(side for ((a, b),) in layout.ends for side in (a, b))]))


def _owner(layout: Layout, edges: Ints) -> Ints:
    """Whose the positions between edges are."""
    found = np.zeros(len(edges) - 1, np.int64)
    for rank in range(layout.ranks):
        for ((a, b),) in layout.boxes(rank):
            found[np.searchsorted(edges, a) : np.searchsorted(edges, b)] = rank
    return found


def _clipped(
    spans: tuple[Ints, Ints, Ints], ranks: Ints, lefts: Ints, rights: Ints
) -> tuple[Ints, Ints, Ints]:
    """Spans of boxes inside their boxes, with whose they are."""
    box, first, end = spans
    return ranks[box], np.maximum(first, lefts[box]), np.minimum(end, rights[box])
