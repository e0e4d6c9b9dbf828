"""complete and sample: images drawn from a PixelModel, the whole or what is missing."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from lattend.errors import DomainError, NamingError
from lattend.nn.grid.cells import Edges, Neighbours, beside, hidden, state
from lattend.nn.grid.pixels import PixelModel, mask_of
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.scan import scan
from lattend.nn.grid.schedule import wavefront_order

ORDERS = ("raster", "diagonal")
MODES = ("draw", "most likely")
Progress = Callable[[int, int], None]


@torch.no_grad()
def complete(
    model: PixelModel,
    image: Tensor,
    known: Tensor,
    *,
    order: str = "raster",
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    samples: int | None = None,
    particles: int = 1,
    mode: str = "draw",
    progress: Progress | None = None,
) -> Tensor:
    """The images with the pixels that are not `known` drawn from the model; known ones are kept.

    image [batch, rows, cols] (and channels, if the model has several); known [batch, rows, cols] or
    [rows, cols], True where the pixel is given; what image holds elsewhere is not looked at. With `samples`
    the result is [samples, batch, ...], without it one completion in the shape of image.

    Each pixel is drawn given all pixels before it, known or drawn, and not given known ones that come later.
    With `particles` above 1 it does take those into account: so many completions are drawn side by side,
    each weighed by the probability of the known pixels it meets, and drawn again by weight when few of them
    carry most of it; one is left. The more there are, the nearer this is to p(missing | known).

    order="raster" goes pixel by pixel, "diagonal" by anti-diagonals, rows + cols - 1 steps, for a model with
    one direction; both give the same image for the same generator. Logits are divided by `temperature`;
    mode="most likely" takes the likeliest level of each pixel in turn, which need not be the likeliest image.
    `progress(done, steps)` is called after each step.
    """
    _check_model(model)
    many = 1 if samples is None else samples
    _check_way(mode, temperature, {"samples": many, "particles": particles})
    pixels = model.shaped(image)
    given = mask_of("known", known, pixels)
    pixels = model.levels_of(pixels.masked_fill(~given[..., None], 0))
    batch, rows, cols, channels = pixels.shape
    pixels, given = (x.repeat_interleave(many * particles, 0) for x in (pixels, given))
    chances = uniform((*pixels.shape,), generator, pixels.device)
    steps = _steps(order, rows, cols, model, pixels.device)
    race = Race(batch * many, particles, generator, pixels.device)
    with torch.autocast(pixels.device.type, enabled=False):
        net = IncrementalGrid(model.net, len(pixels), rows, cols)
        for done, (row, col) in enumerate(steps, 1):
            features = net.features(row, col)
            chance = None if mode == "most likely" else chances[:, row, col]
            new, nats = _pixels(model, features, pixels[:, row, col], given[:, row, col], chance, temperature)
            pixels[:, row, col] = new
            net.see(row, col, model.encode(new))
            survivors = race.after(nats)
            if survivors is not None:
                net.pick(survivors)
                pixels = pixels[survivors]
            if progress is not None:
                progress(done, len(steps))
    pixels = pixels[race.winners()].unflatten(0, (batch, many))
    pixels = pixels.squeeze(-1) if channels == 1 else pixels
    return pixels[:, 0] if samples is None else pixels.transpose(0, 1)


def sample(
    model: PixelModel,
    rows: int,
    cols: int,
    samples: int = 1,
    *,
    order: str = "raster",
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Images drawn from the model, [samples, rows, cols], and channels if it has several.

    The arguments are those of `complete`, where no pixel is known.
    """
    _check_model(model)
    for name, size in (("rows", rows), ("cols", cols), ("samples", samples)):
        if not isinstance(size, int) or size < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(f"{name} must be a whole number from 1 on, got {size!r}")
    shape = (1, rows, cols) if model.channels == 1 else (1, rows, cols, model.channels)
    nothing = torch.zeros(shape, dtype=torch.long, device=model.net.W_in[0].device)
    return complete(
        model, nothing, torch.zeros(rows, cols, dtype=torch.bool, device=nothing.device), order=order,
        temperature=temperature, generator=generator, samples=samples, progress=progress,
    )[:, 0]  # fmt: skip


