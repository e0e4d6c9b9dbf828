"""The peers of the benchmark do what we do, so that their times can be compared."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from nn.grid.grids import NAMES, compiled
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
grid_cpu: Any = importlib.import_module("grid_cpu")
grid_host: Any = importlib.import_module("grid_host")


@pytest.mark.parametrize("cell", NAMES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_peers_agree(cell: str, n: int) -> None:
    x, grad = torch.randn(2, n, n, grid_cpu.C), torch.randn(2, n, n, 3)
    given = grid_cpu.contenders(cell, n, 3, 2)
    assert set(given) == {
        grid_cpu.OURS,
        grid_cpu.DIAGONALS,
        grid_cpu.SKEWED,
        grid_cpu.REFERENCE,
        grid_cpu.LINE,
    }
    run, own = given.pop(grid_cpu.OURS)
    wanted = [run(x), *torch.autograd.grad(run(x), own, grad)]
    line, _ = given.pop(grid_cpu.LINE)
    assert line(x).shape == (2, n, n, 3)
    for peer, parameters in given.values():
        found = [peer(x), *torch.autograd.grad(peer(x), parameters, grad, allow_unused=True)]
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(torch.zeros_like(b) if a is None else a, b, atol=1e-5, rtol=1e-4)


def test_the_floor_multiplies_as_often() -> None:
    """(c + 2h) gates*h a pixel: the products of every cell, with those of the zero states at the edges."""
    n, h, batch = 4, 3, 2
    with FlopCounterMode(display=False) as counter:
        grid_cpu.products("lstm", n, h, batch, False)()
    assert counter.get_total_flops() == 2 * batch * n * n * (grid_cpu.C + 2 * h) * 5 * h


def test_rows_are_shown() -> None:
    rows = grid_cpu.measure("rnn", 2, 2, 1, 0.01)
    assert [row["work"] for row in rows] == ["forward", "training step"]
    assert "rnn  n=2   h=2    batch=1   forward" in grid_cpu.show(rows[0])


@compiled
def test_host_times_and_profiles(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours and torch's cell, each with its three works; a profile finds the code of forward and backward."""
    monkeypatch.setattr(grid_host, "CALLS", 2)
    monkeypatch.setattr(grid_host, "WARM", 1)
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(1)
    for cell in NAMES:
        ours, line = grid_host.contenders(cell, "cpu", torch.float32)
        ours.module.kernel = "native"  # pyright: ignore
        assert ours.output().flatten(1, 2).shape == line.output().shape
        assert [row[0] for row in grid_host.measure(ours)] == [row[0] for row in grid_host.measure(line)]
        grid_host.profiled(ours)
    said = capsys.readouterr().out
    assert "native.py" in said
    assert grid_host.scan._Scan.backward.__name__ == "backward"
