"""The dense kernel: every pair is computed and those that are not attended are thrown away.

Slow and plain, for what no faster kernel takes. In float32, or float64 for float64 inputs. Forward and
backward are torch operations that torch can differentiate again, any number of times.

    S = scale * Q K^T, -inf where masked       P = exp(S - lse)     O = P V
    delta = rowsum(dO * O) - dlse              dS = P * (dO V^T - delta)
    dQ = scale * dS K        dK = scale * dS^T Q        dV = P^T dO

With a softcap c, S = c tanh(scale/c Q K^T), and dS is multiplied with 1 - tanh² on its way to Q and K.
Dropout multiplies P before V, and dO V^T, with 0 or 1/(1 - rate).
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod

import numpy as np
import torch
from torch import Tensor

from lattend.attend.bias import PairPositions, add_gradients, as_gradients, bias_of, by_element, empty_sums
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.batch_arrays import arrays_of, batch_of
from lattend.attend.call.dropout import kept_weights
from lattend.attend.call.padding import real_keys
from lattend.attend.call.tensors import masked_product, per_kv_head

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
    scores, mask, _ = _scores(call, q.to(exact), wide_k)
    lse = _log_sum_exp(scores)  # [batch, heads, n]
    weights, kept = _softmax(scores), _kept(call, q, k)
    out = masked_product(weights if kept is None else weights * kept, mask, wide_v)
    return out.to(q.dtype), lse


def largest(call: AttentionCall, q: Tensor, k: Tensor) -> Tensor:
    """The largest score of each query, -inf where it has no key."""
    exact = torch.promote_types(q.dtype, torch.float32)
    if k.shape[2] == 0:
        return q.new_full(q.shape[:-1], -inf, dtype=exact)
    return _scores(call, q.to(exact), _per_query_head(k.to(exact), q))[0].amax(-1)


def backward(call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v, and of the tensors of the bias."""
    grad_out, grad_lse, q, k, v, out, lse = given.without_unused_queries()
    exact = torch.promote_types(q.dtype, torch.float32)
    q_, k_, v_, out_, grad = (x.to(exact) for x in (q, k, v, out, grad_out))
    wide_k, wide_v = _per_query_head(k_, q), _per_query_head(v_, q)
    scores, mask, softened = _scores(call, q_, wide_k)
    share = _log_sum_exp(scores) - lse.masked_fill(lse == -inf, 0)  # log; others may have had keys too
    weights = torch.where(mask, _softmax(scores) * share.exp()[..., None], 0)  # [batch, heads, n, m]
    delta = (grad * out_).sum(-1) if grad_lse is None else (grad * out_).sum(-1) - grad_lse
    delta = delta.masked_fill(lse == -inf, 0)  # dlse of an empty row may be anything
    reach, kept = grad @ wide_v.mT, _kept(call, q, k)
    if kept is not None:
        reach = reach * kept
    slope = torch.where(mask, weights * (reach - delta[..., None]), 0)
    through = slope if softened is None else torch.where(mask, slope * softened, 0)
    dropped = weights if kept is None else weights * kept
    dq = masked_product(through, mask, wide_k) * call.scale
    dk = per_kv_head(masked_product(through.mT, mask.mT, q_), k) * call.scale
    dv = per_kv_head(masked_product(dropped.mT, mask.mT, grad), v)
    sums = empty_sums(call, exact)
    each = by_element(call.term, call.data)
    add_gradients(call, all_pairs(q, k), slope if each else slope.sum(0), sums)
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


def _scores(call: AttentionCall, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """The scores, where they are attended, and their derivative by what a softcap is given."""
    mask, softened, real = attention_mask(call, q.device), None, real_keys(call, k.shape[2])
    if real is not None:
        mask = mask & real[:, None, None, :]
    scores = q @ k.mT * call.scale
    if call.softcap is not None:
        bent = (scores / call.softcap).tanh()
        scores, softened = call.softcap * bent, 1 - bent * bent
    if call.term is not None:
        scores = scores + bias_of(call, all_pairs(q, k), q.dtype)
    return scores.masked_fill(~mask, -inf), mask, softened


def _kept(call: AttentionCall, q: Tensor, k: Tensor) -> Tensor | None:
    """What dropout multiplies the weights with, [batch, heads, n, m]."""
    if call.seed is None:
        return None
    members = torch.arange(q.shape[0] * q.shape[1], device=q.device).view(*q.shape[:2], 1, 1)
    return kept_weights(call, members, *all_pairs(q, k)[2:], torch.promote_types(q.dtype, torch.float32))


def all_pairs(q: Tensor, k: Tensor) -> PairPositions:
    """All pairs of all heads of all elements, [batch, heads, n, m]."""
    elements, heads, queries, keys = (torch.arange(x, device=q.device) for x in (*q.shape[:3], k.shape[2]))
    return PairPositions(elements.view(-1, 1, 1, 1), heads[:, None, None], queries[:, None], keys)


def _log_sum_exp(scores: Tensor) -> Tensor:
    """The log-sum-exp of each row, -inf of one without keys; no derivative is NaN."""
    empty = (scores == -inf).all(-1, keepdim=True)
    return scores.masked_fill(empty, 0).logsumexp(-1).masked_fill(empty[..., 0], -inf)


def _softmax(scores: Tensor) -> Tensor:
    """The weights, 0 in a row without keys; their sum is 1 where scores are so large that lse is rounded."""
    empty = (scores == -inf).all(-1, keepdim=True)
    return scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)


def _per_query_head(x: Tensor, q: Tensor) -> Tensor:
    """Keys or values, repeated so that each query head has its own."""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)