def _pixels(
    model: PixelModel,
    features: Tensor,
    pixels: Tensor,
    given: Tensor,
    chance: Tensor | None,
    temperature: float,
) -> tuple[Tensor, Tensor]:
    """New pixels [batch, n, channels] where they are not given, and -log p of those that are, [batch].

    `chance` [batch, n, channels], from 0 to 1, says which; None takes the likeliest.
    """
    nats = features.new_zeros(len(features), dtype=torch.float64)
    found = pixels[..., :0]
    for channel in range(model.channels):
        scores = model.scores(features, model.encode(found), channel).double()
        scores = (scores - scores.amax(-1, keepdim=True)) / temperature  # 0 at the likeliest, however cold
        new = scores.argmax(-1) if chance is None else _drawn(scores, chance[..., channel])
        new = torch.where(given, pixels[..., channel], new)
        picked = scores.log_softmax(-1).gather(-1, new[..., None])[..., 0]
        nats -= torch.where(given, picked, 0).sum(1)
        found = torch.cat((found, new[..., None]), -1)
    return found, nats


def _drawn(scores: Tensor, chance: Tensor) -> Tensor:
    """The level in whose share of 0 … 1 each number lies.

    >>> _drawn(torch.zeros(3, 2), torch.tensor([0.0, 0.4, 0.6]))  # two halves
    tensor([0, 0, 1])
    """
    ends = scores.softmax(-1).cumsum(-1)
    return (ends <= chance[..., None] * ends[..., -1:]).sum(-1).clamp(max=scores.shape[-1] - 1)


