"""Tapes: tensors that a launch writes and nobody reads are not made by later calls."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lattend.attend import tape as tapes
from lattend.attend.tape import Tape

CPU = torch.device("cpu")


def write(x: Tensor, out: Tensor, beside: Tensor) -> None:
    """What a launch does: it gives nothing, and writes both."""
    out.copy_(2 * x)
    beside.fill_(7)


@pytest.mark.parametrize("size", [2, tapes.NOWHERE])
def test_what_nobody_reads_is_not_made_again(size: int) -> None:
    x = torch.ones(4)
    tape = Tape(x)
    out, beside = tape.empty((4,), torch.float32, CPU), tape.written((size,), torch.float32, CPU)
    tape.do(write, x, out, beside)
    alone, both = tape.steps_to(out), tape.steps(out, beside)
    assert alone is not None and both is not None
    beside.fill_(1)
    nowhere = tapes._nowhere_on(CPU).zero_()  # pyright: ignore[reportPrivateUsage]
    assert alone(torch.full((4,), 3.0)).tolist() == [6.0] * 4
    assert (beside == 1).all(), "that of the first call is its own"
    assert bool(nowhere.any()) == (size == 2), "a large one is made"
    found, found_beside = both(torch.full((4,), 5.0))
    assert found.tolist() == [10.0] * 4 and (found_beside == 7).all()


def test_what_another_step_reads_is_made() -> None:
    x = torch.ones(4)
    tape = Tape(x)
    out, beside = tape.empty((4,), torch.float32, CPU), tape.written((2,), torch.float32, CPU)
    tape.do(write, x, out, beside)
    steps = tape.steps_to(tape.do(torch.Tensor.sum, beside))
    assert steps is not None and float(steps(x)) == 14
