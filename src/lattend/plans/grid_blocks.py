"""GridBlocks: the blocks of a fixed grid that hold attended pairs, and which of them are full.

All pairs are one box to begin with. A box that surely holds none is dropped, one that surely holds all is
full, and any other is cut in four, down to single pairs if need be: the answer is exact, and the work
follows the number of blocks that are attended, not n x n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lattend.errors import TooLarge
from lattend.plans.bounds import Bounds
from lattend.plans.canonical import canonical_form, decided
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.flat import flat_condition
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Condition, Lookup, Num
from lattend.rules.language.intervals import Interval
from lattend.rules.rule import Rule

Ints = NDArray[np.int64]
Places = NDArray[np.int32]  # of blocks, kept in numbers
Bools = NDArray[np.bool_]

AT_ONCE = 1 << 14  # boxes looked at together
MOST_BLOCKS = 1 << 28  # attended ones
MOST_PAIRS = 1 << 34  # where data is looked up by query and key at once, and no bound helps


@dataclass(frozen=True)
class GridBlocks:
    """The attended blocks of one head in order: their rows, columns, and whether all pairs are attended.

    A block across the end of the queries or keys is never full.
    """

    rows: Places
    columns: Places
    full: Bools


def grid_blocks(rule: Rule, block: tuple[int, int]) -> list[GridBlocks]:
    """The attended blocks of `block` queries and keys, for each head (or once), of a complete rule.

    >>> from lattend.rules.reader import rule
    >>> found = grid_blocks(rule("k <= q and q - k <= 5").at(n=12), (4, 4))[0]
    >>> [(int(r), int(c), bool(f)) for r, c, f in zip(found.rows, found.columns, found.full)]
    [(0, 0, False), (1, 0, False), (1, 1, False), (2, 0, False), (2, 1, False), (2, 2, False)]
    """
    n, m = flat_lengths(rule)
    condition = flat_condition(rule, canonical_form(rule).rows)
    blocks: list[GridBlocks] = []
    for head in range(rule.values[HEADS] if rule.has_heads else 1):
        of_head = expr.substituted(condition, {HEAD: Num(head)})
        _check_data(of_head, n, m)
        blocks.append(_Grid(of_head, rule, (n, m), block).blocks())
    return blocks


def flat_lengths(rule: Rule) -> tuple[int, int]:
    """How many queries and keys a complete rule has, along all axes together."""
    queries = [rule.values[axis.queries] for axis in rule.axes]
    keys = [rule.values[axis.keys] for axis in rule.axes]
    return int(np.prod(queries, dtype=object)), int(np.prod(keys, dtype=object))


def _check_data(condition: Condition, n: int, m: int) -> None:
    for node in expr.walk(condition):
        if isinstance(node, Lookup) and {"q", "k"} <= {*expr.names(node)} and n * m > MOST_PAIRS:
            raise TooLarge(
                f"{expr.term_text(node)} is looked up for each of {n:,} x {m:,} pairs, "
                f"more than {MOST_PAIRS:,}; look up queries and keys apart, as in doc[q] == doc[k]"
            )


@dataclass(frozen=True)
class _Boxes:
    """Boxes of positions, ends included; `owner` is the block that each lies in, once they are smaller."""

    q0: Ints
    q1: Ints
    k0: Ints
    k1: Ints
    owner: Ints

    def __len__(self) -> int:
        return len(self.q0)

    def picked(self, which: Bools | slice) -> _Boxes:
        return _Boxes(*(part[which] for part in (self.q0, self.q1, self.k0, self.k1, self.owner)))

    def pieces(self) -> Iterator[_Boxes]:
        for start in range(0, len(self), AT_ONCE):
            yield self.picked(slice(start, start + AT_ONCE))

    def quarters(self) -> _Boxes:
        """Each box in four, or in two where it is one position wide."""
        q, k = (self.q0 + self.q1) // 2, (self.k0 + self.k1) // 2
        parts = [
            (q0, q1, k0, k1, self.owner)
            for q0, q1 in ((self.q0, q), (q + 1, self.q1))
            for k0, k1 in ((self.k0, k), (k + 1, self.k1))
        ]
        cut = _Boxes(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        return cut.picked((cut.q0 <= cut.q1) & (cut.k0 <= cut.k1))


class _Grid:
    def __init__(
        self, condition: Condition, rule: Rule, lengths: tuple[int, int], block: tuple[int, int]
    ) -> None:
        self.lengths, self.block = lengths, block
        self.data = rule.data
        ends = [Interval(0, max(0, length - 1)) for length in lengths]
        self.condition = decided(condition, {}, dict(zip(("q", "k"), ends, strict=True)))
        self.bounds = Bounds(self.condition, rule.data)

    def blocks(self) -> GridBlocks:
        full: list[Ints] = []
        unsure: list[tuple[Places, Places]] = []
        grid = tuple(-(-length // size) for length, size in zip(self.lengths, self.block, strict=True))
        size = 1 << (max(1, *grid) - 1).bit_length()
        start = np.zeros(1 if min(grid) > 0 else 0, np.int64)
        stack, blocks = [(size, start, start)], 0
        while stack:
            size, rows, columns = stack.pop()
            if len(rows) > AT_ONCE:
                stack += [
                    (size, rows[at : at + AT_ONCE], columns[at : at + AT_ONCE])
                    for at in range(0, len(rows), AT_ONCE)
                ]
                continue
            every, none, complete = self.looked_at(rows, columns, size)
            taken = every & complete
            blocks += int(taken.sum()) * size * size
            if blocks > MOST_BLOCKS:
                raise TooLarge(f"more than {MOST_BLOCKS:,} blocks are attended; give a larger block_size")
            if taken.any():
                full.append(self.numbered(*_cut(rows[taken], columns[taken], size)))
            rows, columns = rows[~none & ~taken], columns[~none & ~taken]
            if size == 1:
                unsure.append(_small(rows, columns))
            elif len(rows):
                rows, columns = _cut(2 * rows, 2 * columns, 2, scaled=False)
                inside = (rows * (size // 2) < grid[0]) & (columns * (size // 2) < grid[1])
                stack.append((size // 2, rows[inside], columns[inside]))
        return self.settled(full, _joined(unsure))

    def boxes(self, rows: Ints, columns: Ints, size: int) -> _Boxes:
        """The positions of groups of size × size blocks, up to the end of queries and keys."""
        q, k = self.block[0] * size, self.block[1] * size
        q1, k1 = (rows + 1) * q - 1, (columns + 1) * k - 1
        ends = np.minimum(q1, self.lengths[0] - 1), np.minimum(k1, self.lengths[1] - 1)
        return _Boxes(rows * q, ends[0], columns * k, ends[1], np.arange(len(rows)))

    def looked_at(self, rows: Ints, columns: Ints, size: int) -> tuple[Bools, Bools, Bools]:
        """Which groups surely hold all pairs, which none, and which do not pass the end."""
        boxes = self.boxes(rows, columns, size)
        complete = (boxes.q1 - boxes.q0 + 1 == self.block[0] * size) & (
            boxes.k1 - boxes.k0 + 1 == self.block[1] * size
        )
        return *self.held(boxes), complete

    def held(self, boxes: _Boxes) -> tuple[Bools, Bools]:
        held = self.bounds.held({"q": Interval(boxes.q0, boxes.q1), "k": Interval(boxes.k0, boxes.k1)})
        every, none = (np.broadcast_to(np.asarray(part, bool), len(boxes)) for part in held)
        return every, none

    def attended(self, q: Ints, k: Ints) -> Bools:
        attended = evaluate(self.condition, {"q": q, "k": k}, self.data)
        return np.broadcast_to(np.asarray(attended, bool), q.shape)

    @property
    def width(self) -> int:
        """Returns the number of blocks in a row."""
        return max(1, -(-self.lengths[1] // self.block[1]))

    def numbered(self, rows: Ints, columns: Ints) -> Ints:
        """Full blocks as numbers in order; a partial one is one less."""
        return (rows * self.width + columns) * 2 + 1

    def settled(self, lists: list[Ints], unsure: tuple[Places, Places]) -> GridBlocks:
        """All attended blocks in order, once those that the bounds leave open are looked into."""
        for start in range(0, len(unsure[0]), AT_ONCE):
            rows, columns = (part[start : start + AT_ONCE].astype(np.int64) for part in unsure)
            some, gap = self.inside(rows, columns)
            lists.append(self.numbered(rows[some], columns[some]) - gap[some])
        numbers = np.concatenate(lists) if lists else np.zeros(0, np.int64)
        lists.clear()
        numbers.sort()
        is_full = (numbers & 1).astype(bool)
        numbers >>= 1
        rows = (numbers // self.width).astype(np.int32)
        numbers %= self.width
        return GridBlocks(rows, numbers.astype(np.int32), is_full)

    def inside(self, rows: Ints, columns: Ints) -> tuple[Bools, Bools]:
        """Returns whether each block has an attended pair, and whether it has a pair that is not attended."""
        boxes = self.boxes(rows, columns, 1)
        some = np.zeros(len(rows), bool)
        gap = (boxes.q1 - boxes.q0 + 1 < self.block[0]) | (boxes.k1 - boxes.k0 + 1 < self.block[1])
        stack = [boxes]
        while stack:
            boxes = stack.pop()
            if len(boxes) > AT_ONCE:
                stack += boxes.pieces()
                continue
            boxes = boxes.picked(~(some & gap)[boxes.owner])
            if not len(boxes):
                continue
            for q, k in ((boxes.q0, boxes.k0), (boxes.q0, boxes.k1), (boxes.q1, boxes.k0)):
                seen = self.attended(q, k)
                some[boxes.owner[seen]] = True
                gap[boxes.owner[~seen]] = True
            every, none = self.held(boxes)
            single = (boxes.q0 == boxes.q1) & (boxes.k0 == boxes.k1)
            open_ = ~every & ~none & ~single & ~(some & gap)[boxes.owner]
            if open_.any():
                stack.append(boxes.picked(open_).quarters())
        return some, gap


def _cut(rows: Ints, columns: Ints, size: int, *, scaled: bool = True) -> tuple[Ints, Ints]:
    """Returns the blocks in groups of size × size; rows and columns count groups, or blocks if not scaled."""
    down, across = (part.ravel() for part in np.indices((size, size)))
    by = size if scaled else 1
    return (rows[:, None] * by + down).ravel(), (columns[:, None] * by + across).ravel()


def _small(rows: Ints, columns: Ints) -> tuple[Places, Places]:
    return rows.astype(np.int32), columns.astype(np.int32)


def _joined(parts: list[tuple[Places, Places]]) -> tuple[Places, Places]:
    nothing = np.zeros(0, np.int32)
    rows, columns = zip(*parts, strict=True) if parts else ((nothing,), (nothing,))
    return np.concatenate(rows), np.concatenate(columns)
