"""Launches of the kernels for Hopper: one program a multiprocessor, which takes its share of the tiles."""

# Triton has no stubs, and its kernels take plain numbers for constexpr
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from lattend.attend.call.attention_call import BackwardInputs, Scales
from lattend.attend.call.tensors import row_strides
from lattend.attend.kernels.triton import launch_replay
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
    described_groups,
    described_numbers,
    processors,
)
from lattend.attend.kernels.triton.hopper.forward import attention_fwd_hopper_kernel
from lattend.attend.kernels.triton.hopper.forward_fp8 import attention_fwd_fp8_hopper_kernel
from lattend.attend.kernels.triton.hopper.forward_narrow import attention_fwd_narrow_hopper_kernel
from lattend.attend.kernels.triton.hopper.images_dkdv import attention_bwd_dkdv_images_kernel
from lattend.attend.kernels.triton.hopper.images_dq import attention_bwd_dq_images_kernel
from lattend.attend.kernels.triton.hopper.images_forward import attention_fwd_images_kernel
from lattend.attend.kernels.triton.hopper.tiles import ROWS
from lattend.attend.kernels.triton.hopper.transposed import transposed
from lattend.attend.kernels.triton.launch_arguments import LaunchArguments
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.replay.recorder import Recorder
from lattend.plans.order import Order

Constants = dict[str, Any]
OfRows = tuple[Tensor, ...]  # which rows have sums of earlier parts; then, if wanted, where NaN is marked
__all__ = [
    "backward_dkdv", "backward_dq", "forward", "forward_fp8", "images_dkdv", "images_dq", "images_forward",
    "processors", "transposed",
]  # fmt: skip


