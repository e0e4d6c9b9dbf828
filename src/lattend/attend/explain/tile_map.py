"""TileMap: where on the grid a plan computes pairs, and how many of them are attended, at any zoom.

A tile takes some slots of queries and some of keys. How many of these lie between two edges is a closed form
of the orders, so a million positions cost a product for each tile and box, and no pair is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lattend.attend.explain.prediction import LIBRARY_TILE, PartCut, cuts_of, table_of
from lattend.attend.kernels.cpu.equal_tiles import rows_along
from lattend.counts import tile_counts
from lattend.draw import Picture
from lattend.draw.formats.palette import SHADES
from lattend.draw.grid import panel
from lattend.draw.grid.bind import at_head
from lattend.draw.grid.panel import Side, nice_step
from lattend.errors import DomainError, LattendError, TooLarge
from lattend.plans.order import Order
from lattend.plans.part import Part
from lattend.plans.plan import plan
from lattend.plans.tiles import INNER_BASE, INNER_END, INNER_FIRST, OUTER_BASE, OUTER_SLOT, tiles
from lattend.report.data import Data
from lattend.report.numbers import compact
from lattend.report.shown import Drawn
from lattend.rules.rule import Rule

if TYPE_CHECKING:
    from lattend.attend.explain.explain import Explanation
    from lattend.attend.explain.meta_call import MetaCall
    from lattend.plans.plan import Plan

Ints = NDArray[np.int64]
Span = tuple[int, int]
MOST_BOXES = 64  # along a side
MOST_TILES = 400_000
AT_ONCE = 1 << 14  # tiles


@dataclass(frozen=True)
class TileMap(Drawn, Data):
    """Boxes between edges: the pairs that tiles compute in each, and those of them that are attended.

    `needed` is None where attended pairs cannot be counted box by box. A rule that speaks of heads is shown
    at head 0. Steps that reach past a tile's last key are not drawn.
    """

    JSON = "query_edges key_edges executed needed"

    query_edges: tuple[int, ...]
    key_edges: tuple[int, ...]
    executed: Ints
    needed: Ints | None

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Which queries and keys are shown, the pairs that run there, and those of them that are attended."""
        areas = np.outer(np.diff(self.query_edges), np.diff(self.key_edges))
        ends = (f"{edges[0]:,} to {edges[-1] - 1:,}" for edges in (self.query_edges, self.key_edges))
        facts: list[tuple[str, str]] = [*zip(("queries", "keys"), ends, strict=True)]
        facts.append(("pairs that run", f"{self.executed.sum():,} of {areas.sum():,}"))
        if self.needed is not None:
            facts.append(("attended", f"{self.needed.sum():,} of them"))
        return tuple(facts)

    def draw(self, title: str = "Where a plan computes pairs") -> Picture:
        """The map as a grid of boxes, each shaded by how many of its pairs run."""
        areas = np.outer(np.diff(self.query_edges), np.diff(self.key_edges))
        run = np.minimum(self.executed, areas)  # tiles of two parts may hold the same pair
        rows, cols = _side("query", self.query_edges), _side("key", self.key_edges)
        boxes = panel.tiles(run, areas, rows, cols)
        caption = ("each box is shaded by how many of its pairs run",)
        return Picture(title, (boxes,), caption, facts=self.facts, legend=SHADES, data=self.json())


def _side(label: str, edges: tuple[int, ...]) -> Side:
    """One cell a box, a tick at some of the edges between them."""
    step = nice_step(len(edges), 6)
    return Side(label, len(edges) - 1, tuple((i, compact(edges[i])) for i in range(0, len(edges), step)))


