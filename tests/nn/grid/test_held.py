"""The kernels that hold all weights of an lstm or gru on the chip, in an emulator of Gluon, beside float64.

The emulator runs programs one after another and all warps of one as a single thread: it sees wrong numbers,
products that read what is not there yet, and programs that wait for later ones. That warps wait for each
other, and that a row block goes on as soon as another, still running, has handed on, only a GPU shows: see
test_weights_held_on_the_chip in test_gpu.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gluon_emulator as emulator
import pytest
import torch
from nn.grid import test_gpu
from nn.grid.test_gpu import Problem

from lattend.attend.replay.recorder import Recorder
from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.gpu import backend, launch, weights_on_chip
from lattend.nn.grid.layout import RowMajorLayout

LSTM, GRU = CellKind("lstm"), CellKind("gru")
LARGE = 1 << 30
MOST_SHARED = 232_448  # bytes of shared memory of a program on an H100 or H200


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels in the emulator, whatever h is; gives the names of those that ran."""
    names: list[str] = []

    def instead(recorder: Recorder, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        names.append(kernel.fn.__name__)
        emulator.launch(kernel, programs, arguments, constants, seed=len(names))

    monkeypatch.setattr(launch.launch_replay, "launch", instead)
    monkeypatch.setattr(launch, "_fits", lambda *given: LARGE)
    monkeypatch.setattr(launch, "spins", 3)
    monkeypatch.setattr(weights_on_chip, "on_hopper", lambda x: True)
    monkeypatch.setattr(weights_on_chip, "SIZES", (16, 32))
    monkeypatch.setattr(weights_on_chip, "IN_REGISTERS", {16: 4, 32: 0})
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


@pytest.mark.parametrize("room", [1, 2, 3])
def test_little_room(room: int, monkeypatch: pytest.MonkeyPatch, launched: list[str]) -> None:
    """Fewer programs fit than there are row blocks and images: what is handed on outlives a launch."""
    monkeypatch.setattr(launch, "_fits", lambda *given: room)
    Problem(LSTM, 1, 2, 40, 3, 16).check(torch.float16)
    assert len(launched) > 2


def test_a_row_block_that_nothing_is_handed_to_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "groups", lambda *given: [launch.LaunchGroup(1, 1, 0, 1)])
    with pytest.raises(emulator.Emulated, match="a program waits for one that has not come"):
        Problem(GRU, 1, 1, 20, 3, 16).found(torch.bfloat16)


@pytest.mark.parametrize(("row", "col"), [(0, 1), (15, 2), (16, 0)])
def test_what_is_not_a_number_stays_in_its_quadrant(row: int, col: int) -> None:
    """Also where it is handed on: its bits are not those of a number that has not come."""
    problem = Problem(GRU, 1, 1, 18, 4, 16)
    with torch.no_grad():
        problem.pre[0, 0, row, col] = torch.nan
    h = problem.found(torch.bfloat16)["h"]
    assert h is not None
    lost = h[0, 0].isnan().all(-1)
    assert lost[row:, col:].all() and lost.sum() == (18 - row) * (4 - col)
    assert h[0, 0].isnan().any(-1).sum() == lost.sum()


def test_where_they_run() -> None:
    """In 16 bits, at sizes whose weights fit, and where a place in an image's gates has 32 bits."""
    image, weights = RowMajorLayout(1, 2, 20, 30), torch.empty(1, 64, 16, dtype=torch.bfloat16)
    assert weights_on_chip.fits(LSTM, image, weights) and weights_on_chip.fits(GRU, image, weights.half())
    assert not weights_on_chip.fits(CellKind("rnn"), image, weights)
    assert not weights_on_chip.fits(LSTM, image, weights.float())
    assert not weights_on_chip.fits(LSTM, image, weights[..., :12])
    assert not weights_on_chip.fits(
        LSTM, RowMajorLayout(1, 1, 1 << 13, 1 << 12), weights
    )  # 2^25 pixels of 80 gates


def test_they_compile_for_hopper_into_code_that_does_not_wait() -> None:
    """Hardly a register is spilled in a step, and products follow each other: ptxas else waits after each."""
    plain = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    tests = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compile_held.py"))],
        env=plain | {"PYTHONPATH": os.pathsep.join([str(tests), *filter(None, [plain.get("PYTHONPATH")])])},
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    found = json.loads(ran.stdout)
    assert len(found) == 16
    for name, code in found.items():
        assert code["products"] >= 32 and code["waits"] <= 5, (name, code)
        assert code["spills"] <= 60 and code["step"] < 1300, (name, code)
        assert code["shared"] <= MOST_SHARED, (name, code)
