"""The forward kernel on Hopper for queries, keys and values of 8 bits (e4m3), in Gluon; results in bfloat16.

It is forward.py with products of 8 bits, which take half the time. What differs:

- Tensor cores take 8-bit factors whose products are summed along memory only, so values come transposed
  (transposed.py), keys along memory. Within 16 of them keys are in another order: the one in which a
  thread that made scores of some keys has to hand on their weights. So weights never leave their thread.
- Weights are rounded to e4m3 too. The largest of a row so far is 2**SHIFT, and e4m3 reaches from 2**-9 on.
- Tensor cores add products of 8 bits with about 14 bits. So they add those of one step, and steps are added
  in float32, in the instruction that shrinks the earlier sums.
- A head's numbers are multiplied by its scales: those of queries and keys sharpen the softmax, that of
  values is in the result.
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
    warpgroup_mma,
    warpgroup_mma_wait,
)

from lattend.attend.kernels.triton.geometry import PLAIN
from lattend.attend.kernels.triton.hopper.forward import finish
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
    load_step,
    load_tile,
    product,
)
from lattend.attend.kernels.triton.hopper.tiles import (
    GROUPS,
    LOADER,
    LOG2E,
    REGISTERS,
    ROWS,
    TILES,
    early_of,
    notes,
    place_of,
    tile_noted,
    tile_of,
    turns_of,
)

PACK: gl.constexpr = gl.constexpr(
    "{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, $2, $1; "
    "cvt.rn.satfinite.e4m3x2.f32 high, $4, $3; mov.b32 $0, {low, high}; }"
)
SHIFT: gl.constexpr = gl.constexpr(8.0)  # the largest weight is 2**8; e4m3 ends at 448
KEYS_TOGETHER: gl.constexpr = gl.constexpr(16)  # whose order is another; also what TMA begins with, in bytes


@gluon.jit
def load(
    Q, K, V, Table, Header, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that loads."""
    q_buffer, k_buffer, v_buffer, _, noted = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free = barriers
    share, works = numbers[1], numbers[6]
    now, values = 0, [0, 0, 0, 0]  # a step's number, and where the values of the step before lie
    turns, tile = turns_of(works), tile_of(0, Table, Header, numbers, STEP, HAS_FULL, KEYS_TOGETHER)
    load_tile((Q,), (q_buffer,), noted, q_ready, q_free, 0, tile)
    for turn in range(turns):
        following = gl.minimum(turn + 1, turns - 1)
        upcoming = tile_of(following, Table, Header, numbers, STEP, HAS_FULL, KEYS_TOGETHER)
        for index in range(tile[6]):  # keys are needed a step before values
            at = place_of(index, tile, STEP)
            load_step(K, k_buffer, k_ready, k_free, now, [tile[0], tile[1] // share, at, 0], STAGES)
            if now > 0:
                load_step(V, v_buffer, v_ready, v_free, now - 1, values, STAGES)
            if (index == early_of(tile)) & (turn + 1 < turns):
                load_tile((Q,), (q_buffer,), noted, q_ready, q_free, turn + 1, upcoming)
            now, values = now + 1, [tile[0], tile[1] // share, 0, at]
        tile = upcoming
    load_step(V, v_buffer, v_ready, v_free, now - 1, values, STAGES)


@gluon.jit
def softened(s, m, total, sharpness):
    """The weights of the scores times 2**SHIFT, not divided yet; the largest score, the sum of weights, and
    what shrinks earlier sums.
    """
    higher = gl.maximum(m, gl.max(s, 1) * sharpness)
    base = gl.where(higher == -float("inf"), 0.0, higher)  # there may be no key yet
    p = gl.exp2(s * sharpness - (base - SHIFT)[:, None])
    shrink = gl.exp2(m - base)
    return p, higher, total * shrink + gl.sum(p, 1), shrink


@gluon.jit
def packed(p):
    """Weights of a step rounded to e4m3, four of a thread in a word.

    Of 16 keys it has 2c, 2c + 1, 8 + 2c and 9 + 2c, and as a factor places 4c to 4c + 3.
    """
    ROWS_HERE: gl.constexpr = p.shape[0]
    STEP: gl.constexpr = p.shape[1]
    apart = p.reshape((ROWS_HERE, STEP // 16, 2, 4, 2)).permute((0, 1, 3, 2, 4))  # [rows, 16s, c, h, e]
    even, odd = gl.split(apart)
    first, third = gl.split(even)
    second, fourth = gl.split(odd)
    return gl.inline_asm_elementwise(PACK, "=r,f,f,f,f", [first, second, third, fourth], gl.int32, True, 1)


@gluon.jit
def as_factor(words, dtype: gl.constexpr, WEIGHTS: gl.constexpr):
    """Packed weights as a factor [rows, keys]: a thread's own stay its own."""
    first, second = words.to(gl.int8), (words >> 8).to(gl.int8)
    third, fourth = (words >> 16).to(gl.int8), (words >> 24).to(gl.int8)
    whole = gl.join(gl.join(first, third), gl.join(second, fourth))  # [rows, 16s, c, h, e]
    flat = whole.reshape((words.shape[0], words.shape[1] * 16))
    return gl.convert_layout(gl.cast(flat, dtype, bitcast=True), WEIGHTS)


@gluon.jit
def weighed(
    words, buffer, index, SUMS: gl.constexpr, WEIGHTS: gl.constexpr, STEP: gl.constexpr, STAGES: gl.constexpr
):
    """The sum of a step's values by weights, begun."""
    DVP: gl.constexpr = buffer.shape[3]
    values = buffer.index(index % STAGES).reshape((DVP, STEP)).permute((1, 0))
    nothing = gl.full([ROWS, DVP], 0.0, gl.float32, SUMS)
    weights = as_factor(words, buffer.dtype, WEIGHTS)
    return warpgroup_mma(weights, values, nothing, use_acc=False, is_async=True)


@gluon.jit
def scale_of(Scale, strides, batch, head):
    """The scale of a head."""
    return gl.load(Scale + batch * strides[0] + head * strides[1])


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, State, Lse, Header, Data, RowBounds, scales, buffers, barriers,
    scale, out_strides, scale_strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: output and log-sum-exp of its queries."""
    q_buffer, k_buffer, v_buffer, out_buffer, noted = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free = barriers
    heads, share, rows, table_batch, works = numbers[0], numbers[1], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 32])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DVP, 32])
    OF_SCORES: gl.constexpr = gl.SliceLayout(1, S)
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 4)
    done = 0  # steps of earlier tiles
    for turn in range(turns_of(works)):
        q = q_buffer.index((turn % TILES) * GROUPS + GROUP).reshape((ROWS, DP))
        arrived(q_ready, turn, TILES)
        arrived(k_ready, done, STAGES)
        s_begun = product(q, k_buffer, done, STEP, STAGES, DP, S)
        tile = tile_noted(noted, turn)
        steps, masked, batch, head = tile[6], tile[7], tile[0], tile[1]
        sharpness = scale_of(scales[0], scale_strides[0], batch, head) * LOG2E * scale
        sharpness = sharpness * scale_of(scales[1], scale_strides[1], batch, head // share)
        of_values = scale_of(scales[2], scale_strides[2], batch, head // share)
        sharpness = gl.where(sharpness < 0.0, float("nan"), gl.maximum(sharpness, 1e-20))  # -inf stays -inf
        about = bounds_of(
            tile, table_batch, rows, Header, Data, RowBounds, BOUNDS, ROW_BOUNDS, GROUP, OF_SCORES
        )
        m = gl.full([ROWS], -float("inf"), gl.float32, OF_SCORES)
        total = gl.full([ROWS], 0.0, gl.float32, OF_SCORES)
        o = gl.full([ROWS, DVP], 0.0, gl.float32, SUMS)
        at = place_of(0, tile, STEP)
        kept = bits_of(at, about, S, STEP)
        s = warpgroup_mma_wait(0, deps=[s_begun])
        mbarrier.arrive(k_free.index(done % STAGES), count=1)
        s = where_set(s, kept, OR_LEAST, S)
        if PAIRS is not None:
            s = where_pairs_kept(s, at, about, Header, Data, OR_LEAST, COLUMNS, PAIRS, S)
        p, m, total, shrink = softened(s, m, total, sharpness)
        words = packed(p)
        arrived(k_ready, done + 1, STAGES, steps > 1)
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (masked, steps) if FULL else (1, masked)
            for index in range(begin, end):
                now, last = done + index, done + index - 1
                s_begun = product(q, k_buffer, now, STEP, STAGES, DP, S)
                arrived(v_ready, last, STAGES)
                o_begun = weighed(words, v_buffer, last, SUMS, WEIGHTS, STEP, STAGES)
                if not FULL:
                    at = place_of(index, tile, STEP)
                    kept = bits_of(at, about, S, STEP)
                s = warpgroup_mma_wait(1, deps=[s_begun])
                mbarrier.arrive(k_free.index(now % STAGES), count=1)
                if not FULL:
                    s = where_set(s, kept, OR_LEAST, S)
                    if PAIRS is not None:
                        s = where_pairs_kept(s, at, about, Header, Data, OR_LEAST, COLUMNS, PAIRS, S)
                p, m, total, later = softened(s, m, total, sharpness)
                # a wait for the next keys, and so a branch, keeps the exponentials before the wait for o
                arrived(k_ready, now + 1, STAGES, index + 1 < steps)
                found, p = warpgroup_mma_wait(0, deps=[o_begun, p])
                mbarrier.arrive(v_free.index(last % STAGES), count=1)
                o = o * gl.convert_layout(shrink, OF_SUMS)[:, None] + found
                shrink, words = later, packed(p)
        done += steps
        mbarrier.arrive(q_free.index(turn % TILES), count=1)
        arrived(v_ready, done - 1, STAGES)
        o_begun = weighed(words, v_buffer, done - 1, SUMS, WEIGHTS, STEP, STAGES)
        found = warpgroup_mma_wait(0, deps=[o_begun])
        mbarrier.arrive(v_free.index((done - 1) % STAGES), count=1)
        o = (o * gl.convert_layout(shrink, OF_SUMS)[:, None] + found) * of_values
        tma.store_wait(0)  # the results of the tile before have left
        finish(
            o, m - SHIFT, total, tile, out_buffer, GROUP, Rows, Out, State, Lse, out_strides,
            heads, rows, DV, DVP, SUMS, OF_SCORES, GROUP, CONTINUES, ENDS,
        )  # fmt: skip
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works"])
def attention_fwd_fp8_hopper_kernel(
    Q, K, V, Rows, Out, State, Lse, Table, Header, Data, RowBounds, Scales, scale, o_batch, o_head, o_row,
    scale_strides, heads, share, rows, tiles, table_batch, table_head, works,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
):  # fmt: skip
    """Out and Lse of tiles of queries; CONTINUES takes up the sums of an earlier part, ENDS is the last."""
    q_buffer = gl.allocate_shared_memory(Q.dtype, [TILES * GROUPS, 1, 1, ROWS, DP], Q.layout)
    k_buffer = gl.allocate_shared_memory(K.dtype, [STAGES, 1, 1, STEP, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [STAGES, 1, 1, DVP, STEP], V.layout)
    out_buffer = gl.allocate_shared_memory(Rows.dtype, [GROUPS, 1, 1, ROWS, DVP], Rows.layout)
    q_ready, q_free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers = (q_buffer, k_buffer, v_buffer, out_buffer, notes())
    barriers = (q_ready, q_free, k_ready, k_free, v_ready, v_free)
    strides = (o_batch, o_head, o_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, State, Lse, Header, Data, RowBounds, Scales, buffers, barriers,
                scale, strides, scale_strides, numbers, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, DP, DV, DVP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
            )),
            (compute, (
                1, Rows, Out, State, Lse, Header, Data, RowBounds, Scales, buffers, barriers,
                scale, strides, scale_strides, numbers, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, DP, DV, DVP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
            )),
            (load, (Q, K, V, Table, Header, buffers, barriers, numbers, STEP, STAGES, HAS_FULL)),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip
