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
from lattend.attend.call.attention_call import (
    AttentionCall,
    BackwardInputs,
    BackwardPass,
    ForwardPass,
    backward_inputs,
)
from lattend.attend.call.tensors import in_layout_of, per_kv_head, per_query_head
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.diagonal_blocks import DiagonalBlocks, diagonal_blocks
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


def prepare(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> ForwardPass:
    """Prepares a forward pass of torch's own attention."""
    blocks = diagonal_blocks(plan(call.rule)) or DiagonalBlocks(False, None)
    on_cpu, bare, window = q.device.type == "cpu", call.without_tensors(), blocks.window
    function: Any = FLASH_ON_CPU if on_cpu else library(q, v)
    options: dict[str, Any] = {"is_causal": blocks.causal, "scale": call.scale}
    quick = None if on_cpu else _quick_output(function, options, *_inputs(q, k, v, window))
    if function in (CUDNN, EFFICIENT):
        options |= {"attn_bias": None, "compute_log_sumexp": True}
    shape, wide = (*q.shape[:-1], v.shape[-1]), torch.promote_types(q.dtype, torch.float32)

    def run(q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        out, lse, *_ = function(*_inputs(q, k, v, window), **options)
        if function is EFFICIENT:
            lse = lse.narrow(2, 0, shape[2])
        # windows are heads of their own, and cuDNN's log-sum-exps have an axis more
        out, lse = in_layout_of(out.reshape(shape), q), lse.reshape(shape[:-1]).to(wide).contiguous()
        return cpu.checked(bare, out, lse, q, k, v, *tensors) if on_cpu else (out, lse)

    def output(q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> Tensor:
        if on_cpu:
            return run(q, k, v, *tensors)[0]
        given = _inputs(q, k, v, window)
        out = function(*given, **options)[0] if quick is None else quick(*given)
        return out if window is None else out.reshape(shape)

    return ForwardPass(run, output)


def _quick_output(function: Any, options: dict[str, Any], q: Tensor, k: Tensor, v: Tensor) -> Any:
    """What gives the output alone sooner: torch's own call, where it would take the same function."""
    if q.shape[1] != k.shape[1]:
        options = {**options, "enable_gqa": True}
    try:
        taken = torch._fused_sdp_choice(q, k, v, **options)  # pyright: ignore
    except RuntimeError:  # none that it is allowed to take
        return None
    same = FUNCTIONS.get(taken) is function
    return partial(scaled_dot_product_attention, **options) if same else None


def prepare_backward(call: AttentionCall, inputs: BackwardInputs) -> BackwardPass:
    """Prepares the gradients of q, k and v; on a GPU they may differ in the last bits from run to run."""
    blocks = diagonal_blocks(plan(call.rule)) or DiagonalBlocks(False, None)
    on_cpu, bare, window = inputs.q.device.type == "cpu", call.without_tensors(), blocks.window
    if on_cpu:
        run: Any = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        run = partial(run, dropout_p=0.0, is_causal=blocks.causal, scale=call.scale)
    else:
        seed = torch.zeros((), dtype=torch.int64, device=inputs.q.device)
        run = partial(_on_a_gpu, library(inputs.q, inputs.v), blocks.causal, call.scale, seed)

    def gradients(*tensors: Tensor) -> Sequence[Tensor]:
        (grad_out, _, q, k, v, out, lse), others = backward_inputs(False, tensors)
        _, k_, v_ = whole = of_query_heads(q, k, v)
        cut = [_in_windows(x, window) for x in (grad_out, *whole, out)]
        dq, dk, dv = run(*cut, lse.reshape(cut[1].shape[:-1]).contiguous())
        dq, dk, dv = dq.reshape(q.shape), dk.reshape(k_.shape), dv.reshape(v_.shape)
        if k_ is not k:
            dk, dv = per_kv_head(dk, k), per_kv_head(dv, v)
        if on_cpu:
            dq, dk, dv = cpu.checked_gradients(bare, dq, dk, dv, grad_out, q, k, v, out, lse, *others)
        return [in_layout_of(grad, x) for grad, x in ((dq, q), (dk, k), (dv, v))]

    return gradients


def _on_a_gpu(
    run: Any, causal: bool, scale: float, seed: Tensor, *given: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    grad, q, k, v, out, sums = given
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


def _inputs(q: Tensor, k: Tensor, v: Tensor, window: int | None) -> list[Tensor]:
    """The tensors as torch's function takes them."""
    return [_in_windows(x, window) for x in of_query_heads(q, k, v)]


def of_query_heads(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, and k and v with a head for each of q's, unless the function of torch shares them itself."""
    if q.shape[1] == k.shape[1] or (q.device.type == "cuda" and library(q, v) is not EFFICIENT):
        return q, k, v
    return q, per_query_head(k, q.shape[1]), per_query_head(v, q.shape[1])


def _in_windows(x: Tensor, window: int | None) -> Tensor:
    """Windows as heads of their own, [batch * heads, windows, window, D]; rows that lie apart are copied."""
    x = x if x.stride(-1) == 1 else x.contiguous()
    return x if window is None else x.reshape(x.shape[0] * x.shape[1], -1, window, x.shape[3])
