"""The tables and charts of docs/speed.md are those of the rows that were measured."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lattend.attend.kernels.tolerance import TOLERANCE

ROOT = Path(__file__).parents[2]


def loaded(path: str) -> Any:
    """The module in this file, under a name that no other has."""
    spec = importlib.util.spec_from_file_location(f"loaded_{Path(path).stem}", ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def speed() -> Any:
    return loaded("docs/site/speed.py")


def test_tables_are_those_of_the_rows(speed: Any) -> None:
    text = speed.PAGE.read_text()
    assert speed.page() == text, "docs/speed.md is old: make pictures"
    assert len(speed.TABLE.findall(text)) == 9
    assert len(speed.PLANS.findall(text)) == 1


def test_plans_are_as_large_as_the_page_says(speed: Any) -> None:
    """What does not depend on the machine is counted again."""
    plans = loaded("benchmarks/plans.py")
    saved = json.loads(plans.SAVED.read_text())
    assert [row["rule"] for row in saved["rows"]] == list(plans.RULES)
    for row in saved["rows"]:
        found, size = plans.planned(plans.RULES[row["rule"]], 2 ** plans.POWERS[-1])
        assert (len(found.parts), size) == (row["parts"], row["bytes"]), "plans.py --save, then make pictures"
    assert f"takes\n{saved['flex_milliseconds'] / 1000:.1f} s at n = 2¹⁴" in speed.PAGE.read_text()


def test_errors_on_the_page_are_within_the_limits(speed: Any) -> None:
    """The table of "How exact" against tolerance.py, to which the kernels are held."""
    text = speed.PAGE.read_text().partition("## How exact")[2].partition("\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line
    ]
    found = [
        (row[0], kind, float(cell), TOLERANCE[getattr(torch, kind)])
        for row in rows
        for kind, cell in zip(head[1:], row[1:], strict=True)
        if cell
    ]
    assert len(found) == 9
    assert all(error < limit for _, _, error, limit in found), found


def test_a_wrong_number_is_seen(speed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = speed.PAGE.read_text()
    copy = tmp_path / "speed.md"
    copy.write_text(re.sub(r"(\| causal \| 16,384 \| 1.38 \|) [0-9.]+ \|", r"\1 9.99 |", text, count=1))
    monkeypatch.setattr(speed, "PAGE", copy)
    assert copy.read_text() != text and speed.page() == text


def test_rows_of_several_dtypes_and_head_dimensions_are_told_apart(
    speed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "RESULTS", tmp_path)
    assert speed.table("h200_float32", "forward") == ""  # not measured
    times = {"lattend": 2.0, "SDPA, memory-efficient": 6.0, "FlexAttention": 3.0}
    rows = [
        speed.Row("causal", "causal", 4096, 16, D, "forward", 1, 1.0, times=times, dtype=dtype)
        for dtype, D in (("float32", 64), ("TF32", 128))
    ]
    speed.report.save(tmp_path / "h200_float32.json", {}, rows)
    head, _, exact, rounded = speed.table("h200_float32", "forward").splitlines()
    assert head == (
        "| rule | n | D | products | floor | Lattend | from the floor | "
        "SDPA, memory-efficient | FlexAttention |"
    )
    assert exact == "| causal | 4,096 | 64 | float32 | 1.00 | 2.00 | 2.00× | 6.00 (3.00×) | 3.00 (1.50×) |"
    assert rounded == exact.replace("64 | float32", "128 | TF32")
    assert len(speed.charts(tmp_path)) == 1


def test_charts_are_those_of_the_rows(speed: Any, tmp_path: Path) -> None:
    drawn = speed.charts(tmp_path)
    assert len(drawn) == 2 * sum((speed.RESULTS / f"{file}.json").exists() for file in speed.CHARTS)
    for chart in drawn:
        assert chart.read_text() == (speed.RESULTS / chart.name).read_text(), (
            f"{chart.name} is old: make pictures"
        )
