"""The forward kernel: one program computes one tile of queries against the keys its part attends."""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.attend.kernels.triton.geometry import (
    PLAIN,
    entry_of,
    inner_count,
    outer_rows,
    step_columns,
)
from lattend.attend.kernels.triton.pairs import kept_pairs, real_keys, tanh

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def product(a, b, PRECISION: tl.constexpr, UPCAST: tl.constexpr):
    """The matrix product in float32; UPCAST is for the interpreter, whose bfloat16 product is wrong."""
    if UPCAST:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
def rows_of(Base, place, inside, stride, SIZE: tl.constexpr, PADDED: tl.constexpr, GUARD: tl.constexpr):
    """Rows of a matrix with SIZE columns, as [rows, PADDED]; zeros beyond."""
    column = tl.arange(0, PADDED)
    pointers = Base + place[:, None] * stride + column[None, :]  # [rows, PADDED]
    if GUARD:
        if SIZE == PADDED:
            return tl.load(pointers, mask=inside[:, None], other=0.0)
        return tl.load(pointers, mask=inside[:, None] & (column[None, :] < SIZE), other=0.0)
    if SIZE == PADDED:
        return tl.load(pointers)
    return tl.load(pointers, mask=column[None, :] < SIZE, other=0.0)


@triton.jit
def block_of(
    Base, place, inside, stride, batch, head, first, across,
    SIZE: tl.constexpr, PADDED: tl.constexpr, STEP: tl.constexpr, GUARD: tl.constexpr, TMA: tl.constexpr,
    BOX: tl.constexpr,
):  # fmt: skip
    """The same for STEP inner slots; TMA copies rows that follow each other, or a box of them, at once."""
    if BOX:
        return Base.load([batch.to(tl.int32), head, first, across, 0]).reshape(STEP, PADDED)
    elif TMA:
        return Base.load([batch.to(tl.int32), head, first.to(tl.int32), 0]).reshape(STEP, PADDED)
    else:
        return rows_of(Base, place, inside, stride, SIZE, PADDED, GUARD)


@triton.jit
def between(at, low, span):
    """Whether low <= at <= low + span, for each row and column: what lies below low wraps around."""
    gap = at.to(tl.int32)[None, :] - low[:, None]
    return gap.to(tl.uint32, bitcast=True) <= span.to(tl.uint32, bitcast=True)[:, None]


@triton.jit
def spanned(low, high):
    """A row's bounds as the least and how far it goes on; a row with nothing begins where no position is."""
    empty = high < low
    return tl.where(empty, -2147483648, low).to(tl.int32), tl.where(empty, 0, high - low).to(tl.int32)


