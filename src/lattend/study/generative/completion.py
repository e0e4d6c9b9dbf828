"""complete_digits: a 2-D RNN learns handwritten digits pixel by pixel, and draws the half not given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from lattend.draw.charts.chart import Scale
from lattend.draw.formats.palette import Look
from lattend.draw.grid.panel import Panel, Side
from lattend.draw.picture import Below, Picture
from lattend.nn.grid.complete import complete
from lattend.nn.grid.pixels import PixelModel
from lattend.report.numbers import format_fixed
from lattend.report.report import Printed, Report
from lattend.report.table import Facts, Table
from lattend.seeds import check_seed
from lattend.study.generative.checks import choice, count, seeded
from lattend.study.generative.pictures import GREYS, side_by_side
from lattend.study.image_sets import LEVELS, SIZE, Digits, digits
from lattend.study.training import one_thread, take_step, warm_cosine
from lattend.wording import many

EPOCHS = 8
STATES, BATCH, RATE, DECAY, CLIP = 64, 32, 6e-3, 0.3, 5.0  # chosen on 180 of the digits to train on
GIVEN = ("top", "left")  # the half that is known
NOT_GIVEN = Look("not given", "#fbecd0", "-", "-", 214, share=0.0, hatch="/", ink="#cf8600")
TYPED = 4  # digits in a row of a terminal
OURS, LEFT, ALONE = "2-D RNN", "each pixel given the one on its left", "each pixel on its own"


@dataclass(frozen=True)
class CompletionEpoch:
    """The mean of −log p over an epoch, in nats a digit, and the seconds since the start."""

    epoch: int
    epochs: int
    nats: float
    seconds: float

    def __str__(self) -> str:
        done = f"epoch {self.epoch:>{len(str(self.epochs))}} of {self.epochs}"
        return f"{done}   {format_fixed(self.nats):>7} nats   {format_fixed(self.seconds, 0):>4} s"


@dataclass(frozen=True, eq=False, repr=False)
class Completion(Printed):
    """A trained model, its nats on test digits beside those of tables, and what it draws."""

    JSON = "nats seed epochs=history"

    model: PixelModel
    data: Digits
    nats: dict[str, float]  # by model, the mean of −log p of a test digit
    history: tuple[CompletionEpoch, ...]
    seed: int

    def report(self) -> Report:
        """The nats of each model, and how this one was trained."""
        rows = [(name, format_fixed(nats)) for name, nats in self.nats.items()]
        return Report(
            "Nats for a test digit; less is better",
            [Table(("", "nats"), rows), Facts(self.facts()[len(rows) :])],
            self.json(),
        )

    def facts(self) -> tuple[tuple[str, str], ...]:
        """The same as names and words."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        epochs = many(len(self.history), "epoch")
        trained = f"{parameters:,} parameters, {epochs} of {len(self.data.train):,} digits"
        rows = [(name, f"{format_fixed(nats)} nats a test digit") for name, nats in self.nats.items()]
        return (*rows, ("trained", trained))

    def draw(self, given: str = "top", samples: int = 3, particles: int = 1) -> Picture:
        """One test digit of each kind, what is given of it, and completions drawn from the model."""
        known = half(given)
        true = self.data.one_of_each()
        options: dict[str, Any] = {"samples": count("samples", samples), "particles": particles}
        drawn = complete(self.model, true, known, generator=seeded(self.seed), **options)
        rows = {"true": true, "given": true}
        rows |= {f"drawn {index}": images for index, images in enumerate(drawn, 1)}
        scale = Scale("level", 0.0, LEVELS - 1.0, GREYS)
        colors = (*GREYS, NOT_GIVEN)
        cells = {name: scale.cells(images.double().numpy()) for name, images in rows.items()}
        cells["given"][:, ~known.numpy()] = colors.index(NOT_GIVEN)
        panels = [
            Panel(image, colors, Side("" if index else name, SIZE), Side("", SIZE))
            for name, images in cells.items()
            for index, image in enumerate(images)
        ]
        rough: list[Panel] = []
        for name, images in cells.items():
            beside = side_by_side(images, TYPED)
            rough.append(Panel(beside, colors, Side("row", SIZE), Side("column", beside.shape[1]), name))
        return Picture(
            "Digits completed by a 2-D RNN",
            tuple(panels),
            (),
            (f"the {given} half is given, the rest drawn pixel by pixel; seed {self.seed}",),
            (NOT_GIVEN,),
            self.facts(),
            rough=tuple(rough),
            bare=Below((f"{TYPED} of {len(true)} digits",), (NOT_GIVEN,), (scale,)),
            columns=len(true),
            grid=5 * SIZE,
            data={
                **self.json(),
                "given": given,
                "rows": {name: images.tolist() for name, images in rows.items() if name != "given"},
            },
        )

    def __repr__(self) -> str:
        nats = ", ".join(f"{name} {format_fixed(value)}" for name, value in self.nats.items())
        return f"<Completion: nats a test digit: {nats}>"


