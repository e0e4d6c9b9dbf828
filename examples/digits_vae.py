"""Handwritten digits by a variational autoencoder: its bounds on test digits, and what it draws.

    pip install "lattend[torch]" scikit-learn==1.9.1
    python examples/digits_vae.py                # a minute or so on one core; writes out/vae_*.png and .svg
    python examples/digits_vae.py --latent 2     # a plane: out/vae_plane shows all of it
    python examples/digits_vae.py --binary --epochs 10

The data are the 1,797 digits that come with scikit-learn, 8 x 8 pixels of 17 levels, or with --binary of two:
ink from level 8 on. 1,437 of them train the model and 360 test it; its settings were chosen on 180 of the
1,437, held out for that. x is the whole image: nats are summed over its 64 pixels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import lattend as lt
from lattend.study.generative import PICTURES
from lattend.study.generative.handwritten import EPOCHS, digits_bounds, digits_picture, digits_vae
from lattend.study.image_sets import Digits


def main(words: list[str] | None = None) -> None:
    options = arguments(words)
    torch.set_num_threads(1)  # products this small are not worth sharing, least of all on a busy machine
    try:
        data = lt.study.generative.digits(binary=options.binary)
    except lt.errors.LattendError as error:
        raise SystemExit(str(error)) from None
    print(f"{len(data.train):,} digits to train on, {len(data.test)} to test")
    vae = digits_vae(data, latent=options.latent, epochs=options.epochs, seed=options.seed, progress=print)
    print(f"VAE with {sum(p.numel() for p in vae.parameters()):,} parameters\n")
    print(*digits_bounds(vae, data, options.seed), sep="\n\n")
    print(f"\neach pixel on its own  {alone(vae, data):.2f} nats".replace("-", "−"))
    options.out.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        if name != "plane" or options.latent == 2:
            figure = digits_picture(name, vae, data, options.seed)
            print("wrote", *(figure.save(options.out / f"vae_{name}{ending}") for ending in (".png", ".svg")))


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=positive, default=EPOCHS, help="times each digit is seen")
    parser.add_argument("--latent", type=positive, default=16, help="numbers in z")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, the batches and what is drawn")
    parser.add_argument("--binary", action="store_true", help="pixels are 0 or 1")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the pictures")
    return parser.parse_args(words)


def positive(word: str) -> int:
    """A whole number from 1 on."""
    if not word.isdecimal() or int(word) == 0:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on, not {word}")
    return int(word)


def alone(vae: lt.study.generative.VAE, data: Digits) -> float:
    """The log-probability of a test digit by a table of each pixel's levels, one more than was counted."""
    numbers = vae.pixels.alone(data.train).view(*vae.shape, -1)
    table = vae.pixels.given(numbers if data.levels > 2 else numbers[..., 0])
    return float(table.log_prob(data.test).sum((1, 2)).mean())


if __name__ == "__main__":
    main()
