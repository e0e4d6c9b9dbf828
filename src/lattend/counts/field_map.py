"""The first layer that connects a query to a key: for all pairs of a line, or from one pixel of an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import Closed
from lattend.counts.field import Bools, flat_mask, one_layer
from lattend.errors import DomainError, NoClosedForm, NotAffineError
from lattend.report.data import Data
from lattend.report.shown import Shown
from lattend.report.table import WIDTH, wrap_text
from lattend.rules.language import expr
from lattend.rules.rule import Rule
from lattend.sets.guard import remembered
from lattend.sets.powers import Relation

QUICK_TRACED = 256  # positions that are traversed layer by layer rather than as sets
MOST_TRACED = 512  # and so many where there is no set
MOST_SIDE = 48  # cells of a map
NEVER = "·"  # where no layer connects two positions

LARGEST = np.iinfo(np.int64).max

Ints = NDArray[Any]  # of int64, or of Python's where they are larger


@dataclass(frozen=True)
class FieldMap(Shown, Data):
    """The first layer of each cell: -1 where none is, 0 from a position to itself.

    On a line the rows are queries and the columns are keys; of an image they are the rows and columns of the
    keys of `pixel`. `rows` and `columns` are the positions shown, not all of them where there are many.
    """

    JSON = "rows columns first_layers=layers pixel"

    rows: list[int]
    columns: list[int]
    layers: list[list[int]]
    pixel: tuple[int, int] | None = None

    @property
    def title(self) -> str:
        """Returns what the numbers mean."""
        if self.pixel is None:
            return "the layer that first connects each query (down) to each key (across)"
        return f"the layer that first connects pixel {self.pixel} to each other pixel"

    def text(self, width: int = WIDTH) -> str:
        """The map as columns of numbers, in several blocks where the lines would be longer than `width`.

        >>> from lattend.rules import strided
        >>> print(field_map(strided(t=1).at(n=3)))
        the layer that first connects each query (down) to each key (across)
          0 1 2
        0 0 · ·
        1 1 0 ·
        2 2 1 0
        """
        cells = [[NEVER if layer < 0 else str(layer) for layer in row] for row in self.layers]
        side = max((len(str(row)) for row in self.rows), default=0)
        across = max((len(text) for row in (self.columns, *cells) for text in map(str, row)), default=0)
        each = max(1, (width - side) // (across + 1))
        lines = wrap_text(self.title, width)
        for first in range(0, len(self.columns), each):
            block = slice(first, first + each)
            heads: list[tuple[object, list[Any]]] = [("", self.columns), *zip(self.rows, cells, strict=True)]
            lines += [
                "".join((f"{row:>{side}}", *(f" {cell:>{across}}" for cell in row_cells[block])))
                for row, row_cells in heads
            ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def latex(self) -> str:
        """The map as a matrix, a dot where no layer connects two positions."""
        rows = (" & ".join(r"\cdot" if layer < 0 else str(layer) for layer in row) for row in self.layers)
        body = " \\\\\n".join(rows)
        sides = "r" * len(self.columns)
        return f"\\left(\\begin{{array}}{{{sides}}}\n{body}\n\\end{{array}}\\right)"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


def field_map(rule: Rule, pixel: tuple[int, int] | None = None) -> FieldMap:
    """The map of a complete rule, at most MOST_SIDE cells wide, spread evenly over its positions."""
    sizes = [rule.values[axis.queries] for axis in rule.axes]
    if len(sizes) > 2:
        raise DomainError("a map is drawn of a line or of an image")
    shown = [_spread(size) for size in sizes]
    if len(sizes) == 1:
        (positions,) = shown
        layers = first_layers(rule, {rule.axes[0].query: positions, rule.axes[0].key: positions})
        return FieldMap(positions.tolist(), positions.tolist(), layers.tolist())
    at = pixel or (sizes[0] // 2, sizes[1] // 2)
    rule.located("pixel", [axis.query for axis in rule.axes], at)
    ranges = {axis.query: np.array([position]) for axis, position in zip(rule.axes, at, strict=True)}
    ranges |= {axis.key: positions for axis, positions in zip(rule.axes, shown, strict=True)}
    layers = first_layers(rule, ranges)[0, 0]
    return FieldMap(shown[0].tolist(), shown[1].tolist(), layers.tolist(), at)


def _spread(size: int) -> Ints:
    """Returns all positions, or some of them from the first to the last."""
    if size <= MOST_SIDE:
        return np.arange(size)
    positions = [index * (size - 1) // (MOST_SIDE - 1) for index in range(MOST_SIDE)]
    return np.array(positions, np.int64 if size <= LARGEST else object)


def first_layers(rule: Rule, ranges: Mapping[str, Ints]) -> Ints:
    """The layer that first connects each pair of these ranges of positions, by the names of a complete rule.

    0 from a position to itself, and -1 where no number of layers does.
    """
    one = one_layer(rule)
    lengths = [one.values[axis.queries] for axis in one.axes]
    positions = prod(lengths)
    if positions > QUICK_TRACED and not expr.arrays(one.condition):
        try:
            closed = remembered(_first_layers, replace(one, values={}), budget=one.budget)
            open_grid = dict(zip(ranges, np.ix_(*ranges.values()), strict=True))
            shape = tuple(len(axis_positions) for axis_positions in ranges.values())
            layers = closed.values_at({**one.values, **open_grid}, shape)
            for axis in one.axes:  # no piece speaks of a position and itself, nor of what is never connected
                layers = np.where((layers == 0) & (open_grid[axis.query] != open_grid[axis.key]), -1, layers)
            return layers
        except (NoClosedForm, NotAffineError):
            if positions > MOST_TRACED:
                raise
    queries, keys = (
        np.ravel_multi_index(np.meshgrid(*axis_positions, indexing="ij"), lengths)
        for axis_positions in (
            [ranges[axis.query] for axis in one.axes],
            [ranges[axis.key] for axis in one.axes],
        )
    )
    layers = _traced(flat_mask(one, positions), queries.ravel())[:, keys.ravel()]
    return layers.reshape([len(axis_positions) for axis_positions in ranges.values()])


def _first_layers(rule: Rule) -> Closed:
    relation = Relation(rule)
    pieces = relation.each(relation.lengths())
    domain = relation.pairs.domain
    return Closed(pieces[0].region.space if pieces else domain.space, domain, pieces).ready()


def _traced(mask: Bools, queries: Ints) -> Ints:
    """The layer that first connects these queries to every key."""
    step = (mask | np.eye(len(mask), dtype=bool)).astype(np.float32)
    seen = np.eye(len(mask), dtype=bool)[queries]
    layers = np.where(seen, 0, -1)
    layer = 0
    while True:
        further, layer = (seen.astype(np.float32) @ step) > 0, layer + 1
        if np.array_equal(further, seen):
            return layers
        layers[further & ~seen] = layer
        seen = further
