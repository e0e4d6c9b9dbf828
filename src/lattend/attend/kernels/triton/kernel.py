"""The Triton kernel: why it does not fit a call, and its forward and backward."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lattend.attend.bias import dtype_name
from lattend.attend.call.attention_call import (
    AttentionCall,
    BackwardInputs,
    BackwardPass,
    ForwardPass,
    backward_inputs,
    rule_of,
)
from lattend.attend.call.rule_names import axes_looked_up
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.replay.recorder import RecordedPass, Recorder
from lattend.plans.plan import MAX_KNOWN, plan
from lattend.recent import Recent

if TYPE_CHECKING:
    from lattend.attend.kernels.triton.launch import PlanExecutor

MAX_HEAD_DIM = 512
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
HOPPER = (9, 0)  # compute capability
FEWEST_ROWS = 96 * 128  # of all heads: with fewer of its tiles the chip has too little to do
GLUON = "3.6."  # version of Triton: Gluon changes from one to the next


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why this kernel cannot take the call, or None when it can."""
    if q.device.type != "cuda" and not (call.kernel == "triton" and _interpreted()):
        return f"it needs a GPU, and q is on {q.device.type}"
    if missing() is not None:
        return missing()
    if q.dtype not in DTYPES:
        return f"it computes in bfloat16, float16 or float32, and q is {dtype_name(q.dtype)}"
    size = max(q.shape[-1], v.shape[-1])
    if size > MAX_HEAD_DIM:
        return f"its tiles hold a head dimension of {MAX_HEAD_DIM} at most, and this is {size}"
    return None if plan(call.rule).fits else "the rule's numbers lead beyond 64 bits"


def missing() -> str | None:
    """What is to be installed beside a GPU; without one here it is one elsewhere that is asked about."""
    there = find_spec("triton") is not None or not torch.cuda.is_available()
    return None if there else "Triton is not installed: pip install triton"


def may_take_hopper(call: AttentionCall, q: Tensor, v: Tensor, kernel: str = "forward") -> bool:
    """Whether the kernel for Hopper (hopper/) takes such calls there; where there is no GPU, on an H200."""
    plain = call.term is None and call.softcap is None and call.seed is None and call.key_range is None
    if not plain or call.key_mask is not None or _interpreted():
        return False
    fits, rows = padded(q.shape[3]) == padded(v.shape[3]) and all(map(whole_16_bytes, (q, v))), q
    if kernel == "backward_dkdv":  # of heads that share keys, on a line, all have the same tiles
        alike = len(call.rule.axes) == 1 and not call.rule.has_heads
        fits, rows = fits and (q.shape[1] == v.shape[1] or alike), v
    if not fits or rows.shape[:3].numel() < FEWEST_ROWS:
        return False
    if q.device.type != "cuda" or not torch.cuda.is_available():
        return True
    known = torch.version.hip is None and has_gluon()
    return known and torch.cuda.get_device_capability(q.device) == HOPPER


def whole_16_bytes(x: Tensor) -> bool:
    """Whether TMA can copy its rows."""
    return x.shape[-1] * x.element_size() % 16 == 0


def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


@lru_cache(maxsize=1)
def has_gluon() -> bool:
    """Whether Triton is there, of a version whose Gluon the kernel was written for and tested with."""
    try:
        import triton  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return False
    return triton.__version__.startswith(GLUON)


def prepare(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> ForwardPass:
    """Prepares a forward pass, whose launches are recorded when it first runs."""
    bare = call.without_tensors()

    def run(recorder: Recorder, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        return forward(recorder, bare.with_tensors(tensors), q, k, v)

    recorded = RecordedPass(run)
    return ForwardPass(recorded, recorded.first_result)


def forward(
    recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """The output in q's layout, and the log-sum-exp."""
    executor = _executor(call, q.device)
    output, lse = executor.forward(recorder, call, q, k, v, arrays(recorder, call, q.device))
    return recorder.in_layout_of(output, q), lse


def largest(call: AttentionCall, q: Tensor, k: Tensor) -> Tensor:
    """The largest score of each query, -inf where it has no key."""
    recorder = Recorder(q, k, *call.tensors)
    return _executor(call, q.device).largest(recorder, call, q, k, arrays(recorder, call, q.device))


def prepare_backward(call: AttentionCall, inputs: BackwardInputs) -> BackwardPass:
    """Prepares a backward pass, whose launches are recorded when it first runs; it repeats its bits."""
    bare, has_grad_lse = call.without_tensors(), inputs.grad_lse is not None

    def run(recorder: Recorder, *tensors: Tensor) -> Sequence[Tensor]:
        given, others = backward_inputs(has_grad_lse, tensors)
        call, device = bare.with_tensors(others), given.q.device
        executor = _executor(call, device)
        *grads, biases = executor.backward(recorder, call, given, arrays(recorder, call, device))
        if not call.learned:
            biases = [recorder.do(torch.zeros_like, x) for x in call.bias.values()]
        matrices = zip(grads, (given.q, given.k, given.v), strict=True)
        return [*(recorder.in_layout_of(grad, x) for grad, x in matrices), *biases]

    return RecordedPass(run)


def arrays(recorder: Recorder, call: AttentionCall, device: torch.device) -> dict[str, Tensor]:
    """The arrays of the rule and the tensors of the bias, on the device, each [batch or 1, …]."""
    found: dict[str, Tensor] = {}
    if call.rule.data:
        found = {name: recorder.keep(array) for name, array in _bound(call.rule.key, str(device)).items()}
    for (name, array), axes in zip(call.data.items(), axes_looked_up(call.rule.key), strict=True):
        found[name] = recorder.do(partial(_for_batch, device, array.ndim > axes), array)
    return found | {name: recorder.do(partial(_for_batch, device, False), x) for name, x in call.bias.items()}


def _for_batch(device: torch.device, batched: bool, array: Tensor) -> Tensor:
    whole = array.to(device)
    return (whole if batched else whole[None]).contiguous()


@lru_cache(maxsize=64)
def _bound(key: str, device: str) -> dict[str, Tensor]:
    return {name: torch.tensor(array, device=device)[None] for name, array in rule_of(key).data.items()}


_EXECUTORS: Recent[object, PlanExecutor] = Recent(MAX_KNOWN)  # as many as there are plans


def _executor(call: AttentionCall, device: torch.device) -> PlanExecutor:
    """The executor of the call's plan; remembered."""
    from lattend.attend.kernels.triton.launch import PlanExecutor

    found, tensors = plan(call.rule), tuple(call.bias)
    key = (found, device, call.term, tensors)
    return _EXECUTORS.find(key, lambda: PlanExecutor(found, device, term=call.term, tensors=tensors))
