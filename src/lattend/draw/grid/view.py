"""View: the panels of a picture and the numbers under them, one cell a pair or one cell a tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.draw.formats.palette import ATTENDED, BOTH, HERE, MIXED, ONLY_A, ONLY_B, OWN, SHADES, Look
from lattend.draw.grid import panel, titles
from lattend.draw.grid.bind import per_head
from lattend.draw.grid.panel import Bools, Panel, Side, cell_side, tile_side
from lattend.report.numbers import percent
from lattend.rules.rule import Rule

MOST_TILES = 64  # along a side
FAR_LONGER = 8  # a side this many times the other gets tiles of its own length

TileCounts = Callable[[Rule, Sequence[int], Sequence[int]], NDArray[Any]]


@dataclass(frozen=True)
class View:
    """Panels, the pairs of each class (attended, or only A, only B, both), all pairs, and notes."""

    panels: tuple[Panel, ...]
    counts: tuple[int, ...]
    total: int
    notes: tuple[str, ...] = ()
    of: str = ""
    what: str = "pairs"
    empty: str = ""  # why there are no panels

    @property
    def caption(self) -> tuple[str, ...]:
        if self.empty:
            return (f"{self.of}{self.empty}",)
        if len(self.counts) == 1:
            return f"{self.of}{titles.amount(self.counts[0], self.total, self.what)}", *self.notes
        only_a, only_b, both = self.counts
        counts = [f"{count:,} ({percent(count, self.total)})" for count in (only_a + both, only_b + both)]
        return (
            f"{self.of}A attends to {counts[0]} and B to {counts[1]} of {self.total:,} {self.what}",
            *self.notes,
        )

    def named(self, name: str) -> View:
        """The same under a name of its own, which its panels and its caption tell."""
        panels = (replace(p, title=f"{name}, {p.title}" if p.title else name) for p in self.panels)
        return replace(self, panels=tuple(panels), of=f"{name}: {self.of}")

    @property
    def legend(self) -> tuple[Look, ...]:
        used = {look for shown in self.panels for row in shown.rows_of_looks() for look in row}
        if len(self.counts) == 3:
            classes = zip((ONLY_A, ONLY_B, BOTH), self.counts, strict=True)
            counted = tuple(replace(look, label=f"{look.label}: {count:,}") for look, count in classes)
            return (*counted, MIXED) if MIXED in used else counted
        if any(shown.looks is SHADES for shown in self.panels):
            return SHADES
        return tuple(look for look in (ATTENDED, OWN, HERE) if look in used)


def classes(masks: Sequence[Bools]) -> list[Bools]:
    """The mask itself, or of two masks A and B: only A, only B, both."""
    if len(masks) == 1:
        return [masks[0]]
    a, b = masks
    return [a & ~b, b & ~a, a & b]


def tile_classes(
    rules: Sequence[Rule], tile_counts: TileCounts, query_edges: Sequence[int], key_edges: Sequence[int]
) -> list[NDArray[Any]]:
    """The pairs of a rule in each tile, or of two rules A and B: only A, only B, both."""
    counts = [tile_counts(rule, query_edges, key_edges) for rule in rules]
    if len(counts) == 1:
        return counts
    both = tile_counts(rules[0] & rules[1], query_edges, key_edges)  # fewer pieces than A - B and B - A
    return [counts[0] - both, counts[1] - both, both]


def tile_areas(query_edges: Sequence[int], key_edges: Sequence[int]) -> NDArray[Any]:
    """How many pairs each tile has room for, as whole numbers of any size."""
    return np.outer(np.diff(np.array(query_edges, object)), np.diff(np.array(key_edges, object)))


def squares(rules: Sequence[Rule], start: int = 0, own: bool = True) -> View:
    """One cell a pair; the pixels of an image follow each other row by row.

    Positions are numbered from `start`; `own` tells the query's own position apart.
    """
    panels: list[Panel] = []
    counts: list[list[int]] = []
    heads, notes = per_head(rules)
    for title, at_head in heads:
        masks = [flat_mask(rule) for rule in at_head]
        rows, cols = _square_sides(at_head[0], masks[0].shape, start)
        if len(masks) == 1:
            tied = all(axis.queries == axis.keys for axis in at_head[0].axes)
            diagonal = np.eye(len(masks[0]), dtype=bool) if tied and own else None
            panels.append(panel.squares(masks[0], rows, cols, diagonal, title))
        else:
            panels.append(panel.compared(masks[0], masks[1], rows, cols, title))
        counts.append([int(part.sum()) for part in classes(masks)])
    total = sum(shown.cells.size for shown in panels)
    return View(tuple(panels), tuple(map(sum, zip(*counts, strict=True))), total, notes)


def flat_mask(rule: Rule) -> Bools:
    """The mask with one row a query and one column a key."""
    mask = rule.mask()
    queries, keys = mask.shape[: len(rule.axes)], mask.shape[len(rule.axes) :]
    return mask.reshape(math.prod(queries), math.prod(keys))


def _square_sides(rule: Rule, shape: tuple[int, ...], start: int) -> tuple[Side, Side]:
    unit, every = "", 0
    if len(rule.axes) > 1:
        every = math.prod(rule.values[axis.queries] for axis in rule.axes[1:])  # an image row, or a slice
        unit = " pixel, row by row" if len(rule.axes) == 2 else " voxel, slice by slice"
    rows, cols = (
        cell_side(f"{name}{unit}", length, start, every)
        for name, length in zip(("query", "key"), shape, strict=True)
    )
    return rows, cols


def tile_sizes(queries: int, keys: int) -> tuple[int, int]:
    """How many queries and keys a tile covers: square, at most 64 of them along a side."""
    sizes = -(-queries // MOST_TILES), -(-keys // MOST_TILES)
    if max(queries, keys) <= FAR_LONGER * min(queries, keys):
        return max(sizes), max(sizes)
    return sizes


def edges(length: int, tile: int) -> list[int]:
    """Where tiles begin, and the end: `edges(10, 4)` is 0, 4, 8, 10."""
    return [*range(0, length, tile), length]


def tiles(rules: Sequence[Rule], tile_counts: TileCounts, start: int = 0) -> View:
    """One cell a tile of a line's grid, shaded by how full it is, from exact counts of each tile."""
    axis, values = rules[0].axes[0], rules[0].values
    lengths = values[axis.queries], values[axis.keys]
    sizes = tile_sizes(*lengths)
    query_edges, key_edges = (edges(length, tile) for length, tile in zip(lengths, sizes, strict=True))
    areas = tile_areas(query_edges, key_edges)
    rows, cols = (
        tile_side(name, length, tile, start)
        for name, length, tile in zip(("query", "key"), lengths, sizes, strict=True)
    )
    panels: list[Panel] = []
    sums: list[list[int]] = []
    heads, notes = per_head(rules)
    for title, at_head in heads:
        counts = tile_classes(at_head, tile_counts, query_edges, key_edges)
        panels.append(tile_panel(counts, areas, rows, cols, title))
        sums.append([int(count.astype(object).sum()) for count in counts])
    total = len(heads) * lengths[0] * lengths[1]
    notes = (titles.tile_note(sizes, "pairs", len(rules)), *notes)
    return View(tuple(panels), tuple(map(sum, zip(*sums, strict=True))), total, notes)


def tile_panel(
    counts: Sequence[NDArray[Any]], areas: NDArray[Any], rows: Side, cols: Side, title: str
) -> Panel:
    """The panel of tiles with these counts: of the one rule, or of only A, only B and both."""
    if len(counts) == 1:
        return panel.tiles(counts[0], areas, rows, cols, title)
    return panel.compared_tiles(counts[0], counts[1], counts[2], rows, cols, title)