def forward(
    recorder: Recorder, ready: LaunchArguments, scale: float, q: Tensor, k: Tensor, v: Tensor, out: Tensor,
    sums: Tensor, lse: Tensor, constants: Constants,
) -> None:  # fmt: skip
    """One part of a forward pass: adds to the sums and the log-sum-exp of earlier ones, or ends them."""
    (batch, heads, rows, _), (outer, inner) = q.shape, _orders(ready)
    works, step = ready.tiles * batch * heads, ready.shape.step
    if _is_narrow(ready):
        kernel, tables, more, joined = attention_fwd_narrow_hopper_kernel, _tables(ready, lse), {}, ()
    else:
        kernel, tables = attention_fwd_hopper_kernel, _tables_of_queries(ready, lse)
        more = _several(ready) | {"IN_TURN": ready.shape.in_turn, "LEAVES": ready.leaves}
        joined = _joined_columns(ready, k, v)
    arguments = (
        *described(ROWS.value, q, order=outer), *described(step, k, v, order=inner), *joined,
        *described(ROWS.value, out, order=outer),
        out, sums, lse, *tables, scale, *row_strides(out),
        heads, heads // k.shape[1], rows, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    widths = {"DP": padded(q.shape[-1]), "DV": v.shape[-1], "DVP": padded(v.shape[-1])}
    _launch(recorder, kernel, works, arguments, ready, constants | widths | more, q)


def forward_fp8(
    recorder: Recorder, ready: LaunchArguments, scale: float, scales: Scales, q: Tensor, k: Tensor, values:
    Tensor, out: Tensor, sums: Tensor, lse: Tensor, constants: Constants,
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
    _launch(recorder, attention_fwd_fp8_hopper_kernel, works, arguments, ready, constants | widths, q)


def backward_dq(
    recorder: Recorder, ready: LaunchArguments, scale: float, given: BackwardInputs, grad_lse: Tensor, delta:
    Tensor, sums: Tensor, found: Tensor, of_rows: OfRows, constants: Constants,
) -> None:  # fmt: skip
    """One part of the gradients of queries, and delta if it is the first of its queries."""
    grad, _, q, k, v, out, lse = given
    (batch, heads, rows, _), (outer, inner) = q.shape, _orders(ready)
    works, step = ready.tiles * batch * heads, ready.shape.step
    if _is_wide(q):
        kernel, tables, more, joined = attention_bwd_dq_wide_hopper_kernel, _tables(ready, lse), {}, ()
    else:
        kernel, tables = attention_bwd_dq_hopper_kernel, _tables_of_queries(ready, lse)
        more = _several(ready) | {"BY_HEAD": ready.even, "LEAVES": ready.leaves}
        joined = _joined_columns(ready, k, v)
    arguments = (
        *described(ROWS.value, q, grad, order=outer), *described(step, k, v, order=inner), *joined,
        *described(ROWS.value, found, order=outer),
        out, grad_lse, lse, delta, sums, found, of_rows,
        *tables, scale, *row_strides(out), *row_strides(found),
        heads, heads // k.shape[1], rows, ready.tiles, *ready.strides, works,
    )  # fmt: skip
    constants = constants | _widths(q, v) | more
    _launch(recorder, kernel, works, arguments, ready, constants, q)


def backward_dkdv(
    recorder: Recorder, ready: LaunchArguments, scale: float, given: BackwardInputs, delta: Tensor,
    sums: tuple[Tensor, ...], found: tuple[Tensor, ...], of_rows: OfRows, constants: Constants,
) -> None:  # fmt: skip
    """One part of the gradients of keys and values."""
    grad, _, q, k, v, _, lse = given
    (batch, heads, _, _), kv_heads, keys = q.shape, k.shape[1], k.shape[2]
    works, step, (outer, inner) = ready.tiles * batch * kv_heads, ready.shape.step, _orders(ready)
    lse, delta = (_by_fours(recorder, _by_residue(recorder, x, inner)) for x in (lse, delta))
    arguments = (
        *described(ROWS.value, k, v, order=outer), *described(step, q, grad, order=inner),
        *(described_numbers(step, x) for x in (lse, delta)),
        *described(ROWS.value, *found, order=outer), *sums, *found, of_rows,
        *_tables(ready, lse), scale, *row_strides(found[0]), *row_strides(found[1]),
        kv_heads, heads // kv_heads, keys, ready.tiles, *ready.strides, works, lse.shape[2:].numel(),
    )  # fmt: skip
    constants = constants | _widths(q, v) | {"SHARED": heads > kv_heads}
    if _is_narrow(ready):
        kernel = attention_bwd_dkdv_narrow_hopper_kernel
    elif _is_wide(q):
        kernel = attention_bwd_dkdv_wide_hopper_kernel
    else:
        kernel = attention_bwd_dkdv_hopper_kernel
        constants |= {"CHUNKED": ready.chunks is not None, "LEAVES": ready.leaves}
        constants |= {"BY_HEAD": ready.even, **_groups(ready)}
    _launch(recorder, kernel, works, arguments, ready, constants, q)


def images_forward(
    recorder: Recorder,
    ready: LaunchArguments,
    scale: float,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
) -> None:
    """The forward pass on images."""
    arguments = (
        *_rows_in_boxes(ready, q), *_steps_in_boxes(ready, k, v), *_rows_in_boxes(ready, out), out, lse,
        ready.table, ready.shares, ready.header, ready.data or (lse,), scale, *row_strides(out),
        q.shape[1], q.shape[1] // k.shape[1],
    )  # fmt: skip
    widths = {"DP": padded(q.shape[-1]), "DV": v.shape[-1], "DVP": padded(v.shape[-1])}
    _launch_images(recorder, attention_fwd_images_kernel, arguments, ready, widths)


def images_dq(
    recorder: Recorder, ready: LaunchArguments, scale: float, given: BackwardInputs, grad_lse: Tensor, delta:
    Tensor, found: Tensor, constants: Constants,
) -> None:  # fmt: skip
    """The gradients of queries on images, and delta."""
    grad, _, q, k, v, out, lse = given
    arguments = (
        *_rows_in_boxes(ready, q, grad), *_steps_in_boxes(ready, k, v), *_rows_in_boxes(ready, found),
        out, grad_lse, lse, delta, found, ready.table, ready.shares, ready.header, ready.data or (lse,),
        scale, *row_strides(out), *row_strides(found), q.shape[1], q.shape[1] // k.shape[1],
    )  # fmt: skip
    _launch_images(recorder, attention_bwd_dq_images_kernel, arguments, ready, constants | _widths(q, v))


def images_dkdv(
    recorder: Recorder, ready: LaunchArguments, scale: float, given: BackwardInputs, delta: Tensor,
    found: tuple[Tensor, Tensor],
) -> None:  # fmt: skip
    """The gradients of keys and values on images."""
    grad, _, q, k, v, _, lse = given
    arguments = (
        *_rows_in_boxes(ready, k, v), *_steps_in_boxes(ready, q, grad), lse, delta,
        *_rows_in_boxes(ready, *found), *found, ready.table, ready.shares, ready.header,
        ready.data or (lse,), scale, *row_strides(found[0]), *row_strides(found[1]), k.shape[1],
    )  # fmt: skip
    _launch_images(recorder, attention_bwd_dkdv_images_kernel, arguments, ready, _widths(q, v))


def _launch_images(
    recorder: Recorder, kernel: Any, arguments: tuple[Any, ...], ready: LaunchArguments, constants: Constants
) -> None:
    assert ready.shares is not None
    (down, across), inner, programs = ready.shape.outer, ready.shape.inner, len(ready.shares[0]) - 1
    constants |= {"TY": down // 2, "TX": across, "BY": inner[0], "BX": inner[1]}
    constants |= {"BOUNDS": ready.functions.bounds, "STAGES": ready.shape.stages, **OPTIONS}
    launch_replay.launch(recorder, kernel, programs, (*arguments, ready.tiles, *ready.strides), constants)


def _rows_in_boxes(ready: LaunchArguments, *tensors: Tensor) -> list[Any]:
    """The tensors as TMA copies the boxes of a tile, one for each group of warps."""
    (down, across), sizes = ready.shape.outer, tuple(axis.outer_size for axis in ready.part.axes)
    return [described_boxes(x, sizes, (down // 2, across)) for x in tensors]


def _steps_in_boxes(ready: LaunchArguments, *tensors: Tensor) -> list[Any]:
    """The tensors as TMA copies the boxes of steps."""
    sizes = tuple(axis.inner_size for axis in ready.part.axes)
    return [described_boxes(x, sizes, ready.shape.inner) for x in tensors]


def _launch(
    recorder: Recorder, kernel: Any, works: int, arguments: tuple[Any, ...], ready: LaunchArguments,
    constants: Constants, q: Tensor,
) -> None:  # fmt: skip
    constants |= {
        "BOUNDS": ready.functions.bounds,
        "COLUMNS": ready.functions.columns,
        "PAIRS": ready.functions.pairs,
        "STEP": ready.shape.step,
        "STAGES": ready.shape.stages,
        "HAS_FULL": ready.part.knows_full and not ready.leaves,  # steps are left out in their order
        "ROW_BOUNDS": ready.row_bounds is not None,
        **(NARROW_OPTIONS if _is_narrow(ready) else OPTIONS),
    }
    launch_replay.launch(recorder, kernel, min(works, processors(q.device)), arguments, constants)


def _tables(ready: LaunchArguments, unused: Tensor) -> tuple[Any, ...]:
    bounds = ready.table if ready.row_bounds is None else ready.row_bounds
    return ready.table, ready.header, ready.data or (unused,), bounds


def _tables_of_queries(ready: LaunchArguments, unused: Tensor) -> tuple[Any, ...]:
    table, header, *others = _tables(ready, unused)
    return table, header, header if ready.joined is None else ready.joined.header, *others


def _several(ready: LaunchArguments) -> Constants:
    """What the kernels are told that take parts that join, and orders of positions."""
    return {"JOINED_BOUNDS": None if ready.joined is None else ready.joined.bounds, **_groups(ready)}


def _orders(ready: LaunchArguments) -> tuple[Order, Order]:
    """In which order the positions of rows lie, and those of columns."""
    return ready.part.axes[0].outer_order, ready.part.axes[0].inner_order


def _groups(ready: LaunchArguments) -> Constants:
    """How many positions of each period follow each other, 0 where all do: of rows, and of columns."""
    outer, inner = (order.group if order.period > 1 else 0 for order in _orders(ready))
    return {"OUTER": outer, "INNER": inner}


def _joined_columns(ready: LaunchArguments, k: Tensor, v: Tensor) -> list[Any]:
    """The keys and values of a part that joins, which follow each other, in boxes as large as the others'."""
    step, (_, inner) = ready.shape.step, _orders(ready)
    if ready.joined is None or inner.period == 1:
        return described(step, k, v, order=inner)
    return [described_groups(x, step, Order(inner.group, inner.group)) for x in (k, v)]


def _widths(q: Tensor, v: Tensor) -> Constants:
    return {"D": q.shape[-1], "DV": v.shape[-1], "DP": padded(q.shape[-1])}


def _is_narrow(ready: LaunchArguments) -> bool:
    """Whether three groups of warps compute, each with fewer registers."""
    return ready.shape.rows == 3 * ROWS.value


def _is_wide(q: Tensor) -> bool:
    """Whether a group has registers for the sums of one matrix only, and a tile room for one."""
    return padded(q.shape[-1]) > 128


def _by_residue(recorder: Recorder, x: Tensor, order: Order) -> Tensor:
    """Numbers of queries [batch, heads, queries]; if every l-th is taken, those of a class together."""
    return x if order.period == 1 else recorder.do(partial(_residues_apart, order.period), x)


def _residues_apart(period: int, x: Tensor) -> Tensor:
    return x.unflatten(-1, (-1, period)).transpose(-1, -2).contiguous()


def _by_fours(recorder: Recorder, x: Tensor) -> Tensor:
    """Numbers of queries, so many for each head that TMA can begin with the first: a multiple of 16 bytes."""
    return recorder.do(partial(pad, pad=(0, -x.shape[-1] % 4)), x) if x.shape[-1] % 4 else x
