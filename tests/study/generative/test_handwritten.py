"""The digits are those of scikit-learn, split the same way every time; their VAE follows its seed."""

from __future__ import annotations

import sys

import pytest
import torch
from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]

from lattend.errors import LattendError
from lattend.study.generative import VAE, digits
from lattend.study.generative.handwritten import digits_vae
from lattend.study.image_sets import Digits


def test_every_digit_is_there_once_with_its_label() -> None:
    data = digits()
    assert data.train.shape == (1437, 8, 8) and data.test.shape == (360, 8, 8)
    images, labels = load_digits(return_X_y=True)
    mine = torch.cat((data.train, data.test)).flatten(1)
    names = torch.cat((data.train_labels, data.test_labels))
    rows = sorted((*image, label) for image, label in zip(mine.tolist(), names.tolist(), strict=True))
    assert rows == sorted((*map(int, image), int(label)) for image, label in zip(images, labels, strict=True))
    assert data.levels == 17 and int(mine.min()) == 0 and int(mine.max()) == 16


def test_the_split_is_fixed_and_mixed() -> None:
    first, again = digits(), digits()
    assert torch.equal(first.test, again.test)
    assert set(first.test_labels.tolist()) == set(range(10))


def test_ink_from_level_8_on() -> None:
    plain, binary = digits(), digits(binary=True)
    assert binary.levels == 2
    assert torch.equal(binary.train == 1, plain.train >= 8)
    assert torch.equal(binary.test_labels, plain.test_labels)


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(LattendError, match="the digits come with scikit-learn: pip install scikit-learn"):
        digits()


def test_one_of_each() -> None:
    data = digits()
    each = data.one_of_each()
    for digit, image in enumerate(each):
        first = data.test_labels.tolist().index(digit)
        assert torch.equal(image, data.test[first])


def few(binary: bool) -> Digits:
    data = digits(binary)
    return data._replace(train=data.train[:96], test=data.test[:20])


@pytest.mark.parametrize(("binary", "decoder"), [(False, "categorical"), (True, "bernoulli")])
def test_its_decoder_fits_the_pixels(binary: bool, decoder: str) -> None:
    vae = digits_vae(few(binary), epochs=1)
    assert (vae.decoder_name, vae.latent) == (decoder, 16)
    assert vae.history[0].test is not None


def test_a_seed_fixes_everything() -> None:
    def all_of(vae: VAE) -> torch.Tensor:
        return torch.cat([weight.detach().flatten() for weight in vae.parameters()])

    state = torch.get_rng_state()
    first, again, other = (digits_vae(few(False), latent=2, epochs=1, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(all_of(first), all_of(again))
    assert first.history[0].elbo == again.history[0].elbo != other.history[0].elbo
    for mine, others in zip(first.parameters(), other.parameters(), strict=True):
        assert not torch.equal(mine, others)
