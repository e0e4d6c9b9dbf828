"""Deciding that a polynomial vanishes on a region, against looking at its points."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.counts.prove import solved, vanishes
from lattend.rules.language.linear import Linear, Quotient
from lattend.rules.language.parser import parse
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Region, Space, region_of

SPACE = Space(("n", "t"), (), {})
N, T = Polynomial.atom("n"), Polynomial.atom("t")
HALF = Polynomial.atom(Quotient(Linear((("n", 1),)), 2))
FACTORS = [
    N,
    T,
    N - T,
    N - Polynomial.constant(1),
    T - Polynomial.constant(2),
    N - T - Polynomial.constant(1),
    N - HALF.times(2),
    N - HALF.times(2) - Polynomial.constant(1),
]
CONDITIONS = [
    "t == n",
    "0 <= t <= 2",
    "t >= n",
    "n == 0",
    "n <= 3",
    "n % 2 == 0",
    "n - t <= 1",
    "t <= n",
    "t % 2 == 1",
]


def region(conditions: list[str]) -> Region:
    return region_of(parse(" and ".join(["n >= 0", "t >= 0", *conditions])), SPACE)


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(CONDITIONS), max_size=3),
    st.lists(st.sampled_from(FACTORS), min_size=1, max_size=4),
)
def test_it_vanishes_exactly_when_it_is_zero_at_every_point(
    conditions: list[str], factors: list[Polynomial]
) -> None:
    where, polynomial = region(conditions), Polynomial.constant(1)
    for factor in factors:
        polynomial = polynomial * factor
    # Degree at most 4 and conditions with constants up to 3: 30 values each way decide it
    values = [{"n": n, "t": t} for n, t in product(range(30), repeat=2)]
    zero_everywhere = all(polynomial.value(v) == 0 for v in values if where.holds(v))
    assert vanishes(polynomial, where) == zero_everywhere


def test_equalities_are_solved_together() -> None:
    t_is_n = Linear.of([("t", 1), ("n", -1)])
    u_is_2t = Linear.of([("u", 1), ("t", -2)], -3)
    solution = solved([t_is_n, u_is_2t])
    assert solution["t"] == N
    assert solution["u"] == N.times(2) + Polynomial.constant(3)


@given(
    st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 3), st.integers(0, 3)), max_size=5),
    st.integers(-9, 9),
)
def test_polynomial_arithmetic_is_that_of_numbers(terms: list[tuple[int, int, int]], at: int) -> None:
    a = Polynomial.of((Fraction(c, 2), tuple(x for x in (("n", i), ("t", j)) if x[1])) for c, i, j in terms)
    b = (a + N) * (a - T) ** 2
    values = {"n": at, "t": 3}
    plain = sum((Fraction(c, 2) * at**i * 3**j for c, i, j in terms), Fraction(0))
    assert a.value(values) == plain
    assert b.value(values) == (plain + at) * (plain - 3) ** 2
    assert a.substituted({"n": T}).value({"t": 3}) == a.value({"n": 3, "t": 3})
