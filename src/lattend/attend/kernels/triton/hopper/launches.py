"""Launches of the kernels for Hopper: one program a multiprocessor, which takes its share of the tiles."""

# Triton has no stubs, and its kernels take plain numbers for constexpr
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor
from torch.nn.functional import pad
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from lattend.attend.call import BackwardInputs
from lattend.attend.kernels.triton import launched
from lattend.attend.kernels.triton.hopper.backward_dkdv import attention_bwd_dkdv_hopper_kernel
from lattend.attend.kernels.triton.hopper.backward_dq import attention_bwd_dq_hopper_kernel
from lattend.attend.kernels.triton.hopper.backward_fused import attention_bwd_fused_hopper_kernel
from lattend.attend.kernels.triton.hopper.forward import attention_fwd_hopper_kernel
from lattend.attend.kernels.triton.hopper.query_sums import QuerySums
from lattend.attend.kernels.triton.hopper.tiles import GROUPS, OPTIONS, ROWS, described, processors
from lattend.attend.kernels.triton.prepared import Prepared
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.memory import row_strides
from lattend.attend.tape import Tape

Constants = dict[str, Any]


def forward(
    tape: Tape, ready: Prepared, scale: float, q: Tensor, k: Tensor, v: Tensor, out: Tensor, sums: Tensor,
    lse: Tensor, constants: Constants,
) -> None:  # fmt: skip
    """One part of a forward pass: adds to the sums and the log-sum-exp of earlier ones, or ends them."""
    (batch, heads, rows, _), step = q.shape, ready.shape.step
    works = ready.tiles * batch * heads
    arguments = (
        *described(ROWS.value, q), *described(step, k, v), *described(ROWS.value, out),
        out, sums, lse, *_tables(ready, lse), scale, *row_strides(out),
        heads, heads // k.shape[1], rows, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    widths = {"DP": padded(q.shape[-1]), "DV": v.shape[-1], "DVP": padded(v.shape[-1])}
    _launch(tape, attention_fwd_hopper_kernel, works, arguments, ready, constants | widths, q)


def backward_dq(
    tape: Tape, ready: Prepared, scale: float, given: BackwardInputs, grad_lse: Tensor, delta: Tensor,
    sums: Tensor, found: Tensor, constants: Constants,
) -> None:  # fmt: skip
    """One part of the gradients of queries, and delta if it is the first of its queries."""
    grad, _, q, k, v, out, lse = given
    batch, heads, rows, _ = q.shape
    works = ready.tiles * batch * heads
    arguments = (
        *described(ROWS.value, q, grad), *described(ready.shape.step, k, v), *described(ROWS.value, found),
        out, grad_lse, lse, delta, sums, found,
        *_tables(ready, lse), scale, *row_strides(out), *row_strides(found),
        heads, heads // k.shape[1], rows, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    _launch(tape, attention_bwd_dq_hopper_kernel, works, arguments, ready, constants | _widths(q, v), q)


def backward_dkdv(
    tape: Tape, ready: Prepared, scale: float, given: BackwardInputs, delta: Tensor,
    sums: tuple[Tensor, Tensor], found: tuple[Tensor, Tensor], constants: Constants,
) -> None:  # fmt: skip
    """One part of the gradients of keys and values."""
    grad, _, q, k, v, _, lse = given
    (batch, heads, _, _), kv_heads, keys = q.shape, k.shape[1], k.shape[2]
    works, step = ready.tiles * batch * kv_heads, ready.shape.step
    lse, delta = (_by_fours(tape, x) for x in (lse, delta))
    arguments = (
        *described(ROWS.value, k, v), *described(step, q, grad), *(_numbers(step, x) for x in (lse, delta)),
        *described(ROWS.value, *found), *sums, *found, *_tables(ready, lse), scale,
        *row_strides(found[0]), *row_strides(found[1]),
        kv_heads, heads // kv_heads, keys, ready.tiles, *ready.strides, works, lse.shape[-1],
    )  # fmt: skip
    constants = constants | _widths(q, v) | {"SHARED": heads > kv_heads}
    _launch(tape, attention_bwd_dkdv_hopper_kernel, works, arguments, ready, constants, q)


def _launch(
    tape: Tape, kernel: Any, works: int, arguments: tuple[Any, ...], ready: Prepared, constants: Constants,
    q: Tensor,
) -> None:  # fmt: skip
    constants |= {
        "BOUNDS": ready.functions.bounds,
        "COLUMNS": ready.functions.columns,
        "PAIRS": ready.functions.pairs,
        "STEP": ready.shape.step,
        "STAGES": ready.shape.stages,
        "HAS_FULL": ready.part.knows_full,
        "ROW_BOUNDS": ready.row_bounds is not None,
        **OPTIONS,
    }
    launched.launch(tape, kernel, min(works, processors(q.device)), arguments, constants)


def _tables(ready: Prepared, unused: Tensor) -> tuple[Any, ...]:
    bounds = ready.table if ready.row_bounds is None else ready.row_bounds
    return ready.table, ready.header, ready.data or (unused,), bounds


def _widths(q: Tensor, v: Tensor) -> Constants:
    return {"D": q.shape[-1], "DV": v.shape[-1], "DP": padded(q.shape[-1])}


def _numbers(step: int, x: Tensor) -> Any:
    """Numbers of queries [batch, heads, queries] as TMA copies them, those of a step at once."""
    layout = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=1)
    return TensorDescriptor(x, [x.numel()], [1], [step], layout)


def _by_fours(tape: Tape, x: Tensor) -> Tensor:
    """Numbers of queries, so many for each head that TMA can begin with the first: a multiple of 16 bytes."""
    return tape.do(partial(pad, pad=(0, -x.shape[-1] % 4)), x) if x.shape[-1] % 4 else x


def backward_fused(
    tape: Tape, ready: Prepared, scale: float, given: BackwardInputs, queries: QuerySums,
    sums: tuple[Tensor, Tensor], found: tuple[Tensor, Tensor], constants: Constants,
) -> None:  # fmt: skip
    """One part of all gradients; those of queries are added to their sums, in order where one is known."""
    grad, _, q, k, v, _, lse = given
    (batch, heads, _, _), kv_heads, keys = q.shape, k.shape[1], k.shape[2]
    works, step = ready.tiles * batch * kv_heads, ready.shape.step
    lse, delta = (_by_fours(tape, x) for x in (lse, queries.delta))
    first = queries.counters if ready.first_tiles is None else ready.first_tiles
    arguments = (
        *described(ROWS.value, k, v), *described(step, q, grad), *(_numbers(step, x) for x in (lse, delta)),
        _halves(step, queries.sums), first, queries.counters,
        *described(ROWS.value, *found), *sums, *found, *_tables(ready, lse), scale,
        *row_strides(found[0]), *row_strides(found[1]),
        kv_heads, heads // kv_heads, keys, ready.tiles, *ready.strides, works, lse.shape[-1],
    )  # fmt: skip
    constants = constants | _widths(q, v) | {"ORDERED": ready.first_tiles is not None}
    _launch(tape, attention_bwd_fused_hopper_kernel, works, arguments, ready, constants, q)


def _halves(step: int, x: Tensor) -> Any:
    """Sums as TMA adds to them: of a step's rows the half that one group has."""
    block = [1, 1, step, padded(x.shape[-1]) // GROUPS.value]
    return TensorDescriptor.from_tensor(x, block, gl.NVMMASharedLayout.get_default_for(block, gl.float32))
