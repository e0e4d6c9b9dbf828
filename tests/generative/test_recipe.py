"""The VAE of the digits: which decoder, and the same run from the same seed."""

from __future__ import annotations

import pytest
import torch

from lattend.generative import digits
from lattend.generative.data import Digits
from lattend.generative.recipe import digits_vae


def few(binary: bool) -> Digits:
    data = digits(binary)
    return data._replace(train=data.train[:96], test=data.test[:20])


@pytest.mark.parametrize(("binary", "decoder"), [(False, "categorical"), (True, "bernoulli")])
def test_its_decoder_fits_the_pixels(binary: bool, decoder: str) -> None:
    vae = digits_vae(few(binary), epochs=1)
    assert (vae.decoder_name, vae.latent) == (decoder, 16)
    assert vae.history[0].test is not None


def test_a_seed_fixes_everything() -> None:
    state = torch.get_rng_state()
    first, again, other = (digits_vae(few(False), latent=2, epochs=1, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(first.decoder.bias, again.decoder.bias)
    assert not torch.equal(first.decoder.bias, other.decoder.bias)
