"""Handwritten digits completed by a recurrent net on the grid: given the upper half, it draws the rest.

    pip install "lattend[torch]" scikit-learn==1.9.1
    python examples/complete_digits.py          # about a minute on one core; writes out/digits.png and .svg
    python examples/complete_digits.py --given left --particles 64
    python examples/complete_digits.py --epochs 2 --out out/quick.png

The data are the 1,797 digits that come with scikit-learn, 8 x 8 pixels of 17 levels. 1,437 of them train the
model and 360 test it; its settings were chosen on 180 of the 1,437, held out for that.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import lattend as lt
from lattend.draw.formats.palette import Look
from lattend.draw.grid.panel import Panel, Side
from lattend.draw.picture import Picture
from lattend.study.generative.pictures import grey
from lattend.study.images.handwritten import LEVELS, SIZE

BATCH, RATE, DECAY = 32, 6e-3, 0.3
GIVEN = {  # what is known of a digit
    "top": torch.arange(SIZE)[:, None].expand(SIZE, SIZE) < SIZE // 2,
    "left": torch.arange(SIZE).expand(SIZE, SIZE) < SIZE // 2,
}


def main(words: list[str] | None = None) -> None:
    options = arguments(words)
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # products this small are not worth sharing, least of all on a busy machine
    try:
        data = lt.study.generative.digits()
    except lt.errors.LattendError as error:
        raise SystemExit(str(error)) from None
    train, test = data.train, data.test
    print(f"{len(train):,} digits to train on, {len(test)} to test")
    model = lt.nn.PixelModel(LEVELS, h=64, cell="lstm", directions=2)
    print(f"PixelModel with {sum(p.numel() for p in model.parameters()):,} parameters")
    fit(model, train, options.epochs, 60 * options.minutes)
    with torch.no_grad():
        rows = [("recurrent net on the grid", float(model.nats(test).mean()))]
    rows += [("each pixel given the one on its left", table_nats(train, test, left=True))]
    rows += [("each pixel on its own", table_nats(train, test, left=False))]
    print("\nnats per test image; less is better")
    for name, nats in rows:
        print(f"{nats:8.2f}  {name}")
    figure = picture(model, data.one_of_each(), options, rows)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".png", ".svg"):
        print("wrote", figure.save(options.out.with_suffix(ending)))


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=positive, default=20, help="times each digit is seen")
    parser.add_argument("--minutes", type=float, default=1.5, help="when training ends at the latest")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, the batches and what is drawn")
    parser.add_argument("--given", choices=sorted(GIVEN), default="top", help="the half that is known")
    parser.add_argument("--particles", type=positive, default=1, help="see help(lattend.nn.complete)")
    parser.add_argument("--out", type=Path, default=Path("out/digits.png"), help="there and as .svg")
    return parser.parse_args(words)


def positive(word: str) -> int:
    """A whole number from 1 on."""
    if not word.isdecimal() or int(word) == 0:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on, not {word}")
    return int(word)


def fit(model: lt.nn.PixelModel, images: Tensor, epochs: int, seconds: float) -> None:
    """Trains until the epochs or the seconds are over, and says how it goes."""
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=DECAY)
    many = len(images) // BATCH
    start, step, nats = time.monotonic(), 0, 0.0
    while True:
        for batch in torch.randperm(len(images)).split(BATCH)[:many]:
            done = max(step / (epochs * many), (time.monotonic() - start) / seconds)
            if done >= 1:
                return
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(10 * done, (1 + math.cos(math.pi * done)) / 2) + 1e-5
            loss = model.nats(images[batch]).mean()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            step, nats = step + 1, nats + float(loss.detach())
        took = time.monotonic() - start
        print(f"epoch {step // many:3}  {nats / many:6.2f} nats  {took:4.0f} s", flush=True)
        nats = 0.0


def table_nats(train: Tensor, test: Tensor, left: bool) -> float:
    """Nats per image of a table of levels at each place, one more than was counted in each (Laplace).

    With `left` there is such a table for each level of the pixel on the left.
    """

    def pairs(images: Tensor) -> Tensor:
        before = functional.pad(images, (1, 0))[..., :-1] * left
        return functional.one_hot(before * LEVELS + images, LEVELS * LEVELS)

    counts = 1 + pairs(train).sum(0).view(SIZE, SIZE, LEVELS, LEVELS).double()
    logs = (counts / counts.sum(-1, keepdim=True)).log().flatten(2)
    return -float((pairs(test) * logs).sum((1, 2, 3)).mean())


def picture(
    model: lt.nn.PixelModel, true: Tensor, options: argparse.Namespace, rows: list[tuple[str, float]]
) -> Picture:
    """Digits as they are, what is given of them, and three completions."""
    known = GIVEN[options.given]
    generator = torch.Generator().manual_seed(options.seed)
    drawn = lt.nn.complete(model, true, known, samples=3, particles=options.particles, generator=generator)
    looks = (
        *(Look("", grey(level / (LEVELS - 1)), " ", " ", 255) for level in range(LEVELS)),
        Look("not given", "#fbecd0", "-", "-", 214, hatch="/", ink="#cf8600"),
    )
    lines = {"true": true, "given": true.masked_fill(~known, LEVELS)}
    lines |= {f"drawn {place}": images for place, images in enumerate(drawn, 1)}
    panels = [
        Panel(image.numpy().astype(np.uint8), looks, Side("" if place else name, SIZE), Side("", SIZE))
        for name, images in lines.items()
        for place, image in enumerate(images)
    ]
    return Picture(
        "Digits completed by a recurrent net on the grid",
        tuple(panels),
        (),
        facts=tuple((name, f"{nats:.1f} nats per test image") for name, nats in rows),
        legend=looks[-1:],
        columns=len(true),
        grid=5 * SIZE,
    )


if __name__ == "__main__":
    main()
