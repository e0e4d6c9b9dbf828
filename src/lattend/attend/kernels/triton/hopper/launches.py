"""Launches of the kernels for Hopper: one program a multiprocessor, which takes its share of the tiles."""

# Triton has no stubs, and its kernels take plain numbers for constexpr
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from lattend.attend.call import BackwardInputs, Scales
from lattend.attend.kernels.triton import launched
from lattend.attend.kernels.triton.hopper.backward_dkdv import attention_bwd_dkdv_hopper_kernel
from lattend.attend.kernels.triton.hopper.backward_dkdv_narrow import (
    attention_bwd_dkdv_narrow_hopper_kernel,
)
from lattend.attend.kernels.triton.hopper.backward_dkdv_wide import attention_bwd_dkdv_wide_hopper_kernel
from lattend.attend.kernels.triton.hopper.backward_dq import attention_bwd_dq_hopper_kernel
from lattend.attend.kernels.triton.hopper.backward_dq_wide import attention_bwd_dq_wide_hopper_kernel
from lattend.attend.kernels.triton.hopper.descriptors import (
    NARROW_OPTIONS,
    OPTIONS,
    described,
    described_block,
    described_boxes,
    described_numbers,
    processors,
)
from lattend.attend.kernels.triton.hopper.forward import attention_fwd_hopper_kernel
from lattend.attend.kernels.triton.hopper.forward_fp8 import attention_fwd_fp8_hopper_kernel
from lattend.attend.kernels.triton.hopper.forward_narrow import attention_fwd_narrow_hopper_kernel
from lattend.attend.kernels.triton.hopper.images_dkdv import attention_bwd_dkdv_images_kernel
from lattend.attend.kernels.triton.hopper.tiles import ROWS
from lattend.attend.kernels.triton.hopper.transposed import transposed
from lattend.attend.kernels.triton.prepared import Prepared
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.memory import row_strides
from lattend.attend.tape import Tape

Constants = dict[str, Any]
__all__ = ["backward_dkdv", "backward_dq", "forward", "forward_fp8", "images_dkdv", "transposed"]


