"""check_grid: GridRNN against plain loops of its equation in float64, outputs, gradients and batches."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lattend.attend.seams import library
from lattend.cost.reference.numbers import CountingTape, backward, counting, floats
from lattend.cost.reference.recurrence import rnn2d_stack
from lattend.errors import NamingError, TooLarge
from lattend.nn.grid.rnn import GridRNN
from lattend.nn.grid.states import ragged_mask
from lattend.nn.images.patch_grid import pair
from lattend.nn.pictures.grid_diagram import EQUATIONS, plain
from lattend.report.numbers import format_number
from lattend.report.report import Printed, Report
from lattend.report.table import Table
from lattend.wording import listed

KERNELS = (*([] if library.missing() else ["native"]), "diagonals", "reference")
WEIGHTS = {"W_in": "into", "W_left": "left", "W_top": "top"}
ROUNDING = 1e-12  # of the greatest number, a difference below which is rounding
MOST = 1_000_000  # products of the plain loops: some ten seconds

Found = dict[str, Tensor]


@dataclass(frozen=True)
class CheckedTensor:
    """One output or gradient: its greatest number, and by kernel the greatest difference from the loops."""

    JSON = "name greatest differences equal"

    name: str
    greatest: float
    differences: dict[str, float]

    @property
    def equal(self) -> bool:
        return all(gap <= ROUNDING * max(1.0, self.greatest) for gap in self.differences.values())


@dataclass(frozen=True, repr=False)
class GridCheck(Printed):
    """What the kernels of a GridRNN give beside plain loops, tensor by tensor; true if all are equal."""

    JSON = "module sizes equation equal=__bool__ greatest_difference=worst rows"

    module: str
    sizes: tuple[tuple[int, int], ...]
    equation: tuple[str, ...]
    rows: tuple[CheckedTensor, ...]

    def __bool__(self) -> bool:
        return all(row.equal for row in self.rows)

    @property
    def worst(self) -> float:
        """The greatest difference of all."""
        return max(gap for row in self.rows for gap in row.differences.values())

    def report(self, equation: bool = True) -> Report:
        """The table of differences; without the equation where it is shown beside it."""
        images = listed([f"{rows} × {cols}" for rows, cols in self.sizes])
        batch = ", one batch with a ragged mask," if len(self.sizes) > 1 else ""
        title = f"{self.module} on {images} pixels{batch} against plain loops, float64"
        kernels = list(self.rows[0].differences)
        cells = [
            (
                row.name,
                format_number(row.greatest),
                *(format_number(row.differences[kernel]) for kernel in kernels),
                "equal" if row.equal else "differs",
            )
            for row in self.rows
        ]
        table = Table(("greatest difference", "greatest value", *kernels, ""), cells)
        said = "equal up to rounding" if self else "they differ"
        above = self.equation if equation else ()
        return Report(title, [*above, table, "", f"{said}: {format_number(self.worst)} at most"])

    def __repr__(self) -> str:
        said = "equal" if self else "differs"
        return f"<GridCheck of {self.module}: {said}, {format_number(self.worst)} at most>"


def check_grid(
    source: Any,
    *sizes: int | tuple[int, int],
    cell: str = "rnn",
    activation: str | None = None,
    directions: int = 1,
    c: int = 3,
    h: int = 5,
    seed: int = 0,
) -> GridCheck:
    """A GridRNN, by each of its CPU kernels, against plain loops of its equation in float64.

    `source` is a GridRNN of one layer, or the size of an image; then the module is a random one, whose σ is
    the sigmoid. Images of several sizes run as one batch with a ragged mask, NaN in the padding, and the
    loops run on each of them alone. The gradients are those of the sum of h, weighed by random numbers.

    >>> bool(check_grid(2)), bool(check_grid((1, 3), (2, 2)))
    (True, True)
    """
    if isinstance(source, GridRNN):
        net = copy.deepcopy(source).double()
    else:
        sizes = (source, *sizes)
        usual = "sigmoid" if cell == "rnn" else "tanh"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = GridRNN(c, h, cell, directions, activation or usual, dtype=torch.float64)
    if not sizes:
        raise NamingError("give the size of an image too, such as (4, 6)")
    if net.layers != 1 or net.shift:
        raise NamingError("check_grid runs a GridRNN of one layer, without shift")
    images = tuple(pair("size", size) for size in sizes)
    gates = net.cell.gates * net.directions
    products = sum(rows * cols for rows, cols in images) * gates * net.h * (net.c + 2 * net.h)
    if products > MOST:
        raise TooLarge(
            f"plain loops would do {products:,} products, and at most {MOST:,} are done; take less"
        )
    given = torch.Generator().manual_seed(seed + 1)
    inputs = [_random(given, *image, net.c) for image in images]
    weighed = [_random(given, *image, net.directions * net.h) for image in images]
    wanted = _by_loops(net, inputs, weighed)
    found = {kernel: _by_kernel(net, kernel, inputs, weighed) for kernel in KERNELS}
    rows = [
        CheckedTensor(
            name,
            float(tensor.abs().max()),
            {kernel: float((by[name] - tensor).abs().max()) for kernel, by in found.items()},
        )
        for name, tensor in wanted.items()
    ]
    equation = tuple(plain(line) for line in EQUATIONS[net.cell.name])
    return GridCheck(repr(net), images, equation, tuple(rows))


def _random(source: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=source, dtype=torch.float64)


def _named(number: int, inputs: Sequence[Tensor], what: str) -> str:
    """`h`, or `h of image 1` where there are several."""
    return what if len(inputs) == 1 else f"{what} of image {number}"


def _by_loops(net: GridRNN, inputs: Sequence[Tensor], weighed: Sequence[Tensor]) -> Found:
    """The states and gradients, cell by cell on Python's floats, every image alone."""
    recorder = CountingTape()
    weights = counting(_listed(net), recorder)
    outputs: list[Any] = []
    pixels: list[Any] = []
    for image in inputs:
        pixels.append(counting(image.tolist(), recorder))
        outputs.append(rnn2d_stack(pixels[-1], weights, net.cell.name, net.directions, net.cell.activation))
    back = backward(outputs, torch.cat([weight.flatten() for weight in weighed]).tolist())
    found: Found = {}
    for number in range(len(inputs)):
        found[_named(number, inputs, "h")] = torch.tensor(floats(outputs[number]), dtype=torch.float64)
        if len(inputs) > 1:
            found[f"h in the padding of image {number}"] = torch.zeros((), dtype=torch.float64)
    for number, image in enumerate(pixels):
        found[_named(number, inputs, "gradient of x")] = torch.tensor(back.of(image), dtype=torch.float64)
    for name in [*WEIGHTS, *(["b"] if net.bias else [])]:
        ways = [back.of(weights[f"0.{way}.{name}"]) for way in range(net.directions)]
        found[f"gradient of {name}"] = torch.tensor(ways, dtype=torch.float64).flatten(0, 1)
    return found