def tile_map(
    found: Explanation,
    rule: Rule,
    asked: MetaCall,
    queries: Span | None = None,
    keys: Span | None = None,
    most: int = MOST_BOXES,
) -> TileMap:
    """The map of these queries and keys, all by default, in at most `most` boxes a side."""
    made = plan(asked.call.rule)
    if not found.has_tile_map:
        raise LattendError(
            "tiles are mapped on a line, without arrays and padding; the plan's picture shows some tiles of "
            "any rule"
        )
    axis = made.axes[0]
    cuts = _cuts(found.kernel, made, asked)
    units = [max((cut.rows[0] for cut in cuts), default=1), max((cut.step or 1 for cut in cuts), default=1)]
    rows, cols = (
        _edges(span, size, unit, most)
        for span, size, unit in zip((queries, keys), (axis.outer_size, axis.inner_size), units, strict=True)
    )
    needed = _needed(rule, rows, cols)
    if found.kernel == "reference" and needed is not None:
        executed = needed
    elif found.kernel in ("dense", "reference", None):
        executed = np.outer(np.diff(rows), np.diff(cols))
    else:
        parts = zip(made.parts, cuts, strict=True)
        nothing = np.zeros((len(rows) - 1, len(cols) - 1), np.int64)
        executed = sum(
            (_executed(found.kernel, asked, part, cut, rows, cols) for part, cut in parts), nothing
        )
    return TileMap(tuple(rows.tolist()), tuple(cols.tolist()), executed, needed)


def _cuts(kernel: str | None, made: Plan, asked: MetaCall) -> list[PartCut]:
    if kernel in ("triton", "native", "cpu"):
        return cuts_of(kernel, asked.call, made, asked.q, asked.v)
    return [PartCut((LIBRARY_TILE,), LIBRARY_TILE if kernel == "sdpa" else 1)] * len(made.parts)


def _edges(span: Span | None, size: int, unit: int, most: int) -> Ints:
    """Where boxes begin, and the end: whole tiles to a box, or whole boxes to a tile, as far as they go."""
    first, end = span or (0, size)
    if not 0 <= first < end <= size:
        raise DomainError(f"positions {first:,} to {end:,} are not within the {size:,} there are")
    width = -(-(end - first) // most)
    if width > unit:
        width = -(-width // unit) * unit
    else:
        width = next(part for part in range(width, unit + 1) if unit % part == 0)
    inside = np.arange(first // width + 1, -(-end // width)) * width
    return np.array([first, *inside, end], np.int64)


def _executed(kernel: str, asked: MetaCall, part: Part, cut: PartCut, rows: Ints, cols: Ints) -> Ints:
    """The pairs that the tiles of one part compute in each box."""
    table, _ = table_of(kernel, asked.call, part, tiles(part, cut.rows))
    if table.shape[2] > MOST_TILES:
        raise TooLarge(f"{table.shape[2]:,} tiles are more than are mapped, {MOST_TILES:,}")
    axis, total = part.axes[0], np.zeros((len(rows) - 1, len(cols) - 1), np.int64)
    found = table[0, 0].astype(np.int64)
    slot, base = found[:, OUTER_SLOT], found[:, OUTER_BASE]
    last = slot + rows_along(axis, cut.rows[0], slot, base)
    seen = _between(axis.outer_order, rows[[0, -1]], base, slot, last)[:, 0] > 0
    found, slot, base, last = found[seen], slot[seen], base[seen], last[seen]
    for begin in range(0, len(found), AT_ONCE):
        some = slice(begin, begin + AT_ONCE)
        inner = (found[some, column] for column in (INNER_BASE, INNER_FIRST, INNER_END))
        outer = _between(axis.outer_order, rows, base[some], slot[some], last[some])
        within = _between(axis.inner_order, cols, *inner)
        tile, row = np.nonzero(outer)  # a tile lies in few rows of boxes
        np.add.at(total, row, outer[tile, row][:, None] * within[tile])
    return total


def _between(order: Order, edges: Ints, base: Ints, first: Ints, end: Ints) -> Ints:
    """How many of each tile's slots lie between each two edges: [tiles, boxes]."""
    below = np.clip(order.below(edges[None, :], base[:, None]), first[:, None], end[:, None])
    return np.diff(below, axis=1)


def _needed(rule: Rule, rows: Ints, cols: Ints) -> Ints | None:
    """The attended pairs of each box."""
    try:
        return np.asarray(tile_counts(at_head(rule, 0), rows.tolist(), cols.tolist())).astype(np.int64)
    except LattendError:
        return None
