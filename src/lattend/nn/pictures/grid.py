"""draw_grid: the steps of a 2-D RNN, receptive fields in it and in a convnet, and both prices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend import cost
from lattend.cost.cost import Cost
from lattend.cost.reference.recurrence import check_cell, check_directions
from lattend.cost.sizes import Size
from lattend.draw.charts.chart import Scale
from lattend.draw.formats.palette import AMOUNTS, ATTENDED, EMPTY, OWN, Look
from lattend.draw.grid.marks import Mark
from lattend.draw.grid.panel import Bools, Panel, cell_side
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError, NamingError
from lattend.nn.grid.schedule import WAITS, steps, wavefront_order
from lattend.nn.pictures.grid_diagram import draw_diagram
from lattend.nn.pictures.panels import (
    Facts,
    Pixel,
    check_size,
    grid_arguments,
    legend,
    numbers,
    pixel_of,
    refuse,
)
from lattend.report.numbers import format_value
from lattend.wording import many

Pair = int | tuple[int, int]
# Whether rows and columns are flipped before the sweep, and back after it
WAYS = {
    1: {"down and right": (False, False)},
    2: {"down and right": (False, False), "down and left": (False, True)},
    4: {
        "down and right": (False, False),
        "down and left": (False, True),
        "up and right": (True, False),
        "up and left": (True, True),
    },
}
LARGEST = 1024  # rows or columns of an image
MOST_DRAWN = 128  # of one that is drawn
MOST_LAYERS = 128
MOST_FRAMES = 32
USUAL = {"directions": 1, "cell": "rnn", "c": "c", "h": "h"}


def draw_grid(
    source: Any = None,
    *,
    size: Pair | None = None,
    directions: int = 1,
    cell: str = "rnn",
    pixel: Pixel | None = None,
    kernel: int = 3,
    layers: int = 3,
    c: Size = "c",
    h: Size = "h",
    frames: bool = False,
    diagram: bool = False,
) -> Picture:
    """The steps of a 2-D RNN on an image, one pixel's receptive field, and both of a convnet of K × K layers.

    `source` is the size of the image, or a `lt.nn.GridRNN` with the size given by name. `frames` draws the
    image step by step instead, `diagram` the planes of pixels and states, the weights as arrows, and the
    equation. Prices are formulas until c and h are numbers. Of images with more than 128 rows or columns no
    picture is drawn.

    >>> dict(draw_grid(8).facts)["steps"]
    '15, sequential: cell (row, col) runs at step col + row'
    """
    module = grid_arguments(source)
    if module is not None:
        refuse({"directions": directions, "cell": cell, "c": c, "h": h}, USUAL)
        asked: dict[str, Any] = {"pixel": pixel, "kernel": kernel, "layers": layers}
        return draw_grid(size=size, frames=frames, diagram=diagram, **asked, **module)
    if source is not None and size is not None:
        raise NamingError("the size is given twice: leave one out, or give a GridRNN and its size")
    image = 8 if source is None and size is None else source if size is None else size
    grid = grid_nets(image, directions=directions, kernel=kernel, layers=layers, cell=cell)
    query = pixel_of((grid.rows, grid.cols), pixel)
    if diagram:
        if frames or directions != 1:
            raise NamingError("a diagram shows one direction, at no step: leave frames and directions out")
        return draw_diagram(grid.rows, grid.cols, cell, None if pixel is None else query, c, h)
    ways = ", ".join(WAYS[directions])
    title = f"A 2-D RNN on {grid.rows} × {grid.cols} pixels"
    title += "" if cell == "rnn" else f", {cell} cells"
    about = (f"{directions} direction{'s' if directions > 1 else ''}: {ways}",)
    facts, data = grid.summary(query, c, h)
    if not grid.drawn:
        about += (f"no picture: cells of more than {MOST_DRAWN} rows or columns are too small to be seen",)
        return Picture(title, (), (), about, facts=facts, data=data)
    if frames:
        return _frames(grid, title, about, facts, data)
    return _sights(grid, title, about, query, facts, data)


def grid_nets(
    size: Any, *, directions: int = 1, kernel: int = 3, layers: int = 3, cell: str = "rnn"
) -> GridNets:
    """A 2-D RNN, and a convnet of K × K layers, on one image."""
    check_cell(cell)
    return GridNets(*_checked(size, directions, kernel, layers), directions, kernel, layers, cell)


@dataclass(frozen=True)
class GridNets:
    """A 2-D RNN and a convnet on one image."""

    rows: int
    cols: int
    directions: int
    kernel: int
    layers: int
    cell: str = "rnn"

    @cached_property
    def ways(self) -> dict[str, Ints]:
        """The step of each cell, by direction: those of the proved schedule, flipped."""
        own = steps(self.rows, self.cols)
        return {
            name: own[:: -1 if up else 1, :: -1 if left else 1]
            for name, (up, left) in WAYS[self.directions].items()
        }

    @property
    def drawn(self) -> bool:
        return max(self.rows, self.cols) <= MOST_DRAWN

    @property
    def depth(self) -> int:
        return 1 + int(max(way.max() for way in self.ways.values()))

    @property
    def at_once(self) -> list[int]:
        """How many cells of one direction run at each step."""
        return wavefront_order(self.rows, self.cols).counts

    @property
    def widest(self) -> int:
        """The most cells of one direction that run at once."""
        return max(self.at_once)

    def receptive_field(self, pixel: Pixel) -> Any:
        """What flows into a pixel from all directions."""
        ways = waits_of(self.directions).values()
        found = [reached((self.rows, self.cols), pixel, waits) for waits in ways]
        return np.logical_or.reduce(found)

    def raster_field(self, pixel: Pixel) -> Any:
        """What a causal model in raster order attends to: the pixels before this one, row by row, and it."""
        order = np.arange(self.rows * self.cols).reshape(self.rows, self.cols)
        return order <= order[pixel]

    def until(self, pixel: Pixel, layers: int | None = None) -> Ints:
        """How many layers of the convnet bring each pixel into the receptive field."""
        most = self.layers if layers is None else layers
        return layers_until((self.rows, self.cols), pixel, (self.kernel, self.kernel), most)

    def whole(self, pixel: Pixel) -> int | None:
        """The layers until a pixel's receptive field is the whole image; None where it never is."""
        until = self.until(pixel, self.rows + self.cols)
        return None if until.min() < 0 else int(until.max())

    def seen(self, pixel: Pixel) -> tuple[int, int]:
        """How many pixels a pixel's receptive field has, in the 2-D RNN and in the convnet."""
        return int(self.receptive_field(pixel).sum()), int((self.until(pixel) >= 0).sum())

    def field_words(self, pixel: Pixel) -> str:
        """The same in words, and how many layers of the convnet would see all."""
        whole, (field, conv) = self.whole(pixel), self.seen(pixel)
        more = "more layers never cover the whole image"
        if whole is not None:
            more = f"{many(whole, 'layer')} cover{'s' if whole == 1 else ''} the whole image"
        total = many(self.rows * self.cols, "pixel")
        return f"of pixel {pixel}: {field:,} of {total} in the 2-D RNN, {conv:,} in the convnet; {more}"

    def recurrent(self, c: Size, h: Size) -> Cost:
        return cost.rnn2d(
            rows=self.rows, cols=self.cols, c=c, h=h, directions=self.directions, cell=self.cell
        )

    def convnet(self, c: Size, h: Size) -> Cost:
        """K × K layers that keep the size, the first from c channels to h."""
        first, next_ = (
            cost.conv(
                rows=self.rows,
                cols=self.cols,
                c_in=c_in,
                c_out=h,
                kernel=self.kernel,
                padding="same",
                bias=False,
            )
            for c_in in (c, h)
        )
        return first + (self.layers - 1) * next_ if self.layers > 1 else first

    def summary(self, pixel: Pixel, c: Size, h: Size) -> tuple[Facts, dict[str, Any]]:
        """Steps, prices and receptive fields, in words and as data."""
        rnn, net = self.recurrent(c, h), self.convnet(c, h)
        total, whole = self.rows * self.cols, self.whole(pixel)
        field, conv = self.seen(pixel)
        schedule = rnn.parts[0][1].depth.schedule
        stack = f"{many(self.layers, 'layer')} of {self.kernel} × {self.kernel}"
        facts = (
            ("steps", f"{self.depth}, sequential: {schedule}"),
            ("at once", f"up to {self.widest * self.directions} of {many(total * self.directions, 'cell')}"),
            ("2-D RNN", _price(rnn)),
            ("convnet", f"{stack}: {_price(net)}"),
            ("its steps", f"{self.layers}, all pixels of a layer at once"),
            ("receptive field", self.field_words(pixel)),
        )
        data = {
            "size": [self.rows, self.cols],
            "directions": self.directions,
            "cell": self.cell,
            "depth": self.depth,
            "schedule": schedule,
            **({"steps": {name: way.tolist() for name, way in self.ways.items()}} if self.drawn else {}),
            "widest": self.widest,
            "rnn2d": _amounts(rnn),
            "convnet": {
                "kernel": self.kernel,
                "layers": self.layers,
                **_amounts(net),
                "whole_image": whole,
            },
            "pixel": list(pixel),
            "receptive_field": {"rnn2d": field, "convnet": conv, "pixels": total},
        }
        return facts, data


