"""The backward kernels: gradients of queries by tiles of queries, of keys and values by tiles of keys.

Each program owns the rows it writes, so that the result does not depend on the order of programs. With
P the weights and dS = P * (dP - delta): dQ = dS K, dK = dSᵀ Q, dV = Pᵀ dO; delta is the row sum of
out * dout, less the gradient of the log-sum-exp. P is found again from the merged log-sum-exp, so the
parts of a plan just add up.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.attend.kernels.triton.forward import (
    LN2,
    LOG2E,
    attended_pairs,
    block_of,
    full_range,
    in_padding,
    product,
    row_bounds,
    rows_of,
    step_at,
    step_bounds,
)
from lattend.attend.kernels.triton.geometry import (
    PLAIN,
    entry_of,
    inner_count,
    outer_rows,
    step_columns,
)
from lattend.attend.kernels.triton.pairs import kept_pairs, real_keys, tanh


@triton.jit
def store_sum(
    Sum, Final, OfRows, first, place, inside, batch, head, final_batch, final_head, final_row, value,
    SIZE: tl.constexpr, PADDED: tl.constexpr, CONTINUES: tl.constexpr, ENDS: tl.constexpr, SOME: tl.constexpr,
    MARKS: tl.constexpr,
):  # fmt: skip
    """Adds rows to the float32 sums of earlier parts, whose row 0 is `first`; if SOME rows have none, the
    first of OfRows says which have. The last part writes the gradient itself, which lies in memory as its
    tensor does. If OfRows has number MARKS, rows that hold a NaN or an infinity are marked there with a NaN.
    """
    column = tl.arange(0, PADDED)
    at = (first + place).to(tl.int64)[:, None] * SIZE + column[None, :]
    mask = inside[:, None] & (column[None, :] < SIZE)
    if CONTINUES:
        summed = mask
        if SOME:
            summed = mask & (tl.load(OfRows[0] + place, mask=inside, other=0) != 0)[:, None]
        value += tl.load(Sum + at, mask=summed, other=0.0)
    if len(OfRows) > MARKS:
        tl.store(OfRows[MARKS] + first + place, tl.sum(value, 1) * 0.0, mask=inside)
    if ENDS:
        Final += batch * final_batch + head.to(tl.int64) * final_head
        to = place.to(tl.int64)[:, None] * final_row + column[None, :]
        tl.store(Final + to, value.to(Final.dtype.element_ty), mask=mask)
    else:
        tl.store(Sum + at, value, mask=mask)


@triton.jit
def tile_of(
    Base, place, inside, stride, batch, head, entry,
    SIZE: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, BOX: tl.constexpr,
):  # fmt: skip
    """The rows of a tile, as [ROWS, PADDED]; TMA copies them at once where it is a box of an image.

    They are then factors of products in registers, which read shared memory half as often. Where there are
    fewer sums than here, more programs beside each other are worth more than that.
    """
    if BOX:
        a, b = tl.load(entry) + tl.load(entry + 1), tl.load(entry + 5) + tl.load(entry + 6)
        return Base.load([batch.to(tl.int32), head, a, b, 0]).reshape(ROWS, PADDED)
    else:
        return rows_of(Base, place, inside, stride, SIZE, PADDED, True)


@triton.jit
def without_keys(lse, delta):
    """Both such that rows without keys, by the rule or by a bias of -inf, have weights and slopes of 0."""
    empty = lse == -float("inf")
    return tl.where(empty, float("inf"), lse), tl.where(empty, 0.0, delta)


@triton.jit(do_not_specialize=[name for name in PLAIN if name != "keys"])
def attention_bwd_dq_kernel(
    Q, K, V, Out, GradOut, GradLse, Lse, Delta, SumQ, GradQ, OfRows, SumsBias, Quanta, Table, Header, Data,
    scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    o_batch, o_head, o_row, g_batch, g_head, g_row, dq_batch, dq_head, dq_row,
    heads, share, rows, tiles, table_batch, table_head,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr, SLOPES: tl.constexpr,
    CAPPED: tl.constexpr, DROPS: tl.constexpr, PADDED: tl.constexpr, HOLES: tl.constexpr,
    AXES: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    OUTER_KINDS: tl.constexpr, INNER_KINDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    HAS_FULL: tl.constexpr, CONTINUES: tl.constexpr, ENDS: tl.constexpr, SOME: tl.constexpr,
    TMA: tl.constexpr, BOX: tl.constexpr, MAKES_DELTA: tl.constexpr, HAS_GRAD_LSE: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of queries; the first part of them also makes Delta."""
    program = tl.program_id(0)
    tile, pair = program % tiles, program // tiles
    batch, head = (pair // heads).to(tl.int64), pair % heads
    entry = entry_of(Table, batch * table_batch + head * table_head + tile, AXES, INNER_KINDS, 0)
    oa, ob, oc, place, inside = outer_rows(Header, entry, BLOCK_M, AXES, TY, TX, OUTER_KINDS, WIDE)
    bounds = row_bounds(oa, ob, oc, head, batch, Header, Data, BOUNDS, AXES, WIDE)
    Q += batch * q_batch + head.to(tl.int64) * q_head
    kv_head = head // share
    if not TMA:
        K += batch * k_batch + kv_head.to(tl.int64) * k_head
        V += batch * v_batch + kv_head.to(tl.int64) * v_head
    begin = tl.load(entry + 2) + tl.load(entry + 3)  # the first inner position, where slots are in order
    GradOut += batch * g_batch + head.to(tl.int64) * g_head
    state_rows = (batch * heads + head) * rows + place

    q = rows_of(Q, place, inside, q_row, D, DP, True)  # [BLOCK_M, DP]
    grad = rows_of(GradOut, place, inside, g_row, DV, DVP, True)  # [BLOCK_M, DVP]
    lse = tl.load(Lse + state_rows, mask=inside, other=float("inf")) * LOG2E
    lse = tl.where(lse == -float("inf"), float("inf"), lse)  # a row with no key: all weights 0
    if MAKES_DELTA:
        Out += batch * o_batch + head.to(tl.int64) * o_head
        out = rows_of(Out, place, inside, o_row, DV, DVP, True)
        products = out.to(tl.float32) * grad.to(tl.float32)
        if PADDED:  # the output of an unused query may be NaN
            products = tl.where(grad == 0.0, 0.0, products)
        delta = tl.sum(products, 1)
        if HAS_GRAD_LSE:
            delta -= tl.load(GradLse + state_rows, mask=inside, other=0.0)
        tl.store(Delta + state_rows, delta, mask=inside)
    else:
        delta = tl.load(Delta + state_rows, mask=inside, other=0.0)
    if BIAS is not None:
        delta = tl.where(lse == float("inf"), 0.0, delta)  # a bias of -inf may leave a row without keys
    acc = tl.zeros([BLOCK_M, DP], tl.float32)
    sharpness = scale * LOG2E

    count = inner_count(entry, AXES, BLOCK_N, BOX)
    full_first, full_end = full_range(entry, count, BLOCK_N, AXES, INNER_KINDS, HAS_FULL)
    SKIPS: tl.constexpr = PADDED and AXES == 1 and INNER_KINDS[0] == 0
    first_step, end_step, full_first, full_end = in_padding(
        KeyRange, batch, begin, count, full_first, full_end, BLOCK_N, SKIPS
    )
    for FULL in tl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
        first_index, end_index = step_bounds(first_step, end_step, full_first, full_end, FULL)
        for index in range(first_index, end_index):
            step = step_at(index, full_first, full_end, FULL)
            ia, ib, ic, at, there, first, across = step_columns(
                Header, entry, begin, step, AXES, INNER_KINDS, BLOCK_N, BOX, WIDE
            )
            k = block_of(
                K, at, there, k_row, batch, kv_head, first, across, D, DP, BLOCK_N, not FULL, TMA, BOX
            )
            v = block_of(
                V, at, there, v_row, batch, kv_head, first, across, DV, DVP, BLOCK_N, not FULL, TMA, BOX
            )
            s = product(q, tl.trans(k), PRECISION, UPCAST) * sharpness
            if CAPPED:
                bent = tanh(s * (LN2 / softcap))
                s = bent * (softcap * LOG2E)
            if BIAS is not None:
                s += BIAS(oa, ob, oc, ia, ib, ic, head, batch, Header, Data, WIDE) * LOG2E
            attended = attended_pairs(
                oa, ob, oc, ia, ib, ic, first, across, bounds, head, batch, Header, Data,
                REST, AXES, FULL, BLOCK_N, BOX, WIDE,
            )  # fmt: skip
            if PADDED and (HOLES or not (FULL and SKIPS)):
                attended &= real_keys(KeyRange, KeyMask, mask_row, batch, at, there, HOLES)[None, :]
            p = tl.where(attended, tl.math.exp2(s - lse[:, None]), 0.0)
            dp = product(grad, tl.trans(v), PRECISION, UPCAST)
            if DROPS:
                dp = tl.where(
                    kept_pairs(Seed, limit, pair, place[:, None], at[None, :], DROPS), dp * kept_share, 0.0
                )
            ds = tl.where(attended, p * (dp - delta[:, None]), 0.0)
            if SLOPES is not None:
                SLOPES(ds, oa, ob, oc, ia, ib, ic, head, batch, Header, Data, SumsBias, Quanta, WIDE)
            if CAPPED:
                ds *= 1.0 - bent * bent
            acc += product(ds.to(k.dtype), k, PRECISION, UPCAST)

    store_sum(
        SumQ, GradQ, OfRows, (batch * heads + head) * rows, place, inside, batch, head,
        dq_batch, dq_head, dq_row, acc * scale, D, DP, CONTINUES, ENDS, SOME, 1,
    )  # fmt: skip


@triton.jit(do_not_specialize=PLAIN)
def attention_bwd_dkdv_kernel(
    Q, K, V, GradOut, Lse, Delta, SumK, SumV, GradK, GradV, OfRows, Table, Header, Data,
    scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, g_batch, g_head, g_row,
    dk_batch, dk_head, dk_row, dv_batch, dv_head, dv_row,
    heads, share, rows, keys, tiles, table_batch, table_head,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr,
    CAPPED: tl.constexpr, DROPS: tl.constexpr, PADDED: tl.constexpr, HOLES: tl.constexpr,
    AXES: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    OUTER_KINDS: tl.constexpr, INNER_KINDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    HAS_FULL: tl.constexpr, CONTINUES: tl.constexpr, ENDS: tl.constexpr, SOME: tl.constexpr,
    CHUNKED: tl.constexpr, TMA: tl.constexpr, BOX: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile of keys and values; all query heads that share them are taken in turn.

    CHUNKED, it is one of the chunks of a tile (chunks.py), whose sums have a place of their own.
    """
    program = tl.program_id(0)
    tile, pair = program % tiles, program // tiles
    kv_heads = heads // share
    batch, kv_head = (pair // kv_heads).to(tl.int64), pair % kv_heads
    if not BOX:
        K += batch * k_batch + kv_head.to(tl.int64) * k_head
        V += batch * v_batch + kv_head.to(tl.int64) * v_head
    entry = entry_of(
        Table, batch * table_batch + kv_head * share * table_head + tile, AXES, INNER_KINDS, CHUNKED
    )
    oa, ob, oc, place, inside = outer_rows(Header, entry, BLOCK_M, AXES, TY, TX, OUTER_KINDS, WIDE)
    k = tile_of(K, place, inside, k_row, batch, kv_head, entry, D, DP, BLOCK_M, BOX)  # [BLOCK_M, DP]
    v = tile_of(V, place, inside, v_row, batch, kv_head, entry, DV, DVP, BLOCK_M, BOX)  # [BLOCK_M, DVP]
    acc_k = tl.zeros([BLOCK_M, DP], tl.float32)
    acc_v = tl.zeros([BLOCK_M, DVP], tl.float32)
    sharpness = scale * LOG2E
    if PADDED:
        real = real_keys(KeyRange, KeyMask, mask_row, batch, place, inside, HOLES)

    for member in range(0, share):
        head = kv_head * share + member
        entry = entry_of(Table, batch * table_batch + head * table_head + tile, AXES, INNER_KINDS, CHUNKED)
        bounds = row_bounds(oa, ob, oc, head, batch, Header, Data, BOUNDS, AXES, WIDE)
        begin = tl.load(entry + 2) + tl.load(entry + 3)
        if TMA:
            QHead, GradHead = Q, GradOut
        else:
            QHead = Q + batch * q_batch + head.to(tl.int64) * q_head
            GradHead = GradOut + batch * g_batch + head.to(tl.int64) * g_head
        first_row = (batch * heads + head) * rows
        count = inner_count(entry, AXES, BLOCK_N, BOX)
        if PADDED:  # a tile of padding has nothing to do
            count *= tl.max(real.to(tl.int32), 0)
        full_first, full_end = full_range(entry, count, BLOCK_N, AXES, INNER_KINDS, HAS_FULL)
        if PADDED:
            full_first, full_end = tl.minimum(full_first, count), tl.minimum(full_end, count)
        for FULL in tl.static_range(0, 1 + HAS_FULL):
            first_index, end_index = step_bounds(0, tl.cdiv(count, BLOCK_N), full_first, full_end, FULL)
            for index in range(first_index, end_index):
                step = step_at(index, full_first, full_end, FULL)
                ia, ib, ic, at, there, first, across = step_columns(
                    Header, entry, begin, step, AXES, INNER_KINDS, BLOCK_N, BOX, WIDE
                )
                q = block_of(
                    QHead, at, there, q_row, batch, head, first, across, D, DP, BLOCK_N, not FULL, TMA, BOX
                )
                grad = block_of(
                    GradHead,
                    at,
                    there,
                    g_row,
                    batch,
                    head,
                    first,
                    across,
                    DV,
                    DVP,
                    BLOCK_N,
                    not FULL,
                    TMA,
                    BOX,
                )
                if FULL:
                    lse = tl.load(Lse + first_row + at) * LOG2E
                    delta = tl.load(Delta + first_row + at)
                else:
                    lse = tl.load(Lse + first_row + at, mask=there, other=float("inf")) * LOG2E
                    delta = tl.load(Delta + first_row + at, mask=there, other=0.0)
                if BIAS is not None:
                    lse, delta = without_keys(lse, delta)
                s = product(k, tl.trans(q), PRECISION, UPCAST) * sharpness  # [BLOCK_M, BLOCK_N]
                if CAPPED:
                    bent = tanh(s * (LN2 / softcap))
                    s = bent * (softcap * LOG2E)
                if BIAS is not None:
                    s += BIAS(oa, ob, oc, ia, ib, ic, head, batch, Header, Data, WIDE) * LOG2E
                attended = attended_pairs(
                    oa, ob, oc, ia, ib, ic, first, across, bounds, head, batch, Header, Data,
                    REST, AXES, FULL, BLOCK_N, BOX, WIDE,
                )  # fmt: skip
                if PADDED:
                    attended &= real[:, None]
                p = tl.where(attended, tl.math.exp2(s - lse[None, :]), 0.0)
                dp = product(v, tl.trans(grad), PRECISION, UPCAST)
                weights = p
                if DROPS:
                    kept = kept_pairs(Seed, limit, batch * heads + head, at[None, :], place[:, None], DROPS)
                    weights, dp = tl.where(kept, p * kept_share, 0.0), tl.where(kept, dp * kept_share, 0.0)
                acc_v += product(weights.to(grad.dtype), grad, PRECISION, UPCAST)
                ds = tl.where(attended, p * (dp - delta[None, :]), 0.0)
                if CAPPED:
                    ds *= 1.0 - bent * bent
                acc_k += product(ds.to(q.dtype), q, PRECISION, UPCAST)

    if PADDED:
        acc_k, acc_v = tl.where(real[:, None], acc_k, 0.0), tl.where(real[:, None], acc_v, 0.0)
    first_key = (batch * kv_heads + kv_head) * keys
    if CHUNKED:
        first_key = ((batch * kv_heads + kv_head) * tiles + tl.load(entry + 5 * AXES + 2)) * BLOCK_M
        place = tl.arange(0, BLOCK_M)
    store_sum(
        SumK, GradK, OfRows, first_key, place, inside, batch, kv_head, dk_batch, dk_head, dk_row,
        acc_k * scale, D, DP, CONTINUES, ENDS, SOME, 1,
    )  # fmt: skip
    store_sum(
        SumV, GradV, OfRows, first_key, place, inside, batch, kv_head, dv_batch, dv_head, dv_row,
        acc_v, DV, DVP, CONTINUES, ENDS, SOME, 2,
    )  # fmt: skip
