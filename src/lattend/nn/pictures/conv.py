"""draw_conv: a convolution as attention heads: the pixels they take, how sharp they must be, both prices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lattend.cost.cost import Cost
from lattend.cost.layers.attention import attention as attention_cost
from lattend.cost.layers.conv import conv as conv_cost
from lattend.cost.layers.tokenwise import linear
from lattend.cost.points import points
from lattend.cost.sizes import Size
from lattend.draw.formats.palette import ATTENDED, EMPTY, Look, ink
from lattend.draw.grid.layout import draws_labels
from lattend.draw.grid.marks import Label, Mark
from lattend.draw.grid.panel import Panel
from lattend.draw.grid.titles import first_to_last
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError
from lattend.nn.attention.gaussian_heads import check_many
from lattend.nn.convolution.geometry import Along, Geometry, read_geometry
from lattend.nn.images.patch_grid import pair
from lattend.nn.pictures.leaks import Leaks
from lattend.nn.pictures.panels import (
    QUERY,
    Facts,
    Pixel,
    check_size,
    conv_arguments,
    legend,
    outline,
    pixel_side,
    refuse,
)
from lattend.report.numbers import format_value
from lattend.wording import many

Pair = int | tuple[int, int]
LARGEST = 4096  # rows or columns of an image
GRID = 200  # wanted length of a panel's side
USUAL = {
    "stride": 1,
    "dilation": 1,
    "padding": None,
    "padding_mode": "zeros",
    "c_in": "c_in",
    "c_out": "c_out",
}


def draw_conv(
    kernel: Any = 3,
    *,
    stride: Pair = 1,
    dilation: Pair = 1,
    padding: Pair | str | None = None,
    padding_mode: str = "zeros",
    size: Pair = 8,
    c_in: Size = "c_in",
    c_out: Size = "c_out",
    alpha: float | None = None,
    error: float | None = None,
) -> Picture:
    """A kernel as heads, one a tap: what they take for two queries, their leak against α, and both prices.

    Arguments are those of torch's Conv2d, or instead of `kernel` a Conv2d or the heads `from_conv` makes of
    it, and the `size` of the image; without a `padding` the kernel is padded as much as keeps the size at
    stride 1. `alpha` marks that sharpness on the curve, `error` the least one whose leak is no more.

    >>> dict(draw_conv(3, size=8, c_in=16, c_out=32).facts)["heads, hard"]  # (3*8 - 2)^2 pairs
    '484 pairs × 16 × 32 = 247,808 multiplies: those the convolution needs'
    """
    module = conv_arguments(kernel)
    if module is not None:
        given = {"stride": stride, "dilation": dilation, "padding": padding, "padding_mode": padding_mode}
        refuse({**given, "c_in": c_in, "c_out": c_out}, USUAL)
        return draw_conv(**module, size=size, alpha=alpha, error=error)
    if error is not None and not 0 < error < 1:
        raise DomainError(f"error = {error:g}: a leak is a share, so ask for one between 0 and 1")
    geometry = read_geometry(kernel, stride, dilation, padding, padding_mode)
    rows, cols = pair("size", size)
    check_size((rows, cols), LARGEST)
    if max(*geometry.keys(rows, cols), *geometry.outputs(rows, cols)) > LARGEST:
        raise DomainError(
            f"padding={padding}: with it an image has at most {LARGEST:,} rows and columns here"
        )
    check_many(geometry.heads)
    found = KernelHeads(geometry, rows, cols)
    panels = found.panels()
    prices, price = found.price(c_in, c_out)
    leaks = Leaks.of(geometry.keys(rows, cols), geometry.centres(rows, cols))
    looks = legend(panels, LOOKS[1:])
    drawn = "outlined: the query"
    if all(draws_labels(panel, len(panels), GRID) for panel in panels):
        drawn += "; numbers are those of the heads"
    return Picture(
        found.title,
        panels,
        (),
        (found.words,),
        legend=looks,
        drawn=(drawn, *_together(panels)),
        labelled=Below(
            (*found.labels(panels), found.asked()),
            tuple(look for look in looks if look not in (TAKEN, ZERO)),
        ),
        bare=Below((found.asked(),), looks),
        facts=(*found.facts(), *leaks.facts(alpha, error), *prices),
        charts=(leaks.chart(alpha, error),),
        columns=3,
        grid=GRID,
        data={**found.data(), "sharpness": leaks.data(alpha, error), "price": price},
    )


class KernelHeads:
    """The heads of a kernel on an image of one size."""

    def __init__(self, geometry: Geometry, rows: int, cols: int) -> None:
        self.geometry, self.rows, self.cols = geometry, rows, cols
        self.outputs = geometry.outputs(rows, cols)

    @property
    def axes(self) -> tuple[Along, Along]:
        return self.geometry.y, self.geometry.x

    @property
    def title(self) -> str:
        rows, cols = self.geometry.kernel
        return f"{_article(rows)} {rows} × {cols} convolution as {many(self.geometry.heads, 'head')}"

    @property
    def words(self) -> str:
        """The image, stride, dilation and padding."""
        said = [f"an image of {self.rows:,} × {self.cols:,} pixels"]
        for name in ("stride", "dilation"):
            pair = tuple(getattr(along, name) for along in self.axes)
            said.append(f"{name} {pair[0] if pair[0] == pair[1] else pair}")
        edges = [along.before for along in self.axes] + [along.after for along in self.axes]
        few = edges[0] if len(set(edges)) == 1 else f"{edges[:2]} before and {edges[2:]} after"
        said.append(f"padding {few}")
        return ", ".join(said) + (f" ({self.geometry.mode})" if any(edges) else "")

    def taken(self, query: Pixel) -> list[Pixel]:
        """The pixel of each head, for a query given as an output; padding may lie beyond the image."""
        own = self.asks(query)
        return [self._nearest((own[0] + dy, own[1] + dx)) for dy, dx in self.geometry.shifts()]

    def asks(self, output: Pixel) -> Pixel:
        """The pixel whose shifts the heads take: stride times the output."""
        return self.axes[0].stride * output[0], self.axes[1].stride * output[1]

    def _nearest(self, pixel: Pixel) -> Pixel:
        if self.geometry.mode == "zeros":
            return pixel
        return min(max(pixel[0], 0), self.rows - 1), min(max(pixel[1], 0), self.cols - 1)

    def named(self) -> dict[str, Pixel]:
        """A query in the middle and the one in the upper left corner, if they are two."""
        middle, corner = (self.outputs[0] // 2, self.outputs[1] // 2), (0, 0)
        return {"in the middle": middle} | ({"in the corner": corner} if corner != middle else {})

    def asked(self) -> str:
        """Where the queries are."""
        where = (f"pixel {self.asks(output)} {name}" for name, output in self.named().items())
        return f"the query: {', '.join(where)}"

    def labels(self, panels: tuple[Panel, ...]) -> list[str]:
        """What the words in the panels' cells are."""
        zero = ", or a zero of the padding" if ZERO in legend(panels, LOOKS[1:]) else ""
        said = [
            f"{first_to_last(self.geometry.heads)}: the head that takes this pixel{zero}",
            *_together(panels),
        ]
        return [*said, *["Q: the query"] * any("Q" in panel.labels().values() for panel in panels)]

    def panels(self) -> tuple[Panel, ...]:
        """The panel of each query."""
        edges = (
            PaddedAxis(self.rows, self.axes[0].before, self.axes[0].after),
            PaddedAxis(self.cols, self.axes[1].before, self.axes[1].after),
        )
        asking = tuple(
            [along.stride * at for at in range(outputs)]
            for along, outputs in zip(self.axes, self.outputs, strict=True)
        )
        return tuple(
            taps(name, edges, self.asks(output), self.taken(output), (asking[0], asking[1]))
            for name, output in self.named().items()
        )

    def facts(self) -> list[tuple[str, str]]:
        shifts = self.geometry.shifts()
        rows, cols = self.outputs
        centres = f"centres Δ from {_place(shifts[0])} to {_place(shifts[-1])}"
        centres = centres if len(shifts) > 1 else f"centre Δ {_place(shifts[0])}"
        taps_ = f"{self.axes[0].taps} × {self.axes[1].taps} = {self.geometry.heads}"
        return [
            ("heads", f"{taps_}, one a tap, {centres}"),
            ("queries", f"{rows:,} × {cols:,} = {rows * cols:,}"),
        ]

    def pairs(self) -> int:
        """How many pairs (head, query, key) are attended: along rows, times along columns."""
        return math.prod(
            self._pairs(along, outputs, size)
            for along, outputs, size in zip(self.axes, self.outputs, (self.rows, self.cols), strict=True)
        )

    def _pairs(self, along: Along, outputs: int, size: int) -> int:
        """The (query, tap, key) along one axis."""
        pixel = along.pixel("query", "tap")
        pixel = f"min(max({pixel}, 0), {size - 1})" if self.geometry.mode == "replicate" else pixel
        asked = f"query < {outputs} and tap < {along.taps}"
        return points(f"{asked} and key == {pixel} and key < {size}", {}).value() or 0

    def cost(self, c_in: Size, c_out: Size) -> Cost:
        return conv_cost(
            rows=self.rows,
            cols=self.cols,
            c_in=c_in,
            c_out=c_out,
            kernel=self.geometry.kernel,
            **self.geometry.options,
            bias=False,
        )

    def price(self, c_in: Size, c_out: Size) -> tuple[Facts, dict[str, Any]]:
        """The multiplies of the convolution, of hard heads, and of soft heads that attend to every pixel."""
        queries, keys = math.prod(self.outputs), math.prod(self.geometry.keys(self.rows, self.cols))
        heads, pairs = self.geometry.heads, self.pairs()
        whole = self.cost(c_in, c_out)
        needed, dense = whole.needed.multiplies, whole.dense.multiplies
        hard = linear(n=pairs, d_in=c_in, d_out=c_out, bias=False).multiplies
        mixed = attention_cost(
            "full",
            n=queries,
            m=keys,
            heads=heads,
            D_i=c_in,
            D_o=c_in,
            D_hid=3,
            encoding="quadratic",
            projections=None,
        )
        soft = (mixed + linear(n=heads * queries, d_in=c_in, d_out=c_out, bias=False)).multiplies
        channels = [format_value(width) if isinstance(width, int) else str(width) for width in (c_in, c_out)]
        product = f"{many(pairs, 'pair')} × {' × '.join(channels)}"
        product += f" = {hard:,}" if isinstance(hard, int) else ""
        equal = ": those the convolution needs" if self.cost(1, 1).needed.multiplies == pairs else ""
        zeros = "" if str(needed) == str(dense) else f"; {format_value(dense)} with the zeros of the padding"
        every = f"each head on all of {many(heads * queries * keys, 'pair')}"
        facts = (
            ("convolution", f"{format_value(needed)} multiplies{zeros}"),
            ("heads, hard", f"{product} multiplies{equal}"),
            ("heads, soft", f"{format_value(soft)} multiplies: {every}"),
        )
        data = {
            "pairs": pairs,
            "convolution": {"needed": _plain(needed), "dense": _plain(dense)},
            "hard": _plain(hard),
            "soft": _plain(soft),
        }
        return facts, data

    def data(self) -> Mapping[str, Any]:
        return {
            "kernel": list(self.geometry.kernel),
            **{name: [getattr(along, name) for along in self.axes] for name in ("stride", "dilation")},
            "padding": [[along.before, along.after] for along in self.axes],
            "padding_mode": self.geometry.mode,
            "size": [self.rows, self.cols],
            "queries": list(self.outputs),
            "centres": [list(shift) for shift in self.geometry.shifts()],
        }


