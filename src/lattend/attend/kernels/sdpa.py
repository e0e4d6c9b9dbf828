"""The kernel sdpa: whole or causal blocks go to torch's own attention, which is at the limit there.

On a GPU that is cuDNN in half precision, or FlashAttention for head dimensions that cuDNN does not take, and
torch's memory-efficient attention in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from lattend.attend.bias import dtype_name
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.tensors import per_kv_head, per_query_head
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.diagonal_blocks import DiagonalBlocks, diagonal_blocks
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan

aten = torch.ops.aten
# functions of torch itself, which it calls sooner than operators of torch.ops
FLASH_ON_CPU: Any = torch._scaled_dot_product_flash_attention_for_cpu  # pyright: ignore
CUDNN: Any = torch._scaled_dot_product_cudnn_attention  # pyright: ignore
FLASH: Any = torch._scaled_dot_product_flash_attention  # pyright: ignore
EFFICIENT: Any = torch._scaled_dot_product_efficient_attention  # pyright: ignore
FUNCTIONS = {1: FLASH, 2: EFFICIENT, 3: CUDNN}  # as torch.nn.attention.SDPBackend numbers them
DTYPES = {
    "cuda": (torch.bfloat16, torch.float16, torch.float32),
    "cpu": (torch.float32, torch.float64, torch.bfloat16, torch.float16),
}
MAX_FLASH = 256  # the head dimension
ROWS_TOGETHER = 32  # the memory-efficient kernel has so many log-sum-exps in a row, the last ones unused


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why torch's own attention cannot take the call, or None when it can."""
    device = q.device.type
    if device not in DTYPES:
        return f"it runs on CPU and CUDA, and q is on {device}"
    if q.dtype not in DTYPES[device]:
        return f"it does not compute in {dtype_name(q.dtype)} on {device}"
    head_dim, value_dim = q.shape[-1], v.shape[-1]
    if device == "cuda" and library(q, v) is None:
        return f"it takes a head_dim in multiples of 8 up to {MAX_FLASH}, not {head_dim} and {value_dim}"
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
    if device == "cpu":
        return None
    if q.shape[1] != k.shape[1] and found.window is not None:
        return f"{q.shape[1]} query heads share {k.shape[1]} kv heads"
    if found.window is not None and library(q, v) is not CUDNN:
        return "it takes blocks of a window's size in half precision only, where cuDNN runs"
    return None


def library(q: Tensor, v: Tensor) -> Any | None:
    """The function of torch that runs such heads on a GPU, or None."""
    head_dim, value_dim = q.shape[-1], v.shape[-1]
    if q.dtype == torch.float32:
        return EFFICIENT if head_dim % 4 == value_dim % 4 == 0 else None
    if head_dim % 8 or value_dim % 8:
        return None
    if max(head_dim, value_dim) <= max_cudnn():
        return CUDNN
    return FLASH if flash_takes(q, v) else None


@lru_cache(maxsize=1)
def max_cudnn() -> int:
    """The head dimension up to which cuDNN runs: on Hopper, which is meant where there is no GPU, 256."""
    hopper = 9
    elsewhere = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] != hopper
    return 128 if elsewhere else 256


def flash_takes(q: Tensor, v: Tensor) -> bool:
    """Whether FlashAttention runs such heads on a GPU."""
    head_dim = q.shape[-1]
    return q.element_size() == 2 and head_dim % 8 == 0 and head_dim == v.shape[-1] <= MAX_FLASH


def why_not_backward(call: AttentionCall, q: Tensor, k: Tensor, grad_lse: Tensor | None) -> str | None:
    """Why torch's own attention cannot take the backward pass of a call that fits."""
    if grad_lse is not None:
        return "it takes no gradient of the log-sum-exp"
    if q.device.type == "cpu":
        return None
    if call.deterministic:
        return "its backward pass is nondeterministic (atomics): ask with deterministic=False"
    windows = gpu_crossovers.backward(call, q)
    if windows is not None and not windows.passed:
        return "its backward pass is slower on windows this small"
    return None


