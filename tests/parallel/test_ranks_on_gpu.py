"""The script for a GPU, tried on the CPU: a few of its cases on two ranks, and what it says of a failure."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from contextlib import nullcontext
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch
from gloo_ranks import Failed
from parallel_cases import Case, alone
from parallel_devices import Found, hold

SCRIPT = Path(__file__).parent / "ranks_on_gpu.py"


def test_a_few_cases_pass() -> None:
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--ranks", "2", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *lines, last = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert last == f"{len(lines)} passed, 0 failed"
    for words in ("causal, ring", "neighbourhood", "KV cache", "grid", "side stream", "late messages"):
        assert any(words in line and "largest error" in line for line in lines), words


def test_a_case_by_the_kernels_of_a_gpu() -> None:
    """Under Triton's interpreter: a part of a rank's queries meets keys of another rank."""
    only = ["late messages", "halo", "float32"]
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--ranks", "2", "--kernel", "triton"]
    interpreted = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [*command, "--only", *only], env=interpreted, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "1 passed, 0 failed"


def test_what_is_off_is_noted() -> None:
    case = Case("strided(3)", 1, dtype=torch.float32, sinks=torch.zeros(4))
    results = alone(case, torch.float32)
    right, wrong = Found(), Found()
    hold(right, case, 0, results)
    for at in (0, 1, 3, 5):  # the output, the log-sum-exp, dk, sinks
        results[at] = results[at] * 1.01
    hold(wrong, case, 0, results)
    assert not right.wrong and right.worst < 3e-6
    assert [said.split(" ")[0] for said in wrong.wrong] == ["out", "lse", "dk", "sinks"]
    assert wrong.wrong[0] == "out is off by 1.0e-02, allowed 3.0e-06"


def test_failures_are_said_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("ranks_on_gpu", SCRIPT)
    assert spec is not None and spec.loader is not None
    monkeypatch.setattr(sys, "path", [*sys.path])
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "Crew", lambda *_, **__: nullcontext())

    def dies(crew: object) -> Any:
        raise Failed({1: ("RankError", "no answer of rank 0")}, "")

    found = {"first": lambda crew: ([], 1e-7), "second": lambda crew: (["rank 0: bits"], 1.0), "third": dies}
    chosen = [script.Check(name, 2, run) for name, run in found.items()]
    assert script.failures(chosen, inf) == 2
    lines = [line.split(" (")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "first: largest error 1.0e-07",
        "second: FAILED: rank 0: bits",
        "third: FAILED: rank 1: RankError: no answer of rank 0",
        "1 passed, 2 failed",
    ]
    assert script.failures(chosen, -inf) == 0
    assert capsys.readouterr().out == "0 passed, 0 failed, 3 not run\n"