def _listed(net: GridRNN) -> dict[str, Any]:
    """The weights as rnn2d_stack names them."""
    own = net.weights(0)
    parts = {**WEIGHTS, **({"b": "bias"} if net.bias else {})}
    ways = range(net.directions)
    return {
        f"0.{way}.{name}": getattr(own, part)[way].tolist() for way in ways for name, part in parts.items()
    }


def _by_kernel(net: GridRNN, kernel: str, inputs: Sequence[Tensor], weighed: Sequence[Tensor]) -> Found:
    """The same by a kernel of the module, all images in one batch."""
    runs = copy.deepcopy(net)
    runs.kernel = kernel
    sizes = [(image.shape[0], image.shape[1]) for image in inputs]
    mask = ragged_mask(sizes)
    x = torch.full((*mask.shape, net.c), torch.nan, dtype=torch.float64)
    for number, image in enumerate(inputs):
        x[number, : image.shape[0], : image.shape[1]] = image
    out = runs(x.requires_grad_(), mask=None if bool(mask.all()) else mask)
    places = [(number, slice(rows), slice(cols)) for number, (rows, cols) in enumerate(sizes)]
    parts = [(out[place] * weight).sum() for place, weight in zip(places, weighed, strict=True)]
    names = [*WEIGHTS, *(["b"] if net.bias else [])]
    grad_x, *grads = torch.autograd.grad(
        torch.stack(parts).sum(), [x, *(getattr(runs, name)[0] for name in names)]
    )
    found: Found = {}
    for number, place in enumerate(places):
        found[_named(number, inputs, "h")] = out[place].detach()
        found[_named(number, inputs, "gradient of x")] = grad_x[place]
        beyond = out[number][~mask[number]].detach()
        found[f"h in the padding of image {number}"] = (
            beyond.abs().max() if beyond.numel() else out.new_zeros(())
        )
    return found | {f"gradient of {name}": grad for name, grad in zip(names, grads, strict=True)}
