"""The kernels of a decoding step: parts of the slots side by side, then their sums together.

A new key is taken from where it is given, and put into its slot by one program; nobody waits for it. For a
step that is left to cuDNN, one kernel does this and writes the mask as a bias.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.attend.kernels.triton.forward import LN2, LOG2E, product
from lattend.attend.kernels.triton.pairs import tanh

# Numbers that differ from step to step, or from cache to cache
PLAIN = ["position", "slot", "in_use", "pinned", "ring", "reach", "length", "positions_row"]


@triton.jit
def one_row(Base, SIZE: tl.constexpr, PADDED: tl.constexpr):
    """The numbers of a row, zeros behind them."""
    column = tl.arange(0, PADDED)
    if SIZE == PADDED:
        return tl.load(Base + column)
    return tl.load(Base + column, mask=column < SIZE, other=0.0)


@triton.jit
def slot_rows(Base, slot, there, row, new, is_new, SIZE: tl.constexpr, PADDED: tl.constexpr):
    """The rows of slots, [slots, PADDED], the new one as it was given."""
    column = tl.arange(0, PADDED)
    mask = there[:, None] & (column[None, :] < SIZE)
    found = tl.load(Base + slot.to(tl.int64)[:, None] * row + column[None, :], mask=mask, other=0.0)
    return tl.where(is_new[:, None], new[None, :], found)


@triton.jit
def static_place(Now, High, batch, pinned, ring, reach, length):
    """Of a static cache the new position, its slot, and whether it reaches a key that is gone."""
    position = tl.load(Now + batch)
    slot = tl.where(position < pinned, position, pinned + (position - pinned) % ring)
    newest = tl.maximum(tl.load(High + batch), position + 1) - ring - 1  # that is overwritten
    return position, slot, ((newest >= pinned) & (position - reach <= newest)) | (position >= length)


@triton.jit(do_not_specialize=PLAIN)
def decode_split_kernel(
    Q, K, V, Keys, Values, Positions, Now, High, Acc, Sums, Data, scale, softcap,
    position: tl.int64, slot: tl.int64, in_use: tl.int64,
    pinned: tl.int64, ring: tl.int64, reach: tl.int64, length: tl.int64, positions_row: tl.int64,
    q_batch, q_head, k_batch, k_head, v_batch, v_head,
    keys_batch, keys_head, keys_row, values_batch, values_head, values_row,
    kv_heads, group, splits, per_split,
    CONDITION: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, STATIC: tl.constexpr,
    PLACED: tl.constexpr, GROUP: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """The sums of the heads of one kv head over a part of the slots; puts the new key into its slot.

    STATIC: position and slot are found here, from the lengths. PLACED: the positions of keys are known.
    """
    program = tl.program_id(0)
    split, pair = program % splits, program // splits
    batch, kv_head = (pair // kv_heads).to(tl.int64), (pair % kv_heads).to(tl.int64)
    gone = False
    if STATIC:
        position, slot, gone = static_place(Now, High, batch, pinned, ring, reach, length)
    Keys += batch * keys_batch + kv_head * keys_head
    Values += batch * values_batch + kv_head * values_head
    Positions += batch * positions_row
    new_k = one_row(K + batch * k_batch + kv_head * k_head, D, DP)
    new_v = one_row(V + batch * v_batch + kv_head * v_head, DV, DVP)
    first = split * per_split
    end = tl.minimum(first + per_split, in_use)
    if (slot >= first) & (slot < end):
        tl.store(Keys + slot * keys_row + tl.arange(0, DP), new_k, mask=tl.arange(0, DP) < D)
        tl.store(Values + slot * values_row + tl.arange(0, DVP), new_v, mask=tl.arange(0, DVP) < DV)
        if PLACED and kv_head == 0:
            tl.store(Positions + slot, position)

    row = tl.arange(0, GROUP)
    head, column = kv_head * group + row, tl.arange(0, DP)
    q = tl.load(
        Q + batch * q_batch + head[:, None] * q_head + column[None, :],
        mask=(row[:, None] < group) & (column[None, :] < D),
        other=0.0,
    )  # [GROUP, DP]
    m = tl.full([GROUP], -float("inf"), tl.float32)
    total = tl.zeros([GROUP], tl.float32)
    acc = tl.zeros([GROUP, DVP], tl.float32)
    for begin in range(first, end, BLOCK_N):
        here = begin + tl.arange(0, BLOCK_N)
        there, is_new = here < end, here == slot
        attended = there[None, :]
        at = here.to(tl.int64)
        if PLACED:
            at = tl.where(is_new, position, tl.load(Positions + here, mask=there, other=-1))
            attended &= (at >= 0)[None, :]
        if CONDITION is not None:
            attended &= CONDITION(position, at[None, :], head[:, None], batch, Data)
        if tl.max(tl.max(attended.to(tl.int32), 1), 0) > 0:
            k = slot_rows(Keys, here, there, keys_row, new_k, is_new, D, DP)
            s = product(q, tl.trans(k), PRECISION, UPCAST) * scale  # [GROUP, BLOCK_N]
            if CAPPED:
                s = softcap * tanh(s / softcap)
            if BIAS is not None:
                s += BIAS(position, at[None, :], head[:, None], batch, Data)
            s = tl.where(attended, s * LOG2E, -float("inf"))
            higher = tl.maximum(m, tl.max(s, 1))
            base = tl.where(higher == -float("inf"), 0.0, higher)  # -inf less -inf is no number
            p = tl.math.exp2(s - base[:, None])
            shrink = tl.math.exp2(m - base)
            total = total * shrink + tl.sum(p, 1)
            used = there & (tl.max(attended.to(tl.int32), 0) > 0)  # other slots may hold anything
            v = slot_rows(Values, here, used, values_row, new_v, is_new, DV, DVP)
            acc = acc * shrink[:, None] + product(p.to(v.dtype), v, PRECISION, UPCAST)
            m = higher
    if STATIC:
        total = tl.where(gone, float("nan"), total)  # by which the output is divided, and so is NaN too
    place = (batch * kv_heads * group + head) * splits + split  # [GROUP]
    inside, wide = row < group, tl.arange(0, DVP)
    tl.store(Sums + 2 * place, m, mask=inside)
    tl.store(Sums + 2 * place + 1, total, mask=inside)
    tl.store(Acc + place[:, None] * DV + wide[None, :], acc, mask=inside[:, None] & (wide[None, :] < DV))


@triton.jit
def decode_combine_kernel(
    Acc, Sums, Out, Lse, Now, High, Drafted, o_batch, o_head, heads, splits,
    STATIC: tl.constexpr, HAS_LSE: tl.constexpr, SPLITS: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
):  # fmt: skip
    """The output of one head from the sums of its parts; counts the token of a static cache."""
    pair = tl.program_id(0)
    batch, head = (pair // heads).to(tl.int64), pair % heads
    split, column = tl.arange(0, SPLITS), tl.arange(0, DVP)
    there = split < splits
    place = pair.to(tl.int64) * splits + split
    m = tl.load(Sums + 2 * place, mask=there, other=-float("inf"))
    total = tl.load(Sums + 2 * place + 1, mask=there, other=0.0)
    acc = tl.load(
        Acc + place[:, None] * DV + column[None, :], mask=there[:, None] & (column[None, :] < DV), other=0.0
    )  # [SPLITS, DVP]
    highest = tl.max(m, 0)
    base = tl.where(highest == -float("inf"), 0.0, highest)
    share = tl.math.exp2(m - base)
    whole = tl.sum(total * share, 0)
    out = tl.sum(acc * share[:, None], 0) / tl.where(whole == 0.0, 1.0, whole)
    Out += batch * o_batch + head.to(tl.int64) * o_head
    tl.store(Out + column, out.to(Out.dtype.element_ty), mask=column < DV)
    if HAS_LSE:
        tl.store(Lse + pair, tl.where(whole == 0.0, -float("inf"), (base + tl.math.log2(whole)) * LN2))
    if STATIC and head == 0:
        length = tl.load(Now + batch) + 1
        tl.store(Now + batch, length)
        tl.store(High + batch, tl.maximum(tl.load(High + batch), length))
        tl.store(Drafted + batch, length * 0 + 1)


@triton.jit
def clear_slots(
    Keys, Values, Positions, here, freed, keys_head, keys_row, values_head, values_row, kv_heads,
    D: tl.constexpr, DV: tl.constexpr,
):  # fmt: skip
    """Zeros in these slots of one row of the batch, and the position of a slot that never had a key."""
    if tl.max(freed.to(tl.int32), 0) > 0:
        row, freed_row = here.to(tl.int64)[:, None], freed[:, None]
        for _ in range(kv_heads):
            for begin in range(0, max(D, DV), 8):  # a few columns at a time: they take few registers
                column = begin + tl.arange(0, 8)[None, :]
                tl.store(Keys + row * keys_row + column, 0.0, mask=freed_row & (column < D))
                tl.store(Values + row * values_row + column, 0.0, mask=freed_row & (column < DV))
            Keys += keys_head
            Values += values_head
        tl.store(Positions + here, here.to(tl.int64) * 0 - 1, mask=freed)


@triton.jit(do_not_specialize=["pinned", "ring", "reach", "length"])
def decode_bias_kernel(
    K, V, Keys, Values, Positions, Now, High, Bias, Data, slots,
    pinned: tl.int64, ring: tl.int64, reach: tl.int64, length: tl.int64,
    k_batch, k_head, v_batch, v_head,
    keys_batch, keys_head, keys_row, values_batch, values_head, values_row, kv_heads, blocks,
    CONDITION: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
):  # fmt: skip
    """The bias of a block of slots: 0 for attended keys, else -inf; NaN for a row that needs a dropped key.

    Puts the new key into its slot, and zeros into slots whose keys were taken back: NaN - inf is NaN.
    """
    program = tl.program_id(0)
    batch, here = (program // blocks).to(tl.int64), program % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    position, slot, gone = static_place(Now, High, batch, pinned, ring, reach, length)
    there, is_new = here < slots, here == slot
    Positions += batch * slots
    held = tl.load(Positions + here, mask=there, other=-1)
    at = tl.where(is_new, position, held)[None, :]
    attended = at >= 0
    if CONDITION is not None:
        attended &= CONDITION(position, at, tl.zeros([1, 1], tl.int32), batch, Data)
    bias = tl.where(gone, float("nan"), tl.where(attended, 0.0, -float("inf")))  # [1, BLOCK_N]
    tl.store(Bias + batch * slots + here[None, :], bias.to(Bias.dtype.element_ty), mask=there[None, :])
    Keys += batch * keys_batch
    Values += batch * values_batch
    freed = there & (held < -1) & (here != slot)
    clear_slots(
        Keys, Values, Positions, here, freed, keys_head, keys_row, values_head, values_row, kv_heads,
        D, DV,
    )  # fmt: skip
    column, wide = tl.arange(0, DP), tl.arange(0, DVP)
    if tl.max(is_new.to(tl.int32), 0) > 0:
        K += batch * k_batch
        V += batch * v_batch
        Keys += slot * keys_row
        Values += slot * values_row
        for _ in range(kv_heads):
            tl.store(Keys + column, one_row(K, D, DP), mask=column < D)
            tl.store(Values + wide, one_row(V, DV, DVP), mask=wide < DV)
            K += k_head
            V += v_head
            Keys += keys_head
            Values += values_head
        tl.store(Positions + slot, position)


@triton.jit
def clear_freed_kernel(
    Keys, Values, Positions, slots,
    keys_batch, keys_head, keys_row, values_batch, values_head, values_row, kv_heads, blocks,
    BLOCK_N: tl.constexpr, D: tl.constexpr, DV: tl.constexpr,
):  # fmt: skip
    """Zeros in a block of slots whose keys were taken back."""
    program = tl.program_id(0)
    batch, here = (program // blocks).to(tl.int64), program % blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    Keys += batch * keys_batch
    Values += batch * values_batch
    Positions += batch * slots
    freed = tl.load(Positions + here, mask=here < slots, other=0) < -1
    clear_slots(
        Keys, Values, Positions, here, freed, keys_head, keys_row, values_head, values_row, kv_heads,
        D, DV,
    )  # fmt: skip
