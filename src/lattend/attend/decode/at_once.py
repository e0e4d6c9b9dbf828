"""A step of decoding taken at once: by compiled code on a CPU, by two launches or FlashAttention on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from lattend.attend.decode.native_step import native_step
from lattend.attend.decode.step import Scoring, Slots
from lattend.attend.kernels.sdpa import FLASH, flash_takes

LONG = 1 << 24  # measured on an H200: 16,384 keys of 8 heads and 128 numbers each


def at_once(q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring) -> Callable[..., Any] | None:
    """What takes such steps at once; None where they are left to operations of torch.

    It is given q, k and v, the tensors of the bias, the new token's position and slot, and how many slots are
    in use. A slot of -1 is none: the key is there. A static cache knows the position and the slot itself.
    """
    if not q.is_cuda:
        return native_step(q, k, v, slots, how)
    if q.device.index != torch.cuda.current_device():  # launches are made on the current one
        return None
    flash = FlashStep(slots, how.scale) if may_take_flash(q, v, slots, how) else None
    if not _has_triton():
        return flash
    from lattend.attend.kernels.triton.decode_step import triton_step

    ours = triton_step(q, slots, how)
    return ByLength(ours, flash, slots) if ours is not None and flash is not None else ours or flash


def may_take_flash(q: Tensor, v: Tensor, slots: Slots, how: Scoring) -> bool:
    """Whether torch's FlashAttention takes a step: on all keys, with nothing but the output asked for."""
    plain = how.bias is None and how.softcap is None and not how.return_lse
    return plain and slots.condition is None and not slots.state and q.numel() > 0 and flash_takes(q, v)


class ByLength:
    """Our two launches, which the host prepares sooner; from LONG numbers in the keys on FlashAttention."""

    def __init__(self, ours: Callable[..., Any], flash: FlashStep, slots: Slots) -> None:
        batch, heads, _, width = slots.keys.shape
        self.ours, self.flash, self.long = ours, flash, LONG // max(1, batch * heads * width)

    def __call__(self, *given: Any) -> Any:
        return (self.flash if given[-1] >= self.long else self.ours)(*given)


class FlashStep:
    """A step on all keys: two copies into views of its slot, and FlashAttention on views of those in use."""

    def __init__(self, slots: Slots, scale: float) -> None:
        self.scale, self.sides = scale, [_Side(slots.keys), _Side(slots.values)]

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, position: int, slot: int, count: int
    ) -> tuple[Tensor, None]:
        keys, values = self.sides
        if slot >= 0:
            keys.slot(slot).copy_(k)
            values.slot(slot).copy_(v)
        return FLASH(q, keys.first(count), values.first(count), scale=self.scale)[0], None


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
