"""Runs few pairs of a rule with arrays as one call of torch's own attention, with a mask, on a CPU.

Tiles depend on the arrays and would be searched again in each call: with 16 positions that takes 15 times as
long. A recorder notes how the mask is evaluated; what depends on positions alone is evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import torch
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.tensor_terms import evaluate
from lattend.attend.call.tensors import per_kv_head
from lattend.attend.kernels.cpu import kernel
from lattend.attend.kernels.cpu.grouped_sdpa import is_plain
from lattend.attend.kernels.dense import all_pairs
from lattend.attend.kernels.sdpa import of_query_heads
from lattend.attend.replay.recorder import Recorder

MAX_PAIRS = 1 << 17  # of a head; beyond, finding tiles costs less than the pairs that they leave out
aten = torch.ops.aten


def takes(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether all pairs are one call: few, with plain scores, attended as arrays say that are given now."""
    return bool(call.data) and q.shape[2] * k.shape[2] <= MAX_PAIRS and is_plain(call, q, v)


def forward(
    recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """The output [batch, heads, n, D] and the log-sum-exp."""
    mask, dtype, given = _attended(recorder, call, q, k), q.dtype, (q, k, v)
    q, k, v = (_wide(recorder, x) for x in of_query_heads(recorder, q, k, v))
    run = partial(aten._scaled_dot_product_flash_attention_for_cpu.default, scale=call.scale)
    out, lse = recorder.do(partial(_masked, run), q, k, v, _additive(recorder, mask, q))
    lse = recorder.do(_with_empty, lse, mask)
    results = recorder.in_dtype(out, dtype), lse
    return recorder.do(partial(kernel.checked, call.without_tensors()), *results, *given, *call.tensors)


def backward(recorder: Recorder, call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v."""
    grad, _, q, k, v, out, lse = given
    mask = _attended(recorder, call, q, k)
    grad, q_, k_, v_, out, lse = (
        _wide(recorder, x) for x in (grad, *of_query_heads(recorder, q, k, v), out, lse)
    )
    lse = recorder.do(_finite, lse)
    run = partial(aten._scaled_dot_product_flash_attention_for_cpu_backward.default, scale=call.scale)
    found = recorder.do(partial(_masked, run), grad, q_, k_, v_, out, lse, _additive(recorder, mask, q_))
    dq, dk, dv = found
    if dk.shape[1] != k.shape[1]:
        dk, dv = recorder.do(per_kv_head, dk, k), recorder.do(per_kv_head, dv, v)
    grads = (recorder.in_dtype(x, like.dtype) for x, like in ((dq, q), (dk, k), (dv, v)))
    inputs = [x for x in given if x is not None]
    step = partial(kernel.checked_gradients, call.without_tensors())
    dq, dk, dv = recorder.do(step, *grads, *inputs, *call.tensors)
    return dq, dk, dv, []


def _masked(run: Callable[..., Any], *tensors: Tensor) -> Any:
    *given, mask = tensors
    return run(*given, 0.0, False, attn_mask=mask)


def _attended(recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor) -> Tensor:
    """The attended pairs, [1 or batch, 1 or heads, n, m]."""
    bound = {name: torch.tensor(array, dtype=torch.int64) for name, array in call.rule.data.items()}
    given = {name: recorder.in_dtype(x, torch.int64) for name, x in call.data.items()}  # narrow ones overflow
    changing = {id(x) for x in given.values()}
    held: list[Any] = []  # so that no id is another's

    def do(step: Callable[..., Any], *parts: Any) -> Any:
        """Notes a step on what may change; one on what stays is taken now, once for all calls."""
        places = [place for place, part in enumerate(parts) if id(part) in changing]
        if not places:
            return step(*parts)
        rest = [None if place in places else part for place, part in enumerate(parts)]

        def again(*tensors: Tensor) -> Any:
            whole = rest.copy()
            for place, x in zip(places, tensors, strict=True):
                whole[place] = x
            return step(*whole)

        found = recorder.do(again if len(places) < len(parts) else step, *(parts[place] for place in places))
        changing.add(id(found))
        held.append(found)
        return found

    found = evaluate(call.rule.condition, all_pairs(q, k).names(call), {**bound, **given}, do)
    axes, sizes = 4 - found.dim(), (q.shape[2], k.shape[2])

    def shaped(x: Tensor) -> Tensor:
        x = x[(None,) * axes] if axes else x
        return x.expand(*x.shape[:2], *sizes)

    return recorder.do(shaped, found) if id(found) in changing else recorder.keep(shaped(found))


def _additive(recorder: Recorder, mask: Tensor, q: Tensor) -> Tensor:
    nothing, never = (recorder.keep(torch.tensor(x, dtype=q.dtype)) for x in (0.0, -inf))
    return recorder.do(torch.where, mask, nothing, never)


def _with_empty(lse: Tensor, mask: Tensor) -> Tensor:
    """The log-sum-exps, -inf of a query without keys: torch says 0 there."""
    return lse.masked_fill(~mask.any(-1), -inf)


def _finite(lse: Tensor) -> Tensor:
    """exp(-inf - 0) is 0, and -inf + inf is NaN."""
    return lse.masked_fill(lse == -inf, 0)


def _wide(recorder: Recorder, x: Tensor) -> Tensor:
    """In float32 at least, the numbers of a row side by side."""
    x = recorder.in_dtype(x, torch.promote_types(x.dtype, torch.float32))
    return x if x.stride(-1) == 1 else recorder.do(Tensor.contiguous, x)
