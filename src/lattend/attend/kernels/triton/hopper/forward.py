"""The forward kernel on Hopper, in Gluon: warp-specialized and persistent, as FlashAttention-3 is.

One warp loads: it has TMA copy a tile's queries and then, step by step, keys and values to shared memory.
Groups of four warps compute, 64 queries each. While a group's product of weights and values runs, it takes
the exponentials of the next step's scores, so that the tensor cores do not wait for them. A program takes
several tiles: the next one's queries and keys are loaded while it computes, and results are written by TMA,
from where the queries were, while the next one begins. What a tile is, the warp that loads reads from the
plan's table, and notes it in shared memory for the others.

The forward.py of all chips is the same function for any rule and call; this one takes rules on a line whose
keys follow each other, and calls without a bias, a soft cap, dropout or padding. Triton's interpreter does
not run it.
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
    OR_LEAST,
    bits_of,
    bounds_at,
    bounds_of,
    where_pairs_kept,
    where_set,
)
from lattend.attend.kernels.triton.hopper.orders import corner
from lattend.attend.kernels.triton.hopper.shared import (
    arrived,
    barriers_of,
    begun,
    give_back,
    hand_on,
    lay,
    load_either,
    load_step,
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
    LN2,
    LOADER,
    LOG2E,
    OWN,
    REGISTERS,
    ROWS,
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
    Q, K, V, JoinedK, JoinedV, Table, Header, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr, JOINS: gl.constexpr,
    OUTER: gl.constexpr, INNER: gl.constexpr, LEAVES: gl.constexpr = 0,
):  # fmt: skip
    """The trade of the warp that loads."""
    q_buffer, k_buffer, v_buffer, noted = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free = barriers
    share, works = numbers[1], numbers[6]
    APART: gl.constexpr = JOINS and INNER > 0
    HEIGHT: gl.constexpr = q_buffer.shape[0] // q_free.shape[0] * ROWS
    now, values, joined = 0, corner(0, 0, 0, 0, INNER), False  # a step's number, and the values before it
    turns, before = turns_of(works), 1  # steps of the tile before
    tile = tile_of_queries(
        0, Table, Header, numbers, STEP, HAS_FULL, JOINS, HEIGHT, OUTER, INNER, False, LEAVES
    )
    load_tile((Q,), (q_buffer,), noted, q_ready, q_free, 0, tile, OUTER)
    for turn in range(turns):
        tile = tile_of_queries(
            turn, Table, Header, numbers, STEP, HAS_FULL, JOINS, HEIGHT, OUTER, INNER, False, LEAVES
        )
        for index in range(tile[6]):  # keys are needed a step before values
            place = corner_of(index, tile, share, STEP, JOINS, INNER)
            theirs = is_joined(index, tile) if JOINS else False
            load_either(K, JoinedK, theirs, k_buffer, k_ready, k_free, now, place, STAGES, APART)
            if now > 0:
                load_either(
                    V, JoinedV, joined, v_buffer, v_ready, v_free, now - 1, values, v_free.shape[0], APART
                )
            # a tile's queries come with a step of the tile before, once that has begun; if it has but one,
            # whose values would wait too, or there is room for one tile, behind the first keys of their own
            early = (index == early_of(tile)) & (turn + 1 < turns) & (tile[6] > 1) & (q_free.shape[0] > 1)
            late = (index == 0) & (turn > 0) & ((before == 1) | (q_free.shape[0] == 1))
            if early | late:
                which = gl.where(early, turn + 1, turn)
                one = tile_of_queries(
                    which, Table, Header, numbers, STEP, HAS_FULL, JOINS, HEIGHT, OUTER, INNER, False, LEAVES
                )
                load_tile((Q,), (q_buffer,), noted, q_ready, q_free, which, one, OUTER)
            now, values, joined = now + 1, place, theirs
        before = tile[6]
    load_step(V, v_buffer, v_ready, v_free, now - 1, values, v_free.shape[0])  # the last are its own


@gluon.jit
def softened(s, m, total, sharpness):
    """The weights of the scores, not divided yet; the largest, their sum, and what shrinks earlier sums."""
    higher = gl.maximum(m, gl.max(s, 1) * sharpness)
    base = gl.where(higher == -float("inf"), 0.0, higher)  # there may be no key yet
    p = gl.exp2(s * sharpness - base[:, None])
    shrink = gl.exp2(m - base)
    return p, higher, total * shrink + gl.sum(p, 1), shrink


@gluon.jit
def finish(
    o, m, total, tile, q_buffer, place, Rows, Out, State, Lse, out_strides, heads, rows,
    DV: gl.constexpr, DVP: gl.constexpr, SUMS: gl.constexpr, OF_SCORES: gl.constexpr,
    GROUP: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr, OUTER: gl.constexpr = 0,
    MARKS: gl.constexpr = False,
):  # fmt: skip
    """Divides the sums of a tile by its weights and writes them, with what earlier parts found.

    If it MARKS rows, the log-sum-exp of those that hold a NaN or an infinity is NaN.
    """
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    before = (tile[0] * heads + tile[1]).to(gl.int64) * rows
    oa, inside = rows_of(tile, GROUP, OF_SCORES, OUTER)
    if CONTINUES:
        row, here = rows_of(tile, GROUP, OF_SUMS, OUTER)
        column = gl.arange(0, DVP, gl.SliceLayout(0, SUMS))
        states = State + (before + row)[:, None] * DV + column[None, :]
        earlier = gl.load(Lse + before + oa, mask=inside, other=-float("inf")) * LOG2E
        higher = gl.maximum(m, earlier)
        base = gl.where(higher == -float("inf"), 0.0, higher)
        shrink, share = gl.exp2(m - base), gl.exp2(earlier - base)
        o = o * gl.convert_layout(shrink, OF_SUMS)[:, None]
        share_of_sums = gl.convert_layout(share, OF_SUMS)
        # rows of no earlier part, and those without keys, have no sums
        mask = (here & (share_of_sums > 0.0))[:, None] & (column[None, :] < DV)
        o += gl.load(states, mask=mask, other=0.0) * share_of_sums[:, None]
        m, total = higher, total * shrink + share
    o = o * gl.convert_layout(1.0 / gl.where(total == 0.0, 1.0, total), OF_SUMS)[:, None]
    lse = gl.where(total == 0.0, -float("inf"), (m + gl.log2(total)) * LN2)
    if MARKS:
        lse += gl.convert_layout(gl.sum(o, 1) * 0.0, OF_SCORES)
    gl.store(Lse + before + oa, lse, mask=inside)
    lay(
        Out, State, (Lse,), o, q_buffer.index(place), tile, heads, rows, out_strides,
        GROUP, DV, DVP, SUMS, False, ENDS, False, OUTER,
    )  # fmt: skip
    send((Rows,), (q_buffer,), place, tile, GROUP, ENDS, OUTER)


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, State, Lse, Header, JoinedHeader, Data, RowBounds, buffers, barriers,
    order, scale, out_strides, numbers,
    JOINED_BOUNDS: gl.constexpr, BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    OUTER: gl.constexpr, INNER: gl.constexpr, IN_TURN: gl.constexpr, LEAVES: gl.constexpr,
    MARKS: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: output and log-sum-exp of its queries.

    IN_TURN, the groups begin the products of a step one after the other. If they LEAVE out steps of a tile,
    its first and last ones, they let these pass.
    """
    q_buffer, k_buffer, v_buffer, noted = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free = barriers
    heads, rows, table_batch, works = numbers[0], numbers[2], numbers[4], numbers[6]
    TILES: gl.constexpr = q_free.shape[0]
    VALUES: gl.constexpr = v_free.shape[0]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DVP, 16])
    OF_SCORES: gl.constexpr = gl.SliceLayout(1, S)
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    JOINS: gl.constexpr = JOINED_BOUNDS is not None
    MORE: gl.constexpr = 3 * JOINS + 2 * LEAVES + 3 * (OUTER + INNER > 0)
    sharpness = gl.maximum(scale, 1e-20) * LOG2E  # so that -inf times it stays -inf
    done = 0  # steps of earlier tiles
    for turn in range(turns_of(works)):
        place = (turn % TILES) * GROUPS + GROUP
        q = q_buffer.index(place).reshape((ROWS, DP))
        arrived(q_ready, turn, TILES)
        opening, ending = 0, 0
        if LEAVES:
            opening, ending = steps_left_out(tile_noted(noted, turn, MORE), GROUP)
            pass_over(done, done + opening, k_ready, k_free, v_ready, v_free, STAGES)
        arrived(k_ready, done + opening, STAGES)
        s_begun = product(q, k_buffer, done + opening, STEP, STAGES, DP, S)
        give_back(q_free, turn + 1, (turn > 0) & (TILES > 1))
        tile = tile_noted(noted, turn, MORE)
        steps, masked = tile[6] - ending, tile[7] - ending
        about = bounds_of(
            tile, table_batch, rows, Header, Data, RowBounds, BOUNDS, ROW_BOUNDS, GROUP, OF_SCORES,
            OWN, OUTER, INNER,
        )  # fmt: skip
        if CONTINUES:  # what earlier parts have found has the weight 1
            oa, inside = rows_of(tile, GROUP, OF_SCORES, OUTER)
            earlier = Lse + (tile[0] * heads + tile[1]).to(gl.int64) * rows + oa
            m = gl.load(earlier, mask=inside, other=-float("inf")) * LOG2E
            total = gl.where(m == -float("inf"), 0.0, 1.0)
            known = gl.convert_layout(total, OF_SUMS) > 0.0
            o = begun(State, tile, known, heads, rows, GROUP, DV, DVP, SUMS, OUTER)
        else:
            m = gl.full([ROWS], -float("inf"), gl.float32, OF_SCORES)
            total = gl.full([ROWS], 0.0, gl.float32, OF_SCORES)
            o = gl.full([ROWS, DVP], 0.0, gl.float32, SUMS)
        joined = about
        if JOINS:
            joined = bounds_of(
                tile, table_batch, rows, JoinedHeader, Data, RowBounds, JOINED_BOUNDS, False, GROUP,
                OF_SCORES, JOINED,
            )  # fmt: skip
        at = place_of(opening, tile, STEP, JOINS)
        kept = bits_of(at, joined, S, STEP)
        s = warpgroup_mma_wait(0, deps=[s_begun])
        mbarrier.arrive(k_free.index((done + opening) % STAGES), count=1)
        s = where_set(s, kept, OR_LEAST, S)
        if PAIRS is not None and not JOINS:
            s = where_pairs_kept(s, at, about, Header, Data, OR_LEAST, COLUMNS, PAIRS, S)
        p, m, total, shrink = softened(s, m, total, sharpness)
        if CONTINUES:
            o = o * gl.convert_layout(shrink, OF_SUMS)[:, None]
        # weights of 16 bits that go from step to step would be taken apart and put together
        weights = gl.convert_layout(p, WEIGHTS)
        arrived(k_ready, done + opening + 1, STAGES, steps > opening + 1)
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (masked, steps) if FULL else (opening + 1, masked)
            for index in range(begin, end):
                now, last = done + index, done + index - 1
                if IN_TURN:
                    take_turn(order, GROUP, now - turn - 1)
                s_begun = product(q, k_buffer, now, STEP, STAGES, DP, S)
                arrived(v_ready, last, VALUES)
                o_begun = weighed(weights.to(dtype), v_buffer, last, o, True, STEP, VALUES, DVP)
                if IN_TURN:
                    hand_on(order, GROUP)
                if not FULL:
                    at = place_of(index, tile, STEP, JOINS)
                    now_asked = bounds_at(index, tile, about, joined, JOINS)
                    kept = bits_of(at, now_asked, S, STEP)
                s = warpgroup_mma_wait(1, deps=[s_begun])
                mbarrier.arrive(k_free.index(now % STAGES), count=1)
                if not FULL:
                    s = where_set(s, kept, OR_LEAST, S)
                    if PAIRS is not None:
                        s = where_pairs_kept(s, at, now_asked, Header, Data, OR_LEAST, COLUMNS, PAIRS, S)
                p, m, total, shrink = softened(s, m, total, sharpness)
                # a wait for the next keys, and so a branch, keeps the exponentials before the wait for o
                arrived(k_ready, now + 1, STAGES, index + 1 < steps)
                o, p = warpgroup_mma_wait(0, deps=[o_begun, p])
                mbarrier.arrive(v_free.index(last % VALUES), count=1)
                o = o * gl.convert_layout(shrink, OF_SUMS)[:, None]
                weights = gl.convert_layout(p, WEIGHTS)
        done += steps
        arrived(v_ready, done - 1, VALUES)
        o_begun = weighed(weights.to(dtype), v_buffer, done - 1, o, True, STEP, VALUES, DVP)
        o = warpgroup_mma_wait(0, deps=[o_begun])
        mbarrier.arrive(v_free.index((done - 1) % VALUES), count=1)
        if LEAVES:
            pass_over(done, done + ending, k_ready, k_free, v_ready, v_free, STAGES)
            done += ending
        finish(
            o, m, total, tile, q_buffer, place, Rows, Out, State, Lse, out_strides,
            heads, rows, DV, DVP, SUMS, OF_SCORES, GROUP, False, ENDS, OUTER, MARKS,
        )  # fmt: skip
        if TILES == 1:
            give_back(q_free, turn, True)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works"])
