"""Launches of the kernels for Hopper: one program a multiprocessor, which takes its share of the tiles."""

# Triton has no stubs, and its kernels take plain numbers for constexpr
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable
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
from lattend.attend.kernels.triton.hopper.forward import attention_fwd_hopper_kernel
from lattend.attend.kernels.triton.hopper.tiles import OPTIONS, ROWS, described, group_of, processors
from lattend.attend.kernels.triton.prepared import Prepared
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.memory import row_strides
from lattend.attend.tape import Tape

Constants = dict[str, Any]
Views = Callable[..., list[Any]]


def forward(
    tape: Tape, ready: Prepared, scale: float, q: Tensor, k: Tensor, v: Tensor, out: Tensor, sums: Tensor,
    lse: Tensor, constants: Constants,
) -> None:  # fmt: skip
    """One part of a forward pass: adds to the sums and the log-sum-exp of earlier ones, or ends them."""
    batch, heads, queries, _ = q.shape
    rows, columns = _views(ready)
    works = ready.tiles * batch * heads
    arguments = (
        *rows(q), *columns(k, v), *_joined_columns(ready, k, v), *rows(out),
        out, sums, lse, *_tables_of_queries(ready, lse), scale, *row_strides(out),
        heads, heads // k.shape[1], queries, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    widths = {"DP": padded(q.shape[-1]), "DV": v.shape[-1], "DVP": padded(v.shape[-1])}
    constants = constants | widths | _joined(ready)
    _launch(tape, attention_fwd_hopper_kernel, works, arguments, ready, constants, q)


def backward_dq(
    tape: Tape, ready: Prepared, scale: float, given: BackwardInputs, grad_lse: Tensor, delta: Tensor,
    sums: Tensor, found: Tensor, written: Tensor | None, constants: Constants,
) -> None:  # fmt: skip
    """One part of the gradients of queries, and delta if it is the first of its queries."""
    grad, _, q, k, v, out, lse = given
    batch, heads, queries, _ = q.shape
    rows, columns = _views(ready)
    works = ready.tiles * batch * heads
    arguments = (
        *rows(q, grad), *columns(k, v), *_joined_columns(ready, k, v), *rows(found),
        out, grad_lse, lse, delta, sums, found, lse if written is None else written,
        *_tables_of_queries(ready, lse), scale, *row_strides(out), *row_strides(found),
        heads, heads // k.shape[1], queries, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    constants = constants | _widths(q, v) | _joined(ready) | {"SOME": written is not None}
    _launch(tape, attention_bwd_dq_hopper_kernel, works, arguments, ready, constants, q)


def backward_dkdv(
    tape: Tape, ready: Prepared, scale: float, given: BackwardInputs, delta: Tensor,
    sums: tuple[Tensor, ...], found: tuple[Tensor, ...], written: Tensor | None, constants: Constants,
) -> None:  # fmt: skip
    """One part of the gradients of keys and values."""
    grad, _, q, k, v, _, lse = given
    (batch, heads, _, _), kv_heads, keys = q.shape, k.shape[1], k.shape[2]
    works, step = ready.tiles * batch * kv_heads, ready.shape.step
    rows, columns = _views(ready)
    period = ready.part.axes[0].inner_order.period
    lse, delta = (_by_fours(tape, _by_residue(tape, x, period)) for x in (lse, delta))
    arguments = (
        *rows(k, v), *columns(q, grad), *(_numbers(step, x) for x in (lse, delta)),
        *rows(*found), *sums, *found, lse if written is None else written,
        *_tables(ready, lse), scale, *row_strides(found[0]), *row_strides(found[1]),
        kv_heads, heads // kv_heads, keys, ready.tiles, *ready.strides, works, period * lse.shape[-1],
    )  # fmt: skip
    constants = constants | _widths(q, v) | {"SHARED": heads > kv_heads, "SOME": written is not None}
    constants |= {"CHUNKED": ready.chunks is not None}
    _launch(tape, attention_bwd_dkdv_hopper_kernel, works, arguments, ready, constants, q)


def _launch(
    tape: Tape, kernel: Any, works: int, arguments: tuple[Any, ...], ready: Prepared, constants: Constants,
    q: Tensor,
) -> None:  # fmt: skip
    axis = ready.part.axes[0]
    constants |= {
        "OUTER": group_of(axis.outer_order),
        "INNER": group_of(axis.inner_order),
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


def _tables_of_queries(ready: Prepared, unused: Tensor) -> tuple[Any, ...]:
    table, header, *others = _tables(ready, unused)
    return table, header, header if ready.joined is None else ready.joined.header, *others


def _views(ready: Prepared) -> tuple[Views, Views]:
    """How TMA copies tensors whose rows are a tile's own, and those of its steps."""
    axis, step = ready.part.axes[0], ready.shape.step
    return partial(described, ROWS.value, order=axis.outer_order), partial(
        described, step, order=axis.inner_order
    )


def _joined_columns(ready: Prepared, k: Tensor, v: Tensor) -> list[Any]:
    """The keys and values of a part that joins, which lie one after another, in boxes like the others."""
    return described(ready.shape.step, k, v, group=group_of(ready.part.axes[0].inner_order))


def _joined(ready: Prepared) -> Constants:
    if ready.joined is None:
        return {"JOINED_BOUNDS": None, "JOINS": 0}
    return {"JOINED_BOUNDS": ready.joined.bounds, "JOINS": 2 if ready.joined.several else 1}


def _widths(q: Tensor, v: Tensor) -> Constants:
    return {"D": q.shape[-1], "DV": v.shape[-1], "DP": padded(q.shape[-1])}


def _numbers(step: int, x: Tensor) -> Any:
    """Numbers of queries [batch, heads, queries] as TMA copies them, those of a step at once."""
    layout = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=1)
    return TensorDescriptor(x, [x.numel()], [1], [step], layout)


def _by_residue(tape: Tape, x: Tensor, period: int) -> Tensor:
    """Numbers of queries, those of a residue class together: [batch, heads, residues, queries]."""
    return x if period == 1 else tape.do(partial(_residues_apart, period), x)


def _residues_apart(period: int, x: Tensor) -> Tensor:
    return x.unflatten(-1, (-1, period)).transpose(-1, -2).contiguous()


def _by_fours(tape: Tape, x: Tensor) -> Tensor:
    """Numbers of queries, so many for each head that TMA can begin with the first: a multiple of 16 bytes."""
    return tape.do(partial(pad, pad=(0, -x.shape[-1] % 4)), x) if x.shape[-1] % 4 else x
