"""Faces against scipy's linear programs, and nearest points against all subsets of the points."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import steering_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lattend.study.steering.ray import nearest, smallest_face

KEYS = arrays(np.int64, st.tuples(st.integers(2, 8), st.integers(1, 3)), elements=st.integers(-2, 2))


def exactly(rows: Any) -> Any:
    return np.array([[Fraction(int(x)) for x in row] for row in rows], dtype=object)


@settings(max_examples=40, deadline=None)
@given(KEYS, st.data())
def test_the_smallest_face(keys: Any, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.integers(0, len(keys) - 1), min_size=1, max_size=3))
    support = np.isin(np.arange(len(keys)), list(chosen))
    wanted = oracle.smallest_face(keys, support)
    for given_keys in (keys.astype(float), exactly(keys)):
        result = smallest_face(given_keys, support)
        assert result.keys.tolist() == wanted
        heights = keys @ result.direction
        if not result.keys.all():
            top = heights[result.keys].max()
            np.testing.assert_allclose(heights[result.keys], top, atol=1e-9)
            np.testing.assert_allclose(heights[result.touching], top - 1, atol=1e-9)
            assert (heights[~result.keys] <= top - 1 + 1e-9).all() and result.touching.any()
        if result.relation is None:
            assert result.keys.tolist() == support.tolist()
        else:
            y = result.relation.astype(float)
            np.testing.assert_allclose([*(y @ keys), y.sum()], 0, atol=1e-9)
            assert (y[~support] >= 0).all() and y[~support].max() > 1e-9


def nearest_of_subsets(points: Any) -> float:
    """The least length of a mixture, over all sets of points that could carry it."""
    best = np.inf
    for size in range(1, points.shape[1] + 2):
        for chosen in itertools.combinations(range(len(points)), min(size, len(points))):
            held = points[list(chosen)]
            apart = held[1:] - held[0]
            rest = np.linalg.lstsq(apart.T, -held[0], rcond=None)[0]
            if (rest >= -1e-12).all() and rest.sum() <= 1 + 1e-12:
                best = min(best, float(np.linalg.norm(held[0] + rest @ apart)))
    return best


@settings(max_examples=40, deadline=None)
@given(arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.integers(-3, 4)))
def test_the_nearest_point(points: Any) -> None:
    wanted = nearest_of_subsets(points.astype(float))
    exact, floats = nearest(exactly(points)), nearest(points.astype(float))
    assert sum(exact) == 1 and min(exact) >= 0
    assert float(np.linalg.norm((exact @ exactly(points)).astype(float))) == pytest.approx(wanted, abs=1e-9)
    assert floats.sum() == pytest.approx(1) and floats.min() >= 0
    assert np.linalg.norm(floats @ points) == pytest.approx(wanted, abs=1e-9)
    assert (exact > 0).sum() <= points.shape[1] + 1


def test_a_point_on_an_edge_is_told_from_one_just_outside() -> None:
    corners = [[Fraction(0), Fraction(0)], [Fraction(2), Fraction(0)]]
    for height, face in ((Fraction(0), True), (Fraction(-1, 10**30), False)):
        keys = np.array([*corners, [Fraction(1), height], [Fraction(1), Fraction(3)]], dtype=object)
        result = smallest_face(keys, np.array([True, True, False, False]))
        assert result.keys.tolist() == [True, True, True, not face]


def test_many_keys() -> None:
    keys = np.random.default_rng(0).normal(size=(2000, 64))
    support = np.arange(2000) < 3
    result = smallest_face(keys, support)
    assert result.keys.tolist() == support.tolist()
    heights = keys @ result.direction
    assert heights[:3].min() - heights[3:].max() == pytest.approx(1, abs=1e-8)
