"""The kernels that hold all weights of an lstm or gru on the chip, in an emulator of Gluon, by float64."""

from __future__ import annotations

from typing import Any

import gluon_emulator as emulator
import pytest
import torch
from nn.grid import test_gpu
from nn.grid.grids import by, forget, gradients, model, some
from nn.grid.test_gpu import Problem

from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.tape import Tape
from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.gpu import backend, held, launch, small

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


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_whole_net(cell: str, bias: bool, launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of the image are made on the chip, in two directions; the second layer has too many channels."""
    monkeypatch.setattr(small, "fits", lambda *given: False)
    forget()
    net = model(3, 16, cell, 2, layers=2, bias=bias, kernel="gpu").to(torch.bfloat16)
    exact = by("reference", net).double()
    x = some(1, 17, 3, 3).to(torch.bfloat16)
    mask = torch.rand(1, 17, 3, generator=torch.Generator().manual_seed(1)) > 0.2
    found, wanted = gradients(net, x, None, mask), gradients(exact, x.double(), None, mask)
    for a, b in zip(found, wanted, strict=True):
        assert (a.double() - b).norm() <= 3 * TOLERANCE[torch.bfloat16] * b.norm()
    assert launched == ["grid_hopper_fwd_kernel"] * 2 + ["grid_hopper_bwd_kernel"] * 2
