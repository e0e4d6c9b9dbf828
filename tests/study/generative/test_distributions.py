"""Densities and draws against torch.distributions, scipy and enumeration; what is said to wrong input."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import distributions as td

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TensorError

Gaussian, Bernoulli, Categorical = (
    lt.study.generative.Gaussian,
    lt.study.generative.Bernoulli,
    lt.study.generative.Categorical,
)
F64 = torch.float64


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def covariance(d: int, generator: torch.Generator, *batch: int) -> torch.Tensor:
    root = torch.randn(*batch, d, d + 2, generator=generator, dtype=F64)
    return root @ root.mT / d + 0.1 * torch.eye(d, dtype=F64)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(1, 5), st.integers(1, 4))
def test_diagonal_gaussian(seed, d, batch):
    g = seeded(seed)
    mean, log_variance, x = torch.randn(3, batch, d, generator=g, dtype=F64)
    expected = td.Normal(mean, (log_variance / 2).exp()).log_prob(x).sum(-1)
    torch.testing.assert_close(Gaussian(mean, log_variance=log_variance).log_prob(x), expected)
    torch.testing.assert_close(Gaussian(mean, log_variance.exp()).log_prob(x), expected)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(1, 5), st.integers(1, 4))
def test_full_gaussian(seed, d, batch):
    g = seeded(seed)
    mean, x = torch.randn(2, batch, d, generator=g, dtype=F64)
    spread = covariance(d, g, batch)
    result = Gaussian(mean, covariance=spread)
    expected = [
        stats.multivariate_normal(m, s).logpdf(v)
        for m, s, v in zip(mean.numpy(), spread.numpy(), x.numpy(), strict=True)
    ]
    np.testing.assert_allclose(result.log_prob(x), expected)
    torch.testing.assert_close(Gaussian(mean, cholesky=result.cholesky).log_prob(x), result.log_prob(x))
    torch.testing.assert_close(result.covariance, spread)
    torch.testing.assert_close(result.variance, spread.diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(result.entropy(), td.MultivariateNormal(mean, spread).entropy())
    torch.testing.assert_close(
        Gaussian(mean, result.variance).entropy(), td.Normal(mean, result.variance.sqrt()).entropy().sum(-1)
    )


def test_gradients_of_densities():
    g = seeded(0)
    mean, log_variance, x = (t.requires_grad_() for t in torch.randn(3, 2, 3, generator=g, dtype=F64))
    spread = covariance(3, g, 2).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda m, v, x: Gaussian(m, log_variance=v).log_prob(x), (mean, log_variance, x)
    )
    assert torch.autograd.gradcheck(
        lambda m, s, x: Gaussian(m, covariance=(s + s.mT) / 2).log_prob(x), (mean, spread, x)
    )
    bits, classes = torch.tensor([[0.0, 1, 1], [1, 0, 0]], dtype=F64), torch.tensor([2, 0])
    assert torch.autograd.gradcheck(lambda a: Bernoulli(a).log_prob(bits), (mean,))
    assert torch.autograd.gradcheck(lambda a: Categorical(a).log_prob(classes), (mean,))


def test_draws_have_the_moments_and_carry_gradients():
    mean = torch.tensor([[1.0, -2.0], [0.0, 3.0]], dtype=F64, requires_grad=True)
    spread = covariance(2, seeded(1), 2)
    n = 40_000
    for q in (Gaussian(mean, covariance=spread), Gaussian(mean, spread.diagonal(dim1=-2, dim2=-1))):
        z = q.sample(n, seeded(2))
        assert z.shape == (n, 2, 2) and q.sample().shape == (2, 2)
        error = (z.mean(0) - mean).abs() / (q.variance / n).sqrt()
        assert error.max() < 4.5
        centred = z - mean
        products = torch.einsum("nbi,nbj->nbij", centred, centred)
        off = (products.mean(0) - q.covariance).abs() / (products.std(0) / math.sqrt(n))
        assert off.max() < 4.5
        (slope,) = torch.autograd.grad(z.sum(), mean)
        torch.testing.assert_close(slope, torch.full_like(mean, n))


def test_discrete_draws():
    n = 20_000
    chances = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    drawn = Categorical(chances.log()).sample(n, seeded(3))
    assert drawn.shape == (n, 2)
    shares = torch.stack([(drawn == c).float().mean(0) for c in range(3)], -1)
    assert (shares - chances).abs().max() < 4.5 * 0.5 / math.sqrt(n)
    assert Categorical(chances.log()).sample().shape == (2,)
    bits = Bernoulli([-2.0, 0.0]).sample(n, seeded(4))
    assert (bits.mean(0) - torch.tensor([-2.0, 0.0]).sigmoid()).abs().max() < 4.5 * 0.5 / math.sqrt(n)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(1, 6))
def test_discrete_densities(seed, classes):
    g = seeded(seed)
    logits = 3 * torch.randn(4, classes, generator=g, dtype=F64)
    x = torch.randint(classes, (5, 4), generator=g)
    torch.testing.assert_close(Categorical(logits).log_prob(x), td.Categorical(logits=logits).log_prob(x))
    total = sum(Categorical(logits).log_prob(torch.full((4,), c)).exp() for c in range(classes))
    torch.testing.assert_close(total, torch.ones(4, dtype=F64))
    bits = torch.randint(2, (5, 4, classes), generator=g)
    torch.testing.assert_close(
        Bernoulli(logits).log_prob(bits), td.Bernoulli(logits=logits).log_prob(bits.to(F64))
    )


def test_bernoulli_is_exact_far_out():
    result = Bernoulli(torch.tensor([800.0, -800.0])).log_prob(torch.tensor([1.0, 1.0]))
    assert result.tolist() == [0.0, -800.0]


def test_soft_data_are_the_mean_over_binarised_ones():
    logits, grey = torch.tensor([0.3, -1.2], dtype=F64), torch.tensor([0.25, 0.9], dtype=F64)
    mean = grey * Bernoulli(logits).log_prob(torch.ones(2)) + (1 - grey) * Bernoulli(logits).log_prob(
        torch.zeros(2)
    )
    torch.testing.assert_close(Bernoulli(logits, soft=True).log_prob(grey), mean)


def test_one_number_stands_for_all():
    q = Gaussian(torch.zeros(2, 3), 4)
    assert q.variance.shape == (2, 3) and q.log_variance[1, 2].item() == pytest.approx(math.log(4))
    assert repr(q) == "Gaussian(diagonal, shape=(2, 3))"
    assert repr(Bernoulli(torch.zeros(2))) == "Bernoulli(shape=(2,))"
    assert repr(Categorical(torch.zeros(2, 3))) == "Categorical(3 classes, shape=(2,))"


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_16_bits_are_reckoned_with_in_32(kind):
    """784 numbers: a sum of 16 bits would be off by a unit or more."""
    mean, x = torch.randn(2, 784, generator=seeded(0)).to(kind)
    for q in (Gaussian(mean, 0.5), Gaussian(mean, covariance=0.5 * torch.eye(784, dtype=kind))):
        result = q.log_prob(x)
        expected = td.Normal(mean.double(), math.sqrt(0.5)).log_prob(x.double()).sum()
        assert result.dtype == torch.float32 and result.item() == pytest.approx(expected.item(), rel=1e-5)
        assert q.sample(2).dtype == kind
    assert Bernoulli(mean).sample().dtype == kind
    assert Bernoulli(mean).log_prob(torch.ones(784)).dtype == torch.float32
    assert Categorical(mean).log_prob(torch.tensor(3)).dtype == torch.float32


def test_two_types_become_the_wider():
    narrow = torch.zeros(2)
    for q in (Gaussian(narrow, covariance=torch.eye(2, dtype=F64)), Gaussian(narrow.to(F64), torch.ones(2))):
        assert q.sample(3).dtype == q.log_prob(narrow).dtype == F64
    full = Gaussian(narrow, covariance=torch.eye(2))
    assert full.log_prob(torch.zeros(2, dtype=F64)).item() == pytest.approx(-math.log(2 * math.pi))


INDEFINITE = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda: Gaussian([0.0], 0.0),
            DomainError,
            "a variance must be above 0, got 0; log_variance= takes any number",
        ),
        (lambda: Gaussian([0.0, 0.0], [1.0, -2.0]), DomainError, "a variance must be above 0, got -2 at [1]"),
        (lambda: Gaussian([0.0], float("nan")), DomainError, "variance must be finite, got nan; look where"),
        (lambda: Gaussian([0.0], torch.inf), DomainError, "variance must be finite, got inf"),
        (lambda: Gaussian([torch.nan, 0.0], 1), DomainError, "mean must be finite, got nan at [0]"),
        (
            lambda: Gaussian([0.0], log_variance=float("nan")),
            DomainError,
            "log_variance must be finite, got nan",
        ),
        (
            lambda: Gaussian([0.0, 0.0], cholesky=[[1.0, 0.0], [torch.nan, 1.0]]),
            DomainError,
            "cholesky must be finite, got nan at [1, 0]",
        ),
        (
            lambda: Gaussian([0.0], cholesky=[[torch.inf]]),
            DomainError,
            "cholesky must be finite, got inf at [0, 0]",
        ),
        (
            lambda: Gaussian([0.0], covariance=[[torch.inf]]),
            DomainError,
            "covariance must be finite, got inf at [0, 0]",
        ),
        (
            lambda: Categorical([[0.0, 0.0], [-torch.inf, -torch.inf]]),
            DomainError,
            "one of the logits for a number must be finite, got -inf at [1]",
        ),
        (
            lambda: Categorical([torch.inf, 0.0]),
            DomainError,
            "logits must be finite, or −inf for what never comes, got inf at [0]",
        ),
        (lambda: Categorical(torch.zeros(2, 0)), TensorError, "logits are [..., classes], got shape (2, 0)"),
        (lambda: Categorical([0.0, 0.0]).log_prob([0]), TensorError, "x must be a tensor, got list"),  # pyright: ignore
        (
            lambda: Gaussian([0.0], 1).log_prob(torch.zeros(1, dtype=torch.complex64)),
            TensorError,
            "x must be real, got torch.complex64",
        ),
        (
            lambda: Gaussian(torch.zeros(2, 2), covariance=INDEFINITE),
            DomainError,
            "a covariance must be positive definite, and the least eigenvalue at [1] is -1; add a small",
        ),
        (
            lambda: Gaussian([0.0, 0.0], covariance=[[1.0, 0.5], [0.2, 1.0]]),
            DomainError,
            "a covariance must equal its transpose, got 0.5 at [0, 1]; take (S + S.mT) / 2",
        ),
        (
            lambda: Gaussian([0.0, 0.0], cholesky=[[1.0, 0.5], [0.0, 1.0]]),
            DomainError,
            "a Cholesky factor has zeros above its diagonal, got 0.5 at [0, 1]; take L.tril()",
        ),
        (
            lambda: Gaussian([0.0, 0.0], cholesky=[[1.0, 0.0], [0.0, -1.0]]),
            DomainError,
            "the diagonal of a Cholesky factor must be above 0, got -1 at [1]",
        ),
        (
            lambda: Gaussian([0.0]),
            NamingError,
            "a Gaussian takes one of variance, log_variance, covariance, cholesky, got none",
        ),
        (
            lambda: Gaussian([0.0], 1, log_variance=0),
            NamingError,
            "a Gaussian takes one of variance, log_variance, covariance, cholesky, "
            "got variance and log_variance",
        ),
        (lambda: Gaussian(1.0, 1.0), TensorError, "mean is a vector, or vectors along the last axis"),
        (
            lambda: Gaussian([0.0] * 3, [1.0] * 2),
            TensorError,
            "mean has shape (3,) and variance (2,); give both the same",
        ),
        (
            lambda: Gaussian([0.0] * 3, covariance=torch.eye(2)),
            TensorError,
            "a covariance for vectors of 3 is [..., 3, 3], got shape (2, 2)",
        ),
        (lambda: Gaussian(["a"], 1), TensorError, "mean must be numbers, got list ['a']"),
        (
            lambda: Gaussian([0.0], 1).log_prob(torch.zeros(4)),
            TensorError,
            "x has shape (4,), and draws of this distribution (1,)",
        ),
        (
            lambda: Gaussian([0.0], 1).log_prob(torch.tensor([torch.inf])),
            DomainError,
            "data of a Gaussian must be finite, got inf at [0]",
        ),
        (lambda: Gaussian([0.0], 1).sample(0), DomainError, "k must be a whole number from 1 on, got 0"),
        (lambda: Bernoulli([torch.nan]), DomainError, "logits must be numbers or ±inf, got nan at [0]"),
        (
            lambda: Bernoulli([0.0, 0.0]).log_prob(torch.tensor([0.0, 0.5])),
            DomainError,
            "data of a Bernoulli are 0 or 1, got 0.5 at [1]; draw them, torch.bernoulli(x), "
            "or take Bernoulli(logits, soft=True) for 0 to 1",
        ),
        (
            lambda: Bernoulli([0.0], soft=True).log_prob(torch.tensor([255.0])),
            DomainError,
            "data of a soft Bernoulli lie between 0 and 1, got 255 at [0]; divide",
        ),
        (
            lambda: Categorical(torch.zeros(2, 3)).log_prob(torch.tensor([0, 3])),
            DomainError,
            "data of a Categorical with 3 classes are 0 to 2, got 3 at [1]",
        ),
        (
            lambda: Categorical(torch.zeros(2, 3)).log_prob(torch.zeros(2)),
            TensorError,
            "data of a Categorical are whole numbers, got torch.float32; cast them: x.long()",
        ),
        (lambda: Categorical(torch.tensor(1.0)), TensorError, "logits are [..., classes]"),
        (lambda: Categorical([[0.0, torch.nan]]), DomainError, "logits must be finite, or −inf"),
        (lambda: Bernoulli(torch.zeros(2)).log_prob([0, 1]), TensorError, "x must be a tensor, got list"),  # pyright: ignore
        (
            lambda: Gaussian(torch.zeros(2, dtype=torch.complex64), 1),
            TensorError,
            "mean must be real, got torch.complex64",
        ),
    ],
)
def test_wrong_input(make, kind, message):
    with pytest.raises(LattendError) as caught:
        make()
    assert type(caught.value) is kind
    assert str(caught.value).startswith(message)
