"""Gradients of keys and values on Hopper where head_dim is above 128.

A group of warps has registers for one of the two: of a tile of 64 keys one group makes the gradients of its
values, the other those of its keys. Both compute the scores, five products in place of four. Otherwise as in
backward_dkdv.py: steps bring queries, the gradients of their output, log-sum-exp and delta.
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
from lattend.attend.kernels.triton.hopper.backward_dkdv import member_step, queries_of
from lattend.attend.kernels.triton.hopper.masks import (
    OR_ZERO,
    bits_of,
    bounds_of,
    where_pairs_kept,
    where_set,
)
from lattend.attend.kernels.triton.hopper.shared import (
    arrived,
    barriers_of,
    give_back,
    lay,
    load_step,
    load_tile,
    product,
    send,
    unknown_zero,
    weighed,
)
from lattend.attend.kernels.triton.hopper.tiles import (
    GROUPS,
    LOADER,
    LOG2E,
    REGISTERS,
    ROWS,
    notes,
    tile_noted,
    tile_of,
    turns_of,
)


@gluon.jit
def load(
    K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that loads; a tile's rows have room when the tile before has ended."""
    k_buffer, v_buffer, _, q_buffer, g_buffer, lse_buffer, delta_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free = barriers
    kv_heads, share, _, tiles, table_batch, table_head, works, query_rows = numbers
    of_tiles = (kv_heads, 1, 0, tiles, table_batch, table_head, works)
    done = 0  # steps of earlier turns
    for turn in range(turns_of(works)):
        tile = tile_of(turn, Table, Header, of_tiles, STEP, HAS_FULL, 4, ROWS)
        for index in range(tile[6] * share):
            member, step = member_step(index, tile, share, SHARED)
            at, q_head = tile[4] + step * STEP, tile[1] * share + member
            place, stage = [tile[0], q_head, at, 0], (done + index) % STAGES
            row = (tile[0] * kv_heads * share + q_head) * query_rows + at
            load_step(Q, q_buffer, q_ready, q_free, done + index, place, STAGES, STEP * 4)
            tma.async_copy_global_to_shared(Lse, [row], q_ready.index(stage), lse_buffer.index(stage))
            load_step(G, g_buffer, g_ready, g_free, done + index, place, STAGES, STEP * 4)
            tma.async_copy_global_to_shared(Delta, [row], g_ready.index(stage), delta_buffer.index(stage))
            if index == 0:
                load_tile((K, V), (k_buffer, v_buffer), noted, ready, free, turn, tile)
        done += tile[6] * share


