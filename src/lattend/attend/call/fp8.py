"""Attention of 8 bits: q, k and v as torch.float8_e4m3fn, each head's numbers multiplied by a scale.

The kernel for Hopper multiplies numbers of 8 bits as they are. Any other call is dequantized first, and
other kernels run it: in float32 on a CPU, in bfloat16 on a GPU, where keys and values are exact and queries,
which take the scales of both, are rounded once. The output is bfloat16 either way, and has no gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lattend.attend.bias import Bias, dtype_name, shape_text
from lattend.attend.call.attention_call import AttentionCall, CallSignature, Scales, rule_at, rule_of
from lattend.attend.call.checked_call import check_options
from lattend.attend.call.inputs import (
    arrays_given,
    check_names,
    check_shapes,
    check_sinks,
    numbers_given,
    sizes_given,
)
from lattend.attend.call.options import AttentionOptions, other_options
from lattend.attend.call.rule_names import rule_names
from lattend.attend.call.sinks import with_sinks
from lattend.attend.call.tensors import per_query_head
from lattend.attend.kernels import dispatch
from lattend.attend.kernels.triton import kernel as triton
from lattend.attend.kernels.triton.fp8 import DTYPE
from lattend.attend.operators.tracing import left_to_python
from lattend.attend.replay import plain_call
from lattend.attend.replay.compiled_call import MAX_CALLS, wants_gradient
from lattend.attend.replay.recorder import RecordedPass, Recorder
from lattend.attend.replay.signature import is_plain
from lattend.errors import LattendError, NamingError, TensorError
from lattend.recent import Recent
from lattend.rules.reader import RuleLike, arrays_in, read_rule

MOST = torch.finfo(DTYPE).max  # 448
ScalesLike = Sequence[float | Tensor]


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the numbers of [batch, heads, …] in 8 bits, and each head's scale, [batch, heads] in float32.

    A head's largest number becomes 448, the largest that e4m3 has, and x is about found * scale.

    >>> found, scale = quantize(torch.tensor([0.0, -3.0, 7.0]).view(1, 1, 3, 1))
    >>> found.flatten().tolist(), scale.tolist()  # 7/448 = 0.015625; -3/0.015625 = -192
    ([0.0, -192.0, 448.0], [[0.015625]])
    """
    if not isinstance(x, Tensor) or x.dim() < 3 or not x.is_floating_point():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TensorError("quantize takes a tensor of floating-point numbers [batch, heads, …]")
    wide = x.float()
    largest = wide.abs().flatten(2).amax(-1) if x.numel() else wide.new_zeros(x.shape[:2])
    scale = torch.where(largest == 0, 1.0, largest / MOST)
    return (wide / scale[(..., *[None] * (x.dim() - 2))]).to(DTYPE), scale


def scales_given(scales: object, q: Tensor, k: Tensor, v: Tensor) -> Scales:
    """Returns the scales of q, k and v, each [batch or 1, heads or 1] in float32; raises unless they fit."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor) or x.dtype != DTYPE:  # pyright: ignore[reportUnnecessaryIsInstance]
            found = dtype_name(x.dtype) if isinstance(x, Tensor) else type(x).__name__  # pyright: ignore
            raise TensorError(
                f"scales are those of q, k and v in {dtype_name(DTYPE)}, and {name} is {found}; "
                "lattend.attend.quantize gives both"
            )
    if not isinstance(scales, (tuple, list)) or len(scales) != 3:  # pyright: ignore[reportUnknownArgumentType]
        raise NamingError("scales are three, of q, k and v: scales=(q_scale, k_scale, v_scale)")
    of_q, of_k, of_v = (
        _scale_given(name, scale, x)  # pyright: ignore[reportUnknownArgumentType]
        for name, scale, x in zip("qkv", scales, (q, k, v), strict=True)  # pyright: ignore
    )
    return of_q, of_k, of_v


def _scale_given(name: str, scale: object, x: Tensor) -> Tensor:
    if isinstance(scale, Tensor):
        heads, batch = x.shape[1], 1 if x.dim() == 3 else x.shape[0]  # laid end to end there is no batch
        if not scale.is_floating_point() or scale.shape not in ((), (heads,), (batch, heads)):
            raise TensorError(
                f"the scale of {name} is a number, or floats ({heads},) or ({batch}, {heads}), "
                f"one a head; got {dtype_name(scale.dtype)} {shape_text(scale)}"
            )
        if scale.device != x.device:
            raise TensorError(f"{name} is on {x.device} and its scale on {scale.device}; move one")
        wide = scale.to(torch.float32)
        return wide if wide.dim() == 2 else wide.reshape(1, -1)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not scale >= 0:
        raise NamingError(f"the scale of {name} is a number from 0 on, or a tensor of them; got {scale!r}")
    return x.new_full((1, 1), float(scale), dtype=torch.float32)


def check_no_gradients(q: Tensor, k: Tensor, v: Tensor, scales: Scales, bias: object, sinks: object) -> None:
    """Raises if a gradient is wanted."""
    added = bias.tensors.values() if isinstance(bias, Bias) else (bias,)
    if wants_gradient(*(x for x in (q, k, v, *scales, *added, sinks) if isinstance(x, Tensor))):
        raise LattendError(
            "attention of 8 bits has no gradients, and one is wanted: call it under torch.no_grad(), or "
            "give q, k and v in bfloat16"
        )


# The kernel of 8 bits

_REFUSED = other_options(
    ("scale", "scales", "sinks", "return_lse", "kernel", "deterministic", "cache", "dropout")
)


def attend_8_bit(
    attend: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, options: AttentionOptions,
    values: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Runs attention of 8 bits by its kernel where that takes the call, else on dequantized numbers."""
    if options.cache is not None or options.dropout:
        reason = (
            "dropout is for training" if options.cache is None else "a cache holds numbers of 16 bits or more"
        )
        raise NamingError(f"scales, so q, k and v of 8 bits: {reason}; multiply them by their scales first")
    check_options(options)
    scales = scales_given(options.scales, q, k, v)
    check_no_gradients(q, k, v, scales, options.bias, options.sinks)
    if all([x is None or x is False for x in _REFUSED(options)]):  # noqa: C419 (faster)
        results = by_kernel(q, k, v, scales, rule, options, values)
        if results is not None:
            return results
    results = attend(*dequantized(q, k, v, scales), rule, options._replace(scales=None), values)
    return with_value_scales(results, q, v, scales)


