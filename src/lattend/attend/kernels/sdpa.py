"""The kernel sdpa: whole or causal blocks go to torch's own attention, cuDNN on a GPU: both at the limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor

from lattend.attend.bias import dtype_name
from lattend.attend.call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.tape import Tape
from lattend.plans.order import pairing
from lattend.plans.plan import Plan, plan
from lattend.rules.language.expr import Compare, Name

DTYPES = {
    "cuda": (torch.bfloat16, torch.float16),  # cuDNN
    "cpu": (torch.float32, torch.float64, torch.bfloat16, torch.float16),  # torch's own
}
MAX_HEAD_DIM = 128
SMALL_WINDOW = 256 * 128  # numbers in a window's keys; measured on an H200


@dataclass(frozen=True)
class DiagonalBlocks:
    """All pairs of blocks on the diagonal, or those up to it; `window` None is one block."""

    causal: bool
    window: int | None


@lru_cache(maxsize=256)
def diagonal_blocks(found: Plan) -> DiagonalBlocks | None:
    """The blocks a plan consists of, if it is blocks that torch's own attention can run."""
    if len(found.parts) != 1:
        return None
    part, line = found.parts[0], found.axes[0]
    if len(part.axes) > 1:
        return DiagonalBlocks(False, None) if not part.branch else None
    query, key = Name(line.outer), Name(line.inner)
    diagonal = (Compare("<=", key, query), Compare(">=", query, key))
    left = [condition for condition in part.branch if condition not in diagonal]
    causal, window = len(left) < len(part.branch), None
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
    return DiagonalBlocks(causal, window)


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why torch's own attention cannot take the call, or None when it can."""
    device = q.device.type
    if device not in DTYPES:
        return f"it runs on CPU and CUDA, and q is on {device}"
    if q.dtype not in DTYPES[device]:
        return f"it does not compute in {dtype_name(q.dtype)} on {device}"
    head_dim, value_dim = q.shape[-1], v.shape[-1]
    if device == "cuda" and (max(head_dim, value_dim) > MAX_HEAD_DIM or head_dim % 8 or value_dim % 8):
        return f"it takes a head_dim in multiples of 8 up to {MAX_HEAD_DIM}, not {head_dim} and {value_dim}"
    if device == "cpu" and head_dim != value_dim:
        return f"its value_dim is its head_dim, and these are {value_dim} and {head_dim}"
    if call.scale <= 0:
        return f"it takes a positive scale, and this is {call.scale:g}"
    if 0 in (*q.shape, *k.shape):
        return "there is nothing to compute"
    if call.term is not None:
        return "there is a bias"
    if call.key_range is not None:
        return "some keys are padding"
    if call.softcap is not None:
        return "scores have a softcap"
    if call.dropout:
        return "it would drop other pairs on other devices"
    if call.rule.has_heads:
        return "heads differ"
    found = diagonal_blocks(plan(call.rule))
    if found is None:
        return "the attended pairs are not whole or causal blocks of one size"
    if q.shape[1] != k.shape[1] and (device == "cpu" or found.window is not None):
        return f"{q.shape[1]} query heads share {k.shape[1]} kv heads"
    return None


def why_not_backward(call: AttentionCall, q: Tensor, k: Tensor, grad_lse: Tensor | None) -> str | None:
    """Why torch's own attention cannot take the backward pass of a call that fits."""
    if grad_lse is not None:
        return "it takes no gradient of the log-sum-exp"
    if q.shape[1] != k.shape[1]:
        return f"{q.shape[1]} query heads share {k.shape[1]} kv heads"
    if q.device.type == "cpu":
        return None
    if call.deterministic:
        return "its backward pass is nondeterministic (atomics): ask with deterministic=False"
    found = diagonal_blocks(plan(call.rule))
    if found is not None and found.window is not None and found.window * q.shape[-1] < SMALL_WINDOW:
        return "its backward pass is slower on windows this small"
    return None


def forward(tape: Tape, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    found = diagonal_blocks(plan(call.rule)) or DiagonalBlocks(False, None)
    return tape.do(partial(_forward, found, call.scale), q, k, v)


def backward(tape: Tape, call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v; on a GPU they may differ in the last bits from run to run."""
    grad_out, _, q, k, v, out, lse = given
    found = diagonal_blocks(plan(call.rule)) or DiagonalBlocks(False, None)
    dq, dk, dv = tape.do(partial(_backward, found, call.scale), grad_out, q, k, v, out, lse)
    return dq, dk, dv, []


def _forward(found: DiagonalBlocks, scale: float, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    given = [_in_windows(x, found.window) for x in (q, k, v)]
    aten = torch.ops.aten
    if q.device.type == "cpu":
        run = aten._scaled_dot_product_flash_attention_for_cpu
        out, lse = run(*given, 0.0, found.causal, attn_mask=None, scale=scale)
    else:
        run = aten._scaled_dot_product_cudnn_attention
        out, lse = run(*given, None, True, 0.0, found.causal, False, scale=scale)[:2]
    kind = torch.promote_types(q.dtype, torch.float32)
    return out.reshape(*q.shape[:-1], v.shape[-1]), lse.reshape(q.shape[:-1]).to(kind)


def _backward(
    found: DiagonalBlocks,
    scale: float,
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
) -> tuple[Tensor, ...]:
    cut = [_in_windows(x, found.window) for x in (grad, q, k, v, out)]
    sums = lse.reshape(cut[1].shape[:-1])
    aten = torch.ops.aten
    if q.device.type == "cpu":
        run = aten._scaled_dot_product_flash_attention_for_cpu_backward
        grads = run(*cut, sums, 0.0, found.causal, attn_mask=None, scale=scale)
    else:
        run = aten._scaled_dot_product_cudnn_attention_backward
        seed = torch.zeros((), dtype=torch.int64, device=q.device)
        sizes = (cut[1].shape[2], cut[2].shape[2])
        how = (seed, seed, None, None, None, *sizes, 0.0, found.causal)
        grads = run(*cut, sums[..., None], *how, scale=scale)
    return tuple(grad.reshape(x.shape) for grad, x in zip(grads, (q, k, v), strict=True))


def _in_windows(x: Tensor, window: int | None) -> Tensor:
    """Windows as heads of their own, [batch * heads, windows, window, D]; rows that lie apart are copied."""
    x = x if x.stride(-1) == 1 else x.contiguous()
    if window is None:
        return x
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2] // window, window, x.shape[3])
