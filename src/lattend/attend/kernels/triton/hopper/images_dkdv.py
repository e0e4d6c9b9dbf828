"""Gradients of keys and values on images, on Hopper, in Gluon: backward_dkdv.py with boxes for lines.

A tile is two boxes of 64 keys, one above the other, one for each group of warps; steps are boxes of queries
that go through those of both line by line. A group passes over the lines that none of its keys is attended
from: it is ahead of the other, or behind it, so that both compute all the time.
"""

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
    warpgroup_mma_wait,
)

from lattend.attend.kernels.triton.geometry import PLAIN
from lattend.attend.kernels.triton.hopper.tiles import (
    BITS,
    GROUPS,
    LOADER,
    LOG2E,
    OR_ZERO,
    REGISTERS,
    ROWS,
    TILES,
    arrived,
    barriers_of,
    give_back,
    load_step,
    note,
    notes,
    product,
    tile_noted,
    turns_of,
    up_to,
    weighed,
    where_set,
    work_at,
)


@gluon.jit
def image_tile(turn, Table, Header, numbers, BY: gl.constexpr, BX: gl.constexpr):
    """The tile of a turn, as numbers: head, counted through all batch elements; its first row and column; the
    first row and column of its queries, their boxes side by side, and all; of its rows those that can have
    queries, the first and the end, and its columns.
    """
    heads, tiles, table_batch, table_head, _ = numbers
    tile, pair = work_at(turn) % tiles, work_at(turn) // tiles
    entry = Table + (pair // heads * table_batch + pair % heads * table_head + tile).to(gl.int64) * 12
    y, x = gl.load(entry) + gl.load(entry + 1), gl.load(entry + 5) + gl.load(entry + 6)
    height, width = gl.load(entry + 4) - gl.load(entry + 3), gl.load(entry + 9) - gl.load(entry + 8)
    empty = (height <= 0) | (width <= 0)  # then it is one box of zeros, above the image
    first = gl.where(empty, -BY, gl.load(entry + 2) + gl.load(entry + 3))
    across = gl.where(empty, 1, gl.cdiv(width, BX))
    steps = gl.where(empty, 1, gl.cdiv(height, BY) * across)
    left = gl.load(entry + 7) + gl.load(entry + 8)
    rows_first, rows_end = inside_of(entry, Header, y)
    columns_first, columns_end = inside_of(entry + 5, Header + 12, x)
    return pair, y, x, first, left, across, steps, rows_first, rows_end, columns_first, columns_end


@gluon.jit
def inside_of(entry, Header, at):
    """Which slots of a tile can have queries, along an axis: the first and the end of them."""
    first = gl.load(Header + 8) - at
    end = gl.minimum(gl.load(Header + 9) + 1 - at, gl.load(Header + 10) - gl.load(entry))
    return gl.maximum(first, 0).to(gl.int32), gl.maximum(end, 0).to(gl.int32)


@gluon.jit
def load(
    K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
    TY: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that loads.

    TMA would copy numbers from multiples of four columns on, so this copies those of a step itself.
    """
    k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free = barriers
    heads, works = numbers[0], numbers[4]
    down, wide = gl.load(Header + 5).to(gl.int32), gl.load(Header + 17).to(gl.int32)
    done = 0  # steps of earlier turns
    turns, tile = turns_of(works), image_tile(0, Table, Header, numbers, BY, BX)
    load_boxes((K, V), (k_buffer, v_buffer), noted, ready, free, 0, tile, heads, TY)
    for turn in range(turns):
        upcoming = image_tile(gl.minimum(turn + 1, turns - 1), Table, Header, numbers, BY, BX)
        batch, head, across = tile[0] // heads, tile[0] % heads, tile[5]
        y, x = tile[3], 0
        for index in range(tile[6]):
            place, stage = [batch, head, y, tile[4] + x, 0], (done + index) % STAGES
            load_step(Q, q_buffer, q_ready, q_free, done + index, place, STAGES)
            load_step(G, g_buffer, g_ready, g_free, done + index, place, STAGES)
            column = gl.arange(0, BY * BX, gl.BlockedLayout([1], [32], [1], [0]))
            at_y, at_x = y + column // BX, tile[4] + x + column % BX
            inside = (at_y >= 0) & (at_y < down) & (at_x < wide)
            at = tile[0].to(gl.int64) * (down * wide) + at_y * wide + at_x
            lse = gl.load(Lse + at, mask=inside, other=0.0)
            delta = gl.load(Delta + at, mask=inside, other=0.0)
            lse_buffer.index(stage).store(lse)
            mbarrier.arrive(q_ready.index(stage), count=1)
            delta_buffer.index(stage).store(delta)
            mbarrier.arrive(g_ready.index(stage), count=1)
            y, x = following_box(y, x, across, BY, BX)
        if turn + 1 < turns:
            load_boxes((K, V), (k_buffer, v_buffer), noted, ready, free, turn + 1, upcoming, heads, TY)
        done += tile[6]
        tile = upcoming


@gluon.jit
def load_boxes(matrices, buffers, noted, ready, free, turn, tile, heads, TY: gl.constexpr):
    """Copies the two boxes of a tile, of two matrices, and notes its numbers."""
    held = turn % TILES
    mbarrier.wait(free.index(held), ((turn // TILES) & 1) ^ 1)
    note(noted, turn, tile)
    mbarrier.expect(ready.index(held), len(matrices) * GROUPS * matrices[0].block_type.nbytes)
    for group in gl.static_range(GROUPS):
        place = [tile[0] // heads, tile[0] % heads, tile[1] + group * TY, tile[2], 0]
        for one in gl.static_range(len(matrices)):
            to = buffers[one].index(held * GROUPS + group)
            tma.async_copy_global_to_shared(matrices[one], place, ready.index(held), to)


@gluon.jit
def following_box(y, x, across, BY: gl.constexpr, BX: gl.constexpr):
    """Where the box after this one begins: beside it, or in the next line of boxes."""
    ends = x + BX >= across * BX
    return y + gl.where(ends, BY, 0), gl.where(ends, 0, x + BX)


@gluon.jit
def box_bits(y, x, bounds, S: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr):
    """As bits_of in tiles.py, for a box that begins at y and x: the bits of one line, in all lines that are
    within a row's bounds.
    """
    low_y, high_y, low_x, high_x = bounds
    column = gl.arange(0, BY * BX, gl.SliceLayout(0, S))[None, :]
    own: gl.constexpr = BX // 4  # columns of a line that a thread has
    first = up_to(gl.maximum(low_x[:, None] - x, 0) - 1, column)
    end = up_to(gl.minimum(high_x[:, None] - x, BX - 1), column)
    line = gl.inline_asm_elementwise(BITS, "=r,r,r", [first, end], gl.int32, True, 1)
    every: gl.constexpr = ((1 << BY * own) - 1) // ((1 << own) - 1)  # a bit in each line
    first = gl.maximum(low_y - y, 0) * own
    end = gl.maximum(gl.minimum(high_y - y + 1, BY), 0) * own
    lines = gl.inline_asm_elementwise(BITS, "=r,r,r", [first[:, None], end[:, None]], gl.int32, True, 1)
    return (line * every) & lines


@gluon.jit
def box_bounds(
    tile, heads, Header, Data, BOUNDS: gl.constexpr, GROUP: gl.constexpr,
    TY: gl.constexpr, TX: gl.constexpr, BY: gl.constexpr, OF_ROWS: gl.constexpr,
):  # fmt: skip
    """For each key of a group the first and last row and column of its queries, counted from the tile's
    first; and the first of the tile's steps that has some of them, and their end.
    """
    row = gl.arange(0, ROWS, OF_ROWS)
    y, x = GROUP * TY + row // TX, row % TX
    oa, ob = tile[1] + y, tile[2] + x
    la, ha, lb, hb, _ = BOUNDS(oa, ob, ob, tile[0] % heads, tile[0] // heads, Header, Data, False)
    la, ha = (la - tile[3]).to(gl.int32), (ha - tile[3]).to(gl.int32)
    lb, hb = (lb - tile[4]).to(gl.int32), (hb - tile[4]).to(gl.int32)
    has = of_tile(y, x, tile) & (la <= ha) & (lb <= hb)
    across, steps = tile[5], tile[6]
    begin = gl.min(gl.where(has, gl.minimum(la, steps * BY), steps * BY), 0) // BY * across
    end = gl.max(gl.where(has, gl.minimum(ha, steps * BY) + BY, 0), 0) // BY * across
    begin = gl.minimum(begin, steps - 1)  # without queries it is one step of which nothing is kept
    return (la, ha, lb, gl.where(has, hb, -1)), begin, gl.minimum(gl.maximum(end, begin + 1), steps)


@gluon.jit
def of_tile(y, x, tile):
    """Which slots of a tile can have queries."""
    return (y >= tile[7]) & (y < tile[8]) & (x >= tile[9]) & (x < tile[10])


@gluon.jit
def pass_over(first, end, q_ready, q_free, g_ready, g_free, STAGES: gl.constexpr):
    """Gives back steps that the group has no use for, as they come: each once."""
    for index in range(first, end):
        arrived(q_ready, index, STAGES)
        mbarrier.arrive(q_free.index(index % STAGES), count=1)
        arrived(g_ready, index, STAGES)
        mbarrier.arrive(g_free.index(index % STAGES), count=1)


@gluon.jit
def compute(
    GROUP: gl.constexpr, RowsK, RowsV, FinalK, FinalV, Header, Data,
    buffers, barriers, scale, k_strides, v_strides, numbers,
    BOUNDS: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr,
    STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its keys and values."""
    k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free = barriers
    heads, works = numbers[0], numbers[4]
    STEP: gl.constexpr = BY * BX
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    OF_COLUMNS: gl.constexpr = gl.SliceLayout(0, S)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = scale * LOG2E
    dk = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
    dv = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
    done = 0  # steps of earlier turns
    for turn in range(turns_of(works)):
        held = (turn % TILES) * GROUPS + GROUP
        arrived(ready, turn, TILES)
        give_back(free, turn + 1, turn > 0)
        tile = tile_noted(noted, turn)
        bounds, begin, end = box_bounds(
            tile, heads, Header, Data, BOUNDS, GROUP, TY, TX, BY, gl.SliceLayout(1, S)
        )
        pass_over(done, done + begin, q_ready, q_free, g_ready, g_free, STAGES)
        k, v = k_buffer.index(held).reshape((ROWS, DP)), v_buffer.index(held).reshape((ROWS, DP))
        arrived(q_ready, done + begin, STAGES)
        s = warpgroup_mma_wait(0, deps=[product(k, q_buffer, done + begin, STEP, STAGES, DP, S)])
        y, x = begin // tile[5] * BY, 0
        for index in range(begin, end):
            now = done + index
            stage = now % STAGES
            kept = box_bits(y, x, bounds, S, BY, BX)
            y, x = following_box(y, x, tile_noted(noted, turn)[5], BY, BX)
            arrived(g_ready, now, STAGES)
            dp_begun = product(v, g_buffer, now, STEP, STAGES, DP, S)
            lse = lse_buffer.index(stage).load(OF_COLUMNS) * LOG2E
            p = where_set(gl.exp2(s * sharpness - lse[None, :]), kept, OR_ZERO, S)
            weights = gl.convert_layout(p, WEIGHTS).to(dtype)
            dv_begun = weighed(weights, g_buffer, now, dv, index > begin, STEP, STAGES, DP)
            dp, p = warpgroup_mma_wait(1, deps=[dp_begun, p])
            delta = delta_buffer.index(stage).load(OF_COLUMNS)
            ds = where_set(p * (dp - delta[None, :]), kept, OR_ZERO, S)
            slopes = gl.convert_layout(ds, WEIGHTS).to(dtype)
            # beyond the last step the product is of old rows, and nobody reads it
            arrived(q_ready, now + 1, STAGES, index + 1 < end)
            s_begun = product(k, q_buffer, now + 1, STEP, STAGES, DP, S)
            dk_begun = weighed(slopes, q_buffer, now, dk, index > begin, STEP, STAGES, DP)
            dv, s = warpgroup_mma_wait(1, deps=[dv_begun, s_begun])
            mbarrier.arrive(g_free.index(stage), count=1)
            dk, s = warpgroup_mma_wait(0, deps=[dk_begun, s])
            mbarrier.arrive(q_free.index(stage), count=1)
        tile = tile_noted(noted, turn)
        pass_over(done + end, done + tile[6], q_ready, q_free, g_ready, g_free, STAGES)
        done += tile[6]
        lay_box(
            FinalK, dk * scale, k_buffer.index(held), tile, heads, k_strides, Header,
            GROUP, D, DP, TY, TX, SUMS,
        )  # fmt: skip
        lay_box(FinalV, dv, v_buffer.index(held), tile, heads, v_strides, Header, GROUP, DV, DP, TY, TX, SUMS)
        if whole_box(tile, GROUP, TY, TX):
            fence_async_shared()
            to = [tile[0] // heads, tile[0] % heads, tile[1] + GROUP * TY, tile[2], 0]
            tma.async_copy_shared_to_global(RowsK, to, k_buffer.index(held))
            tma.async_copy_shared_to_global(RowsV, to, v_buffer.index(held))
    tma.store_wait(0)


@gluon.jit
def whole_box(tile, GROUP: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr):
    """Whether all of a group's keys are the tile's."""
    lines = (tile[7] <= GROUP * TY) & (tile[8] >= (GROUP + 1) * TY)
    return lines & (tile[9] <= 0) & (tile[10] >= TX)


@gluon.jit
def lay_box(
    Out, value, buffer, tile, heads, strides, Header,
    GROUP: gl.constexpr, D: gl.constexpr, DP: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr,
    SUMS: gl.constexpr,
):  # fmt: skip
    """Lays the result where the group's keys were, for TMA, or writes that of a box that is not whole."""
    final = value.to(buffer.dtype)
    if whole_box(tile, GROUP, TY, TX):
        buffer.reshape((ROWS, DP)).store(final)
    else:
        row, column = gl.arange(0, ROWS, gl.SliceLayout(1, SUMS)), gl.arange(0, DP, gl.SliceLayout(0, SUMS))
        y, x = GROUP * TY + row // TX, row % TX
        here = of_tile(y, x, tile)
        place = (tile[1] + y) * gl.load(Header + 6) + tile[2] + x
        to = Out + (tile[0] // heads).to(gl.int64) * strides[0] + (tile[0] % heads).to(gl.int64) * strides[1]
        to += place.to(gl.int64)[:, None] * strides[2] + column[None, :]
        gl.store(to, final, mask=here[:, None] & (column[None, :] < D))


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "works"])
def attention_bwd_dkdv_images_kernel(
    K, V, Q, G, Lse, Delta, RowsK, RowsV, FinalK, FinalV, Table, Header, Data, scale,
    k_batch, k_head, k_row, v_batch, v_head, v_row,
    heads, tiles, table_batch, table_head, works,
    BOUNDS: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr,
    STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of keys and values."""
    k_buffer = gl.allocate_shared_memory(K.dtype, [TILES * GROUPS, 1, 1, TY, TX, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [TILES * GROUPS, 1, 1, TY, TX, DP], V.layout)
    q_buffer = gl.allocate_shared_memory(Q.dtype, [STAGES, 1, 1, BY, BX, DP], Q.layout)
    g_buffer = gl.allocate_shared_memory(G.dtype, [STAGES, 1, 1, BY, BX, DP], G.layout)
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    lse_buffer = gl.allocate_shared_memory(gl.float32, [STAGES, BY * BX], plain)
    delta_buffer = gl.allocate_shared_memory(gl.float32, [STAGES, BY * BX], plain)
    ready, free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    q_ready, g_ready = barriers_of(STAGES, 2), barriers_of(STAGES, 2)  # rows and numbers
    q_free, g_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers = (k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, notes())
    barriers = (ready, free, q_ready, q_free, g_ready, g_free)
    k_strides, v_strides = (k_batch, k_head, k_row), (v_batch, v_head, v_row)
    numbers = (heads, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, RowsK, RowsV, FinalK, FinalV, Header, Data,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, TY, TX, BY, BX, STAGES, D, DV, DP,
            )),
            (compute, (
                1, RowsK, RowsV, FinalK, FinalV, Header, Data,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, TY, TX, BY, BX, STAGES, D, DV, DP,
            )),
            (load, (
                K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers, TY, BY, BX, STAGES,
            )),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip
