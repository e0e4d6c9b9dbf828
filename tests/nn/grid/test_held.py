"""The kernels that hold all weights of an lstm or gru on the chip, in an emulator of Gluon, by float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gluon_emulator as emulator
import pytest
import torch
from nn.grid import test_gpu
from nn.grid.test_gpu import Problem

from lattend.attend.tape import Tape
from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.gpu import backend, held, launch

LSTM, GRU = CellKind("lstm"), CellKind("gru")
LARGE = 1 << 30


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels in the emulator, whatever h is; gives the names of those that ran."""
    names: list[str] = []

    def instead(tape: Tape, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        names.append(kernel.fn.__name__)
        emulator.launch(kernel, programs, arguments, constants, seed=len(names))

    monkeypatch.setattr(launch.launched, "launch", instead)
    monkeypatch.setattr(launch, "_fits", lambda *given: LARGE)
    monkeypatch.setattr(launch, "spins", 3)
    monkeypatch.setattr(held, "on_hopper", lambda x: True)
    monkeypatch.setattr(held, "SIZES", (16, 32))
    monkeypatch.setattr(held, "IN_REGISTERS", {16: 4, 32: 0})
    monkeypatch.setattr(backend, "framed", test_gpu.framed_in_nan)
    monkeypatch.setattr(test_gpu, "DEVICE", torch.device("cpu"))
    return names


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("cell", [LSTM, GRU], ids=lambda cell: cell.name)
@pytest.mark.parametrize("shape", [(1, 2, 18, 5, 16), (2, 1, 3, 6, 32), (1, 1, 33, 2, 16), (1, 1, 1, 1, 16)])
def test_outputs_and_gradients(
    cell: CellKind, masked: bool, shape: tuple[int, ...], launched: list[str]
) -> None:
    Problem(cell, *shape, masked=masked).check(torch.bfloat16)
    assert launched == ["grid_hopper_fwd_kernel", "grid_hopper_bwd_kernel"]
