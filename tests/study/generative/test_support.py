"""Discrete z are summed: the bound and its gradient equal sums written by hand, and derivations."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributions as td

import lattend as lt
from lattend.study.generative.bound import MOST_VALUES, every_z

Bernoulli, Categorical, elbo = (
    lt.study.generative.Bernoulli,
    lt.study.generative.Categorical,
    lt.study.generative.elbo,
)
F64 = torch.float64
parts = st.lists(st.integers(1, 9), min_size=3, max_size=3)


def chances(numbers: list[int]) -> list[Fraction]:
    return [Fraction(number, sum(numbers)) for number in numbers]


def logits(result: list[Fraction]) -> torch.Tensor:
    return torch.tensor([math.log(one) for one in result], dtype=F64)


@settings(max_examples=30, deadline=None)
@given(parts, parts, parts)
def test_the_bound_is_the_sum_by_hand(prior: list[int], guess: list[int], seen: list[int]) -> None:
    p, q = chances(prior), chances(guess)
    likelihood = [Fraction(one, 10) for one in seen]
    table = torch.tensor([float(one) for one in likelihood], dtype=F64)
    x = torch.ones(1, 1, dtype=F64)
    result = elbo(
        x,
        Categorical(logits(q)[None]),
        lambda z: Bernoulli(torch.logit(table)[z][..., None]),
        Categorical(logits(p)),
    )
    reconstruction = sum(float(b) * math.log(a) for a, b in zip(likelihood, q, strict=True))
    kl = sum(float(b) * math.log(b / a) for a, b in zip(p, q, strict=True))
    evidence = math.log(sum(a * b for a, b in zip(likelihood, p, strict=True)))
    assert math.isclose(result.reconstruction.item(), reconstruction, abs_tol=1e-12)
    assert math.isclose(result.value.item(), reconstruction - kl, abs_tol=1e-12)
    assert result.value.item() <= evidence + 1e-12
    assert result.standard_error == result.reconstruction_error == result.kl_error == 0.0


def test_the_posterior_leaves_no_gap() -> None:
    p, likelihood = torch.tensor([0.5, 0.3, 0.2], dtype=F64), torch.tensor([0.1, 0.6, 0.9], dtype=F64)
    joint = p * likelihood
    result = elbo(
        torch.ones(1, 1, dtype=F64),
        Categorical(joint.log()[None]),
        lambda z: Bernoulli(torch.logit(likelihood)[z][..., None]),
        Categorical(p.log()),
    )
    assert math.isclose(result.value.item(), math.log(joint.sum().item()), abs_tol=1e-12)


@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_gradients_are_those_of_the_sum(beta: float) -> None:
    """Two latents of three classes, a decoder with weights: autograd through a sum over nine z by hand."""
    g = torch.Generator().manual_seed(0)
    q = torch.randn(2, 2, 3, generator=g, dtype=F64).requires_grad_()
    p = torch.randn(2, 3, generator=g, dtype=F64)
    weights = torch.randn(2, 3, 4, generator=g, dtype=F64).requires_grad_()
    x = torch.randint(0, 2, (2, 4), generator=g).to(F64)

    def outputs(z: torch.Tensor) -> torch.Tensor:
        return weights[0][z[..., 0]] + weights[1][z[..., 1]]

    result = elbo(x, Categorical(q), lambda z: Bernoulli(outputs(z)), Categorical(p), beta=beta)
    got = torch.autograd.grad(result.loss, [q, weights])
    log_q, log_p = q.log_softmax(-1), p.log_softmax(-1)
    loss = torch.zeros((), dtype=F64)
    for example in range(2):
        for a in range(3):
            for b in range(3):
                share = (log_q[example, 0, a] + log_q[example, 1, b]).exp()
                logs = weights[0, a] + weights[1, b]
                seen = -torch.nn.functional.binary_cross_entropy_with_logits(
                    logs, x[example], reduction="sum"
                )
                prior = log_p[0, a] + log_p[1, b]
                gap = log_q[example, 0, a] + log_q[example, 1, b] - prior
                loss = loss + share * (beta * gap - seen) / 2
    wanted = torch.autograd.grad(loss, [q, weights])
    assert torch.allclose(result.loss, loss, atol=1e-12)
    assert all(torch.allclose(mine, right, atol=1e-12) for mine, right in zip(got, wanted, strict=True))


def test_samples_are_drawn_where_they_are_asked_for() -> None:
    x, q = torch.ones(1, 1), Bernoulli(torch.zeros(1, 2))
    drawn = elbo(x, q, lambda z: Bernoulli(z[..., :1] - 0.5), Bernoulli(torch.zeros(2)), samples=4000)
    summed = elbo(x, q, lambda z: Bernoulli(z[..., :1] - 0.5), Bernoulli(torch.zeros(2)))
    assert drawn.probabilities is None and drawn.standard_error is not None
    assert abs(drawn.value.item() - summed.value.item()) < 5 * drawn.standard_error
    assert "all 4 z summed" in str(summed) and "4,000 z for each" in str(drawn)
    assert (summed.json()["samples"], summed.json()["summed"]) == (None, 4)


def test_a_prior_without_a_closed_form_is_summed_too() -> None:
    q = Categorical(torch.tensor([[0.2, 0.3, 0.5]]).log())
    prior = td.Poisson(torch.tensor(1.0))
    result = elbo(torch.ones(1, 1), q, lambda z: Bernoulli(torch.zeros(*z.shape, 1)), prior)
    logs = prior.log_prob(torch.arange(3.0))
    chance = torch.tensor([0.2, 0.3, 0.5])
    assert math.isclose(result.kl.item(), (chance * (chance.log() - logs)).sum().item(), abs_tol=1e-6)
    assert result.kl_error == 0.0 and "summed" in str(result)


def test_what_never_comes_adds_nothing() -> None:
    q = Categorical(torch.tensor([[0.0, -torch.inf]]))
    result = elbo(
        torch.ones(1, 1),
        q,
        lambda z: Bernoulli(torch.tensor([0.0, -torch.inf])[z][..., None]),
        Categorical(torch.zeros(2)),
    )
    assert math.isclose(result.reconstruction.item(), -math.log(2), abs_tol=1e-6)


def test_too_many_values_are_drawn() -> None:
    assert every_z(Bernoulli(torch.zeros(1, 12))) is not None
    assert MOST_VALUES < 2**13 and every_z(Bernoulli(torch.zeros(1, 13))) is None
