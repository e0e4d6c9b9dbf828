"""Taps: the pixels that the heads of a kernel take for one query, on the image and beyond its edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lattend.draw.formats.palette import ATTENDED, EMPTY, Look, ink
from lattend.draw.grid.marks import Label, Mark, box
from lattend.draw.grid.panel import Panel, Side, nice_step

Pixel = tuple[int, int]
ASKS = Look("another query", "#ccd6e2", ":", ":", 250, share=0.0)
TAKEN = Look("taken by a head", ATTENDED.fill, "▒", "#", 75, share=1.0)
BEYOND = Look("padding", "#f6f0e4", "-", "-", 180, share=0.0, hatch="/", ink="#dcc79f")
ZERO = Look("a head that takes a zero of the padding", "#e69f00", "▓", "%", 214, share=1.0)
LOOKS = (EMPTY, ASKS, TAKEN, BEYOND, ZERO)
QUERY = "#1c1f26"
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
    marks.append(box(row, col, row + 1, col + 1, QUERY, 2.2))
    if query not in together:
        marks.append(Label(row + 0.5, col + 0.5, "Q", QUERY))
    rows, cols = (_side(name, span) for name, span in zip(("row", "column"), spans, strict=True))
    return Panel(cells, LOOKS, rows, cols, title, tuple(marks))


def legend(panels: Sequence[Panel]) -> tuple[Look, ...]:
    """The looks that occur, without that of a pixel nothing is said about."""
    used = {look for panel in panels for row in panel.rows_of_looks() for look in row}
    return tuple(look for look in LOOKS[1:] if look in used)


def several(panels: Sequence[Panel]) -> bool:
    """Whether heads share a pixel on one of these panels."""
    return any(text.endswith("…") for panel in panels for text in panel.labels().values())


def _listed(heads: Sequence[int]) -> str:
    return f"{heads[0]}…" if len(heads) > 1 else str(heads[0])


def _side(name: str, span: range) -> Side:
    step = nice_step(len(span), 16 if len(span) <= 16 else 8)
    ticks = [(at - span.start + 0.5, str(at).replace("-", "−")) for at in span if at % step == 0]
    return Side(name, len(span), tuple(ticks))
