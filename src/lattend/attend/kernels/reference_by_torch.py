"""The reference in torch operations, a query at a time and in float64: it has all derivatives.

kernel="reference" runs it where torch differentiates in forward mode, under torch.func, or a second time.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import torch
from torch import Tensor

from lattend.attend.bias import PairPositions, bias_of
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.dropout import kept_weights
from lattend.attend.call.padding import real_keys
from lattend.attend.kernels.reference import QueryRow, rows


def forward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output, zeros where a query has no key, and the log-sum-exp, -inf there; with the sinks."""
    exact = q.double(), k.double(), v.double()
    whole = replace(call, key_range=None, key_mask=None)  # padding is taken out row by row
    real = real_keys(call, k.shape[2])
    found = [_row(call, row, *exact, None if real is None else real[row.at[0]]) for row in rows(whole, q, k)]
    wide = torch.promote_types(q.dtype, torch.float32)
    if not found:
        return q.new_zeros(*q.shape[:-1], v.shape[-1]), q.new_zeros(q.shape[:-1], dtype=wide)
    out, lse = (torch.stack(parts) for parts in zip(*found, strict=True))
    return out.view(*q.shape[:-1], v.shape[-1]).to(q.dtype), lse.view(q.shape[:-1]).to(wide)


def backward(call: AttentionCall, given: BackwardInputs) -> tuple[Gradients, Tensor | None]:
    """The gradients of q, k, v and the bias, and those of the sinks: forward, differentiated by torch."""
    names, sinks = list(call.bias), [] if call.sinks is None else [call.sinks]
    q, k, v, *learned = (_alias(x) for x in (given.q, given.k, given.v, *call.bias.values(), *sinks))
    bias = dict(zip(names, learned[: len(names)], strict=True))
    used = given._replace(q=q).without_unused_queries()
    out, lse = forward(replace(call, bias=bias, sinks=learned[-1] if sinks else None), used.q, k, v)
    grad_lse = torch.zeros_like(lse) if given.grad_lse is None else given.grad_lse
    dq, dk, dv, *others = torch.autograd.grad(
        (out, lse), (q, k, v, *learned), (used.grad_out, grad_lse),
        create_graph=True, allow_unused=True, materialize_grads=True,
    )  # fmt: skip
    return (dq, dk, dv, others[: len(names)]), others[-1] if sinks else None


def _alias(x: Tensor) -> Tensor:
    """The same numbers as a tensor of its own, so that what q, k and v share is not counted twice."""
    found = x.view_as(x)
    return found if found.requires_grad else found.requires_grad_()


def _row(
    call: AttentionCall, row: QueryRow, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The output [Dv] and the log-sum-exp of one query; `real`: which keys of its element are no padding."""
    element, head, _ = row.at
    keys = torch.as_tensor(row.keys, device=q.device)
    rows_k, rows_v = k[row.shared][keys], v[row.shared][keys]
    if real is not None:  # padding may hold anything
        rows_k, rows_v = (x.masked_fill(~real[keys][:, None], 0) for x in (rows_k, rows_v))
    scores = call.scale * (rows_k @ q[row.at])
    if call.softcap is not None:
        scores = call.softcap * (scores / call.softcap).tanh()
    at = [torch.tensor(place, device=q.device) for place in row.at]
    places = PairPositions(at[0], at[1], at[2], keys)
    if call.term is not None:
        scores = scores + bias_of(call, places, q.dtype)
    if real is not None:
        scores = scores.masked_fill(~real[keys], -inf)
    logits = scores if call.sinks is None else torch.cat([scores, call.sinks[head : head + 1].to(q.dtype)])
    lse = _log_sum_exp(logits)
    weights = (scores - lse.masked_fill(lse == -inf, 0)).exp()
    if call.seed is not None:
        member = torch.tensor(element * q.shape[1] + head, device=q.device)
        weights = weights * kept_weights(call, member, places.queries, keys, q.dtype)
    return weights @ rows_v, lse


def _log_sum_exp(logits: Tensor) -> Tensor:
    """The log-sum-exp, -inf where there is nothing to add; no derivative is NaN."""
    if not len(logits):
        return logits.new_full((), -inf)
    empty = (logits == -inf).all()
    return logits.masked_fill(empty, 0).logsumexp(0).masked_fill(empty, -inf)