def attention_fwd_hopper_kernel(
    Q, K, V, JoinedK, JoinedV, Rows, Out, State, Lse, Table, Header, JoinedHeader, Data, RowBounds, scale,
    o_batch, o_head, o_row, heads, share, rows, tiles, table_batch, table_head, works,
    JOINED_BOUNDS: gl.constexpr, BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    OUTER: gl.constexpr, INNER: gl.constexpr, IN_TURN: gl.constexpr, LEAVES: gl.constexpr,
    MARKS: gl.constexpr,
):  # fmt: skip
    """Out and Lse of tiles of queries; CONTINUES takes up the sums of an earlier part, ENDS is the last.

    Where JOINED_BOUNDS are given, those of another part, its steps come before a tile's own. OUTER and INNER
    are the orders of queries and keys (orders.py). If so many groups LEAVE out steps, the table says which
    (skippable_steps.py). Of a wide head one tile's queries have room beside keys, and there is some for
    values.
    """
    TILES: gl.constexpr = 2 if DP <= 128 else 1
    VALUES: gl.constexpr = STAGES if DP <= 128 else STAGES + 1
    q_buffer, k_buffer, v_buffer = room(Q, TILES * GROUPS), room(K, STAGES), room(V, VALUES)
    q_ready, q_free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(VALUES, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(VALUES, GROUPS)
    fence_async_shared()
    JOINS: gl.constexpr = JOINED_BOUNDS is not None
    buffers = (q_buffer, k_buffer, v_buffer, notes(2, 3 * JOINS + 2 * LEAVES + 3 * (OUTER + INNER > 0)))
    barriers, order = (q_ready, q_free, k_ready, k_free, v_ready, v_free), barriers_of(GROUPS, 1)
    strides = (o_batch, o_head, o_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, State, Lse, Header, JoinedHeader, Data, RowBounds, buffers, barriers,
                order, scale, strides, numbers, JOINED_BOUNDS, BOUNDS, COLUMNS, PAIRS, STEP, STAGES,
                DP, DV, DVP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, OUTER, INNER, IN_TURN, LEAVES, MARKS,
            )),
            (compute, (
                1, Rows, Out, State, Lse, Header, JoinedHeader, Data, RowBounds, buffers, barriers,
                order, scale, strides, numbers, JOINED_BOUNDS, BOUNDS, COLUMNS, PAIRS, STEP, STAGES,
                DP, DV, DVP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, OUTER, INNER, IN_TURN, LEAVES, MARKS,
            )),
            (load, (
                Q, K, V, JoinedK, JoinedV, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, JOINS, OUTER, INNER, LEAVES,
            )),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip
