"""Pictures of a VAE: what it draws, what comes back, what lies between, the latent plane, the training."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lattend.draw.charts.chart import Chart, Dots, Scale, classes, curves
from lattend.draw.formats.palette import AMOUNTS, STEPS
from lattend.draw.grid.panel import Panel, Side
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError, TensorError
from lattend.report.numbers import format_fixed, format_share
from lattend.study.generative.checks import count, seeded
from lattend.study.generative.distributions import Gaussian
from lattend.study.generative.divergence import closed

if TYPE_CHECKING:
    from lattend.study.generative.training import History
    from lattend.study.generative.vae import VAE


def grey(share: float) -> str:
    """The colour of so much ink on paper, from 0 to 1."""
    return f"#{3 * f'{255 - round(235 * share):02x}'}"


# Ink on paper; in a terminal the characters of the scale of amounts
GREYS = tuple(replace(look, fill=grey(step / STEPS)) for step, look in enumerate(AMOUNTS))
SIDE, LEAST, LARGEST = 40.0, 2, 640.0  # of an image, of a pixel, and of a sheet of images
ACROSS = 10  # images in a row
TYPED = 36  # pixels in a row of a terminal, two characters each
IN_USE = 0.1  # nats a latent tells at least where it is in use


def samples(vae: VAE, n: int, seed: int, mean: bool) -> Picture:
    """Images drawn from the prior."""
    home = vae.decoder.bias.device
    n = count("n", n)
    drawn = vae.sample(n, mean, seeded(seed, home))
    rows = {f"{at}–{min(at + ACROSS, n) - 1}": drawn[at : at + ACROSS] for at in range(0, n, ACROSS)}
    how = "means of p(x|z)" if mean else "x ~ p(x|z)"
    return gallery("Images drawn by a VAE", rows, vae, (f"z ~ N(0, 1), {how}; seed {seed}",))


def reconstructions(vae: VAE, x: Tensor) -> Picture:
    """Images and the means of p(x|z) at the means of q(z|x), with their ELBO."""
    with torch.no_grad():
        home = vae.decoder.bias.device
        bound = vae.elbo(x, samples=16, generator=seeded(0, home))
    value, reconstruction, kl = (
        format_fixed(term.item()) for term in (bound.value, bound.reconstruction, bound.kl)
    )
    facts = (("ELBO", f"{value} = {reconstruction} − {kl} nats an image"),)
    rows: dict[str, Tensor] = {}
    for at in range(0, len(x), ACROSS):
        part, more = x[at : at + ACROSS], f" {at // ACROSS + 1}" if at else ""
        rows |= {f"true{more}": part, f"rebuilt{more}": vae.reconstruct(part)}
    about = "rebuilt: the mean of p(x|z) at the mean of q(z|x)"
    return gallery("Images rebuilt from z", rows, vae, (about,), facts)


def interpolation(vae: VAE, a: Tensor, b: Tensor, steps: int) -> Picture:
    """The images on a line from a to b, or on several."""
    first, last = vae.batch("a", a), vae.batch("b", b)
    if a.shape != b.shape:
        raise TensorError(f"a is {list(a.shape)} and b {list(b.shape)}; give both the same")
    pairs = list(zip(first, last, strict=True))
    rows = {
        ("a to b" if len(pairs) == 1 else f"line {at}"): vae.interpolate(first, last, steps)
        for at, (first, last) in enumerate(pairs)
    }
    about = "means of p(x|z), z on the line from the mean of q(z|a) to that of q(z|b)"
    return gallery("From one image to another", rows, vae, (about,))


@torch.no_grad()
def plane(vae: VAE, axes: tuple[int, int], steps: int) -> Picture:
    """Draws what is decoded where two latents have evenly spaced quantiles and the others are 0."""
    try:
        across, up = map(operator.index, axes)
    except (TypeError, ValueError):
        across = up = -1
    if across == up or not (0 <= across < vae.latent and 0 <= up < vae.latent):
        raise DomainError(f"axes are two different latents from 0 to {vae.latent - 1}, got {axes}")
    steps = count("steps", steps)
    shares = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
    places = torch.special.ndtri(shares).to(vae.decoder.bias)
    z = places.new_zeros(steps, steps, vae.latent)
    z[..., across], z[..., up] = places, places.flip(0)[:, None]
    shown = vae.pixels.mean(vae._numbers(z))
    heights = places.flip(0).tolist()
    rows = {format_fixed(at): row for at, row in zip(heights, shown, strict=True)}
    ends = f"z[{across}] from {format_fixed(heights[-1])} to {format_fixed(heights[0])} across, z[{up}] up"
    rest = "" if vae.latent == 2 else ", the other latents 0"
    figure = gallery("The plane of two latents", rows, vae, (f"means of p(x|z); {ends}{rest}",))
    panel = _sheet(figure.panels, steps, (f"z[{up}]", heights), (f"z[{across}]", heights[::-1]))
    return replace(figure, panels=(panel,), grid=min(LARGEST, 5.0 * max(panel.cells.shape)))


def _sheet(
    panels: Sequence[Panel], many: int, rows: tuple[str, list[float]], cols: tuple[str, list[float]]
) -> Panel:
    """The panels as one, `many` in a row, with a tick at each and a line of paper between two."""
    padded = [np.pad(panel.cells, ((0, 1), (0, 1))) for panel in panels]
    cells = np.block([padded[at : at + many] for at in range(0, len(padded), many)])[:-1, :-1]

    def side(length: int, named: tuple[str, list[float]]) -> Side:
        step = (length + 1) // many
        ticks = tuple((step * at + (step - 1) / 2, format_fixed(place)) for at, place in enumerate(named[1]))
        return Side(named[0], length, ticks)

    return Panel(cells, panels[0].looks, side(cells.shape[0], rows), side(cells.shape[1], cols))


@torch.no_grad()
def latent(vae: VAE, x: Tensor, labels: Any) -> Picture:
    """Means of q(z|x) in the plane, and how much each latent tells."""
    q = vae.encode(x)
    names = None if labels is None else _names(labels, len(x))
    kl = closed(q, Gaussian(torch.zeros_like(q.mean), 1))
    assert kl is not None
    each = sorted(kl.mean(0).tolist(), reverse=True)
    points, across, up, about = _placed(q)
    dots = (Dots(points, ""),) if names is None else classes(points, names)
    used = sum(nats > IN_USE for nats in each)
    listed = ", ".join(format_fixed(nats) for nats in each[:8]) + (", …" if len(each) > 8 else "")
    facts = (
        ("KL of each latent", f"{listed} nats"),
        ("in use", f"{used} of {vae.latent}, with more than {IN_USE} nats"),
    )
    drawn = Chart("", across, up, dots=dots, size=(420.0, 420.0), equal=vae.latent > 1)
    data = {"points": points, "labels": names, "kl": each}
    title = f"Where {len(x):,} images are in {vae.latent} latent{'s' if vae.latent > 1 else ''}"
    return Picture(title, (), (), (about,), facts=facts, charts=(drawn,), data=data)


def _names(labels: Any, images: int) -> list[Any]:
    """One label for each image, as plain data."""
    names = labels.tolist() if isinstance(labels, Tensor | np.ndarray) else labels
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TensorError(f"labels are a list, one for each image, got {names!r:.60}")
    names = [name.item() if isinstance(name, Tensor | np.generic) else name for name in names]
    if len(names) != images:
        raise TensorError(f"there are {images} images and {len(names)} labels; give one for each")
    if any(isinstance(name, Sequence) and not isinstance(name, str) for name in names):
        raise TensorError(f"a label is one name or number, got {names[0]!r:.60}")
    return names


def _placed(q: Gaussian) -> tuple[list[tuple[float, float]], str, str, str]:
    """Points, the names of both axes, and what they are."""
    mean = q.mean.double().cpu()
    if mean.shape[1] == 1:
        spread = q.variance.double().cpu().sqrt()
        return (
            _points(torch.cat((mean, spread), 1)),
            "mean of q(z|x)",
            "its standard deviation",
            "one dot an image",
        )
    if mean.shape[1] == 2:
        return _points(mean), "z[0]", "z[1]", "means of q(z|x)"
    centred = mean - mean.mean(0)
    _, sizes, axes = torch.linalg.svd(centred, full_matrices=True)
    two = axes[:2]
    two = two * two.gather(1, two.abs().argmax(1, keepdim=True)).sign()  # the same picture every time
    share = sizes[:2].square().sum() / sizes.square().sum().clamp_min(1e-300)
    variance = format_share(share.item(), 0)
    about = f"means of q(z|x) along their two principal axes, which have {variance} of the variance"
    return _points(centred @ two.T), "first axis", "second axis", about


def _points(rows: Tensor) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in rows.tolist()]


def course(history: History, title: str) -> Picture:
    """The bound over the epochs, in training and on test data, and its KL."""
    epochs = history.epochs
    if not epochs:
        raise DomainError("this VAE is not trained yet, so there is nothing to draw; call fit first")
    lines: dict[str, list[float | None]] = {"training": [epoch.elbo for epoch in epochs]}
    if all(epoch.test is not None for epoch in epochs):
        lines["test"] = [epoch.test for epoch in epochs]
    places = [epoch.epoch for epoch in epochs]

    def chart(name: str, up: str, numbers: Mapping[str, Sequence[Any]]) -> Chart:
        points = [(line, list(zip(places, ys, strict=True))) for line, ys in numbers.items()]
        return Chart(name, "epoch", up, curves(points))

    charts = (
        chart("ELBO", "nats an example", lines),
        chart("KL", "nats an example", {"training": [epoch.kl for epoch in epochs]}),
    )
    last = epochs[-1]
    terms = f"{format_fixed(last.elbo)} = {format_fixed(last.reconstruction)} − {format_fixed(last.kl)}"
    facts = [("last epoch", f"{terms} nats in training")]
    facts += [("", f"{format_fixed(last.test)} nats on test data")] if last.test is not None else []
    return Picture(title, (), (), facts=tuple(facts), charts=charts, data={"epochs": history.json()})


def gallery(
    title: str,
    rows: Mapping[str, Tensor],
    vae: VAE,
    about: tuple[str, ...] = (),
    facts: tuple[tuple[str, str], ...] = (),
) -> Picture:
    """Rows of images by name, in grey; a terminal shows some of each."""
    images = {name: _grey(row, vae.shape) for name, row in rows.items()}
    scale = _scale(vae, np.concatenate(list(images.values())))
    _, height, width = next(iter(images.values())).shape
    panels = [
        Panel(scale.cells(image), GREYS, Side(name if not at else "", height), Side("", width))
        for name, row in images.items()
        for at, image in enumerate(row)
    ]
    most = max(map(len, images.values()))
    typed = max(1, min(most, TYPED // width))
    rough = tuple(
        Panel(scale.cells(beside), GREYS, Side("row", height), Side("column", beside.shape[1]), name)
        for name, beside in ((name, side_by_side(row, typed)) for name, row in images.items())
    )
    channels = math.prod(vae.shape[:-2])
    caption = (f"grey: the mean of {channels} channels",) if channels > 1 else ()
    few = (f"{typed} of {most} images in a row",) if typed < most else ()
    return Picture(
        title,
        tuple(panels),
        caption,
        about,
        facts=facts,
        scales=(scale,),
        rough=rough,
        bare=Below((*caption, *few), scales=(scale,)),
        columns=most,
        grid=max(SIDE, LEAST * max(height, width)),
        data={"rows": {name: row.tolist() for name, row in images.items()}},
    )


def side_by_side(images: np.ndarray[Any, Any], many: int) -> np.ndarray[Any, Any]:
    """Some of the images side by side, the first and the last among them."""
    places = np.rint(np.linspace(0, len(images) - 1, min(many, len(images)))).astype(int)
    return np.concatenate(list(images[places]), axis=1)


def _grey(images: Tensor, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Images [many, rows, cols]: of several channels the mean, of a vector one row."""
    shown = images.detach().double().cpu()
    if len(shape) == 1:
        return shown[:, None].numpy()
    return shown.reshape(len(shown), -1, *shape[-2:]).mean(1).numpy()


def _scale(vae: VAE, values: np.ndarray[Any, Any]) -> Scale:
    """From the least to the greatest a pixel can be, or is."""
    low, high = vae.pixels.scale or (float(values.min()), float(values.max()))
    label = "level" if vae.decoder_name == "categorical" else "pixel"
    return Scale(label, low, high if high > low else low + 1.0, GREYS)