def _steps(
    order: str, rows: int, cols: int, model: PixelModel, device: torch.device
) -> list[tuple[Tensor, Tensor]]:
    """The rows and columns of the pixels drawn at each step."""
    if order not in ORDERS:
        raise NamingError(f"order is one of {', '.join(ORDERS)}, not {order!r}")
    if order == "diagonal" and model.net.directions != 1:
        raise DomainError(
            'order="diagonal" needs a model with directions=1: with 2 a pixel also waits for the row above '
            'to its right, which later anti-diagonals bring; take order="raster"'
        )
    if order == "raster":
        cells = torch.arange(rows * cols).split(1)
    else:
        found = wavefront_order(rows, cols)
        cells = torch.from_numpy(found.cells).split(found.counts)
    return [((c // cols).to(device), (c % cols).to(device)) for c in cells]


def _check_model(model: object) -> None:
    if not isinstance(model, PixelModel):
        raise NamingError(f"images are drawn from an lt.nn.PixelModel, not from a {type(model).__name__}")


def _check_way(mode: str, temperature: float, counts: dict[str, int]) -> None:
    if mode not in MODES:
        raise NamingError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
    if not temperature > 0:
        raise DomainError(
            f'temperature must be above 0, got {temperature}; mode="most likely" is its limit 0'
        )
    for name, count in counts.items():
        if not isinstance(count, int) or count < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(f"{name} must be a whole number from 1 on, got {count!r}")
        if mode == "most likely" and count > 1:
            raise DomainError(
                f'{name}={count} with mode="most likely" would all be the same; take mode="draw"'
            )


class Race:
    """Particles in groups, each weighed by how likely it finds what it meets.

    Where fewer than half of a group carry its weight, all are drawn again by weight (Gordon, Salmond and
    Smith 1993, the bootstrap filter, with evenly spaced draws).
    """

    def __init__(
        self, groups: int, particles: int, generator: torch.Generator | None, device: torch.device
    ) -> None:
        self.logs = torch.zeros(groups, particles, dtype=torch.float64, device=device)
        self.all = torch.arange(particles, device=device).expand(groups, particles)
        self.start = torch.arange(0, groups * particles, particles, device=device)[:, None]
        self.generator = generator

    def after(self, nats: Tensor) -> Tensor | None:
        """Which particles go on once these known pixels were met; None if all do."""
        groups, particles = self.logs.shape
        if particles == 1:
            return None
        self.logs = (self.logs - nats.view(groups, particles)).log_softmax(1)
        tired = (2 * self.logs).exp().sum(1, keepdim=True) * particles > 2  # fewer than half carry the weight
        if not bool(tired.any()):
            return None
        index = torch.where(tired, self._drawn(particles), self.all)
        self.logs = torch.where(tired, 0, self.logs)
        return (self.start + index).flatten()

    def winners(self) -> Tensor:
        """One particle of each group, drawn by weight."""
        return (self.start + self._drawn(1)).flatten()

    def _drawn(self, count: int) -> Tensor:
        """`count` particles of each group by weight, evenly spaced from a random start."""
        groups, particles = self.logs.shape
        if particles == 1:
            return self.all
        start = uniform((groups, 1), self.generator, self.logs.device)
        at = (torch.arange(count, device=start.device) + start) / count
        ends = self.logs.softmax(1).cumsum(1)
        return torch.searchsorted(ends, at, right=True).clamp(max=particles - 1)


def uniform(shape: tuple[int, ...], generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Numbers from 0 to 1, drawn where the generator lives."""
    home = device if generator is None else generator.device
    return torch.rand(shape, generator=generator, device=home, dtype=torch.float64).to(device)


class IncrementalGrid:
    """The states of the pixels seen so far, so that no pixel is run twice.

    A step takes pixels that do not wait for each other, by their rows and columns, each [pixels]: `features`
    gives what the net says at them, from those before, and `see` then takes them in. With two directions a
    step is one pixel, and they come row by row.
    """

    def __init__(self, net: GridRNN, batch: int, rows: int, cols: int) -> None:
        self.net, self.cols, self.pixels = net, cols, 0  # pixels seen so far
        self.weights = [net.weights(layer) for layer in range(net.layers)]
        self.near_weights = [beside(w.left[:1], w.top[:1]) for w in self.weights]
        like = net.W_in[0]

        def rest(pixels: int) -> list[Tensor]:
            """H, and c for an lstm, of one direction."""
            return [like.new_zeros(1, batch, pixels, net.h) for _ in range(1 + (net.cell.name == "lstm"))]

        # Down and right: all pixels and the edges left and above
        self.states = [rest((rows + 1) * (cols + 1)) for _ in self.weights]
        # Down and left: the row above, in the order of travel, and what each layer reads in this row
        two = self.weights if net.directions == 2 else []
        self.above = [rest(cols) for _ in two]
        self.read = [like.new_zeros(batch, 1, cols, w.into.shape[-1]) for w in two]
        self.past: tuple[Tensor, Neighbours] | None = None

    def features(self, row: Tensor, col: Tensor) -> Tensor:
        """What the net gives at these pixels, [batch, pixels, directions*h]; those before them were seen."""
        self.past = past, near = self._past(0, row, col)
        bias = self.weights[0].bias
        pre = torch.zeros_like(past) if bias is None else bias[0].expand_as(past)
        x = self._beside_left(0, state(self.net.cell, pre, past, near)[0], col)
        for layer in range(1, self.net.layers):
            h = self._run(layer, x, *self._past(layer, row, col), row, col)
            x = self._beside_left(layer, h, col)
        return x

    def see(self, row: Tensor, col: Tensor, x: Tensor) -> None:
        """Takes in the pixels of the last call of `features`, as the net reads them: [batch, pixels, c]."""
        assert self.past is not None
        self._run(0, x, *self.past, row, col)
        self.pixels += len(row)
        if self.above and self.pixels % self.cols == 0:
            self._go_left()

    def pick(self, index: Tensor) -> None:
        """Goes on with these images of the batch, in this order; one may come several times."""
        self.states = [[s.index_select(1, index) for s in layer] for layer in self.states]
        self.above = [[s.index_select(1, index) for s in layer] for layer in self.above]
        self.read = [x.index_select(0, index) for x in self.read]

    def _past(self, layer: int, row: Tensor, col: Tensor) -> tuple[Tensor, Neighbours]:
        """W_left h_left + W_top h_top at these pixels, and the states it is made of."""
        top = row * (self.cols + 1) + col + 1  # the pixel itself is a row further on, cols + 1 places
        sides = [s.index_select(2, at) for s in self.states[layer] for at in (top + self.cols, top)]
        near = Neighbours(*sides)
        return hidden(near, self.near_weights[layer]), near

    def _run(self, layer: int, x: Tensor, past: Tensor, near: Neighbours, row: Tensor, col: Tensor) -> Tensor:
        """The states h of pixels from what the layer reads there; they are saved for those that follow."""
        weights = self.weights[layer]
        pre = functional.linear(x, weights.into[0], None if weights.bias is None else weights.bias[0])
        h, c = state(self.net.cell, pre[None], past, near)
        here = (row + 1) * (self.cols + 1) + col + 1
        for own, new in zip(self.states[layer], (h, c), strict=False):
            assert new is not None
            own.index_copy_(2, here, new)
        if self.above:
            self.read[layer][:, 0].index_copy_(1, col, x)
        return h

    def _beside_left(self, layer: int, h: Tensor, col: Tensor) -> Tensor:
        """The output of a layer: h of the direction down and right, and h of the other from the row above."""
        if not self.above:
            return h[0]
        return torch.cat((h[0], self.above[layer][0][0].index_select(1, self.cols - 1 - col)), -1)

    def _go_left(self) -> None:
        """Runs the other direction over the row that is now whole, for the row below to read."""
        for layer, (into, bias, left, top) in enumerate(self.weights):
            h, *c = self.above[layer]
            found = scan(
                self.net.cell, self.read[layer], into[1:], None if bias is None else bias[1:],
                left[1:], top[1:], Edges(None, h, None, *c), flips=self.net.flips[1:], kernel=self.net.kernel,
            )  # fmt: skip
            self.above[layer] = [s[:, :, 0] for s in found if s is not None]
