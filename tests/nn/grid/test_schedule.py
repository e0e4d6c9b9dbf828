"""The order of execution: proved steps, and places in which a step and its neighbours stand side by side."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

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
