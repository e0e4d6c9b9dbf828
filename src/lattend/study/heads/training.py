"""A classifier whose heads have a center and a width, and the loop that trains it and records its heads."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.nn.attention.attention import MultiHeadAttention
from lattend.nn.attention.encodings import Quadratic
from lattend.nn.attention.gaussian_heads import Head, check_many
from lattend.report.numbers import significant
from lattend.seeds import check_seed
from lattend.study.generative.checks import choice, count, real
from lattend.study.heads.record import (
    CONTROL,
    TRAINED,
    EpochResult,
    HeadMoment,
    HeadRun,
    HeadSettings,
    Progress,
    Record,
)
from lattend.study.image_sets import NAMES, ImageSet, read_images
from lattend.study.training import Checkpoint, hash_of, one_thread, take_step, warm_cosine

SHARE = 4  # the numbers of a position over those of one head's value


class HeadLayer(MultiHeadAttention):
    """MultiHeadAttention with isotropic quadratic heads, which give every image the same weights.

    e^{-α(dy² + dx²)} is a product, so that values are mixed along columns, then along rows: rows + cols
    products for each position in place of rows · cols.
    """

    encoding: Quadratic

    def __init__(self, width: int, heads: int, spread: float) -> None:
        encoding = Quadratic(heads, centres=spread * torch.randn(heads, 2))
        super().__init__(width, 1, max(1, width // SHARE), width, heads, encoding=encoding)

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """[batch, rows, cols, width] in and out."""
        down, across = (self._weights(size, axis) for axis, size in enumerate(x.shape[1:3]))
        _, _, values = self.projected(x)  # [batch, heads, rows, cols, d_head_out]
        mixed = torch.einsum("hqk,bhrkd->bhrqd", across, values)
        mixed = torch.einsum("hqk,bhkcd->bqchd", down, mixed)
        assert self.b_out is not None
        return mixed.flatten(-2) @ self.W_out.flatten(0, 1) + self.b_out

    def _weights(self, size: int, axis: int) -> Tensor:
        """The softmax along one axis: [heads, queries, keys]."""
        places = torch.arange(size, device=self.W_v.device, dtype=self.W_v.dtype)
        off = places - places[:, None] - self.encoding.centres[:, axis, None, None]
        return (-self.encoding.alpha[:, None, None] * off.square()).softmax(-1)


class HeadBlock(nn.Module):
    """Heads, then two dense layers at each position; both take the input normalised, and add to it."""

    def __init__(self, width: int, heads: int, spread: float) -> None:
        super().__init__()
        self.attention = HeadLayer(width, heads, spread)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.dense(self.norms[1](x))


class HeadNet(nn.Module):
    """Scores of classes [batch, classes] from images [batch, channels, rows, cols].

    Patches of `patch` × `patch` pixels are the positions; `layers` blocks of K² heads, first centred at
    normal random places `spread` positions from the query along each axis, with α = 1; then the mean over
    all positions.

    >>> net = HeadNet(channels=1, classes=10, kernel=3, layers=2, width=16)
    >>> net(torch.zeros(5, 1, 8, 8)).shape, len(net.heads()), len(net.heads()[0])
    (torch.Size([5, 10]), 2, 9)
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        kernel: int = 3,
        layers: int = 4,
        width: int = 32,
        patch: int = 1,
        spread: float = 1.0,
    ) -> None:
        super().__init__()
        self.patch = patch
        self.embedding = nn.Linear(channels * patch * patch, width)
        self.blocks = nn.ModuleList(HeadBlock(width, kernel * kernel, spread) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = functional.pixel_unshuffle(images, self.patch).movedim(1, -1)
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.norm(x).mean((1, 2)))

    @property
    def encodings(self) -> list[Quadratic]:
        """The encoding of each layer."""
        return [block.attention.encoding for block in self.blocks if isinstance(block, HeadBlock)]

    def heads(self) -> list[list[Head]]:
        """The heads of each layer, as plain numbers."""
        return [block.attention.heads() for block in self.blocks if isinstance(block, HeadBlock)]


