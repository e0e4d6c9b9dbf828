"""Linear algebra on rows, exact and in floats, and the best fit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import steering_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lattend.study.steering.linear import (
    best_fit,
    entropy,
    off,
    rank,
    relations,
    shortest,
    softmax,
    solve,
    with_ones,
)

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


@pytest.mark.parametrize("seed", range(8))
def test_the_least_divergence(seed: int) -> None:
    source = np.random.default_rng(seed)
    keys, wanted = source.normal(size=(9, 3)), source.dirichlet(np.full(9, 0.5))
    result = softmax(keys @ best_fit(keys, wanted, 3))
    np.testing.assert_allclose(result @ keys, wanted @ keys, atol=1e-12)
    nats = float((wanted * np.log(wanted / result)).sum())
    assert nats == pytest.approx(oracle.least_nats(keys, wanted), abs=1e-8)
    assert nats == pytest.approx(entropy(result) - entropy(wanted), abs=1e-10)


def test_keys_on_a_line_in_space_get_the_shortest_query() -> None:
    keys = np.array([[along, 2 * along, 2 * along] for along in (0.0, 1.0, 2.0, 4.0)]) + 5
    result = best_fit(keys, np.array([0.4, 0.1, 0.1, 0.4]), 1)
    np.testing.assert_allclose(result, result @ [1, 2, 2] / 9 * np.array([1, 2, 2]), atol=1e-12)


def test_a_mean_close_to_a_corner() -> None:
    keys = np.array([[-1.0], [0.0], [1.0]])
    result = softmax(keys[:, 0] * best_fit(keys, np.array([0.0, 1e-12, 1 - 1e-12]), 1)[0])
    assert result @ keys[:, 0] == pytest.approx(1 - 1e-12, abs=1e-15)


def test_shortest() -> None:
    np.testing.assert_allclose(shortest(np.eye(2), np.array([3.0, 1.0]), 1), [1, -1])
