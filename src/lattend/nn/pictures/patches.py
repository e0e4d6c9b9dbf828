"""draw_patches: an image in patches, what overlaps, is left out or added, and the price of the tokens."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lattend.draw.formats.palette import EMPTY, Look
from lattend.draw.grid import titles
from lattend.draw.grid.layout import draws_labels
from lattend.draw.grid.marks import Label, Mark, box
from lattend.draw.grid.panel import Panel, Side, nice_step
from lattend.draw.picture import Below, Picture
from lattend.errors import DomainError, NamingError
from lattend.nn.images.patch_grid import Cuts, Pair, PatchGrid, patch_grid
from lattend.nn.images.patch_price import embedding_cost
from lattend.nn.pictures.panels import Facts
from lattend.report.numbers import compact

Counts = NDArray[np.int64]
MOST_CELLS = 224  # along a side
MOST_PATCHES = 64  # along a side; of more, the upper left corner is drawn
MOST_SEGMENTS = 32  # along a side in a terminal
MOST_NUMBERS = 256

ONE = Look("", "#d9e7f5", "░", ":", 153, share=0.25)
NEXT = Look("", "#b3cfec", "▒", "+", 111, share=0.5)
LEFT_OUT = Look("in no patch", "#e6e9ed", "·", ".", 245, share=0.0, hatch="\\", ink="#8b949e")
ZEROS = Look("zeros that are added", "#fbecd0", "-", "-", 214, share=1.0, hatch="/", ink="#cf8600")
OVER = ("#7fb0e0", "#4c88c9", "#2c66a8", "#184a82", "#0f2b52")  # in 2, 4, 8, 16, 32 patches or more
FIRST, SECOND = "#0f2b52", "#d55e00"  # outlines of patches 0 and 1


def draw_patches(
    image: Pair,
    patch: Pair,
    stride: Pair | None = None,
    padding: str = "error",
    *,
    channels: int | None = None,
    width: int | None = None,
) -> Picture:
    """The picture of an image in patches; sizes are numbers or (rows, cols), as those of `lt.nn.Patches`.

    `channels` of the image and the `width` of a token add what the embedding cost.

    >>> dict(draw_patches(224, 16, channels=3, width=768).facts)["embedding"]  # 16*16*3*768 + 768
    '590,592 parameters, 115,605,504 multiplies'
    """
    grid = patch_grid(image, patch, stride, padding)
    said, price = _price(grid, channels, width)
    panel, shown = _panel(grid)
    one = _by([cuts.patch for cuts in grid])
    title = f"{_by([cuts.size for cuts in grid])} pixels in patches of {one}"
    used = dict.fromkeys(look for row in panel.rows_of_looks() for look in row)
    order = [*panel.looks[:3], *panel.looks[5:], LEFT_OUT, ZEROS]
    legend = tuple(sorted((look for look in used if look.label), key=order.index))
    numbers = ("patches are numbered row by row",) * numbered(grid)
    return Picture(
        title,
        (panel,),
        tuple(shown),
        legend=legend,
        facts=(*facts(grid), *said),
        rough=(_rough(grid),),
        labelled=Below((*numbers, *shown), legend),
        bare=Below(tuple(shown), (*_in_turn(grid), *legend)),
        drawn=numbers if draws_labels(panel) else (),
        data={**data(grid, padding), **price},
    )


def _price(grid: PatchGrid, channels: int | None, width: int | None) -> tuple[Facts, dict[str, object]]:
    """The price of making each patch a token, in words and as data."""
    given = {"channels": channels, "width": width}
    for name, number in given.items():
        if number is not None and number < 1:
            raise DomainError(f"{name} must be at least 1, got {number}")
    if channels is None and width is None:
        return (), {}
    if channels is None or width is None:
        missing = next(name for name, number in given.items() if number is None)
        raise NamingError(f"the price of an embedding needs channels and width: give {missing} too")
    embedding = embedding_cost(grid, channels, width)
    facts = (
        ("a token", f"{grid.numbers_text(channels)} numbers, made {width:,}"),
        ("embedding", f"{embedding.parameters:,} parameters, {embedding.multiplies:,} multiplies"),
    )
    price = {"parameters": embedding.parameters, "multiplies": embedding.multiplies}
    return facts, {**given, "embedding": price}


def _in_turn(grid: PatchGrid) -> list[Look]:
    """The two looks that patches have in turn where they lie side by side."""
    alone = not (grid.rows.overlap or grid.cols.overlap)
    return [replace(look, label="patches, in turn") for look in (ONE, NEXT)] if alone else []


def numbered(grid: PatchGrid) -> bool:
    """Whether each pixel can have the number of its patch: few patches, and none over another."""
    return grid.tokens <= MOST_NUMBERS and not (grid.rows.overlap or grid.cols.overlap)


def facts(grid: PatchGrid) -> list[tuple[str, str]]:
    """Tokens, what a patch is, what two share, and what is left over or added."""
    rows, cols = grid
    found = [("tokens", f"{_by([rows.tokens, cols.tokens])} = {grid.tokens:,}")]
    every = _by([rows.stride, cols.stride] if rows.stride != cols.stride else [rows.stride])
    area = rows.patch * cols.patch
    pixels = f"{_by([rows.patch, cols.patch])} = {area:,} pixel{'s' if area > 1 else ''}"
    found.append(("a patch", f"{pixels}, one every {every}"))
    shared, skipped = _axes(rows.overlap, cols.overlap), _axes(rows.skipped, cols.skipped)
    if shared:
        found.append(("overlap", f"{shared} with the next patch"))
    if skipped:
        found.append(("between patches", f"{skipped} in no patch"))
    cropped, added = _axes(rows.cropped, cols.cropped), _axes(rows.added, cols.added)
    if cropped:
        found.append(("left out", f"{cropped} at the end"))
    if added:
        found.append(("zeros added", f"{added} at the end"))
    if not cropped and not added:
        found.append(("left over", "nothing"))
    return found


def data(grid: PatchGrid, padding: str) -> dict[str, object]:
    """The same as plain data, each number for rows and columns."""
    found: dict[str, object] = {"tokens": grid.tokens, "padding": padding}
    names = ("size", "patch", "stride", "tokens", "overlap", "skipped", "cropped", "added")
    found["rows"], found["cols"] = ({name: getattr(cuts, name) for name in names} for cuts in grid)
    return found


def _by(numbers: list[int]) -> str:
    return " × ".join(f"{number:,}" for number in numbers)


def _axes(rows: int, cols: int) -> str:
    """`3 rows and 1 column`, without what is 0."""
    counts = zip((rows, cols), ("row", "column"), strict=True)
    return " and ".join(f"{count:,} {name}{'s' if count > 1 else ''}" for count, name in counts if count)


def _panel(grid: PatchGrid) -> tuple[Panel, list[str]]:
    """The image, the zeros added to it, and numbers on the patches; and what of it is shown."""
    lengths = [_drawn_pixels(cuts) for cuts in grid]
    step = math.gcd(*(number for cuts in grid for number in (cuts.patch, cuts.stride, cuts.size)))
    if max(lengths) > MOST_CELLS * step:
        step = -(-max(lengths) // MOST_CELLS)
    middles = [np.arange(0, length, step) + (step - 1) // 2 for length in lengths]
    cells, looks = _cells(grid, *(np.minimum(m, n - 1) for m, n in zip(middles, lengths, strict=True)))
    rows, cols = (
        Side(name, length / step, _ticks(cuts, length, step), (cuts.size / step,) if cuts.added else ())
        for name, length, cuts in zip(("row", "column"), lengths, grid, strict=True)
    )
    whole = [max(cuts.size, cuts.end) for cuts in grid]
    shown = [
        f"shown: {titles.several(lengths)} of {titles.several(whole)} pixels, from the upper left corner"
    ] * (lengths != whole)
    return Panel(cells, looks, rows, cols, "", tuple(_marks(grid, step))), shown


def _drawn_pixels(cuts: Cuts) -> int:
    """How many pixels of an axis are drawn: all, or those of the first 64 patches."""
    if cuts.tokens <= MOST_PATCHES:
        return max(cuts.size, cuts.end)
    return (MOST_PATCHES - 1) * cuts.stride + cuts.patch


def _ticks(cuts: Cuts, length: int, step: int) -> tuple[tuple[float, str], ...]:
    """Where patches begin, so many that they are read."""
    every = cuts.stride * nice_step(-(-length // cuts.stride), 8)
    return tuple((place / step, compact(place)) for place in range(0, length + 1, every))


def _cells(grid: PatchGrid, rows: Counts, cols: Counts) -> tuple[NDArray[np.uint8], tuple[Look, ...]]:
    """The look of the pixels at these rows and columns."""
    over = np.outer(_coverage(grid.rows, rows), _coverage(grid.cols, cols))
    turn = np.add.outer(rows // grid.rows.stride, cols // grid.cols.stride) % 2
    alone = not (grid.rows.overlap or grid.cols.overlap)
    bucket = np.floor(np.log2(np.maximum(over, 1))).astype(int).clip(0, len(OVER))
    cells = np.where(over > 1, 4 + bucket, np.where((turn == 1) & alone, 2, 1))
    cells = np.where(over == 0, 3, cells)
    beyond = np.logical_or.outer(rows >= grid.rows.size, cols >= grid.cols.size)
    cells = np.where(beyond & (over > 0), 4, cells)
    one = ONE if alone else replace(ONE, label="in one patch")
    return cells.astype(np.uint8), (EMPTY, one, NEXT, LEFT_OUT, ZEROS, *_overlaps(over))


def _overlaps(over: Counts) -> list[Look]:
    """A look for each doubling of the patches over a pixel, named by the counts that occur."""
    found: list[Look] = []
    for place, fill in enumerate(OVER):
        low, high = 2 ** (place + 1), 2 ** (place + 2) if place + 1 < len(OVER) else np.inf
        here = np.unique(over[(over >= low) & (over < high)]).tolist()
        said = f"{here[0]} to {here[-1]}" if len(here) > 1 else f"{here[0]}" if here else ""
        glyph = "▒▓▓██"[place]
        found.append(Look(f"in {said} patches", fill, glyph, "+%%##"[place], 69, share=1.0))
    return found


def _coverage(cuts: Cuts, pixels: Counts) -> Counts:
    """How many patches of an axis lie over each of these pixels: starts s with s <= pixel < s + patch."""
    last = np.minimum(pixels // cuts.stride, cuts.tokens - 1)
    first = np.maximum(-((cuts.patch - 1 - pixels) // cuts.stride), 0)
    return np.maximum(last - first + 1, 0)


def _marks(grid: PatchGrid, step: int) -> list[Mark]:
    """Numbers where they are few, and lines around the first patch and the next one."""
    marks: list[Mark] = []
    rows, cols = grid
    if cols.tokens > 1 and (cols.overlap or cols.skipped):
        edge = (0, cols.stride / step, rows.patch / step, (cols.stride + cols.patch) / step)
        marks.append(box(*edge, SECOND, 1.8))
    marks.append(box(0, 0, rows.patch / step, cols.patch / step, FIRST, 1.8))
    if grid.tokens <= MOST_NUMBERS:
        room = 0.9 * min(min(cuts.stride, cuts.patch) for cuts in grid) / step
        for number in range(grid.tokens):
            row, col = divmod(number, cols.tokens)
            y, x = _middle(rows, row) / step, _middle(cols, col) / step
            marks.append(Label(y, x, str(number), room=room, like=str(grid.tokens - 1)))
    return marks


def _middle(cuts: Cuts, token: int) -> float:
    """The middle of a patch, as far as it lies in the image."""
    start = token * cuts.stride
    return (start + min(start + cuts.patch, cuts.size)) / 2


def _rough(grid: PatchGrid) -> Panel:
    """One cell for each stretch between two edges of patches, which a terminal has room for."""
    starts = [_edges(cuts) for cuts in grid]
    cells, looks = _cells(grid, *(np.array(start) for start in starts))
    rows, cols = (
        Side(name, len(start), tuple((at + 0.5, str(place)) for at, place in enumerate(start)))
        for name, start in zip(("row", "column"), starts, strict=True)
    )
    marks: list[Mark] = []
    if numbered(grid):
        places: list[list[int]] = np.argwhere((cells == 1) | (cells == 2)).tolist()
        for y, x in places:
            row, col = starts[0][y] // grid.rows.stride, starts[1][x] // grid.cols.stride
            marks.append(Label(y + 0.5, x + 0.5, str(row * grid.cols.tokens + col)))
    cut = any(start[-1] < cuts.end - cuts.patch for start, cuts in zip(starts, grid, strict=True))
    return Panel(cells, looks, rows, cols, "the upper left corner" if cut else "", tuple(marks))


def _edges(cuts: Cuts) -> list[int]:
    """Where a patch begins or ends, the image ends, or zeros begin; the first of them."""
    few = range(min(cuts.tokens, MOST_SEGMENTS))
    places = {at * cuts.stride for at in few} | {at * cuts.stride + cuts.patch for at in few} | {cuts.size}
    most = MOST_SEGMENTS // 2 if cuts.overlap else MOST_SEGMENTS
    return sorted(place for place in places if place < max(cuts.size, cuts.end))[:most]
