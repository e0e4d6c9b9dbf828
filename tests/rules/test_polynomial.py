"""Values of polynomials at arrays: exact, also where terms pass 64 bits and the values do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lattend.rules.language.linear import Linear, Quotient
from lattend.rules.language.polynomial import Polynomial

N = Polynomial.atom("n")
HALVES = Polynomial.atom(Quotient(Linear.of([("n", 1)]), 2))


@pytest.mark.parametrize(
    "polynomial",
    [
        (N * N + N).times(Fraction(1, 2)),  # n(n + 1)/2
        (N * (N + Polynomial.constant(1)) * (N + Polynomial.constant(2))).times(Fraction(1, 6)) - N * N * N,
        (N - HALVES.times(2)).times(2**70) + N,  # even n alone
        Polynomial.constant(-3),
    ],
)
def test_values_that_fit_are_found_modulo_two_to_the_64(polynomial: Polynomial) -> None:
    n = np.array([0, 2, 4, 10**5, 10**6])
    wanted = [polynomial.value({"n": int(x)}) for x in n]
    found = polynomial.values({"n": n}, most=max(map(abs, wanted)))
    assert found.dtype == np.int64
    assert np.broadcast_to(found, n.shape).tolist() == wanted
    assert np.broadcast_to(polynomial.values({"n": n}), n.shape).tolist() == wanted


def test_values_that_do_not_fit_are_python_integers() -> None:
    n = np.array([10**12])
    assert (N * N).values({"n": n}, most=10**24).tolist() == [10**24]
