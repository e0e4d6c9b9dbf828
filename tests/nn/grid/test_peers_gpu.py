"""The peers of benchmarks/grid_gpu.py are what they say; how long anything takes is no test."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))  # scripts, not a package
grid_gpu: Any = importlib.import_module("grid_gpu")


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (3, 5), (5, 3)])
def test_peers_give_what_grid_rnn_gives(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    net = grid_gpu.GridRNN(3, 4, dtype=torch.float64)
    x = torch.randn(2, *shape, 3, dtype=torch.float64)
    weights = [net.W_in[0], net.W_left[0], net.W_top[0]]
    wanted = net(x)
    for peer in (grid_gpu.naive, grid_gpu.diagonals):
        torch.testing.assert_close(peer(x, *weights), wanted)


def test_floors_by_hand() -> None:
    """16 images of 128 x 128 pixels, h = 128: 16*16384*(2*128*128 + 3*128) products, two operations each."""
    assert grid_gpu.floor(128, 128, "forward") == pytest.approx(16 * 16384 * 33152 * 2 / 798e12 * 1e3)
    # With little arithmetic the bytes decide: 16*1024 pixels of 16 + 3 numbers, 2 bytes each
    assert grid_gpu.floor(32, 16, "forward") == pytest.approx(16 * 1024 * 19 * 2 / 4.3e12 * 1e3)
