"""What `lattend elbo` shows; tests/cli/test_elbo.py has the rest."""

import subprocess
import sys

import pytest
import torch

import lattend as lt
from lattend.errors import DomainError, NamingError
from lattend.study.generative import handwritten as shown
from lattend.study.generative.handwritten import show_digits
from lattend.study.generative.linear_picture import show_linear
from lattend.study.generative.training import Epoch


def test_a_seed_is_a_model_and_its_data():
    """Pinned: W, z and the noise drawn in turn by torch's generator, log p(x) by scipy's normal density."""
    result = show_linear(4, 2, 0.5, 6, k=(1, 2), samples=5, seed=3).json()
    assert result["log_prob"] == pytest.approx(-4.420427069474, abs=1e-11)
    assert result == show_linear(4, 2, 0.5, 6, k=(1, 2), samples=5, seed=3).json()


def test_rows_are_fitted_and_the_first_shown():
    rows = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = show_linear(latent=2, examples=7, rows=rows.numpy(), k=(1,), samples=2)
    fitted = lt.study.generative.LinearGaussian.fit(rows, 2)
    assert result.json()["log_prob"] == pytest.approx(fitted.log_prob(rows[:7]).mean().item())


def test_what_is_said_of_a_z_that_tells_little(monkeypatch):
    data = lt.study.generative.digits(binary=True)
    monkeypatch.setattr(shown, "digits", lambda binary: data._replace(train=data.train[:64]))
    monkeypatch.setattr(shown, "K", 2)
    told = []
    result = show_digits(latent=2, epochs=1, binary=True, progress=told.append)
    kl = result.json()["elbo"]["kl"]
    assert kl < 0.5 and dict(result.facts)["z"] == f"tells little yet: KL {kl:.2f} nats; more epochs help"
    assert [type(part) for part in told] == [Epoch, str]
    monkeypatch.setattr(shown, "LITTLE", kl / 2)
    assert "z" not in dict(show_digits(latent=2, epochs=1, binary=True).facts)


def test_wrong_input():
    with pytest.raises(NamingError, match=r"the picture is one of samples, .*, not 'all'"):
        show_digits(picture="all")
    with pytest.raises(NamingError, match="the plane is that of two latents, got 16"):
        show_digits(picture="plane")
    with pytest.raises(DomainError, match="epochs must be a whole number from 1 on, got 0"):
        show_digits(epochs=0)
    with pytest.raises(DomainError, match="examples must be a whole number from 1 on, got 0"):
        show_linear(examples=0)


def test_the_linear_model_loads_only_what_it_needs():
    """torch's own broadcast_shapes would load sympy, the digits the costs of layers."""
    code = (
        "import sys; from lattend.study.generative.linear_picture import show_linear; "
        "show_linear(k=(1, 2), samples=2).terminal(80); "
        "print([name for name in ('sympy', 'islpy', 'lattend.cost', 'torch._dynamo') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
