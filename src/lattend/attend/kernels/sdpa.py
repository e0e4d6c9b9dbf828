"""The kernel sdpa: whole or causal blocks go to torch's own attention, which is at the limit there.

On a GPU that is cuDNN in half precision, or FlashAttention for head dimensions that cuDNN does not take, and
torch's memory-efficient attention in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from lattend.attend.bias import dtype_name
from lattend.attend.call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.kernels.crossover import Crossover
from lattend.attend.kernels.triton.kernel import may_take_hopper
from lattend.attend.memory import per_kv_head
from lattend.attend.tape import Tape
from lattend.plans.order import pairing
from lattend.plans.plan import Plan, plan
from lattend.rules.language.expr import Compare, Name

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
# Measured on an H200. Numbers in the keys of a window from which on its backward pass is faster than ours
SMALL_WINDOW = 256 * 128
# Numbers in the keys of a block below which a kernel of ours is over before torch's; in half precision that
# is its launch, and the products of all blocks are few
SMALL_BLOCK, SMALL_CAUSAL_FLOAT32, SMALL_WORK = 640 * 64, 2048 * 64, 1 << 29
# Causal blocks in half precision on Hopper, where the forward of ours took 0.79 to 0.99 of cuDNN's time: from
# so many keys to before so many numbers of a head, with so many heads in all batch elements at most
HOPPER_LEAST, HOPPER_CAUSAL, HOPPER_HEADS = 2048, 32_768 * 128, 32


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
    windows = crossover(call, q)
    if windows is not None and not windows.passed:
        return "its backward pass is slower on windows this small"
    return None


def crossover(call: AttentionCall, q: Tensor) -> Crossover | None:
    """From which windows on its backward pass on a GPU is faster than ours; None where there are none."""
    found = diagonal_blocks(plan(call.rule)) if q.device.type == "cuda" else None
    if found is None or found.window is None:
        return None
    return Crossover("backward", found.window, q.shape[-1], SMALL_WINDOW)


def small(call: AttentionCall, q: Tensor, v: Tensor) -> Crossover | None:
    """Up to which blocks a kernel of ours is over sooner on a GPU; None where there are none.

    Where heads share keys, their gradients are summed head by head.
    """
    found = diagonal_blocks(plan(call.rule)) if q.device.type == "cuda" else None
    if found is None:
        return None
    keys, width = found.window or v.shape[2], max(q.shape[3], v.shape[3])
    if found.causal and found.window is None and ahead_on_hopper(call, q, v):
        return Crossover("forward", keys, width, HOPPER_CAUSAL)
    numbers = SMALL_CAUSAL_FLOAT32 if found.causal and width <= 128 else SMALL_BLOCK
    if q.dtype != torch.float32:
        rows = max(1, q.shape[:3].numel()) * (0.5 if found.causal else 1)
        numbers = min(SMALL_BLOCK, SMALL_WORK / rows)
    return Crossover("forward", keys, width, numbers * v.shape[1] / max(1, q.shape[1]))


def ahead_on_hopper(call: AttentionCall, q: Tensor, v: Tensor) -> bool:
    """Whether hopper.py's kernel is ahead of cuDNN on a causal block, if it is not too large.

    Where gradients may differ from run to run both passes are torch's own, whose backward is faster then.
    """
    long = v.shape[2] >= HOPPER_LEAST and q.shape[:2].numel() <= HOPPER_HEADS and q.shape[2] == v.shape[2]
    wide = 64 < max(q.shape[3], v.shape[3]) <= 128 and q.dtype in (torch.bfloat16, torch.float16)
    return call.deterministic and long and wide and may_take_hopper(call, q, v)


def forward(tape: Tape, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    found = diagonal_blocks(plan(call.rule)) or DiagonalBlocks(False, None)
    run: Any = FLASH_ON_CPU if q.device.type == "cpu" else library(q, v)
    given = [_in_windows(tape, x, found.window) for x in of_query_heads(tape, q, k, v)]
    how: dict[str, Any] = {"is_causal": found.causal, "scale": call.scale}
    if run in (CUDNN, EFFICIENT):
        how |= {"attn_bias": None, "compute_log_sumexp": True}
    out, lse, *_ = tape.do(partial(run, **how), *given, first=_output(run, found.causal, call.scale, *given))
    if run is EFFICIENT and lse.shape[-1] != q.shape[2]:
        lse = tape.do(partial(torch.narrow, dim=2, start=0, length=q.shape[2]), lse)
    wide = torch.promote_types(q.dtype, torch.float32)
    return _shaped(tape, out, (*q.shape[:-1], v.shape[-1])), _shaped(tape, lse, q.shape[:-1], wide)


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


def backward(tape: Tape, call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v; on a GPU they may differ in the last bits from run to run."""
    grad_out, _, q, k, v, out, lse = given
    found = diagonal_blocks(plan(call.rule)) or DiagonalBlocks(False, None)
    whole = (grad_out, *of_query_heads(tape, q, k, v), out)
    cut = [_in_windows(tape, x, found.window) for x in whole]
    sums = _shaped(tape, lse, cut[1].shape[:-1])
    if q.device.type == "cpu":
        run = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        run = partial(run, dropout_p=0.0, is_causal=found.causal, scale=call.scale)
        grads = tape.do(run, *cut, sums)
    else:
        seed = tape.keep(torch.zeros((), dtype=torch.int64, device=q.device))
        run = partial(_on_a_gpu, library(q, v), found.causal, call.scale)
        grads = tape.do(run, *cut, sums, seed)
    dq, dk, dv = (_shaped(tape, grad, x.shape) for grad, x in zip(grads, whole[1:4], strict=True))
    if dk.shape[1] != k.shape[1]:
        dk, dv = tape.do(per_kv_head, dk, k), tape.do(per_kv_head, dv, v)
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


def of_query_heads(tape: Tape, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, and k and v with a head for each of q's, unless the function of torch shares them itself."""
    shares = q.device.type == "cuda" and library(q, v) is not EFFICIENT
    if shares or q.shape[1] == k.shape[1]:
        return q, k, v
    repeat = partial(Tensor.repeat_interleave, repeats=q.shape[1] // k.shape[1], dim=1)
    return q, tape.do(repeat, k), tape.do(repeat, v)


def _in_windows(tape: Tape, x: Tensor, window: int | None) -> Tensor:
    """Windows as heads of their own, [batch * heads, windows, window, D]; rows that lie apart are copied."""
    x = x if x.stride(-1) == 1 else tape.do(Tensor.contiguous, x)
    if window is None:
        return x
    return _shaped(tape, x, (x.shape[0] * x.shape[1], x.shape[2] // window, window, x.shape[3]))


def _shaped(tape: Tape, x: Tensor, shape: Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
    """The same numbers in this shape and dtype; x itself where it has them."""
    if x.dtype != (dtype or x.dtype):
        x = tape.do(partial(Tensor.to, dtype=dtype), x)
    return x if x.shape == tuple(shape) else tape.do(partial(Tensor.reshape, shape=tuple(shape)), x)
