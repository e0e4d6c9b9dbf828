"""The forward kernel on Hopper where head_dim is 64 at most: three groups of warps, 64 queries each.

There exponentials take as long as products. The groups begin their products in turn, so that one multiplies
while the others take exponentials. A step begins the scores of the next beside its own sum, and the last one
those of the next tile's first. Otherwise as forward.py.
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
from lattend.attend.kernels.triton.hopper.forward import finish, load, softened
from lattend.attend.kernels.triton.hopper.masks import (
    OR_LEAST,
    bits_of,
    bounds_of,
    where_pairs_kept,
    where_set,
)
from lattend.attend.kernels.triton.hopper.shared import (
    arrived,
    barriers_of,
    give_back,
    hand_on,
    product,
    take_turn,
    weighed,
)
from lattend.attend.kernels.triton.hopper.tiles import (
    LOADER,
    LOG2E,
    ROWS,
    notes,
    place_of,
    tile_noted,
    turns_of,
)

GROUPS: gl.constexpr = gl.constexpr(3)
TILES: gl.constexpr = gl.constexpr(2)
REGISTERS: gl.constexpr = gl.constexpr(160)  # of a thread that computes


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, State, Lse, Header, Data, RowBounds, buffers, barriers, order,
    scale, out_strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    MARKS: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: output and log-sum-exp of its queries."""
    q_buffer, k_buffer, v_buffer, noted = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free = barriers
    heads, rows, table_batch, works = numbers[0], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DVP, 16])
    OF_SCORES: gl.constexpr = gl.SliceLayout(1, S)
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = gl.maximum(scale, 1e-20) * LOG2E  # so that -inf times it stays -inf
    turns = turns_of(works)
    turn, done = 0, 0  # a tile, and the steps of those before it
    mbarrier.wait(q_ready.index(0), 0)
    arrived(k_ready, 0, STAGES)
    q = q_buffer.index(GROUP).reshape((ROWS, DP))
    s = warpgroup_mma_wait(0, deps=[product(q, k_buffer, 0, STEP, STAGES, DP, S)])
    mbarrier.arrive(k_free.index(0), count=1)
    while turn < turns:
        tile, place = tile_noted(noted, turn), (turn % TILES) * GROUPS + GROUP
        steps, masked = tile[6], tile[7]
        about = bounds_of(
            tile, table_batch, rows, Header, Data, RowBounds, BOUNDS, ROW_BOUNDS, GROUP, OF_SCORES
        )
        m = gl.full([ROWS], -float("inf"), gl.float32, OF_SCORES)
        total = gl.full([ROWS], 0.0, gl.float32, OF_SCORES)
        o = gl.full([ROWS, DVP], 0.0, gl.float32, SUMS)
        give_back(q_free, turn + 1, turn > 0)
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (masked, steps) if FULL else (0, masked)
            for index in range(begin, end):
                now = done + index
                if not FULL:
                    at = place_of(index, tile, STEP)
                    s = where_set(s, bits_of(at, about, S, STEP), OR_LEAST, S)
                    if PAIRS is not None:
                        s = where_pairs_kept(s, at, about, Header, Data, OR_LEAST, COLUMNS, PAIRS, S)
                p, m, total, shrink = softened(s, m, total, sharpness)
                o = o * gl.convert_layout(shrink, OF_SUMS)[:, None]
                weights = gl.convert_layout(p, WEIGHTS).to(dtype)
                ends = index + 1 == steps
                following = turn + ends.to(gl.int32)
                arrived(q_ready, following, TILES, ends & (following < turns))
                arrived(k_ready, now + 1, STAGES, following < turns)
                q = q_buffer.index((following % TILES) * GROUPS + GROUP).reshape((ROWS, DP))
                # beyond the last step the product is of old rows, and nobody reads it
                take_turn(order, GROUP, now)
                s_begun = product(q, k_buffer, now + 1, STEP, STAGES, DP, S)
                arrived(v_ready, now, STAGES)
                o_begun = weighed(weights, v_buffer, now, o, True, STEP, STAGES, DVP)
                hand_on(order, GROUP)
                o, s = warpgroup_mma_wait(0, deps=[o_begun, s_begun])
                mbarrier.arrive(v_free.index(now % STAGES), count=1)
                mbarrier.arrive(k_free.index((now + 1) % STAGES), count=1, pred=following < turns)
        finish(
            o, m, total, tile, q_buffer, place, Rows, Out, State, Lse, out_strides,
            heads, rows, DV, DVP, SUMS, OF_SCORES, GROUP, CONTINUES, ENDS, 0, MARKS,
        )  # fmt: skip
        turn, done = turn + 1, done + steps
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works"])
def attention_fwd_narrow_hopper_kernel(
    Q, K, V, Rows, Out, State, Lse, Table, Header, Data, RowBounds, scale, o_batch, o_head, o_row,
    heads, share, rows, tiles, table_batch, table_head, works,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    MARKS: gl.constexpr,
):  # fmt: skip
    """Out and Lse of tiles of queries; CONTINUES takes up the sums of an earlier part, ENDS is the last."""
    q_buffer = gl.allocate_shared_memory(Q.dtype, [TILES * GROUPS, 1, 1, ROWS, DP], Q.layout)
    k_buffer = gl.allocate_shared_memory(K.dtype, [STAGES, 1, 1, STEP, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [STAGES, 1, 1, STEP, DVP], V.layout)
    q_ready, q_free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers = (q_buffer, k_buffer, v_buffer, notes(TILES))
    barriers, order = (q_ready, q_free, k_ready, k_free, v_ready, v_free), barriers_of(GROUPS, 1)
    strides = (o_batch, o_head, o_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, State, Lse, Header, Data, RowBounds, buffers, barriers, order,
                scale, strides, numbers, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, DP, DV, DVP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, MARKS,
            )),
            (compute, (
                1, Rows, Out, State, Lse, Header, Data, RowBounds, buffers, barriers, order,
                scale, strides, numbers, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, DP, DV, DVP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, MARKS,
            )),
            (compute, (
                2, Rows, Out, State, Lse, Header, Data, RowBounds, buffers, barriers, order,
                scale, strides, numbers, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, DP, DV, DVP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, MARKS,
            )),
            (load, (
                Q, K, V, K, V, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, False, 0, 0,
            )),
        ],
        [4, 4, 1],
        [REGISTERS, REGISTERS, LOADER],
    )  # fmt: skip