# The prepared call of a signature; None where the kernel of 8 bits does not take the call
PREPARED: Recent[CallSignature, plain_call.PreparedCall | None] = Recent(MAX_CALLS)


@left_to_python
def by_kernel(
    q: Tensor, k: Tensor, v: Tensor, scales: Scales, rule: RuleLike, options: AttentionOptions,
    values: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Runs the kernel of 8 bits; None where it does not take the call."""
    tensors = (q, k, v, *scales)
    if not is_plain(*tensors):
        return None
    signature = plain_call.call_signature(
        tensors, rule, options.in_signature, options.bias, options.sinks, values
    )
    if signature in PREPARED:
        prepared = PREPARED[signature]
        return None if prepared is None else prepared.run(*tensors, *prepared.tensors(options, values))
    call = _checked_call(q, k, v, scales, rule, options, values)
    if call is None or dispatch.reasons(call, q, k, v)["triton"] is not None:
        if signature is not None:
            PREPARED.find(signature, lambda: None)
        return None
    given = [*call.data.values(), *(() if options.sinks is None else (options.sinks,))]
    recorded = RecordedPass(partial(_attend_recorded, replace(call.without_tensors(), scales=None)))
    run = recorded if options.return_lse else recorded.first_result
    results = run(*tensors, *given)
    if signature is not None:
        names = {id(x): name for name, x in values.items()}
        arrays = tuple(names[id(x)] for x in call.data.values())
        PREPARED.find(signature, lambda: plain_call.PreparedCall(run, arrays))
    return results


def _attend_recorded(call: AttentionCall, recorder: Recorder, *tensors: Tensor) -> tuple[Tensor, Tensor]:
    """Runs the kernel of 8 bits on q, k, v, their scales, the rule's arrays, and the sinks if given."""
    q, k, v, *scales = tensors[:6]
    arrays, sinks = tensors[6 : 6 + len(call.data)], tensors[6 + len(call.data) :]
    call = replace(call.with_tensors(arrays), scales=tuple(scales))
    output, lse = triton.forward(recorder, call, q, k, v)
    return recorder.do(with_sinks, output, lse, *sinks) if sinks else (output, lse)


def _checked_call(
    q: Tensor, k: Tensor, v: Tensor, scales: Scales, rule: RuleLike, options: AttentionOptions,
    values: Mapping[str, Any],
) -> AttentionCall | None:  # fmt: skip
    """Returns the checked call; None on images, which other kernels take."""
    read = read_rule(rule, arrays_in(values))
    names, bound = rule_names(read.key), read.values
    check_names(names, bound, values)
    if q.dim() != 4 or len(names.queries) != 1:
        return None
    check_shapes(names, q, k, v)
    check_sinks(options.sinks, q)
    sizes = sizes_given(names, bound, values, q, k)
    numbers = numbers_given(names, bound, values, sizes)
    arrays = dict(zip(rule_of(read.key).open, arrays_given(names, values, sizes, q), strict=True))
    factor = q.shape[-1] ** -0.5 if options.scale is None else options.scale
    whole = rule_at(read.key, tuple(numbers))
    return AttentionCall(
        whole, factor, options.kernel, data=arrays, learned=False, trains=False, scales=scales
    )


# Any other kernel


def dequantized(q: Tensor, k: Tensor, v: Tensor, scales: Scales) -> tuple[Tensor, Tensor, Tensor]:
    """Returns q, k and v in a dtype that other kernels take; q has the scales of q and k, v has none.

    Keys and values of 8 bits are exact in bfloat16.
    """
    dtype = wide_dtype(q.device)
    factor = scales[0] * _per_query(scales[1], q, k)
    return (q.float() * _along(factor, q)).to(dtype), k.to(dtype), v.to(dtype)


def wide_dtype(device: torch.device) -> torch.dtype:
    """Returns the dtype that numbers of 8 bits are dequantized to."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def with_value_scales(found: Any, q: Tensor, v: Tensor, scales: Scales) -> Any:
    """Returns results of attention on dequantized numbers, the output in bfloat16 with the scales of v."""
    if isinstance(found, Tensor):
        factor = _along(_per_query(scales[2], q, v), found)
        return (found.float() * factor).to(torch.bfloat16)
    return (with_value_scales(found[0], q, v, scales), *found[1:])


def _per_query(scale: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return scale if scale.shape[1] == 1 or q.shape[1] == k.shape[1] else per_query_head(scale, q.shape[1])


def _along(factor: Tensor, x: Tensor) -> Tensor:
    """A factor [batch or 1, heads or 1] such that it multiplies x [batch, heads, …], or [total, heads, D]."""
    return factor[0][:, None] if x.dim() == 3 else factor[(..., *[None] * (x.dim() - 2))]
