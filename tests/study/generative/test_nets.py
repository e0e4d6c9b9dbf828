"""The nets of a VAE have the parameters and the multiplies that their cost says."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

import lattend as lt
from lattend.study.generative import VAE
from lattend.study.generative.nets import MLP, Conv


def parameters(vae: VAE) -> int:
    return sum(weight.numel() for weight in vae.parameters())


def multiplies(vae: VAE, x: torch.Tensor) -> int:
    """Counted by torch while it runs."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        vae.decode(vae.encode(x).mean)
    return counter.get_total_flops() // 2


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 6))
def test_one_hidden_layer_is_the_vae_of_costs(d: int, hidden: int, latent: int) -> None:
    vae, known = VAE(d, latent, hidden=hidden), lt.cost.vae(n=1, d=d, hidden=hidden, latent=latent)
    mine = vae.cost()
    for name in ("multiplies", "adds", "exponentials", "functions", "saved_activations", "parameters"):
        assert getattr(mine, name) == getattr(known, name), name
    assert (
        parameters(vae)
        == known.parameters
        == 3 * hidden * latent + 2 * latent + 2 * hidden + d * (2 * hidden + 1)
    )


@pytest.mark.parametrize(
    "vae",
    [
        VAE((3, 4), 2, hidden=(5, 6)),
        VAE((3, 4), 2, "categorical", levels=7, hidden=5),
        VAE((4, 6), 2, net="conv", hidden=(3,)),
        VAE((4, 6), 2, net="conv", hidden=(3, 5)),
        VAE((2, 8, 4), 3, "categorical", "conv", (3, 5, 4), levels=3),
    ],
    ids=["deep mlp", "levels", "one width", "conv", "three widths, channels, levels"],
)
def test_cost_is_what_runs(vae: VAE) -> None:
    cost = vae.cost()
    assert cost.parameters == parameters(vae)
    sample = 2 * vae.latent  # half and noise are multiplied by numbers that are not counted in products
    x = torch.zeros(1, *vae.shape, dtype=torch.long)
    assert cost.dense.total() - sample == multiplies(vae, x)
    assert cost.needed.total() <= cost.dense.total()


def test_a_convolution_by_hand() -> None:
    """4 × 4 pixels, widths 3 and 5, latent 2."""
    there = 16 * 9 * 1 * 3 + 4 * 9 * 3 * 5  # 4 × 4 and, halved, 2 × 2 outputs
    latents = 20 * 4 + 2 * 20 + 2 * 2  # 5·2·2 numbers to 2 + 2, back from 2, and the sample
    back = 4 * 9 * 5 * 12 + 16 * 9 * 3 * 3 + 16 * 9 * 3 * 1
    cost = VAE((4, 4), 2, net="conv", hidden=(3, 5)).cost()
    assert cost.dense.multiplies == there + latents + back


def test_pixels_keep_their_places() -> None:
    net = Conv((2, 7, 7), 3, 2, (4,))
    planes = net.encoder()[0]  # pyright: ignore[reportIndexIssue]
    x = torch.arange(2 * 7 * 7 * 3.0).view(1, -1)
    seen = planes(x)
    assert seen.shape == (1, 6, 7, 7)
    for channel, row, col, level in ((0, 0, 0, 0), (1, 2, 6, 1), (0, 5, 3, 2)):
        assert seen[0, 3 * channel + level, row, col] == x.view(2, 7, 7, 3)[channel, row, col, level]
    back = net.decoder().net[-1]  # pyright: ignore[reportIndexIssue]
    assert torch.equal(back(seen).flatten(1), x)


def test_dropout_is_for_training() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 9)
    encoder = MLP(9, 2, (30,), dropout=0.5).encoder()
    assert not torch.equal(encoder(x), encoder(x))
    encoder.eval()
    assert torch.equal(encoder(x), encoder(x))