@triton.jit
def within_box(la, ha, lb, hb, first, across, STEP: tl.constexpr, BOX: tl.constexpr):
    """The same for a box of an image: bits of a word for the columns that a row attends to in its lines."""
    column = tl.arange(0, STEP)
    low, high = tl.maximum(lb - across, 0), tl.minimum(lb - across + hb, 31)
    ones = tl.full([1], 0xFFFFFFFF, tl.uint32)
    words = tl.where(low <= high, (ones << low.to(tl.uint32)) & (ones >> (31 - high).to(tl.uint32)), 0)
    words = tl.where(between(first + column // BOX, la, ha), words[:, None], 0)
    return (words & (1 << (column % BOX)).to(tl.uint32)[None, :]) != 0


@triton.jit
def attended_pairs(
    oa, ob, oc, ia, ib, ic, first, across, bounds, head, batch, Header, Data,
    REST: tl.constexpr, AXES: tl.constexpr, FULL: tl.constexpr, STEP: tl.constexpr, BOX: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Which pairs of a tile are attended: each column within its row's bounds, and the rest of the rule."""
    if FULL:
        return tl.full([1, 1], True, tl.int1)
    else:
        la, ha, lb, hb, lc, hc, entries = bounds
        if BOX:
            attended = within_box(la, ha, lb, hb, first, across, STEP, BOX)
        else:
            attended = between(ia, la, ha)
            if AXES >= 2:
                attended &= between(ib, lb, hb)
            if AXES >= 3:
                attended &= between(ic, lc, hc)
        if REST is not None:
            attended &= REST(oa, ob, oc, ia, ib, ic, entries, head, batch, Header, Data, WIDE)
        return attended


@triton.jit
def row_bounds(
    oa, ob, oc, head, batch, Header, Data, BOUNDS: tl.constexpr, AXES: tl.constexpr, WIDE: tl.constexpr
):
    """The least inner position of each row and how far it goes on, on up to three axes, and its entries."""
    if AXES == 1:
        la, ha, entries = BOUNDS(oa, ob, oc, head, batch, Header, Data, WIDE)
        la, ha = spanned(la, ha)
        return la, ha, la, ha, la, ha, entries
    elif AXES == 2:
        la, ha, lb, hb, entries = BOUNDS(oa, ob, oc, head, batch, Header, Data, WIDE)
        la, ha = spanned(la, ha)
        lb, hb = spanned(lb, hb)
        return la, ha, lb, hb, lb, hb, entries
    else:
        la, ha, lb, hb, lc, hc, entries = BOUNDS(oa, ob, oc, head, batch, Header, Data, WIDE)
        la, ha = spanned(la, ha)
        lb, hb = spanned(lb, hb)
        lc, hc = spanned(lc, hc)
        return la, ha, lb, hb, lc, hc, entries


@triton.jit
def full_range(
    entry, count, STEP: tl.constexpr, AXES: tl.constexpr, INNER_KINDS: tl.constexpr, HAS_FULL: tl.constexpr
):
    """Which steps of STEP inner slots need no mask: from the first to before the second."""
    if HAS_FULL:
        begin, full = tl.load(entry + 3), entry + 5 * AXES + (INNER_KINDS[0] >= 3)
        first = tl.cdiv(tl.load(full) - begin, STEP)
        end = (tl.load(full + 1) - begin) // STEP
        return first, tl.maximum(first, end)
    return tl.cdiv(count, STEP), tl.cdiv(count, STEP)


@triton.jit
def in_padding(KeyRange, batch, begin, count, full_first, full_end, STEP: tl.constexpr, SKIPS: tl.constexpr):
    """The first step, the end of the steps, and the range of full steps.

    If SKIPS, steps of padding alone are left out, and full steps hold no key outside the range of real keys.
    """
    first, end = 0, tl.cdiv(count, STEP)
    if SKIPS:
        real_first = tl.maximum(tl.load(KeyRange + 2 * batch) - begin, 0)
        real_end = tl.maximum(tl.load(KeyRange + 2 * batch + 1) - begin, 0)
        end = tl.minimum(end, tl.cdiv(real_end, STEP))
        first = tl.minimum(real_first // STEP, end)
        full_first = tl.minimum(tl.maximum(full_first, tl.cdiv(real_first, STEP)), end)
        full_end = tl.maximum(tl.minimum(full_end, real_end // STEP), full_first)
    return first, end, full_first, full_end


@triton.jit
def step_bounds(first, end, full_first, full_end, FULL: tl.constexpr):
    """The range of indices over the full steps, or over all others."""
    if FULL:
        return full_first, full_end
    return first, end - (full_end - full_first)


@triton.jit
def step_at(index, full_first, full_end, FULL: tl.constexpr):
    """The step of such an index: those with a mask leave out the full ones between them."""
    if FULL:
        return index
    return tl.where(index < full_first, index, index + full_end - full_first)


@triton.jit(do_not_specialize=[name for name in PLAIN if name != "keys"])
def attention_fwd_kernel(
    Q, K, V, Out, State, Lse, Table, Header, Data, scale, softcap, Seed, limit, kept_share,
    KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    heads, share, rows, tiles, table_batch, table_head,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DROPS: tl.constexpr,
    PADDED: tl.constexpr, HOLES: tl.constexpr,
    AXES: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    OUTER_KINDS: tl.constexpr, INNER_KINDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    HAS_FULL: tl.constexpr, CONTINUES: tl.constexpr, ENDS: tl.constexpr, TMA: tl.constexpr,
    BOX: tl.constexpr, MARKS: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Out and Lse of a tile of queries; CONTINUES takes up the sums of an earlier part, ENDS is the last.

    If it MARKS rows, the log-sum-exp of those that hold a NaN or an infinity is NaN.
    """
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
    state_rows = (batch * heads + head) * rows + place  # [BLOCK_M]

    q = rows_of(Q, place, inside, q_row, D, DP, True)  # [BLOCK_M, DP]
    if CONTINUES:
        m = tl.load(Lse + state_rows, mask=inside, other=-float("inf")) * LOG2E
        total = tl.where(m == -float("inf"), 0.0, 1.0)
        # rows of no earlier part, and those without keys, have no sums
        acc = rows_of(State, state_rows.to(tl.int64), m > -float("inf"), DV, DV, DVP, True)
    else:
        m = tl.full([BLOCK_M], -float("inf"), tl.float32)
        total = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, DVP], tl.float32)
    scale = tl.maximum(scale, 1e-20)  # so that -inf times it stays -inf
    sharpness, per_score = scale * LOG2E, 1.0 / scale

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
            s = product(q, tl.trans(k), PRECISION, UPCAST)  # [BLOCK_M, BLOCK_N]
            if CAPPED:
                s = softcap * per_score * tanh(s * (scale / softcap))
            if BIAS is not None:
                s += BIAS(oa, ob, oc, ia, ib, ic, head, batch, Header, Data, WIDE) * per_score
            attended = attended_pairs(
                oa, ob, oc, ia, ib, ic, first, across, bounds, head, batch, Header, Data,
                REST, AXES, FULL, BLOCK_N, BOX, WIDE,
            )  # fmt: skip
            if PADDED and (HOLES or not (FULL and SKIPS)):
                attended &= real_keys(KeyRange, KeyMask, mask_row, batch, at, there, HOLES)[None, :]
            s = tl.where(attended, s, -float("inf"))
            higher = tl.maximum(m, tl.max(s, 1) * sharpness)
            base = higher
            if BIAS is not None or PADDED or not FULL:  # there may be no key yet: -inf less -inf is no number
                base = tl.where(higher == -float("inf"), 0.0, higher)
            p = tl.math.exp2(s * sharpness - base[:, None])
            shrink = tl.math.exp2(m - base)
            total = total * shrink + tl.sum(p, 1)
            if DROPS:
                p = tl.where(
                    kept_pairs(Seed, limit, pair, place[:, None], at[None, :], DROPS), p * kept_share, 0.0
                )
            v = block_of(
                V, at, there, v_row, batch, kv_head, first, across, DV, DVP, BLOCK_N, not FULL, TMA, BOX
            )
            acc = acc * shrink[:, None] + product(p.to(v.dtype), v, PRECISION, UPCAST)
            m = higher

    acc = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    lse = tl.where(total == 0.0, -float("inf"), (m + tl.math.log2(total)) * LN2)
    if MARKS:
        lse += tl.sum(acc, 1) * 0.0
    tl.store(Lse + state_rows, lse, mask=inside)
    column = tl.arange(0, DVP)
    mask = inside[:, None] & (column[None, :] < DV)
    if ENDS:
        Out += batch * o_batch + head.to(tl.int64) * o_head
        tl.store(Out + place[:, None] * o_row + column[None, :], acc.to(Out.dtype.element_ty), mask=mask)
    else:
        tl.store(State + state_rows.to(tl.int64)[:, None] * DV + column[None, :], acc, mask=mask)
