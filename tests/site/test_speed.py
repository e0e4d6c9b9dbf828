"""The tables and charts of docs/speed.md are those of the rows that were measured."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def speed() -> Any:
    spec = importlib.util.spec_from_file_location("speed", ROOT / "docs" / "site" / "speed.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_those_of_the_rows(speed: Any) -> None:
    text = speed.PAGE.read_text()
    assert speed.page() == text, "docs/speed.md is old: make pictures"
    assert len(speed.TABLE.findall(text)) == 3


def test_a_wrong_number_is_seen(speed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = speed.PAGE.read_text()
    copy = tmp_path / "speed.md"
    copy.write_text(text.replace("| 1.38 | 1.75 |", "| 1.38 | 1.57 |"))
    monkeypatch.setattr(speed, "PAGE", copy)
    assert copy.read_text() != text and speed.page() == text


def test_charts_are_those_of_the_rows(speed: Any, tmp_path: Path) -> None:
    drawn = speed.charts(tmp_path)
    assert len(drawn) == 6
    for chart in drawn:
        assert chart.read_text() == (speed.RESULTS / chart.name).read_text(), (
            f"{chart.name} is old: make pictures"
        )
