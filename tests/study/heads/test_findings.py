"""Heads beside the grid of a convolution."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.errors import DomainError, TensorError
from lattend.nn.attention.gaussian_heads import kernel_heads
from lattend.study.heads.findings import assign, fit_grid, grid_distance

places = st.tuples(st.floats(-6, 6), st.floats(-6, 6))


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.integers(0, 4), min_size=n * n, max_size=n * n)))
def test_the_assignment_is_the_best_of_all_permutations(numbers: list[int]) -> None:
    n = math.isqrt(len(numbers))
    costs = np.array(numbers, dtype=float).reshape(n, n)
    result = assign(costs)
    assert sorted(result.tolist()) == list(range(n))
    least = min(sum(costs[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(n)))
    assert costs[np.arange(n), result].sum() == least


@pytest.mark.parametrize("n", [9, 16, 25])
def test_the_assignment_costs_what_another_solver_finds(n: int) -> None:
    from scipy.optimize import linear_sum_assignment

    random = np.random.default_rng(n)
    for _ in range(20):
        costs = random.normal(size=(n, n))
        rows, columns = linear_sum_assignment(costs)
        assert costs[np.arange(n), assign(costs)].sum() == pytest.approx(
            costs[rows, columns].sum(), abs=1e-12
        )


@given(st.lists(places, min_size=4, max_size=4), st.integers(1, 3))
def test_the_distance_is_the_least_over_all_orders(centres: list[tuple[float, float]], dilation: int) -> None:
    taps = [head.centre for head in kernel_heads(2, dilation)]
    sums = [
        sum((y - v) ** 2 + (x - u) ** 2 for (y, x), (v, u) in zip(centres, order, strict=True))
        for order in itertools.permutations(taps)
    ]
    assert grid_distance(centres, dilation) == pytest.approx(math.sqrt(min(sums) / 4), abs=1e-9)


@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
def test_a_kernels_own_heads_are_on_the_grid(kernel: int) -> None:
    centres = np.array([head.centre for head in kernel_heads(kernel)])
    order = np.random.default_rng(0).permutation(len(centres))
    fit = fit_grid(centres[order])
    assert fit.distance == 0 == grid_distance(centres)
    assert fit.taps == tuple(map(tuple, centres[order].tolist()))


def test_chance_is_of_heads_as_far_away() -> None:
    """A head at the query stays there in every direction, and its tap is the query: chance is 0 too."""
    assert fit_grid([(0.0, 0.0)]) == fit_grid([(-0.0, 0.0)])
    assert (fit_grid([(0.0, 0.0)]).chance, fit_grid([(0.0, 0.0)]).nearer) == (0, 1)
    one = fit_grid([(3.0, 4.0)])  # the one tap is the query, 5 away whatever the direction
    assert one.distance == 5 and one.chance == pytest.approx(5)


def test_a_grid_is_nearer_than_chance_and_a_bundle_is_not() -> None:
    grid = fit_grid([(head.centre[0] + 0.05, head.centre[1]) for head in kernel_heads(3)])
    bundle = fit_grid([(1.0 + at / 100, 1.0) for at in range(9)])
    assert grid.nearer < 0.01 and grid.distance < 0.1 and grid.chance > 0.3
    assert bundle.nearer > 0.9 and bundle.chance < bundle.distance


def test_what_is_no_square_of_heads_is_refused() -> None:
    with pytest.raises(DomainError, match="a K × K grid has K² heads, as 4 or 9, not 5"):
        grid_distance([(0, 0)] * 5)
    with pytest.raises(TensorError, match=r"centres are \[heads, 2\], got \[4, 3\]"):
        grid_distance(np.zeros((4, 3)))
    with pytest.raises(DomainError, match="centres must be finite"):
        fit_grid([(math.nan, 0)])
