"""Spots: the heads of layers as ellipses over the image around a query pixel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lattend.draw.charts.heat import Scale, amounts
from lattend.draw.formats.palette import AMOUNTS, Look
from lattend.draw.grid.marks import Label, Mark, Shape, box, clipped, ellipse, inside
from lattend.draw.grid.panel import Panel, Side, nice_step
from lattend.draw.grid.titles import first_to_last
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError, NamingError
from lattend.nn.attention.gaussian_heads import Floats, Head, check_many
from lattend.report.numbers import format_number

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4fa0", "#8a6d00")
PAPER = Look("", "#f4f6f8", " ", " ", 245, share=0.0)
QUERY = "#1c1f26"
HALF, MOST = math.log(2), math.log(10)  # how far below the centre's the score is on the two lines
DRAWN = (
    "outlined: the query",
    "thick line: half of a head's Gaussian lies inside, on the plane without pixels; thin line: nine tenths",
)
LEAST_REACH, MOST_REACH = 2, 12
MOST_PIXELS = 256  # along a side of an image


def spots(
    heads: Sequence[Head] | Mapping[str, Sequence[Head]],
    size: tuple[int, int] | None = None,
    pixel: tuple[int, int] | None = None,
    title: str = "Heads around a query pixel",
) -> Picture:
    """The heads of one layer, or of layers by name: an ellipse each, and its number at its centre.

    Without `size` the image has no edges and is drawn as far as the heads attend. `pixel` is the query, in
    the middle if not given.

    >>> from lattend.nn.attention.gaussian_heads import kernel_heads
    >>> spots(kernel_heads(3, alpha=2)).table[1]
    ('0', '−1', '−1', '0.5', '0.619')
    """
    layers = _layers(heads)
    window = _Window.around([head for layer in layers.values() for head in layer], size, pixel)
    panels = tuple(_panel(name, layer, window) for name, layer in layers.items())
    rough, scale = _rough(layers, window)
    wide = [head for layer in layers.values() for head in layer if not math.isfinite(head.widths[1])]
    flat = [f"flat along an axis, drawn by their centre alone: {len(wide)} of the heads"] if wide else []
    return Picture(
        title,
        panels,
        tuple(flat),
        (window.words,),
        rough_scales=(scale,),
        table=tuple(_table(layers)),
        rough=rough,
        labelled=Below((*_labels(layers, rough), *flat), scales=(scale,)),
        drawn=DRAWN,
        data=_data(layers, window),
        columns=3,
        grid=308 if len(panels) == 1 else 220,
    )


def _layers(heads: Sequence[Head] | Mapping[str, Sequence[Head]]) -> dict[str, Sequence[Head]]:
    layers = dict(heads) if isinstance(heads, Mapping) else {"": heads}
    many = sum(len(layer) for layer in layers.values())
    if not many:
        raise NamingError("there is no head to draw; give one or more")
    check_many(many)
    for name, layer in layers.items():
        for number, head in enumerate(layer):
            if not all(math.isfinite(x) for x in (*head.centre, *head.precision)):
                raise DomainError(f"head {number}{f' of {name}' if name else ''} is not finite: {head}")
    return layers


class _Window:
    """The pixels that are drawn: an image, or what lies around a query on one without edges."""

    def __init__(self, rows: int, cols: int, query: tuple[int, int], shifted: bool) -> None:
        self.rows, self.cols, self.query, self.shifted = rows, cols, query, shifted

    @staticmethod
    def around(heads: Sequence[Head], size: tuple[int, int] | None, pixel: tuple[int, int] | None) -> _Window:
        if size is None:
            if pixel is not None:
                raise NamingError("a pixel is one of an image: give its size too")
            far = max(math.ceil(max(map(abs, h.centre)) + min(2 * h.widths[1], 4.0)) for h in heads)
            reach = max(LEAST_REACH, min(MOST_REACH, far))
            return _Window(2 * reach + 1, 2 * reach + 1, (reach, reach), shifted=True)
        if not (min(size) >= 1 and max(size) <= MOST_PIXELS):
            raise DomainError(f"an image has 1 to {MOST_PIXELS} rows and columns, got {size[0]} × {size[1]}")
        query = (size[0] // 2, size[1] // 2) if pixel is None else pixel
        if not (0 <= query[0] < size[0] and 0 <= query[1] < size[1]):
            raise DomainError(f"pixel {query} lies outside an image of {size[0]} × {size[1]}")
        return _Window(*size, query, shifted=False)

    @property
    def words(self) -> str:
        if self.shifted:
            return "an image without edges; rows and columns are counted from the query"
        return f"an image of {self.rows} × {self.cols} pixels, the query at {self.query}"

    def sides(self) -> tuple[Side, Side]:
        """Ticks at pixels, or at shifts from the query."""
        found: list[Side] = []
        for name, length, at in zip(("row", "column"), (self.rows, self.cols), self.query, strict=True):
            start = -at if self.shifted else 0
            step = nice_step(length, 16 if length <= 16 else 8)
            first = -(-start // step) * step
            places = range(first, start + length, step)
            ticks = tuple((place - start + 0.5, str(place).replace("-", "−")) for place in places)
            found.append(Side(name, length, ticks))
        return found[0], found[1]

    def place(self, head: Head) -> tuple[float, float]:
        """The head's centre in cells of the panel."""
        return self.query[0] + 0.5 + head.centre[0], self.query[1] + 0.5 + head.centre[1]

    def holds(self, place: tuple[float, float]) -> bool:
        return 0 <= place[0] < self.rows and 0 <= place[1] < self.cols


