"""Overlay: the tiles of a plan over the pairs of a rule, each part in its own colour.

A tile is given as the rows and columns of its cells, which need not lie together: positions that a plan
takes by residues are a comb. Tiles that are one box are outlined as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lattend.draw.formats.palette import EMPTY, Look
from lattend.draw.grid.marks import Shape, box
from lattend.draw.grid.panel import Bools, Panel, Side
from lattend.draw.picture import Picture

Ints = NDArray[np.int64]
# Outline, full, partial and light of each part, after Okabe and Ito's colours
COLOURS = (
    ("#062545", "#2a6db3", "#7db4e0", "#dbe9f5"),
    ("#5a3500", "#cf8600", "#f3bf5c", "#fbecd0"),
    ("#003527", "#0b8f6a", "#6cc7ab", "#d3eee5"),
    ("#47183a", "#b3588a", "#dda3c4", "#f5e3ee"),
    ("#541f00", "#c45200", "#eb9a63", "#f9dfcd"),
    ("#1c1c1c", "#6e6e6e", "#a6a6a6", "#dedede"),
)
ANSI = ((27, 75, 153), (172, 214, 223), (29, 36, 115), (127, 176, 219), (166, 208, 216), (240, 246, 252))
PER_PART = 3  # looks: full, partial, computed and wasted
OUTLINE = 1.0  # width of the line around a tile
LEVELS = 6  # shades of a key by the share of queries that attend to it


@dataclass(frozen=True, eq=False)
class Tile:
    """Cells that are computed together: rows and columns of a panel, and the part they belong to."""

    part: int
    rows: Ints
    cols: Ints


def looks(parts: int) -> tuple[Look, ...]:
    """Nothing, then full, partial and wasted of each part."""
    styles = [EMPTY]
    for part in range(parts):
        _, *fills = COLOURS[part % len(COLOURS)]
        glyphs = (chr(ord("A") + part % 26), chr(ord("a") + part % 26), "-")
        kinds = zip(
            ("full tiles", "partial tiles", "computed, not attended"),
            fills,
            glyphs,
            ANSI[part % len(ANSI)],
            (1.0, 1.0, 0.0),
            strict=True,
        )
        for word, fill, glyph, ansi, share in kinds:
            styles.append(Look(f"{_named(part, parts)}{word}", fill, glyph, glyph, ansi, share))
    return tuple(styles)


def key_looks(part: int, parts: int) -> tuple[Look, ...]:
    """Nothing, keys that no query of a tile attends to, shades up to all; then the same for its queries."""
    other = 0 if part % len(COLOURS) == 1 else 1
    words = f"{_named(part, parts)}keys of a tile, attended by few to all of its queries"
    shades = [_shade(part, level, words) for level in range(1, LEVELS + 1)]
    wasted = replace(
        shades[0], label=f"{_named(part, parts)}keys read, not attended", fill=COLOURS[part % len(COLOURS)][3]
    )
    queries = [
        replace(_shade(other, level, "queries of the tile, shaded alike"), glyph="@", plain="@")
        for level in range(LEVELS + 1)
    ]
    return (EMPTY, replace(wasted, glyph="-", plain="-", share=0.0), *shades, queries[0], *queries)


def _shade(part: int, level: int, label: str) -> Look:
    """A cell attended by `level` sixths of the queries: from light over the part's colour to dark."""
    dark, middle, _, light = COLOURS[part % len(COLOURS)]
    along, quarter = level / LEVELS, max(0, (4 * level - 1) // LEVELS)
    fill = (
        _between(light, middle, 0.2 + 1.2 * along) if along < 2 / 3 else _between(middle, dark, 3 * along - 2)
    )
    return Look(label, fill, "░▒▓█"[quarter], ":+%#"[quarter], ANSI[part % len(ANSI)][1], share=along)


def _named(part: int, parts: int) -> str:
    return f"part {part + 1}: " if parts > 1 else ""


def _between(light: str, dark: str, along: float) -> str:
    """The colour this far from the light to the dark one."""
    ends = ([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (light, dark))
    return "#" + "".join(f"{round(a + (b - a) * along):02x}" for a, b in zip(*ends, strict=True))


def squares(masks: Sequence[Bools], tiles: Sequence[Tile], rows: Side, cols: Side, title: str = "") -> Panel:
    """One cell a pair; `masks` are the pairs of each part, `tiles` what is computed."""
    cells = np.zeros(masks[0].shape if masks else (0, 0), np.uint8)
    for tile in tiles:
        block = np.ix_(tile.rows, tile.cols)
        cells[block] = np.where(cells[block] == 0, _index(tile.part, 2), cells[block])
    for tile in tiles:
        block = np.ix_(tile.rows, tile.cols)
        attended = masks[tile.part][block]
        cells[block] = np.where(attended, _index(tile.part, 0 if attended.all() else 1), cells[block])
    return Panel(cells, looks(len(masks)), rows, cols, title, _outlines(tiles))


def keys(
    part: int,
    parts: int,
    shares: NDArray[np.float64],
    query: Bools,
    rows: Side,
    cols: Side,
    boxes: Sequence[Tile] = (),
    title: str = "",
) -> Panel:
    """One cell a pixel: the keys that one tile reads, by the share of its queries that attend to them.

    `shares` is negative where a key is not read. `boxes` are the queries of all tiles, which are outlined.
    """
    levels = np.where(shares < 0, 0, 1 + np.ceil(shares * LEVELS - 1e-9)).astype(np.uint8)
    every = key_looks(part, parts)
    cells = (levels + query * (len(every) // 2)).astype(np.uint8)
    return Panel(cells, every, rows, cols, title, _outlines(boxes))


def picture(title: str, subtitle: Sequence[str], panels: Sequence[Panel], caption: Sequence[str]) -> Picture:
    """The panels side by side, with a legend of the looks that occur; scales are whole."""
    seen = {look.label for panel in panels for row in panel.rows_of_looks() for look in row} - {EMPTY.label}
    every = dict.fromkeys(look for panel in panels for look in panel.looks if look.label in seen)
    legend = sorted(every, key=lambda look: list(dict.fromkeys(x.label for x in every)).index(look.label))
    return Picture(title, tuple(panels), tuple(caption), tuple(subtitle), tuple(legend))


def _index(part: int, kind: int) -> int:
    return 1 + part * PER_PART + kind


def _outlines(tiles: Sequence[Tile]) -> tuple[Shape, ...]:
    """A line around each tile whose cells lie together, in the darkest colour of its part."""
    outlines: list[Shape] = []
    for tile in tiles:
        ends = [
            (int(side.min()), int(side.max()) + 1, side.size) for side in (tile.rows, tile.cols) if side.size
        ]
        if len(ends) == 2 and all(high - low == size for low, high, size in ends):
            (top, bottom, _), (left, right, _) = ends
            outlines.append(box(top, left, bottom, right, COLOURS[tile.part % len(COLOURS)][0], OUTLINE))
    return tuple(outlines)
