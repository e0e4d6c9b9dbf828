"""A VAE against torch.distributions, sums over all images, and integrals over z."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import distributions as td

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.study.generative import VAE

KINDS: dict[str, dict[str, Any]] = {
    "bernoulli": {},
    "categorical": {"levels": 3},
    "gaussian": {"noise": 0.5},
}


def images(kind: str, many: int = 6, shape: tuple[int, ...] = (4, 2)) -> torch.Tensor:
    noise = torch.Generator().manual_seed(1)
    if kind == "gaussian":
        return torch.randn(many, *shape, generator=noise, dtype=torch.float64)
    return torch.randint(3 if kind == "categorical" else 2, (many, *shape), generator=noise)


def make(kind: str, net: str = "mlp", shape: tuple[int, ...] = (4, 2), latent: int = 2, **more: Any) -> VAE:
    torch.manual_seed(0)
    hidden = (5, 4) if net == "conv" else 7
    vae = VAE(shape, latent, kind, net, hidden, **KINDS[kind], **more).double()
    with torch.no_grad():
        vae.decoder.bias.normal_()
    return vae


def by_hand(vae: VAE, kind: str, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """E_q[log p(x|z)] and the KL, [batch], in torch's own distributions."""
    q = vae.encode(x)
    normal = td.Normal(q.mean, q.log_variance.exp().sqrt())
    z = normal.loc + normal.scale * noise
    flat = vae.decoder(z.flatten(0, 1)).unflatten(0, z.shape[:2]).unflatten(2, (*vae.shape, -1))
    given = {
        "bernoulli": lambda: td.Bernoulli(logits=flat[..., 0]),
        "categorical": lambda: td.Categorical(logits=flat),
        "gaussian": lambda: td.Normal(flat[..., 0], 0.5**0.5),
    }[kind]()
    log_p = given.log_prob(x.double() if kind == "bernoulli" else x).flatten(2).sum(-1)
    prior = td.Normal(torch.zeros_like(q.mean), torch.ones_like(q.mean))
    return log_p.mean(0), td.kl_divergence(normal, prior).sum(-1)


