"""Chains: the steps, proved by a schedule and a chain, are those of a run with any number of workers."""

from __future__ import annotations

from hypothesis import assume, given, reject
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import NoClosedForm
from lattend.rules.language.parser import parse
from lattend.sets.chains import Schedule, levels, schedule

GRID = parse("row < rows and col < cols")
TRIANGLE = parse("row < n and col <= row")


def steps_at(found: Schedule, values: dict[str, int]) -> int:
    (piece,) = [piece for piece in found.steps if piece.region.holds(values)]
    return int(piece.formula.value(values))


def run(
    condition: object, indices: tuple[str, ...], sizes: dict[str, int], waits: tuple[tuple[int, ...], ...]
) -> int:
    """A run with as many workers as it likes: in every round all cells go whose others have gone."""
    waiting = set(levels(condition, indices, sizes, waits))  # pyright: ignore[reportArgumentType]
    cells, rounds = frozenset(waiting), 0
    while waiting:
        ready = {
            cell
            for cell in waiting
            if all(
                tuple(a + b for a, b in zip(cell, wait, strict=True)) not in waiting
                for wait in waits
                if tuple(a + b for a, b in zip(cell, wait, strict=True)) in cells
            )
        }
        waiting -= ready
        rounds += 1
    return rounds


@given(st.integers(1, 9), st.integers(1, 9))
def test_a_grid_takes_as_many_rounds_as_the_formula_says(rows: int, cols: int) -> None:
    waits = ((0, -1), (-1, 0))
    found = schedule(GRID, ("row", "col"), ("rows", "cols"), waits)
    sizes = {"rows": rows, "cols": cols}
    assert steps_at(found, sizes) == rows + cols - 1 == run(GRID, ("row", "col"), sizes, waits)


@given(
    st.lists(
        st.tuples(st.integers(-1, 0), st.integers(-1, 1)).filter(any), min_size=1, max_size=3, unique=True
    ),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_random_arrows(waits: list[tuple[int, int]], rows: int, cols: int) -> None:
    """Where a formula is given it is right; where the steps are not linear, that is said."""
    assume(not {(0, 1), (0, -1)} <= set(waits))  # two cells that wait for each other never run
    try:
        found = schedule(GRID, ("row", "col"), ("rows", "cols"), tuple(waits))
    except NoClosedForm:
        reject()  # hypothesis complains where that is most of them
    sizes = {"rows": rows, "cols": cols}
    assert steps_at(found, sizes) == run(GRID, ("row", "col"), sizes, tuple(waits))


@given(st.integers(1, 7))
def test_a_triangle(n: int) -> None:
    found = schedule(TRIANGLE, ("row", "col"), ("n",), ((-1, 0), (0, -1)))
    assert (
        steps_at(found, {"n": n}) == 2 * n - 1 == run(TRIANGLE, ("row", "col"), {"n": n}, ((-1, 0), (0, -1)))
    )


def test_backwards_in_time() -> None:
    found = schedule(parse("step < t"), ("step",), ("t",), ((1,),))
    assert str(found.step) == "t - step - 1"
    assert str(lt.cost.rnn(layers="l").depth) == "l + t - 1"
