"""The bound as formulas: proved, and equal to the numbers of the other models."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.errors import DomainError
from lattend.study.exact.numbers import exact, log, one_log
from lattend.study.exact.writing import format_exact
from lattend.study.generative import Bernoulli, Categorical, Gaussian, LinearGaussian, elbo
from lattend.study.generative.exact_bound import DiscreteModel, GaussianLine

fractions = st.fractions(-3, 3, max_denominator=12)
above = st.fractions("1/9", 4, max_denominator=9)


@settings(max_examples=40)
@given(st.tuples(fractions, fractions, above, fractions, fractions, above))
def test_a_line_is_the_linear_gaussian_model_of_one_number(numbers: tuple[Fraction, ...]) -> None:
    weight, bias, noise, x, mean, variance = numbers
    bound = GaussianLine(weight, bias, noise, x).bound(mean, variance)
    assert bound.proved
    w, b, v, seen, m, s = (torch.tensor(float(one), dtype=torch.float64) for one in numbers)
    result = LinearGaussian(w.reshape(1, 1), b, v).elbo(
        seen.reshape(1, 1), Gaussian(m.reshape(1, 1), s.reshape(1, 1))
    )
    for name in ("reconstruction", "kl", "elbo", "gap", "log_prob"):
        assert float(bound.terms[name]) == pytest.approx(getattr(result, name).item(), abs=1e-9)


@settings(max_examples=25)
@given(st.lists(st.tuples(*[st.integers(1, 9)] * 3), min_size=2, max_size=4))
def test_a_discrete_model_is_the_bound_with_all_z_summed(rows: list[tuple[int, int, int]]) -> None:
    prior, q = ([Fraction(row[at], sum(one[at] for one in rows)) for row in rows] for at in (0, 1))
    seen = [Fraction(row[2], 10) for row in rows]
    bound = DiscreteModel(prior, seen).bound(q)
    assert bound.proved
    numbers: list[Any] = [
        torch.tensor([float(one) for one in row], dtype=torch.float64) for row in (prior, q, seen)
    ]
    result = elbo(
        torch.ones(1, 1, dtype=torch.float64),
        Categorical(numbers[1].log()[None]),
        lambda z: Bernoulli(numbers[2].logit()[z][..., None]),
        prior=Categorical(numbers[0].log()[None]),
    )
    assert float(bound.elbo) == pytest.approx(result.value.item(), abs=1e-6)
    assert float(bound.kl) == pytest.approx(result.kl.item(), abs=1e-6)


def test_the_gap_is_nothing_at_the_posterior() -> None:
    line = GaussianLine(2, 1, "1/3", 4)
    assert line.bound(*line.posterior).terms["gap"] == 0
    model = DiscreteModel(["1/2", "1/2"], ["1/3", 0])
    assert model.posterior == (1, 0)
    assert model.bound(model.posterior).terms["gap"] == 0


@pytest.mark.parametrize("gap", [0.01, 0.5, 3.0])
def test_lines_of_equal_gap_have_that_gap(gap: float) -> None:
    line = GaussianLine("1/2", 0, "1/3", 2)
    for mean, variance in line.equal_gap(gap)[::17]:
        result = line.bound(round(float(mean), 9), round(float(variance), 9))
        assert float(result.gap) == pytest.approx(gap, abs=1e-5)


def test_logarithms_become_one_where_that_is_short() -> None:
    assert format_exact(one_log(log(exact(3)) / 2 - log(exact(2)) - 1)) == "log(3/4)/2 - 1"
    assert one_log(log(exact(6)) - log(exact(2)) - log(exact(3))) == 0
    long = sum(log(exact(prime)) / prime for prime in (2, 3, 5, 7, 11))
    assert one_log(long) == long
    assert one_log(exact("5/3")) == exact("5/3")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianLine(1, 0, 0, 1), "noise must be above 0, at least 1/1000000: it is a variance"),
        (lambda: GaussianLine("sqrt(2)", 0, 1, 1), "weight is a fraction or a decimal up to 1,000,000"),
        (lambda: GaussianLine(1, 0, 1, "z"), 'x: "z" is not a number'),
        (lambda: GaussianLine(1, 0, 1, 1).bound(0, -1), "variance must be above 0"),
        (lambda: DiscreteModel(["1/2"], [1]), r"the numbers of p\(z\) add up to 1/2, not to 1"),
        (lambda: DiscreteModel([1], [2]), "fractions from 0 to 1, got 2"),
        (lambda: DiscreteModel([1, 0], [1]), r"p\(z\) is of 2 values of z, and p\(x\|z\) has 1 number$"),
        (lambda: DiscreteModel([1, 0], [0, 1]), r"p\(x\) is 0"),
        (lambda: DiscreteModel([], []), "has 1 to 12 numbers, got 0"),
        (lambda: DiscreteModel(["1/2", "1/2"], [1, 0]).bound(["1/2", "1/2"]), "the ELBO is −∞"),
    ],
)
def test_what_is_no_model_is_refused(make: Any, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        make()


def test_terms_as_latex() -> None:
    bound = DiscreteModel(["1/2", "1/2"], ["1/4", "1/4"]).bound(["1/2", "1/2"])  # x tells nothing of z
    first, *lines, last = bound.latex().split(" \\\\\n")
    assert first == "\\begin{aligned}\n" r"\mathbb{E}_q[\log p(x \mid z)] &= \log{\left(\frac{1}{4} \right)}"
    assert lines == [
        r"\mathrm{KL}(q \,\|\, p(z)) &= 0",
        r"\mathrm{ELBO} &= \log{\left(\frac{1}{4} \right)}",
        r"\mathrm{KL}(q \,\|\, p(z \mid x)) &= 0",
    ]
    assert last == r"\log p(x) &= \log{\left(\frac{1}{4} \right)}" "\n\\end{aligned}"
