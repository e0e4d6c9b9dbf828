"""A VAE of the digits, with settings chosen on 180 of the 1,437 that train it."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from lattend.generative.data import SIZE, Digits
from lattend.generative.training import Epoch
from lattend.generative.vae import VAE

EPOCHS = 40


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
        torch.manual_seed(seed)
        vae = VAE((SIZE, SIZE), latent, kind, "conv", hidden=(24, 48), levels=levels, dropout=0.2)
    vae.fit(data.train, epochs, test=data.test, seed=seed, checkpoint=checkpoint, progress=progress)
    return vae
