"""Where the results of a pass go, and where they are summed up over several parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lattend.attend.call.tensors import strides
from lattend.attend.replay.recorder import Recorder
from lattend.plans.tables.part_passes import PartPass


def results(
    recorder: Recorder, q: Tensor, width: int, dtype: torch.dtype, passes: Sequence[PartPass], begins: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Where the output of a forward pass goes, where it is summed up over several parts, and log-sum-exps."""
    out = recorder.empty((*q.shape[:3], width), dtype, q.device, strides(q, width))
    sums, lse = out, recorder.empty(q.shape[:-1], torch.float32, q.device)
    if not all(each.alone for each in passes):
        sums = recorder.empty(out.shape, torch.float32, q.device)
    if not begins:
        recorder.do(filled(0.0), sums)
    if not begins or any(each.earlier for each in passes):
        recorder.do(filled(float("-inf")), lse)  # which says of a row that it has no sums
    return out, sums, lse


def sums_of(
    recorder: Recorder, x: Tensor, passes: Sequence[PartPass], begins: bool, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """Where a gradient goes, in its own dtype or this, and where it is summed up over several parts.

    It lies in memory as its tensor does, so that it is not copied; the sums lie in order.
    """
    found = recorder.empty(x.shape, dtype or x.dtype, x.device, strides(x, x.shape[-1]))
    sums = found if all(each.alone for each in passes) else recorder.empty(x.shape, torch.float32, x.device)
    return found, sums if begins else recorder.do(filled(0.0), sums)


def row_marks(recorder: Recorder, x: Tensor, passes: Sequence[PartPass], begins: bool) -> Tensor:
    """Where rows of a gradient are marked (careful.py); rows that no each writes have no mark."""
    marks = recorder.empty(x.shape[:-1], torch.float32, x.device)
    if not begins or any(each.earlier for each in passes):
        recorder.do(filled(0.0), marks)
    return marks


def filled(value: float) -> Callable[[Tensor], Tensor]:
    """The step that fills a tensor."""
    return lambda x: x.fill_(value)


def rows_together(recorder: Recorder, x: Tensor) -> Tensor:
    """The tensor, or a copy, that TMA can read: rows whole, all strides multiples of 16 bytes."""
    apart = 16 // x.element_size()
    fits = x.stride(-1) == 1 and all(s % apart == 0 for s in x.stride()[:-1]) and x.data_ptr() % 16 == 0
    return x if fits else recorder.do(_copied, x)


def _copied(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format)
