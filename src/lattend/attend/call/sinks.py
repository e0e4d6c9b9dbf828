"""Sinks: a learned logit per head that takes part in the softmax and gives no value.

With s the sink of a row's head, its weights are exp(score - L) with L = log(exp(lse) + exp(s)): the output
without a sink, times exp(lse - L). The backward pass needs the new output and L in place of the old ones, and
every kernel is right as it stands.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.attend.call.attention_call import BackwardInputs
from lattend.attend.call.tensors import vecdot


def with_sinks(out: Tensor, lse: Tensor, sinks: Tensor) -> tuple[Tensor, Tensor]:
    """The output [batch, heads, n, Dv] and the log-sum-exp [batch, heads, n] with a sink in every row."""
    whole = torch.logaddexp(lse, sinks.to(lse.dtype)[:, None])
    share = torch.where(whole == -torch.inf, 0, (lse - whole).exp())
    return (out * share[..., None]).to(out.dtype), whole


def sink_gradients(sinks: Tensor, given: BackwardInputs) -> Tensor:
    """The gradient of the sinks: dS = P (dP - delta) with dP = 0, since a sink gives no value."""
    given = given.without_unused_queries()
    wide, lse = given.lse.dtype, given.lse
    weight = (sinks.to(wide)[:, None] - lse).exp().masked_fill(lse == -torch.inf, 0)
    slope = -vecdot(given.grad_out.to(wide), given.out.to(wide))
    if given.grad_lse is not None:
        slope = slope + given.grad_lse
    return torch.where(weight == 0, 0, weight * slope).sum((0, 2)).to(sinks.dtype)
