"""Linear algebra on Fractions against its definition, and on floats against the same Fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lattend.study.steering.linear import off, rank, relations, solve, with_ones

SMALL_ROWS = arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.integers(-3, 3))


def exactly(rows: Any) -> Any:
    return np.array([[Fraction(int(x)) for x in row] for row in rows], dtype=object)


@given(SMALL_ROWS)
def test_rank(rows: Any) -> None:
    assert rank(exactly(rows)) == rank(rows.astype(float)) == np.linalg.matrix_rank(rows.astype(float))


@given(SMALL_ROWS)
def test_relations_are_as_many_as_rows_are_dependent(rows: Any) -> None:
    result = relations(exactly(rows))
    assert len(result) == len(rows) - np.linalg.matrix_rank(rows.astype(float))
    for y in result:
        assert not (y @ exactly(rows)).any() and y.any()
        assert all(number.denominator == 1 for number in y)


@given(SMALL_ROWS, st.data())
def test_solve(rows: Any, data: st.DataObject) -> None:
    wanted = exactly([data.draw(arrays(np.int64, rows.shape[1], elements=st.integers(-3, 3)))])[0]
    right = exactly(rows) @ wanted
    assert (exactly(rows) @ solve(exactly(rows), right) == right).all()
    floats = rows.astype(float)
    np.testing.assert_allclose(floats @ solve(floats, right.astype(float)), right.astype(float), atol=1e-9)


@given(SMALL_ROWS, st.data())
def test_off_is_at_right_angles(rows: Any, data: st.DataObject) -> None:
    points = data.draw(arrays(np.int64, (2, rows.shape[1]), elements=st.integers(-3, 3)))
    result = off(exactly(points), exactly(rows))
    assert not (result @ exactly(rows).T).any()
    assert rank(np.vstack((exactly(rows), exactly(points) - result))) == rank(exactly(rows))
    np.testing.assert_allclose(off(points.astype(float), rows.astype(float)), result.astype(float), atol=1e-9)


def test_with_ones() -> None:
    assert with_ones(exactly([[2], [3]])).tolist() == [[2, 1], [3, 1]]
    assert with_ones(np.zeros((1, 2))).tolist() == [[0.0, 0.0, 1.0]]