def _article(number: int) -> str:
    return "An" if number in (11, 18) or str(number).startswith("8") else "A"


def _together(panels: tuple[Panel, ...]) -> list[str]:
    return ["a number with … stands for several heads"] * several(panels)


def _place(pixel: Pixel) -> str:
    return f"({pixel[0]}, {pixel[1]})".replace("-", "−")


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)


ASKS = Look("another query", "#ccd6e2", ":", ":", 250, share=0.0)
TAKEN = Look("taken by a head", ATTENDED.fill, "▒", "#", 75, share=1.0)
BEYOND = Look("padding", "#f6f0e4", "-", "-", 180, share=0.0, hatch="/", ink="#dcc79f")
ZERO = Look("a head that takes a zero of the padding", "#e69f00", "▓", "%", 214, share=1.0)
LOOKS = (EMPTY, ASKS, TAKEN, BEYOND, ZERO)
MOST = 40  # rows or columns that are drawn; of more, those around the query
AROUND = 3


@dataclass(frozen=True)
class PaddedAxis:
    """One axis: pixels 0 to size - 1, and how many of padding lie before and after them."""

    size: int
    before: int = 0
    after: int = 0

    def visible(self, places: Sequence[int]) -> range:
        """All of it, or what lies around these places where that is too much; they are always in it."""
        low, high = min(0 - self.before, *places), max(self.size + self.after - 1, *places)
        if high - low + 1 <= MOST:
            return range(low, high + 1)
        return range(max(low, min(places) - AROUND), min(high, max(places) + AROUND) + 1)


