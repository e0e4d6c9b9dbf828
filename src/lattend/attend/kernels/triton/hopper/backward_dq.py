"""Gradients of queries on Hopper, in Gluon, as backward.py's first kernel makes them for any chip.

As in forward.py one warp loads and two groups of four compute, 64 queries each. A tile has its queries and
the gradients of its output in shared memory; steps bring keys and values. While the tensor cores add one
step's slopes to the gradient and multiply with values, a group takes the exponentials of the next scores; the
groups begin their products in turn. Slopes go from product to product in registers: as one gives them, the
next takes them. The keys of three steps are in use at once, so that there are three stages at least.
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
from lattend.attend.kernels.triton.hopper.masks import (
    OR_ZERO,
    bits_of,
    bounds_at,
    bounds_of,
    where_pairs_kept,
    where_set,
)
from lattend.attend.kernels.triton.hopper.shared import (
    arrived,
    barriers_of,
    begun,
    give_back,
    hand_on,
    has_sums,
    lay,
    load_either,
    load_tile,
    pass_over,
    product,
    room,
    send,
    take_turn,
    weighed,
)
from lattend.attend.kernels.triton.hopper.tiles import (
    GROUPS,
    JOINED,
    LOADER,
    LOG2E,
    OWN,
    REGISTERS,
    ROWS,
    TILES,
    corner_of,
    early_of,
    is_joined,
    notes,
    place_of,
    rows_of,
    steps_left_out,
    tile_noted,
    tile_of_queries,
    turns_of,
)


@gluon.jit
def load(
    Q, G, K, V, JoinedK, JoinedV, Table, Header, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr, JOINS: gl.constexpr,
    OUTER: gl.constexpr, INNER: gl.constexpr, BY_HEAD: gl.constexpr, LEAVES: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that loads."""
    q_buffer, g_buffer, k_buffer, v_buffer, noted = buffers
    ready, free, k_ready, k_free, v_ready, v_free = barriers
    share = numbers[1]
    APART: gl.constexpr = JOINS and INNER > 0
    done = 0  # steps of earlier turns
    turns = turns_of(numbers[6])
    tile = tile_of_queries(
        0, Table, Header, numbers, STEP, HAS_FULL, JOINS, 128, OUTER, INNER, BY_HEAD, LEAVES
    )
    load_tile((Q, G), (q_buffer, g_buffer), noted, ready, free, 0, tile, OUTER)
    for turn in range(turns):
        tile = tile_of_queries(
            turn, Table, Header, numbers, STEP, HAS_FULL, JOINS, 128, OUTER, INNER, BY_HEAD, LEAVES
        )
        for index in range(tile[6]):
            place, now = corner_of(index, tile, share, STEP, JOINS, INNER), done + index
            theirs = is_joined(index, tile) if JOINS else False
            load_either(K, JoinedK, theirs, k_buffer, k_ready, k_free, now, place, STAGES, APART)
            load_either(V, JoinedV, theirs, v_buffer, v_ready, v_free, now, place, STAGES, APART)
            if (index == early_of(tile)) & (turn + 1 < turns):
                following = tile_of_queries(
                    turn + 1, Table, Header, numbers, STEP, HAS_FULL, JOINS, 128, OUTER, INNER, BY_HEAD,
                    LEAVES,
                )  # fmt: skip
                load_tile((Q, G), (q_buffer, g_buffer), noted, ready, free, turn + 1, following, OUTER)
        done += tile[6]


