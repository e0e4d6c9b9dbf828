"""Gradients of queries on Hopper, in Gluon, as backward.py's first kernel makes them for any chip.

As in forward.py one warp loads and two groups of four compute, 64 queries each. A tile has its queries and
the gradients of its output in shared memory; steps bring keys and values. While the tensor cores add one
step's slopes to the gradient and multiply with values, a group takes the exponentials of the next scores.
Slopes go from product to product in registers: as one gives them, the next takes them. The keys of three
steps are in use at once, so that there are three stages at least.
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
    GROUPS,
    LOADER,
    LOG2E,
    OR_ZERO,
    REGISTERS,
    ROWS,
    TILES,
    arrived,
    attended,
    barriers_of,
    bounds_of,
    limits_of,
    load_step,
    load_tile,
    product,
    rows_of,
    step_at,
    tile_of,
    turns_of,
    weighed,
    write,
)


@gluon.jit
def load(
    Q, G, K, V, Table, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that loads."""
    q_buffer, g_buffer, k_buffer, v_buffer = buffers
    ready, free, k_ready, k_free, v_ready, v_free = barriers
    share = numbers[1]
    done = 0  # steps of earlier turns
    for turn in range(turns_of(numbers[6])):
        batch, head, slot, outer_base, first, _, steps, masked, full_first = tile_of(
            turn, Table, numbers, STEP, HAS_FULL
        )
        load_tile((Q, G), (q_buffer, g_buffer), ready, free, turn, batch, head, slot + outer_base)
        for index in range(steps):
            at = first + step_at(index, steps, masked, full_first) * STEP
            place = [batch, head // share, at, 0]
            load_step(K, k_buffer, k_ready, k_free, done + index, place, STAGES)
            load_step(V, v_buffer, v_ready, v_free, done + index, place, STAGES)
        done += steps


@gluon.jit
def row_delta(
    Out, GradLse, Delta, grad, row, here, before, batch, head, out_strides,
    DP: gl.constexpr, DV: gl.constexpr, SUMS: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
):  # fmt: skip
    """The row sums of out * dout, less the gradient of the log-sum-exp; written, and returned."""
    column = gl.arange(0, DP, gl.SliceLayout(0, SUMS))
    rows = Out + batch.to(gl.int64) * out_strides[0] + head.to(gl.int64) * out_strides[1]
    rows += row.to(gl.int64)[:, None] * out_strides[2] + column[None, :]
    out = gl.load(rows, mask=here[:, None] & (column[None, :] < DV), other=0.0).to(gl.float32)
    delta = gl.sum(out * grad.load(SUMS).to(gl.float32), 1)
    if HAS_GRAD_LSE:
        delta -= gl.load(GradLse + before + row, mask=here, other=0.0)
    gl.store(Delta + before + row, delta, mask=here)
    return delta


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, GradLse, Lse, Delta, Sum, Final, Table, Header, Data, RowBounds,
    buffers, barriers, scale, out_strides, final_strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its queries."""
    q_buffer, g_buffer, k_buffer, v_buffer = buffers
    ready, free, k_ready, k_free, v_ready, v_free = barriers
    heads, rows, table_batch, works = numbers[0], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    OF_SCORES: gl.constexpr = gl.SliceLayout(1, S)
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = scale * LOG2E
    done, turns = 0, turns_of(works)  # steps of earlier turns
    upcoming = tile_of(0, Table, numbers, STEP, HAS_FULL)
    for turn in range(turns):
        batch, head, slot, outer_base, first, count, steps, masked, full_first = upcoming
        held = turn % TILES
        q = q_buffer.index(held * GROUPS + GROUP).reshape((ROWS, DP))
        grad = g_buffer.index(held * GROUPS + GROUP).reshape((ROWS, DP))
        mbarrier.wait(ready.index(held), (turn // TILES) & 1)
        arrived(k_ready, done, STAGES)
        s_begun = product(q, k_buffer, done, STEP, STAGES, DP, S)
        if ENDS:  # the last tile's results are written by now
            tma.store_wait(0)
            mbarrier.arrive(free.index((turn + 1) % TILES), count=1, pred=turn > 0)
        limits = limits_of(Header)
        oa, inside, about = bounds_of(
            limits, slot, outer_base, first, count, head, batch, table_batch, rows, Header, Data, RowBounds,
            BOUNDS, ROW_BOUNDS, GROUP, OF_SCORES,
        )  # fmt: skip
        before = (batch * heads + head).to(gl.int64) * rows
        lse = gl.load(Lse + before + oa, mask=inside, other=float("inf")) * LOG2E
        lse = gl.where(lse == -float("inf"), float("inf"), lse)  # a row without keys: all weights 0
        if MAKES_DELTA:
            row, here = rows_of(limits, slot, outer_base, GROUP, OF_SUMS)
            made = row_delta(
                Out, GradLse, Delta, grad, row, here, before, batch, head, out_strides,
                DP, DV, SUMS, HAS_GRAD_LSE,
            )  # fmt: skip
            delta = gl.convert_layout(made, OF_SCORES)
        else:
            delta = gl.load(Delta + before + oa, mask=inside, other=0.0)
        dq = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
        arrived(v_ready, done, STAGES)
        dp_begun = product(grad, v_buffer, done, STEP, STAGES, DP, S)
        s, dp = warpgroup_mma_wait(0, deps=[s_begun, dp_begun])
        mbarrier.arrive(v_free.index(done % STAGES), count=1)
        ds = gl.exp2(s * sharpness - lse[:, None]) * (dp - delta[:, None])
        at = first + step_at(0, steps, masked, full_first) * STEP
        ds = attended(ds, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
        slopes = gl.convert_layout(ds, WEIGHTS)
        arrived(k_ready, done + 1, STAGES, steps > 1)
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (gl.maximum(masked, 1), steps) if FULL else (1, masked)
            for index in range(begin, end):
                now, last = done + index, done + index - 1
                s_begun = product(q, k_buffer, now, STEP, STAGES, DP, S)
                dq_begun = weighed(slopes.to(dtype), k_buffer, last, dq, STEP, STAGES, DP)
                arrived(v_ready, now, STAGES)
                dp_begun = product(grad, v_buffer, now, STEP, STAGES, DP, S)
                s = warpgroup_mma_wait(2, deps=[s_begun])
                p = gl.exp2(s * sharpness - lse[:, None])
                # a wait for the next keys, and so a branch, keeps the exponentials before the products' end
                arrived(k_ready, now + 1, STAGES, index + 1 < steps)
                dq, dp, p = warpgroup_mma_wait(0, deps=[dq_begun, dp_begun, p])
                mbarrier.arrive(k_free.index(last % STAGES), count=1)
                mbarrier.arrive(v_free.index(now % STAGES), count=1)
                ds = p * (dp - delta[:, None])
                if not FULL:
                    at = first + step_at(index, steps, masked, full_first) * STEP
                    ds = attended(ds, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                slopes = gl.convert_layout(ds, WEIGHTS)
        upcoming = tile_of(gl.minimum(turn + 1, turns - 1), Table, numbers, STEP, HAS_FULL)
        done += steps
        dq_begun = weighed(slopes.to(dtype), k_buffer, done - 1, dq, STEP, STAGES, DP)
        dq = warpgroup_mma_wait(0, deps=[dq_begun])
        mbarrier.arrive(k_free.index((done - 1) % STAGES), count=1)
        write(
            Rows, Final, Sum, dq * scale, q_buffer.index(held * GROUPS + GROUP), limits_of(Header),
            slot, outer_base, batch, head, heads, rows, final_strides,
            GROUP, D, DP, SUMS, CONTINUES, ENDS,
        )  # fmt: skip
        if not ENDS:
            mbarrier.arrive(free.index(held), count=1)
    if ENDS:
        tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works"])
def attention_bwd_dq_hopper_kernel(
    Q, G, K, V, Rows, Out, GradLse, Lse, Delta, Sum, Final, Table, Header, Data, RowBounds, scale,
    o_batch, o_head, o_row, f_batch, f_head, f_row,
    heads, share, rows, tiles, table_batch, table_head, works,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of queries; the first part that holds all of them also makes Delta."""
    q_buffer = gl.allocate_shared_memory(Q.dtype, [TILES * GROUPS, 1, 1, ROWS, DP], Q.layout)
    g_buffer = gl.allocate_shared_memory(G.dtype, [TILES * GROUPS, 1, 1, ROWS, DP], G.layout)
    k_buffer = gl.allocate_shared_memory(K.dtype, [STAGES, 1, 1, STEP, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [STAGES, 1, 1, STEP, DP], V.layout)
    ready, free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers = (q_buffer, g_buffer, k_buffer, v_buffer)
    barriers = (ready, free, k_ready, k_free, v_ready, v_free)
    out_strides, final_strides = (o_batch, o_head, o_row), (f_batch, f_head, f_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, GradLse, Lse, Delta, Sum, Final, Table, Header, Data, RowBounds,
                buffers, barriers, scale, out_strides, final_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, MAKES_DELTA, HAS_GRAD_LSE,
            )),
            (compute, (
                1, Rows, Out, GradLse, Lse, Delta, Sum, Final, Table, Header, Data, RowBounds,
                buffers, barriers, scale, out_strides, final_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, MAKES_DELTA, HAS_GRAD_LSE,
            )),
            (load, (Q, G, K, V, Table, buffers, barriers, numbers, STEP, STAGES, HAS_FULL)),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip
