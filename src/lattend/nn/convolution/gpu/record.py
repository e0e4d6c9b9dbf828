"""Calls of hard heads on a GPU: which the kernels take, and the steps of each kind."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from lattend.attend.seams import CallSignature, Recorder, Steps, is_plain, tensor_signature
from lattend.nn.convolution.geometry import Geometry
from lattend.recent import Recent

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
NARROWEST = 16  # channels of a group: with fewer, most of a tile would be padding
MAX_RECORDS = 256
KNOWN: Recent[CallSignature, Steps] = Recent(MAX_RECORDS)


def fits(x: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> bool:
    """Whether the kernels take such a call: on a GPU, and nobody traces or watches it."""
    given = (x, weight) if bias is None else (x, weight, bias)
    if torch.compiler.is_compiling() or not has_kernels(x.device) or not is_plain(*given):
        return False
    alike = all([y.dtype == x.dtype and y.device == x.device for y in given])  # noqa: C419 (a list is faster)
    wide = min(weight.shape[1], weight.shape[2] // groups) >= NARROWEST
    return alike and x.dtype in DTYPES and wide and x.numel() > 0


def has_kernels(device: torch.device) -> bool:
    """Whether the device is the GPU in use, and one that multiplies matrices of these dtypes."""
    return device.type == "cuda" and device.index == torch.cuda.current_device() and _multiplies(device.index)


@lru_cache(maxsize=16)
def _multiplies(device: int) -> bool:
    if find_spec("triton") is None or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def rounds_to_tf32() -> bool:
    """Whether float32 may be rounded to TF32, as torch is told for its convolutions."""
    conv: Any = getattr(torch.backends.cudnn, "conv", None)
    return torch.backends.cudnn.allow_tf32 if conv is None else conv.fp32_precision == "tf32"


def forward(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, groups: int) -> Tensor:
    """The output of hard heads, [N, c_out, rows, cols]."""
    given = (x, weight) if bias is None else (x, weight, bias)
    exact = x.dtype == torch.float32 and not rounds_to_tf32()
    kind = geometry, groups, exact, tensor_signature(*given)
    known = KNOWN.get(kind)
    if known is not None:
        return known(*given)[0]
    from lattend.nn.convolution.gpu import steps

    recorder = Recorder(*given)
    found = steps.forward(recorder, x, weight, bias, geometry, groups, exact)
    _remember(kind, recorder.steps(found))
    return found


def backward(
    grad: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, groups: int, wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    """The gradients of x, the weights and the bias that are wanted."""
    exact = x.dtype == torch.float32 and not rounds_to_tf32()
    kind = geometry, groups, exact, wanted, tensor_signature(grad, x, weight)
    known = KNOWN.get(kind)
    if known is None:
        from lattend.nn.convolution.gpu import steps

        recorder = Recorder(grad, x, weight)
        found = steps.backward(recorder, grad, x, weight, geometry, groups, exact, wanted)
        _remember(kind, recorder.steps(*[y for y in found if y is not None]))
        return [*found]
    left = iter(known(grad, x, weight))
    return [next(left) if want else None for want in wanted]


def _remember(kind: CallSignature, steps: Steps | None) -> None:
    if steps is not None:
        KNOWN.find(kind, lambda: steps)
