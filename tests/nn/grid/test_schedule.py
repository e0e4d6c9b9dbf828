"""The order of execution: proved steps, packed so that a step and its neighbours are contiguous."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lattend.nn.grid.packed import packing
from lattend.nn.grid.schedule import WAITS, diagonals, steps, wavefront_order
from lattend.rules.language.parser import parse
from lattend.sets.chains import schedule

SIZES = st.integers(1, 6)


def test_the_steps_are_proved_for_all_sizes() -> None:
    """Valid, and no schedule is shorter: the longest chain of cells has rows + cols - 1 of them."""
    found = schedule(parse("row < rows and col < cols"), ("row", "col"), ("rows", "cols"), WAITS)
    assert str(found.step) == "col + row"


def test_a_first_call_proves_nothing() -> None:
    code = (
        "import sys, torch, lattend as lt; lt.nn.GridRNN(2, 3)(torch.zeros(1, 4, 5, 2)); "
        "print([name for name in ('islpy', 'sympy', 'lattend.sets.chains') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@given(rows=SIZES, cols=SIZES)
def test_steps(rows: int, cols: int) -> None:
    """Each cell comes right after its later neighbour; there are rows + cols - 1 steps."""
    step = steps(rows, cols)
    assert step.max() + 1 == rows + cols - 1
    for row in range(rows):
        for col in range(cols):
            waits = [step[row - 1, col]] * (row > 0) + [step[row, col - 1]] * (col > 0)
            assert step[row, col] == max(waits, default=-1) + 1


@given(rows=SIZES, cols=SIZES)
def test_neighbours_stand_side_by_side(rows: int, cols: int) -> None:
    framed = wavefront_order(rows + 1, cols + 1)
    met = 0
    for diagonal in diagonals(rows, cols):
        for i in range(diagonal.cells):
            row, col = divmod(int(framed.cells[diagonal.here + i]), cols + 1)
            assert row > 0 and col > 0
            assert framed.cells[diagonal.left + i] == row * (cols + 1) + col - 1
            assert framed.cells[diagonal.top + i] == (row - 1) * (cols + 1) + col
            assert diagonal.before <= min(diagonal.left, diagonal.top)
        met += diagonal.cells
    assert met == rows * cols


@given(rows=SIZES, cols=SIZES, batch=st.integers(1, 3))
def test_packing_there_and_back(rows: int, cols: int, batch: int) -> None:
    p = packing(rows, cols, batch)
    pixels = torch.arange(batch * rows * cols)
    assert torch.equal(pixels[p.pixels][p.rows], pixels)
    framed = torch.arange(batch * (rows + 1) * (cols + 1)).view(batch, rows + 1, cols + 1)
    packed = p.framed_rows.argsort()  # the framed pixel of each framed row
    assert torch.equal(packed.sort().values, framed.flatten())
    inner = framed[:, 1:, 1:].flatten()
    assert torch.equal(inner[p.pixels], p.inner_pixels.long())
    assert torch.equal(packed[p.left_edge], framed[:, 1:, 0].flatten())
    assert torch.equal(packed[p.top_edge], framed[:, 0, 1:].flatten())
    left, top = framed[:, 1:, :-1].flatten(), framed[:, :-1, 1:].flatten()
    assert torch.equal(p.near_pixels, torch.stack((left, top), 1)[p.pixels])
    image = pixels.view(batch, rows, cols)
    assert torch.equal(p.pixels[p.first_col], image[:, :, 0].flatten())
    assert torch.equal(p.pixels[p.first_row], image[:, 0].flatten())
    here = torch.cat(p.here.of(packed))
    assert torch.equal(here, inner[p.pixels])
    assert torch.equal(p.framing[torch.cat(p.here.of(torch.arange(framed.numel())))], p.pixels)
    assert torch.equal(torch.cat(p.left.of(packed)), left[p.pixels])
    assert torch.equal(torch.cat(p.top.of(packed)), top[p.pixels])
    assert torch.equal(torch.cat(p.inner.of(p.pixels)), p.pixels)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_runs_side_by_side(batch: int) -> None:
    """Every step is one slab for all images: 2 x 2 pixels have steps of 1, 2 and 1."""
    assert [s.stop - s.start for s in packing(2, 2, batch).inner.ranges] == [batch, 2 * batch, batch]
