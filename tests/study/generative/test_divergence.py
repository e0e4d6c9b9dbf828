"""KLs against torch.distributions and numerical integration; sampled ones against their own errors."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from study.generative.enumerated import expectation
from torch import distributions as td

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError
from lattend.study.generative.divergence import closed

Gaussian, Bernoulli, Categorical, kl = (
    lt.study.generative.Gaussian,
    lt.study.generative.Bernoulli,
    lt.study.generative.Categorical,
    lt.study.generative.kl,
)
F64 = torch.float64


def gaussian(generator: torch.Generator, d: int, full: bool, *batch: int):
    mean = torch.randn(*batch, d, generator=generator, dtype=F64)
    root = torch.randn(*batch, d, d + 2, generator=generator, dtype=F64)
    spread = root @ root.mT / d + 0.1 * torch.eye(d, dtype=F64)
    if full:
        return Gaussian(mean, covariance=spread), td.MultivariateNormal(mean, spread)
    variance = spread.diagonal(dim1=-2, dim2=-1)
    return Gaussian(mean, variance), td.MultivariateNormal(mean, variance.diag_embed())


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(1, 4), st.booleans(), st.booleans(), st.booleans())
def test_gaussians(seed, d, full_q, full_p, batched):
    g = torch.Generator().manual_seed(seed)
    q, torch_q = gaussian(g, d, full_q, 3)
    p, torch_p = gaussian(g, d, full_p, *((3,) if batched else ()))
    result = kl(q, p)
    torch.testing.assert_close(result.value, td.kl_divergence(torch_q, torch_p))
    assert result.closed and result.standard_error.abs().max() == 0
    torch.testing.assert_close(kl(torch_q, p).value, result.value)
    torch.testing.assert_close(kl(q, torch_p).value, result.value)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(1, 5))
def test_discrete(seed, classes):
    a, b = 2 * torch.randn(2, 3, classes, generator=torch.Generator().manual_seed(seed), dtype=F64)
    torch.testing.assert_close(
        kl(Categorical(a), Categorical(b)).value,
        td.kl_divergence(td.Categorical(logits=a), td.Categorical(logits=b)),
    )
    torch.testing.assert_close(
        kl(Bernoulli(a), Bernoulli(b)).value,
        td.kl_divergence(td.Bernoulli(logits=a), td.Bernoulli(logits=b)),
    )


def test_by_integration():
    result = kl(Gaussian([0.4], 0.3), Gaussian([-0.2], 1.7)).value.item()

    def density(z, mean, variance):
        return math.exp(-((z - mean) ** 2) / 2 / variance) / math.sqrt(2 * math.pi * variance)

    expected, _ = integrate.quad(
        lambda z: density(z, 0.4, 0.3) * math.log(density(z, 0.4, 0.3) / density(z, -0.2, 1.7)), -6, 6
    )
    assert result == pytest.approx(expected, rel=1e-6)


def test_classes_that_never_come():
    never = torch.tensor([0.0, 0.0, -torch.inf], requires_grad=True)
    uniform = torch.zeros(3)
    result = kl(Categorical(never), Categorical(uniform)).value
    assert result.item() == pytest.approx(math.log(3 / 2))
    result.backward()
    assert never.grad is not None and never.grad[:2].isfinite().all()
    assert kl(Categorical(never.detach()), Categorical(never.detach())).value.item() == 0
    assert kl(Categorical(uniform), Categorical(never.detach())).value.item() == torch.inf


def test_nearly_equal_gaussians_keep_their_digits():
    result = kl(Gaussian(torch.zeros(1, dtype=F64), log_variance=torch.tensor([1e-6], dtype=F64)),
               Gaussian(torch.zeros(1, dtype=F64), 1))  # fmt: skip
    assert result.value.item() == pytest.approx(1e-12 / 4, rel=1e-3)  # (e^r − 1 − r) / 2 ≈ r² / 4


def test_gradients():
    g = torch.Generator().manual_seed(5)
    values = [t.requires_grad_() for t in torch.randn(4, 2, 3, generator=g, dtype=F64)]
    assert torch.autograd.gradcheck(
        lambda a, b, c, d: kl(Gaussian(a, log_variance=b), Gaussian(c, log_variance=d)).value, values
    )
    root = torch.randn(3, 3, generator=g, dtype=F64).requires_grad_()

    def full(a, b, c, root):
        p = Gaussian(c, covariance=root @ root.mT + torch.eye(3, dtype=F64))
        return kl(Gaussian(a, log_variance=b), p).value

    assert torch.autograd.gradcheck(full, (*values[:3], root))
    for kind in (Bernoulli, Categorical):
        assert torch.autograd.gradcheck(lambda a, b, kind=kind: kl(kind(a), kind(b)).value, values[:2])


def test_pairs_that_torch_knows():
    q, p = td.Laplace(torch.zeros(2, 3), 1.5), td.Normal(torch.ones(3), 2.0)
    result = kl(q, p)
    assert result.closed
    torch.testing.assert_close(result.value, td.kl_divergence(q, p))
    whole = kl(td.Independent(q, 1), td.Independent(p, 1))
    torch.testing.assert_close(whole.value, result.value.sum(-1))
    torch.testing.assert_close(kl(q, Gaussian([1.0, 1.0, 1.0], 4)).value, whole.value)
    low = td.LowRankMultivariateNormal(torch.zeros(2, 3), torch.ones(2, 3, 1), torch.ones(2, 3))
    whole = td.MultivariateNormal(torch.zeros(3), torch.eye(3))
    torch.testing.assert_close(kl(low, whole).value, td.kl_divergence(low, whole))
    beta = td.Beta(torch.tensor([2.0, 3.0]), 1.5)
    torch.testing.assert_close(kl(beta, td.Beta(1.0, 1.0)).value, td.kl_divergence(beta, td.Beta(1.0, 1.0)))


def of_torch():
    """Pairs of each kind: single numbers, and events of one axis and of two."""
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 4, 3, generator=g, dtype=F64)
    normals = td.Normal(a, 1.0), td.Normal(b, 2.0)
    coins = td.Bernoulli(logits=a), td.Bernoulli(logits=b)
    yield normals
    yield td.Normal(torch.ones(3, dtype=F64), 1.0), td.Normal(torch.zeros(3, dtype=F64), 1.0)
    yield coins
    yield td.Categorical(logits=a), td.Categorical(logits=b)
    for pair in (normals, coins, (td.Laplace(a, 1.0), td.Laplace(b, 1.5))):
        yield tuple(td.Independent(one, 1) for one in pair)
        yield tuple(td.Independent(one, 2) for one in pair)
    yield td.OneHotCategorical(logits=a), td.OneHotCategorical(logits=b)
    yield td.Dirichlet(a.exp()), td.Dirichlet(b.exp())


@pytest.mark.parametrize("pair", list(of_torch()), ids=str)
def test_the_shape_is_torchs_in_closed_form_and_from_samples(pair):
    expected = td.kl_divergence(pair[0], pair[1])
    torch.testing.assert_close(kl(pair[0], pair[1], "closed").value, expected)
    torch.manual_seed(0)
    result = kl(pair[0], pair[1], "sample", samples=2000)
    assert result.value.shape == expected.shape
    assert ((result.value - expected).abs() < 4.5 * result.standard_error + 1e-9).all()


def test_batches_of_q_and_p():
    """Where p has more axes than q, or q than p, there is one number for each of their common batch."""
    g = torch.Generator().manual_seed(0)
    one, many = torch.randn(2, generator=g, dtype=F64), torch.randn(5, 2, generator=g, dtype=F64)
    for make in (lambda t: Gaussian(t, 1), Categorical, lambda t: Gaussian(t, covariance=torch.eye(2))):
        for q, p in ((make(one), make(many)), (make(many), make(one)), (make(many), make(many[:1]))):
            exact = kl(q, p, "closed").value
            for samples in (5, 4000):
                result = kl(q, p, "sample", samples=samples, generator=g)
                assert result.value.shape == exact.shape == (5,)
            assert ((result.value - exact).abs() < 4.5 * result.standard_error + 1e-9).all()


def test_mixed_types():
    q, p = Gaussian([0.0, 1.0], covariance=torch.eye(2)), Gaussian(torch.zeros(2, dtype=F64), 1)
    assert kl(q, p).value.item() == pytest.approx(0.5) and kl(p, q).value.dtype == F64


def mixture() -> td.MixtureSameFamily:
    centres = td.Independent(td.Normal(torch.tensor([[-1.0, 0.0], [2.0, 1.0]], dtype=F64), 0.7), 1)
    return td.MixtureSameFamily(td.Categorical(torch.tensor([0.4, 0.6], dtype=F64)), centres)


def test_samples_where_there_is_no_closed_form():
    q = Gaussian(torch.tensor([[0.5, 0.0], [1.0, 1.0]], dtype=F64), 0.6)
    result = kl(q, mixture(), samples=4000, generator=torch.Generator().manual_seed(0))
    assert not result.closed and result.value.shape == (2,)
    for example in range(2):
        centre = q.mean[example].tolist()
        grid = torch.linspace(-5, 5, 61, dtype=F64)
        a, b = torch.meshgrid(grid + centre[0], grid + centre[1], indexing="ij")
        z = torch.stack((a, b), -1)
        log_q = Gaussian(q.mean[example], 0.6).log_prob(z)
        expected = (log_q.exp() * (log_q - mixture().log_prob(z))).sum().item() * (10 / 60) ** 2
        assert abs(result.value[example].item() - expected) < 4.5 * result.standard_error[example].item()
        assert 0 < result.standard_error[example].item() < 0.1


def test_sampled_and_closed_agree():
    g = torch.Generator().manual_seed(1)
    q, _ = gaussian(g, 3, True, 2)
    p, _ = gaussian(g, 3, False)
    result = kl(q, p, "sample", samples=20_000, generator=g)
    assert not result.closed
    assert ((result.value - kl(q, p).value).abs() < 4.5 * result.standard_error).all()
    repeats = torch.stack([kl(q, p, "sample", samples=50, generator=g).value for _ in range(400)])
    claimed = torch.stack([kl(q, p, "sample", samples=50, generator=g).standard_error for _ in range(400)])
    ratio = repeats.std(0) / claimed.square().mean(0).sqrt()
    assert ((ratio > 0.85) & (ratio < 1.15)).all()  # 400 repeats know a deviation to 3.5 %


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_gradient_of_draws_that_carry_none(samples):
    """Its mean over all lists of draws is the gradient of the closed form: exactly, not on average."""
    logits = torch.tensor([[0.3, -1.0, 0.8]], dtype=F64, requires_grad=True)
    p = Categorical(torch.tensor([0.0, 0.5, -0.5], dtype=F64))
    expected = kl(Categorical(logits), p, "closed").value.sum()
    result = expectation(logits, samples, lambda q: kl(q, p, "sample", samples=samples).value.sum())
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(*(torch.autograd.grad(t, logits)[0] for t in (result, expected)))


def test_one_number_for_each_latent():
    q = Gaussian([[1.0, 2.0], [0.0, 0.0]], 1)
    result = closed(q, Gaussian([0.0, 0.0], 1))
    assert result is not None and result.tolist() == [[0.5, 2.0], [0.0, 0.0]]


def test_shown():
    assert repr(kl(Gaussian([1.0], 1), Gaussian([0.0], 1))) == "<KL 0.5000 nats, closed form>"
    assert repr(kl(Gaussian([[1.0]], 1), Gaussian([0.0], 1))) == "<KL of shape (1,), closed form>"
    sampled = kl(Gaussian([1.0], 1), Gaussian([0.0], 1), "sample", generator=torch.Generator().manual_seed(0))
    assert repr(sampled).endswith(" nats, from samples>") and "±" in repr(sampled)
    one = kl(Gaussian([0.0], 1), Gaussian([0.0], 1), "sample", samples=1)
    assert one.standard_error.isnan() and repr(one) == "<KL 0.0000 nats, from samples>"


def test_wrong_input():
    q, p = Gaussian([0.0, 0.0], 1), Gaussian([0.0, 0.0, 0.0], 1)
    with pytest.raises(TensorError, match=r"q has shape \(2,\) and p \(3,\); give both the same"):
        kl(q, p)
    for classes in (1, 4):
        with pytest.raises(TensorError, match=f"q has 3 classes and p {classes}; give both the same"):
            kl(Categorical(torch.zeros(3)), Categorical(torch.zeros(classes)))
    with pytest.raises(NamingError, match="how is one of auto, closed, sample, not 'exact'"):
        kl(q, q, "exact")
    with pytest.raises(
        DomainError, match=r"KL\(Gaussian ‖ MixtureSameFamily\) has no closed form here; take"
    ):
        kl(q, mixture(), "closed")
    with pytest.raises(TensorError, match=r"p must be a distribution, such as .*, got Tensor"):
        kl(q, torch.zeros(2))
    with pytest.raises(NamingError, match=r"takes no generator, and this is torch\.distributions\.Laplace"):
        kl(td.Laplace(0.0, 1.0), mixture(), generator=torch.Generator())
    with pytest.raises(TensorError, match=r"q has shape \(3,\) and p \(2,\); give both the same"):
        kl(td.Laplace(torch.zeros(3), 1.0), Gaussian([0.0, 0.0], 1))
    with pytest.raises(TensorError, match=r"q has shape \(2,\) and p \(3,\); give both the same"):
        kl(q, td.Laplace(torch.zeros(3), 1.0, validate_args=False), "sample", samples=5)
    with pytest.raises(DomainError, match="samples must be a whole number from 1 on, got 0"):
        kl(q, q, "sample", samples=0)
    with pytest.raises(DomainError, match=r"torch\.distributions\.Beta: Expected value argument"):
        beta = td.Beta(torch.tensor([1.0]), 1.0, validate_args=True)  # torch.compile turns the default off
        kl(Gaussian([3.0], 1), beta, "sample")


def entropy(a: float, b: float) -> float:
    """KL of one chance from another, as it is written: 0 log 0 is 0, log 0 is −∞."""
    pairs = ((a, b), (1 - a, 1 - b))
    return sum(x * (math.log(x / y) if y else math.inf) for x, y in pairs if x)


CHANCES = (0.0, 1e-30, 0.25, 0.5, 1.0)


@pytest.mark.parametrize("a", CHANCES)
@pytest.mark.parametrize("b", CHANCES)
def test_supports_that_differ(a, b):
    """torch makes logits of chances by clamping them; a KL of what never comes is infinite, or nothing."""
    wanted = pytest.approx(entropy(a, b), rel=1e-12)
    first, second = (torch.tensor(x, dtype=F64) for x in (a, b))
    assert kl(td.Bernoulli(first), td.Bernoulli(second)).value.item() == wanted
    assert kl(td.Binomial(3, first), td.Binomial(3, second)).value.item() / 3 == wanted
    rows = [torch.stack((x, 1 - x)) for x in (first, second)]
    assert kl(td.Categorical(rows[0]), td.Categorical(rows[1])).value.item() == wanted
    logits = [x.log() - (-x).log1p() for x in (first, second)]
    assert kl(Bernoulli(logits[0]), Bernoulli(logits[1])).value.item() == wanted
    assert kl(Categorical(rows[0].log()), Categorical(rows[1].log())).value.item() == wanted
    if a and b:  # 1/a trials until the first success
        assert kl(td.Geometric(first), td.Geometric(second)).value.item() * a == wanted


def test_what_underflows_is_no_zero():
    """q takes a class with a chance that float32 has not, and p never does: infinite all the same."""
    q, p = torch.tensor([0.0, -200.0]), torch.tensor([0.0, -torch.inf])
    assert kl(Categorical(q), Categorical(p)).value.item() == math.inf
    assert kl(Bernoulli(-200.0), Bernoulli(-torch.inf)).value.item() == math.inf
    logits = torch.tensor(40.0)  # whose chance is 1 in float32; torch keeps what was given
    given_ = td.Bernoulli(logits=logits)
    assert given_.probs == 1
    assert kl(Bernoulli(0.0), given_).value.item() == pytest.approx(20 - math.log(2), rel=1e-6)


def test_gradients_where_supports_differ():
    chances = torch.tensor([0.0, 0.3, 1.0], dtype=F64, requires_grad=True)
    result = kl(td.Bernoulli(chances), td.Bernoulli(torch.full((3,), 0.5, dtype=F64))).value
    (gradient,) = torch.autograd.grad(result.sum(), chances)
    assert gradient.isfinite().all() and gradient[1].item() == pytest.approx(math.log(0.3 / 0.7))
    result = kl(Bernoulli(torch.zeros(3)), Bernoulli(torch.tensor([-torch.inf, 0.0, torch.inf]))).value
    assert result.tolist() == [math.inf, 0, math.inf]


def test_sure_numbers_have_log_probabilities():
    """A chance of 0 or 1, as ours and as torch's, whose clamped one is close to nothing but not it."""
    x = torch.tensor([0.0, 1.0])
    assert Bernoulli([-torch.inf, torch.inf]).log_prob(x).tolist() == [0, 0]
    assert Bernoulli([torch.inf, -torch.inf]).log_prob(x).tolist() == [-math.inf] * 2
    sampled = kl(td.Bernoulli(torch.tensor(0.5)), td.Bernoulli(torch.tensor(0.0)), how="sample")
    assert sampled.value.item() == math.inf
