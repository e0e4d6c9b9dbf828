"""Tile tables that depend on data, made on the device by one kernel from arrays that never leave it.

One program makes one row of the table (see plans/tiles.py). Entries that must be equal are found in a sorted
copy of the inner ones; attended blocks are counted, and listed behind the table, each tile with a list of its
own. tables.py makes the same by torch. The header (geometry.py) goes on with what the kernel needs:

    3 for each pair of entries       what to go on for the next batch element, outside and inside; inner size
    7 for a table of blocks          outer block, columns, value; what to go on for the next batch element,
                                     head, row, column
"""

# Triton has no stubs, and its values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
import triton
import triton.language as tl
from torch import Tensor

from lattend.attend.kernels.triton.geometry import NUMBERS, outer_rows
from lattend.attend.kernels.triton.launched import launch
from lattend.attend.kernels.triton.source import Generated
from lattend.attend.kernels.triton.tables import elements, in_order
from lattend.attend.tape import Tape
from lattend.plans.part import Part

CHUNK = 256  # columns of a table of blocks that are counted at once


def table_numbers(part: Part, arrays: Mapping[str, Tensor]) -> list[int]:
    """The numbers of the header that the table is made with."""
    found: list[int] = []
    for same in part.same:
        outer, inner = arrays[same.outer.array], arrays[same.inner.array]
        found += [_next_element(outer), _next_element(inner), inner.shape[1]]
    blocks = part.block_table
    if blocks is not None:
        entries = arrays[blocks.array]
        blocks.check(entries.shape, part.blocks)
        row, column = entries.stride()[:-3:-1] if blocks.across else entries.stride()[-2:]
        head = entries.stride(-3) if blocks.by_head else 0
        found += [blocks.outer, part.blocks[2], blocks.value, _next_element(entries), head, row, column]
    return found


def depends_on_data(part: Part) -> bool:
    """Whether data leave less to its tiles than the plan knows of."""
    return part.block_table is not None or bool(part.cut_by and in_order(part))


def device_table(
    tape: Tape, part: Part, sent: Tensor, rows: int, functions: Generated, header: Tensor,
    arrays: Mapping[str, Tensor], wide: bool,
) -> Tensor:  # fmt: skip
    """The table [batch or 1, heads, tiles, columns] cut to what the data leave, with its lists behind it.

    `sent` is the plan's own, [1, heads, tiles, columns], for tiles of so many rows.
    """
    blocks, (_, heads, tiles, columns) = part.block_table, sent.shape
    shape = (elements(part, arrays), heads, tiles, columns + (blocks is not None))
    programs = shape[0] * heads * tiles
    if blocks is None:
        table = tape.empty(shape, torch.int32, sent.device)
    else:
        room = tape.empty((programs * (shape[-1] + part.blocks[2]),), torch.int32, sent.device)
        table = tape.do(partial(_beginning, shape), room)
    if not programs:
        return table
    unused = (header,)
    ordered = [tape.once(_ordered, arrays[same.inner.array]) for same in part.same]
    arguments = (
        sent, table, header, tuple(arrays[name] for name in functions.arrays) or unused,
        tuple(arrays[same.outer.array] for same in part.same) or unused,
        tuple(entries for entries, _ in ordered) or unused, tuple(where for _, where in ordered) or unused,
        header if blocks is None else arrays[blocks.array], heads, tiles,
    )  # fmt: skip
    constants = {
        "BOUNDS": functions.bounds,
        "CUT": bool(part.cut_by),
        "SAMES": len(part.same),
        "OP": None if blocks is None else blocks.op,
        "ROWS": rows,
        "CHUNK": CHUNK,
        "EXTRA": NUMBERS + len(functions.numbers),
        "WIDE": wide,
    }
    launch(tape, tile_table_kernel, programs, arguments, constants)
    return table


def _next_element(x: Tensor) -> int:
    return x.stride(0) if len(x) > 1 else 0


def _ordered(entries: Tensor) -> tuple[Tensor, ...]:
    """The entries [batch or 1, size] in ascending order, and where each lies."""
    return tuple(entries.sort(dim=-1, stable=True))


def _beginning(shape: tuple[int, ...], room: Tensor) -> Tensor:
    return room[: shape[0] * shape[1] * shape[2] * shape[3]].view(shape)


@triton.jit
def number_below(Ordered, size, wanted, OR_EQUAL: tl.constexpr):
    """How many of the ordered entries lie below each wanted one; OR_EQUAL counts those equal to it too."""
    low = tl.zeros_like(wanted)
    high = low + size
    left = size + 0
    while left > 0:  # halves what lies between low and high
        middle = low + (high - low) // 2
        there = low < high
        found = tl.load(Ordered + middle, mask=there, other=0).to(tl.int64)
        before = there & ((found < wanted) | (OR_EQUAL & (found == wanted)))
        high = tl.where(there & (before == 0), middle, high)
        low = tl.where(before, middle + 1, low)
        left = left // 2
    return low


@triton.jit
def compared(entry, value, OP: tl.constexpr):
    """Whether an entry of a table of blocks says that the block is attended."""
    if OP == "==":  # noqa: SIM116  (Triton has no dictionaries)
        return entry == value
    elif OP == "!=":
        return entry != value
    elif OP == "<":
        return entry < value
    elif OP == "<=":
        return entry <= value
    elif OP == ">":
        return entry > value
    else:
        return entry >= value


@triton.jit
def within(position, low, high):
    """The position, or the end that it lies beyond."""
    return tl.minimum(tl.maximum(position, low), high)


