"""The error tables of the benchmark; how long anything takes is no test."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).parents[3] / "benchmarks" / "from_conv.py"


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_the_tables_of_errors(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("from_conv_benchmark", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
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
