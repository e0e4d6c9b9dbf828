"""Where the results of a pass go, and where they are summed up over several parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lattend.attend.call.memory import strides
from lattend.attend.kernels.triton.part_passes import Turn
from lattend.attend.replay.recorder import Tape


def results(
    tape: Tape, q: Tensor, width: int, dtype: torch.dtype, turns: Sequence[Turn], begins: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Where the output of a forward pass goes, where it is summed up over several parts, and log-sum-exps."""
    out = tape.empty((*q.shape[:3], width), dtype, q.device, strides(q, width))
    sums, lse = out, tape.empty(q.shape[:-1], torch.float32, q.device)
    if not all(turn.alone for turn in turns):
        sums = tape.empty(out.shape, torch.float32, q.device)
    if not begins:
        tape.do(filled(0.0), sums)
    if not begins or any(turn.earlier for turn in turns):
        tape.do(filled(float("-inf")), lse)  # which says of a row that it has no sums
    return out, sums, lse


def sums_of(
    tape: Tape, x: Tensor, turns: Sequence[Turn], begins: bool, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """Where a gradient goes, in its own dtype or this, and where it is summed up over several parts.

    It lies in memory as its tensor does, so that it is not copied; the sums lie in order.
    """
    found = tape.empty(x.shape, dtype or x.dtype, x.device, strides(x, x.shape[-1]))
    sums = found if all(turn.alone for turn in turns) else tape.empty(x.shape, torch.float32, x.device)
    return found, sums if begins else tape.do(filled(0.0), sums)


def row_marks(tape: Tape, x: Tensor, turns: Sequence[Turn], begins: bool) -> Tensor:
    """Where rows of a gradient are marked (careful.py); rows that no turn writes have no mark."""
    marks = tape.empty(x.shape[:-1], torch.float32, x.device)
    if not begins or any(turn.earlier for turn in turns):
        tape.do(filled(0.0), marks)
    return marks


def filled(value: float) -> Callable[[Tensor], Tensor]:
    """The step that fills a tensor."""
    return lambda x: x.fill_(value)
