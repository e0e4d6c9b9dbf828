"""DataTally: pairs and keys of every shard of a rule that looks up data, counted from the data."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.data import data_boxes
from lattend.counts.enumeration import MAX_PAIRS
from lattend.counts.tiles import tile_counts
from lattend.errors import NoClosedForm, NotAffineError, TooLarge
from lattend.parallel.crossing import crossing
from lattend.parallel.intervals import IntervalTable, interval_table, mask_spans, merged_spans
from lattend.parallel.keyset import KeySet
from lattend.parallel.layout import Ints, Layout
from lattend.parallel.reached import reached_by_pairs
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
        found: list[tuple[Ints, Ints, Ints]] = []  # the rank, and its span
        for residual, tops, bottoms, lefts, rights in data_boxes(line, edges, edges[[0, -1]]):
            ranks = owner[np.searchsorted(edges, tops, "right") - 1]
            if residual == Truth(True):
                found.append((ranks, lefts, rights))
                continue
            cut = crossing(Rule(residual, LINE, values=line.baked().values, budget=line.budget))
            values = {**cut.rule.values, **dict(zip(cut.ends, (tops, bottoms), strict=True))}
            for bounds in cut.reached.clauses:
                table = interval_table(bounds, line.axes[0].key, self.sizes[0], values, len(tops))
                box, first, end = table.spans()
                found.append((ranks[box], np.maximum(first, lefts[box]), np.minimum(end, rights[box])))
        rank, first, end = (
            np.concatenate([*parts, np.zeros(0, np.int64)]) for parts in zip(*found, strict=True)
        )
        return [merged_spans(first[rank == one], end[rank == one]) for one in range(layout.ranks)]


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
