"""draw_heads: the heads of a layer over the image, from their numbers, a module, a state dict or a file."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lattend.draw.charts.chart import Scale, amount_scale
from lattend.draw.formats.palette import AMOUNTS, Look
from lattend.draw.grid.marks import Label, Mark, Shape, clipped, ellipse, inside
from lattend.draw.grid.panel import Panel, Side
from lattend.draw.grid.titles import first_to_last
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError, NamingError
from lattend.nn.attention.gaussian_heads import (
    Floats,
    Head,
    check_many,
    from_covariance,
    isotropic,
    kernel_heads,
)
from lattend.nn.images.patch_grid import pair
from lattend.nn.pictures.panels import Pixel, check_size, outline, pixel_of, pixel_side
from lattend.nn.pictures.saved_heads import heads_of_arrays, read_heads
from lattend.report.numbers import format_number, format_weight

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4fa0", "#8a6d00", "#7d8590")
PAPER = Look("", "#f4f6f8", " ", " ", 245, share=0.0)
HALF, MOST = math.log(2), math.log(10)  # how far below the centre's the score is on the two lines
INSIDE = "line: half of a head's Gaussian lies inside, on the plane without pixels"
DRAWN = ("outlined: the query", f"thick {INSIDE}; thin line: nine tenths")
DRAWN_CROWDED = ("outlined: the query", INSIDE)
LEAST_REACH, MOST_REACH = 2, 12
RIM = 1.6  # how far below the centre's the score is where a number stands, of that on the thick line
MOST_OVER = 3  # heads over one place that are told apart
MOST_APART, MOST_COLUMNS = 36, 6  # panels with a head each
MOST_PIXELS = 256  # along a side of an image


def draw_heads(
    source: Any,
    *,
    size: int | Pixel | None = None,
    pixel: Pixel | None = None,
    title: str | None = None,
    reach: int | None = None,
    filled: bool | None = None,
) -> Picture:
    """Heads as ellipses around a query pixel, with their numbers at their centres.

    `source` is a list of heads (`lattend.nn.attention.gaussian_heads.Head`), layers of them by name, a module
    with the quadratic encoding or a model of such, its state dict, or a file of one: .pt, .npz, .json.
    Without a `size` the image has no edges, and `reach` pixels on each side of the query are shown. Heads are
    `filled` areas, and lines alone where many of a layer overlap, unless one is said.

    >>> from lattend.nn import kernel_heads
    >>> draw_heads(kernel_heads(3)).title
    'Heads around a query pixel'
    """
    layers = _layers(_heads(source))
    image = None if size is None else pair("size", size)
    if title is None:
        of_file = isinstance(source, str | os.PathLike)
        title = f"Heads of {Path(source).name}" if of_file else "Heads around a query pixel"
    window = _PixelWindow.around([head for layer in layers.values() for head in layer], image, pixel, reach)
    panels, apart, filled = _panels(layers, window, filled)
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
        drawn=(*(DRAWN if filled else DRAWN_CROWDED), *["a panel for each head, since they overlap"] * apart),
        data=_data(layers, window),
        columns=min(MOST_COLUMNS, math.ceil(math.sqrt(len(panels)))) if apart else 3,
        grid=308 if len(panels) == 1 else 132 if apart else 220,
    )


def make_heads(
    *,
    kernel: int | Pixel | None = None,
    dilation: int | Pixel | None = None,
    centres: Sequence[Sequence[float]] | None = None,
    alpha: Sequence[float] | None = None,
    covariance: Sequence[Sequence[float]] | None = None,
) -> list[Head]:
    """Heads of a kernel's taps, or at these centres; one `alpha` or `covariance` for all, or one each.

    >>> make_heads(centres=[(0, 1), (1, 0)], alpha=[2])[1]
    Head(centre=(1, 0), precision=(2, 0.0, 2))
    """
    if (kernel is None) == (centres is None):
        raise NamingError("heads are those of a file, of a kernel, or at centres: give one of these")
    if kernel is None and dilation is not None:
        raise NamingError("dilation is the distance from tap to tap of a kernel; leave it out")
    if alpha is not None and covariance is not None:
        raise NamingError("give alpha, one width for all directions, or covariance, not both")
    if kernel is not None:
        places = [head.centre for head in kernel_heads(kernel, 1 if dilation is None else dilation)]
    else:
        places = [(centre[0], centre[1]) for centre in ([] if centres is None else centres)]
    if covariance is not None:
        spread = _each("covariance", covariance, len(places))
        return [from_covariance(place, one) for place, one in zip(places, spread, strict=True)]
    widths = _each("alpha", alpha or [1.0], len(places))
    return [isotropic(place, one) for place, one in zip(places, widths, strict=True)]


def _each(name: str, given: Sequence[Any], heads: int) -> list[Any]:
    if len(given) not in (1, heads):
        have = f"{heads} heads have one {name}, or one each" if heads > 1 else f"1 head has one {name}"
        raise NamingError(f"{have}, not {len(given)}")
    return list(given) * (heads if len(given) == 1 else 1)


def _heads(source: Any) -> Sequence[Head] | Mapping[str, Sequence[Head]]:
    if isinstance(source, str | os.PathLike):
        return _one(read_heads(source))
    if hasattr(source, "state_dict"):
        return _one(_known(heads_of_arrays(source.state_dict()), source))
    if isinstance(source, Mapping) and any(str(name).endswith("centres") for name in source):
        return _one(_known(heads_of_arrays(source), source))
    layers: Any = source.values() if isinstance(source, Mapping) else [source]
    for layer in layers:
        if not isinstance(layer, Sequence) or not all(isinstance(head, Head) for head in layer):
            raise NamingError(
                "heads are a list of lattend.nn.attention.gaussian_heads.Head, layers of them by name, "
                f"a module, its state dict or a file, not {layer!r:.60}; lattend.nn.kernel_heads(3) gives "
                "those of a 3 × 3 kernel"
            )
    return source


def _one(layers: Mapping[str, Sequence[Head]]) -> Sequence[Head] | Mapping[str, Sequence[Head]]:
    """A single layer needs no name."""
    return next(iter(layers.values())) if len(layers) == 1 else layers


def _known(layers: Mapping[str, Sequence[Head]], source: Any) -> Mapping[str, Sequence[Head]]:
    if not layers:
        raise NamingError(f"{type(source).__name__} has no heads with the quadratic encoding to draw")
    return layers


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


class _PixelWindow:
    """The pixels that are drawn: an image, or what lies around a query on one without edges."""

    def __init__(self, rows: int, cols: int, query: tuple[int, int], shifted: bool) -> None:
        self.rows, self.cols, self.query, self.shifted = rows, cols, query, shifted

    @staticmethod
    def around(
        heads: Sequence[Head],
        size: tuple[int, int] | None,
        pixel: tuple[int, int] | None,
        reach: int | None = None,
    ) -> _PixelWindow:
        if size is None:
            if pixel is not None:
                raise NamingError("a pixel is one of an image: give its size too")
            if reach is None:
                far = max(math.ceil(max(map(abs, h.centre)) + min(2 * h.widths[1], 4.0)) for h in heads)
                reach = max(LEAST_REACH, min(MOST_REACH, far))
            return _PixelWindow(2 * reach + 1, 2 * reach + 1, (reach, reach), shifted=True)
        check_size(size, MOST_PIXELS)
        return _PixelWindow(*size, pixel_of(size, pixel), shifted=False)

    @property
    def words(self) -> str:
        if self.shifted:
            return "an image without edges; rows and columns are counted from the query"
        return f"an image of {self.rows} × {self.cols} pixels, the query at {self.query}"

    def sides(self) -> tuple[Side, Side]:
        """Ticks at pixels, or at shifts from the query."""
        top, left = (-at if self.shifted else 0 for at in self.query)
        return (
            pixel_side("row", range(top, top + self.rows)),
            pixel_side("column", range(left, left + self.cols)),
        )

    def place(self, head: Head) -> tuple[float, float]:
        """The head's centre in cells of the panel."""
        return self.query[0] + 0.5 + head.centre[0], self.query[1] + 0.5 + head.centre[1]

    def holds(self, place: tuple[float, float], margin: float = 0.0) -> bool:
        """Whether it lies inside, and as far as the margin from every side."""
        return all(
            margin <= at < length - margin for at, length in zip(place, (self.rows, self.cols), strict=True)
        )