@pytest.mark.parametrize("net", ["mlp", "conv"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_and_its_gradient_are_torchs(kind: str, net: str) -> None:
    vae, x = make(kind, net), images(kind)
    bound = vae.elbo(x, samples=5, generator=torch.Generator().manual_seed(3))
    noise = torch.randn(5, 6, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    reconstruction, kl = by_hand(vae, kind, x, noise)
    torch.testing.assert_close(bound.reconstructions, reconstruction)
    torch.testing.assert_close(bound.kls, kl)
    weights = list(vae.parameters())
    mine = torch.autograd.grad(bound.loss, weights)
    theirs = torch.autograd.grad((kl - reconstruction).mean(), weights)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b)
        assert a.abs().max() > 0


def log_p(vae: VAE, x: torch.Tensor) -> torch.Tensor:
    """Log p(x) of a VAE with one latent, by the trapezoid rule over z."""
    z = torch.linspace(-9, 9, 4001, dtype=torch.float64)
    logs = torch.stack([vae.decode(z[:, None]).log_prob(one).flatten(1).sum(-1) for one in x], 1)
    logs = logs + td.Normal(0.0, 1.0).log_prob(z)[:, None] + math.log(18 / 4000)
    return logs.logsumexp(0)


def test_bounds_stay_below_log_p_and_close_in() -> None:
    vae = make("bernoulli", shape=(3,), latent=1)
    with torch.no_grad():
        for weight in vae.decoder.net.parameters():
            weight.mul_(3)  # so that the posterior is far from a Gaussian
        x = torch.cartesian_prod(*[torch.arange(2)] * 3)
        exact = log_p(vae, x)
        assert exact.exp().sum().item() == pytest.approx(1, abs=1e-9)  # all images there are
        noise = torch.Generator().manual_seed(0)
        elbo = vae.elbo(x, samples=4000, generator=noise)
        tighter = vae.importance(x, k=200, samples=100, generator=noise)
        assert elbo.standard_error is not None and tighter.standard_error is not None
    truth = exact.mean().item()
    assert elbo.value.item() < tighter.value.item() < truth + 4 * tighter.standard_error
    assert truth - elbo.value.item() > 20 * elbo.standard_error
    assert truth - tighter.value.item() < 0.02


def test_beta_and_free_bits_change_the_loss_alone() -> None:
    x = images("bernoulli")
    plain, other = make("bernoulli"), make("bernoulli", beta=3.0, free_bits=2.0)
    a, b = (vae.elbo(x, generator=torch.Generator().manual_seed(0)) for vae in (plain, other))
    assert a.value.item() == b.value.item()
    each = other.encode(x)
    told = ((each.variance - each.log_variance - 1 + each.mean**2) / 2).mean(0)
    assert b.loss.item() == pytest.approx(3 * told.clamp_min(2.0).sum().item() - b.reconstruction.item())


def test_calling_it_gives_the_bound() -> None:
    vae, x = make("bernoulli"), images("bernoulli")
    torch.manual_seed(2)
    called = vae(x)
    torch.manual_seed(2)
    assert called.loss.item() == vae.elbo(x).loss.item()


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_of_what_it_makes(kind: str) -> None:
    vae, x = make(kind, "conv", (2, 4, 6)), images(kind, shape=(2, 4, 6))
    assert vae.encode(x).mean.shape == (6, 2)
    assert vae.decode(torch.zeros(3, 5, 2, dtype=torch.float64)).shape == (3, 5, 2, 4, 6)
    assert vae.sample(5).shape == vae.sample(5, mean=True).shape == (5, 2, 4, 6)
    assert vae.sample(5).is_floating_point() == (kind != "categorical")
    assert vae.reconstruct(x).shape == vae.reconstruct(x, mean=False).shape == x.shape
    line = vae.interpolate(x[0], x[1], steps=3)
    ends = vae.reconstruct(x[:2])
    torch.testing.assert_close(line[0], ends[0])
    torch.testing.assert_close(line[2], ends[1])
    middle = vae.pixels.mean(vae._numbers(vae.encode(x[:2]).mean.mean(0)))
    torch.testing.assert_close(line[1], middle)


def test_samples_follow_their_seed_and_the_decoder() -> None:
    vae = make("categorical", shape=(1,), latent=1)
    first, again, other = (vae.sample(400, generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)
    chances = log_p(vae, torch.arange(3)[:, None]).exp()
    many = vae.sample(40_000, generator=torch.Generator().manual_seed(0))
    shares = torch.bincount(many.flatten(), minlength=3) / 40_000
    spread = (chances * (1 - chances) / 40_000).sqrt()
    assert ((shares - chances).abs() < 4 * spread).all()


@pytest.mark.parametrize("net", ["mlp", "conv"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_starts_at_each_pixel_on_its_own(kind: str, net: str) -> None:
    more = {"noise": None} if kind == "gaussian" else {}
    torch.manual_seed(0)
    vae = VAE((2, 4, 2), 2, kind, net, (4,), **{**KINDS[kind], **more}).double()
    x = images(kind, 50, (2, 4, 2))
    with torch.no_grad():
        for weight in vae.decoder.net.parameters():
            weight.zero_()
    vae.start(x)
    given = vae.decode(torch.zeros(2, dtype=torch.float64))
    if kind == "bernoulli":
        expected = (x.sum(0) + 1) / 52
        torch.testing.assert_close(given.mean, expected.double())  # pyright: ignore[reportAttributeAccessIssue]
    elif kind == "categorical":
        expected = torch.stack([(x == level).sum(0) + 1 for level in range(3)], -1) / 53
        torch.testing.assert_close(given.probabilities, expected.double())  # pyright: ignore[reportAttributeAccessIssue]
    else:
        torch.testing.assert_close(given.mean, x.mean(0))  # pyright: ignore[reportAttributeAccessIssue]
        assert vae.pixels.log_variance.exp().item() == pytest.approx(x.var(0, correction=0).mean().item())  # pyright: ignore


def test_what_it_says_of_itself() -> None:
    vae = VAE((8, 8), 2, "categorical", levels=17)
    assert repr(vae).startswith("VAE(\n  shape=(8, 8), latent=2, decoder='categorical', net='mlp'")
    assert vae.hidden == (256,) and VAE((8, 8), 2, net="conv").hidden == (32, 64)
    assert str(vae.history) == "not trained yet"


@pytest.mark.parametrize(
    ("arguments", "more", "error", "said"),
    [
        (((8, 8), 0), {}, DomainError, "latent must be a whole number from 1 on, got 0"),
        (((8, 0), 2), {}, DomainError, "a number in shape must be a whole number from 1 on, got 0"),
        (((), 2), {}, DomainError, "shape needs at least one number"),
        (((8, 8), 2, "poisson"), {}, NamingError, "one of bernoulli, categorical, gaussian, not 'poisson'"),
        (((8, 8), 2, "bernoulli", "rnn"), {}, NamingError, "net is one of mlp, conv, not 'rnn'"),
        (((8, 8), 2, "categorical"), {}, NamingError, "a categorical decoder needs levels, how many a pixel"),
        (((8, 8), 2), {"levels": 2}, NamingError, "a bernoulli decoder has no levels; leave them out"),
        (
            ((8, 8), 2, "categorical"),
            {"levels": 1},
            DomainError,
            "levels must be a whole number from 2 on, g",
        ),
        (((8, 8), 2), {"noise": 1.0}, NamingError, "a bernoulli decoder has no noise; leave it out"),
        (
            ((8, 8), 2, "gaussian"),
            {"noise": 0.0},
            DomainError,
            "noise must be a variance above 0, got 0.0",
        ),
        (((8, 8), 2), {"beta": -1.0}, DomainError, "beta must be at least 0, got -1.0"),
        (((8, 8), 2), {"free_bits": math.nan}, DomainError, "free_bits must be at least 0, got nan"),
        (((8, 8), 2), {"dropout": 1.0}, DomainError, "dropout must be a share from 0 to below 1, got 1.0"),
        (((8, 8), 2), {"beta": "a"}, DomainError, "beta must be at least 0, got 'a'"),
        (((8, 8), 2), {"free_bits": None}, DomainError, "free_bits must be at least 0, got None"),
        (((8, 8), 2), {"beta": torch.ones(2)}, DomainError, "beta must be at least 0, got tensor("),
        (((8, 8), 2), {"dropout": "a"}, DomainError, "dropout must be a share from 0 to below 1, got 'a'"),
        (((8, 8), 2, "gaussian"), {"noise": "a"}, DomainError, "a variance above 0, got 'a'"),
        (((8, 8), 2, "categorical"), {"levels": "a"}, DomainError, "a whole number from 2 on, got 'a'"),
        (((8, 8), 2, "categorical"), {"levels": 2.5}, DomainError, "a whole number from 2 on, got 2.5"),
        ((8.0, 2), {}, DomainError, "a number in shape must be a whole number from 1 on, got 8.0"),
        ((None, 2), {}, DomainError, "a number in shape must be a whole number from 1 on, got None"),
        (((8, 8), 2), {"net": [], "hidden": 3}, NamingError, "net is one of mlp, conv, not []"),
        (
            ((64,), 2),
            {"net": "conv"},
            DomainError,
            "(rows, cols) or (channels, rows, cols), got (64,)",
        ),
        (
            ((6, 9), 2),
            {"net": "conv"},
            DomainError,
            "2 widths halve an image once, and 6 × 9 does not divide by 2",
        ),
    ],
)
def test_what_it_refuses(arguments: Any, more: Any, error: type[LattendError], said: str) -> None:
    with pytest.raises(error) as raised:
        VAE(*arguments, **more)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "x", "error", "said"),
    [
        (
            "bernoulli",
            torch.full((1, 4, 2), 0.5),
            DomainError,
            "a Bernoulli decoder are 0 or 1, got 0.5 at [0,",
        ),
        (
            "categorical",
            torch.full((1, 4, 2), 3),
            DomainError,
            "with 3 levels are 0 to 2, got 3 at [0, 0, ",
        ),
        (
            "categorical",
            torch.zeros(1, 4, 2),
            TensorError,
            "whole numbers, got torch.float32; cast them: x.l",
        ),
        (
            "gaussian",
            torch.zeros(1, 4, 2, dtype=torch.long),
            TensorError,
            "floating, got torch.int64; cast",
        ),
        (
            "gaussian",
            torch.full((1, 4, 2), math.inf),
            DomainError,
            "a Gaussian decoder must be finite, got inf",
        ),
        (
            "bernoulli",
            torch.zeros(4, 2),
            TensorError,
            "x must be [batch, 4, 2] with at least one example",
        ),
        ("bernoulli", torch.zeros(0, 4, 2), TensorError, "with at least one example, got [0, 4, 2]"),
        ("bernoulli", torch.zeros(1, 4, 2) * 1j, TensorError, "x must be real, got torch.complex64"),
        ("bernoulli", [[0, 1]], TensorError, "x must be a tensor [batch, 4, 2], got list"),
    ],
)
def test_data_it_refuses(kind: str, x: Any, error: type[LattendError], said: str) -> None:
    vae = make(kind)
    for bound in (vae.elbo, vae.importance):
        with pytest.raises(error) as raised:
            bound(x)
        assert said in str(raised.value)


def test_latents_and_ends_it_refuses() -> None:
    vae = make("bernoulli")
    with pytest.raises(TensorError, match=r"z is \[\.\.\., 2\] for this VAE, got shape \(3,\)"):
        vae.decode(torch.zeros(3))
    with pytest.raises(TensorError, match=r"b is one image \[4, 2\], got \[1, 4, 2\]"):
        vae.interpolate(torch.zeros(4, 2), torch.zeros(1, 4, 2))
    with pytest.raises(TensorError, match=r"z is \[\.\.\., 2\] for this VAE, got shape \(1,\)"):
        vae.decode([1])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TensorError, match=r"a must be a tensor \[4, 2\], got list"):
        vae.interpolate([0], [1])  # pyright: ignore[reportArgumentType]
    with pytest.raises(DomainError, match="n must be a whole number from 1 on, got 0"):
        vae.sample(0)


def test_latents_of_any_type() -> None:
    vae = VAE((4, 2), 2, hidden=3)
    like = vae.decode(torch.zeros(1, 2)).log_prob(torch.ones(1, 4, 2))
    for kind in (torch.long, torch.double, torch.bfloat16):
        result = vae.decode(torch.zeros(1, 2, dtype=kind)).log_prob(torch.ones(1, 4, 2))
        assert torch.equal(result, like)


def test_bfloat16_and_its_checkpoint(tmp_path: Any) -> None:
    vae = VAE(3, 2, "gaussian", hidden=3).bfloat16()
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)).bfloat16()
    vae.fit(x, 2, test=x, checkpoint=tmp_path / "run.pt")
    result = vae.elbo(x, samples=4)
    assert result.value.dtype == torch.float32 and result.value.isfinite()


def test_it_is_found_by_its_name() -> None:
    assert lt.study.generative.VAE is VAE