def complete_digits(
    epochs: int = EPOCHS,
    *,
    seed: int = 0,
    data: Digits | None = None,
    progress: Callable[[CompletionEpoch], object] | None = None,
) -> Completion:
    """A PixelModel of LSTM cells trained on the digits, and its nats on test digits beside those of tables.

    `seed` is that of the weights, the batches and what is drawn; torch's own generator stays as it is.
    `progress` is called after every epoch. The tables count the levels of each pixel, one with a row for each
    level of the pixel on the left.
    """
    count("epochs", epochs)
    images = digits() if data is None else data
    with torch.random.fork_rng([]), one_thread():
        torch.manual_seed(check_seed(seed))
        model = PixelModel(images.levels, h=STATES, cell="lstm", directions=2)
        history = tuple(_fit(model, images.train, epochs, progress))
        with torch.no_grad():
            nats = {OURS: float(model.nats(images.test).mean())}
    nats |= {name: table_nats(images, left=name == LEFT) for name in (LEFT, ALONE)}
    return Completion(model, images, nats, history, seed)


def half(half_name: str) -> Tensor:
    """Which pixels of a digit are known where one half is given."""
    along = torch.arange(SIZE).expand(SIZE, SIZE) < SIZE // 2
    return along.T if choice("given", half_name, GIVEN) == "top" else along


def _fit(
    model: PixelModel, images: Tensor, epochs: int, progress: Callable[[CompletionEpoch], object] | None
) -> Iterator[CompletionEpoch]:
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=DECAY)
    start, steps = time.monotonic(), len(images) // BATCH
    for epoch in range(epochs):
        total = 0.0
        for step, batch in enumerate(torch.randperm(len(images)).split(BATCH)[:steps]):
            rate = RATE * warm_cosine((epoch + step / steps) / epochs) + 1e-5
            loss = model.nats(images[batch]).mean()
            take_step(model, optimiser, loss, [rate], CLIP)
            total += float(loss.detach())
        done = CompletionEpoch(epoch + 1, epochs, total / steps, time.monotonic() - start)
        if progress is not None:
            progress(done)
        yield done


def table_nats(data: Digits, left: bool) -> float:
    """Nats a test digit of a table of levels at each place, one more than was counted in each (Laplace).

    With `left` there is such a table for each level of the pixel on the left.
    """
    levels = data.levels

    def pairs(images: Tensor) -> Tensor:
        before = functional.pad(images, (1, 0))[..., :-1] * left
        return functional.one_hot(before * levels + images, levels * levels)

    counts = 1 + pairs(data.train).sum(0).unflatten(-1, (levels, levels)).double()
    logs = (counts / counts.sum(-1, keepdim=True)).log().flatten(2)
    return -float((pairs(data.test) * logs).sum((1, 2, 3)).mean())