# What suits each set of images
USUAL: dict[str, dict[str, Any]] = {
    "digits": {"patch": 1, "layers": 4, "width": 32, "epochs": 25, "batch": 32, "rate": 3e-3},
    "fashion": {"patch": 2, "layers": 4, "width": 64, "epochs": 10, "batch": 100, "rate": 2e-3},
    "cifar10": {"patch": 2, "layers": 6, "width": 128, "epochs": 20, "batch": 100, "rate": 1e-3},
}
WITHIN = (1 / 8, 1 / 4, 1 / 2, 3 / 4)  # of the first epoch, when heads move most
LONGEST = 1.0  # gradient
TEST_BATCH = 500


def train(
    data: str | ImageSet = "digits",
    *,
    kernel: int = 3,
    layers: int | None = None,
    width: int | None = None,
    epochs: int | None = None,
    batch: int | None = None,
    patch: int | None = None,
    rate: float | None = None,
    centre_rate: float = 1.0,
    decay: float = 0.05,
    spread: float | None = None,
    seed: int = 0,
    control: bool = True,
    folder: str | os.PathLike[str] | None = None,
    fetch: bool = False,
    device: str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Record:
    """Trains K² heads a layer on images, and gives the record of where they went.

    `data` are "digits", "fashion", "cifar10" (see `read_images` for `folder` and `fetch`) or an ImageSet, and
    decide layers, width, epochs, batch, patch and rate unless these are given. The first centres are normal,
    `spread` positions along each axis: an eighth of the image's side. AdamW's rate rises to `rate` in a tenth
    of the steps and falls to 0 along a cosine; centres and widths learn `centre_rate` times as fast, and no
    weight decay draws them to 0.

    With `control`, the same network learns once more from the same first numbers and batches, but for its
    centres, which stay where they are. `checkpoint` is a folder for a file written after each epoch, from
    which the same call goes on after an interruption to the very same numbers; when all is done, it goes.
    """
    images = _images(data, folder, fetch)
    usual = USUAL.get(images.name, USUAL["cifar10"])
    counts = {"layers": layers, "width": width, "epochs": epochs, "batch": batch, "patch": patch}
    sizes = {name: count(name, usual[name] if value is None else value) for name, value in counts.items()}
    rows, cols = (_positions(side, sizes["patch"]) for side in images.train.shape[2:])
    check_many(sizes["layers"] * count("kernel", kernel) ** 2)
    settings = HeadSettings(
        data=images.name,
        train_images=len(images.train),
        test_images=len(images.test),
        channels=images.train.shape[1],
        classes=images.classes,
        rows=rows,
        cols=cols,
        kernel=kernel,
        rate=real("rate", usual["rate"] if rate is None else rate, "above 0", lambda found: found > 0),
        centre_rate=real("centre_rate", centre_rate),
        decay=real("decay", decay),
        spread=real("spread", max(rows, cols) / 8 if spread is None else spread),
        seed=check_seed(seed),
        device=str(_device(device)),
        **sizes,
    )
    kept = None if checkpoint is None else Path(checkpoint)
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    names = (TRAINED, CONTROL)[: 1 + control]
    files = {name: None if kept is None else kept / f"{name}.pt" for name in names}
    learned = {name: _learn(name, images, settings, files[name], progress) for name in names}
    for file in filter(None, files.values()):
        file.unlink(missing_ok=True)
    parameters = sum(parameter.numel() for parameter in learned[TRAINED][1].parameters())
    return Record(settings, {name: run for name, (run, _) in learned.items()}, parameters)


def _learn(
    name: str,
    images: ImageSet,
    settings: HeadSettings,
    path: Path | None,
    progress: Callable[[Progress], object] | None,
) -> tuple[HeadRun, HeadNet]:
    """Trains one network, from its first numbers or from its checkpoint; gives its run."""
    home = torch.device(settings.device)
    x, test = (_scaled(part, images.train).to(home) for part in (images.train, images.test))
    y, test_y = (
        torch.tensor(labels, dtype=torch.long, device=home)
        for labels in (images.train_labels, images.test_labels)
    )
    with torch.enable_grad(), torch.random.fork_rng([]), one_thread():
        torch.manual_seed(settings.seed)
        sizes = {size: getattr(settings, size) for size in ("kernel", "layers", "width", "patch", "spread")}
        net = HeadNet(settings.channels, settings.classes, **sizes).to(home)
        for encoding in net.encodings:
            encoding.centres.requires_grad_(name == TRAINED)
        places = [p for encoding in net.encodings for p in (encoding.centres, encoding.root)]
        others = [p for p in net.parameters() if all(p is not place for place in places)]
        optimiser = torch.optim.AdamW(
            [{"params": others, "weight_decay": settings.decay}, {"params": places, "weight_decay": 0.0}]
        )
        rates = settings.rate, settings.rate * settings.centre_rate
        steps = max(1, len(x) // settings.batch)  # what is left over comes in another order next time
        run, done, seconds = HeadRun([_moment(net, 0.0)]), 0, 0.0
        which = asdict(settings) | {"run": name, "data": hash_of(x), "test": hash_of(test)}
        which |= {"labels": hash_of(y), "test labels": hash_of(test_y)}
        file = path and Checkpoint(path, "heads in training", which, net, optimiser, home)

        def resume(content: dict[str, Any]) -> None:
            nonlocal run, done, seconds
            run, done, seconds = HeadRun.of(content["record"]), content["done"], content["seconds"]

        if file is not None:
            file.read(resume)
        while done < settings.epochs:
            start, total = time.monotonic(), torch.zeros((), device=home)
            within = {} if done else {math.ceil(share * steps): share for share in WITHIN}
            for step, batch in enumerate(torch.randperm(len(x)).split(settings.batch)[:steps], 1):
                rows, epochs = batch.to(home), done + (step - 0.5) / steps
                loss = functional.cross_entropy(net(x[rows]), y[rows])
                shares = [rate * warm_cosine(epochs / settings.epochs) for rate in rates]
                take_step(net, optimiser, loss, shares, LONGEST)
                total += loss.detach()
                if step in within and step < steps:
                    run.moments.append(_moment(net, within[step]))
            mean = float(total) / steps
            if not math.isfinite(mean):
                raise DomainError(
                    f"in epoch {done + 1} the loss is not finite; lower rate, which is "
                    f"{significant(settings.rate, 6)}"
                )
            done, seconds = done + 1, seconds + time.monotonic() - start
            run.moments.append(_moment(net, float(done)))
            run.epochs.append(EpochResult(done, mean, _accuracy(net, test, test_y), seconds))
            if file is not None:
                file.write(done=done, seconds=seconds, record=run.json())
            if progress is not None:
                progress(Progress(name, settings.epochs, run.epochs[-1], run.moments[-1]))
    return run, net


@torch.no_grad()
def _accuracy(net: HeadNet, images: Tensor, labels: Tensor) -> float:
    parts = zip(images.split(TEST_BATCH), labels.split(TEST_BATCH), strict=True)
    return sum(int((net(x).argmax(1) == y).sum()) for x, y in parts) / len(images)


def _moment(net: HeadNet, epoch: float) -> HeadMoment:
    layers = net.heads()
    centres = [[head.centre for head in layer] for layer in layers]
    return HeadMoment.of(epoch, centres, [[head.precision[0] for head in layer] for layer in layers])


def _images(data: str | ImageSet, folder: str | os.PathLike[str] | None, fetch: bool) -> ImageSet:
    if isinstance(data, ImageSet):
        if folder is not None or fetch:
            raise NamingError("folder and fetch are for images by their name; leave them out")
        if data.train.shape[1:] != data.test.shape[1:]:
            sizes = [list(part.shape[1:]) for part in (data.train, data.test)]
            raise TensorError(f"images to train on are {sizes[0]}, those to test {sizes[1]}; give them alike")
        return data
    return read_images(choice("data", data, NAMES), folder, fetch)


def _scaled(images: Any, of: Any) -> Tensor:
    """From -1 to 1, or thereabouts: the mean of those to train on is 0, their standard deviation 1/2."""
    mean, spread = float(of.mean()), float(of.std()) or 1.0
    return (torch.tensor(images, dtype=torch.float32) - mean) / (2 * spread)


def _positions(side: int, patch: int) -> int:
    if side % patch:
        raise DomainError(f"a side of {side} pixels is not cut into patches of {patch}; give a divisor")
    return side // patch


def _device(name: str) -> torch.device:
    try:
        chosen = torch.device(name)
    except RuntimeError:
        raise NamingError(f'device is "cpu" or "cuda", not {name!r}') from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise LattendError('device "cuda" is asked for, and torch finds no GPU; leave it out for the CPU')
    return chosen
