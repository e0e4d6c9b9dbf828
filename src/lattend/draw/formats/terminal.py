"""Terminal: panels as characters, two a cell where they fit, one a cell or a block of cells where not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from lattend.draw.charts.braille import ChartText, contours, legend_lines, letters
from lattend.draw.charts.braille import Pen as ChartPen
from lattend.draw.charts.chart import Chart, Scale
from lattend.draw.formats.palette import MIXED, SHADES, Look
from lattend.draw.formats.scene import spelt
from lattend.draw.grid.layout import entries
from lattend.draw.grid.panel import Panel, Side
from lattend.report.table import Facts, Table, wrap_text

if TYPE_CHECKING:
    from lattend.draw.picture import Picture

NARROWEST = 16
GAP = 3  # columns between panels
MOST_TURNED = 3  # digits of a number that stands on its side
RESET = "\x1b[0m"


def terminal(picture: Picture, width: int, colour: bool, encoding: str) -> str:
    """The picture in lines no longer than `width`; ASCII where the encoding has no blocks.

    Facts and a table stand before the panels, charts after them.
    """
    width = max(NARROWEST, width)
    panels, below = picture.rough or picture.panels, picture.below(width)
    # Spelt before lines are broken, so that none grows too long
    title, subtitle = spelt(picture.title, encoding), _spelt(picture.subtitle, encoding)
    caption, legend = _spelt(below.caption, encoding), below.legend
    facts = [(spelt(name, encoding), spelt(text, encoding)) for name, text in picture.facts]
    table = [tuple(_spelt(row, encoding)) for row in picture.table]
    shown = (*legend, *SHADES, *(look for panel in panels for look in panel.looks))
    glyphs = "".join(look.glyph for look in shown)
    pen = _Pen(colour, blocks=spelt(glyphs, encoding) == glyphs)
    blocks = [_PanelText(panel, width, pen) for panel in panels if panel.cells.size]
    rows, cols = max((block.step for block in blocks), default=(1, 1))
    if (rows, cols) != (1, 1):
        caption = [*caption, f"one character shows {rows} by {cols} cells"]
        legend = SHADES if any(look.share is not None for look in legend) else (*legend, MIXED)
    lines = [line for part in (title, *subtitle) for line in wrap_text(part, width)]
    lines += ["", *Facts(facts).lines(width)] if facts else []
    lines += ["", *Table(table[0], table[1:]).lines(width)] if table else []
    for beside in _beside(blocks, width):
        lines += ["", *beside]
    for diagram in picture.diagrams:
        lines += ["", *diagram.lines(width, encoding)]
    lines += _charts(
        picture.charts,
        width,
        ChartPen(colour, encoding, letters(picture.charts), {} if colour else contours(picture.charts)),
    )
    for bars in picture.bars:
        lines += ["", *bars.lines(width, "█" if pen.blocks else "#")]
    under = [line for part in caption for line in wrap_text(part, width)]
    under += _legend(legend, width, pen)
    under += itertools.chain.from_iterable(_scale(scale, width, pen) for scale in below.scales)
    lines += ["", *under] if under else []
    return "\n".join(spelt(line.rstrip(), encoding) for line in lines)


def types_labels(panel: Panel, width: int) -> bool:
    """Whether a terminal of so many columns has room for the words in a panel's cells."""
    margin = max((len(text) for _, text in panel.rows.ticks), default=0) + 1
    room, cols = max(8, max(NARROWEST, width) - margin), panel.cells.shape[1]
    if cols > room or (2 * cols > room and panel.looks is SHADES):
        return False
    longest = max(map(len, panel.labels().values()), default=0)
    return (longest + 1) * cols <= room or longest <= (2 if 2 * cols <= room else 1)


def _spelt(texts: Sequence[str], encoding: str) -> list[str]:
    return [spelt(text, encoding) for text in texts]


def _charts(charts: Sequence[Chart], width: int, pen: ChartPen) -> list[str]:
    lines: list[str] = []
    for beside in _beside([ChartText(chart, width, pen) for chart in charts], width):
        lines += ["", *beside]
    return lines + legend_lines(charts, width, pen)


def _scale(scale: Scale, width: int, pen: _Pen) -> list[str]:
    """The characters of a scale between its ends, and what it measures."""
    steps = list({look.glyph: look for look in scale.looks}.values())
    (_, low), _, (_, high) = scale.ticks()
    swatch = "".join(pen.cells(look, 1, 1) for look in steps)
    first = f"{low} {swatch} {high}"
    length = len(low) + len(high) + len(steps) + 2
    if length + 2 + len(scale.label) <= width:
        return [f"{first}  {scale.label}"]
    label = [f"  {part}" for part in wrap_text(scale.label, width - 2)]
    return [first, *label] if length <= width else [swatch, *wrap_text(f"{low} to {high}", width), *label]


