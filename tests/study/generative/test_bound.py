"""elbo: its conventions by hand, its terms against exact ones, its gradients and errors."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from study.generative.enumerated import expectation
from torch import distributions as td

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.report.numbers import format_error

Gaussian, Bernoulli, Categorical, LinearGaussian, elbo = (
    lt.study.generative.Gaussian,
    lt.study.generative.Bernoulli,
    lt.study.generative.Categorical,
    lt.study.generative.LinearGaussian,
    lt.study.generative.elbo,
)
F64 = torch.float64


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def linear(seed: int, D: int = 4, latent: int = 2, batch: int = 3):
    """A model, data of it, and a posterior that is not the right one."""
    g = seeded(seed)
    W, b = torch.randn(D, latent, generator=g, dtype=F64), torch.randn(D, generator=g, dtype=F64)
    model = LinearGaussian(W, b, torch.rand(D, generator=g, dtype=F64) + 0.2)
    mean = torch.randn(batch, latent, generator=g, dtype=F64)
    q = Gaussian(mean, log_variance=0.3 * torch.randn(batch, latent, generator=g, dtype=F64) - 1)
    return model, model.sample(batch, g), q


def flat(z: torch.Tensor, *shape: int) -> torch.Tensor:
    """Logits 0 for each pixel, whatever z is; still a function of z."""
    return 0 * z.sum(-1).reshape(*z.shape[:2], *(1 for _ in shape)) + torch.zeros(shape, dtype=z.dtype)


def test_sums_over_pixels_and_latents_mean_over_the_batch():
    x = torch.ones(5, 1, 2, 3)
    q = Gaussian(torch.tensor([[1.0, 2.0]] * 4 + [[0.0, 0.0]]), 1)
    result = elbo(x, q, lambda z: Bernoulli(flat(z, 1, 2, 3)), samples=7)
    assert result.reconstruction.item() == pytest.approx(6 * math.log(1 / 2))  # six pixels, each log ½
    assert result.kl.item() == pytest.approx(4 / 5 * (1 + 4) / 2)  # four of five have (1² + 2²) / 2
    assert result.value.item() == pytest.approx(result.reconstruction.item() - result.kl.item())
    assert result.loss.item() == pytest.approx(-result.value.item())
    assert result.kls.tolist() == [2.5] * 4 + [0.0]
    assert result.reconstructions.shape == result.values.shape == (5,)
    assert result.standard_error == 0 and result.kl_error == 0
    assert result.dimensions == 6


def test_unit_and_beta():
    x, q = torch.zeros(2, 4, dtype=torch.long), Gaussian([[2.0], [0.0]], 1)
    result = elbo(x, q, lambda z: Categorical(flat(z, 4, 8)), beta=3.0, unit="bits/dim")
    assert result.reconstruction.item() == pytest.approx(-3)  # log₂ 8 a pixel
    assert result.kl.item() == pytest.approx(1 / math.log(2) / 4)  # mean of 2 and 0 nats, over four numbers
    assert result.value.item() == pytest.approx(-3 - 1 / math.log(2) / 4)  # the bound, whatever beta is
    assert result.loss.item() == pytest.approx(4 * math.log(8) + 3 * 1)  # in nats
    assert result.into("nats").value.item() == pytest.approx(result.value.item() * 4 * math.log(2))


def test_free_bits_are_per_latent_after_the_mean_over_the_batch():
    x = torch.ones(2, 1)
    q = Gaussian([[2.0, 0.0, 0.4], [0.0, 0.0, 0.4]], 1)  # KL by latent: 2 and 0, 0 and 0, 0.08 twice
    result = elbo(x, q, lambda z: Bernoulli(flat(z, 1)), free_bits=0.5, beta=2.0)
    freed = 1.0 + 0.5 + 0.5  # latent 0 has a mean of 1, the others less than 0.5
    assert result.loss.item() == pytest.approx(math.log(2) + 2 * freed)
    assert result.kl.item() == pytest.approx(1 + 0.08)  # the KL itself is the KL
    assert result.value.item() == pytest.approx(-math.log(2) - 1.08)


@settings(max_examples=30)
@given(st.integers(0, 99), st.sampled_from(["closed", "sample"]))
def test_estimates_the_exact_terms(seed, way):
    model, x, q = linear(seed)
    exact = model.elbo(x, q)
    result = elbo(x, q, model.decode, samples=400, kl=way, generator=seeded(seed + 1))
    assert result.standard_error is not None and result.closed == (way == "closed")
    assert abs(result.value - exact.elbo.mean()) < 5 * result.standard_error
    assert abs(result.kl - exact.kl.mean()) <= (5 * result.kl_error + 1e-12)  # pyright: ignore
    errors = result.log_likelihoods.std(0) / 20
    assert ((result.reconstructions - exact.reconstruction).abs() < 5.5 * errors).all()


def test_the_standard_error_is_that_of_repeats():
    model, x, q = linear(3)
    for way in ("closed", "sample"):
        runs = [elbo(x, q, model.decode, samples=16, kl=way, generator=seeded(s)) for s in range(400)]
        spread = np.std([run.value.item() for run in runs], ddof=1)
        claimed = math.sqrt(np.mean([run.standard_error**2 for run in runs]))  # pyright: ignore
        assert spread == pytest.approx(claimed, rel=0.15)  # 400 repeats know a deviation to 3.5 %


def test_the_population_error_is_that_of_other_batches():
    model, _, _ = linear(4)
    result = []
    for s in range(200):
        x = model.sample(20, seeded(s))
        result.append(elbo(x, model.posterior(x), model.decode, generator=seeded(s + 1000)))
    spread = np.std([one.value.item() for one in result], ddof=1)
    claimed = math.sqrt(np.mean([one.population_error**2 for one in result]))
    assert spread == pytest.approx(claimed, rel=0.2)


def test_at_the_posterior_a_sampled_kl_has_no_error():
    model, x, _ = linear(5)
    result = elbo(x, model.posterior(x), model.decode, samples=3, kl="sample")
    torch.testing.assert_close(result.values, model.log_prob(x))
    assert result.standard_error < 1e-12 and result.kl_error > 0.01  # pyright: ignore


def test_a_nonlinear_decoder_against_integration():
    """One latent and Bernoulli pixels: log p(x), the terms and the gap by a fine sum over z."""
    weights, x = torch.tensor([1.5, -2.0, 0.7], dtype=F64), torch.tensor([[1.0, 0.0, 1.0]], dtype=F64)
    q = Gaussian(torch.tensor([[0.6]], dtype=F64), 0.4)

    def decode(z):
        return Bernoulli(torch.tanh(z) * weights)

    z = torch.linspace(-9, 9, 4001, dtype=F64)[:, None]
    step = 18 / 4000
    log_x = decode(z).log_prob(x[0].expand(4001, 3)).sum(-1)
    log_z, log_q = Gaussian([0.0], 1).log_prob(z), Gaussian(q.mean[0], 0.4).log_prob(z)
    reconstruction = (log_q.exp() * log_x).sum() * step
    divergence = (log_q.exp() * (log_q - log_z)).sum() * step
    evidence = ((log_x + log_z).exp().sum() * step).log()
    log_posterior = log_x + log_z - evidence
    gap = (log_q.exp() * (log_q - log_posterior)).sum() * step
    result = elbo(x, q, decode, samples=20_000, generator=seeded(0))
    assert result.kl.item() == pytest.approx(divergence.item(), abs=1e-9)
    assert abs(result.reconstruction - reconstruction) < 4.5 * result.standard_error  # pyright: ignore
    assert abs(result.value + gap - evidence) < 4.5 * result.standard_error  # pyright: ignore


def test_gradients_are_those_of_the_numbers():
    """With the same noise the loss is a smooth function of all parameters."""
    model, x, q = linear(6)
    leaves = [t.detach().clone().requires_grad_() for t in (q.mean, q.log_variance, model.W)]

    def loss(mean, log_variance, W, way, beta, free):
        decode = LinearGaussian(W, model.b, model.noise).decode
        q = Gaussian(mean, log_variance=log_variance)
        options = {"samples": 3, "kl": way, "beta": beta, "free_bits": free, "generator": seeded(1)}
        return elbo(x, q, decode, **options).loss

    for options in (("closed", 0.5, 0.0), ("sample", 2.0, 0.0), ("closed", 1.0, 0.8)):
        assert torch.autograd.gradcheck(lambda *t, o=options: loss(*t, *o), leaves)


def test_gradients_estimate_those_of_the_exact_elbo():
    model, x, q = linear(7)
    mean, log_variance = q.mean.clone().requires_grad_(), q.log_variance.clone().requires_grad_()
    exact = model.elbo(x, Gaussian(mean, log_variance=log_variance)).elbo.mean()
    wanted = torch.autograd.grad(exact, (mean, log_variance))
    runs: list[torch.Tensor] = []
    for s in range(300):
        q = Gaussian(mean, log_variance=log_variance)
        value = elbo(x, q, model.decode, samples=4, generator=seeded(s)).value
        runs.append(torch.stack(torch.autograd.grad(value, (mean, log_variance))))
    result = torch.stack(runs)
    errors = result.std(0) / math.sqrt(len(runs))
    assert ((result.mean(0) - torch.stack(wanted)).abs() < 4.5 * errors + 1e-9).all()


@pytest.mark.parametrize("samples", [1, 2, 3])
@pytest.mark.parametrize("way", ["closed", "sample"])
def test_a_discrete_posterior_has_the_right_gradient(samples, way):
    """The mean of the gradient over all lists of draws is that of the ELBO summed over the classes."""
    logits = torch.tensor([[0.2, -0.7, 1.1]], dtype=F64, requires_grad=True)
    table = torch.tensor([[0.5, -1.0], [2.0, 0.3], [-0.4, 1.5]], dtype=F64, requires_grad=True)
    x, prior = torch.tensor([[1.0, 0.0]], dtype=F64), Categorical(torch.zeros(3, dtype=F64))
    log_x = Bernoulli(table).log_prob(x[0]).sum(-1)
    q = logits.softmax(-1)[0]
    exact = (q * (log_x - q.log() + math.log(1 / 3))).sum()
    result = expectation(
        logits,
        samples,
        lambda q: elbo(x, q, lambda z: Bernoulli(table[z]), prior, samples=samples, kl=way).value,
    )
    torch.testing.assert_close(result, exact)
    for leaf in (logits, table):
        grads = (torch.autograd.grad(t, leaf, retain_graph=True)[0] for t in (result, exact))
        torch.testing.assert_close(*grads)


def test_distributions_of_torch():
    model, x, q = linear(8)
    ours = elbo(x, q, model.decode, samples=5, kl="sample", generator=torch.manual_seed(0))

    def decode(z):
        return td.Independent(td.Normal(model.decode(z).mean, model.noise.sqrt()), 1)

    divergence = lt.study.generative.kl(q, Gaussian(torch.zeros(2, dtype=F64), 1)).value.mean()
    normal = td.Normal(q.mean, q.variance.sqrt())
    prior = td.Normal(torch.tensor(0.0, dtype=F64), 1.0)
    for posterior in (normal, td.Independent(normal, 1), td.MultivariateNormal(q.mean, q.covariance)):
        torch.manual_seed(0)
        result = elbo(x, posterior, decode, prior, samples=5, kl="sample")
        torch.testing.assert_close(result.values, ours.values)
        torch.testing.assert_close(elbo(x, posterior, decode).kl, divergence)
    torch.testing.assert_close(elbo(x, normal, decode, prior, kl="closed").kl, divergence)
    laplace = td.Laplace(q.mean, q.variance.sqrt())
    closed = elbo(x, laplace, decode, kl="closed").kl
    torch.testing.assert_close(closed, td.kl_divergence(laplace, td.Normal(prior.loc, 1.0)).sum(-1).mean())
    flow = td.TransformedDistribution(normal, td.SigmoidTransform())
    assert not elbo(x, flow, decode).closed


def test_a_decoder_of_your_own():
    class Poisson:
        def __init__(self, rate):
            self.rate, self.shape = rate, rate.shape

        def log_prob(self, x):
            return x * self.rate.log() - self.rate - torch.lgamma(x + 1)

    x, q = torch.tensor([[0.0, 3.0]]), Gaussian([[0.0]], 1)
    result = elbo(x, q, lambda z: Poisson(torch.ones(*z.shape[:2], 2)))
    assert result.value.item() == pytest.approx(-2 - math.log(6))
    with pytest.raises(TensorError, match="posterior is drawn from, and a Poisson has no sample"):
        elbo(x, Poisson(torch.ones(1, 2)), good)


def test_an_impossible_class_makes_it_minus_infinity():
    """With a gradient as without: −∞ · 0 must not become nan."""
    table = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
    x = torch.ones(1, 1, dtype=torch.long)
    for way in ("closed", "sample"):
        for samples in (1, 64):
            logits = torch.tensor([[9.0, 0.0]], requires_grad=True)
            result = elbo(
                x,
                Categorical(logits),
                lambda z: Categorical(table[z][..., None, :]),
                Categorical(torch.zeros(2)),
                samples=samples,
                kl=way,
                generator=seeded(1),
            )
            assert result.value.item() == -math.inf
            assert result.kl.isfinite()
            assert repr(result) == "<ELBO −inf nats>"


def test_bfloat16_is_summed_in_float32():
    """100 pixels: in bfloat16 the sum would stand on a grid of 0.25 or 0.5."""
    weights = torch.randn(100, 2, generator=seeded(0)).bfloat16()
    x = (torch.rand(3, 100, generator=seeded(1)) < 0.5).bfloat16()
    q = Gaussian(torch.zeros(3, 2, dtype=torch.bfloat16), 1)
    result = elbo(x, q, lambda z: Bernoulli(z @ weights.T), samples=50, generator=seeded(2))
    z = q.sample(50, seeded(2))
    assert z.dtype == torch.bfloat16 and result.value.dtype == torch.float32
    exact = td.Bernoulli(logits=(z @ weights.T).double()).log_prob(x.double()).sum(-1).mean()
    assert result.reconstruction.item() == pytest.approx(exact.item(), rel=1e-5)


def test_a_reconstruction_has_no_more_digits_than_its_error_leaves():
    q = Gaussian(torch.zeros(2, 1), 1)
    result = elbo(torch.ones(2, 784), q, lambda z: Bernoulli(z.expand(-1, -1, 784)), samples=9)
    assert result.reconstruction_error == result.standard_error > 1  # pyright: ignore
    line = str(result).splitlines()[3]
    assert (
        line == f"reconstruction  {format_error(result.reconstruction.item(), result.reconstruction_error)}"
    )
    assert "±" in line


def test_numbers():
    assert format_error(-84.3123, 0.0512) == "−84.312 ± 0.051" and format_error(1.0, 1234.5) == "1 ± 1,235"
    assert format_error(1.0, math.inf) == format_error(1.0, math.nan) == format_error(1.0, 0.0) == "1.0000"
    assert format_error(-math.inf) == "−inf" and format_error(-0.00001) == "−0.00001"


def test_samples_of_any_whole_type():
    assert len(elbo(X, Q, good, samples=np.int64(2)).log_likelihoods) == 2  # pyright: ignore


def test_shown():
    x, q = torch.ones(1, 2), Gaussian(torch.ones(1, 1, requires_grad=True), 1)  # numbers with a gradient too
    result = elbo(x, q, lambda z: Bernoulli(flat(z, 2)))
    assert repr(result) == "<ELBO −1.8863 nats>"
    assert str(result) == (
        "mean of 1 example of 2 numbers, 1 z for each\n\n"
        "ELBO            −1.8863 nats\n"
        "reconstruction  −1.3863\n"
        "KL              0.5000, closed form"
    )
    assert "<table>" in result._repr_html_()
    data = result.json()
    assert data["elbo"] == pytest.approx(data["reconstruction"] - data["kl"])
    assert (data["standard_error"], data["population_error"], data["kl_error"]) == (None, None, 0.0)
    assert (data["examples"], data["samples"], data["dimensions"], data["unit"]) == (1, 1, 2, "nats")


def test_every_name_comes_with_a_star():
    result: dict[str, object] = {}
    exec("from lattend.study.generative import *", result)
    assert set(lt.study.generative.__all__) == set(result) - {"__builtins__"} == set(dir(lt.study.generative))
    assert set(lt.study.generative.__all__) == set(lt.study.generative._HOME)


X, Q = torch.ones(2, 3), Gaussian(torch.zeros(2, 1), 1)


def good(z):
    return Bernoulli(flat(z, 3))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: elbo([1], Q, good), TensorError, "x must be a tensor [batch, ...], got list"),  # pyright: ignore
        (
            lambda: elbo(torch.ones(3), Q, good),
            TensorError,
            "x is [batch, ...] with at least one example, got shape (3,)",
        ),
        (
            lambda: elbo(torch.ones(0, 3), Q, good),
            TensorError,
            "x is [batch, ...] with at least one example, got shape (0, 3)",
        ),
        (
            lambda: elbo(torch.ones(4, 3), Q, good),
            TensorError,
            "x has 4 examples and draws of the posterior have shape (2, 1); the posterior has one",
        ),
        (
            lambda: elbo(X, torch.zeros(2, 1), good),
            TensorError,
            "posterior must be a distribution, such as Gaussian(mean, log_variance=…), got Tensor",
        ),
        (
            lambda: elbo(X, Q, lambda z: torch.zeros(1, 2, 3)),
            TensorError,
            "what decode(z) gives must be a distribution",
        ),
        (
            lambda: elbo(X, Q, lambda z: Bernoulli(torch.zeros(2, 3))),
            TensorError,
            "z is [1, 2, 1] and x [2, 3], so decode(z) has draws [1, 2, 3], samples and batch first; "
            "got [2, 3]",
        ),
        (lambda: elbo(X * 1j, Q, good), TensorError, "x must be real, got torch.complex64"),
        (lambda: elbo(X, Q, None), TensorError, "decode must be a function from z to a distribution, got No"),  # pyright: ignore
        (lambda: elbo(X, Q, good, beta="a"), DomainError, "beta must be at least 0, got 'a'"),  # pyright: ignore
        (lambda: elbo(X, Q, good, beta=torch.ones(2)), DomainError, "beta must be at least 0, got tensor("),  # pyright: ignore
        (lambda: elbo(X, Q, good, free_bits=None), DomainError, "free_bits must be at least 0, got None"),  # pyright: ignore
        (
            lambda: elbo(X, Q, good, Gaussian(torch.zeros(2, 2, 1), 1), kl="sample", samples=2),
            TensorError,
            "draws of the posterior have shape (2, 1), those of the prior (2, 2, 1); the prior has the same",
        ),
        (lambda: elbo(X * 0.5, Q, good), DomainError, "data of a Bernoulli are 0 or 1, got 0.5 at [0, 0]"),
        (lambda: elbo(X, Q, good, samples=0), DomainError, "samples must be a whole number from 1 on, got 0"),
        (lambda: elbo(X, Q, good, kl="exact"), NamingError, "kl is one of auto, closed, sample, not 'exact'"),
        (lambda: elbo(X, Q, good, unit="bits"), NamingError, "unit is one of nats, bits/dim, not 'bits'"),
        (lambda: elbo(X, Q, good, beta=-1), DomainError, "beta must be at least 0, got -1"),
        (lambda: elbo(X, Q, good, free_bits=math.nan), DomainError, "free_bits must be at least 0, got nan"),
        (
            lambda: elbo(X, Q, good, Gaussian([0.0, 0.0], 1)),
            TensorError,
            "vectors of q have 1 numbers and those of p 2",
        ),
        (
            lambda: elbo(X, Bernoulli(torch.zeros(2, 1)), good),
            NamingError,
            "a posterior Bernoulli(shape=(2, 1)) has no usual prior; give prior=",
        ),
        (
            lambda: elbo(
                X, Gaussian(torch.zeros(2, 1), covariance=torch.eye(1)), good, free_bits=1, kl="sample"
            ),
            DomainError,
            "free_bits are given to each latent, so the KL must be in closed form for each",
        ),
        (
            lambda: elbo(X, Gaussian(torch.zeros(2, 2), covariance=torch.eye(2)), good, free_bits=1),
            DomainError,
            "free_bits are given to each latent",
        ),
        (
            lambda: elbo(X, Q, good, Gaussian(torch.zeros(3, 1), 1)),
            TensorError,
            "q has shape (2, 1) and p (3, 1); give both the same",
        ),
        (
            lambda: elbo(X, Q, good, td.StudentT(torch.ones(1)), kl="closed", samples=2),
            DomainError,
            "KL(Gaussian ‖ StudentT) has no closed form here",
        ),
    ],
)
def test_wrong_input(make, kind, message):
    with pytest.raises(LattendError) as caught:
        make()
    assert str(caught.value).startswith(message)
    assert type(caught.value) is kind
