"""The notebooks of examples/ run from the first cell to the last, and are kept without outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def test_all_six_are_there() -> None:
    wanted = (
        "attention_is_convolution grid_rnn price_your_model sparse_attention_images tour train_with_a_window"
    )
    assert [path.stem for path in NOTEBOOKS] == wanted.split()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_without_outputs(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert not any("from lattend." in cell.source for cell in code)  # public names are enough


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path) -> None:
    notebook = read(path)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources)
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert outputs
    warnings = [output.text for output in outputs if output.get("name") == "stderr"]
    assert warnings == []
    # What a table or a picture shows comes from its own cell: nothing else puts anything on the page
    shown = [output.data.get("text/plain", "") for output in outputs if output.output_type == "display_data"]
    assert all(text.startswith("<Figure") for text in shown)
