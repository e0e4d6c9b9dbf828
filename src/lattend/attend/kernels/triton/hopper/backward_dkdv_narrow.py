"""Gradients of keys and values on Hopper where head_dim is 64 at most: three groups of warps, 64 keys each.

As backward_dkdv.py, with fewer registers for each: a step waits for its product with values before it begins
the others, and meanwhile other groups multiply.
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
from lattend.attend.kernels.triton.hopper.backward_dkdv import load, queries_of
from lattend.attend.kernels.triton.hopper.forward_narrow import GROUPS, REGISTERS
from lattend.attend.kernels.triton.hopper.tiles import (
    LOADER,
    LOG2E,
    OR_ZERO,
    ROWS,
    TILES,
    arrived,
    barriers_of,
    bits_of,
    bounds_of,
    give_back,
    lay,
    notes,
    product,
    send,
    tile_noted,
    turns_of,
    weighed,
    where_pairs_kept,
    where_set,
)


@gluon.jit
def compute(
    GROUP: gl.constexpr, RowsK, RowsV, SumK, SumV, FinalK, FinalV, Written, Header, Data, RowBounds,
    buffers, barriers, scale, k_strides, v_strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its keys and values.

    A step begins the scores of the next, and the last one those of the next tile's first, so that a tile's
    beginning does not wait for them.
    """
    k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free = barriers
    kv_heads, share, rows, table_batch, works = numbers[0], numbers[1], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    OF_ROWS: gl.constexpr = gl.SliceLayout(1, S)
    OF_COLUMNS: gl.constexpr = gl.SliceLayout(0, S)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = scale * LOG2E
    dk = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
    dv = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
    turns = turns_of(works)
    turn, done = 0, 0  # a tile, and the steps of those before it
    mbarrier.wait(ready.index(0), 0)
    arrived(q_ready, 0, STAGES)
    k = k_buffer.index(GROUP).reshape((ROWS, DP))
    s = warpgroup_mma_wait(0, deps=[product(k, q_buffer, 0, STEP, STAGES, DP, S)])
    while turn < turns:
        tile, held = tile_noted(noted, turn), (turn % TILES) * GROUPS + GROUP
        steps, masked = tile[6] * share, tile[7] * share
        about = bounds_of(
            tile, table_batch, rows, Header, Data, RowBounds, BOUNDS, ROW_BOUNDS, GROUP, OF_ROWS
        )
        v = v_buffer.index(held).reshape((ROWS, DP))
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (masked, steps) if FULL else (0, masked)
            for index in range(begin, end):
                now = done + index
                stage = now % STAGES
                if not FULL:
                    at = queries_of(index, tile_noted(noted, turn), share, STEP, SHARED)
                    kept = bits_of(at, about, S, STEP)
                arrived(g_ready, now, STAGES)
                dp_begun = product(v, g_buffer, now, STEP, STAGES, DP, S)
                lse = lse_buffer.index(stage).load(OF_COLUMNS) * LOG2E
                p = gl.exp2(s * sharpness - lse[None, :])
                if not FULL:
                    give_back(free, turn + 1, (index == 0) & (turn > 0))
                    p = where_set(p, kept, OR_ZERO, S)
                    if PAIRS is not None:
                        p = where_pairs_kept(p, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                dp, p = warpgroup_mma_wait(0, deps=[dp_begun, p])
                delta = delta_buffer.index(stage).load(OF_COLUMNS)
                ds = p * (dp - delta[None, :])
                if not FULL:
                    ds = where_set(ds, kept, OR_ZERO, S)
                    if PAIRS is not None:
                        ds = where_pairs_kept(ds, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                weights = gl.convert_layout(p, WEIGHTS).to(dtype)
                slopes = gl.convert_layout(ds, WEIGHTS).to(dtype)
                # beyond the last step the product is of old rows, and nobody reads it
                ends = index + 1 == steps
                following = turn + ends.to(gl.int32)
                arrived(ready, following, TILES, ends & (following < turns))
                arrived(q_ready, now + 1, STAGES, following < turns)
                k = k_buffer.index((following % TILES) * GROUPS + GROUP).reshape((ROWS, DP))
                dv_begun = weighed(weights, g_buffer, now, dv, index > 0, STEP, STAGES, DP)
                s_begun = product(k, q_buffer, now + 1, STEP, STAGES, DP, S)
                dk_begun = weighed(slopes, q_buffer, now, dk, index > 0, STEP, STAGES, DP)
                dv, s = warpgroup_mma_wait(1, deps=[dv_begun, s_begun])
                mbarrier.arrive(g_free.index(stage), count=1)
                dk, s = warpgroup_mma_wait(0, deps=[dk_begun, s])
                mbarrier.arrive(q_free.index(stage), count=1)
        lay(
            FinalK, SumK, Written, dk * scale, k_buffer.index(held), tile, kv_heads, rows, k_strides,
            GROUP, D, DP, SUMS, CONTINUES, ENDS, SOME,
        )  # fmt: skip
        lay(
            FinalV, SumV, Written, dv, v_buffer.index(held), tile, kv_heads, rows, v_strides,
            GROUP, DV, DP, SUMS, CONTINUES, ENDS, SOME,
        )  # fmt: skip
        send((RowsK, RowsV), (k_buffer, v_buffer), held, tile, GROUP, ENDS)
        turn, done = turn + 1, done + steps
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works", "query_rows"])
def attention_bwd_dkdv_narrow_hopper_kernel(
    K, V, Q, G, Lse, Delta, RowsK, RowsV, SumK, SumV, FinalK, FinalV, Written, Table, Header, Data, RowBounds,
    scale, k_batch, k_head, k_row, v_batch, v_head, v_row,
    heads, share, rows, tiles, table_batch, table_head, works, query_rows,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of keys and values; all query heads that share them are taken in turn."""
    k_buffer = gl.allocate_shared_memory(K.dtype, [TILES * GROUPS, 1, 1, ROWS, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [TILES * GROUPS, 1, 1, ROWS, DP], V.layout)
    q_buffer = gl.allocate_shared_memory(Q.dtype, [STAGES, 1, 1, STEP, DP], Q.layout)
    g_buffer = gl.allocate_shared_memory(G.dtype, [STAGES, 1, 1, STEP, DP], G.layout)
    lse_buffer = gl.allocate_shared_memory(Lse.dtype, [STAGES, STEP], Lse.layout)
    delta_buffer = gl.allocate_shared_memory(Delta.dtype, [STAGES, STEP], Delta.layout)
    ready, free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    q_ready, g_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    q_free, g_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers = (k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, notes())
    barriers = (ready, free, q_ready, q_free, g_ready, g_free)
    k_strides, v_strides = (k_batch, k_head, k_row), (v_batch, v_head, v_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works, query_rows)
    gl.warp_specialize(
        [
            (compute, (
                0, RowsK, RowsV, SumK, SumV, FinalK, FinalV, Written, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED,
            )),
            (compute, (
                1, RowsK, RowsV, SumK, SumV, FinalK, FinalV, Written, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED,
            )),
            (compute, (
                2, RowsK, RowsV, SumK, SumV, FinalK, FinalV, Written, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED,
            )),
            (load, (
                K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, SHARED, False,
            )),
        ],
        [4, 4, 1],
        [REGISTERS, REGISTERS, LOADER],
    )  # fmt: skip