def forward(
    recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    found = diagonal_blocks(plan(call.rule)) or DiagonalBlocks(False, None)
    run: Any = FLASH_ON_CPU if q.device.type == "cpu" else library(q, v)
    given = [_in_windows(recorder, x, found.window) for x in of_query_heads(recorder, q, k, v)]
    how: dict[str, Any] = {"is_causal": found.causal, "scale": call.scale}
    if run in (CUDNN, EFFICIENT):
        how |= {"attn_bias": None, "compute_log_sumexp": True}
    out, lse, *_ = recorder.do(
        partial(run, **how), *given, first=_output(run, found.causal, call.scale, *given)
    )
    if run is EFFICIENT and lse.shape[-1] != q.shape[2]:
        lse = recorder.do(partial(torch.narrow, dim=2, start=0, length=q.shape[2]), lse)
    wide = torch.promote_types(q.dtype, torch.float32)
    out, lse = (
        _shaped(recorder, out, (*q.shape[:-1], v.shape[-1])),
        _shaped(recorder, lse, q.shape[:-1], wide),
    )
    if q.device.type != "cpu":
        return out, lse
    return recorder.do(partial(cpu.checked, call.without_tensors()), out, lse, q, k, v, *call.tensors)


def _output(run: Any, causal: bool, scale: float, q: Tensor, k: Tensor, v: Tensor) -> Any:
    """What gives the output alone sooner: torch's own call, where it would take the same function."""
    if q.device.type == "cpu":
        return None
    how: dict[str, Any] = {"is_causal": causal, "scale": scale}
    if q.shape[1] != k.shape[1]:
        how["enable_gqa"] = True
    try:
        taken = torch._fused_sdp_choice(q, k, v, **how)  # pyright: ignore
    except RuntimeError:  # none that it is allowed to take
        return None
    return partial(scaled_dot_product_attention, **how) if FUNCTIONS.get(taken) is run else None


def backward(recorder: Recorder, call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v; on a GPU they may differ in the last bits from run to run."""
    grad_out, _, q, k, v, out, lse = given
    found = diagonal_blocks(plan(call.rule)) or DiagonalBlocks(False, None)
    whole = (grad_out, *of_query_heads(recorder, q, k, v), out)
    cut = [_in_windows(recorder, x, found.window) for x in whole]
    sums = _shaped(recorder, lse, cut[1].shape[:-1])
    if q.device.type == "cpu":
        run = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        run = partial(run, dropout_p=0.0, is_causal=found.causal, scale=call.scale)
        grads = recorder.do(run, *cut, sums)
    else:
        sums = sums if sums.is_contiguous() else recorder.do(Tensor.contiguous, sums)
        seed = recorder.keep(torch.zeros((), dtype=torch.int64, device=q.device))
        run = partial(_on_a_gpu, library(q, v), found.causal, call.scale)
        grads = recorder.do(run, *cut, sums, seed)
    dq, dk, dv = (_shaped(recorder, grad, x.shape) for grad, x in zip(grads, whole[1:4], strict=True))
    if dk.shape[1] != k.shape[1]:
        dk, dv = recorder.do(per_kv_head, dk, k), recorder.do(per_kv_head, dv, v)
    if q.device.type == "cpu":
        step = partial(cpu.checked_gradients, call.without_tensors())
        dq, dk, dv = recorder.do(step, dq, dk, dv, grad_out, q, k, v, out, lse, *call.tensors)
    return dq, dk, dv, []


def _on_a_gpu(run: Any, causal: bool, scale: float, *given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    grad, q, k, v, out, sums, seed = given
    sizes = q.shape[2], k.shape[2]
    if run is CUDNN:
        how = (seed, seed, None, None, None, *sizes, 0.0, causal)
        return aten._scaled_dot_product_cudnn_attention_backward.default(
            grad, q, k, v, out, sums[..., None], *how, scale=scale
        )
    if run is FLASH:
        how = (None, None, *sizes, 0.0, causal, seed, seed)
        return aten._scaled_dot_product_flash_attention_backward.default(
            grad, q, k, v, out, sums, *how, scale=scale
        )
    sums = pad(sums, (0, -sizes[0] % ROWS_TOGETHER), value=inf)
    how = (seed, seed, 0.0, [True, True, True, False], causal)
    dq, dk, dv, _ = aten._scaled_dot_product_efficient_attention_backward.default(
        grad, q, k, v, None, out, sums, *how, scale=scale
    )
    return dq, dk, dv


def of_query_heads(recorder: Recorder, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, and k and v with a head for each of q's, unless the function of torch shares them itself."""
    shares = q.device.type == "cuda" and library(q, v) is not EFFICIENT
    if shares or q.shape[1] == k.shape[1]:
        return q, k, v
    repeat = partial(per_query_head, heads=q.shape[1])
    return q, recorder.do(repeat, k), recorder.do(repeat, v)


def _in_windows(recorder: Recorder, x: Tensor, window: int | None) -> Tensor:
    """Windows as heads of their own, [batch * heads, windows, window, D]; rows that lie apart are copied."""
    x = x if x.stride(-1) == 1 else recorder.do(Tensor.contiguous, x)
    if window is None:
        return x
    return _shaped(recorder, x, (x.shape[0] * x.shape[1], x.shape[2] // window, window, x.shape[3]))


def _shaped(recorder: Recorder, x: Tensor, shape: Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
    """The same numbers in this shape and dtype; x itself where it has them."""
    if x.dtype != (dtype or x.dtype):
        x = recorder.do(partial(Tensor.to, dtype=dtype), x)
    return x if x.shape == tuple(shape) else recorder.do(partial(Tensor.reshape, shape=tuple(shape)), x)
