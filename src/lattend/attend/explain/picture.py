"""The picture of a plan: its tiles over the rule's grid, at a size that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, log2, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.batch_arrays import arrays_of
from lattend.attend.explain.meta_call import MetaCall
from lattend.attend.explain.prediction import LIBRARY_TILE, PartCut, cuts_of, table_of
from lattend.attend.explain.text import format_box, format_condition, format_numbers
from lattend.draw.grid import overlay
from lattend.draw.grid.overlay import Tile
from lattend.draw.grid.panel import Panel, Side, cell_side
from lattend.draw.grid.titles import clipped
from lattend.errors import LattendError
from lattend.plans.order import Order
from lattend.plans.part import Part, PartAxis
from lattend.plans.plan import Plan, plan
from lattend.plans.tiles import PER_AXIS, listed_positions, tiles, with_lists
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Num
from lattend.rules.rule import Rule

if TYPE_CHECKING:
    from lattend.attend.explain.explain import Explanation
    from lattend.draw import Picture

Ints = NDArray[np.int64]
ALONE, BESIDE, LARGEST = 64, 42, 256  # positions a side: of one panel, of several, where numbers are fixed
REPEATS = 4  # how often the longest number of a rule should fit in the picture
COARSEST = 8  # queries of a tile in the picture
AROUND = 2  # pixels left around the keys of a tile
MOST_PANELS = 4
THICK = 3  # pixels from which boxes of queries are outlined


@dataclass(frozen=True)
class DrawnPlan:
    """A rule at the numbers of its picture, its plan, how its parts are cut, and its arrays."""

    rule: Rule
    plan: Plan
    cuts: list[PartCut]
    data: Mapping[str, Any]
    call: AttentionCall
    kernel: str


def plan_picture(
    found: Explanation, rule: Rule, asked: MetaCall, size: int | None, title: str | None
) -> Picture:
    """The picture: the whole line with all tiles, or the keys that one tile of an image reads."""
    if not prod(axis.outer_size * axis.inner_size for axis in plan(asked.call.rule).axes):
        raise LattendError("there is nothing to draw: a size is 0")
    kernel = found.kernel or "triton"
    true = plan(asked.call.rule)
    cuts = _cuts(kernel, true, asked)
    data = arrays_of(asked.call, 0)
    heading = found.title if title is None else clipped(title)
    lines = [found.subtitle] if title is None else [found.title, found.subtitle]
    if len(true.parts) > 1:
        lines += [f"part {i + 1}: {format_condition(part)}" for i, part in enumerate(true.parts)]
    if len(rule.axes) > 1:
        whole = DrawnPlan(rule, true, cuts, data, asked.call, kernel)
        return _image(whole, heading, lines)
    small, shrink = _smaller(rule, true, cuts, size, bool(data))
    planned = plan(small)
    mine = [_shrunk(_alike(part, true, cuts), shrink) for part in planned.parts]
    drawn = DrawnPlan(small, planned, mine, data, replace(asked.call, rule=small), kernel)
    return _line(drawn, heading, lines, found if shrink > 1 or small.values != rule.values else None)


def _cuts(kernel: str, found: Plan, asked: MetaCall) -> list[PartCut]:
    if kernel in ("triton", "native", "cpu"):
        return cuts_of(kernel, asked.call, found, asked.q, asked.v)
    if kernel == "sdpa":
        cut = PartCut((LIBRARY_TILE,) * len(found.axes), LIBRARY_TILE)
    elif kernel == "reference":
        cut = PartCut((1,) * len(found.axes), 1)
    else:
        cut = PartCut(tuple(axis.outer_size for axis in found.axes), None)
    return [cut] * len(found.parts)


# Lines


def _smaller(rule: Rule, true: Plan, cuts: list[PartCut], size: int | None, data: bool) -> tuple[Rule, int]:
    """The rule at numbers that can be drawn, all divided by one power of two; and that divisor."""
    beside = any(_has_layout(part) for part in true.parts)
    most = size or (BESIDE if beside else ALONE)
    axis = rule.axes[0]
    longest = max(rule.values[axis.queries], rule.values[axis.keys])
    if longest <= most:
        return rule, 1
    fixed = max((node.value for node in expr.walk(rule.condition) if isinstance(node, Num)), default=0)
    if data or fixed > COARSEST:  # what is written in the rule cannot be divided
        return _resized(rule, 1, max(most, min(LARGEST, REPEATS * fixed if not data else LARGEST))), 1
    lengths = [min(abs(rule.values[name]), longest) for name in rule.parameters]
    coarse = max([max(cut.rows) for cut in cuts], default=1) / COARSEST
    wanted = max(
        [1.0, coarse if coarse < longest / COARSEST else 1.0, *(REPEATS * x / most for x in lengths)]
    )
    shrink = 1 << ceil(log2(wanted))
    try:
        return _resized(rule, shrink, most), shrink
    except LattendError:  # a domain that divided numbers leave
        return _resized(rule, 1, most), 1


def _resized(rule: Rule, shrink: int, most: int) -> Rule:
    axis = rule.axes[0]
    values = dict(rule.values)
    for name in rule.parameters:
        values[name] = _divided(values[name], shrink, 2 if name in rule.moduli else 1)
    for name in {axis.queries, axis.keys}:
        values[name] = min(most, max(1, values[name] // shrink))
    return replace(rule, values={}).at(**values)


def _divided(value: int, shrink: int, least: int) -> int:
    """The number divided and rounded; a small one stays, and none becomes less than `least`."""
    small = round(abs(value) / shrink)
    return (1 if value > 0 else -1) * max(small, min(abs(value), least))


def _alike(part: Part, true: Plan, cuts: list[PartCut]) -> PartCut:
    """The cut of the true part that this one stands for."""
    same = [cut for other, cut in zip(true.parts, cuts, strict=True) if str(other) == str(part)]
    return (same or cuts)[0]


def _shrunk(cut: PartCut, shrink: int) -> PartCut:
    rows = tuple(max(min(2, size), size // shrink) for size in cut.rows)
    return PartCut(rows, None if cut.step is None else max(min(2, cut.step), cut.step // shrink))


def _line(drawn: DrawnPlan, heading: str, lines: list[str], true: Explanation | None) -> Picture:
    axis = drawn.rule.axes[0]
    queries, keys = (drawn.rule.values[size] for size in (axis.queries, axis.keys))
    every = np.arange(queries), np.arange(keys)
    masks = [_mask(part, drawn, *every) for part in drawn.plan.parts] or [np.zeros((queries, keys), bool)]
    boxes = [list(_tiles(drawn, place)) for place in range(len(drawn.plan.parts))]
    several = [place for place, part in enumerate(drawn.plan.parts) if _has_layout(part)]
    overlays = [
        overlay.squares(
            masks,
            [tile for part in boxes for tile in part],
            cell_side("query", queries),
            cell_side("key", keys),
            "positions in order" if several else "",
        )
    ]
    overlays += [_own_order(drawn, place, masks, boxes[place]) for place in several[: MOST_PANELS - 1]]
    needed = sum(int(mask.sum()) for mask in masks)
    executed = sum(tile.rows.size * tile.cols.size for part in boxes for tile in part)
    caption = [f"here {needed:,} pairs are needed and {executed:,} executed, of {queries * keys:,}"]
    if true is not None:
        caption.append(_smaller_text(drawn, true))
    if drawn.rule.has_heads:
        caption.append(f"head 0 of {drawn.rule.values['heads']:,} is drawn")
    return overlay.picture(heading, lines, overlays, caption)


def _smaller_text(drawn: DrawnPlan, true: Explanation) -> str:
    """What is drawn in place of what."""
    here = {name: drawn.rule.values[name] for name in true.at}
    changed = [name for name, value in here.items() if value != true.at[name]]
    numbers, instead = ({name: values[name] for name in changed} for values in (here, true.at))
    cut = drawn.cuts[0] if drawn.cuts else None
    if not cut or not true.parts or (cut.rows, cut.step) == (true.parts[0].rows, true.parts[0].step):
        return f"drawn with {format_numbers(numbers)} in place of {format_numbers(instead)}"
    before = PartCut(true.parts[0].rows, true.parts[0].step)
    return (
        f"drawn with {format_numbers(numbers)} and tiles of {_tile(cut)}, "
        f"in place of {format_numbers(instead)} and {_tile(before)}"
    )


def _tile(cut: PartCut) -> str:
    return f"{format_box(cut.rows)} queries" + (f" by {cut.step:,} keys" if cut.step else "")


def _mask(part: Part, drawn: DrawnPlan, queries: Ints, keys: Ints) -> NDArray[np.bool_]:
    """The attended pairs of one part at these positions of a line."""
    axis = part.axes[0]
    places = {axis.outer: queries[:, None], axis.inner: keys[None, :], "head": 0}
    held = evaluate(expr.all_of(*part.branch), {**part.numbers, **places}, drawn.data)
    return np.broadcast_to(np.asarray(held, bool), (len(queries), len(keys))).copy()


def _tiles(drawn: DrawnPlan, place: int) -> Iterator[Tile]:
    """The steps of all tiles of one part, as positions."""
    part, cut = drawn.plan.parts[place], drawn.cuts[place]
    plain = tiles(part, cut.rows)
    found = with_lists(part, plain, drawn.data)
    table = (
        table_of(drawn.kernel, drawn.call, part, plain)[0] if part.block_table is None else found.table[None]
    )
    axis = part.axes[0]
    for row in table[0, 0].astype(np.int64):
        queries = _queries(axis, row, 0, cut.rows[0])
        slots = np.arange(int(row[3]), int(row[4]))
        for begin in range(0, len(slots), cut.step or max(1, len(slots))):
            some = slots[begin : begin + (cut.step or len(slots))]
            keys = axis.inner_order.positions(some, row[2]) if part.block_table is None else None
            yield Tile(place, queries, listed_positions(part, found, row[2], some) if keys is None else keys)


def _queries(axis: PartAxis, row: Ints, a: int, size: int) -> Ints:
    slot, base = row[a * len(PER_AXIS)], row[a * len(PER_AXIS) + 1]
    found = axis.outer_order.positions(slot + np.arange(size), base)
    end = axis.last + 1 if axis.class_slots is None else min(axis.last + 1, int(base) + axis.class_slots)
    return found[(found >= axis.first) & (found < end)]


def _has_layout(part: Part) -> bool:
    return any(order.period > 1 for axis in part.axes for order in (axis.outer_order, axis.inner_order))


def _own_order(drawn: DrawnPlan, place: int, masks: list[NDArray[np.bool_]], boxes: list[Tile]) -> Panel:
    """The part alone, its positions in the order the plan takes them."""
    axis = drawn.plan.parts[place].axes[0]
    rows, row_ends = _in_order(axis.outer_order, axis.outer_bases, axis.outer_size)
    cols, col_ends = _in_order(axis.inner_order, axis.inner_bases, axis.inner_size)
    at_row, at_col = _places(rows, axis.outer_size), _places(cols, axis.inner_size)
    moved = [
        Tile(place, at_row[tile.rows], at_col[tile.cols])
        for tile in boxes
        if tile.rows.size and tile.cols.size
    ]
    mine = [mask[np.ix_(rows, cols)] for mask in masks]
    sides = (_ordered_side("query", rows, row_ends), _ordered_side("key", cols, col_ends))
    title = f"part {place + 1} in its own order" if len(masks) > 1 else "in its own order"
    return overlay.squares(mine, moved, *sides, title)


def _in_order(order: Order, bases: Ints, size: int) -> tuple[Ints, list[int]]:
    """All positions of an axis class by class, and where classes end."""
    found: list[Ints] = []
    for base in bases.tolist():
        slots = np.arange(int(order.below(0, base)), int(order.below(size, base)))
        found.append(order.positions(slots, base))
    return np.concatenate(found), np.cumsum([len(some) for some in found])[:-1].tolist()


def _places(order: Ints, size: int) -> Ints:
    """Where each position is in an order that may leave some out."""
    found = np.zeros(size, np.int64)
    found[order] = np.arange(len(order))
    return found


def _ordered_side(label: str, positions: Ints, ends: list[int]) -> Side:
    starts = [0, *ends] if ends else list(range(len(positions)))
    some = starts[:: max(1, -(-len(starts) // 8))]
    ticks = tuple((place + 0.5, str(positions[place])) for place in some)
    return Side(label, len(positions), ticks, tuple(float(end) for end in ends))


# Images


def _image(drawn: DrawnPlan, heading: str, lines: list[str]) -> Picture:
    """For each part, the tile in the middle and the keys it reads."""
    panels: list[Panel] = []
    caption: list[str] = []
    for place in range(min(len(drawn.plan.parts), MOST_PANELS)):
        tile, sentence = _one_tile(drawn, place)
        panels += tile
        caption.append(sentence)
    if len(drawn.plan.parts) > MOST_PANELS:
        caption.append(f"parts 1 to {MOST_PANELS} of {len(drawn.plan.parts)} are drawn")
    if drawn.rule.has_heads:
        caption.append(f"head 0 of {drawn.rule.values['heads']:,} is drawn")
    return overlay.picture(heading, lines, panels, caption)


def _one_tile(drawn: DrawnPlan, place: int) -> tuple[list[Panel], str]:
    part, cut, parts = drawn.plan.parts[place], drawn.cuts[place], len(drawn.plan.parts)
    table, _ = table_of(drawn.kernel, drawn.call, part, tiles(part, cut.rows))
    row = _middle(part, table[0, 0].astype(np.int64), cut)
    name = f"part {place + 1}: " if parts > 1 else ""
    if row is None:
        return [], f"{name}no tile has keys"
    queries = [_queries(axis, row, a, cut.rows[a]) for a, axis in enumerate(part.axes)]
    width = len(PER_AXIS)
    boxed = (row[a * width : (a + 1) * width] for a in range(len(part.axes)))
    keys = [
        axis.inner_order.positions(np.arange(begin, end), base)
        for axis, (_, _, base, begin, end) in zip(part.axes, boxed, strict=True)
    ]
    counts = _counts(part, drawn, queries, keys)
    depth = int(queries[0][len(queries[0]) // 2]) if len(keys) == 3 else None
    if depth is not None:  # the slice of the middle query
        inside = np.flatnonzero(keys[0] == depth)
        counts = counts[inside[0]] if len(inside) else np.zeros(counts.shape[1:], np.int64)
    window = [
        _window(axis, *both) for axis, *both in zip(part.axes[-2:], queries[-2:], keys[-2:], strict=True)
    ]
    shares, query = np.full([len(along) for along in window], -1.0), np.zeros([len(x) for x in window], bool)
    inside = np.ix_(*(np.isin(inner, along) for along, inner in zip(window, keys[-2:], strict=True)))
    shares[_within(window, keys)] = counts[inside] / prod(len(outer) for outer in queries)
    query[_within(window, queries)] = True
    boxes = [
        Tile(place, *(along.ravel() for along in _within(window, both)))
        for both in _boxes(part, cut, table[0, 0].astype(np.int64), row, window)
    ]
    sides = [cell_side(what, len(x), x.start) for what, x in zip(("row", "column"), window, strict=True)]
    panel = overlay.keys(
        place, parts, shares, query, sides[0], sides[1], boxes, f"part {place + 1}" if parts > 1 else ""
    )
    sliced = f", in the slice z = {depth}" if depth is not None else ""
    box = format_box([len(outer) for outer in queries])
    sentence = (
        f"{name}a tile of {box} queries reads {format_box([len(inner) for inner in keys])} keys{sliced}"
    )
    return [panel], sentence


def _boxes(part: Part, cut: PartCut, table: Ints, row: Ints, window: list[range]) -> Iterator[list[Ints]]:
    """The queries of the tiles that can be seen, where positions are in order."""
    if any(axis.outer_order.period > 1 for axis in part.axes) or min(cut.rows[-2:]) < THICK:
        return
    ends = _ends(part, cut, table)
    seen = table[:, 0] == row[0] if len(part.axes) == 3 else np.ones(len(table), bool)
    for (first, last), along in zip(ends[-2:], window, strict=True):
        seen &= (last >= along.start) & (first < along.stop)
    for other in table[seen]:
        yield [_queries(axis, other, a, cut.rows[a]) for a, axis in enumerate(part.axes)]


def _middle(part: Part, table: Ints, cut: PartCut) -> Ints | None:
    """The row of the table whose queries are nearest to the middle."""
    width = len(PER_AXIS)
    for a in range(len(part.axes)):
        table = table[table[:, a * width + 4] > table[:, a * width + 3]]
    if not len(table):
        return None
    far = np.zeros(len(table))
    for axis, (first, last) in zip(part.axes, _ends(part, cut, table), strict=True):
        far += abs((first + last + 1) / 2 - axis.outer_size / 2)
    return table[int(far.argmin())]


def _ends(part: Part, cut: PartCut, table: Ints) -> list[tuple[Ints, Ints]]:
    """The first and the last query of each tile, along each axis."""
    found: list[tuple[Ints, Ints]] = []
    for a, axis in enumerate(part.axes):
        slot, base = table[:, a * len(PER_AXIS)], table[:, a * len(PER_AXIS) + 1]
        first, last = (axis.outer_order.positions(s, base) for s in (slot, slot + cut.rows[a] - 1))
        found.append((first, np.minimum(last, axis.last)))
    return found


def _counts(part: Part, drawn: DrawnPlan, queries: list[Ints], keys: list[Ints]) -> Ints:
    """For each key that the tile reads, how many of its queries attend to it."""
    grid = np.ix_(*queries, *keys)
    names = [axis.outer for axis in part.axes] + [axis.inner for axis in part.axes]
    places = {**part.numbers, **dict(zip(names, grid, strict=True)), "head": 0}
    held = np.asarray(evaluate(expr.all_of(*part.branch), places, drawn.data), bool)
    sizes = [len(along) for along in (*queries, *keys)]
    return np.broadcast_to(held, sizes).sum(axis=tuple(range(len(queries))))


def _window(axis: PartAxis, queries: Ints, keys: Ints) -> range:
    """The rows or columns to draw: all, or those around the tile and its keys."""
    size = axis.inner_size
    if size <= ALONE:
        return range(size)
    low, high = min(queries.min(), keys.min()), max(queries.max(), keys.max())
    first, end = max(0, int(low) - AROUND), min(size, int(high) + 1 + AROUND)
    if end - first > LARGEST:
        middle = int(queries.mean())
        first = max(0, min(middle - LARGEST // 2, size - LARGEST))
        end = min(size, first + LARGEST)
    return range(first, end)


def _within(window: list[range], positions: list[Ints]) -> tuple[Ints, ...]:
    """Where these rows and columns are in what is drawn, as an index; those outside are left out."""
    return np.ix_(
        *(
            at[(at >= along.start) & (at < along.stop)] - along.start
            for along, at in zip(window, positions[-2:], strict=True)
        )
    )
