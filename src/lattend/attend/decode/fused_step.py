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

from lattend.attend.decode.slots import SlotTable
from lattend.attend.decode.step import MAX_CUDNN, Scoring, Slots, rounded_slots, wide
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.kernels.native.decode_step import native_step
from lattend.attend.kernels.sdpa import CUDNN, FLASH, flash_takes


def at_once(q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring) -> Callable[..., Any] | None:
    """Returns a function that runs such steps; None where operations of torch run them.

    Its arguments are q, k and v, the tensors of the bias, the new token's position and slot, and the number
    of slots in use. A slot of -1 is none: the key is there. A static cache knows the position and the slot
    itself.
    """
    if not q.is_cuda:
        return native_step(q, k, v, slots, how)
    if q.device.index != torch.cuda.current_device():  # launches are made on the current one
        return None
    library = library_step(q, v, slots, how)
    if not has_triton():
        return library
    from lattend.attend.kernels.triton.decode_step import triton_step

    ours = triton_step(q, slots, how)
    return ByLength(ours, library) if ours is not None and library is not None else ours or library


def library_takes(q: Tensor, v: Tensor, how: Scoring) -> bool:
    """Whether torch's own attention computes such scores on a GPU, of tokens that attend to the same keys."""
    return how.bias is None and how.is_plain and q.is_cuda and q.numel() > 0 and flash_takes(q, v)


def library_step(q: Tensor, v: Tensor, slots: Slots, how: Scoring) -> LibraryStep | None:
    """Torch's own attention for a step of a dynamic cache that attends to all of its keys."""
    if slots.condition is not None or slots.table is None or not library_takes(q, v, how):
        return None
    return LibraryStep(slots.keys, slots.values, slots.table, how)


class ByLength:
    """Our two launches for short texts, for which the host takes less time; for long ones the library."""

    def __init__(self, ours: Callable[..., Any], library: LibraryStep) -> None:
        self.ours, self.library = ours, library
        self.long = gpu_crossovers.cached_keys("token", library.keys.whole)

    def __call__(self, *given: Any) -> Any:
        return (self.library if given[-1] >= self.long else self.ours)(*given)


class LibraryStep:
    """A step that attends to all keys: copies the new key into its slot and calls torch's own attention.

    With many kv heads in the batch, cuDNN is faster than FlashAttention, but takes 40 ms to plan for each
    number of keys. It therefore reads a rounded number of slots, and a bias of -inf hides the unused ones.
    """

    def __init__(self, keys: Tensor, values: Tensor, table: SlotTable, how: Scoring) -> None:
        self.keys, self.values, self.table, self.how = _Side(keys), _Side(values), table, how
        length = table.retention.length
        self.rolling = table.most == table.capacity and (length is None or table.capacity < length)
        self.cudnn = keys.shape[3] <= MAX_CUDNN and gpu_crossovers.cudnn_decodes(keys)
        with torch.inference_mode(False):  # else it could not be written to outside of it
            self.bias = keys.new_empty(table.capacity if self.cudnn else 0)
        self.hidden = (-1, -1, -1)  # the table's changes, slots read and slots in use that the bias is for

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, position: int, slot: int, count: int
    ) -> tuple[Tensor, Tensor | None]:
        if slot >= 0:
            self.keys.slot(slot).copy_(k)
            self.values.slot(slot).copy_(v)
        q, scale, with_lse = with_unit_stride(q), self.how.scale, self.how.return_lse
        full = self.rolling and count == self.table.capacity
        read = count if full else rounded_slots(count)
        if self.cudnn and read <= self.table.capacity:
            bias = None if full else self._bias(count, read)
            out, lse, *_ = CUDNN(
                q, self.keys.first(read), self.values.first(read), bias, with_lse, scale=scale
            )
        else:
            out, lse, *_ = FLASH(q, self.keys.first(count), self.values.first(count), scale=scale)
        return out, lse.reshape(q.shape[:3]) if with_lse else None

    def _bias(self, count: int, read: int) -> Tensor:
        """0 for slots in use and -inf for the unused ones, which get zeros: NaN - inf is NaN."""
        now = self.table.changes, read, count
        if now[:2] == self.hidden[:2] and count - self.hidden[2] in (0, 1):
            self.bias[self.hidden[2] : count] = 0
        else:
            self.bias[:count], self.bias[count:read] = 0, -inf
            self.keys.between(count, read).zero_()
            self.values.between(count, read).zero_()
        self.hidden = now
        return self.bias.as_strided((1, 1, 1, read), (read, read, read, 1))


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

    def between(self, start: int, end: int) -> Tensor:
        begin = self.begin + start * self.strides[2]
        return self.whole.as_strided((*self.rows, end - start, self.width), self.strides, begin)

    def slot(self, slot: int) -> Tensor:
        return self.between(slot, slot + 1)

    def first(self, count: int) -> Tensor:
        return self.between(0, count)


def may_prepare(q: Tensor) -> bool:
    """Whether kernels may be compiled now, which cannot be while a CUDA graph is captured."""
    return not q.is_cuda or not torch.cuda.is_current_stream_capturing()


@lru_cache(maxsize=1)
def has_triton() -> bool:
    """Whether Triton is there, which some builds of torch come without."""
    return find_spec("triton") is not None
