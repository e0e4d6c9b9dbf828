"""Games in torch: functions of torch numbers, and a GAN on a ring of Gaussians, two small nets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from lattend.errors import DomainError, TraceError
from lattend.seeds import check_seed
from lattend.study.games.fields import PlainField
from lattend.study.games.game import step_pair
from lattend.study.games.methods import Method, Vector, method_of
from lattend.study.games.modes import Moment, Ring, RingRun


class TensorField(PlainField):
    """The gradients of a function of torch numbers, as numpy vectors."""

    def __init__(self, function: Callable[..., Any], first: int, many: int) -> None:
        super().__init__(first, float)
        self.function = function
        self.many = many

    def value(self, values: Sequence[Any]) -> float:
        return float(self._run(torch.tensor([float(x) for x in values], dtype=torch.float64)))

    def all(self, values: Sequence[Any]) -> Vector:
        point = torch.tensor([float(x) for x in values], dtype=torch.float64, requires_grad=True)
        return self._slope(point).detach().numpy()

    def hessian(self, values: Sequence[Any]) -> list[list[Any]]:
        point = torch.tensor([float(x) for x in values], dtype=torch.float64)
        matrix = torch.autograd.functional.hessian(self._run, point)
        assert isinstance(matrix, torch.Tensor)
        return matrix.tolist()

    def _run(self, point: torch.Tensor) -> torch.Tensor:
        value = self.function(*point.unbind())
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise TraceError(f"the game's function must give one number, got {value!r:.60}")
        return value.reshape(())

    def _slope(self, point: torch.Tensor) -> torch.Tensor:
        value = self._run(point)
        if not value.requires_grad:
            return torch.zeros_like(point)
        (slope,) = torch.autograd.grad(value, point, allow_unused=True)
        return torch.zeros_like(point) if slope is None else slope


SHOWN = 2000  # samples that are judged and drawn


class Net:
    """A perceptron whose parameters are one vector, as methods move them."""

    def __init__(self, widths: Sequence[int]) -> None:
        self.shapes = list(pairwise(widths))
        self.sizes = [size for inputs, outputs in self.shapes for size in (inputs * outputs, outputs)]

    def start(self, random: torch.Generator) -> Tensor:
        """Random weights, of variance 2 over the number of inputs, and biases of 0."""
        parts: list[Tensor] = []
        for inputs, outputs in self.shapes:
            parts += [
                torch.randn(inputs * outputs, generator=random) * math.sqrt(2 / inputs),
                torch.zeros(outputs),
            ]
        return torch.cat(parts)

    def __call__(self, parameters: Tensor, x: Tensor) -> Tensor:
        parts = parameters.split(self.sizes)
        for layer, shape in enumerate(self.shapes):
            x = torch.addmm(parts[2 * layer + 1], x, parts[2 * layer].view(shape))
            if layer < len(self.shapes) - 1:
                x = torch.tanh(x)
        return x


class RingField:
    """The gradients of the GAN's f on one batch; p is the generator's parameters, q the discriminator's.

    f = E log σ(D(x)) + E log(1 − σ(D(G(z)))), over data x and noise z: the generator makes it small.
    """

    def __init__(self, ring: Ring, seed: int) -> None:
        self.ring = ring
        self.random = torch.Generator().manual_seed(seed)
        inner = [ring.hidden] * ring.layers
        self.generator = Net([ring.noise, *inner, 2])
        self.discriminator = Net([2, *inner, 1])
        self.centres = torch.tensor(ring.centres(), dtype=torch.float32)
        self.next_batch()

    def next_batch(self) -> None:
        """Puts fresh data and noise in place of the last."""
        ring, random = self.ring, self.random
        which = torch.randint(ring.modes, (ring.batch,), generator=random)
        spread = ring.width * torch.randn(ring.batch, 2, generator=random)
        self.data = self.centres[which] + spread
        self.noise = torch.randn(ring.batch, ring.noise, generator=random)

    def value(self, p: Tensor, q: Tensor) -> Tensor:
        """F on the batch."""
        real = self.discriminator(q, self.data)
        made = self.discriminator(q, self.generator(p, self.noise))
        return -softplus(-real).mean() - softplus(made).mean()

    def gradient(self, p: Tensor, q: Tensor, movers: str = "pq") -> tuple[Any, Any]:
        p, q = _leaf(p), _leaf(q)
        return _slopes(self.value(p, q), p, q, movers)

    def consensus(self, p: Tensor, q: Tensor, movers: str = "pq") -> tuple[Any, Any]:
        p, q = _leaf(p), _leaf(q)
        down, up = torch.autograd.grad(self.value(p, q), (p, q), create_graph=True)
        return _slopes((down.dot(down) + up.dot(up)) / 2, p, q, movers)

    def penalty(self, p: Tensor, q: Tensor) -> Tensor:
        p, q = _leaf(p), _leaf(q)
        (down,) = torch.autograd.grad(self.value(p, q), p, create_graph=True)
        (slope,) = torch.autograd.grad(down.dot(down) / 2, q)
        return slope

    def number(self, value: Fraction) -> float:
        return float(value)

    def samples(self, p: Tensor) -> Tensor:
        """Samples of the generator, from noise that is the same at every step and for every seed."""
        noise = torch.randn(SHOWN, self.ring.noise, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            return self.generator(p, noise)


def ring(
    method: Method | str = "gradient_penalty",
    step: Any = None,
    steps: int = 3000,
    seed: int = 0,
    ring: Ring | None = None,
    looks: int = 60,
    progress: Callable[[Moment], None] | None = None,
    **options: Any,
) -> RingRun:
    """A GAN trained on a ring of Gaussians, looked at `looks` times: which modes its samples cover.

    Every step draws a new batch; both gradients of extragradient are of the same one. `ring` has the data and
    the nets' sizes, `options` belong to the method. Equal seeds on one machine give equal runs.
    """
    seed = check_seed(seed)
    chosen, field = method_of(method, **options), RingField(ring or Ring(), seed)
    pair = step_pair(field.ring.step if step is None else step)
    for name, number in (("steps", steps), ("looks", looks)):
        if not (isinstance(number, Integral) and 1 <= number <= 1_000_000):
            raise DomainError(f"training has 1 to 1,000,000 {name}, got {number!r}")
    h = float(pair[0]), float(pair[1])
    began = time.perf_counter()
    state = chosen.start(field, field.generator.start(field.random), field.discriminator.start(field.random))
    wanted = {round(steps * look / looks) for look in range(looks + 1)}
    moments: list[Moment] = []
    for at in range(steps + 1):
        if at in wanted:
            samples = field.samples(state[0])
            if not torch.isfinite(samples).all():
                break
            moments.append(field.ring.judge(at, samples.numpy()))
            if progress is not None:
                progress(moments[-1])
        if at < steps:
            field.next_batch()
            state = chosen.step(field, state, h)
    seconds = time.perf_counter() - began
    return RingRun(field.ring, str(chosen), pair, steps, seed, tuple(moments), seconds)


def _slopes(value: Tensor, p: Tensor, q: Tensor, movers: str) -> tuple[Any, Any]:
    """The gradients of a value by those who move, 0 for the other."""
    places = {"p": p, "q": q}
    slopes = torch.autograd.grad(value, [places[name] for name in movers])
    slope_of = dict(zip(movers, slopes, strict=True))
    return slope_of.get("p", 0), slope_of.get("q", 0)


def _leaf(parameters: Tensor) -> Tensor:
    return parameters.detach().requires_grad_()