def forward(
    tape: Tape, ready: Prepared, scale: float, q: Tensor, k: Tensor, v: Tensor, out: Tensor, sums: Tensor,
    lse: Tensor, constants: Constants,
) -> None:  # fmt: skip
    """One part of a forward pass: adds to the sums and the log-sum-exp of earlier ones, or ends them."""
    (batch, heads, rows, _), step = q.shape, ready.shape.step
    works = ready.tiles * batch * heads
    kernel, tables, joined = attention_fwd_hopper_kernel, _tables_of_queries(ready, lse), _joined(ready)
    if _is_narrow(ready):
        kernel, tables, joined = attention_fwd_narrow_hopper_kernel, _tables(ready, lse), {}
    arguments = (
        *described(ROWS.value, q), *described(step, k, v), *described(ROWS.value, out),
        out, sums, lse, *tables, scale, *row_strides(out),
        heads, heads // k.shape[1], rows, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    widths = {"DP": padded(q.shape[-1]), "DV": v.shape[-1], "DVP": padded(v.shape[-1])}
    _launch(tape, kernel, works, arguments, ready, constants | widths | joined, q)


def forward_fp8(
    tape: Tape, ready: Prepared, scale: float, scales: Scales, q: Tensor, k: Tensor, values: Tensor,
    out: Tensor, sums: Tensor, lse: Tensor, constants: Constants,
) -> None:  # fmt: skip
    """The same of queries and keys of 8 bits, and values that are transposed (transposed.py)."""
    (batch, heads, rows, _), step, width = q.shape, ready.shape.step, out.shape[-1]
    works = ready.tiles * batch * heads
    arguments = (
        *described(ROWS.value, q), *described(step, k), described_block(values, padded(width), step),
        *described(ROWS.value, out), out, sums, lse, *_tables(ready, lse), scales, scale, *row_strides(out),
        tuple((x.stride(0) * (x.shape[0] > 1), x.stride(1) * (x.shape[1] > 1)) for x in scales),
        heads, heads // k.shape[1], rows, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    widths = {"DP": padded(q.shape[-1]), "DV": width, "DVP": padded(width)}
    _launch(tape, attention_fwd_fp8_hopper_kernel, works, arguments, ready, constants | widths, q)


def backward_dq(
    tape: Tape, ready: Prepared, scale: float, given: BackwardInputs, grad_lse: Tensor, delta: Tensor,
    sums: Tensor, found: Tensor, written: Tensor | None, constants: Constants,
) -> None:  # fmt: skip
    """One part of the gradients of queries, and delta if it is the first of its queries."""
    grad, _, q, k, v, out, lse = given
    batch, heads, rows, _ = q.shape
    works = ready.tiles * batch * heads
    kernel, tables, joined = attention_bwd_dq_hopper_kernel, _tables_of_queries(ready, lse), _joined(ready)
    if _is_wide(q):
        kernel, tables, joined = attention_bwd_dq_wide_hopper_kernel, _tables(ready, lse), {}
    arguments = (
        *described(ROWS.value, q, grad), *described(ready.shape.step, k, v), *described(ROWS.value, found),
        out, grad_lse, lse, delta, sums, found, lse if written is None else written,
        *tables, scale, *row_strides(out), *row_strides(found),
        heads, heads // k.shape[1], rows, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    constants = constants | _widths(q, v) | joined | {"SOME": written is not None}
    _launch(tape, kernel, works, arguments, ready, constants, q)


def backward_dkdv(
    tape: Tape, ready: Prepared, scale: float, given: BackwardInputs, delta: Tensor,
    sums: tuple[Tensor, ...], found: tuple[Tensor, ...], written: Tensor | None, constants: Constants,
) -> None:  # fmt: skip
    """One part of the gradients of keys and values."""
    grad, _, q, k, v, _, lse = given
    (batch, heads, _, _), kv_heads, keys = q.shape, k.shape[1], k.shape[2]
    works, step = ready.tiles * batch * kv_heads, ready.shape.step
    lse, delta = (_by_fours(tape, x) for x in (lse, delta))
    arguments = (
        *described(ROWS.value, k, v), *described(step, q, grad),
        *(described_numbers(step, x) for x in (lse, delta)),
        *described(ROWS.value, *found), *sums, *found, lse if written is None else written,
        *_tables(ready, lse), scale, *row_strides(found[0]), *row_strides(found[1]),
        kv_heads, heads // kv_heads, keys, ready.tiles, *ready.strides, works, lse.shape[-1],
    )  # fmt: skip
    constants = constants | _widths(q, v) | {"SHARED": heads > kv_heads, "SOME": written is not None}
    if _is_narrow(ready):
        kernel = attention_bwd_dkdv_narrow_hopper_kernel
    elif _is_wide(q):
        kernel = attention_bwd_dkdv_wide_hopper_kernel
    else:
        kernel = attention_bwd_dkdv_hopper_kernel
        constants |= {"CHUNKED": ready.chunks is not None}
    _launch(tape, kernel, works, arguments, ready, constants, q)


def images_dkdv(
    tape: Tape, ready: Prepared, scale: float, given: BackwardInputs, delta: Tensor,
    found: tuple[Tensor, Tensor],
) -> None:  # fmt: skip
    """The gradients of keys and values on images."""
    grad, _, q, k, v, _, lse = given
    (batch, heads, _, _), (down, across), inner = k.shape, ready.shape.outer, ready.shape.inner
    works, half = ready.tiles * batch * heads, (down // 2, across)
    keys = tuple(axis.outer_size for axis in ready.part.axes)
    queries = tuple(axis.inner_size for axis in ready.part.axes)
    arguments = (
        *(described_boxes(x, keys, half) for x in (k, v)),
        *(described_boxes(x, queries, inner) for x in (q, grad)), lse, delta,
        *(described_boxes(x, keys, half) for x in found), *found,
        ready.table, ready.header, ready.data or (lse,), scale,
        *row_strides(found[0]), *row_strides(found[1]), heads, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    constants = {"TY": half[0], "TX": half[1], "BY": inner[0], "BX": inner[1], "STAGES": ready.shape.stages}
    constants |= {"BOUNDS": ready.functions.bounds, **_widths(q, v), **OPTIONS}
    programs = min(works, processors(q.device))
    launched.launch(tape, attention_bwd_dkdv_images_kernel, programs, arguments, constants)


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
        **(NARROW_OPTIONS if _is_narrow(ready) else OPTIONS),
    }
    launched.launch(tape, kernel, min(works, processors(q.device)), arguments, constants)


def _tables(ready: Prepared, unused: Tensor) -> tuple[Any, ...]:
    bounds = ready.table if ready.row_bounds is None else ready.row_bounds
    return ready.table, ready.header, ready.data or (unused,), bounds


def _tables_of_queries(ready: Prepared, unused: Tensor) -> tuple[Any, ...]:
    table, header, *others = _tables(ready, unused)
    return table, header, header if ready.joined is None else ready.joined.header, *others


def _joined(ready: Prepared) -> Constants:
    return {"JOINED_BOUNDS": None if ready.joined is None else ready.joined.bounds}


def _widths(q: Tensor, v: Tensor) -> Constants:
    return {"D": q.shape[-1], "DV": v.shape[-1], "DP": padded(q.shape[-1])}


def _is_narrow(ready: Prepared) -> bool:
    """Whether three groups of warps compute, each with fewer registers."""
    return ready.shape.rows == 3 * ROWS.value


def _is_wide(q: Tensor) -> bool:
    """Whether a group has registers for the sums of one matrix only, and a tile room for one."""
    return padded(q.shape[-1]) > 128


def _by_fours(tape: Tape, x: Tensor) -> Tensor:
    """Numbers of queries, so many for each head that TMA can begin with the first: a multiple of 16 bytes."""
    return tape.do(partial(pad, pad=(0, -x.shape[-1] % 4)), x) if x.shape[-1] % 4 else x
