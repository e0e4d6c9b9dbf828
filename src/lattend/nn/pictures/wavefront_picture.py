"""Wavefront: the steps in which the cells of a grid run, and the receptive field of a pixel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lattend.draw.charts.chart import Scale
from lattend.draw.formats.palette import AMOUNTS, ATTENDED, EMPTY, OWN, Look, ink
from lattend.draw.grid.marks import Label, Mark
from lattend.draw.grid.panel import Bools, Panel, cell_side

Ints = NDArray[np.int64]
Pixel = tuple[int, int]
Shift = tuple[int, int]

WAITING = EMPTY
SOME = Look("done in some directions", "#dbe9f5", "░", ":", 153, share=0.25)
DONE = Look("done", "#9cc4ea", "▒", "+", 111, share=0.5)
NOW = Look("runs at this step", "#0f2b52", "█", "@", 33, share=1.0)
FRAME_LOOKS = (WAITING, SOME, DONE, NOW)
FIELD = Look("in the receptive field", ATTENDED.fill, "▚", "#", 75, share=1.0)
HERE = Look("the pixel itself", OWN.fill, "█", "@", 33, share=1.0)
MOST_NUMBERS = 32  # rows or columns whose cells are numbered


def step_scale(steps: Ints) -> Scale:
    """Colours of steps, from the first to the last."""
    return Scale("step", 0.0, float(max(1, steps.max())))


def step_panel(title: str, steps: Ints, scale: Scale) -> Panel:
    """Every cell with its step, as a number where there is room and as a colour."""
    cells = scale.cells(steps.astype(float))
    return _grid(title, cells, AMOUNTS, _numbers(steps, cells, AMOUNTS))


def frame(title: str, ways: Sequence[Ints], at: int) -> Panel:
    """The grid at one step: what runs, what is done; `ways` are the steps of each direction."""
    past = np.sum([steps < at for steps in ways], axis=0)
    now = np.any([steps == at for steps in ways], axis=0)
    cells = np.where(past == len(ways), 2, np.where(past > 0, 1, 0))
    cells = np.where(now, FRAME_LOOKS.index(NOW), cells).astype(np.uint8)
    return _grid(title, cells, FRAME_LOOKS)


def reached(shape: Pixel, pixel: Pixel, waits: Iterable[Shift]) -> Bools:
    """The cells whose states flow into a pixel, itself too, when each takes those `waits` away from it."""
    found = np.zeros(shape, bool)
    found[pixel] = True
    open_, shifts = [pixel], list(waits)
    while open_:
        row, col = open_.pop()
        for dy, dx in shifts:
            other = (row + dy, col + dx)
            if 0 <= other[0] < shape[0] and 0 <= other[1] < shape[1] and not found[other]:
                found[other] = True
                open_.append(other)
    return found


def layers_until(shape: Pixel, pixel: Pixel, kernel: tuple[int, int], layers: int) -> Ints:
    """How many layers of a convnet bring each pixel into the receptive field; -1 beyond `layers`.

    >>> layers_until((1, 6), (0, 0), (1, 3), 2).tolist()
    [[0, 1, 2, -1, -1, -1]]
    """
    found = np.full(shape, -1, np.int64)
    found[pixel] = 0
    spans = [(at, at) for at in pixel]
    for layer in range(1, layers + 1):
        # a tap reaches (K - 1)//2 pixels back and K//2 on, as "same" padding has it
        spans = [
            (max(0, low - (taps - 1) // 2), min(size - 1, high + taps // 2))
            for (low, high), taps, size in zip(spans, kernel, shape, strict=True)
        ]
        part = found[spans[0][0] : spans[0][1] + 1, spans[1][0] : spans[1][1] + 1]
        part[part < 0] = layer
    return found


def field_panel(title: str, field: Bools, pixel: Pixel) -> Panel:
    """The receptive field of a pixel."""
    cells = field.astype(np.uint8)
    cells[pixel] = 2
    return _grid(title, cells, (EMPTY, FIELD, HERE))


def layer_looks(layers: int) -> tuple[Look, ...]:
    """Nothing, the pixel itself, then a colour for each layer, the darkest first."""
    found: list[Look] = []
    for layer in range(1, layers + 1):
        along = 0.68 if layers == 1 else 0.68 - 0.5 * (layer - 1) / (layers - 1)
        shade = AMOUNTS[round(along * (len(AMOUNTS) - 1))]
        words = "from layer 1 on" if layer == 1 else f"layer {layer}"
        found.append(Look(words, shade.fill, shade.glyph, shade.plain, shade.ansi, shade.share))
    return (EMPTY, HERE, *found)


def layers_panel(title: str, until: Ints, looks: tuple[Look, ...]) -> Panel:
    """The receptive field in a convnet, each pixel by the layer that brings it in."""
    cells = (until + 1).astype(np.uint8)
    return _grid(title, cells, looks, _numbers(until, cells, looks, least=1))


def _grid(title: str, cells: NDArray[np.uint8], looks: tuple[Look, ...], marks: Sequence[Mark] = ()) -> Panel:
    rows, cols = cells.shape
    return Panel(cells, looks, cell_side("row", rows), cell_side("column", cols), title, tuple(marks))


def _numbers(numbers: Ints, cells: NDArray[np.uint8], looks: tuple[Look, ...], least: int = 0) -> list[Mark]:
    """The number of each cell from `least` on, all of one size."""
    if max(numbers.shape) > MOST_NUMBERS:
        return []
    longest = str(int(numbers.max()))
    return [
        Label(row + 0.5, col + 0.5, str(int(number)), ink(looks[int(cells[row, col])].fill), like=longest)
        for (row, col), number in np.ndenumerate(numbers)
        if number >= least
    ]
