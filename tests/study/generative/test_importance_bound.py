"""importance: its value by enumeration, its rise with k, and that it never passes log p(x)."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from study.generative.enumerated import expectation
from torch import distributions as td

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError

Gaussian, Bernoulli, Categorical, LinearGaussian, Importance, elbo, importance = (
    lt.study.generative.Gaussian,
    lt.study.generative.Bernoulli,
    lt.study.generative.Categorical,
    lt.study.generative.LinearGaussian,
    lt.study.generative.Importance,
    lt.study.generative.elbo,
    lt.study.generative.importance,
)
F64 = torch.float64


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def linear(seed: int):
    """A model, data of it, and a posterior that is wider than the right one and off its mean."""
    g = seeded(seed)
    model = LinearGaussian(torch.randn(4, 2, generator=g, dtype=F64), 0.0, 0.5)
    x = model.sample(3, g)
    return model, x, Gaussian(model.posterior(x).mean + 0.3, 0.6)


class Coin:
    """Three hidden classes and two pixels: log p(x) and every bound are finite sums."""

    x = torch.tensor([[1.0, 0.0]], dtype=F64)
    prior = Categorical(torch.tensor([0.1, -0.4, 0.6], dtype=F64))
    table = torch.tensor([[0.5, -1.0], [2.0, 0.3], [-0.4, 1.5]], dtype=F64)

    @classmethod
    def decode(cls, z):
        return Bernoulli(cls.table[z])

    @classmethod
    def joint(cls):
        return cls.prior.logits.log_softmax(-1) + Bernoulli(cls.table).log_prob(cls.x[0]).sum(-1)

    @classmethod
    def exact(cls, logits, k):
        """E[log (1/k) Σ w] over all 3ᵏ lists of draws, differentiable in the logits."""
        log_q = logits.log_softmax(-1)[0]
        total = logits.new_zeros(())
        for index in range(3**k):
            places = [index // 3**i % 3 for i in range(k)]
            log_w = (cls.joint() - log_q)[places]
            total = total + log_q[places].sum().exp() * (log_w.logsumexp(0) - math.log(k))
        return total


@pytest.mark.parametrize("k", [1, 2, 3])
def test_value_and_gradient_by_enumeration(k):
    logits = torch.tensor([[0.2, -0.7, 1.1]], dtype=F64, requires_grad=True)
    exact = Coin.exact(logits, k)
    result = expectation(logits, k, lambda q: importance(Coin.x, q, Coin.decode, Coin.prior, k=k).value)
    torch.testing.assert_close(result, exact)
    torch.testing.assert_close(*(torch.autograd.grad(t, logits)[0] for t in (result, exact)))


def test_rises_with_k_to_log_p_exactly():
    """On the finite model the bounds are sums, so that no statistics are needed."""
    logits = torch.tensor([[0.2, -0.7, 1.1]], dtype=F64)
    bounds = [Coin.exact(logits, k).item() for k in range(1, 7)]
    evidence = Coin.joint().logsumexp(0).item()
    assert all(low < high for low, high in pairwise(bounds))
    assert bounds[-1] < evidence
    assert evidence - bounds[-1] < (evidence - bounds[0]) / 4
    posterior = Coin.joint()[None]  # unnormalised: softmax makes it p(z|x)
    assert Coin.exact(posterior, 3).item() == pytest.approx(evidence, abs=1e-12)


def test_rises_with_k_and_never_passes_log_p():
    """5,000 repeats a bound; a rise is at least 3 standard errors, log p(x) is never passed by 4."""
    model, x, q = linear(0)
    result = [
        importance(x, q, model.decode, k=k, samples=5000, generator=seeded(k)) for k in (1, 2, 4, 16, 64)
    ]
    evidence = model.log_prob(x).mean().item()
    for low, high in pairwise(result):
        assert high.value - low.value > 3 * math.hypot(low.standard_error, high.standard_error)  # pyright: ignore
    for bound in result:
        assert bound.value.item() < evidence + 4 * bound.standard_error  # pyright: ignore
    exact = model.elbo(x, q).elbo.mean().item()
    assert abs(result[0].value.item() - exact) < 4.5 * result[0].standard_error  # pyright: ignore
    assert evidence - result[-1].value.item() < (evidence - exact) / 16


def test_at_the_posterior_it_is_log_p():
    model, x, _ = linear(1)
    result = importance(x, model.posterior(x), model.decode, k=5)
    torch.testing.assert_close(result.values, model.log_prob(x))
    assert result.effective_sample_size == pytest.approx(5)
    assert result.standard_error == pytest.approx(0, abs=1e-7)


def test_one_sample_is_the_elbo():
    model, x, q = linear(2)
    ours = importance(x, q, model.decode, k=1, samples=6, generator=seeded(3))
    theirs = elbo(x, q, model.decode, samples=6, kl="sample", generator=seeded(3))
    torch.testing.assert_close(ours.values, theirs.values)
    assert ours.standard_error == pytest.approx(theirs.standard_error)
    assert ours.effective_sample_size == 1
    assert importance(x, q, model.decode, k=1).standard_error is None


@pytest.mark.parametrize("samples", [1, 4])
def test_the_standard_error_is_that_of_repeats(samples):
    model, x, q = linear(3)
    whole = importance(x, q, model.decode, k=64, samples=400 * samples, generator=seeded(0))
    runs = [
        Importance(whole.log_weights[at : at + samples], whole.bounds[at : at + samples], dimensions=4)
        for at in range(0, 400 * samples, samples)
    ]
    spread = np.std([run.value.item() for run in runs], ddof=1)
    claimed = math.sqrt(np.mean([run.standard_error**2 for run in runs]))  # pyright: ignore
    assert spread == pytest.approx(claimed, rel=0.15)


def test_the_error_from_weights_by_hand():
    """Weights 1 and 3: mean 2, variance 2, that of their mean 1, so the log is off by about √1 / 2."""
    logs = torch.tensor([1.0, 3.0], dtype=F64).log().view(1, 2, 1)
    result = Importance(logs, logs.logsumexp(1) - math.log(2), dimensions=1)
    assert result.standard_error == pytest.approx(1 / 2)
    assert result.effective_sample_size == pytest.approx(16 / 10)  # (1 + 3)² / (1² + 3²)
    assert result.value.item() == pytest.approx(math.log(2))


def test_gradients_are_those_of_the_numbers():
    model, x, q = linear(4)
    leaves = [t.detach().clone().requires_grad_() for t in (q.mean, q.log_variance, model.W)]

    def loss(mean, log_variance, W):
        decode = LinearGaussian(W, model.b, model.noise).decode
        q = Gaussian(mean, log_variance=log_variance)
        return importance(x, q, decode, k=4, samples=2, generator=seeded(1)).loss

    assert torch.autograd.gradcheck(loss, leaves)


def test_in_parts():
    sizes: list[int] = []

    def decode(z):
        sizes.append(len(z))
        return Coin.decode(z)

    q = Categorical(torch.zeros(1, 3, dtype=F64))
    result = importance(Coin.x, q, decode, Coin.prior, k=5, samples=2, at_once=4)
    assert sizes == [4, 4, 2] and result.log_weights.shape == (2, 5, 1)
    known = (Coin.joint() + math.log(3)).tolist()
    for weight in result.log_weights.flatten().tolist():
        assert min(abs(weight - other) for other in known) < 1e-12


def test_weights_that_are_all_0():
    """A class under which x is impossible: the bound is −inf, with a gradient asked for or not."""
    table = torch.tensor([[0.0, -torch.inf], [0.0, -torch.inf]])
    for logits in (torch.zeros(1, 2), torch.zeros(1, 2, requires_grad=True)):
        result = importance(
            torch.ones(1, 1, dtype=torch.long),
            Categorical(logits),
            lambda z: Categorical(table[z][..., None, :]),
            Categorical(torch.zeros(2)),
            k=4,
        )
        assert result.value.item() == -math.inf
        assert str(result).endswith(
            "bound                  −inf nats, k = 4\neffective sample size  0.0 of 4 weights"
        )


def test_units_and_what_is_shown():
    model, x, _ = linear(5)
    result = importance(x, model.posterior(x), model.decode, k=3, samples=2, unit="bits/dim")
    assert result.value.item() == pytest.approx(model.log_prob(x).mean().item() / 4 / math.log(2))
    assert result.loss.item() == pytest.approx(-model.log_prob(x).mean().item())
    nats = result.into("nats")
    text = f"{nats.value.item():.4f}".replace("-", "−")
    assert repr(nats) == f"<Importance {text} nats, k=3>"
    assert str(nats) == (
        "mean of 3 examples of 4 numbers, 2 times\n\n"
        f"bound                  {text} nats, k = 3\n"
        "effective sample size  3.0 of 3 weights"
    )
    data = nats.json()
    assert (data["k"], data["samples"], data["examples"], data["dimensions"]) == (3, 2, 3, 4)
    assert data["bound"] == pytest.approx(nats.value.item()) and data["population_error"] > 0


def test_distributions_of_torch():
    model, x, q = linear(6)
    prior = td.StudentT(torch.full((2,), 5.0, dtype=F64))
    posterior = td.StudentT(torch.tensor(5.0, dtype=F64), q.mean, q.variance.sqrt())
    result = importance(x, posterior, model.decode, prior, k=4)
    assert result.value.isfinite()


def test_wrong_input():
    model, x, q = linear(7)
    with pytest.raises(DomainError, match="k must be a whole number from 1 on, got 0"):
        importance(x, q, model.decode, k=0)
    with pytest.raises(DomainError, match=r"at_once must be a whole number from 1 on, got 2\.5"):
        importance(x, q, model.decode, at_once=2.5)  # pyright: ignore
    with pytest.raises(NamingError, match="unit is one of nats, bits/dim, not 'bit'"):
        importance(x, q, model.decode, unit="bit")
    with pytest.raises(TensorError, match=r"x has shape \(4, 3, 2\), and draws of this distribution \(3,\)"):
        importance(x, q, model.decode, Gaussian(torch.zeros(3, dtype=F64), 1), k=4)
    with pytest.raises(DomainError, match="data of a Gaussian must be finite, got nan at"):
        importance(x * math.nan, q, model.decode)