def _sights(
    grid: GridNets, title: str, about: tuple[str, ...], pixel: Pixel, facts: Facts, data: dict[str, Any]
) -> Picture:
    """The steps of each direction, and a pixel's receptive field in both nets."""
    scale = step_scale(next(iter(grid.ways.values())))
    panels = [
        step_panel(f"steps, {name}" if grid.directions > 1 else "steps", way, scale)
        for name, way in grid.ways.items()
    ]
    looks = layer_looks(grid.layers)
    panels.append(field_panel("receptive field, 2-D RNN", grid.receptive_field(pixel), pixel))
    panels.append(layers_panel("receptive field, convnet", grid.until(pixel), looks))
    shown = legend(panels[-2:], (HERE, FIELD, *looks[2:]))
    columns = 3 if grid.directions == 1 else 2 if grid.directions == 2 else 3
    return Picture(
        title, tuple(panels), (), about, legend=shown, facts=facts, scales=(scale,), columns=columns,
        grid=224, data=data,
        labelled=Below(_first_seen(panels[-1]), legend(panels[-2:], (HERE, FIELD))),
    )  # fmt: skip


def _first_seen(panel: Panel) -> tuple[str, ...]:
    """What the numbers on a convnet's panel are."""
    layers = sorted({int(text) for text in panel.labels().values()})
    listed = ", ".join(map(str, layers)) if len(layers) < 5 else f"{layers[0]}–{layers[-1]}"
    return (f"{listed}: in the receptive field from this layer on",) if layers else ()


