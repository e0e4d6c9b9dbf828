"""Tile tables that depend on data, made on the device from arrays that never leave it.

One program makes one row of the table (see plans/tiles.py). Entries that must be equal are looked for by
zones, ZONE inner positions each, of which the least and the greatest entry are known: a tile begins in the
first zone that may have an entry of its rows, and ends in the last. Where entries ascend that is where its
documents begin and end, and each row can be told where its own does; elsewhere it may be more, and the kernel
asks each pair. Attended blocks are counted,
and listed behind the table, each tile with a list of its own. tables.py makes them by torch, from a sorted
copy. The header (geometry.py) goes on with what the kernel needs:

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
from lattend.attend.kernels.triton.launch_replay import launch
from lattend.attend.kernels.triton.source import Generated
from lattend.attend.kernels.triton.tables import elements
from lattend.attend.replay.recorder import Recorder
from lattend.plans.part import Part
from lattend.plans.tables.adjacency import in_order

CHUNK = 256  # columns of a table of blocks, or zones, that are looked at at once
LEAST_ORDERED = 64  # tiles: fewer run all at once
ZONE = 64  # positions
ZONES = 16  # of one program
ZONE_NUMBERS = 3  # the least entry, the greatest; 1 if there is no other, and 2 if entries ascend
LARGEST: tl.constexpr = tl.constexpr((1 << 63) - 1)


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
    recorder: Recorder, part: Part, sent: Tensor, rows: int, functions: Generated, header: Tensor,
    arrays: Mapping[str, Tensor], wide: bool, row_bounds: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The table [batch or 1, heads, tiles, columns] cut to what the data leave, with its lists behind it.

    `sent` is the plan's own, [1, heads, tiles, columns], for tiles of so many rows. `row_bounds`, as
    room_for_row_bounds makes it, is filled.
    """
    blocks, (_, heads, tiles, columns) = part.block_table, sent.shape
    shape = (elements(part, arrays), heads, tiles, columns + (blocks is not None))
    programs = shape[0] * heads * tiles
    if blocks is None:
        table = recorder.empty(shape, torch.int32, sent.device)
    else:
        room = recorder.empty((programs * (shape[-1] + part.blocks[2]),), torch.int32, sent.device)
        table = recorder.do(partial(_beginning, shape), room)
    if not programs:
        return table
    unused = (header,)
    zones = [recorder.once(zones_of, arrays[same.inner.array]) for same in part.same]
    arguments = (
        sent, table, header, tuple(arrays[name] for name in functions.arrays) or unused,
        tuple(arrays[same.outer.array] for same in part.same) or unused,
        tuple(arrays[same.inner.array] for same in part.same) or unused, tuple(zones) or unused,
        header if blocks is None else arrays[blocks.array], header if row_bounds is None else row_bounds,
        heads, tiles,
    )  # fmt: skip
    constants = {
        "BOUNDS": functions.bounds,
        "CUT": bool(part.cut_by),
        "SAMES": len(part.same),
        "OP": None if blocks is None else blocks.op,
        "ROW_BOUNDS": row_bounds is not None,
        "ROWS": rows,
        "PADDED": 1 << (rows - 1).bit_length(),
        "ZONE": ZONE,
        "CHUNK": CHUNK,
        "EXTRA": NUMBERS + len(functions.numbers),
        "WIDE": wide,
    }
    launch(recorder, tile_table_kernel, programs, arguments, constants)
    return table if blocks is not None or programs < LEAST_ORDERED else _heavy_first(recorder, table)


def room_for_row_bounds(recorder: Recorder, part: Part, arrays: Mapping[str, Tensor]) -> Tensor | None:
    """Where each row's first and last inner position go, [batch or 1, 2, rows], if equal entries bound them.

    That is so where one array is looked up at both positions, and its entries ascend: else each first one
    becomes -1, and pairs are to be asked.
    """
    one = len(part.same) == 1 and part.same[0].outer.array == part.same[0].inner.array
    if not one or not part.knows_full or part.block_table is not None or not in_order(part):
        return None
    entries = arrays[part.same[0].outer.array]
    shape = (elements(part, arrays), 2, part.axes[0].outer_size)
    return recorder.empty(shape, torch.int32, entries.device)


