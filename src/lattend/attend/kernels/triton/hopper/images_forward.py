"""The forward pass on images, on Hopper, in Gluon: forward.py with boxes for lines (images.py)."""

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
from lattend.attend.kernels.triton.hopper.forward import softened
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
from lattend.attend.kernels.triton.hopper.masks import OR_LEAST, where_set
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
    LN2,
    LOADER,
    LOG2E,
    REGISTERS,
    ROWS,
    TILES,
    notes,
    tile_noted,
)


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, Lse, Header, Data, Shares, buffers, barriers, scale, strides, numbers,
    BOUNDS: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr,
    STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: output and log-sum-exp of its queries."""
    q_buffer, k_buffer, v_buffer, noted = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free = barriers
    heads = numbers[0]
    STEP: gl.constexpr = BY * BX
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DVP, 16])
    OF_SCORES: gl.constexpr = gl.SliceLayout(1, S)
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = gl.maximum(scale, 1e-20) * LOG2E  # so that -inf times it stays -inf
    wide = gl.load(Header + 6).to(gl.int32)
    rows = gl.load(Header + 4) * wide
    done = 0  # steps of earlier turns
    _, turns = share_of(Shares)
    for turn in range(turns):
        held = (turn % TILES) * GROUPS + GROUP
        q = q_buffer.index(held).reshape((ROWS, DP))
        arrived(q_ready, turn, TILES)
        tile = tile_noted(noted, turn, MORE)
        begin, end, given, free_end = steps_of(tile, turn, GROUP)
        bounds = box_bounds(tile, heads, Header, Data, BOUNDS, GROUP, TY, TX, OF_SCORES)
        pass_over(done + given, done + gl.minimum(begin, free_end), k_ready, k_free, v_ready, v_free, STAGES)
        arrived(k_ready, done + begin, STAGES)
        s_begun = product(q, k_buffer, done + begin, STEP, STAGES, DP, S)
        m = gl.full([ROWS], -float("inf"), gl.float32, OF_SCORES)
        total = gl.full([ROWS], 0.0, gl.float32, OF_SCORES)
        o = gl.full([ROWS, DVP], 0.0, gl.float32, SUMS)
        y, x = begin // tile[5] * BY, 0
        kept = box_bits(y, x, bounds, S, BY, BX)
        s = warpgroup_mma_wait(0, deps=[s_begun])
        mbarrier.arrive(k_free.index((done + begin) % STAGES), count=1, pred=begin < free_end)
        p, m, total, shrink = softened(where_set(s, kept, OR_LEAST, S), m, total, sharpness)
        weights = gl.convert_layout(p, WEIGHTS)
        give_back(q_free, turn + 1, turn > 0)
        arrived(k_ready, done + begin + 1, STAGES, begin + 1 < end)
        for index in range(begin + 1, end):
            now, last = done + index, done + index - 1
            s_begun = product(q, k_buffer, now, STEP, STAGES, DP, S)
            arrived(v_ready, last, STAGES)
            o_begun = weighed(weights.to(dtype), v_buffer, last, o, True, STEP, STAGES, DVP)
            y, x = following_box(y, x, tile[5], BY, BX)
            kept = box_bits(y, x, bounds, S, BY, BX)
            s = warpgroup_mma_wait(1, deps=[s_begun])
            mbarrier.arrive(k_free.index(now % STAGES), count=1, pred=index < free_end)
            p, m, total, shrink = softened(where_set(s, kept, OR_LEAST, S), m, total, sharpness)
            # a wait for the next keys, and so a branch, keeps the exponentials before the wait for o
            arrived(k_ready, now + 1, STAGES, index + 1 < end)
            o, p = warpgroup_mma_wait(0, deps=[o_begun, p])
            mbarrier.arrive(v_free.index(last % STAGES), count=1, pred=index <= free_end)
            o = o * gl.convert_layout(shrink, OF_SUMS)[:, None]
            weights = gl.convert_layout(p, WEIGHTS)
        last = done + end - 1
        arrived(v_ready, last, STAGES)
        o_begun = weighed(weights.to(dtype), v_buffer, last, o, True, STEP, STAGES, DVP)
        place, inside = box_rows(tile, GROUP, TY, TX, wide, OF_SCORES)
        lse = gl.where(total == 0.0, -float("inf"), (m + gl.log2(total)) * LN2)
        gl.store(Lse + rows * tile[0] + place, lse, mask=inside)
        each = gl.convert_layout(1.0 / gl.where(total == 0.0, 1.0, total), OF_SUMS)
        o = warpgroup_mma_wait(0, deps=[o_begun])
        mbarrier.arrive(v_free.index(last % STAGES), count=1, pred=end <= free_end)
        box = q_buffer.index(held)
        lay_box(Out, o * each[:, None], box, tile, heads, strides, Header, GROUP, DV, DVP, TY, TX, SUMS)
        if whole_box(tile, GROUP, TY, TX):
            fence_async_shared()
            to = [tile[0] // heads, tile[0] % heads, tile[1] + GROUP * TY, tile[2], 0]
            tma.async_copy_shared_to_global(Rows, to, box)
        pass_over(done + end, done + free_end, k_ready, k_free, v_ready, v_free, STAGES)
        done += tile[6] - tile[KEPT]
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share"])
def attention_fwd_images_kernel(
    Q, K, V, Rows, Out, Lse, Table, Shares, Header, Data, scale, o_batch, o_head, o_row,
    heads, share, tiles, table_batch, table_head,
    BOUNDS: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr,
    STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
):  # fmt: skip
    """Out and Lse of tiles of queries."""
    q_buffer = gl.allocate_shared_memory(Q.dtype, [TILES * GROUPS, 1, 1, TY, TX, DP], Q.layout)
    k_buffer = gl.allocate_shared_memory(K.dtype, [STAGES, 1, 1, BY, BX, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [STAGES, 1, 1, BY, BX, DVP], V.layout)
    q_ready, q_free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers = (q_buffer, k_buffer, v_buffer, notes(TILES, MORE))
    barriers, strides = (q_ready, q_free, k_ready, k_free, v_ready, v_free), (o_batch, o_head, o_row)
    numbers = (heads, tiles, table_batch, table_head)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, Lse, Header, Data, Shares, buffers, barriers, scale, strides, numbers,
                BOUNDS, TY, TX, BY, BX, STAGES, DP, DV, DVP,
            )),
            (compute, (
                1, Rows, Out, Lse, Header, Data, Shares, buffers, barriers, scale, strides, numbers,
                BOUNDS, TY, TX, BY, BX, STAGES, DP, DV, DVP,
            )),
            (load_rows, ((Q,), (q_buffer,), buffers[3], q_ready, q_free, Table, Shares, numbers, TY)),
            (load_steps, (
                K, V, k_buffer, v_buffer, barriers[2:], Table, Shares, numbers, share, BY, BX, STAGES,
            )),
        ],
        [4, 1, 1],
        [REGISTERS, LOADER, LOADER],
    )  # fmt: skip
