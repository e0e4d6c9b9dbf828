"""Solving random differences: whatever is said is right at random numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.cost.amount import Amount
from lattend.cost.comparison.crossing_points import CrossingPoint, format_polynomial, format_sum, surds
from lattend.cost.comparison.crossover import crossover
from lattend.cost.comparison.solve import SignSample, by_power
from lattend.cost.sizes import read_size
from lattend.rules.language.polynomial import Polynomial

POWERS = st.fixed_dictionaries({"x": st.integers(0, 2), "n": st.integers(0, 2), "b": st.integers(0, 1)})
TERM = st.tuples(st.sampled_from([1, 2, 3, 5, -1, -2]), POWERS)
NUMBER = st.sampled_from([1, 2, 3, 4, 5, 7, 9, 13, 50, 1000])


def polynomial(terms) -> Polynomial:
    return Polynomial.of(
        (Fraction(c), tuple(sorted((n, e) for n, e in powers.items() if e))) for c, powers in terms
    )


@given(
    st.lists(TERM, min_size=1, max_size=3),
    st.lists(TERM, min_size=1, max_size=3),
    st.lists(st.fixed_dictionaries({"n": NUMBER, "b": NUMBER}), min_size=4, max_size=4),
)
@settings(max_examples=25)
def test_what_is_said_holds(first, second, points):
    one, other = polynomial(first), polynomial(second)
    result = crossover(("A", "B"), (Amount.of(one), Amount.of(other)), "x")
    if result.difference is None:
        return
    numbers = list(range(1, 200))
    for values in points:
        rest = (one - other).at(values)
        signs = [(v > 0) - (v < 0) for v in (rest.value({"x": x}) for x in numbers)]
        sample = SignSample(values, numbers, signs)
        known = {name: values[name] for name in result.difference.names}
        said = [case for case in result.cases if case.when.holds(known)]
        right = [case for case in said if case.holds(sample)]
        assert right, (str(result), values)
        assert right == said or any(case.signs == (0,) for case in right), (str(result), values)


def test_of_degree_three_it_is_left_open():
    result = crossover(
        ("A", "B"), (Amount.of(read_size("a", "x^3 + n")), Amount.of(read_size("b", "n*x"))), "x"
    )
    assert result.method == "open"
    assert "degree 3 in x" in str(result)


def test_of_degree_three_with_numbers_it_is_evaluated():
    result = crossover(
        ("A", "B"), (Amount.of(read_size("a", "x^3 + 101")), Amount.of(read_size("b", "90*x"))), "x"
    )
    assert result.method == "evaluated"
    assert str(result).startswith("A costs more up to x = 2, B from there to x = 9, A beyond (evaluated at")
    tied = crossover(
        ("A", "B"), (Amount.of(read_size("a", "x*x + 10")), Amount.of(read_size("b", "7*x"))), "x"
    )
    assert str(tied) == "A costs more up to x = 2, B from there to x = 5, A beyond; equal at x = 2 and x = 5"
    assert [x**3 + 101 > 90 * x for x in range(1, 12)] == [x in (1, 9, 10, 11) for x in range(1, 12)]


def test_by_power():
    assert by_power(read_size("a", "3*x^2 + n*x + n"), "x") == [
        read_size("", "n"), read_size("", "n"), read_size("", "3"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("above", "below", "text", "next_"),
    [
        ("2n - 1", "1", "2n - 1", "2n"),
        ("4n + 3", "2", "2n + 3/2", "2n + 2"),
        ("n", "2", "n/2", None),
        ("b*(b + 1)", "2*(b + 1 - n)", "b(b + 1)/(2(b + 1 - n))", None),
        ("n^2*b", "n", "n*b", None),
        ("2n", "b", "2n/b", None),
        ("n", "3b", "n/(3b)", None),
    ],
)
def test_fractions_are_written_as_people_do(above, below, text, next_):
    place = CrossingPoint(read_size("a", above), read_size("b", below))
    assert (place.text, place.next) == (text, next_)


def test_square_roots():
    plus, minus = surds(read_size("a", "2n"), read_size("u", "4n^2 + 8b"), read_size("b", "2"))
    assert (plus.text, minus.text) == ("n + sqrt(n^2 + 2b)", "n - sqrt(n^2 + 2b)")
    assert plus.at({"n": 1, "b": 4}) == 4  # 1 + sqrt(1 + 8)
    assert plus.at({"n": 1, "b": -4}) is None


def test_sums_begin_with_what_is_added():
    assert format_sum(read_size("a", "b + 1 - n")) == "b + 1 - n"
    assert format_polynomial(read_size("a", "n^2 - n*b")) == "n(n - b)"