def _panels(
    layers: Mapping[str, Sequence[Head]], window: _PixelWindow, filled: bool | None
) -> tuple[tuple[Panel, ...], bool, bool]:
    """A panel for each layer, or for each head where there is one layer of heads that overlap.

    With whether it is one for each head, and whether heads are filled areas.
    """
    (heads, *more) = layers.values()
    if not more and len(heads) <= MOST_APART and crowded(heads):
        return tuple(_panel(f"head {at}", {at: head}, window) for at, head in enumerate(heads)), True, True
    if filled is None:
        filled = not any(map(crowded, layers.values()))  # one look for all, as the legend is one
    whole = (_panel(name, dict(enumerate(layer)), window, filled) for name, layer in layers.items())
    return tuple(whole), False, filled


def crowded(heads: Sequence[Head]) -> bool:
    """Whether a centre lies inside the areas of so many heads that they hide each other."""

    def inside_of(head: Head, place: tuple[float, float]) -> bool:
        dy, dx = place[0] - head.centre[0], place[1] - head.centre[1]
        a, b, c = head.precision
        return a * dy * dy + 2 * b * dy * dx + c * dx * dx <= HALF

    return any(sum(inside_of(head, other.centre) for head in heads) > MOST_OVER for other in heads)


def _panel(name: str, heads: Mapping[int, Head], window: _PixelWindow, filled: bool = True) -> Panel:
    """These heads, by their numbers, and the query."""
    cells = np.zeros((window.rows, window.cols), np.uint8)
    numbers = _numbers(heads, window) if filled else _rim_numbers(heads, window)
    marks = (*_lines(heads, window, filled), outline(window.query, 1.8), *numbers)
    return Panel(cells, (PAPER,), *window.sides(), name, marks)