def taps(
    title: str,
    edges: tuple[PaddedAxis, PaddedAxis],
    query: Pixel,
    taken: Sequence[Pixel | None],
    queries: tuple[Sequence[int], Sequence[int]],
) -> Panel:
    """The pixel that each head takes for a query; None where the head has none.

    `queries` are the rows and the columns that ask, all of which are shown if they are not every pixel.
    """
    places = [pixel for pixel in taken if pixel is not None]
    spans = [edge.visible([query[axis], *(p[axis] for p in places)]) for axis, edge in enumerate(edges)]
    cells = np.zeros([len(span) for span in spans], np.uint8)
    inside = [np.array([0 <= at < edge.size for at in span]) for edge, span in zip(edges, spans, strict=True)]
    cells[~np.logical_and.outer(*inside)] = LOOKS.index(BEYOND)
    if any(len(asked) < edge.size for asked, edge in zip(queries, edges, strict=True)):
        asking = [np.isin(span, asked) for span, asked in zip(spans, queries, strict=True)]
        cells[np.logical_and.outer(*asking)] = LOOKS.index(ASKS)
    together: dict[Pixel, list[int]] = {}
    for head, pixel in enumerate(taken):
        if pixel is not None:
            together.setdefault(pixel, []).append(head)
    marks: list[Mark] = []
    for (y, x), heads in together.items():
        real = 0 <= y < edges[0].size and 0 <= x < edges[1].size
        row, col = y - spans[0].start, x - spans[1].start
        look = TAKEN if real else ZERO
        cells[row, col] = LOOKS.index(look)
        marks.append(Label(row + 0.5, col + 0.5, _listed(heads), ink(look.fill), like="00"))
    row, col = query[0] - spans[0].start, query[1] - spans[1].start
    marks.append(outline((row, col), 2.2))
    if query not in together:
        marks.append(Label(row + 0.5, col + 0.5, "Q", QUERY))
    rows, cols = (pixel_side(name, span) for name, span in zip(("row", "column"), spans, strict=True))
    return Panel(cells, LOOKS, rows, cols, title, tuple(marks))


def several(panels: Sequence[Panel]) -> bool:
    """Whether heads share a pixel on one of these panels."""
    return any(text.endswith("…") for panel in panels for text in panel.labels().values())


def _listed(heads: Sequence[int]) -> str:
    return f"{heads[0]}…" if len(heads) > 1 else str(heads[0])
