"""The library kernel: where the marked squares are whole or causal blocks, cuDNN is at the limit already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lattend.kernels.call import Call, Gradients
from lattend.plans.order import pairing
from lattend.plans.plan import Plan, plan
from lattend.rules.expr import Compare, Condition, Name

DTYPES = (torch.bfloat16, torch.float16)
MAX_HEAD = 128


@dataclass(frozen=True)
class Blocks:
    """All squares of blocks on the diagonal, or those up to it; `window` None is one block."""

    causal: bool
    window: int | None


def blocks(found: Plan) -> Blocks | None:
    """The blocks a plan consists of, if it is blocks that a library can run."""
    if len(found.parts) != 1:
        return None
    part, line = found.parts[0], found.lines[0]
    if len(part.axes) > 1:
        return Blocks(False, None) if not part.branch else None
    left = list(part.branch)
    causal = _take(left, lambda c: _is_causal(c, line.outer, line.inner))
    window = None
    for condition in list(left):
        pair = pairing(condition, line.outer, line.inner, part.numbers)
        if pair is not None and pair.kind == "windows" and pair.shift == 0:
            left.remove(condition)
            window = pair.modulus
    square = line.outer_size == line.inner_size
    if left or ((causal or window) and not square):
        return None
    if window is not None and window >= line.outer_size:
        window = None
    if window is not None and line.outer_size % window:
        return None
    return Blocks(causal, window)


def _take(conditions: list[Condition], wanted: Any) -> bool:
    found = [condition for condition in conditions if wanted(condition)]
    for condition in found:
        conditions.remove(condition)
    return bool(found)


def _is_causal(condition: Condition, query: str, key: str) -> bool:
    return condition in (Compare("<=", Name(key), Name(query)), Compare(">=", Name(query), Name(key)))


def why_not(call: Call, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why cuDNN cannot take the call, or None when it can."""
    if q.device.type != "cuda":
        return f"it needs a GPU, and q is on {q.device.type}"
    if q.dtype not in DTYPES:
        return f"it computes in bfloat16 or float16, and q is {str(q.dtype).removeprefix('torch.')}"
    if max(q.shape[-1], v.shape[-1]) > MAX_HEAD or q.shape[-1] % 8 or v.shape[-1] % 8:
        return f"its heads are multiples of 8 up to {MAX_HEAD}, and these are {q.shape[-1]} and {v.shape[-1]}"
    if q.shape[1] != k.shape[1]:
        return f"{q.shape[1]} query heads share {k.shape[1]} key heads"
    if call.term is not None:
        return "there is a bias"
    if call.rule.has_heads:
        return "heads differ"
    if blocks(plan(call.rule)) is None:
        return "the marked squares are not whole or causal blocks of one size"
    return None


def why_not_backward(call: Call, grad_lse: Tensor | None) -> str | None:
    """Why cuDNN cannot take the backward pass of a call that fits."""
    if call.deterministic:
        return "its backward pass adds up in any order: ask with deterministic=False"
    if grad_lse is not None:
        return "it takes no gradient of the log-sum-exp"
    found = blocks(plan(call.rule))
    if found is not None and found.window is not None:
        return "its backward pass is slower on windows"
    return None


def forward(call: Call, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    found = blocks(plan(call.rule)) or Blocks(False, None)
    q_, k_, v_ = (_in_windows(x, found.window) for x in (q, k, v))
    out, lse = torch.ops.aten._scaled_dot_product_cudnn_attention(
        q_, k_, v_, None, True, 0.0, found.causal, False, scale=call.scale
    )[:2]
    return out.reshape(*q.shape[:-1], v.shape[-1]), lse.reshape(q.shape[:-1]).float()


def backward(
    call: Call,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
) -> Gradients:
    """The gradients of q, k and v; not the same to the last bit on every run."""
    found = blocks(plan(call.rule)) or Blocks(False, None)
    given = [_in_windows(x, found.window) for x in (grad_out, q, k, v, out)]
    seed = torch.zeros((), dtype=torch.int64, device=q.device)
    rows = given[1].shape[2]
    grads = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        *given, lse.reshape(*given[1].shape[:-1], 1), seed, seed, None, None, None, rows, rows,
        0.0, found.causal, scale=call.scale,
    )  # fmt: skip
    dq, dk, dv = grads
    return dq.reshape(q.shape), dk.reshape(k.shape), dv.reshape(v.shape), []


def _in_windows(x: Tensor, window: int | None) -> Tensor:
    """Windows as heads of their own, [batch * heads, windows, window, D]; no copy where rows lie together."""
    if window is None:
        return x
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2] // window, window, x.shape[3])