def _lines(heads: Mapping[int, Head], window: _PixelWindow, filled: bool) -> Iterator[Mark]:
    """Areas first, then lines, so that none hides another; without areas, the half lines alone."""
    seen = [(number, head) for number, head in heads.items() if math.isfinite(head.widths[1])]
    for number, head in seen if filled else ():
        area = clipped(ellipse(window.place(head), head.precision, HALF), window.rows, window.cols)
        if area:
            yield Shape(area, fill=COLOURS[number % len(COLOURS)], opacity=0.28)
    widths = ((MOST, 0.7), (HALF, 1.6)) if filled else ((HALF, 1.2),)
    for (number, head), (level, width) in itertools.product(seen, widths):
        line = ellipse(window.place(head), head.precision, level)
        for run in inside(line, window.rows, window.cols):
            yield Shape(run, COLOURS[number % len(COLOURS)], width, closed=False)


def _numbers(heads: Mapping[int, Head], window: _PixelWindow) -> Iterator[Label]:
    """The numbers of heads at their centres."""
    together: dict[tuple[float, float], list[int]] = {}
    for number, head in heads.items():
        place = window.place(head)
        if window.holds(place):
            together.setdefault((round(place[0], 1), round(place[1], 1)), []).append(number)
    for (y, x), numbers in together.items():
        yield Label(y, x, _listed(numbers), room=max(1.0, window.rows / 16))


def _rim_numbers(heads: Mapping[int, Head], window: _PixelWindow) -> Iterator[Label]:
    """The numbers just outside of the heads' lines, in their colours and all around, so that none touch."""
    middle = np.mean([window.place(head) for head in heads.values()], axis=0)

    def turn(head: Head) -> float:
        away = np.subtract(window.place(head), middle)
        return math.atan2(away[0], away[1])

    around = sorted(heads.items(), key=lambda item: turn(item[1]))
    first = turn(around[0][1])
    size = max(1.0, window.rows / 16)
    for step, (number, head) in enumerate(around):
        place = window.place(head)
        if math.isfinite(head.widths[1]):
            line = ellipse(place, head.precision, RIM * HALF)
            angle = first + 2 * math.pi * step / len(around)
            seen = [at for at in line if window.holds(at, size / 2)]
            if not (seen or any(map(window.holds, ellipse(place, head.precision, HALF)))):
                continue
            place = max(seen, key=lambda at: _along(at, place, angle), default=place)
        if window.holds(place):
            yield Label(*place, str(number), COLOURS[number % len(COLOURS)], size, bold=True)


def _along(at: tuple[float, float], centre: tuple[float, float], angle: float) -> float:
    """How near to this direction a place lies, seen from the centre."""
    dy, dx = at[0] - centre[0], at[1] - centre[1]
    return (dy * math.sin(angle) + dx * math.cos(angle)) / math.hypot(dy, dx)


def _listed(numbers: Sequence[int]) -> str:
    """`3`, `3,4`, or `3…` where three or more stand at one place."""
    return ",".join(map(str, numbers)) if len(numbers) < 3 else f"{numbers[0]}…"


def _rough(layers: Mapping[str, Sequence[Head]], window: _PixelWindow) -> tuple[tuple[Panel, ...], Scale]:
    """Heat maps of the weights, with the heads' numbers at their centres, for a terminal."""
    maps: dict[str, Floats] = {}
    for name, layer in layers.items():
        maps[name] = np.zeros((window.rows, window.cols))
        for head in layer:
            maps[name] += head.weights(window.rows, window.cols, window.query)
    scale = amount_scale("weights of all heads together", np.array(list(maps.values())))
    panels: list[Panel] = []
    for name, layer in layers.items():
        labels = tuple(_numbers(dict(enumerate(layer)), window))
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
                format_weight(*head.log_sharpest()),
            )


def _width(width: float) -> str:
    return format_number(width) if math.isfinite(width) else "flat"


def _data(layers: Mapping[str, Sequence[Head]], window: _PixelWindow) -> dict[str, object]:
    found: dict[str, object] = {} if window.shifted else {"size": [window.rows, window.cols]}
    found |= {} if window.shifted else {"pixel": list(window.query)}
    found["layers"] = {
        name: [
            {
                "centre": list(head.centre),
                "precision": list(head.precision),
                "widths": [width if math.isfinite(width) else None for width in head.widths],
                "weight": head.sharpest(),
                "rest": math.exp(head.log_sharpest()[1]),
            }
            for head in heads
        ]
        for name, heads in layers.items()
    }
    return found