@gluon.jit
def row_delta(
    Out, GradLse, Delta, grad, tile, before, out_strides,
    DP: gl.constexpr, DV: gl.constexpr, GROUP: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
    OUTER: gl.constexpr = 0,
):  # fmt: skip
    """The row sums of out * dout, less the gradient of the log-sum-exp; written, and returned."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 8], [256 // DP, DP // 8], [4, 1], [1, 0])  # 16 bytes a thread
    row, here = rows_of(tile, GROUP, gl.SliceLayout(1, LAYOUT), OUTER)
    column = gl.arange(0, DP, gl.SliceLayout(0, LAYOUT))
    rows = Out + tile[0].to(gl.int64) * out_strides[0] + tile[1].to(gl.int64) * out_strides[1]
    rows += row.to(gl.int64)[:, None] * out_strides[2] + column[None, :]
    out = gl.load(rows, mask=here[:, None] & (column[None, :] < DV), other=0.0).to(gl.float32)
    delta = gl.sum(out * grad.load(LAYOUT).to(gl.float32), 1)
    if HAS_GRAD_LSE:
        delta -= gl.load(GradLse + before + row, mask=here, other=0.0)
    gl.store(Delta + before + row, delta, mask=here)
    return delta


@gluon.jit
def asked(
    tile, grad, Out, GradLse, Lse, Delta, Header, Data, RowBounds, out_strides, heads, rows, table_batch,
    BOUNDS: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, S: gl.constexpr,
    GROUP: gl.constexpr, ROW_BOUNDS: gl.constexpr, MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
    OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0,
):  # fmt: skip
    """What a tile's steps need of its rows: bounds, log-sum-exp and delta."""
    OF_SCORES: gl.constexpr = gl.SliceLayout(1, S)
    about = bounds_of(
        tile, table_batch, rows, Header, Data, RowBounds, BOUNDS, ROW_BOUNDS, GROUP, OF_SCORES,
        OWN, OUTER, INNER,
    )  # fmt: skip
    oa, inside = rows_of(tile, GROUP, OF_SCORES, OUTER)
    before = (tile[0] * heads + tile[1]).to(gl.int64) * rows
    lse = gl.load(Lse + before + oa, mask=inside, other=float("inf")) * LOG2E
    lse = gl.where(lse == -float("inf"), float("inf"), lse)  # a row without keys: all weights 0
    if MAKES_DELTA:
        made = row_delta(
            Out, GradLse, Delta, grad, tile, before, out_strides, DP, DV, GROUP, HAS_GRAD_LSE, OUTER
        )
        delta = gl.convert_layout(made, OF_SCORES)
    else:
        delta = gl.load(Delta + before + oa, mask=inside, other=0.0)
    return about, lse, delta


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, GradLse, Lse, Delta, Sum, Final, OfRows, Header, JoinedHeader, Data,
    RowBounds, buffers, barriers, order, scale, out_strides, final_strides, numbers,
    JOINED_BOUNDS: gl.constexpr, BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
    OUTER: gl.constexpr, INNER: gl.constexpr, LEAVES: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its queries.

    If groups LEAVE out steps of a tile, its first and last ones, they let these pass, and take no turns.
    """
    q_buffer, g_buffer, k_buffer, v_buffer, noted = buffers
    ready, free, k_ready, k_free, v_ready, v_free = barriers
    heads, rows, table_batch, works = numbers[0], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    JOINS: gl.constexpr = JOINED_BOUNDS is not None
    MORE: gl.constexpr = 3 * JOINS + 2 * LEAVES + 3 * (OUTER + INNER > 0)
    sharpness = scale * LOG2E
    unscaled = gl.where(scale == 0.0, 0.0, 1.0 / gl.where(scale == 0.0, 1.0, scale))
    done = 0  # steps of earlier tiles
    for turn in range(turns_of(works)):
        held = (turn % TILES) * GROUPS + GROUP
        q, grad = q_buffer.index(held).reshape((ROWS, DP)), g_buffer.index(held).reshape((ROWS, DP))
        arrived(ready, turn, TILES)
        opening, ending = 0, 0
        if LEAVES:
            opening, ending = steps_left_out(tile_noted(noted, turn, MORE), GROUP)
            pass_over(done, done + opening, k_ready, k_free, v_ready, v_free, STAGES)
        first = done + opening
        arrived(k_ready, first, STAGES)
        s_begun = product(q, k_buffer, first, STEP, STAGES, DP, S)
        arrived(v_ready, first, STAGES)
        dp_begun = product(grad, v_buffer, first, STEP, STAGES, DP, S)  # before the rows' outputs are read
        give_back(free, turn + 1, turn > 0)
        tile = tile_noted(noted, turn, MORE)
        steps, masked = tile[6] - ending, tile[7] - ending
        about, lse, delta = asked(
            tile, grad, Out, GradLse, Lse, Delta, Header, Data, RowBounds,
            out_strides, heads, rows, table_batch,
            BOUNDS, DP, DV, S, GROUP, ROW_BOUNDS, MAKES_DELTA, HAS_GRAD_LSE, OUTER, INNER,
        )  # fmt: skip
        if CONTINUES:
            known = has_sums(OfRows, tile, GROUP, SUMS, SOME, OUTER)
            dq = begun(Sum, tile, known, heads, rows, GROUP, D, DP, SUMS, OUTER) * unscaled
        else:
            dq = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
        s, dp = warpgroup_mma_wait(0, deps=[s_begun, dp_begun])
        mbarrier.arrive(v_free.index(first % STAGES), count=1)
        ds = gl.exp2(s * sharpness - lse[:, None]) * (dp - delta[:, None])
        joined = about
        if JOINS:
            joined = bounds_of(
                tile, table_batch, rows, JoinedHeader, Data, RowBounds, JOINED_BOUNDS, False, GROUP,
                gl.SliceLayout(1, S), JOINED,
            )  # fmt: skip
        at = place_of(opening, tile, STEP, JOINS)
        ds = where_set(ds, bits_of(at, joined, S, STEP), OR_ZERO, S)
        if PAIRS is not None and not JOINS:
            ds = where_pairs_kept(ds, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
        slopes = gl.convert_layout(ds, WEIGHTS)
        arrived(k_ready, first + 1, STAGES, steps > opening + 1)
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (masked, steps) if FULL else (opening + 1, masked)
            for index in range(begin, end):
                now, last = done + index, done + index - 1
                if not LEAVES:
                    take_turn(order, GROUP, now - turn - 1)
                s_begun = product(q, k_buffer, now, STEP, STAGES, DP, S)
                dq_begun = weighed(slopes.to(dtype), k_buffer, last, dq, True, STEP, STAGES, DP)
                arrived(v_ready, now, STAGES)
                dp_begun = product(grad, v_buffer, now, STEP, STAGES, DP, S)
                if not LEAVES:
                    hand_on(order, GROUP)
                if not FULL:
                    at = place_of(index, tile, STEP, JOINS)
                    now_asked = bounds_at(index, tile, about, joined, JOINS)
                    kept = bits_of(at, now_asked, S, STEP)
                s = warpgroup_mma_wait(2, deps=[s_begun])
                p = gl.exp2(s * sharpness - lse[:, None])
                # a wait for the next keys, and so a branch, keeps the exponentials before the products' end
                arrived(k_ready, now + 1, STAGES, index + 1 < steps)
                dq, dp, p = warpgroup_mma_wait(0, deps=[dq_begun, dp_begun, p])
                mbarrier.arrive(k_free.index(last % STAGES), count=1)
                mbarrier.arrive(v_free.index(now % STAGES), count=1)
                ds = p * (dp - delta[:, None])
                if not FULL:
                    ds = where_set(ds, kept, OR_ZERO, S)
                    if PAIRS is not None:
                        ds = where_pairs_kept(ds, at, now_asked, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                slopes = gl.convert_layout(ds, WEIGHTS)
        done += steps
        dq_begun = weighed(slopes.to(dtype), k_buffer, done - 1, dq, True, STEP, STAGES, DP)
        dq = warpgroup_mma_wait(0, deps=[dq_begun])
        mbarrier.arrive(k_free.index((done - 1) % STAGES), count=1)
        if LEAVES:
            pass_over(done, done + ending, k_ready, k_free, v_ready, v_free, STAGES)
            done += ending
        lay(
            Final, Sum, OfRows, dq * scale, q_buffer.index(held), tile, heads, rows, final_strides,
            GROUP, D, DP, SUMS, False, ENDS, False, OUTER,
        )  # fmt: skip
        send((Rows,), (q_buffer,), held, tile, GROUP, ENDS, OUTER)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works"])
def attention_bwd_dq_hopper_kernel(
    Q, G, K, V, JoinedK, JoinedV, Rows, Out, GradLse, Lse, Delta, Sum, Final, OfRows,
    Table, Header, JoinedHeader, Data, RowBounds, scale,
    o_batch, o_head, o_row, f_batch, f_head, f_row,
    heads, share, rows, tiles, table_batch, table_head, works,
    JOINED_BOUNDS: gl.constexpr, BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
    OUTER: gl.constexpr, INNER: gl.constexpr, BY_HEAD: gl.constexpr, LEAVES: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of queries; the first part of them also makes Delta.

    Where JOINED_BOUNDS are given, those of another part, its steps come before a tile's own. OUTER and INNER
    are the orders of queries and keys (orders.py). If so many groups LEAVE out steps, the table says which
    (skippable_steps.py).
    """
    q_buffer, g_buffer = room(Q, TILES * GROUPS), room(G, TILES * GROUPS)
    k_buffer, v_buffer = room(K, STAGES), room(V, STAGES)
    ready, free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    JOINS: gl.constexpr = JOINED_BOUNDS is not None
    MORE: gl.constexpr = 3 * JOINS + 2 * LEAVES + 3 * (OUTER + INNER > 0)
    buffers = (q_buffer, g_buffer, k_buffer, v_buffer, notes(2, MORE))
    barriers, order = (ready, free, k_ready, k_free, v_ready, v_free), barriers_of(GROUPS, 1)
    out_strides, final_strides = (o_batch, o_head, o_row), (f_batch, f_head, f_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, GradLse, Lse, Delta, Sum, Final, OfRows, Header, JoinedHeader, Data, RowBounds,
                buffers, barriers, order, scale, out_strides, final_strides, numbers,
                JOINED_BOUNDS, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, SOME, MAKES_DELTA, HAS_GRAD_LSE, OUTER, INNER, LEAVES,
            )),
            (compute, (
                1, Rows, Out, GradLse, Lse, Delta, Sum, Final, OfRows, Header, JoinedHeader, Data, RowBounds,
                buffers, barriers, order, scale, out_strides, final_strides, numbers,
                JOINED_BOUNDS, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, SOME, MAKES_DELTA, HAS_GRAD_LSE, OUTER, INNER, LEAVES,
            )),
            (load, (
                Q, G, K, V, JoinedK, JoinedV, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, JOINS, OUTER, INNER, BY_HEAD, LEAVES,
            )),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip
