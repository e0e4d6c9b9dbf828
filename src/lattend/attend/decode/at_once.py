"""A step of decoding in one go: by compiled code on a CPU, by two launches or torch's own attention on a GPU.

torch's own attention takes new tokens that attend to all keys of the past, from the number of keys on at
which it was measured to be faster: kernels/gpu_crossovers.json.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from math import inf
from typing import Any

import torch
from torch import Tensor

from lattend.attend.decode.native_step import native_step
from lattend.attend.decode.step import Scoring, Slots, wide
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.kernels.sdpa import CUDNN, FLASH, flash_takes

MAX_CUDNN = 128  # the head dimension up to which cuDNN was measured


def at_once(q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring) -> Callable[..., Any] | None:
    """What takes such steps at once; None where they are left to operations of torch.

    It is given q, k and v, the tensors of the bias, the new token's position and slot, and how many slots are
    in use. A slot of -1 is none: the key is there. A static cache knows the position and the slot itself.
    """
    if not q.is_cuda:
        return native_step(q, k, v, slots, how)
    if q.device.index != torch.cuda.current_device():  # launches are made on the current one
        return None
    whole = slots.condition is None and not slots.state
    library = LibraryStep(slots, how) if whole and library_takes(q, v, how) else None
    if not _has_triton():
        return library
    from lattend.attend.kernels.triton.decode_step import triton_step

    ours = triton_step(q, slots, how)
    return ByLength(ours, library) if ours is not None and library is not None else ours or library


def library_takes(q: Tensor, v: Tensor, how: Scoring) -> bool:
    """Whether torch's own attention computes such scores on a GPU, of tokens that attend to the same keys."""
    plain = how.bias is None and how.softcap is None and how.scale > 0
    return plain and q.is_cuda and q.numel() > 0 and flash_takes(q, v)


class ByLength:
    """Our two launches, which the host prepares sooner, or torch's own attention where it is faster."""

    def __init__(self, ours: Callable[..., Any], library: LibraryStep) -> None:
        self.ours, self.library = ours, library
        self.long = min(gpu_crossovers.cached_keys("token", library.slots.keys), library.full)

    def __call__(self, *given: Any) -> Any:
        return (self.library if given[-1] >= self.long else self.ours)(*given)


class LibraryStep:
    """A step on all keys: two copies into views of its slot, and torch's own attention on those in use.

    FlashAttention takes it while their number grows: cuDNN needs some 50 ms to prepare for each number.
    Once all slots of a rolling buffer are in use, the number stays the same, and cuDNN takes the step.
    """

    def __init__(self, slots: Slots, how: Scoring) -> None:
        self.slots, self.how, self.sides = slots, how, [_Side(slots.keys), _Side(slots.values)]
        cudnn = slots.rolling and slots.keys.shape[3] <= MAX_CUDNN
        enough = cudnn and slots.keys.shape[2] >= gpu_crossovers.cached_keys("window", slots.keys)
        self.full = slots.keys.shape[2] if enough else inf  # slots in use from which on it is cuDNN

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, position: int, slot: int, count: int
    ) -> tuple[Tensor, Tensor | None]:
        keys, values = self.sides
        if slot >= 0:
            keys.slot(slot).copy_(k)
            values.slot(slot).copy_(v)
        q, scale, with_lse = with_unit_stride(q), self.how.scale, self.how.return_lse
        if count >= self.full:
            out, lse, *_ = CUDNN(q, keys.whole, values.whole, None, with_lse, scale=scale)
        else:
            out, lse, *_ = FLASH(q, keys.first(count), values.first(count), scale=scale)
        return out, lse.reshape(q.shape[:3]) if with_lse else None


def past_and_draft(
    q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp of new tokens, which attend to a past, and causally to their own keys.

    The query heads of a kv head are rows of one matrix on the past, so that its keys are read once.
    """
    batch, heads, s, width = q.shape
    rows = q.reshape(batch, keys.shape[1], heads // keys.shape[1] * s, width)
    past, past_lse, *_ = FLASH(with_unit_stride(rows), keys, values, scale=scale)
    own, own_lse, *_ = FLASH(*map(with_unit_stride, (q, k, v)), is_causal=True, scale=scale)
    past_lse = past_lse.reshape(own_lse.shape)
    share = torch.sigmoid(past_lse - own_lse)[..., None]
    out = torch.lerp(own.to(wide(q)), past.reshape(own.shape).to(wide(q)), share)
    return out.to(q.dtype), torch.logaddexp(past_lse, own_lse)


def with_unit_stride(x: Tensor) -> Tensor:
    """The same numbers, those of a row side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()


class _Side:
    """Views of keys or values, [batch, kv_heads, slots, D], each by one operation."""

    def __init__(self, whole: Tensor) -> None:
        self.whole, self.strides, self.begin = whole, whole.stride(), whole.storage_offset()
        self.rows, self.width = whole.shape[:2], whole.shape[3]

    def slot(self, slot: int) -> Tensor:
        begin = self.begin + slot * self.strides[2]
        return self.whole.as_strided((*self.rows, 1, self.width), self.strides, begin)

    def first(self, count: int) -> Tensor:
        return self.whole.as_strided((*self.rows, count, self.width), self.strides)


def may_prepare(q: Tensor) -> bool:
    """Whether kernels may be compiled now, which cannot be while a CUDA graph is captured."""
    return not q.is_cuda or not torch.cuda.is_current_stream_capturing()


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None
