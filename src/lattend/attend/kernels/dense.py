"""The dense kernel: every pair is computed and those that are not attended are thrown away.

Slow and plain, for what no faster kernel takes. In float32, or float64 for float64 inputs.

    S = scale * Q K^T, -inf where masked       P = exp(S - lse)     O = P V
    delta = rowsum(dO * O) - dlse              dS = P * (dO V^T - delta)
    dQ = scale * dS K        dK = scale * dS^T Q        dV = P^T dO
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod

import numpy as np
import torch
from torch import Tensor

from lattend.attend.arrays import arrays_of, batch_of
from lattend.attend.bias import PairPositions, add_gradients, as_gradients, bias_of, empty_sums
from lattend.attend.call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.memory import per_kv_head

MAX_PAIRS = 1 << 28  # of all heads and batch elements: 1 GiB of scores in float32


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why the dense kernel cannot take the call, or None when it can."""
    pairs = prod(q.shape[:3]) * k.shape[2]
    if pairs > MAX_PAIRS:
        return (
            f"it holds all pairs at once, at most {MAX_PAIRS:,}: batch × heads × queries × keys is {pairs:,}"
        )
    return None


def forward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output, zeros where a query has no key, and the log-sum-exp, -inf there."""
    exact = torch.promote_types(q.dtype, torch.float32)
    wide_k, wide_v = (_per_query_head(x.to(exact), q) for x in (k, v))
    scores, _ = _scores(call, q.to(exact), wide_k)
    lse = scores.logsumexp(-1)  # [batch, heads, n]
    out = _weights(scores, lse) @ wide_v
    return out.to(q.dtype), lse


def backward(call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v, and of the tensors of the bias."""
    grad_out, grad_lse, q, k, v, out, lse = given
    exact = torch.promote_types(q.dtype, torch.float32)
    q_, k_, v_, out_, grad = (x.to(exact) for x in (q, k, v, out, grad_out))
    wide_k, wide_v = _per_query_head(k_, q), _per_query_head(v_, q)
    scores, mask = _scores(call, q_, wide_k)
    weights = _weights(scores, lse)  # [batch, heads, n, m]
    delta = (grad * out_).sum(-1) if grad_lse is None else (grad * out_).sum(-1) - grad_lse
    delta = delta.masked_fill(lse == -inf, 0)  # dlse of an empty row may be anything
    slope = weights * (grad @ wide_v.mT - delta[..., None])
    slope = torch.where(mask, slope, 0)
    dq = slope @ wide_k * call.scale
    dk = per_kv_head(slope.mT @ q_, k) * call.scale
    dv = per_kv_head(weights.mT @ grad, v)
    sums = empty_sums(call, exact)
    add_gradients(call, _pairs(q, k), slope.sum(0), sums)
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), as_gradients(call, sums)


def attention_mask(call: AttentionCall, device: torch.device) -> Tensor:
    """The attended pairs, [1 or batch, 1 or heads, n, m]."""
    rule, batch = call.rule, batch_of(call)
    elements = range(1 if batch is None else batch)
    masks = [replace(rule, data=arrays_of(call, element), open=()).mask() for element in elements]
    queries = prod(rule.values[axis.queries] for axis in rule.axes)
    keys = prod(rule.values[axis.keys] for axis in rule.axes)
    heads = rule.values["heads"] if rule.has_heads else 1
    found = np.stack(masks) if masks else np.zeros(0, bool)
    return torch.as_tensor(found, device="cpu").reshape(len(masks), heads, queries, keys).to(device)


def _scores(call: AttentionCall, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    mask = attention_mask(call, q.device)
    scores = q @ k.mT * call.scale
    if call.term is not None:
        scores = scores + bias_of(call, _pairs(q, k), q.dtype)
    return scores.masked_fill(~mask, -inf), mask


def _pairs(q: Tensor, k: Tensor) -> PairPositions:
    """All pairs of all heads, [heads, n, m]."""
    heads, queries, keys = (torch.arange(x, device=q.device) for x in (q.shape[1], q.shape[2], k.shape[2]))
    return PairPositions(heads[:, None, None], queries[:, None], keys)


def _weights(scores: Tensor, lse: Tensor) -> Tensor:
    """exp(scores - lse), and 0 in a row without keys, whose lse is -inf."""
    return (scores - lse.masked_fill(lse == -inf, 0)[..., None]).exp()


def _per_query_head(x: Tensor, q: Tensor) -> Tensor:
    """Keys or values, repeated so that each query head has its own."""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)