@gluon.jit
def compute(
    OF_KEYS: gl.constexpr, Rows, Sum, Final, OfRows, Header, Data, RowBounds,
    buffers, barriers, scale, strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients OF_KEYS, or those of values.

    A step begins the scores of the next beside its own sum. Gradients of keys are laid where values were,
    which only their group reads, those of values in room of their own.
    """
    k_buffer, v_buffer, dv_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free = barriers
    kv_heads, share, rows, table_batch, works = numbers[0], numbers[1], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    OF_ROWS: gl.constexpr = gl.SliceLayout(1, S)
    OF_COLUMNS: gl.constexpr = gl.SliceLayout(0, S)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = scale * LOG2E
    k, v = k_buffer.index(0).reshape((ROWS, DP)), v_buffer.index(0).reshape((ROWS, DP))
    total = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
    done = 0  # steps of earlier tiles
    for turn in range(turns_of(works)):
        arrived(ready, turn, 1)
        arrived(q_ready, done, STAGES)
        s_begun = product(k, q_buffer, done, STEP, STAGES, DP, S)
        tile = tile_noted(noted, turn)
        steps, masked = tile[6] * share, tile[7] * share
        about = bounds_of(tile, table_batch, rows, Header, Data, RowBounds, BOUNDS, ROW_BOUNDS, 0, OF_ROWS)
        s = warpgroup_mma_wait(0, deps=[s_begun])
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (masked, steps) if FULL else (0, masked)
            for index in range(begin, end):
                now = done + index
                stage = now % STAGES
                held = unknown_zero(now)
                k, v = k_buffer.index(held).reshape((ROWS, DP)), v_buffer.index(held).reshape((ROWS, DP))
                arrived(g_ready, now, STAGES)
                if OF_KEYS:
                    dp_begun = product(v, g_buffer, now, STEP, STAGES, DP, S)
                if not FULL:
                    at = queries_of(index, tile, share, STEP, SHARED)
                    kept = bits_of(at, about, S, STEP)
                lse = lse_buffer.index(stage).load(OF_COLUMNS) * LOG2E
                p = gl.exp2(s * sharpness - lse[None, :])
                # a wait for the next queries, and so a branch, keeps the exponentials beside the product
                arrived(q_ready, now + 1, STAGES, index + 1 < steps)
                if OF_KEYS:
                    dp, p = warpgroup_mma_wait(0, deps=[dp_begun, p])
                    delta = delta_buffer.index(stage).load(OF_COLUMNS)
                    p = p * (dp - delta[None, :])
                if not FULL:
                    p = where_set(p, kept, OR_ZERO, S)
                    if PAIRS is not None:
                        p = where_pairs_kept(p, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                weights = gl.convert_layout(p, WEIGHTS).to(dtype)
                # beyond the last step the product is of old queries, and nobody reads it
                s_begun = product(k, q_buffer, now + 1, STEP, STAGES, DP, S)
                of = q_buffer if OF_KEYS else g_buffer
                begun = weighed(weights, of, now, total, index > 0, STEP, STAGES, DP)
                total, s = warpgroup_mma_wait(0, deps=[begun, s_begun])
                mbarrier.arrive(g_free.index(stage), count=1)
                mbarrier.arrive(q_free.index(stage), count=1)
        done += steps
        if OF_KEYS:
            lay(
                Final, Sum, OfRows, total * scale, v_buffer.index(0), tile, kv_heads, rows, strides,
                0, D, DP, SUMS, CONTINUES, ENDS, SOME,
            )  # fmt: skip
            send((Rows,), (v_buffer,), 0, tile, 0, ENDS)
            give_back(free, turn, True)
        else:
            mbarrier.arrive(free.index(0), count=1)
            tma.store_wait(0)
            lay(
                Final, Sum, OfRows, total, dv_buffer.index(0), tile, kv_heads, rows, strides,
                0, D, DP, SUMS, CONTINUES, ENDS, SOME, 0, 2,
            )  # fmt: skip
            send((Rows,), (dv_buffer,), 0, tile, 0, ENDS)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works", "query_rows"])
def attention_bwd_dkdv_wide_hopper_kernel(
    K, V, Q, G, Lse, Delta, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Table, Header, Data, RowBounds,
    scale, k_batch, k_head, k_row, v_batch, v_head, v_row,
    heads, share, rows, tiles, table_batch, table_head, works, query_rows,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of keys and values; all query heads that share them are taken in turn."""
    k_buffer = gl.allocate_shared_memory(K.dtype, [1, 1, 1, ROWS, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [1, 1, 1, ROWS, DP], V.layout)
    dv_buffer = gl.allocate_shared_memory(V.dtype, [1, 1, 1, ROWS, DP], V.layout)
    q_buffer = gl.allocate_shared_memory(Q.dtype, [STAGES, 1, 1, STEP, DP], Q.layout)
    g_buffer = gl.allocate_shared_memory(G.dtype, [STAGES, 1, 1, STEP, DP], G.layout)
    lse_buffer = gl.allocate_shared_memory(Lse.dtype, [STAGES, STEP], Lse.layout)
    delta_buffer = gl.allocate_shared_memory(Delta.dtype, [STAGES, STEP], Delta.layout)
    ready, free = barriers_of(1, 1), barriers_of(1, GROUPS)
    q_ready, g_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    q_free, g_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers = (k_buffer, v_buffer, dv_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, notes())
    barriers = (ready, free, q_ready, q_free, g_ready, g_free)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works, query_rows)
    gl.warp_specialize(
        [
            (compute, (
                True, RowsK, SumK, FinalK, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, (k_batch, k_head, k_row), numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED,
            )),
            (compute, (
                False, RowsV, SumV, FinalV, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, (v_batch, v_head, v_row), numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED,
            )),
            (load, (
                K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, SHARED,
            )),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip
