"""Contours against functions whose lines are known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.draw.charts.contours import contours

AXIS = np.linspace(-2, 2, 81)
X, Y = np.meshgrid(AXIS, AXIS)


def test_a_circle_is_one_closed_line():
    (line,) = contours(AXIS, AXIS, X**2 + Y**2, 1.02)  # 1 itself passes through corners
    assert line[0] == line[-1]
    assert len(set(line)) == len(line) - 1
    assert max(abs(math.hypot(x, y) - math.sqrt(1.02)) for x, y in line) < 1e-3
    corners = np.array(line)
    area = abs(np.sum(corners[:-1, 0] * corners[1:, 1] - corners[1:, 0] * corners[:-1, 1])) / 2
    assert area == pytest.approx(1.02 * math.pi, rel=2e-3)


def test_a_hyperbola_is_two_open_lines():
    lines = contours(AXIS, AXIS, X * Y, 0.5)
    assert len(lines) == 2
    for line in lines:
        assert line[0] != line[-1]
        assert all(x * y == pytest.approx(0.5, abs=2e-3) for x, y in line)
        assert {round(max(map(abs, line[end])), 9) for end in (0, -1)} == {2.0}
    assert {line[0][0] > 0 for line in lines} == {True, False}


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-2, 2))
def test_a_plane_has_straight_lines(a, b, level):
    for line in contours(AXIS, AXIS, a * X + b * Y, level):
        assert all(a * x + b * y == pytest.approx(level, abs=1e-9) for x, y in line)


def test_a_saddle_follows_its_middle():
    high = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert sorted(map(sorted, contours([0, 1], [0, 1], high, 0.4))) == [
        [(0.0, 0.6), (0.4, 1.0)],
        [(0.6, 0.0), (1.0, 0.4)],
    ]
    assert sorted(map(sorted, contours([0, 1], [0, 1], high, 0.6))) == [
        [(0.0, 0.4), (0.4, 0.0)],
        [(0.6, 1.0), (1.0, 0.6)],
    ]


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_lines_part_what_is_above_from_what_is_below(seed, level):
    values = np.random.default_rng(seed).random((6, 7))
    lines = contours(range(7), range(6), values, level)
    crossed = sum((values[:, 1:] > level).ravel() != (values[:, :-1] > level).ravel())
    crossed += sum((values[1:] > level).ravel() != (values[:-1] > level).ravel())
    places = sum(len(line) - (line[0] == line[-1]) for line in lines)
    assert places == crossed  # each edge between the two is crossed once
    for line in lines:
        if line[0] != line[-1]:
            assert all(x in (0, 6) or y in (0, 5) for x, y in (line[0], line[-1]))


def test_what_is_not_finite_has_no_line():
    values = np.where(X > 0, np.nan, X**2 + Y**2)
    lines = contours(AXIS, AXIS, values, 1.0)
    assert lines
    assert all(x <= 0 for line in lines for x, _ in line)
    assert contours(AXIS, AXIS, np.full_like(X, np.nan), 1.0) == []
