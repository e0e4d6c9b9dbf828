"""Gradients of queries on Hopper where head_dim is above 128: 128 registers of a thread for its sums.

As backward_dq.py, with room for less: the rows of one tile, keys of two steps and values of one. A step
begins the scores of the next beside the sum of its own slopes, and exponentials are taken while it multiplies
with values; the other group's products fill what is left.
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
    warpgroup_mma_wait,
)

from lattend.attend.kernels.triton.geometry import PLAIN
from lattend.attend.kernels.triton.hopper.backward_dq import asked
from lattend.attend.kernels.triton.hopper.masks import (
    OR_ZERO,
    bits_of,
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
    place_of,
    tile_noted,
    tile_of,
    turns_of,
)


@gluon.jit
def load(
    Q, G, K, V, Table, Header, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that loads; a tile's rows have room when the tile before has ended."""
    q_buffer, g_buffer, k_buffer, v_buffer, noted = buffers
    ready, free, k_ready, k_free, v_ready, v_free = barriers
    share = numbers[1]
    done = 0  # steps of earlier turns
    for turn in range(turns_of(numbers[6])):
        tile = tile_of(turn, Table, Header, numbers, STEP, HAS_FULL)
        for index in range(tile[6]):
            place = [tile[0], tile[1] // share, place_of(index, tile, STEP), 0]
            load_step(K, k_buffer, k_ready, k_free, done + index, place, STAGES)
            load_step(V, v_buffer, v_ready, v_free, done + index, place, STAGES - 1)
            if index == 0:
                load_tile((Q, G), (q_buffer, g_buffer), noted, ready, free, turn, tile)
        done += tile[6]


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, GradLse, Lse, Delta, Sum, Final, OfRows, Header, Data, RowBounds,
    buffers, barriers, scale, out_strides, final_strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its queries."""
    q_buffer, g_buffer, k_buffer, v_buffer, noted = buffers
    ready, free, k_ready, k_free, v_ready, v_free = barriers
    heads, rows, table_batch, works = numbers[0], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    VALUES: gl.constexpr = STAGES - 1  # steps whose values have room
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = scale * LOG2E
    done = 0  # steps of earlier tiles
    for turn in range(turns_of(works)):
        q, grad = q_buffer.index(GROUP).reshape((ROWS, DP)), g_buffer.index(GROUP).reshape((ROWS, DP))
        arrived(ready, turn, 1)
        arrived(k_ready, done, STAGES)
        s_begun = product(q, k_buffer, done, STEP, STAGES, DP, S)
        tile = tile_noted(noted, turn)
        steps, masked = tile[6], tile[7]
        about, lse, delta = asked(
            tile, grad, Out, GradLse, Lse, Delta, Header, Data, RowBounds,
            out_strides, heads, rows, table_batch,
            BOUNDS, DP, DV, S, GROUP, ROW_BOUNDS, MAKES_DELTA, HAS_GRAD_LSE,
        )  # fmt: skip
        dq = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
        s = warpgroup_mma_wait(0, deps=[s_begun])
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (masked, steps) if FULL else (0, masked)
            for index in range(begin, end):
                now = done + index
                held = GROUP + unknown_zero(now)
                q = q_buffer.index(held).reshape((ROWS, DP))
                grad = g_buffer.index(held).reshape((ROWS, DP))
                arrived(v_ready, now, VALUES)
                dp_begun = product(grad, v_buffer, now, STEP, VALUES, DP, S)
                if not FULL:
                    at = place_of(index, tile, STEP)
                    kept = bits_of(at, about, S, STEP)
                p = gl.exp2(s * sharpness - lse[:, None])
                # a wait for the next keys, and so a branch, keeps the exponentials before the products' end
                arrived(k_ready, now + 1, STAGES, index + 1 < steps)
                dp, p = warpgroup_mma_wait(0, deps=[dp_begun, p])
                mbarrier.arrive(v_free.index(now % VALUES), count=1)
                ds = p * (dp - delta[:, None])
                if not FULL:
                    ds = where_set(ds, kept, OR_ZERO, S)
                    if PAIRS is not None:
                        ds = where_pairs_kept(ds, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                slopes = gl.convert_layout(ds, WEIGHTS).to(dtype)
                # beyond the last step the product is of old keys, and nobody reads it
                s_begun = product(q, k_buffer, now + 1, STEP, STAGES, DP, S)
                dq_begun = weighed(slopes, k_buffer, now, dq, True, STEP, STAGES, DP)
                dq, s = warpgroup_mma_wait(0, deps=[dq_begun, s_begun])
                mbarrier.arrive(k_free.index(now % STAGES), count=1)
        done += steps
        lay(
            Final, Sum, OfRows, dq * scale, q_buffer.index(GROUP), tile, heads, rows, final_strides,
            GROUP, D, DP, SUMS, CONTINUES, ENDS, SOME,
        )  # fmt: skip
        send((Rows,), (q_buffer,), GROUP, tile, GROUP, ENDS)
        give_back(free, turn, True)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works"])
def attention_bwd_dq_wide_hopper_kernel(
    Q, G, K, V, Rows, Out, GradLse, Lse, Delta, Sum, Final, OfRows, Table, Header, Data, RowBounds, scale,
    o_batch, o_head, o_row, f_batch, f_head, f_row,
    heads, share, rows, tiles, table_batch, table_head, works,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of queries; the first part of them also makes Delta."""
    q_buffer = gl.allocate_shared_memory(Q.dtype, [GROUPS, 1, 1, ROWS, DP], Q.layout)
    g_buffer = gl.allocate_shared_memory(G.dtype, [GROUPS, 1, 1, ROWS, DP], G.layout)
    k_buffer = gl.allocate_shared_memory(K.dtype, [STAGES, 1, 1, STEP, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [STAGES - 1, 1, 1, STEP, DP], V.layout)
    ready, free = barriers_of(1, 1), barriers_of(1, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(STAGES - 1, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES - 1, GROUPS)
    fence_async_shared()
    buffers = (q_buffer, g_buffer, k_buffer, v_buffer, notes())
    barriers = (ready, free, k_ready, k_free, v_ready, v_free)
    out_strides, final_strides = (o_batch, o_head, o_row), (f_batch, f_head, f_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, GradLse, Lse, Delta, Sum, Final, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, out_strides, final_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, SOME, MAKES_DELTA, HAS_GRAD_LSE,
            )),
            (compute, (
                1, Rows, Out, GradLse, Lse, Delta, Sum, Final, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, out_strides, final_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, SOME, MAKES_DELTA, HAS_GRAD_LSE,
            )),
            (load, (Q, G, K, V, Table, Header, buffers, barriers, numbers, STEP, STAGES, HAS_FULL)),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip
