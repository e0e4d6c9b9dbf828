"""Rows that are computed again, since a NaN may have reached them from positions that they do not attend to.

A pair that is not attended has the weight 0, but in a product of matrices 0 times NaN is NaN. Padding, and
other sequences of `cu_seqlens`, may hold anything and share tiles with real positions. In calls with either,
fast kernels mark rows that hold a NaN or an infinity. After each pass, a kernel of this file reads the marks
and computes the marked rows again from real positions of their own sequence. Where nothing is marked, that is
one short launch. Positions behind the last sequence belong to none: their results and gradients are zeros.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.call.tensors import row_strides
from lattend.attend.call.varlen import rule_within
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.kernels.triton.forward import LN2, LOG2E, product, row_bounds, rows_of
from lattend.attend.kernels.triton.geometry import AXIS_NUMBERS, NUMBERS
from lattend.attend.kernels.triton.launch_arguments import (
    EXACT_PRODUCTS,
    INTERPRETED,
    Arrays,
    array_number,
    weighing,
)
from lattend.attend.kernels.triton.launch_replay import launch
from lattend.attend.kernels.triton.pairs import kept_pairs, real_keys, tanh
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.kernels.triton.source import generated_rule
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan

CHECKED = 2048  # rows whose marks one program reads
SIZES = ["heads", "share", "rows", "columns", "sequences", "limit", "mask_row"]  # one kernel for all values


@triton.jit
def is_nan(x):
    """Whether a float32 is NaN."""
    return (x.to(tl.int32, bitcast=True) & 0x7FFFFFFF) > 0x7F800000


@triton.jit
def any_marked(Marks, Begins, first, rows, sequences, CHECKED: tl.constexpr, PACKED: tl.constexpr):
    """Whether one of CHECKED rows is marked or lies behind the last sequence."""
    row = first + tl.arange(0, CHECKED)
    found = tl.max(is_nan(tl.load(Marks + row, mask=row < rows, other=0.0)).to(tl.int32), 0) > 0
    if PACKED:
        found |= first + CHECKED > tl.load(Begins + sequences)
    return found


@triton.jit
def marked_rows(Marks, Sequences, row, rows, sequences, PACKED: tl.constexpr):
    """Which rows are marked, the sequence of each, the range of these, and which rows are in no sequence."""
    inside = row < rows
    marked = inside & is_nan(tl.load(Marks + row, mask=inside, other=0.0))
    sequence = tl.zeros(row.shape, tl.int32)
    if PACKED:
        sequence = tl.load(Sequences + row, mask=inside, other=0)
    unused = inside & (sequence >= sequences)
    marked &= sequence < sequences
    first = tl.min(tl.where(marked, sequence, sequences), 0)
    return marked, sequence, first, tl.max(tl.where(marked, sequence, -1), 0) + 1, unused


@triton.jit
def columns_of(Begins, sequence, columns, PACKED: tl.constexpr):
    """The first column of a sequence, and the one behind its last."""
    if PACKED:
        return tl.load(Begins + sequence), tl.minimum(tl.load(Begins + sequence + 1), columns)
    return 0, columns


@triton.jit
def coordinates(Header, place, STRIDE: tl.constexpr, AXES: tl.constexpr):
    """A flat position on up to three axes, whose strides the header has at STRIDE."""
    if AXES == 1:
        return place, place, place
    a, place = place // tl.load(Header + STRIDE), place % tl.load(Header + STRIDE)
    if AXES == 2:
        return a, place, place
    return a, place // tl.load(Header + 12 + STRIDE), place % tl.load(Header + 12 + STRIDE)


@triton.jit
def store_rows(Base, row, stride, value, mask, SIZE: tl.constexpr, PADDED: tl.constexpr):
    """Writes some rows of a matrix with SIZE columns."""
    column = tl.arange(0, PADDED)
    pointers = Base + row[:, None] * stride + column[None, :]
    tl.store(pointers, value.to(Base.dtype.element_ty), mask=mask[:, None] & (column[None, :] < SIZE))


@triton.jit
def scored(
    a, b, outer, entries, column, pairs, head, batch, Header, Data, scale, softcap,
    REST: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, AXES: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """The scores of a tile, times log2(e); which of its pairs are attended; the slope of the softcap."""
    oa, ob, oc = outer
    ia, ib, ic = coordinates(Header, column, 7, AXES)
    s = product(a, tl.trans(b), PRECISION, UPCAST) * scale
    slope = 1.0
    if CAPPED:
        bent = tanh(s / softcap)
        s, slope = bent * softcap, 1.0 - bent * bent
    if BIAS is not None:
        s += BIAS(oa, ob, oc, ia, ib, ic, head, batch, Header, Data, True)
    if REST is not None:
        pairs &= REST(oa, ob, oc, ia, ib, ic, entries, head, batch, Header, Data, True)
    return s * LOG2E, pairs, slope


@triton.jit(do_not_specialize=SIZES)
def repair_output_kernel(
    Q, K, V, Out, Lse, Sequences, Begins, Header, Data,
    scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    heads, share, rows, columns, sequences, tiles,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DROPS: tl.constexpr,
    PADDED: tl.constexpr, HOLES: tl.constexpr, PACKED: tl.constexpr, AXES: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    CHECKED: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Out and Lse of queries whose Lse is NaN."""
    first_row, pair = tl.program_id(0) % tiles * CHECKED, tl.program_id(0) // tiles
    batch, head = (pair // heads).to(tl.int64), (pair % heads).to(tl.int64)
    Q, Out = Q + batch * q_batch + head * q_head, Out + batch * o_batch + head * o_head
    K, V = K + batch * k_batch + head // share * k_head, V + batch * v_batch + head // share * v_head
    Lse += (batch * heads + head) * rows
    if any_marked(Lse, Begins, first_row, rows, sequences, CHECKED, PACKED):
        for start in range(first_row, tl.minimum(first_row + CHECKED, rows), BLOCK):
            row = start + tl.arange(0, BLOCK).to(tl.int64)
            marked, sequence, first, end, unused = marked_rows(Lse, Sequences, row, rows, sequences, PACKED)
            store_rows(Out, row, o_row, tl.zeros([BLOCK, DVP], tl.float32), unused, DV, DVP)
            tl.store(Lse + row, -float("inf"), mask=unused)
            outer = coordinates(Header, row, 6, AXES)
            oa, ob, oc = outer
            bounds = row_bounds(oa, ob, oc, head, batch, Header, Data, BOUNDS, AXES, True)
            for own in range(first, end):
                mine = marked & (sequence == own)
                q = rows_of(Q, row, mine, q_row, D, DP, True)
                m = tl.full([BLOCK], -float("inf"), tl.float32)
                total = tl.zeros([BLOCK], tl.float32)
                acc = tl.zeros([BLOCK, DVP], tl.float32)
                begin, last = columns_of(Begins, own, columns, PACKED)
                for at in range(begin, last, BLOCK):
                    key = at + tl.arange(0, BLOCK).to(tl.int64)
                    there = key < last
                    if PADDED:
                        there &= real_keys(KeyRange, KeyMask, mask_row, batch, key, there, HOLES)
                    k = rows_of(K, key, there, k_row, D, DP, True)
                    v = rows_of(V, key, there, v_row, DV, DVP, True)
                    pairs = mine[:, None] & there[None, :]
                    s, attended, _slope = scored(
                        q, k, outer, bounds[6], key, pairs, head, batch, Header, Data, scale,
                        softcap, REST, BIAS, CAPPED, AXES, PRECISION, UPCAST,
                    )  # fmt: skip
                    s = tl.where(attended, s, -float("inf"))
                    higher = tl.maximum(m, tl.max(s, 1))
                    base = tl.where(higher == -float("inf"), 0.0, higher)
                    p, shrink = tl.math.exp2(s - base[:, None]), tl.math.exp2(m - base)
                    total = total * shrink + tl.sum(p, 1)
                    if DROPS:
                        kept = kept_pairs(Seed, limit, pair, row[:, None], key[None, :], DROPS)
                        p = tl.where(kept, p * kept_share, 0.0)
                    acc = acc * shrink[:, None] + product(p.to(v.dtype), v, PRECISION, UPCAST)
                    m = higher
                out = acc / tl.where(total == 0.0, 1.0, total)[:, None]
                store_rows(Out, row, o_row, out, mine, DV, DVP)
                lse = tl.where(total == 0.0, -float("inf"), (m + tl.math.log2(total)) * LN2)
                tl.store(Lse + row, lse, mask=mine)


@triton.jit(do_not_specialize=SIZES)
def repair_dq_kernel(
    Q, K, V, GradOut, Lse, Delta, Marks, GradQ, Sequences, Begins, Header, Data,
    scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, g_batch, g_head, g_row,
    dq_batch, dq_head, dq_row,
    heads, share, rows, columns, sequences, tiles,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DROPS: tl.constexpr,
    PADDED: tl.constexpr, HOLES: tl.constexpr, PACKED: tl.constexpr, AXES: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    CHECKED: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """The gradients of marked queries."""
    first_row, pair = tl.program_id(0) % tiles * CHECKED, tl.program_id(0) // tiles
    batch, head = (pair // heads).to(tl.int64), (pair % heads).to(tl.int64)
    Q, GradOut = Q + batch * q_batch + head * q_head, GradOut + batch * g_batch + head * g_head
    K, V = K + batch * k_batch + head // share * k_head, V + batch * v_batch + head // share * v_head
    first_state, GradQ = (batch * heads + head) * rows, GradQ + batch * dq_batch + head * dq_head
    Marks, Lse, Delta = Marks + first_state, Lse + first_state, Delta + first_state
    if any_marked(Marks, Begins, first_row, rows, sequences, CHECKED, PACKED):
        for start in range(first_row, tl.minimum(first_row + CHECKED, rows), BLOCK):
            row = start + tl.arange(0, BLOCK).to(tl.int64)
            marked, sequence, first, end, unused = marked_rows(Marks, Sequences, row, rows, sequences, PACKED)
            store_rows(GradQ, row, dq_row, tl.zeros([BLOCK, DP], tl.float32), unused, D, DP)
            outer = coordinates(Header, row, 6, AXES)
            oa, ob, oc = outer
            bounds = row_bounds(oa, ob, oc, head, batch, Header, Data, BOUNDS, AXES, True)
            for own in range(first, end):
                mine = marked & (sequence == own)
                q = rows_of(Q, row, mine, q_row, D, DP, True)
                grad = rows_of(GradOut, row, mine, g_row, DV, DVP, True)
                lse = tl.load(Lse + row, mask=mine, other=-float("inf")) * LOG2E
                delta = tl.load(Delta + row, mask=mine, other=0.0)
                acc = tl.zeros([BLOCK, DP], tl.float32)
                begin, last = columns_of(Begins, own, columns, PACKED)
                for at in range(begin, last, BLOCK):
                    key = at + tl.arange(0, BLOCK).to(tl.int64)
                    there = key < last
                    if PADDED:
                        there &= real_keys(KeyRange, KeyMask, mask_row, batch, key, there, HOLES)
                    k = rows_of(K, key, there, k_row, D, DP, True)
                    v = rows_of(V, key, there, v_row, DV, DVP, True)
                    pairs = (mine & (lse != -float("inf")))[:, None] & there[None, :]
                    s, attended, slope = scored(
                        q, k, outer, bounds[6], key, pairs, head, batch, Header, Data,
                        scale, softcap, REST, BIAS, CAPPED, AXES, PRECISION, UPCAST,
                    )  # fmt: skip
                    dp = product(grad, tl.trans(v), PRECISION, UPCAST)
                    if DROPS:
                        kept = kept_pairs(Seed, limit, pair, row[:, None], key[None, :], DROPS)
                        dp = tl.where(kept, dp * kept_share, 0.0)
                    ds = tl.math.exp2(s - lse[:, None]) * (dp - delta[:, None]) * slope
                    acc += product(tl.where(attended, ds, 0.0).to(k.dtype), k, PRECISION, UPCAST)
                store_rows(GradQ, row, dq_row, acc * scale, mine, D, DP)


@triton.jit(do_not_specialize=SIZES)
def repair_dkdv_kernel(
    Q, K, V, GradOut, Lse, Delta, MarksK, MarksV, GradK, GradV, Sequences, Begins, Header, Data,
    scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, g_batch, g_head, g_row,
    dk_batch, dk_head, dk_row, dv_batch, dv_head, dv_row,
    heads, share, rows, columns, sequences, tiles,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DROPS: tl.constexpr,
    PADDED: tl.constexpr, HOLES: tl.constexpr, PACKED: tl.constexpr, AXES: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    CHECKED: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """The gradients of marked keys and values: rows are keys here, and columns queries.

    A query whose output is not used adds nothing, whatever it holds.
    """
    first_row, pair, kv_heads = tl.program_id(0) % tiles * CHECKED, tl.program_id(0) // tiles, heads // share
    batch, kv_head = (pair // kv_heads).to(tl.int64), (pair % kv_heads).to(tl.int64)
    K, V = K + batch * k_batch + kv_head * k_head, V + batch * v_batch + kv_head * v_head
    GradK, GradV = GradK + batch * dk_batch + kv_head * dk_head, GradV + batch * dv_batch + kv_head * dv_head
    MarksK += (batch * kv_heads + kv_head) * rows
    MarksV += (batch * kv_heads + kv_head) * rows
    keys_marked = any_marked(MarksK, Begins, first_row, rows, sequences, CHECKED, PACKED)
    if keys_marked | any_marked(MarksV, Begins, first_row, rows, sequences, CHECKED, PACKED):
        for start in range(first_row, tl.minimum(first_row + CHECKED, rows), BLOCK):
            row = start + tl.arange(0, BLOCK).to(tl.int64)
            marked, sequence, first, end, unused = marked_rows(
                MarksK, Sequences, row, rows, sequences, PACKED
            )
            marked_v, _sequence_v, first_v, end_v, _unused_v = marked_rows(
                MarksV, Sequences, row, rows, sequences, PACKED
            )
            marked |= marked_v
            store_rows(GradK, row, dk_row, tl.zeros([BLOCK, DP], tl.float32), unused, D, DP)
            store_rows(GradV, row, dv_row, tl.zeros([BLOCK, DVP], tl.float32), unused, DV, DVP)
            outer = coordinates(Header, row, 6, AXES)
            oa, ob, oc = outer
            for own in range(tl.minimum(first, first_v), tl.maximum(end, end_v)):
                mine = marked & (sequence == own)
                real = mine
                if PADDED:
                    real &= real_keys(KeyRange, KeyMask, mask_row, batch, row, mine, HOLES)
                k = rows_of(K, row, real, k_row, D, DP, True)
                v = rows_of(V, row, real, v_row, DV, DVP, True)
                acc_k = tl.zeros([BLOCK, DP], tl.float32)
                acc_v = tl.zeros([BLOCK, DVP], tl.float32)
                begin, last = columns_of(Begins, own, columns, PACKED)
                for member in range(0, share):
                    head = kv_head * share + member
                    QHead, GradHead = (
                        Q + batch * q_batch + head * q_head,
                        GradOut + batch * g_batch + head * g_head,
                    )
                    first_query = (batch * heads + head) * columns
                    bounds = row_bounds(oa, ob, oc, head, batch, Header, Data, BOUNDS, AXES, True)
                    for at in range(begin, last, BLOCK):
                        query = at + tl.arange(0, BLOCK).to(tl.int64)
                        there = query < last
                        grad = rows_of(GradHead, query, there, g_row, DV, DVP, True)
                        lse = tl.load(Lse + first_query + query, mask=there, other=-float("inf")) * LOG2E
                        delta = tl.load(Delta + first_query + query, mask=there, other=0.0)
                        there &= (tl.max((grad != 0.0).to(tl.int32), 1) > 0) | (delta != 0.0)
                        there &= lse != -float("inf")
                        q = rows_of(QHead, query, there, q_row, D, DP, True)
                        grad = tl.where(there[:, None], grad, tl.zeros_like(grad))
                        pairs = real[:, None] & there[None, :]
                        s, attended, slope = scored(
                            k, q, outer, bounds[6], query, pairs, head, batch, Header, Data, scale,
                            softcap, REST, BIAS, CAPPED, AXES, PRECISION, UPCAST,
                        )  # fmt: skip
                        p = tl.where(attended, tl.math.exp2(s - lse[None, :]), 0.0)
                        dp = product(v, tl.trans(grad), PRECISION, UPCAST)
                        weights = p
                        if DROPS:
                            whole_head = (batch * heads + head).to(tl.int32)
                            kept = kept_pairs(Seed, limit, whole_head, query[None, :], row[:, None], DROPS)
                            weights = tl.where(kept, p * kept_share, 0.0)
                            dp = tl.where(kept, dp * kept_share, 0.0)
                        acc_v += product(weights.to(grad.dtype), grad, PRECISION, UPCAST)
                        ds = tl.where(attended, p * (dp - delta[None, :]) * slope, 0.0)
                        acc_k += product(ds.to(q.dtype), q, PRECISION, UPCAST)
                store_rows(GradK, row, dk_row, acc_k * scale, mine, D, DP)
                store_rows(GradV, row, dv_row, acc_v, mine, DV, DVP)


def needs_repair(call: AttentionCall) -> bool:
    """Whether positions that no row attends to may hold anything: padding, or sequences of `cu_seqlens`."""
    strange = call.key_range is not None or rule_within(call.rule.key) is not None
    return strange and bool(plan(call.rule).parts)  # without parts nobody attends to anything


def repair_output(
    recorder: Recorder,
    call: AttentionCall,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    arrays: Arrays,
) -> None:
    """Computes queries again whose log-sum-exp is NaN, in a call that marks them so."""
    if needs_repair(call):
        _launch(recorder, repair_output_kernel, call, (q, k, v, out, lse), (q, k, v, out), arrays)


def repair_dq(
    recorder: Recorder, call: AttentionCall, given: BackwardInputs, delta: Tensor, marks: tuple[Tensor, ...],
    grad_q: Tensor, arrays: Arrays,
) -> None:  # fmt: skip
    """Computes the gradients of marked queries again, in a call that marks them."""
    matrices = (given.q, given.k, given.v, given.grad_out)
    tensors = (*matrices, given.lse, delta, *marks, grad_q)
    if marks:
        _launch(recorder, repair_dq_kernel, call, tensors, (*matrices, grad_q), arrays)


def repair_dkdv(
    recorder: Recorder, call: AttentionCall, given: BackwardInputs, delta: Tensor, marks: tuple[Tensor, ...],
    grads: tuple[Tensor, Tensor], arrays: Arrays,
) -> None:  # fmt: skip
    """Computes the gradients of marked keys and values again, in a call that marks them."""
    matrices = (given.q, given.k, given.v, given.grad_out)
    tensors = (*matrices, given.lse, delta, *marks, *grads)
    if marks:
        _launch(recorder, repair_dkdv_kernel, call, tensors, (*matrices, *grads), arrays)


def _launch(
    recorder: Recorder, kernel: Any, call: AttentionCall, tensors: tuple[Tensor, ...], matrices: tuple[Tensor,
    ...], arrays: Arrays,
) -> None:  # fmt: skip
    """Launches a kernel of this file on these tensors, of which `matrices` have rows: q, k and v first."""
    q, k, v = matrices[:3]
    of_keys, packed = kernel is repair_dkdv_kernel, rule_within(call.rule.key) is not None
    rows, columns = (k, q) if of_keys else (q, k)
    known, axes = plan(call.rule), plan(call.rule).axes
    axes = tuple(axis.transposed() for axis in axes) if of_keys else axes
    functions = generated_rule(
        known.form.condition, tuple((axis.outer, axis.inner) for axis in axes), call.term, tuple(call.bias)
    )
    numbers = [0] * NUMBERS  # geometry.py
    outer_stride = inner_stride = 1
    for place, axis in reversed([*enumerate(axes)]):
        numbers[AXIS_NUMBERS * place + 5 : AXIS_NUMBERS * place + 8] = (
            axis.inner_size,
            outer_stride,
            inner_stride,
        )
        outer_stride, inner_stride = outer_stride * axis.outer_size, inner_stride * axis.inner_size
    values = call.rule.values
    numbers += [values[name] if name in values else array_number(name, arrays) for name in functions.numbers]
    header = recorder.keep(torch.tensor(numbers, dtype=torch.int64).to(q.device))
    sequences, begins, count = header, header, 1
    if packed:
        apart = "seq" not in arrays
        of_rows, of_columns = (("_k", "_q") if of_keys else ("_q", "_k")) if apart else ("", "")
        sequences, begins = arrays[f"seq{of_rows}"], arrays[f"cu{of_columns}"]
        count = begins.shape[-1] - 2  # positions behind the last sequence form one more
    tiles = -(-rows.shape[2] // CHECKED)
    launch(
        recorder, kernel, tiles * rows.shape[:2].numel(),
        (
            *tensors, sequences, begins, header,
            tuple(arrays[name] for name in functions.arrays) or (header,),
            *weighing(recorder, call, tensors[4]),
            *(stride for x in matrices for stride in row_strides(x)),
            q.shape[1], q.shape[1] // k.shape[1], rows.shape[2], columns.shape[2], count, tiles,
        ),
        _constants(call, q, v)
        | {"BOUNDS": functions.bounds, "REST": functions.rest, "BIAS": functions.bias}
        | {"PACKED": packed, "AXES": len(axes)},
    )  # fmt: skip


def _constants(call: AttentionCall, q: Tensor, v: Tensor) -> dict[str, Any]:
    size = max(padded(q.shape[-1]), padded(v.shape[-1]))
    return {
        "CAPPED": call.softcap is not None,
        "DROPS": 0 if call.seed is None else 2 if call.seed.numel() > 1 else 1,
        "PADDED": call.key_range is not None,
        "HOLES": call.key_mask is not None,
        "D": q.shape[-1],
        "DP": padded(q.shape[-1]),
        "DV": v.shape[-1],
        "DVP": padded(v.shape[-1]),
        "CHECKED": CHECKED,
        "BLOCK": 64 if size <= 128 else 32 if size <= 256 else 16,
        "PRECISION": EXACT_PRODUCTS if q.dtype == torch.float32 and not uses_tf32() else "tf32",
        "UPCAST": INTERPRETED,
        "num_stages": 1,  # most programs only read marks: many fit beside each other
    }