def _panel(name: str, heads: Sequence[Head], window: _Window) -> Panel:
    cells = np.zeros((window.rows, window.cols), np.uint8)
    return Panel(cells, (PAPER,), *window.sides(), name, tuple(_marks(heads, window)))


def _marks(heads: Sequence[Head], window: _Window) -> Iterator[Mark]:
    """Areas first, then lines, then numbers, so that none hides another."""
    seen = [(number, head) for number, head in enumerate(heads) if math.isfinite(head.widths[1])]
    for (number, head), level in itertools.product(seen, (HALF,)):
        area = clipped(ellipse(window.place(head), head.precision, level), window.rows, window.cols)
        if area:
            yield Shape(area, fill=COLOURS[number % len(COLOURS)], opacity=0.28)
    for (number, head), (level, width) in itertools.product(seen, ((MOST, 0.7), (HALF, 1.6))):
        line = ellipse(window.place(head), head.precision, level)
        for run in inside(line, window.rows, window.cols):
            yield Shape(run, COLOURS[number % len(COLOURS)], width, closed=False)
    together: dict[tuple[float, float], list[int]] = {}
    for number, head in enumerate(heads):
        place = window.place(head)
        if window.holds(place):
            together.setdefault((round(place[0], 1), round(place[1], 1)), []).append(number)
    row, col = window.query
    yield box(row, col, row + 1, col + 1, QUERY, 1.8)
    for (y, x), numbers in together.items():
        yield Label(y, x, _listed(numbers), room=max(1.0, window.rows / 16))


def _listed(numbers: Sequence[int]) -> str:
    """`3`, `3,4`, or `3…` where three or more stand at one place."""
    return ",".join(map(str, numbers)) if len(numbers) < 3 else f"{numbers[0]}…"


def _rough(layers: Mapping[str, Sequence[Head]], window: _Window) -> tuple[tuple[Panel, ...], Scale]:
    """Heat maps of the weights, with the heads' numbers at their centres, for a terminal."""
    maps: dict[str, Floats] = {}
    for name, layer in layers.items():
        maps[name] = np.zeros((window.rows, window.cols))
        for head in layer:
            maps[name] += head.weights(window.rows, window.cols, window.query)
    scale = amounts("weights of all heads together", np.array(list(maps.values())))
    panels: list[Panel] = []
    for name, layer in layers.items():
        labels = tuple(mark for mark in _marks(layer, window) if isinstance(mark, Label))
        query = Label(window.query[0] + 0.5, window.query[1] + 0.5, "Q")
        taken = {(int(mark.row), int(mark.col)) for mark in labels}
        shown = labels if window.query in taken else (*labels, query)
        panels.append(Panel(scale.cells(maps[name]), AMOUNTS, *window.sides(), name, shown))
    return tuple(panels), scale


def _labels(layers: Mapping[str, Sequence[Head]], rough: Sequence[Panel]) -> Iterator[str]:
    """What the words on the heat maps are."""
    shown = {text for panel in rough for text in panel.labels().values()}
    most = max(map(len, layers.values()))
    yield f"{first_to_last(most)}: the head{'s' if most > 1 else ''}, in place of the weight at the centre"
    if any(text.endswith("…") for text in shown):
        yield "a number with … stands for several heads"
    if "Q" in shown:
        yield "Q: the query"


def _table(layers: Mapping[str, Sequence[Head]]) -> Iterator[tuple[str, ...]]:
    """A heading and a row for each head."""
    named = ("layer",) if len(layers) > 1 else ()
    yield (*named, "head", "row", "column", "width px", "own weight")
    for name, heads in layers.items():
        for number, head in enumerate(heads):
            narrow, wide = map(_width, head.widths)
            width = narrow if narrow == wide else f"{narrow} to {wide}"
            layer = (name,) if named else ()
            yield (
                *layer,
                str(number),
                *map(format_number, head.centre),
                width,
                format_number(head.sharpest()),
            )


def _width(width: float) -> str:
    return format_number(width) if math.isfinite(width) else "flat"


def _data(layers: Mapping[str, Sequence[Head]], window: _Window) -> dict[str, object]:
    found: dict[str, object] = {} if window.shifted else {"size": [window.rows, window.cols]}
    found |= {} if window.shifted else {"pixel": list(window.query)}
    found["layers"] = {
        name: [
            {
                "centre": list(head.centre),
                "precision": list(head.precision),
                "widths": [width if math.isfinite(width) else None for width in head.widths],
                "weight": head.sharpest(),
            }
            for head in heads
        ]
        for name, heads in layers.items()
    }
    return found
