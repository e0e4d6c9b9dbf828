"""LinearGaussian: against scipy, the rules of joint Gaussians, and its own identity to the last digits."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import lattend as lt
from lattend.errors import DomainError, LattendError, TensorError

Gaussian, LinearGaussian = lt.study.generative.Gaussian, lt.study.generative.LinearGaussian
F64 = torch.float64


def random_model(seed: int, D: int, latent: int, batch: int = 3):
    g = torch.Generator().manual_seed(seed)
    W, b = torch.randn(D, latent, generator=g, dtype=F64), torch.randn(D, generator=g, dtype=F64)
    noise = 0.1 + torch.rand(D, generator=g, dtype=F64)
    return LinearGaussian(W, b, noise), 2 * torch.randn(batch, D, generator=g, dtype=F64), g


sizes = (st.integers(0, 999), st.integers(1, 6), st.integers(1, 4))


@settings(max_examples=25)
@given(*sizes)
def test_evidence(seed, D, latent):
    model, x, _ = random_model(seed, D, latent)
    W = model.W.numpy()
    C = W @ W.T + np.diag(model.noise.numpy())
    expected = stats.multivariate_normal(model.b.numpy(), C).logpdf(x.numpy())  # pyright: ignore
    np.testing.assert_allclose(model.log_prob(x), np.atleast_1d(expected), rtol=1e-10)


@settings(max_examples=25)
@given(*sizes)
def test_posterior(seed, D, latent):
    """From the joint Gaussian of z and x: mean Wᵀ C⁻¹ (x − b), covariance I − Wᵀ C⁻¹ W."""
    model, x, _ = random_model(seed, D, latent)
    W = model.W.numpy()
    C = W @ W.T + np.diag(model.noise.numpy())
    result = model.posterior(x)
    np.testing.assert_allclose(result.mean, np.linalg.solve(C, (x - model.b).numpy().T).T @ W, atol=1e-10)
    expected = np.eye(latent) - W.T @ np.linalg.solve(C, W)
    np.testing.assert_allclose(result.covariance[0], expected, atol=1e-10)


@settings(max_examples=25)
@given(*sizes)
def test_identity_to_machine_precision(seed, D, latent):
    model, x, g = random_model(seed, D, latent)
    mean = torch.randn(3, latent, generator=g, dtype=F64)
    root = torch.randn(3, latent, latent + 1, generator=g, dtype=F64)
    full = root @ root.mT + 0.1 * torch.eye(latent, dtype=F64)
    for q in (Gaussian(mean, covariance=full), Gaussian(mean, 0.3), model.posterior(x), model.mean_field(x)):
        result = model.elbo(x, q)
        scale = max(result.log_prob.abs().max(), result.elbo.abs().max(), result.gap.abs().max()).item()
        assert result.error <= 1e-12 * max(1.0, scale)
        assert result.gap.min() > -1e-12 * scale
    assert model.elbo(x, model.posterior(x)).gap.abs().max() < 1e-12


def test_the_reconstruction_term_by_integration():
    """One latent: a fine sum over z of q(z) log p(x|z), which shares no formula with the closed one."""
    model, x, _ = random_model(1, 3, 1, batch=1)
    q = Gaussian(torch.tensor([[0.4]], dtype=F64), 0.7)
    z = torch.linspace(-10, 10, 8001, dtype=F64)[:, None]
    density = Gaussian(q.mean[0], 0.7).log_prob(z).exp()
    means, deviations = (z @ model.W.T + model.b).numpy(), np.sqrt(model.noise.numpy())
    log_x = stats.norm.logpdf(x.numpy(), means, deviations).sum(-1)
    expected = (density.numpy() * log_x).sum() * 20 / 8000
    result = model.elbo(x, q)
    assert result.reconstruction.item() == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 999))
def test_no_diagonal_q_beats_mean_field(seed):
    model, x, g = random_model(seed, 4, 3)
    best = model.mean_field(x)
    moved = 0.3 * torch.randn(2, 3, 3, generator=g, dtype=F64)
    other = Gaussian(best.mean + moved[0], log_variance=best.log_variance + moved[1])
    assert (model.elbo(x, other).elbo < model.elbo(x, best).elbo).all()
    gap = (model.precision.diagonal().log().sum() - torch.logdet(model.precision)) / 2
    torch.testing.assert_close(model.elbo(x, best).gap, gap.expand(3))


def test_gradients_against_differences():
    model, x, g = random_model(2, 3, 2)
    leaves = [t.detach().clone().requires_grad_() for t in (model.W, model.b, model.noise)]
    mean = torch.randn(3, 2, generator=g, dtype=F64).requires_grad_()
    log_variance = torch.randn(3, 2, generator=g, dtype=F64).requires_grad_()

    def terms(W, b, noise, mean, log_variance):
        result = LinearGaussian(W, b, noise).elbo(x, Gaussian(mean, log_variance=log_variance))
        return result.reconstruction, result.kl, result.gap, result.log_prob

    assert torch.autograd.gradcheck(terms, (*leaves, mean, log_variance))


def test_at_the_posterior_elbo_and_evidence_have_one_gradient():
    model, x, _ = random_model(3, 4, 2)
    W = model.W.clone().requires_grad_()
    q = model.posterior(x)  # held fixed, as the gap is least there
    result = LinearGaussian(W, model.b, model.noise).elbo(x, q)
    grads = [torch.autograd.grad(t.sum(), W, retain_graph=True)[0] for t in (result.elbo, result.log_prob)]
    torch.testing.assert_close(*grads)


def test_random():
    model = LinearGaussian.random(5, 2, 0.3, torch.Generator().manual_seed(0))
    assert model.W.shape == (5, 2) and model.W.dtype == F64 and set(model.noise.tolist()) == {0.3}
    again = LinearGaussian.random(5, 2, 0.3, torch.Generator().manual_seed(0))
    assert torch.equal(model.W, again.W)
    x = model.sample(4, torch.Generator().manual_seed(1))
    assert (model.elbo(x, model.mean_field(x)).gap > 0.01).all()  # no diagonal q is the posterior


def test_a_model_follows_its_parameters():
    """Two steps of a gradient on one model: nothing of the first is kept."""
    W = torch.tensor([[1.0], [0.5]], dtype=F64, requires_grad=True)
    model, x = LinearGaussian(W), torch.ones(1, 2, dtype=F64)
    for _ in range(2):
        before = model.log_prob(x).sum()
        (slope,) = torch.autograd.grad(before, W)
        with torch.no_grad():
            W += 0.01 * slope
        assert model.log_prob(x).sum() > before


def test_samples_have_the_covariance():
    model, _, g = random_model(4, 3, 2)
    x, n = model.sample(40_000, g), 40_000
    centred = x - model.b
    products = centred[:, :, None] * centred[:, None]
    off = (products.mean(0) - model.evidence.covariance).abs() / (products.std(0) / math.sqrt(n))
    assert off.max() < 4.5


def test_fit_is_the_likeliest():
    """At the fit no parameter has a gradient, and no other parameters are likelier."""
    true, _, g = random_model(5, 6, 2)
    x = true.sample(400, g)
    fitted = LinearGaussian.fit(x, 2)
    W, b, noise = (
        fitted.W.clone().requires_grad_(),
        fitted.b.clone().requires_grad_(),
        fitted.noise[:1].clone(),
    )
    noise.requires_grad_()
    value = LinearGaussian(W, b, noise).log_prob(x).mean()
    for slope in torch.autograd.grad(value, (W, b, noise)):
        assert slope.abs().max() < 1e-10
    for _ in range(20):
        other = LinearGaussian(
            fitted.W + 0.1 * torch.randn(6, 2, generator=g, dtype=F64), fitted.b, fitted.noise[0]
        )
        assert other.log_prob(x).mean() < value


def test_shown():
    model = LinearGaussian([[1.0]], [0.0], 1.0)
    assert repr(model) == "LinearGaussian(D=1, latent=1)"
    x = torch.tensor([[2.0]])
    data = model.elbo(x, Gaussian([[0.0]], 1)).json()
    assert data["log_prob"] == pytest.approx(-(math.log(4 * math.pi) + 2) / 2)  # N(2; 0, 2)
    assert data["elbo"] == pytest.approx(-(math.log(2 * math.pi) + 4 + 1) / 2)  # E[(2 − z)²] = 4 + 1
    assert data["elbo"] + data["gap"] == pytest.approx(data["log_prob"])


def test_types_follow_the_model():
    model, x, _ = random_model(1, 3, 2)
    exact = model.elbo(x, model.mean_field(x))
    q = Gaussian(model.mean_field(x).mean.float(), model.mean_field(x).variance.float())
    assert model.elbo(x.bfloat16().float(), q).elbo.dtype == F64
    torch.testing.assert_close(model.elbo(x, q).elbo, exact.elbo, rtol=1e-5, atol=1e-5)
    half = LinearGaussian(model.W.bfloat16(), 0.0, 1.0)
    assert half.log_prob(x.bfloat16()).isfinite().all()
    assert half.decode(torch.zeros(1, 2, dtype=torch.long)).mean.dtype == torch.float32
    assert LinearGaussian.fit(torch.randn(9, 3).bfloat16(), 1).W.isfinite().all()


M = LinearGaussian(torch.ones(3, 2), 0.0, 1.0)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: LinearGaussian([1.0, 2.0]), TensorError, "W is [D, latent], got shape (2,)"),
        (
            lambda: LinearGaussian(torch.ones(3, 2), [0.0, 0.0]),
            TensorError,
            "b is a number, or one for each of 3; got shape (2,)",
        ),
        (
            lambda: LinearGaussian(torch.ones(3, 2), noise=0.0),
            DomainError,
            "noise must be a variance above 0, got 0",
        ),
        (
            lambda: LinearGaussian(torch.ones(3, 2), noise=[1.0, -1.0, 1.0]),
            DomainError,
            "noise must be a variance above 0, got -1 at [1]",
        ),
        (lambda: LinearGaussian([[math.inf]]), DomainError, "W must be finite, got inf at [0, 0]"),
        (
            lambda: LinearGaussian(torch.ones(3, 2), torch.zeros(3, dtype=F64)),
            TensorError,
            "b is torch.float64 and W torch.float32; cast one of them",
        ),
        (lambda: M.log_prob(torch.zeros(2, 4)), TensorError, "x is [batch, 3], got shape (2, 4)"),
        (
            lambda: M.log_prob(torch.full((2, 3), math.nan)),
            DomainError,
            "x must be finite, got nan at [0, 0]; remove what is missing",
        ),
        (
            lambda: M.elbo(torch.zeros(2, 3), lt.study.generative.Bernoulli(torch.zeros(2, 2))),
            DomainError,
            "the exact ELBO is known for a Gaussian posterior, got Bernoulli(shape=(2, 2))",
        ),
        (
            lambda: M.elbo(torch.zeros(2, 3), Gaussian(torch.zeros(2, 3), 1)),
            TensorError,
            "z has 2 numbers, and the posterior is of 3",
        ),
        (
            lambda: LinearGaussian.fit(torch.zeros(5, 3), 3),
            DomainError,
            "latent must be below the 3 numbers of an example, got 3",
        ),
        (
            lambda: LinearGaussian.fit(torch.zeros(5, 3), 2),
            DomainError,
            "x varies in no more than 2 of 3 directions, so that no variance is left as noise; give other",
        ),
        (
            lambda: M.posterior(torch.full((2, 3), math.nan)),
            DomainError,
            "x must be finite, got nan at [0, 0]",
        ),
        (
            lambda: LinearGaussian.fit(torch.tensor([[0.0, math.inf], [1.0, 2.0]]), 1),
            DomainError,
            "x must be finite, got inf at [0, 1]; remove what is missing",
        ),
        (lambda: M.sample(0), DomainError, "n must be a whole number from 1 on, got 0"),
        (lambda: M.decode(torch.zeros(4, 3)), TensorError, "z is [..., 2], got shape (4, 3)"),
        (
            lambda: M.elbo(torch.zeros(4, 3), Gaussian(torch.zeros(5, 2), 1)),
            TensorError,
            "x without its last axis has shape (4,) and the posterior (5,); give both the same",
        ),
        (
            lambda: LinearGaussian(torch.ones(3, 2, dtype=F64), noise=1e-17).log_prob(torch.zeros(1, 3)),
            DomainError,
            "noise 1e-17 is lost in the rounding of torch.float64 beside W; take a larger one",
        ),
        (
            lambda: LinearGaussian(torch.ones(3, 2, dtype=F64), noise=1e-320).posterior(torch.zeros(1, 3)),
            DomainError,
            "noise 1e-320 is lost in the rounding",
        ),
        (
            lambda: LinearGaussian.fit(torch.zeros(1, 3), 2),
            TensorError,
            "x is [batch, D] with at least two examples, got shape (1, 3)",
        ),
    ],
)
def test_wrong_input(make, kind, message):
    with pytest.raises(LattendError) as caught:
        make()
    assert str(caught.value).startswith(message)
    assert type(caught.value) is kind