@triton.jit
def row_ranges(
    rows, inside, head, batch, Header, Data, Outer, Ordered, Where,
    BOUNDS: tl.constexpr, SAMES: tl.constexpr, EXTRA: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The first and last inner position of each row, and whether equal entries leave out some between."""
    size = tl.load(Header + 5)
    low, high = BOUNDS(rows, rows, rows, head, batch, Header, Data, WIDE)
    low, high = within(low.to(tl.int64), 0, size), within(high.to(tl.int64), -1, size - 1)
    gaps = low < 0  # none yet
    for SAME in tl.static_range(0, SAMES):
        numbers = Header + EXTRA + 3 * SAME
        entries = tl.load(numbers + 2)
        wanted = tl.load(Outer[SAME] + batch * tl.load(numbers) + rows, mask=inside, other=0).to(tl.int64)
        apart = batch * tl.load(numbers + 1)
        begin = number_below(Ordered[SAME] + apart, entries, wanted, False)
        end = number_below(Ordered[SAME] + apart, entries, wanted, True)
        there = begin < end
        first = tl.load(Where[SAME] + apart + begin, mask=there, other=0)
        last = tl.load(Where[SAME] + apart + end - 1, mask=there, other=0)
        gaps |= (there == 0) | (last - first != end - begin - 1)
        low = tl.maximum(low, tl.where(there, first, size))
        high = tl.minimum(high, tl.where(there, last, -1))
    return low, high, gaps


@triton.jit(do_not_specialize=["heads", "tiles"])
def tile_table_kernel(
    Sent, Table, Header, Data, Outer, Ordered, Where, Blocks, heads, tiles,
    BOUNDS: tl.constexpr, CUT: tl.constexpr, SAMES: tl.constexpr, OP: tl.constexpr,
    ROWS: tl.constexpr, CHUNK: tl.constexpr, EXTRA: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One row of the table: the plan's, CUT to its rows' ranges, in slots of listed blocks if OP is given."""
    program = tl.program_id(0)
    tile, pair = program % tiles, program // tiles
    batch, head = (pair // heads).to(tl.int64), pair % heads
    WIDTH: tl.constexpr = 7 if OP is None else 8  # pyright: ignore[reportAssignmentType]
    sent = Sent + (head * tiles + tile).to(tl.int64) * 7
    entry = Table + program.to(tl.int64) * WIDTH
    base = tl.load(sent + 2)
    begin, end = tl.load(sent + 3).to(tl.int64), tl.load(sent + 4).to(tl.int64)
    full_begin, full_end = tl.load(sent + 5).to(tl.int64), tl.load(sent + 6).to(tl.int64)

    if CUT:
        rows, _, _, _, inside = outer_rows(Header, sent, ROWS, 1, 1, ROWS, (0,), WIDE)
        low, high, gaps = row_ranges(
            rows, inside, head, batch, Header, Data, Outer, Ordered, Where, BOUNDS, SAMES, EXTRA, WIDE
        )
        some, size = inside & (low <= high), tl.load(Header + 5)
        begin = tl.maximum(begin, tl.min(tl.where(some, low, size), 0) - base)
        end = tl.maximum(begin, tl.minimum(end, tl.max(tl.where(some, high, -1), 0) + 1 - base))
        full_begin = tl.maximum(full_begin, tl.max(tl.where(inside, low, 0), 0) - base)
        full_end = tl.minimum(full_end, tl.min(tl.where(inside, high, size - 1), 0) + 1 - base)
        full_end = tl.where(tl.max((inside & gaps).to(tl.int32), 0) > 0, full_begin, full_end)
        full_begin = within(full_begin, begin, end)
        full_end = within(full_end, full_begin, end)

    if OP is not None:
        numbers = Header + EXTRA + 3 * SAMES
        group, columns, value = tl.load(Header + 3), tl.load(numbers + 1), tl.load(numbers + 2)
        apart = (tl.num_programs(0) - program).to(tl.int64) * WIDTH + program * columns
        row = tl.load(sent + 1) // tl.load(numbers)
        blocks = (
            Blocks + batch * tl.load(numbers + 3) + head * tl.load(numbers + 4) + row * tl.load(numbers + 5)
        )
        first, last = begin // group, tl.where(end > begin, (end + group - 1) // group, begin // group)
        count, slots = first * 0, first * 0
        full_first, full_last = first * 0, first * 0
        for column in range(first, last, CHUNK):
            block = column + tl.arange(0, CHUNK)
            found = tl.load(blocks + block * tl.load(numbers + 6), mask=block < last, other=0)
            attended = compared(found.to(tl.int64), value, OP) & (block < last)
            place = tl.cumsum(attended.to(tl.int32), 0)
            tl.store(entry + apart + count + place - 1, block.to(tl.int32), mask=attended)
            count += tl.sum(attended.to(tl.int32), 0)
            position = block * group
            slots += tl.sum(tl.where(attended, within(end - position, 0, group), 0), 0)
            full_first += tl.sum(tl.where(attended, within(full_begin - position, 0, group), 0), 0)
            full_last += tl.sum(tl.where(attended, within(full_end - position, 0, group), 0), 0)
        base, begin, end = (apart & 0x7FFFFFFF).to(tl.int32), first * 0, slots
        full_begin, full_end = full_first, tl.maximum(full_first, full_last)
        tl.store(entry + 5, (apart >> 31).to(tl.int32))

    tl.store(entry, tl.load(sent))
    tl.store(entry + 1, tl.load(sent + 1))
    tl.store(entry + 2, base)
    tl.store(entry + 3, begin.to(tl.int32))
    tl.store(entry + 4, end.to(tl.int32))
    tl.store(entry + WIDTH - 2, full_begin.to(tl.int32))
    tl.store(entry + WIDTH - 1, full_end.to(tl.int32))
