"""The error tables of the benchmark; how long anything takes is no test."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest
import torch

FILE = Path(__file__).parents[3] / "benchmarks" / "from_conv.py"


@pytest.fixture(scope="module")
def module() -> Any:
    spec = importlib.util.spec_from_file_location("from_conv_benchmark", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_timed_on_a_gpu(
    module: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every convolution of that table on fewer channels: heads are as near to float64 as conv2d is."""
    small = [(2, c_in // 16, 8, c_out // 16, options) for _, c_in, _, c_out, options in module.ON_GPU]
    monkeypatch.setattr(module, "ON_GPU", small)
    monkeypatch.setattr(module, "on_gpu", lambda work: (work(), 1.0)[1])
    module.times_on_gpu((torch.float32,), "cpu")
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  2,")]
    assert len(lines) == len(small)
    for line in lines:
        assert float(line[-1]) < 1e-6 and float(line[-2]) < 1e-6
        assert line[-3] == "1.00"


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_the_tables_of_errors(module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    random.seed(0)
    torch.manual_seed(0)
    module.differences(2)
    module.soft(1)
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if line.startswith("  float")]
    kinds = [[dtype, mode] for dtype in ("float64", "float32") for mode in ("zeros", "replicate")]
    assert [row[:2] for row in rows] == kinds
    for dtype, _, *errors in rows:
        assert max(map(float, errors)) < (1e-12 if dtype == "float64" else 1e-5)
    assert len([line for line in lines if line.split()[:1] == ["4"]]) == 1  # a row for α = 4
