"""Shared memory in the kernels for Hopper: barriers, what TMA copies there and back, products of it."""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
)

from lattend.attend.kernels.triton.hopper.orders import corner
from lattend.attend.kernels.triton.hopper.tiles import GROUPS, NUMBERS, ROWS, note, rows_of, whole


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
def arrived(ready, index, STAGES: gl.constexpr, pred=True):
    """Waits until the step's block is in shared memory."""
    mbarrier.wait(ready.index(index % STAGES), (index // STAGES) & 1, pred=pred)


@gluon.jit
def let_pass(ready, free, index, STAGES: gl.constexpr, pred):
    """Frees the block of a step that a group has no use for; not before it is there, lest its place be taken
    for free twice.
    """
    arrived(ready, index, STAGES, pred)
    mbarrier.arrive(free.index(index % STAGES), count=1, pred=pred)


@gluon.jit
def pass_over(first, end, a_ready, a_free, b_ready, b_free, STAGES: gl.constexpr):
    """Gives back steps that the group has no use for, as they come: each once."""
    for index in range(first, end):
        arrived(a_ready, index, STAGES)
        mbarrier.arrive(a_free.index(index % STAGES), count=1)
        arrived(b_ready, index, STAGES)
        mbarrier.arrive(b_free.index(index % STAGES), count=1)


@gluon.jit
def load_step(Block, buffer, ready, free, index, place, STAGES: gl.constexpr, MORE: gl.constexpr = 0):
    """Copies the block of a step to shared memory once its place is free; MORE bytes will follow."""
    stage = index % STAGES
    mbarrier.wait(free.index(stage), ((index // STAGES) & 1) ^ 1)
    mbarrier.expect(ready.index(stage), Block.block_type.nbytes + MORE)
    tma.async_copy_global_to_shared(Block, place, ready.index(stage), buffer.index(stage))


@gluon.jit
def load_either(
    Block, Joined, joined, buffer, ready, free, index, place, STAGES: gl.constexpr, APART: gl.constexpr
):
    """The same of the part that joins, where its rows lie APART from the others, in its steps."""
    if APART:
        if joined:
            load_step(Joined, buffer, ready, free, index, place, STAGES)
        else:
            load_step(Block, buffer, ready, free, index, place, STAGES)
    else:
        load_step(Block, buffer, ready, free, index, place, STAGES)


@gluon.jit
def load_tile(matrices, buffers, noted, ready, free, turn, tile, OUTER: gl.constexpr = 0):
    """Copies the rows of a tile, of one matrix or of two alike, and notes its numbers."""
    COUNT: gl.constexpr = free.shape[0]  # tiles in shared memory
    BLOCKS: gl.constexpr = buffers[0].shape[0] // COUNT
    held = turn % COUNT
    mbarrier.wait(free.index(held), ((turn // COUNT) & 1) ^ 1)
    note(noted, turn, tile)
    mbarrier.expect(ready.index(held), len(matrices) * BLOCKS * matrices[0].block_type.nbytes)
    for block in gl.static_range(BLOCKS):
        place = corner(tile[0], tile[1], tile[2] + block * ROWS, tile[3], OUTER)
        for one in gl.static_range(len(matrices)):
            to = buffers[one].index(held * BLOCKS + block)
            tma.async_copy_global_to_shared(matrices[one], place, ready.index(held), to)


@gluon.jit
def give_back(free, turn, pred):
    """Frees the rows of a tile, once its results, which lie there, are written."""
    if pred:
        tma.store_wait(0)
        mbarrier.arrive(free.index(turn % free.shape[0]), count=1)


@gluon.jit
def take_turn(order, GROUP: gl.constexpr, count):
    """Waits until the group before has begun its products of this turn, group 0 those of the last.

    Products of two groups that begin at once would share the tensor cores, and their exponentials come at
    once too.
    """
    mbarrier.wait(order.index(GROUP), (count & 1) ^ (GROUP == 0))


@gluon.jit
def hand_on(order, GROUP: gl.constexpr):
    """Has the next group begin its products."""
    mbarrier.arrive(order.index((GROUP + 1) % order.shape[0]), count=1)


# Products


@gluon.jit
def unknown_zero(index):
    """0, which ptxas does not know: else it prepares the addresses of all products of a loop in front of it,
    for which a wide head has no registers left.
    """
    return index >> 30


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


# Results


@gluon.jit
def begun(
    Sum, tile, known, heads, rows,
    GROUP: gl.constexpr, D: gl.constexpr, DP: gl.constexpr, SUMS: gl.constexpr, OUTER: gl.constexpr = 0,
):  # fmt: skip
    """What earlier parts have summed up of a group's rows, where that is known; 0 elsewhere."""
    row, here = rows_of(tile, GROUP, gl.SliceLayout(1, SUMS), OUTER)
    column = gl.arange(0, DP, gl.SliceLayout(0, SUMS))
    before = (tile[0] * heads + tile[1]).to(gl.int64) * rows
    mask = (here & known)[:, None] & (column[None, :] < D)
    return gl.load(Sum + (before + row)[:, None] * D + column[None, :], mask=mask, other=0.0)


@gluon.jit
def has_sums(OfRows, tile, GROUP: gl.constexpr, SUMS: gl.constexpr, SOME: gl.constexpr, OUTER: gl.constexpr):
    """Which of a group's rows earlier parts have sums of: all, or SOME, as the first of OfRows says."""
    row, here = rows_of(tile, GROUP, gl.SliceLayout(1, SUMS), OUTER)
    if SOME:
        here = gl.load(OfRows[0] + row, mask=here, other=0) != 0
    return here


@gluon.jit
def lay(
    Out, Sum, OfRows, value, buffer, tile, heads, rows, strides,
    GROUP: gl.constexpr, D: gl.constexpr, DP: gl.constexpr, SUMS: gl.constexpr,
    CONTINUES: gl.constexpr, ENDS: gl.constexpr, SOME: gl.constexpr, OUTER: gl.constexpr = 0,
    MARKS: gl.constexpr = 1,
):  # fmt: skip
    """Adds rows to the sums of earlier parts; if SOME rows have none, the first of OfRows says which have.
    The last part lays the result where the tile's rows were, for `send`, or writes those of a tile that is
    not whole. If OfRows has number MARKS, rows that hold a NaN or an infinity are marked there with a NaN.
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
            summed = mask & (gl.load(OfRows[0] + row, mask=here, other=0) != 0)[:, None]
        value += gl.load(sums, mask=summed, other=0.0)
    if len(OfRows) > MARKS:
        gl.store(OfRows[MARKS] + before + row, gl.sum(value, 1) * 0.0, mask=here)
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
def send(matrices, buffers, place, tile, GROUP: gl.constexpr, ENDS: gl.constexpr, OUTER: gl.constexpr = 0):
    """Has TMA write what was laid where a tile's rows were, of one matrix or of two."""
    if ENDS:  # noqa: SIM102  (this is known when it is compiled, the next is not)
        if whole(tile, GROUP):
            fence_async_shared()
            for one in gl.static_range(len(matrices)):
                to = corner(tile[0], tile[1], tile[2] + GROUP * ROWS, tile[3], OUTER)
                tma.async_copy_shared_to_global(matrices[one], to, buffers[one].index(place))
