"""Gradients of keys and values on images, on Hopper, in Gluon: backward_dkdv.py with boxes for lines.

Rows are keys, and steps are boxes of queries (images.py).
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
from lattend.attend.kernels.triton.hopper.images import (
    KEPT,
    MORE,
    box_bits,
    box_bounds,
    following_box,
    image_tile,
    lay_box,
    load_rows,
    share_of,
    steps_of,
    whole_box,
)
from lattend.attend.kernels.triton.hopper.masks import OR_ZERO, where_set
from lattend.attend.kernels.triton.hopper.shared import (
    arrived,
    barriers_of,
    give_back,
    load_step,
    pass_over,
    product,
    weighed,
)
from lattend.attend.kernels.triton.hopper.tiles import (
    GROUPS,
    LOADER,
    LOG2E,
    REGISTERS,
    ROWS,
    TILES,
    noted_again,
    notes,
    tile_noted,
)


@gluon.jit
def load_steps(
    Q, G, Lse, Delta, Table, Shares, Header, buffers, barriers, numbers,
    BY: gl.constexpr, BX: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """The trade of a warp that loads steps of queries.

    TMA would copy numbers from multiples of four columns on, so this copies those of a step itself.
    """
    q_buffer, g_buffer, lse_buffer, delta_buffer = buffers
    q_ready, q_free, g_ready, g_free = barriers
    heads = numbers[0]
    down, wide = gl.load(Header + 5).to(gl.int32), gl.load(Header + 17).to(gl.int32)
    done, had = 0, 0  # steps of earlier turns, and those of this one that it has from the last
    first, turns = share_of(Shares)
    tile = image_tile(gl.where(turns > 0, first, 0), Table, Shares, numbers)
    for turn in range(turns):
        following = image_tile(first + gl.minimum(turn + 1, turns - 1), Table, Shares, numbers)
        batch, head, across = tile[0] // heads, tile[0] % heads, tile[5]
        y, x = tile[3] + had // across * BY, 0
        for index in range(had, tile[6]):
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
        done, had = done + tile[6] - tile[KEPT], tile[KEPT]
        tile = following


@gluon.jit
def compute(
    GROUP: gl.constexpr, RowsK, RowsV, FinalK, FinalV, Header, Data,
    Shares, buffers, barriers, scale, k_strides, v_strides, numbers,
    BOUNDS: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr,
    STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its keys and values."""
    k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free = barriers
    heads = numbers[0]
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
    _, turns = share_of(Shares)
    for turn in range(turns):
        held = (turn % TILES) * GROUPS + GROUP
        arrived(ready, turn, TILES)
        tile = tile_noted(noted, turn, MORE)
        begin, end, given, free_end = steps_of(tile, turn, GROUP)
        bounds = box_bounds(tile, heads, Header, Data, BOUNDS, GROUP, TY, TX, gl.SliceLayout(1, S))
        pass_over(done + given, done + gl.minimum(begin, free_end), q_ready, q_free, g_ready, g_free, STAGES)
        k, v = k_buffer.index(held).reshape((ROWS, DP)), v_buffer.index(held).reshape((ROWS, DP))
        arrived(q_ready, done + begin, STAGES)
        s = warpgroup_mma_wait(0, deps=[product(k, q_buffer, done + begin, STEP, STAGES, DP, S)])
        give_back(free, turn + 1, turn > 0)
        y, x = begin // tile[5] * BY, 0
        for index in range(begin, end):
            now = done + index
            stage = now % STAGES
            kept = box_bits(y, x, bounds, S, BY, BX)
            y, x = following_box(y, x, noted_again(noted, turn, MORE)[5], BY, BX)
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
            mbarrier.arrive(g_free.index(stage), count=1, pred=index < free_end)
            dk, s = warpgroup_mma_wait(0, deps=[dk_begun, s])
            mbarrier.arrive(q_free.index(stage), count=1, pred=index < free_end)
        tile = noted_again(noted, turn, MORE)
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
        pass_over(done + end, done + free_end, q_ready, q_free, g_ready, g_free, STAGES)
        done += tile[6] - tile[KEPT]
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads"])
def attention_bwd_dkdv_images_kernel(
    K, V, Q, G, Lse, Delta, RowsK, RowsV, FinalK, FinalV, Table, Shares, Header, Data, scale,
    k_batch, k_head, k_row, v_batch, v_head, v_row,
    heads, tiles, table_batch, table_head,
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
    buffers = (k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, notes(TILES, MORE))
    barriers = (ready, free, q_ready, q_free, g_ready, g_free)
    k_strides, v_strides = (k_batch, k_head, k_row), (v_batch, v_head, v_row)
    numbers = (heads, tiles, table_batch, table_head)
    gl.warp_specialize(
        [
            (compute, (
                0, RowsK, RowsV, FinalK, FinalV, Header, Data,
                Shares, buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, TY, TX, BY, BX, STAGES, D, DV, DP,
            )),
            (compute, (
                1, RowsK, RowsV, FinalK, FinalV, Header, Data,
                Shares, buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, TY, TX, BY, BX, STAGES, D, DV, DP,
            )),
            (load_rows, (
                (K, V), (k_buffer, v_buffer), buffers[6], ready, free, Table, Shares, numbers, TY,
            )),
            (load_steps, (
                Q, G, Lse, Delta, Table, Shares, Header, buffers[2:6], barriers[2:], numbers, BY, BX, STAGES,
            )),
        ],
        [4, 1, 1],
        [REGISTERS, LOADER, LOADER],
    )  # fmt: skip
