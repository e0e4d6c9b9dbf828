"""What the kernels for Hopper share: which tiles a program takes, where their rows lie, who is attended.

A tile is 128 rows, 64 for each of two groups of warps that compute; a step is so many of its columns. In the
forward pass and for gradients of queries the rows are queries and the columns keys, else the other way round.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from lattend.attend.kernels.triton.geometry import floor_divide
from lattend.attend.kernels.triton.shapes import padded
from lattend.plans.order import Order

GROUPS: gl.constexpr = gl.constexpr(2)  # of four warps that compute
TILES: gl.constexpr = gl.constexpr(2)  # whose rows are in shared memory
ROWS: gl.constexpr = gl.constexpr(64)  # of a group
REGISTERS: gl.constexpr = gl.constexpr(240)  # of a thread that computes; of one that loads LOADER
LOADER: gl.constexpr = gl.constexpr(24)
OPTIONS = {"num_warps": 4, "maxnreg": 168}  # three groups of four warps, loader's included, at the beginning
ELEMENTS = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}
# A number, or another where its column's bit is not set
_WHERE_SET = (
    "{ .reg .pred in; .reg .b32 bit; and.b32 bit, $2, $3; setp.ne.b32 in, bit, 0; selp.f32 $0, $1, %s, in; }"
)
# Bits from the first to before the end; a shift by 32 or more gives 0, which LLVM does not promise
BITS: gl.constexpr = gl.constexpr(
    "{ .reg .b32 first, end; max.s32 first, $1, 0; shl.b32 first, -1, first; "
    "max.s32 end, $2, 0; shl.b32 end, -1, end; not.b32 end, end; and.b32 $0, first, end; }"
)
OR_ZERO: gl.constexpr = gl.constexpr(_WHERE_SET % "0f00000000")
OR_LEAST: gl.constexpr = gl.constexpr(_WHERE_SET % "0fFF800000")  # -inf
NUMBERS: gl.constexpr = gl.constexpr(11)  # of a tile; some have MORE
OWN: gl.constexpr = gl.constexpr(4)  # which of them are the first of its columns, and how many
JOINED: gl.constexpr = gl.constexpr(11)  # the same of a part that joins; the next is its steps
LOG2E: gl.constexpr = gl.constexpr(1.4426950408889634)
LN2: gl.constexpr = gl.constexpr(0.6931471805599453)


@gluon.jit
def turns_of(works):
    """How many tiles this program takes."""
    return works // gl.num_programs(0) + (work_at(works // gl.num_programs(0)) < works).to(gl.int32)


@gluon.jit
def work_at(turn):
    """The tile of a turn: heavy ones come first, and who took the heaviest takes the lightest next."""
    program, programs = gl.program_id(0), gl.num_programs(0)
    return turn * programs + gl.where(turn % 2 == 0, program, programs - 1 - program)


# Orders (plans/order.py): 0 where positions follow each other, else how many do, of each period. Slots that
# are every period-th position, or a few of each period, are copied as boxes of a view [… periods, period …]


@gluon.jit
def position_of(slot, base, period, ORDER: gl.constexpr):
    """The position of a slot."""
    if ORDER == 0:
        return slot + base
    else:
        return slot // ORDER * period + slot % ORDER + base


@gluon.jit
def slots_below(position, base, period, ORDER: gl.constexpr):
    """How many slots lie below a position, of a class with this base."""
    gap = position - base
    if ORDER > 0:
        whole = floor_divide(gap, period)
        gap = whole * ORDER + gl.minimum(gap - whole * period, ORDER)
    return gap


@gluon.jit
def corner(batch, head, slot, base, ORDER: gl.constexpr):
    """Where TMA begins to copy rows from this slot on."""
    if ORDER == 0:
        return [batch, head, slot + base, 0]
    else:
        return [batch, head, slot // ORDER, base, 0]


@gluon.jit
def inner_base(tile):
    """The base of a tile's columns, where these have an order."""
    return tile[len(tile) - 3]


