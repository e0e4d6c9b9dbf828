"""Tables of the kernels for images on Hopper (hopper/images.py): tiles in strips, each of two boxes of rows.

Columns of a tile: its first row and column; those of its steps, how many of these boxes are side by side,
and all; how many of the last are the first of the next tile; for each of its two boxes of rows the first
step that it meets and their end, the end of those that the box below it in the strip does not meet too, and
how many were given back with the last tile; and of its rows, and columns, those that exist: the first and the
end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tiles import PER_AXIS, Tiles

Table = NDArray[np.int32]
Numbers = NDArray[np.int64]
COLUMNS = 19
STEPS, KEPT, MET = 5, 6, 7  # the first of a box's columns: MET, or four further
BEGINNING = 8  # steps whose time a tile takes beside its own
# Share of programs' strips that are whole at least: else those beside each other begin at other times
WHOLE = 0.9
FAR = 1 << 30


def image_table(
    plan: Plan, place: int, outer: tuple[int, ...], inner: tuple[int, ...], stages: int, *, transposed: bool
) -> Table:
    """The table [heads or 1, tiles, columns] of a part whose axes are in order: tiles of `outer` rows and
    columns, steps of `inner` ones, of which so many have room.

    In a strip, steps begin where they do in most tiles, above the image if need be, so that tiles share some:

    >>> from lattend import rules
    >>> from lattend.plans.plan import plan
    >>> image = plan(rules.neighbourhood(r=3), rows=64, cols=16)
    >>> found = image_table(image, 0, (16, 8), (4, 16), 5, transposed=False)
    >>> found[0, :4, 2].tolist()  # 0, 13, 29 and 45 are needed
    [-3, 13, 29, 45]
    >>> found[0, 1, STEPS : KEPT + 1].tolist(), found[0, 1, MET : MET + 8].tolist()
    ([6, 2], [0, 4, 4, 0, 2, 6, 6, 2])
    """
    part = (plan.transposed if transposed else plan.parts)[place]
    lines, columns = inner
    tiles = _in_strips(plan.tiles(place, outer, transposed=transposed))
    half = (outer[0] // 2, outer[1])
    boxes = plan.tiles(place, half, transposed=transposed)
    empty = tiles.inner <= 0
    first, end = _ends(tiles, 0)
    if not empty.all():
        often = np.bincount(first[~empty] % lines).argmax()
        first = first - (first - often) % lines
    left, right = _ends(tiles, 1)
    across = np.where(empty, 1, -(-(right - left) // columns))
    first = np.where(empty, -lines, first)  # one box of zeros
    steps = np.where(empty, 1, -(-(end - first) // lines) * across)
    y, x = (tiles.column("outer_slot", axis) + tiles.column("outer_base", axis) for axis in range(2))
    left = np.where(empty, 0, left)
    kept = _kept(x, first, left, across, steps, lines, stages)
    met: list[Numbers] = []
    for below in (0, half[0]):
        begin, end = _met(tiles, boxes, below, first, across, steps, lines)
        held = np.maximum(kept - np.roll(begin, -1, 1), 0)  # of those that the next tile has too
        met += [begin, end, steps - held, np.roll(kept - held, 1, 1)]
    given = [y, x, first, left, across, steps, kept, *met, *_inside(part, tiles, 0), *_inside(part, tiles, 1)]
    return np.ascontiguousarray(np.stack(np.broadcast_arrays(*given), -1), np.int32)


def steps_met(table: Table) -> Numbers:
    """How many steps the two boxes of each tile meet."""
    met = table[..., MET : MET + 8].astype(np.int64)
    return met[..., 1] - met[..., 0] + met[..., 5] - met[..., 4]


def steps_loaded(table: Table) -> Numbers:
    """How many steps are loaded for each tile: those that the next one has too are loaded for that."""
    return table[..., STEPS].astype(np.int64) - table[..., KEPT]


def dealt(table: Table, members: int, programs: int) -> tuple[Table, Table]:
    """Where the tiles of each program begin in an order, and the end of the last; and that order: the tiles,
    numbered through all heads of a batch, `members`. Each program has about as many steps.

    Where programs have some whole strips each, theirs do not lie beside each other but beside those of the
    programs that run at the same time: columns that two strips share are then fetched from memory once.

    >>> table = np.zeros((1, 4, COLUMNS), np.int32)
    >>> table[0, 2:, 1] = 8  # two strips of two tiles
    >>> begins, order = dealt(table, 2, 2)
    >>> begins.tolist(), order.tolist()
    ([0, 4, 8], [0, 1, 4, 5, 2, 3, 6, 7])
    """
    order = _strips_apart(table, members, programs)
    weights: Numbers = np.tile(steps_met(table) + BEGINNING, (members // len(table), 1)).ravel()[order]
    passed = np.cumsum(weights) - weights / 2  # a tile is where its middle is
    wanted = np.linspace(0.0, float(weights.sum()), programs + 1)
    return np.searchsorted(passed, wanted).astype(np.int32), order.astype(np.int32)


def _strips_apart(table: Table, members: int, programs: int) -> Numbers:
    """The order of tiles: strips are cut into as many runs as a program has strips; it takes one of each."""
    tiles, column = table.shape[1], table[0, :, 1]
    plain: Numbers = np.arange(members * tiles, dtype=np.int64)
    begins = np.flatnonzero(np.append(True, column[1:] != column[:-1]))
    strips = [one for head in plain.reshape(members, tiles) for one in np.split(head, begins[1:])]
    each = max(1, -(-len(strips) // programs))
    if len(strips) < WHOLE * each * programs:
        return plain
    run = -(-len(strips) // each)
    found: Numbers = np.concatenate([one for at in range(run) for one in strips[at::run]])
    return found


def _in_strips(found: Tiles) -> Tiles:
    """The tiles from top to bottom, strip after strip."""
    table = found.table
    keys = [table[0, :, PER_AXIS.index(name) + axis] for axis in (0, len(PER_AXIS)) for name in PER_AXIS[:2]]
    return Tiles(found.shape, table[:, np.lexsort(keys)])


def _ends(found: Tiles, axis: int) -> tuple[Numbers, Numbers]:
    """The first inner position of each tile along an axis, and their end."""
    base, first, end = (
        found.column(name, axis).astype(np.int64) for name in ("inner_base", "inner_first", "inner_end")
    )
    return base + first, base + end


def _met(
    tiles: Tiles, boxes: Tiles, below: int, first: Numbers, across: Numbers,
    steps: Numbers, lines: int,
) -> list[Numbers]:  # fmt: skip
    """For the box of rows that is so far below a tile's first: the first step that it meets, and the end.

    A box that meets none, or is not there, is given the last, of which nothing is kept.
    """
    wanted, there = _box_numbers(tiles, below), _box_numbers(boxes, 0)
    order = np.argsort(there)
    at = order[np.minimum(np.searchsorted(there[order], wanted), len(order) - 1)]
    begin, end = (x[:, at] for x in _ends(boxes, 0))
    meets = (there[at] == wanted) & (boxes.inner[:, at] > 0)
    begin = np.where(meets, (begin - first) // lines * across, steps - 1)
    return [begin, np.where(meets, np.minimum(-(-(end - first) // lines) * across, steps), steps)]


def _box_numbers(found: Tiles, below: int) -> Numbers:
    """A number for where each tile begins, or what is so far below it: the same for the same place."""
    number = np.zeros(found.table.shape[1], np.int64)
    for axis in range(2):
        slot, base = (found.column(name, axis)[0].astype(np.int64) for name in ("outer_slot", "outer_base"))
        number = (number << 32) + slot + base + below * (axis == 0)
    return number


def _kept(
    column: Numbers, first: Numbers, left: Numbers, across: Numbers, steps: Numbers,
    lines: int, stages: int,
) -> Numbers:  # fmt: skip
    """How many of each tile's last steps are the first of the next in its strip, if there is room."""
    kept = np.zeros_like(steps)
    further = first[:, 1:] - first[:, :-1]
    shared = steps[:, :-1] - further // lines * across[:, :-1]
    same = (left[:, 1:] == left[:, :-1]) & (across[:, 1:] == across[:, :-1])
    same &= column[:, 1:] == column[:, :-1]  # a program may go on with another strip
    same &= (further > 0) & (further % lines == 0) & (shared > 0) & (shared <= stages)
    kept[:, :-1] = np.where(same & (shared <= steps[:, 1:]), shared, 0)
    return kept


def _inside(part: Part, tiles: Tiles, axis: int) -> list[Numbers]:
    """Of a tile's rows along an axis those that can have columns: the first and the end."""
    of = part.axes[axis]
    slot, base = (tiles.column(name, axis).astype(np.int64) for name in ("outer_slot", "outer_base"))
    slots = FAR if of.class_slots is None else of.class_slots
    end = np.minimum(of.last + 1 - slot - base, slots - slot)
    return [np.maximum(of.first - slot - base, 0), np.maximum(end, 0)]
