"""A VAE of handwritten digits, with settings chosen on 180 of the 1,437 it is trained on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from lattend.draw.picture import Picture
from lattend.errors import NamingError
from lattend.report.numbers import format_error, format_fixed
from lattend.seeds import check_seed
from lattend.study.generative import PICTURES
from lattend.study.generative.bound import ELBO
from lattend.study.generative.checks import choice, count, seeded
from lattend.study.generative.importance_bound import Importance
from lattend.study.generative.training import Epoch
from lattend.study.generative.vae import VAE
from lattend.study.image_sets import SIZE, Digits, digits
from lattend.wording import many

EPOCHS = 40
K, REPEATS = 128, 2  # of the bound on test digits
LITTLE = 1.0  # nats of KL below which z is hardly used


def digits_vae(
    data: Digits,
    *,
    latent: int = 16,
    epochs: int = EPOCHS,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[Epoch], object] | None = None,
) -> VAE:
    """A VAE trained on the digits: categorical for 17 levels, Bernoulli where they are binary.

    `seed` is that of the weights, the batches and the noise; torch's own generator stays as it is.
    """
    kind, levels = ("bernoulli", None) if data.levels == 2 else ("categorical", data.levels)
    with torch.random.fork_rng([]):
        torch.manual_seed(check_seed(seed))
        vae = VAE((SIZE, SIZE), latent, kind, "conv", hidden=(24, 48), levels=levels, dropout=0.2)
    vae.fit(data.train, epochs, test=data.test, seed=seed, checkpoint=checkpoint, progress=progress)
    return vae


def show_digits(
    latent: int = 16,
    epochs: int = EPOCHS,
    binary: bool = False,
    picture: str = "samples",
    *,
    seed: int = 0,
    progress: Callable[[Epoch | str], object] | None = None,
) -> Picture:
    """A VAE trained on the digits: its bounds on those it has not seen, and one of its pictures.

    `progress` is called with each epoch, then with what comes next in words.
    """
    choice("the picture", picture, PICTURES)
    if picture == "plane" and latent != 2:
        raise NamingError(f"the plane is that of two latents, got {latent}")
    count("epochs", epochs)
    data, start = digits(binary), time.monotonic()
    vae = digits_vae(data, latent=latent, epochs=epochs, seed=seed, progress=progress)
    seconds = time.monotonic() - start
    if progress:
        progress(f"bounds of {len(data.test)} test digits, k = {K} …")
    bound, tighter = digits_bounds(vae, data, seed)
    figure = digits_picture(picture, vae, data, seed)
    parameters = sum(parameter.numel() for parameter in vae.parameters())
    size = f"{many(latent, 'latent')}, {parameters:,} parameters"
    reconstruction = format_error(bound.reconstruction.item(), bound.reconstruction_error)
    facts = (
        (
            "test ELBO",
            f"{format_error(bound.value.item(), bound.standard_error)} nats, mean of {len(data.test)} digits",
        ),
        ("", f"{format_error(-bound.into('bits/dim').value.item())} bits/dim: −ELBO, the lower the better"),
        ("its terms", f"reconstruction {reconstruction}, KL {format_error(bound.kl.item())}"),
        (
            f"k = {K}",
            f"{format_error(tighter.value.item(), tighter.standard_error)} nats, the importance bound",
        ),
        ("model", f"{size}, {many(epochs, 'epoch')} in {format_fixed(seconds, 0)} s"),
    )
    if bound.kl.item() < LITTLE:
        facts += (("z", f"tells little yet: KL {format_fixed(bound.kl.item())} nats; more epochs help"),)
    data_shown = {
        "elbo": bound.json(),
        "importance": tighter.json(),
        "parameters": parameters,
        "seconds": seconds,
    }
    data_shown |= {"history": vae.history.json(), "picture": dict(figure.data)}
    title = f"{figure.title}; test ELBO {format_fixed(bound.value.item())} nats"
    return replace(figure, title=title, facts=(*facts, *figure.facts), data=data_shown)


@torch.no_grad()
def digits_bounds(vae: VAE, data: Digits, seed: int) -> tuple[ELBO, Importance]:
    """The ELBO of the test digits from 16 samples, and their importance bound."""
    noise = seeded(seed)
    elbo = vae.elbo(data.test, samples=16, generator=noise)
    return elbo, vae.importance(data.test, k=K, samples=REPEATS, generator=noise)


def digits_picture(name: str, vae: VAE, data: Digits, seed: int) -> Picture:
    """One of the pictures, by its name."""
    each = data.one_of_each()
    drawn: dict[str, Callable[[], Picture]] = {
        "samples": lambda: vae.draw_samples(30, seed),
        "rebuilt": lambda: vae.draw_reconstructions(each),
        "between": lambda: vae.draw_interpolation(each[:5], each[5:]),
        "latent": lambda: vae.draw_latent(data.test, data.test_labels),
        "plane": lambda: vae.draw_plane(steps=15),
        "training": vae.history.draw,
    }
    return drawn[name]()