@gluon.jit
def tile_of(
    turn, Table, Header, numbers, STEP: gl.constexpr, HAS_FULL: gl.constexpr, ALIGNED: gl.constexpr = 1,
    MORE: gl.constexpr = 0, OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0,
):  # fmt: skip
    """The tile of a turn, as numbers: batch element and head; the first slot and base of its rows; the first
    of its columns, and how many; its steps, those with a mask, and the first full one; the first of its rows
    that can have columns, and the end of these; MORE numbers, as the table has them; and where rows or
    columns have an order, the base of its columns, and the periods of columns and rows. Columns with an order
    are slots.

    The same tile of all heads comes first, then the next. Its columns begin at a multiple of ALIGNED. The
    first step has a mask, if only for this: ptxas 12.8 prepares what both loops over steps share before the
    first of them, behind the branch that passes it by; with no step in it, products of the second would read
    anywhere.
    """
    heads, _, _, tiles, table_batch, table_head, works = numbers
    pairs = works // tiles
    tile, pair = work_at(turn) // pairs, work_at(turn) % pairs
    batch, head = pair // heads, pair % heads
    entry = Table + (batch * table_batch + head * table_head + tile).to(gl.int64) * (7 + MORE)
    slot, outer_base, base = gl.load(entry), gl.load(entry + 1), gl.load(entry + 2)
    begin, end = gl.load(entry + 3), gl.load(entry + 4)
    if INNER > 0:
        begin -= begin % (ALIGNED if ALIGNED > INNER else INNER)
    else:
        begin -= (base + begin) % ALIGNED
    steps = gl.maximum(gl.cdiv(end - begin, STEP), 1)  # without columns it is one of zeros: before the first
    full_first, full = steps, steps * 0
    if HAS_FULL:
        full_first = gl.minimum(gl.cdiv(gl.load(entry + 5) - begin, STEP), steps)
        full = gl.maximum((gl.load(entry + 6) - begin) // STEP - full_first, 0)
    first, masked = begin if INNER > 0 else base + begin, gl.maximum(steps - full, 1)
    first, period = gl.where(end > begin, first, -STEP), gl.load(Header)
    rows_first = gl.maximum(slots_below(gl.load(Header + 8), outer_base, period, OUTER) - slot, 0)
    rows_end = slots_below(gl.load(Header + 9) + 1, outer_base, period, OUTER)
    rows_end = gl.minimum(rows_end, gl.load(Header + 10)) - slot  # so many slots has a class
    rows_first = gl.minimum(rows_first, GROUPS * ROWS).to(gl.int32)
    rows_end = gl.maximum(gl.minimum(rows_end, GROUPS * ROWS), 0).to(gl.int32)
    found = batch, head, slot, outer_base, first, end - begin, steps, masked, full_first, rows_first, rows_end
    for place in gl.static_range(MORE):
        found = found + (gl.load(entry + 7 + place),)  # noqa: RUF005
    if OUTER + INNER > 0:
        found = found + (base, gl.load(Header + 2).to(gl.int32), period.to(gl.int32))  # noqa: RUF005
    return found


@gluon.jit
def tile_of_queries(
    turn, Table, Header, numbers,
    STEP: gl.constexpr, HAS_FULL: gl.constexpr, JOINS: gl.constexpr, OUTER: gl.constexpr, INNER: gl.constexpr,
):  # fmt: skip
    """The tile of queries of a turn; if a part JOINS, steps of its keys come before the others."""
    own = tile_of(turn, Table, Header, numbers, STEP, HAS_FULL, 1, 2 * (JOINS > 0), OUTER, INNER)
    if JOINS > 0:
        first, count = own[JOINED], own[JOINED + 1]
        if INNER > 0:
            count += first % INNER
            first -= first % INNER
        more = gl.maximum(gl.cdiv(count, STEP), 1)
        counts = (own[6] + more, own[7] + more, own[8] + more)
        own = own[:6] + counts + own[9:11] + (first, count, more) + own[13:]
    return own


@gluon.jit
def place_of(index, tile, STEP: gl.constexpr, JOINS: gl.constexpr = 0):
    """The first column of a tile's own step; if a part JOINS, its steps come before."""
    step = step_at(index, tile)
    if JOINS == 1:
        step -= 1
    elif JOINS > 1:
        step -= tile[JOINED + 2]
    return tile[OWN] + step * STEP


@gluon.jit
def first_column(index, tile, STEP: gl.constexpr, JOINS: gl.constexpr):
    """The first column of any step of a tile."""
    place = place_of(index, tile, STEP, JOINS)
    if JOINS > 0:
        place = gl.where(index < tile[JOINED + 2], tile[JOINED] + index * STEP, place)
    return place


@gluon.jit
def place_loaded(index, tile, share, STEP: gl.constexpr, JOINS: gl.constexpr, INNER: gl.constexpr):
    """The place of a step's keys: element, head, first slot and base."""
    at, base = first_column(index, tile, STEP, JOINS), 0
    if INNER > 0:
        base = inner_base(tile)
        if JOINS > 0:
            base = gl.where(index < tile[JOINED + 2], 0, base)
    return [tile[0], tile[1] // share, at, base]


@gluon.jit
def bounds_at(index, tile, joined, own, JOINS: gl.constexpr):
    """The bounds of rows in a step: those of the part that joins, if it has several and this is one."""
    if JOINS > 1:
        theirs = index < tile[JOINED + 2]
        low, high = gl.where(theirs, joined[1], own[1]), gl.where(theirs, joined[2], own[2])
        return own[0], low, high
    else:
        return own


@gluon.jit
def early_of(tile):
    """The index of the step with which the rows of the next tile are loaded: as soon as there is room."""
    return gl.minimum(tile[6] - 1, 2)


@gluon.jit
def note(noted, turn, tile):
    """Notes a tile's numbers in shared memory, for those who compute."""
    for place in gl.static_range(len(tile)):
        number = gl.full([1], tile[place], gl.int32, gl.BlockedLayout([1], [32], [1], [0]))
        noted.index(turn % TILES * len(tile) + place).store(number)


@gluon.jit
def tile_noted(noted, turn, MORE: gl.constexpr = 0):
    """The tile of a turn, as it was noted; what is not used of it is not read."""
    found = ()
    for place in gl.static_range(NUMBERS + MORE):
        number = noted.index(turn % TILES * (NUMBERS + MORE) + place)
        found = found + (gl.max(number.load(gl.BlockedLayout([1], [32], [4], [0])), 0),)  # noqa: RUF005
    return found


@gluon.jit
def step_at(index, tile):
    """The step of an index: those with a mask come first, then the full ones that lie between them."""
    steps, masked, full_first = tile[6], tile[7], tile[8]
    with_mask = gl.where(index < full_first, index, index + steps - masked)
    return gl.where(index < masked, with_mask, index - masked + full_first)


# Shared memory


@gluon.jit
def barriers_of(COUNT: gl.constexpr, ARRIVALS: gl.constexpr):
    """So many barriers, each passed when so many have arrived."""
    found = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for place in gl.static_range(COUNT):
        mbarrier.init(found.index(place), count=ARRIVALS)
    return found


@gluon.jit
def room(Block, COUNT: gl.constexpr):
    """Room for so many blocks."""
    return gl.allocate_shared_memory(Block.dtype, [COUNT] + Block.block_shape, Block.layout)  # noqa: RUF005


@gluon.jit
def notes(MORE: gl.constexpr = 0):
    """Room for the numbers of the tiles in shared memory."""
    layout: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    return gl.allocate_shared_memory(gl.int32, [TILES * (NUMBERS + MORE), 1], layout)


@gluon.jit
def arrived(ready, index, STAGES: gl.constexpr, pred=True):
    """Waits until the step's block is in shared memory."""
    mbarrier.wait(ready.index(index % STAGES), (index // STAGES) & 1, pred=pred)


@gluon.jit
def load_step(
    Block, buffer, ready, free, index, place,
    STAGES: gl.constexpr, MORE: gl.constexpr = 0, INNER: gl.constexpr = 0,
):  # fmt: skip
    """Copies the block of a step to shared memory once its place is free; MORE bytes will follow.

    A place is the element, the head, the first slot and the base.
    """
    stage = index % STAGES
    mbarrier.wait(free.index(stage), ((index // STAGES) & 1) ^ 1)
    mbarrier.expect(ready.index(stage), Block.block_type.nbytes + MORE)
    at = corner(place[0], place[1], place[2], place[3], INNER)
    tma.async_copy_global_to_shared(Block, at, ready.index(stage), buffer.index(stage))


@gluon.jit
def load_columns(
    Block, Joined, buffer, ready, free, index, step, tile, place,
    STAGES: gl.constexpr, JOINS: gl.constexpr, INNER: gl.constexpr,
):  # fmt: skip
    """Copies the keys or values of a tile's step; those of a part that joins lie one after another."""
    if JOINS > 0 and INNER > 0:
        if (step >= 0) & (step < tile[JOINED + 2]):
            load_step(Joined, buffer, ready, free, index, place, STAGES, 0, INNER)
        else:
            load_step(Block, buffer, ready, free, index, place, STAGES, 0, INNER)
    else:
        load_step(Block, buffer, ready, free, index, place, STAGES, 0, INNER)


@gluon.jit
def load_tile(matrices, buffers, noted, ready, free, turn, tile, OUTER: gl.constexpr = 0):
    """Copies the rows of a tile, of one matrix or of two alike, and notes its numbers."""
    held = turn % TILES
    mbarrier.wait(free.index(held), ((turn // TILES) & 1) ^ 1)
    note(noted, turn, tile)
    mbarrier.expect(ready.index(held), len(matrices) * GROUPS * matrices[0].block_type.nbytes)
    for group in gl.static_range(GROUPS):
        place = corner(tile[0], tile[1], tile[2] + group * ROWS, tile[3], OUTER)
        for one in gl.static_range(len(matrices)):
            to = buffers[one].index(held * GROUPS + group)
            tma.async_copy_global_to_shared(matrices[one], place, ready.index(held), to)


@gluon.jit
def give_back(free, turn, pred):
    """Frees the rows of a tile, once its results, which lie there, are written."""
    if pred:
        tma.store_wait(0)
        mbarrier.arrive(free.index(turn % TILES), count=1)


@gluon.jit
def product(rows, buffer, index, STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, S: gl.constexpr):
    """The product of a group's rows and a step's columns, begun."""
    columns = buffer.index(index % STAGES).reshape((STEP, DP)).permute((1, 0))
    nothing = gl.full([ROWS, STEP], 0.0, gl.float32, S)
    return warpgroup_mma(rows, columns, nothing, use_acc=False, is_async=True)


@gluon.jit
def weighed(weights, buffer, index, total, adds, STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr):
    """The sum of what a step's columns hold, by weights, begun; unless it `adds`, the total is begun anew."""
    columns = buffer.index(index % STAGES).reshape((STEP, DP))
    return warpgroup_mma(weights, columns, total, use_acc=adds, is_async=True)


# Rows, and who is attended


@gluon.jit
def rows_of(tile, GROUP: gl.constexpr, LAYOUT: gl.constexpr, OUTER: gl.constexpr = 0):
    """The positions of a group's rows, and which of them are the tile's."""
    row = GROUP * ROWS + gl.arange(0, ROWS, LAYOUT)
    if OUTER == 0:
        at = tile[2] + tile[3] + row
    else:
        at = position_of(tile[2] + row, tile[3], tile[len(tile) - 1], OUTER)
    return at, (row >= tile[9]) & (row < tile[10])


@gluon.jit
def whole(tile, GROUP: gl.constexpr):
    """Whether all of a group's rows are the tile's."""
    return (tile[9] <= GROUP * ROWS) & (tile[10] >= (GROUP + 1) * ROWS)


@gluon.jit
def bounds_of(
    tile, table_batch, rows, Header, Data, RowBounds,
    BOUNDS: gl.constexpr, ROW_BOUNDS: gl.constexpr, GROUP: gl.constexpr, LAYOUT: gl.constexpr,
    COLUMNS: gl.constexpr = OWN, OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0,
):  # fmt: skip
    """The positions of a group's rows and what is asked of their pairs: the bounds of each row's columns and
    its entries, whether more is to be asked, and of which head and element.
    """
    batch, head, first, count = tile[0], tile[1], tile[COLUMNS], tile[COLUMNS + 1]
    oa, inside = rows_of(tile, GROUP, LAYOUT, OUTER)
    low, high, entries = BOUNDS(oa, oa, oa, head, batch, Header, Data, False)
    asks = True
    if ROW_BOUNDS:  # where entries that must be equal begin and end; -1 if pairs are to be asked
        ends = RowBounds + gl.where(table_batch > 0, batch, 0) * 2 * rows + oa
        own = gl.load(ends, mask=inside, other=0)
        asks = gl.min(own, 0) < 0
        low = gl.maximum(low, own)
        high = gl.minimum(high, gl.where(asks, high, gl.load(ends + rows, mask=inside, other=0)))
    if INNER > 0:
        period = tile[len(tile) - 2]
        low = slots_below(low, inner_base(tile), period, INNER)
        high = slots_below(high + 1, inner_base(tile), period, INNER) - 1
    # within the tile's columns, so that differences fit; a head that is left out has none
    low = gl.minimum(gl.maximum(low, first), first + count).to(gl.int32)
    high = gl.maximum(gl.minimum(high, first + count - 1), first - 1).to(gl.int32)
    return oa, low, high, entries, asks, head, batch


@gluon.jit
def spread(tensors, LAYOUT: gl.constexpr):
    """The tensors, handed to the threads that need them."""
    found = ()
    for place in gl.static_range(len(tensors)):
        found = found + (gl.convert_layout(tensors[place], LAYOUT),)  # noqa: RUF005
    return found


@gluon.jit
def number_of(column):
    """Columns of a step numbered such that a thread's own are 0, 1, 2, …: known when it is compiled.

    A thread has the columns 8j + c and 8j + c + 1 of a product of matrices, for one even c below 8.
    """
    return (column >> 3) * 2 + (column & 1)


@gluon.jit
def up_to(end, column):
    """How many of a thread's columns, by number, lie up to `end`: the same for all columns with its c."""
    ahead = end - (column & 6)
    return (ahead >> 3) * 2 + 1 + (((ahead & 7) + 7) >> 3)


@gluon.jit
def bits_of(at, about, S: gl.constexpr, STEP: gl.constexpr):
    """For each row of a thread a word with the bits of those columns, by number, that are within its bounds,
    in a step that begins with `at`.
    """
    column = gl.arange(0, STEP, gl.SliceLayout(0, S))[None, :]
    first, end = up_to(about[1][:, None] - at - 1, column), up_to(about[2][:, None] - at, column)
    return gl.inline_asm_elementwise(BITS, "=r,r,r", [first, end], gl.int32, True, 1)


@gluon.jit
def where_set(x, bits, OTHERS: gl.constexpr, S: gl.constexpr):
    """The numbers whose bits are set, and others: OR_ZERO or OR_LEAST. ptxas fetches several bits at once."""
    column = gl.arange(0, x.shape[1], gl.SliceLayout(0, S))[None, :]
    given = [x, bits, gl.full([1, 1], 1, gl.int32, S) << number_of(column)]
    return gl.inline_asm_elementwise(OTHERS, "=f,f,r,r", given, gl.float32, True, 1)


@gluon.jit
def pairs_kept(
    at, about, Header, Data,
    COLUMNS: gl.constexpr, PAIRS: gl.constexpr, S: gl.constexpr, STEP: gl.constexpr,
):  # fmt: skip
    """Which pairs of a step are kept by what bounds do not say."""
    oa, _, _, entries, _, head, batch = about
    one = at + gl.arange(0, STEP, gl.BlockedLayout([1], [32], [4], [0]))  # each is looked up by one thread
    found = spread(COLUMNS(one, one, one, head, batch, Header, Data, False), gl.SliceLayout(0, S))
    columns = at + gl.arange(0, STEP, gl.SliceLayout(0, S))
    return PAIRS(oa, oa, oa, columns, columns, columns, entries, found, head, batch, Header, Data, False)


@gluon.jit
def where_pairs_kept(
    x, at, about, Header, Data,
    OTHERS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr, S: gl.constexpr,
):  # fmt: skip
    """The numbers of a step that begins with `at`, and others where more than bounds is asked and not so."""
    if about[4]:
        other = 0.0 if OTHERS == OR_ZERO else -float("inf")
        x = gl.where(pairs_kept(at, about, Header, Data, COLUMNS, PAIRS, S, x.shape[1]), x, other)
    return x


@gluon.jit
def lay(
    Out, Sum, Written, value, buffer, tile, heads, rows, strides,
    GROUP: gl.constexpr, D: gl.constexpr, DP: gl.constexpr, SUMS: gl.constexpr,
    CONTINUES: gl.constexpr, ENDS: gl.constexpr, SOME: gl.constexpr, OUTER: gl.constexpr,
):  # fmt: skip
    """Adds rows to the sums of earlier parts; if SOME rows have none, Written says which have. The last part
    lays the result where the tile's rows were, for `send`, or writes those of a tile that is not whole.
    """
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    batch, head = tile[0], tile[1]
    row, here = rows_of(tile, GROUP, OF_SUMS, OUTER)
    column = gl.arange(0, DP, gl.SliceLayout(0, SUMS))
    mask = here[:, None] & (column[None, :] < D)
    before = (batch * heads + head).to(gl.int64) * rows
    sums = Sum + (before + row)[:, None] * D + column[None, :]
    if CONTINUES:
        summed = mask
        if SOME:
            summed = mask & (gl.load(Written + row, mask=here, other=0) != 0)[:, None]
        value += gl.load(sums, mask=summed, other=0.0)
    if ENDS:
        final = value.to(buffer.dtype)
        if whole(tile, GROUP):
            buffer.reshape((ROWS, DP)).store(final)
        else:
            rows_out = Out + batch.to(gl.int64) * strides[0] + head.to(gl.int64) * strides[1]
            rows_out += row.to(gl.int64)[:, None] * strides[2]
            gl.store(rows_out + column[None, :], final, mask=mask)
    else:
        gl.store(sums, value, mask=mask)


@gluon.jit
def lay_share(
    Sum, value, tile, heads, tiles,
    GROUP: gl.constexpr, D: gl.constexpr, DP: gl.constexpr, SUMS: gl.constexpr,
):  # fmt: skip
    """Writes what a chunk of a tile (chunks.py) has found of its rows to the chunk's own place."""
    _, here = rows_of(tile, GROUP, gl.SliceLayout(1, SUMS))
    row = GROUP * ROWS + gl.arange(0, ROWS, gl.SliceLayout(1, SUMS))
    column = gl.arange(0, DP, gl.SliceLayout(0, SUMS))
    first = ((tile[0] * heads + tile[1]).to(gl.int64) * tiles + tile[NUMBERS]) * (GROUPS * ROWS)
    places = Sum + (first + row)[:, None] * D + column[None, :]
    gl.store(places, value, mask=here[:, None] & (column[None, :] < D))


@gluon.jit
def send(matrices, buffers, place, tile, GROUP: gl.constexpr, ENDS: gl.constexpr, OUTER: gl.constexpr):
    """Has TMA write what was laid where a tile's rows were, of one matrix or of two."""
    if ENDS:  # noqa: SIM102  (this is known when it is compiled, the next is not)
        if whole(tile, GROUP):
            fence_async_shared()
            for one in gl.static_range(len(matrices)):
                to = corner(tile[0], tile[1], tile[2] + GROUP * ROWS, tile[3], OUTER)
                tma.async_copy_shared_to_global(matrices[one], to, buffers[one].index(place))


# On the host


def group_of(order: Order) -> int:
    """How many positions of a period follow each other: 0 where all do."""
    return order.group if order.period > 1 else 0


def described(rows: int, *tensors: Tensor, order: Order | None = None, group: int = 0) -> list[Any]:
    """The tensors as TMA copies them, so many rows at once; of an order, or in boxes of `group` rows."""
    found: list[Any] = []
    period = order.period if order is not None and order.period > 1 else group
    group = group_of(order) if order is not None and order.period > 1 else group
    for x in tensors:
        rows_block, shape, strides = [rows], [x.shape[2]], [x.stride(2)]
        if period:
            rows_block, shape = [rows // group, group], [x.shape[2] // period, period]
            strides = [period * x.stride(2), x.stride(2)]
        block = [1, 1, *rows_block, padded(x.shape[-1])]
        layout = gl.NVMMASharedLayout.get_default_for(block, ELEMENTS[x.dtype])
        shape, strides = [*x.shape[:2], *shape, x.shape[3]], [*x.stride()[:2], *strides, x.stride(3)]
        found.append(TensorDescriptor(x, shape, strides, block, layout))
    return found


def processors(device: torch.device) -> int:
    """The multiprocessors of a GPU; an H200's where there is none."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 132
