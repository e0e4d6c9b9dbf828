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


def at_once(q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring) -> Callable[..., Any] | None:
    """What takes such steps at once; None where they are left to operations of torch.

    It is given q, k and v, the tensors of the bias, the new token's position and slot, and how many slots are
    in use. A slot of -1 is none: the key is there. A static cache knows the position and the slot itself.
    """
    if not q.is_cuda:
        return native_step(q, k, v, slots, how)
    if left_to_flash(q, v, slots, how):
        return FlashStep(slots, how.scale)
    if not _has_triton():
        return None
    from lattend.attend.kernels.triton.decode_step import triton_step

    return triton_step(q, slots, how)


def left_to_flash(q: Tensor, v: Tensor, slots: Slots, how: Scoring) -> bool:
    """Whether a step on all keys goes to torch's FlashAttention, which cuts long texts into parts itself."""
    plain = how.bias is None and how.softcap is None and not how.return_lse
    return plain and slots.condition is None and not slots.state and q.numel() > 0 and flash_takes(q, v)


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
