"""Layout: the scene of a picture, from its title, panels, caption and legend."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lattend.draw.charts.bars import Bars
from lattend.draw.charts.chart import Chart, Scale
from lattend.draw.formats.palette import CELL_BORDER, FAINT_TEXT, FRAME, PAPER, TEXT, Look
from lattend.draw.formats.scene import Item, Rect, Scene, Segment, Text, patch, text_width, wrapped
from lattend.draw.grid import marks
from lattend.draw.grid.marks import Label
from lattend.draw.grid.panel import Panel

if TYPE_CHECKING:
    from lattend.draw.charts.axes import DrawnChart
    from lattend.draw.formats.scene import Diagram
    from lattend.draw.picture import Picture

MARGIN = 16
GAP = 22  # between panels
TITLE, SUBTITLE, LABEL, TICK = 15, 11, 11, 9
GRID = 336  # wanted length of a side of the grid
LARGEST_CELL, SMALLEST_CELL = 22, 2
SWATCH = 12
BAR, BAR_HEIGHT = 180, 10  # of a scale of colours
NARROWEST = 340


def cell_size(rows: float, cols: float, panels: int = 1, grid: float = 0) -> tuple[int, int]:
    """Height and width of a cell, whole units; square unless one side is far longer than the other."""
    wanted, largest = (grid, 2 * LARGEST_CELL) if grid else (GRID if panels == 1 else GRID / 2, LARGEST_CELL)
    height, width = (
        max(SMALLEST_CELL, min(largest, int(wanted // max(1.0, length)))) for length in (rows, cols)
    )
    small = min(height, width)
    if max(height, width) <= 3 * small:
        return small, small
    return min(height, 6 * small), min(width, 6 * small)


def draws_labels(panel: Panel, panels: int = 1, grid: float = 0) -> bool:
    """Whether a picture with so many panels, of sides `grid` long, has room for the words in this one."""
    height, width = cell_size(panel.rows.length, panel.cols.length, panels, grid)
    return any(marks.word_size(mark, height, width) > 0 for mark in panel.marks if isinstance(mark, Label))


def compose(picture: Picture) -> Scene:
    """The whole picture, panels and charts in rows of at most `columns`, everything aligned at the left.

    Beside panels there are curves; maps have rows of their own then. Facts stand under all.
    """
    cells = [
        _DrawnPanel(panel, len(picture.panels), picture.grid) for panel in picture.panels if panel.cells.size
    ]
    charts, columns = _chart_blocks((*picture.charts, *picture.bars)), picture.columns
    groups: list[list[_DrawnPanel | Diagram | DrawnChart]] = [[*cells, *picture.diagrams, *charts]]
    if cells:
        maps = list(itertools.compress(charts, (chart.equal for chart in picture.charts)))
        curves = (block for block in charts if block not in maps)
        groups = [[*cells, *picture.diagrams, *curves], [*maps]]
    lines = [group[i : i + columns] for group in groups for i in range(0, len(group), columns)]
    inner = max([NARROWEST, *(sum(b.width for b in line) + GAP * (len(line) - 1) for line in lines)])
    items: list[Item] = []
    y = float(MARGIN)
    for text in wrapped(picture.title, TITLE, inner, bold=True):
        y += TITLE
        items.append(Text(MARGIN, y, text, TITLE, TEXT, bold=True))
        y += 4
    y += 2
    for text in itertools.chain.from_iterable(wrapped(part, SUBTITLE, inner) for part in picture.subtitle):
        y += SUBTITLE
        items.append(Text(MARGIN, y, text, SUBTITLE, FAINT_TEXT))
        y += 4
    y += 8
    for line in lines:
        x = float(MARGIN)
        for block in line:
            items += block.items(x, y)
            x += block.width + GAP
        y += max(block.height for block in line) + 14
    fact_items, y = _facts(picture.facts, y, inner)
    items += fact_items
    for text in itertools.chain.from_iterable(
        wrapped(part, LABEL, inner) for part in (*picture.drawn, *picture.caption)
    ):
        y += LABEL
        items.append(Text(MARGIN, y, text, LABEL, TEXT))
        y += 4
    legend_items, y = _legend(picture.legend, y + 6, inner)
    items += legend_items
    scale_items, y = _scales(picture.scales, y, inner)
    items += scale_items
    width, height = inner + 2 * MARGIN, y + MARGIN
    return Scene(width, height, (Rect(0, 0, width, height, PAPER), *items))


def _chart_blocks(charts: Sequence[Chart | Bars]) -> list[DrawnChart]:
    """The charts, each with its legend unless those before it have all of its names."""
    if not charts:
        return []
    from lattend.draw.charts.axes import DrawnChart

    seen: set[str] = set()
    blocks: list[DrawnChart] = []
    for chart in charts:
        blocks.append(DrawnChart(chart, legend=not seen.issuperset(chart.names())))
        seen.update(chart.names())
    return blocks


class _DrawnPanel:
    """One panel with its ticks, labels and heading, measured before it is placed."""

    def __init__(self, panel: Panel, panels: int, grid: float) -> None:
        self.panel = panel
        self.cell_height, self.cell_width = cell_size(panel.rows.length, panel.cols.length, panels, grid)
        self.grid_height = panel.rows.length * self.cell_height
        self.grid_width = panel.cols.length * self.cell_width
        tick = max((text_width(text, TICK) for _, text in panel.rows.ticks), default=0.0)
        self.left = round((LABEL + 6 if panel.rows.label else 0) + tick + 6)
        self.top = (LABEL + 8 if panel.title else 0) + (LABEL + 4 if panel.cols.label else 0) + TICK + 7
        last = max((text_width(text, TICK) / 2 for _, text in panel.cols.ticks), default=0.0)
        self.across, self.down = text_width(panel.cols.label, LABEL), text_width(panel.rows.label, LABEL)
        heading = max(self.across, text_width(panel.title, LABEL, bold=True))
        self.width = math.ceil(self.left + max(self.grid_width + last / 2, heading))
        self.height = math.ceil(max(self.top + self.grid_height, self.down + 2))

    def items(self, x: float, y: float) -> Iterator[Item]:
        left, top = x + self.left, y + self.top
        if self.panel.title:
            yield Text(left, y + LABEL, self.panel.title, LABEL, TEXT, bold=True)
        yield from self._cells(left, top)
        yield from self._lines(left, top)
        yield from marks.items(self.panel.marks, left, top, self.cell_height, self.cell_width)
        yield from self._ticks(left, top)
        if self.panel.rows.label:
            middle = min(top + self.grid_height / 2, y + self.height - self.down / 2)
            middle = max(middle, y + 2 + self.down / 2)
            yield Text(x + LABEL, middle, self.panel.rows.label, LABEL, TEXT, "middle", turned=True)
        if self.panel.cols.label:
            middle = left + max(self.grid_width, self.across) / 2
            yield Text(middle, top - TICK - 11, self.panel.cols.label, LABEL, TEXT, "middle")

    def _cells(self, left: float, top: float) -> Iterator[Item]:
        panel = self.panel
        yield Rect(left, top, self.grid_width, self.grid_height, panel.looks[0].fill)
        small = min(self.cell_height, self.cell_width)
        spacing = small / 2 if small >= 12 else max(5, small)
        for first, last, start, stop, index in runs(panel):
            x, y = start * self.cell_width, first * self.cell_height
            width = min(stop * self.cell_width, self.grid_width) - x
            height = min(last * self.cell_height, self.grid_height) - y
            look = panel.looks[index]
            rect = Rect(left + x, top + y, width, height, look.fill)
            yield from patch(rect, look, spacing, (left, top), (self.cell_width, self.cell_height))

    def _lines(self, left: float, top: float) -> Iterator[Segment]:
        right, bottom = left + self.grid_width, top + self.grid_height
        rows, cols = self.panel.rows, self.panel.cols

        def across(place: float, colour: str, width: float) -> Segment:
            y = top + place * self.cell_height
            return Segment(left, y, right, y, colour, width)

        def down(place: float, colour: str, width: float) -> Segment:
            x = left + place * self.cell_width
            return Segment(x, top, x, bottom, colour, width)

        thin = 1.0 if min(self.cell_height, self.cell_width) >= 10 else 0.5
        border = self.panel.looks[0].ink or CELL_BORDER
        if self.cell_height >= 6:
            yield from (across(i, border, thin) for i in range(1, self.panel.cells.shape[0]))
        if self.cell_width >= 6:
            yield from (down(j, border, thin) for j in range(1, self.panel.cells.shape[1]))
        yield from (across(i, FRAME, 0.8) for i in (0, *rows.heavy, rows.length))
        yield from (down(j, FRAME, 0.8) for j in (0, *cols.heavy, cols.length))

    def _ticks(self, left: float, top: float) -> Iterator[Item]:
        free = top - TICK
        for place, text in self.panel.rows.ticks:
            y = top + place * self.cell_height
            yield Segment(left - 3, y, left, y, FRAME, 0.8)
            if y - TICK / 2 >= free:
                yield Text(left - 5, y + TICK * 0.35, text, TICK, FAINT_TEXT, "end")
                free = y + TICK / 2
        free = left - self.left
        named = _evenly_named(self.panel.cols.ticks, self.cell_width)
        for place, text in self.panel.cols.ticks:
            x, half = left + place * self.cell_width, text_width(text, TICK) / 2
            yield Segment(x, top - 3, x, top, FRAME, 0.8)
            if place in named and x - half >= free:
                yield Text(x, top - 6, text, TICK, FAINT_TEXT, "middle")
                free = x + half + 2


def _evenly_named(ticks: Sequence[tuple[float, str]], cell: float) -> set[float]:
    """The places of ticks to name: 0 and every so many from it, where evenly spaced ones would touch."""
    places = [place for place, _ in ticks]
    steps = {round(b - a, 6) for a, b in itertools.pairwise(places)}
    if len(steps) != 1:
        return set(places)
    widest = max(text_width(text, TICK) for _, text in ticks) + 2
    every = max(1, math.ceil(widest / (steps.pop() * cell) - 1e-9))
    zero = next((at for at, (_, text) in enumerate(ticks) if text == "0"), 0)
    return {place for at, place in enumerate(places) if (at - zero) % every == 0}


def _facts(facts: Sequence[tuple[str, str]], y: float, inner: float) -> tuple[list[Item], float]:
    """Names and what is said of them in two columns from y on, and where they end."""
    items: list[Item] = []
    indent = max((text_width(name, LABEL) for name, _ in facts), default=0.0) + 12
    for name, said in facts:
        for index, text in enumerate(wrapped(said, LABEL, inner - indent)):
            y += LABEL
            items += [] if index else [Text(MARGIN, y, name, LABEL, FAINT_TEXT)]
            items.append(Text(MARGIN + indent, y, text, LABEL, TEXT))
            y += 4
    return items, y + 4 if facts else y


def _scales(scales: Sequence[Scale], y: float, inner: float) -> tuple[list[Item], float]:
    """Colour bars with their numbers from y on, side by side where they fit, and where they end."""
    items: list[Item] = []
    x = float(MARGIN)
    high = LABEL + 6 + BAR_HEIGHT + TICK + 6
    for index, scale in enumerate(scales):
        width = max(BAR, text_width(scale.label, LABEL)) + 24
        if index == 0 or x + width > MARGIN + inner:
            x, y = float(MARGIN), y + high + 8
        top, ticks = y - high + LABEL + 6, scale.ticks()
        items.append(Text(x, y - high + LABEL, scale.label, LABEL, TEXT))
        step = BAR / len(scale.looks)
        for at, look in enumerate(scale.looks):  # each reaches to the end, so that no gap shows between two
            items.append(Rect(x + at * step, top, BAR - at * step, BAR_HEIGHT, look.fill))
        for along, text in ticks:
            at = x + along * BAR
            anchor = "start" if along == 0 else "end" if along == 1 else "middle"
            items.append(Segment(at, top + BAR_HEIGHT, at, top + BAR_HEIGHT + 3, FRAME, 0.8))
            items.append(Text(at, top + BAR_HEIGHT + TICK + 4, text, TICK, FAINT_TEXT, anchor))
        x += width
    return items, y


def runs(panel: Panel) -> Iterator[tuple[int, int, int, int, int]]:
    """Rectangles (first row, past last, first column, past last, look) that cover all but look 0, once.

    Neighbours in a row are joined, and rows whose runs are alike: fewer items, and no hairlines between.
    """
    open_runs: dict[tuple[int, int, int], int] = {}
    for row in range(panel.cells.shape[0] + 1):
        current: set[tuple[int, int, int]] = set()
        start = 0
        for look, group in itertools.groupby(panel.cells[row].tolist() if row < panel.cells.shape[0] else ()):
            stop = start + len(list(group))
            if look:
                current.add((start, stop, look))
            start = stop
        for run in sorted(open_runs.keys() - current):
            yield open_runs.pop(run), row, *run
        for run in current:
            open_runs.setdefault(run, row)


def entries(legend: Sequence[Look]) -> list[tuple[list[Look], str]]:
    """The legend's entries: looks that share a label stand together as a scale."""
    return [(list(group), label) for label, group in itertools.groupby(legend, lambda look: look.label)]


def _legend(legend: Sequence[Look], y: float, inner: float) -> tuple[list[Item], float]:
    """The legend's items from y on, wrapped to the width, and where they end."""
    items: list[Item] = []
    x, start = float(MARGIN), y
    for samples, label in entries(legend):
        swatch = SWATCH if len(samples) == 1 else SWATCH / 2
        width = swatch * len(samples) + 5 + text_width(label, LABEL)
        if x > MARGIN and x + width > MARGIN + inner:
            x, y = float(MARGIN), y + SWATCH + 6
        for index, look in enumerate(samples):
            rect = Rect(x + index * swatch, y, swatch, SWATCH, look.fill)
            items += patch(rect, look, SWATCH / 2, (rect.x, rect.y), (swatch, SWATCH))
        items.append(Text(x + swatch * len(samples) + 5, y + SWATCH - 2.5, label, LABEL, TEXT))
        x += width + 14
    return items, y + SWATCH if items or y > start else y - 6
