"""What `lattend elbo` shows: a linear-Gaussian model, at random or of given rows, and a VAE of the digits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from lattend.draw.figure import Figure
from lattend.errors import NamingError
from lattend.generative.checks import count
from lattend.generative.data import Digits, digits
from lattend.generative.estimates import many, number
from lattend.generative.linear import LinearGaussian
from lattend.generative.linear_picture import KS, draw_linear
from lattend.generative.recipe import EPOCHS, digits_vae
from lattend.generative.training import Epoch
from lattend.generative.vae import VAE

PICTURES = ("samples", "rebuilt", "between", "latent", "plane", "training")
K, REPEATS = 128, 2  # of the bound on test digits


def show_linear(
    size: int = 6,
    latent: int = 2,
    noise: float = 1.0,
    examples: int = 5,
    *,
    rows: Any = None,
    k: Sequence[int] = KS,
    samples: int = 1000,
    seed: int = 0,
) -> Figure:
    """`draw_linear` of a model drawn at random and so many of its examples.

    With `rows` [many, D] the model is the likeliest for them, and the first of them are the examples.
    """
    generator = torch.Generator().manual_seed(seed)
    if rows is None:
        model = LinearGaussian.random(size, latent, noise, generator)
        x = model.sample(count("examples", examples), generator)
    else:
        data = torch.as_tensor(rows, dtype=torch.float64)
        model, x = LinearGaussian.fit(data, latent), data[: count("examples", examples)]
    return draw_linear(model, x, k=k, samples=samples, seed=seed)


def show_digits(
    latent: int = 16,
    epochs: int = EPOCHS,
    binary: bool = False,
    picture: str = "samples",
    *,
    seed: int = 0,
    progress: Callable[[Epoch], object] | None = None,
) -> Figure:
    """A VAE trained on the digits: its bounds on those it has not seen, and one of its pictures."""
    if picture not in PICTURES:
        raise NamingError(f"the picture is one of {', '.join(PICTURES)}, not {picture!r}")
    if picture == "plane" and latent != 2:
        raise NamingError(f"the plane is that of two latents, got {latent}")
    count("epochs", epochs)
    data, start = digits(binary), time.monotonic()
    vae = digits_vae(data, latent=latent, epochs=epochs, seed=seed, progress=progress)
    seconds = time.monotonic() - start
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        bound = vae.elbo(data.test, samples=16, generator=noise)
        tighter = vae.importance(data.test, k=K, samples=REPEATS, generator=noise)
    figure = _picture(picture, vae, data, seed)
    parameters = sum(parameter.numel() for parameter in vae.parameters())
    size = f"{many(latent, 'latent')}, {parameters:,} parameters"
    facts = (
        ("test ELBO", f"{number(bound.value, bound.standard_error)} nats, mean of {len(data.test)} digits"),
        ("", f"{number(bound.into('bits/dim').value)} bits/dim"),
        ("its terms", f"reconstruction {number(bound.reconstruction)}, KL {number(bound.kl)}"),
        (f"k = {K}", f"{number(tighter.value, tighter.standard_error)} nats, the importance bound"),
        ("model", f"{size}, {many(epochs, 'epoch')} in {seconds:.0f} s"),
    )
    told = {"elbo": bound.json(), "importance": tighter.json(), "parameters": parameters, "seconds": seconds}
    told |= {"history": vae.history.json(), "picture": dict(figure.data)}
    title = f"{figure.title}; test ELBO {bound.value:.2f} nats".replace("-", "−")
    return replace(figure, title=title, facts=(*facts, *figure.facts), data=told)


def _picture(name: str, vae: VAE, data: Digits, seed: int) -> Figure:
    if name == "samples":
        return vae.draw_samples(20, seed)
    if name == "latent":
        return vae.draw_latent(data.test, data.test_labels)
    if name == "plane":
        return vae.draw_plane()
    if name == "training":
        return vae.history.draw()
    firsts = torch.stack([data.test[data.test_labels == digit][0] for digit in range(10)])
    if name == "rebuilt":
        return vae.draw_reconstructions(firsts)
    return vae.draw_interpolation(firsts[:5], firsts[5:])