def _heavy_first(recorder: Recorder, table: Tensor) -> Tensor:
    """The table, of which the plan's order is that of the rule without its data, in order again."""
    batch, heads, tiles, _ = table.shape
    found = recorder.empty(table.shape, table.dtype, table.device)
    arguments, constants = (table, found, tiles), {"CHUNK": CHUNK}
    launch(recorder, heavy_first_kernel, batch * heads * tiles, arguments, constants)
    return found


def _next_element(x: Tensor) -> int:
    return x.stride(0) if len(x) > 1 else 0


def zones_of(recorder: Recorder, entries: Tensor) -> Tensor:
    """Of entries [batch or 1, size], the numbers of their zones: [batch or 1, zones, ZONE_NUMBERS]."""
    batch, size = entries.shape
    count = -(-size // ZONE)
    zones = recorder.empty((batch, count, ZONE_NUMBERS), torch.int64, entries.device)
    groups = -(-count // ZONES)
    if batch * groups:
        arguments = (entries, zones, _next_element(entries), size, groups)
        launch(recorder, zones_kernel, batch * groups, arguments, {"ZONES": ZONES, "ZONE": ZONE})
    return zones


def _beginning(shape: tuple[int, ...], room: Tensor) -> Tensor:
    return room[: shape[0] * shape[1] * shape[2] * shape[3]].view(shape)


@triton.jit(do_not_specialize=["size", "groups"])
def zones_kernel(Entries, Found, next_element, size, groups, ZONES: tl.constexpr, ZONE: tl.constexpr):
    """The numbers of ZONES zones."""
    program = tl.program_id(0)
    batch = (program // groups).to(tl.int64)
    zone = (program % groups) * ZONES + tl.arange(0, ZONES)
    at = zone[:, None] * ZONE + tl.arange(0, ZONE)[None, :]  # [ZONES, ZONE]
    there = at < size
    entry = tl.load(Entries + batch * next_element + at, mask=there, other=0).to(tl.int64)
    least = tl.min(tl.where(there, entry, LARGEST), 1)
    greatest = tl.max(tl.where(there, entry, -LARGEST - 1), 1)
    other = there & (entry != least[:, None]) & (entry != greatest[:, None])
    before = tl.load(Entries + batch * next_element + at - 1, mask=there & (at > 0), other=-LARGEST - 1)
    falls = there & (entry < before.to(tl.int64))
    count = tl.cdiv(size, ZONE)
    Found += 3 * (batch * count + zone)
    tl.store(Found, least, mask=zone < count)
    tl.store(Found + 1, greatest, mask=zone < count)
    flags = (tl.max(other.to(tl.int32), 1) == 0).to(tl.int64) + 2 * (tl.max(falls.to(tl.int32), 1) == 0)
    tl.store(Found + 2, flags, mask=zone < count)


@triton.jit
def zone_at(Zones, zone, count):
    """The least and the greatest entry of zones, and their flags; none past the last."""
    there = (zone >= 0) & (zone < count)
    least = tl.load(Zones + 3 * zone, mask=there, other=LARGEST)
    greatest = tl.load(Zones + 3 * zone + 1, mask=there, other=-LARGEST - 1)
    return least, greatest, tl.load(Zones + 3 * zone + 2, mask=there, other=3)


@triton.jit
def entries_of_zone(Entries, zone, low, high, size, ZONE: tl.constexpr):
    """The positions of a zone, and which of its entries lie from low to high."""
    at = zone * ZONE + tl.arange(0, ZONE)
    there = (at >= 0) & (at < size)
    entry = tl.load(Entries + at, mask=there, other=0).to(tl.int64)
    return at, there & (entry >= low) & (entry <= high)


@triton.jit
def range_of(Entries, Zones, low, high, size, ZONE: tl.constexpr, CHUNK: tl.constexpr):
    """The first and the last position that may have an entry from low to high, whether all between do, and
    whether entries ascend everywhere.
    """
    count = tl.cdiv(size, ZONE)
    first, last, filled, ascends = count, count * 0 - 1, count * 0, count >= 0
    for begin in range(0, count, CHUNK):
        zone = begin + tl.arange(0, CHUNK)
        least, greatest, flags = zone_at(Zones, zone, count)
        ascends &= any_of(flags < 2) == 0
        some, most = (least >= low) & (least <= high), (greatest >= low) & (greatest <= high)
        between = (flags % 2 == 0) & (least < low) & (greatest > high)
        may = (some | most | between) & (zone < count)
        first = tl.minimum(first, tl.min(tl.where(may, zone, count), 0))
        last = tl.maximum(last, tl.max(tl.where(may, zone, -1), 0))
        filled += tl.sum((may & some & most).to(tl.int32), 0)
    at, equal = entries_of_zone(Entries, first, low, high, size, ZONE)
    end_at, end_equal = entries_of_zone(Entries, last, low, high, size, ZONE)
    begin = tl.min(tl.where(equal, at, (first + 1) * ZONE), 0)
    end = tl.max(tl.where(end_equal, end_at, last * ZONE - 1), 0)
    holes = any_of((at >= begin) & (at <= end) & (equal == 0))
    holes |= any_of((end_at >= begin) & (end_at <= end) & (end_equal == 0))
    # zones between the first and the last: those that are filled, less these two where they are
    inner = filled - (any_of((at < size) & (equal == 0)) == 0).to(tl.int32)
    inner -= ((any_of((end_at < size) & (end_equal == 0)) == 0) & (last > first)).to(tl.int32)
    holes |= (last > first) & (inner != last - first - 1)
    none = first > last
    return tl.where(none, size, begin), tl.where(none, -1, end), holes | none, ascends & (none == 0)


@triton.jit
def any_of(x):
    """Whether one of them holds."""
    return tl.max(x.to(tl.int32), 0) > 0


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
def range_of_rows(
    rows, inside, batch, Header, Outer, Inner, Zones,
    SAME: tl.constexpr, EXTRA: tl.constexpr, ROW_BOUNDS: tl.constexpr,
    ZONE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The first and the last inner position with an entry like one of these rows', whether all between have
    that of every row, and the first and the last of each row; -1 where its pairs are to be asked.
    """
    numbers = Header + EXTRA + 3 * SAME
    size = tl.load(numbers + 2).to(tl.int32)
    wanted = tl.load(Outer[SAME] + batch * tl.load(numbers) + rows, mask=inside, other=0).to(tl.int64)
    low = tl.min(tl.where(inside, wanted, LARGEST), 0)
    high = tl.max(tl.where(inside, wanted, -LARGEST - 1), 0)
    apart = batch * tl.load(numbers + 1)
    zones = tl.where(apart > 0, batch, 0) * tl.cdiv(size, ZONE)
    first, last, holes, ascends = range_of(
        Inner[SAME] + apart, Zones[SAME] + 3 * zones, low, high, size, ZONE, CHUNK
    )
    own_first, own_last = rows, rows
    if ROW_BOUNDS:  # one array: a document that begins among these rows does so where its entry is new
        entries = Inner[SAME] + apart
        before = tl.load(entries + rows - 1, mask=inside & (rows > 0), other=0).to(tl.int64)
        after = tl.load(entries + rows + 1, mask=inside & (rows + 1 < size), other=0).to(tl.int64)
        begins = tl.where(wanted == low, first, tl.where(wanted == before, -1, rows))
        ends = tl.where(wanted == high, last, tl.where(wanted == after, size, rows))
        own_first = tl.associative_scan(tl.where(inside, begins, -1), 0, greater)
        own_first = tl.where(ascends, own_first, -1)
        own_last = tl.associative_scan(tl.where(inside, ends, size), 0, lesser, reverse=True)
    return first, last, (holes == 0) & (low == high), own_first, own_last


@triton.jit
def greater(a, b):
    """For a scan."""
    return tl.maximum(a, b)


@triton.jit
def lesser(a, b):
    """For a scan."""
    return tl.minimum(a, b)


@triton.jit(do_not_specialize=["heads", "tiles"])
def tile_table_kernel(
    Sent, Table, Header, Data, Outer, Inner, Zones, Blocks, RowBounds, heads, tiles,
    BOUNDS: tl.constexpr, CUT: tl.constexpr, SAMES: tl.constexpr, OP: tl.constexpr,
    ROW_BOUNDS: tl.constexpr, ROWS: tl.constexpr, PADDED: tl.constexpr, ZONE: tl.constexpr,
    CHUNK: tl.constexpr, EXTRA: tl.constexpr, WIDE: tl.constexpr,
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
        rows, _, _, _, inside = outer_rows(Header, sent, PADDED, 1, 1, PADDED, (0,), WIDE)
        inside &= tl.arange(0, PADDED) < ROWS
        size = tl.load(Header + 5)
        low, high, _ = BOUNDS(rows, rows, rows, head, batch, Header, Data, WIDE)
        low, high = within(low.to(tl.int64), 0, size), within(high.to(tl.int64), -1, size - 1)
        some = inside & (low <= high)
        first, last = tl.min(tl.where(some, low, size), 0), tl.max(tl.where(some, high, -1), 0)
        full_first, full_last = (
            tl.max(tl.where(inside, low, 0), 0),
            tl.min(tl.where(inside, high, size - 1), 0),
        )
        for SAME in tl.static_range(0, SAMES):
            same_first, same_last, whole, own_first, own_last = range_of_rows(
                rows, inside, batch, Header, Outer, Inner, Zones, SAME, EXTRA, ROW_BOUNDS, ZONE, CHUNK
            )
            if ROW_BOUNDS:
                ends = RowBounds + batch * 2 * tl.load(Header + 4) + rows
                tl.store(ends, own_first.to(tl.int32), mask=inside)
                tl.store(ends + tl.load(Header + 4), own_last.to(tl.int32), mask=inside)
            first, last = tl.maximum(first, same_first), tl.minimum(last, same_last)
            full_first = tl.maximum(full_first, same_first)
            full_last = tl.where(whole, tl.minimum(full_last, same_last), -1)
        begin = tl.maximum(begin, first - base)
        end = tl.maximum(begin, tl.minimum(end, last + 1 - base))
        full_begin = within(tl.maximum(full_begin, full_first - base), begin, end)
        full_end = within(tl.minimum(full_end, full_last + 1 - base), full_begin, end)

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


@triton.jit(do_not_specialize=["tiles"])
def heavy_first_kernel(Table, Found, tiles, CHUNK: tl.constexpr):
    """Puts one tile behind those with more inner slots; of equal ones the first stays first."""
    program = tl.program_id(0)
    tile, first = program % tiles, (program // tiles * tiles).to(tl.int64)
    entry = Table + (first + tile) * 7
    mine, before = tl.load(entry + 4) - tl.load(entry + 3), tile * 0
    for begin in range(0, tiles, CHUNK):
        other = begin + tl.arange(0, CHUNK)
        there = other < tiles
        place = Table + (first + other) * 7
        slots = tl.load(place + 4, mask=there, other=0) - tl.load(place + 3, mask=there, other=0)
        ahead = there & ((slots > mine) | ((slots == mine) & (other < tile)))
        before += tl.sum(ahead.to(tl.int32), 0)
    for column in tl.static_range(7):
        tl.store(Found + (first + before) * 7 + column, tl.load(entry + column))
