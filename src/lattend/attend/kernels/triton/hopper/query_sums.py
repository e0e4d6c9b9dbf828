"""What comes before and after the kernel that makes all gradients: delta, sums of zeros; and dq from the sums."""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.attend.kernels.triton.forward import rows_of

ROWS = 32  # of a program


@triton.jit(do_not_specialize=["rows", "blocks"])
def attention_bwd_begin_kernel(
    Out, Grad, GradLse, Delta, SumQ, Counters,
    o_batch, o_head, o_row, g_batch, g_head, g_row, heads, rows, blocks,
    ROWS: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr,
    DV: tl.constexpr, DVP: tl.constexpr, HAS_GRAD_LSE: tl.constexpr,
):  # fmt: skip
    """Delta of some rows, the row sums of out * dout less the gradient of the log-sum-exp; their sums and
    the counters of their blocks become 0.
    """
    program, programs = tl.program_id(0), tl.cdiv(rows, ROWS)
    pair, first = program // programs, program % programs * ROWS
    batch, head = (pair // heads).to(tl.int64), (pair % heads).to(tl.int64)
    row = first + tl.arange(0, ROWS)
    inside, at = row < rows, pair.to(tl.int64) * rows + row
    out = rows_of(Out + batch * o_batch + head * o_head, row.to(tl.int64), inside, o_row, DV, DVP, True)
    grad = rows_of(Grad + batch * g_batch + head * g_head, row.to(tl.int64), inside, g_row, DV, DVP, True)
    delta = tl.sum(out.to(tl.float32) * grad.to(tl.float32), 1)
    if HAS_GRAD_LSE:
        delta -= tl.load(GradLse + at, mask=inside, other=0.0)
    tl.store(Delta + at, delta, mask=inside)
    column = tl.arange(0, DP)
    zeros = tl.zeros([ROWS, DP], tl.float32)
    tl.store(SumQ + at[:, None] * D + column[None, :], zeros, mask=inside[:, None] & (column[None, :] < D))
    if first % STEP == 0:
        tl.store(Counters + pair * blocks + first // STEP, 0)


@triton.jit(do_not_specialize=["rows"])
def attention_bwd_end_kernel(
    SumQ, GradQ, scale, q_batch, q_head, q_row, heads, rows,
    ROWS: tl.constexpr, D: tl.constexpr, DP: tl.constexpr,
):  # fmt: skip
    """The gradient of queries from its sums."""
    program, programs = tl.program_id(0), tl.cdiv(rows, ROWS)
    pair, first = program // programs, program % programs * ROWS
    batch, head = (pair // heads).to(tl.int64), (pair % heads).to(tl.int64)
    row = first + tl.arange(0, ROWS)
    column, inside = tl.arange(0, DP), row < rows
    sums = rows_of(SumQ, pair.to(tl.int64) * rows + row, inside, D, D, DP, True) * scale
    to = GradQ + batch * q_batch + head * q_head + row.to(tl.int64)[:, None] * q_row + column[None, :]
    tl.store(to, sums.to(GradQ.dtype.element_ty), mask=inside[:, None] & (column[None, :] < D))
