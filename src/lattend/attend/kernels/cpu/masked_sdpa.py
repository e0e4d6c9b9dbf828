"""Runs few pairs of a rule with arrays as one call of torch's own attention, with a mask, on a CPU.

Tiles depend on the arrays and would be searched again in each call: with 16 positions that takes 15 times as
long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any

import torch
from torch import Tensor

from lattend.attend.call.attention_call import (
    AttentionCall,
    BackwardInputs,
    BackwardPass,
    ForwardPass,
    backward_inputs,
)
from lattend.attend.call.tensor_terms import evaluate
from lattend.attend.call.tensors import in_layout_of, per_kv_head
from lattend.attend.kernels.cpu import kernel
from lattend.attend.kernels.cpu.grouped_sdpa import is_plain
from lattend.attend.kernels.dense import all_pairs
from lattend.attend.kernels.sdpa import of_query_heads
from lattend.attend.replay.recorder import Recorder

MAX_PAIRS = 1 << 17  # of a head; beyond, finding tiles costs less than the pairs that they leave out
FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def takes(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether all pairs are one call: few, with plain scores, attended as arrays say that are given now."""
    return bool(call.data) and q.shape[2] * k.shape[2] <= MAX_PAIRS and is_plain(call, q, v)


def prepare(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> ForwardPass:
    """Prepares a forward pass: one call of torch's own attention, with a mask."""
    bare, attended, values = call.without_tensors(), _attended(call, q, k), _mask_values(q)
    run = partial(FORWARD, scale=call.scale)

    def both(q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        mask, dtype = attended(*tensors), q.dtype
        wide_q, wide_k, wide_v = map(_wide, of_query_heads(q, k, v))
        additive = torch.where(mask, *values)
        out, lse = run(wide_q, wide_k, wide_v, 0.0, False, attn_mask=additive)
        lse = lse.masked_fill(~mask.any(-1), -inf)  # torch says 0 of a query without keys
        out, lse = kernel.checked(bare, out if out.dtype == dtype else out.to(dtype), lse, q, k, v, *tensors)
        return in_layout_of(out, q), lse.contiguous()

    return ForwardPass.of(both)


def prepare_backward(call: AttentionCall, inputs: BackwardInputs) -> BackwardPass:
    """Prepares a backward pass: one call of torch's own, with the same mask."""
    bare, attended, values = (
        call.without_tensors(),
        _attended(call, inputs.q, inputs.k),
        _mask_values(inputs.q),
    )
    run = partial(BACKWARD, scale=call.scale)

    def gradients(*tensors: Tensor) -> Sequence[Tensor]:
        (grad_out, _, q, k, v, out, lse), others = backward_inputs(False, tensors)
        wide_q, wide_k, wide_v = map(_wide, of_query_heads(q, k, v))
        finite = lse.masked_fill(lse == -inf, 0)  # exp(-inf - 0) is 0, and -inf + inf is NaN
        given = _wide(grad_out), wide_q, wide_k, wide_v, _wide(out), _wide(finite)
        additive = torch.where(attended(*others), *values)
        dq, dk, dv = run(*given, 0.0, False, attn_mask=additive)
        if q.shape[1] != k.shape[1]:
            dk, dv = per_kv_head(dk, k), per_kv_head(dv, v)
        grads = (grad.to(x.dtype) for grad, x in ((dq, q), (dk, k), (dv, v)))
        found = kernel.checked_gradients(bare, *grads, grad_out, q, k, v, out, lse, *others)
        return [in_layout_of(grad, x) for grad, x in zip(found, (q, k, v), strict=True)]

    return gradients


def _attended(call: AttentionCall, q: Tensor, k: Tensor) -> Callable[..., Tensor]:
    """Returns a function from the tensors of a call to its attended pairs, [1 or batch, 1 or heads, n, m].

    Conditions on positions alone are evaluated now; steps on arrays are recorded.
    """
    recorder = Recorder(*call.tensors)
    bound = {name: torch.tensor(array, dtype=torch.int64) for name, array in call.rule.data.items()}
    given = {name: recorder.in_dtype(x, torch.int64) for name, x in call.data.items()}  # narrow ones overflow
    changing = {id(x) for x in given.values()}
    held: list[Any] = []  # so that no id is another's

    def do(step: Callable[..., Any], *parts: Any) -> Any:
        """Records a step on what may change; one on what stays is taken now, once for all calls."""
        slots = [slot for slot, part in enumerate(parts) if id(part) in changing]
        if not slots:
            return step(*parts)
        fixed = [None if slot in slots else part for slot, part in enumerate(parts)]

        def with_fixed(*tensors: Tensor) -> Any:
            arguments = fixed.copy()
            for slot, x in zip(slots, tensors, strict=True):
                arguments[slot] = x
            return step(*arguments)

        run = with_fixed if len(slots) < len(parts) else step
        result = recorder.do(run, *(parts[slot] for slot in slots))
        changing.add(id(result))
        held.append(result)
        return result

    pairs = evaluate(call.rule.condition, all_pairs(q, k).names(call), {**bound, **given}, do)
    axes, sizes = 4 - pairs.dim(), (q.shape[2], k.shape[2])

    def shaped(x: Tensor) -> Tensor:
        x = x[(None,) * axes] if axes else x
        return x.expand(*x.shape[:2], *sizes)

    mask = recorder.do(shaped, pairs) if id(pairs) in changing else recorder.keep(shaped(pairs))
    steps = recorder.steps_to(mask)
    assert steps is not None  # all tensors are the call's
    return steps


def _mask_values(q: Tensor) -> tuple[Tensor, Tensor]:
    """What is added to the scores of attended pairs, and of others."""
    wide = torch.promote_types(q.dtype, torch.float32)
    return torch.tensor(0.0, dtype=wide), torch.tensor(-inf, dtype=wide)


def _wide(x: Tensor) -> Tensor:
    """In float32 at least, the numbers of a row side by side."""
    if x.dtype not in (torch.float32, torch.float64):
        x = x.float()
    return x if x.stride(-1) == 1 else x.contiguous()
