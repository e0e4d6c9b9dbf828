"""What `lattend elbo` shows; tests/cli/test_elbo.py has the rest."""

import pytest
import torch

import lattend as lt
from lattend.errors import DomainError, NamingError
from lattend.generative.shown import show_digits, show_linear


def test_a_seed_is_a_model_and_its_data():
    generator = torch.Generator().manual_seed(3)
    model = lt.generative.LinearGaussian.random(4, 2, 0.5, generator)
    x = model.sample(6, generator)
    expected = lt.generative.draw_linear(model, x, k=(1, 2), samples=5, seed=3)
    found = show_linear(4, 2, 0.5, 6, k=(1, 2), samples=5, seed=3)
    assert found.json() == expected.json()


def test_rows_are_fitted_and_the_first_shown():
    rows = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = show_linear(latent=2, examples=7, rows=rows.numpy(), k=(1,), samples=2)
    fitted = lt.generative.LinearGaussian.fit(rows, 2)
    assert found.json()["log_prob"] == pytest.approx(fitted.log_prob(rows[:7]).mean().item())


def test_wrong_input():
    with pytest.raises(NamingError, match=r"the picture is one of samples, .*, not 'all'"):
        show_digits(picture="all")
    with pytest.raises(NamingError, match="the plane is that of two latents, got 16"):
        show_digits(picture="plane")
    with pytest.raises(DomainError, match="epochs must be a whole number from 1 on, got 0"):
        show_digits(epochs=0)
    with pytest.raises(DomainError, match="examples must be a whole number from 1 on, got 0"):
        show_linear(examples=0)
