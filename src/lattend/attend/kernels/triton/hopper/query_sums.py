"""What comes before and after the kernel that makes all gradients: delta and zeros, and dq from its sums."""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportMissingTypeStubs=false

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from lattend.attend.call import BackwardInputs
from lattend.attend.kernels.triton import launched
from lattend.attend.kernels.triton.forward import rows_of
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.memory import row_strides
from lattend.attend.tape import Tape

ROWS = 32  # of a program


@dataclass(frozen=True)
class QuerySums:
    """The gradients of queries while tiles of keys add to them, and how many have, for each block of them."""

    sums: Tensor  # [batch, heads, queries, head_dim], float32
    counters: Tensor  # [batch, heads, blocks]
    delta: Tensor  # [batch, heads, queries]


def begin(tape: Tape, given: BackwardInputs, step: int) -> QuerySums:
    """Sums and counters of 0, and delta."""
    q, out, grad, lse = given.q, given.out, given.grad_out, given.lse
    batch, heads, rows, _ = q.shape
    blocks = -(-rows // step)
    sums, delta = tape.empty(q.shape, torch.float32, q.device), tape.empty(lse.shape, lse.dtype, lse.device)
    counters = tape.empty((batch, heads, blocks), torch.int32, q.device)
    grad_lse = delta if given.grad_lse is None else tape.do(Tensor.contiguous, given.grad_lse)
    arguments = (
        out, grad, grad_lse, delta, sums, counters, *row_strides(out), *row_strides(grad), heads, rows, blocks
    )  # fmt: skip
    widths = {**_widths("D", q), **_widths("DV", out)}
    constants = {"ROWS": ROWS, "STEP": step, "HAS_GRAD_LSE": given.grad_lse is not None, **widths}
    launched.launch(tape, attention_bwd_begin_kernel, _programs(q), arguments, constants)
    return QuerySums(sums, counters, delta)


def end(tape: Tape, sums: Tensor, scale: float, found: Tensor) -> None:
    """Writes the gradient of queries."""
    _, heads, rows, _ = found.shape
    arguments = (sums, found, scale, *row_strides(found), heads, rows)
    constants = {"ROWS": ROWS, **_widths("D", found)}
    launched.launch(tape, attention_bwd_end_kernel, _programs(found), arguments, constants)


def _programs(x: Tensor) -> int:
    return x.shape[0] * x.shape[1] * -(-x.shape[2] // ROWS)


def _widths(name: str, x: Tensor) -> dict[str, int]:
    return {name: x.shape[-1], f"{name}P": padded(x.shape[-1])}


@triton.jit(do_not_specialize=["heads", "rows", "blocks"])
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


@triton.jit(do_not_specialize=["heads", "rows"])
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
