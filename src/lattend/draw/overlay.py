"""Overlay: the tiles of a plan over the squares of a rule, each part in its own colour.

A tile is given as the rows and columns of its cells, which need not lie together: positions that a plan
takes by residues are a comb. Tiles that are one box are outlined as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lattend.draw import layout
from lattend.draw.palette import EMPTY, Look
from lattend.draw.panel import Bools, Panel, Side
from lattend.draw.picture import Picture
from lattend.draw.scene import Item, Line, Rect, Scene

Ints = NDArray[np.int64]
# Dark, middle and light of each part, from Okabe and Ito's colours; dark ones outline
COLOURS = (
    ("#0b3a63", "#3b87c8", "#cfe2f3"),
    ("#7a4a00", "#e69f00", "#fae6bd"),
    ("#00513b", "#16a37c", "#c4e9de"),
    ("#6b2c59", "#cc79a7", "#f3dcea"),
    ("#7d3000", "#d55e00", "#f6d3bb"),
    ("#3d3d3d", "#8c8c8c", "#d9d9d9"),
)
ANSI = ((27, 75, 153), (172, 214, 223), (29, 36, 115), (127, 176, 219), (166, 208, 216), (240, 246, 252))
PER_PART = 3  # looks: full, partial, computed in vain
QUERY = Look("a query of the tile", "#1c1f26", "█", "@", 255, share=1.0)


@dataclass(frozen=True, eq=False)
class Tile:
    """Cells that are computed together: rows and columns of a panel, and the part they belong to."""

    part: int
    rows: Ints
    cols: Ints


@dataclass(frozen=True)
class Outline:
    """A box of cells with a line around it, in the dark colour of its part."""

    part: int
    top: int
    bottom: int
    left: int
    right: int


@dataclass(frozen=True, eq=False)
class Overlay:
    """A panel and the outlines of its tiles."""

    panel: Panel
    outlines: tuple[Outline, ...] = ()


@dataclass(frozen=True, eq=False)
class Tiled(Picture):
    """A picture whose panels have outlines of tiles."""

    outlines: tuple[tuple[Outline, ...], ...] = ()

    @cached_property
    def scene(self) -> Scene:
        """The scene of the picture with the outlines on top."""
        plain = layout.compose(self.title, self.subtitle, self.panels, self.caption, self.legend)
        grounds = [item for item in plain.items if isinstance(item, Rect) and item.fill == EMPTY.fill]
        items: list[Item] = list(plain.items)
        for panel, outlines in zip(self.panels, self.outlines, strict=True):
            height, width = layout.cell_size(panel.rows.length, panel.cols.length, len(self.panels))
            size = (panel.cols.length * width, panel.rows.length * height)
            while grounds and (grounds[0].width, grounds[0].height) != size:
                del grounds[0]
            if grounds:
                ground = grounds.pop(0)
                thick = 1.2 if min(height, width) >= 5 else 0.8
                for box in outlines:
                    items += _around(box, ground, height, width, thick)
        return Scene(plain.width, plain.height, tuple(items))


def _around(box: Outline, ground: Rect, height: int, width: int, thick: float) -> list[Item]:
    top, bottom = (ground.y + row * height for row in (box.top, box.bottom))
    left, right = (ground.x + col * width for col in (box.left, box.right))
    colour = COLOURS[box.part % len(COLOURS)][0]
    ends = (
        (left, top, right, top),
        (left, bottom, right, bottom),
        (left, top, left, bottom),
        (right, top, right, bottom),
    )
    return [Line(*line, colour, thick) for line in ends]


def looks(parts: int, *, keys: bool = False) -> tuple[Look, ...]:
    """Nothing, then full, partial and in vain of each part; `keys` says that cells are keys of one tile."""
    words = ("marked for all its queries", "for some", "for none") if keys else (
        "full tiles", "partial tiles", "computed, not marked",
    )  # fmt: skip
    found = [EMPTY]
    for part in range(parts):
        fills, inks = COLOURS[part % len(COLOURS)], ANSI[part % len(ANSI)]
        upper, lower = chr(ord("A") + part % 26), chr(ord("a") + part % 26)
        name = f"part {part + 1}: " if parts > 1 else ""
        glyphs = (upper, lower, "-")
        for word, fill, glyph, ansi, share in zip(words, fills, glyphs, inks, (1.0, 1.0, 0.0), strict=True):
            found.append(Look(f"{name}{word}", fill, glyph, glyph, ansi, share))
    return tuple(found)


def squares(marks: Sequence[Bools], tiles: Sequence[Tile], rows: Side, cols: Side, title: str = "") -> Overlay:
    """One cell a square; `marks` are the squares of each part, `tiles` what is computed."""
    cells = np.zeros(marks[0].shape if marks else (0, 0), np.uint8)
    for tile in tiles:
        here = np.ix_(tile.rows, tile.cols)
        cells[here] = np.where(cells[here] == 0, _index(tile.part, 2), cells[here])
    for tile in tiles:
        here = np.ix_(tile.rows, tile.cols)
        marked = marks[tile.part][here]
        cells[here] = np.where(marked, _index(tile.part, 0 if marked.all() else 1), cells[here])
    outlines = tuple(box for tile in tiles if (box := _box(tile)) is not None)
    return Overlay(Panel(cells, looks(len(marks)), rows, cols, title), outlines)


def keys(
    part: int, parts: int, counts: Ints, read: Bools, query: Bools, rows: Side, cols: Side, title: str = ""
) -> Overlay:
    """One cell a pixel: the queries of one tile, and by how many of them each key it reads is marked."""
    every = int(query.sum())
    cells = np.where(read, _index(part, 2), 0)
    cells = np.where(read & (counts > 0), _index(part, 1), cells)
    cells = np.where(read & (counts >= every), _index(part, 0), cells)
    every_look = (*looks(parts, keys=True), QUERY)
    cells = np.where(query, len(every_look) - 1, cells).astype(np.uint8)
    return Overlay(Panel(cells, every_look, rows, cols, title))


def picture(
    title: str, subtitle: Sequence[str], overlays: Sequence[Overlay], caption: Sequence[str]
) -> Tiled:
    """The overlays side by side, with a legend of the looks that occur."""
    panels = tuple(one.panel for one in overlays)
    used = {look for panel in panels for row in panel.rows_of_looks() for look in row} - {EMPTY}
    legend = dict.fromkeys(look for panel in panels for look in panel.looks if look in used)
    outlines = tuple(one.outlines for one in overlays)
    return Tiled(title, panels, tuple(caption), tuple(subtitle), tuple(legend), outlines)


def _index(part: int, kind: int) -> int:
    return 1 + part * PER_PART + kind


def _box(tile: Tile) -> Outline | None:
    """The tile as one box, if its cells lie together."""
    if not tile.rows.size or not tile.cols.size:
        return None
    ends = [(int(along.min()), int(along.max()) + 1) for along in (tile.rows, tile.cols)]
    together = all(high - low == along.size for (low, high), along in zip(ends, (tile.rows, tile.cols), strict=True))
    return Outline(tile.part, *ends[0], *ends[1]) if together else None
