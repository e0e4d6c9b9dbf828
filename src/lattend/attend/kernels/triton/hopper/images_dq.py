"""Gradients of queries on images, on Hopper, in Gluon: backward_dq.py with boxes for lines (images.py)."""

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
    box_rows,
    following_box,
    lay_box,
    load_rows,
    load_steps,
    share_of,
    steps_of,
    whole_box,
)
from lattend.attend.kernels.triton.hopper.masks import OR_ZERO, where_set
from lattend.attend.kernels.triton.hopper.shared import (
    arrived,
    barriers_of,
    give_back,
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
    notes,
    tile_noted,
)


@gluon.jit
def box_out(
    Out, tile, heads, wide, strides, LAYOUT: gl.constexpr,
    DP: gl.constexpr, DV: gl.constexpr, GROUP: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr,
):  # fmt: skip
    """The output of a group's queries."""
    place, here = box_rows(tile, GROUP, TY, TX, wide, gl.SliceLayout(1, LAYOUT))
    column = gl.arange(0, DP, gl.SliceLayout(0, LAYOUT))
    rows = Out + (tile[0] // heads).to(gl.int64) * strides[0] + (tile[0] % heads).to(gl.int64) * strides[1]
    rows += place.to(gl.int64)[:, None] * strides[2] + column[None, :]
    return gl.load(rows, mask=here[:, None] & (column[None, :] < DV), other=0.0)


@gluon.jit
def box_delta(
    out, GradLse, Delta, grad, tile, before, wide, LAYOUT: gl.constexpr,
    GROUP: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
):  # fmt: skip
    """The row sums of out * dout, less the gradient of the log-sum-exp; written, and returned."""
    place, here = box_rows(tile, GROUP, TY, TX, wide, gl.SliceLayout(1, LAYOUT))
    delta = gl.sum(out.to(gl.float32) * grad.load(LAYOUT).to(gl.float32), 1)
    if HAS_GRAD_LSE:
        delta -= gl.load(GradLse + before + place, mask=here, other=0.0)
    gl.store(Delta + before + place, delta, mask=here)
    return delta


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, GradLse, Lse, Delta, Final, Header, Data, Shares, buffers, barriers,
    scale, out_strides, final_strides, numbers,
    BOUNDS: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr,
    STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its queries."""
    q_buffer, g_buffer, k_buffer, v_buffer, noted = buffers
    ready, free, k_ready, k_free, v_ready, v_free = barriers
    heads = numbers[0]
    STEP: gl.constexpr = BY * BX
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    OF_SCORES: gl.constexpr = gl.SliceLayout(1, S)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    OF_OUT: gl.constexpr = gl.BlockedLayout([1, 8], [256 // DP, DP // 8], [4, 1], [1, 0])  # 16 bytes a thread
    sharpness = scale * LOG2E
    wide = gl.load(Header + 6).to(gl.int32)
    rows = gl.load(Header + 4) * wide
    done = 0  # steps of earlier turns
    _, turns = share_of(Shares)
    for turn in range(turns):
        held = (turn % TILES) * GROUPS + GROUP
        q, grad = q_buffer.index(held).reshape((ROWS, DP)), g_buffer.index(held).reshape((ROWS, DP))
        arrived(ready, turn, TILES)
        tile = tile_noted(noted, turn, MORE)
        place, inside = box_rows(tile, GROUP, TY, TX, wide, OF_SCORES)
        before = rows * tile[0]
        lse = gl.load(Lse + before + place, mask=inside, other=float("inf")) * LOG2E
        if MAKES_DELTA:  # what comes from far is asked for first
            out = box_out(Out, tile, heads, wide, out_strides, OF_OUT, DP, DV, GROUP, TY, TX)
        begin, end, given, free_end = steps_of(tile, turn, GROUP)
        bounds = box_bounds(tile, heads, Header, Data, BOUNDS, GROUP, TY, TX, OF_SCORES)
        pass_over(done + given, done + gl.minimum(begin, free_end), k_ready, k_free, v_ready, v_free, STAGES)
        arrived(k_ready, done + begin, STAGES)
        s_begun = product(q, k_buffer, done + begin, STEP, STAGES, DP, S)
        arrived(v_ready, done + begin, STAGES)
        dp_begun = product(grad, v_buffer, done + begin, STEP, STAGES, DP, S)
        lse = gl.where(lse == -float("inf"), float("inf"), lse)  # a row without keys: all weights 0
        if MAKES_DELTA:
            made = box_delta(
                out, GradLse, Delta, grad, tile, before, wide, OF_OUT, GROUP, TY, TX, HAS_GRAD_LSE
            )
            delta = gl.convert_layout(made, OF_SCORES)
        else:
            delta = gl.load(Delta + before + place, mask=inside, other=0.0)
        y, x = begin // tile[5] * BY, 0
        kept = box_bits(y, x, bounds, S, BY, BX)
        s, dp = warpgroup_mma_wait(0, deps=[s_begun, dp_begun])
        mbarrier.arrive(v_free.index((done + begin) % STAGES), count=1, pred=begin < free_end)
        ds = gl.exp2(s * sharpness - lse[:, None]) * (dp - delta[:, None])
        slopes = gl.convert_layout(where_set(ds, kept, OR_ZERO, S), WEIGHTS)
        dq = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
        give_back(free, turn + 1, turn > 0)
        arrived(k_ready, done + begin + 1, STAGES, begin + 1 < end)
        for index in range(begin + 1, end):
            now, last = done + index, done + index - 1
            s_begun = product(q, k_buffer, now, STEP, STAGES, DP, S)
            dq_begun = weighed(slopes.to(dtype), k_buffer, last, dq, True, STEP, STAGES, DP)
            arrived(v_ready, now, STAGES)
            dp_begun = product(grad, v_buffer, now, STEP, STAGES, DP, S)
            y, x = following_box(y, x, tile[5], BY, BX)
            kept = box_bits(y, x, bounds, S, BY, BX)
            s = warpgroup_mma_wait(2, deps=[s_begun])
            p = gl.exp2(s * sharpness - lse[:, None])
            # a wait for the next keys, and so a branch, keeps the exponentials before the products' end
            arrived(k_ready, now + 1, STAGES, index + 1 < end)
            dq, dp, p = warpgroup_mma_wait(0, deps=[dq_begun, dp_begun, p])
            mbarrier.arrive(k_free.index(last % STAGES), count=1, pred=index <= free_end)
            mbarrier.arrive(v_free.index(now % STAGES), count=1, pred=index < free_end)
            slopes = gl.convert_layout(where_set(p * (dp - delta[:, None]), kept, OR_ZERO, S), WEIGHTS)
        last = done + end - 1
        dq_begun = weighed(slopes.to(dtype), k_buffer, last, dq, True, STEP, STAGES, DP)
        dq = warpgroup_mma_wait(0, deps=[dq_begun])
        mbarrier.arrive(k_free.index(last % STAGES), count=1, pred=end <= free_end)
        box = q_buffer.index(held)
        lay_box(Final, dq * scale, box, tile, heads, final_strides, Header, GROUP, D, DP, TY, TX, SUMS)
        if whole_box(tile, GROUP, TY, TX):
            fence_async_shared()
            to = [tile[0] // heads, tile[0] % heads, tile[1] + GROUP * TY, tile[2], 0]
            tma.async_copy_shared_to_global(Rows, to, box)
        pass_over(done + end, done + free_end, k_ready, k_free, v_ready, v_free, STAGES)
        done += tile[6] - tile[KEPT]
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share"])
def attention_bwd_dq_images_kernel(
    Q, G, K, V, Rows, Out, GradLse, Lse, Delta, Final, Table, Shares, Header, Data, scale,
    o_batch, o_head, o_row, f_batch, f_head, f_row,
    heads, share, tiles, table_batch, table_head,
    BOUNDS: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr,
    STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    MAKES_DELTA: gl.constexpr, HAS_GRAD_LSE: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of queries; it also makes Delta."""
    q_buffer = gl.allocate_shared_memory(Q.dtype, [TILES * GROUPS, 1, 1, TY, TX, DP], Q.layout)
    g_buffer = gl.allocate_shared_memory(G.dtype, [TILES * GROUPS, 1, 1, TY, TX, DP], G.layout)
    k_buffer = gl.allocate_shared_memory(K.dtype, [STAGES, 1, 1, BY, BX, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [STAGES, 1, 1, BY, BX, DP], V.layout)
    ready, free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers = (q_buffer, g_buffer, k_buffer, v_buffer, notes(TILES, MORE))
    barriers = (ready, free, k_ready, k_free, v_ready, v_free)
    out_strides, final_strides = (o_batch, o_head, o_row), (f_batch, f_head, f_row)
    numbers = (heads, tiles, table_batch, table_head)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, GradLse, Lse, Delta, Final, Header, Data, Shares, buffers, barriers, scale,
                out_strides, final_strides, numbers, BOUNDS, TY, TX, BY, BX, STAGES, D, DV, DP,
                MAKES_DELTA, HAS_GRAD_LSE,
            )),
            (compute, (
                1, Rows, Out, GradLse, Lse, Delta, Final, Header, Data, Shares, buffers, barriers, scale,
                out_strides, final_strides, numbers, BOUNDS, TY, TX, BY, BX, STAGES, D, DV, DP,
                MAKES_DELTA, HAS_GRAD_LSE,
            )),
            (load_rows, (
                (Q, G), (q_buffer, g_buffer), buffers[4], ready, free, Table, Shares, numbers, TY,
            )),
            (load_steps, (
                K, V, k_buffer, v_buffer, barriers[2:], Table, Shares, numbers, share, BY, BX, STAGES,
            )),
        ],
        [4, 1, 1],
        [REGISTERS, LOADER, LOADER],
    )  # fmt: skip