class _Pen:
    """Writes cells: blocks or ASCII, coloured or not."""

    def __init__(self, colour: bool, blocks: bool) -> None:
        self.colour, self.blocks = colour, blocks

    def glyph(self, look: Look) -> str:
        return look.glyph if self.blocks else look.plain

    def cells(self, look: Look, width: int, count: int, label: str = "") -> str:
        """`count` cells of this look, each `width` characters; an empty one has a single dot or sign."""
        glyph = label or self.glyph(look)
        text = (glyph.ljust(width) if label or look.sign or look.share == 0 else glyph * width) * count
        return f"\x1b[38;5;{look.ansi}m{text}{RESET}" if self.colour else text


class _PanelText:
    """One panel as lines of one printed width, and the cells that one character stands for."""

    def __init__(self, panel: Panel, width: int, pen: _Pen) -> None:
        margin = max((len(text) for _, text in panel.rows.ticks), default=0) + 1
        room = max(8, width - margin)
        rows, cols = panel.cells.shape
        self.step = (1, 1)
        if cols > room or (2 * cols > room and panel.looks is SHADES):
            across = -(-cols // room)
            self.step = (2 * across if rows > 1 else 1, across)  # a character is twice as high as wide
            panel = panel.merged(*self.step)
        rows, cols = panel.cells.shape
        labels = panel.labels()
        cell = 2 if 2 * cols <= room else 1
        longest = max(map(len, labels.values()), default=0)
        if (longest + 1) * cols <= room:
            cell = max(cell, longest + 1)
        elif longest > cell:
            labels = {}
        head = [panel.title] if panel.title else []
        head.append(f"{panel.rows.label} down, {panel.cols.label} across")
        head = [line for part in head for line in wrap_text(part, width)]
        head += [" " * margin + line for line in _column_ticks(panel.cols, cell, cols)]
        self.width = max(margin + cell * cols, *map(len, head))
        self.lines = [line.ljust(self.width) for line in head]
        names = {int(place): text for place, text in reversed(panel.rows.ticks)}
        for index, row in enumerate(panel.rows_of_looks()):
            runs = itertools.groupby((look, labels.get((index, at), "")) for at, look in enumerate(row))
            cells = "".join(pen.cells(look, cell, len(list(run)), text) for (look, text), run in runs)
            rest = " " * (self.width - margin - cell * cols)
            self.lines.append(f"{names.get(index, ''):>{margin - 1}} {cells}{rest}")


def _column_ticks(side: Side, cell: int, cols: int) -> list[str]:
    """The tick texts over their columns; on their sides, a digit a line, where they would touch.

    What stands past the last column is moved back to end there; what touches even so is left out.
    """
    if not side.ticks:
        return []
    texts = [(int(place) * cell, text) for place, text in side.ticks]
    texts = [(min(at, max(0, cell * cols - len(text))), text) for at, text in texts]
    touching = any(at <= before + len(text) for (before, text), (at, _) in pairwise(texts))
    high = max((len(text) for _, text in texts), default=0) if touching else 1
    if high > MOST_TURNED or min((at - before for (before, _), (at, _) in pairwise(texts)), default=2) < 2:
        high = 1
    lines = [""] * high
    for at, text in texts:
        if not lines[-1] or len(lines[-1]) < at:
            parts = text.rjust(high) if high > 1 else [text]
            lines = [f"{line:<{at}}{part}" for line, part in zip(lines, parts, strict=True)]
    return [line.rstrip() for line in lines]


def _beside(blocks: Sequence[_PanelText | ChartText], width: int) -> Iterator[list[str]]:
    """The blocks side by side, as many as the width takes, in rows."""
    row: list[_PanelText | ChartText] = []
    for block in blocks:
        if row and sum(b.width + GAP for b in row) + block.width > width:
            yield _joined(row)
            row = []
        row.append(block)
    if row:
        yield _joined(row)


def _joined(row: Sequence[_PanelText | ChartText]) -> list[str]:
    lines = itertools.zip_longest(*(block.lines for block in row))
    return [
        (" " * GAP).join(
            " " * block.width if part is None else part for block, part in zip(row, parts, strict=True)
        )
        for parts in lines
    ]


def _legend(legend: Sequence[Look], width: int, pen: _Pen) -> list[str]:
    lines, used = [""], 0
    for samples, label in entries(legend):
        scale = list({look.glyph: look for look in samples}.values())
        swatch = "".join(pen.cells(look, 2 if len(scale) == 1 else 1, 1) for look in scale)
        indent = max(2, len(scale)) + 1
        first, *rest = wrap_text(label, width - indent)
        length = indent + len(first)
        if used and used + 3 + length > width:
            lines.append("")
            used = 0
        lines[-1] += ("   " if used else "") + f"{swatch} {first}"
        used += length + (3 if used else 0)
        if rest:
            lines += [" " * indent + part for part in rest] + [""]
            used = 0
    return [line for line in lines if line]