def _frames(
    grid: GridNets, title: str, about: tuple[str, ...], facts: Facts, data: dict[str, Any]
) -> Picture:
    """The image at every step, or at some where there are many."""
    every = -(-grid.depth // MOST_FRAMES)
    shown_at = sorted({*range(0, grid.depth, every), grid.depth - 1})
    panels = [frame(f"step {at}", list(grid.ways.values()), at) for at in shown_at]
    caption = (f"shown: every {every} steps of {grid.depth}, and the last",) if every > 1 else ()
    return Picture(
        f"{title}, step by step",
        tuple(panels),
        caption,
        about,
        legend=legend(panels, FRAME_LOOKS[1:]),
        facts=facts[:3],
        columns=5,
        grid=120,
        data=data,
    )


def waits_of(directions: int) -> dict[str, list[Shift]]:
    """By direction, where the cells are that a cell waits for.

    >>> waits_of(2)["down and left"]
    [(0, 1), (-1, 0)]
    """
    return {
        name: [(-dy if up else dy, -dx if left else dx) for dy, dx in WAITS]
        for name, (up, left) in WAYS[directions].items()
    }


def _checked(size: Any, directions: int, kernel: int, layers: int) -> tuple[int, int]:
    pair: tuple[Any, ...] = tuple(size) if isinstance(size, tuple | list) else (size, size)
    if len(pair) != 2 or not all(hasattr(number, "__index__") for number in pair):
        raise DomainError(
            "give the size of the image, such as 8 or (8, 12), or a GridRNN and size=(8, 12), "
            f"got {size!r:.60}"
        )
    rows, cols = pair
    check_size((rows, cols), LARGEST)
    check_directions(directions)
    for name, number in (("kernel", kernel), ("layers", layers)):
        if number < 1:
            raise DomainError(f"{name} must be at least 1, got {number}")
    if layers > MOST_LAYERS:
        raise DomainError(f"layers must be at most {MOST_LAYERS}, got {layers}")
    return rows, cols


def _amounts(cost: Cost) -> dict[str, Any]:
    """Multiplies and parameters as plain data, formulas as texts."""
    found = {"multiplies": cost.multiplies, "parameters": cost.parameters}
    return {name: value if isinstance(value, int) else str(value) for name, value in found.items()}


def _price(cost: Cost) -> str:
    return f"{format_value(cost.multiplies)} multiplies, {format_value(cost.parameters)} parameters"


Ints = NDArray[np.int64]
Shift = tuple[int, int]

WAITING = EMPTY
SOME = Look("done in some directions", "#dbe9f5", "░", ":", 153, share=0.25)
DONE = Look("done", "#9cc4ea", "▒", "+", 111, share=0.5)
NOW = Look("runs at this step", "#0f2b52", "█", "@", 33, share=1.0)
FRAME_LOOKS = (WAITING, SOME, DONE, NOW)
FIELD = Look("in the receptive field", ATTENDED.fill, "▚", "#", 75, share=1.0)
HERE = Look("the pixel itself", OWN.fill, "█", "@", 33, share=1.0)


def step_scale(steps: Ints) -> Scale:
    """Colours of steps, from the first to the last."""
    return Scale("step", 0.0, float(max(1, steps.max())))


def step_panel(title: str, steps: Ints, scale: Scale) -> Panel:
    """Every cell with its step, as a number where there is room and as a colour."""
    cells = scale.cells(steps.astype(float))
    return _grid(title, cells, AMOUNTS, numbers(steps, cells, AMOUNTS))


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
    return _grid(title, cells, looks, numbers(until, cells, looks, least=1))


def _grid(title: str, cells: NDArray[np.uint8], looks: tuple[Look, ...], marks: Sequence[Mark] = ()) -> Panel:
    rows, cols = cells.shape
    return Panel(cells, looks, cell_side("row", rows), cell_side("column", cols), title, tuple(marks))
