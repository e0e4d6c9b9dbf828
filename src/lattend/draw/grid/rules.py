"""Pictures of rules at given numbers: one, two compared, several side by side, one pixel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from lattend.draw.formats.palette import SHADES, on_paper
from lattend.draw.grid import panel, titles, view
from lattend.draw.grid.bind import bound, bound_each, per_head
from lattend.draw.grid.panel import Bools, Panel, cell_side, tile_side
from lattend.draw.grid.view import MOST_TILES, View, classes, edges, flat_mask, tile_panel
from lattend.draw.picture import Picture
from lattend.errors import DomainError, LattendError, NamingError, TooLarge
from lattend.rules.by_name import check_options
from lattend.rules.reader import read_rule
from lattend.rules.rule import Rule

if TYPE_CHECKING:
    from lattend.counts.verdict import Counterexample

MOST_SQUARES = 256  # along a side, one cell each; beyond it, tiles

Style = Literal["colour", "cross"]


def draw(
    rule: Rule,
    *,
    compare: Rule | str | None = None,
    beside: Sequence[Rule | str] = (),
    pixel: tuple[int, ...] | None = None,
    style: Style = "colour",
    first: int = 0,
    title: str | None = None,
    **values: int,
) -> Picture:
    """The picture of the rule: queries down, keys across, attended pairs dark.

    Up to 256 positions each pair is a square; beyond that, tiles are shaded by how full they are.
    `compare` draws a second rule over the first: only A, only B, both; `beside` draws others next to it, each
    with its own grid. `pixel=(y, x)` draws the keys of one pixel of an image. `style="cross"` puts crosses
    into white squares, as on paper, and `first=1` numbers positions from 1. A size that is not given is
    small: n=12, an image of 8 by 8.

    >>> from lattend.rules.reader import rule
    >>> draw(rule("k <= q and q - k <= t"), n=8, t=2).caption  # 1 + 2 + 6*3 = 21 pairs
    ('21 of 64 pairs, 32.8%',)
    >>> draw(rule("causal"), beside=["strided(3)", "windowed(4)"], n=12).caption[2]  # 3 windows of 4*5/2
    'windowed (w = 4): 30 of 144 pairs, 20.8%'
    """
    others = [read_rule(other) for other in (*([] if compare is None else [compare]), *beside)]
    check_options("draw", draw.__kwdefaults__ or {}, values, [rule, *others])
    if compare is not None and beside:
        raise NamingError("compare draws one rule over another, beside draws them apart: give one of these")
    if style not in ("colour", "cross"):
        raise NamingError(f'style is "colour" or "cross", not {style!r}')
    if first not in (0, 1):
        raise DomainError(f"positions are numbered from 0 or from 1, not from {first!r}")
    if beside:
        rules = bound_each([rule, *others], values)
        heading, lines, names = titles.beside(rules, title)
        seen = [
            _view([each], pixel, first, style).named(name) for each, name in zip(rules, names, strict=True)
        ]
    else:
        rules = bound([rule, *others], values)
        heading, lines = titles.heading(rules, title)
        seen = [_view(rules, pixel, first, style)]
    if first == 1:
        lines = (*lines, "the rule counts positions from 0, the axes from 1")
    panels = tuple(panel for view in seen for panel in view.panels)
    captions = (*(view.caption[0] for view in seen), *(note for view in seen for note in view.caption[1:]))
    legend = dict.fromkeys(look for view in seen for look in view.legend)
    picture = Picture(heading, panels, tuple(dict.fromkeys(captions)), lines, tuple(legend))
    return _in_crosses(picture) if style == "cross" else picture


def _in_crosses(picture: Picture) -> Picture:
    if any(panel.looks is SHADES for panel in picture.panels):
        raise TooLarge(
            f"a cross stands for one pair, and of more than {MOST_SQUARES} positions tiles are drawn: draw "
            "fewer, or leave the style out"
        )
    panels = (replace(panel, looks=tuple(map(on_paper, panel.looks))) for panel in picture.panels)
    return replace(picture, panels=tuple(panels), legend=tuple(map(on_paper, picture.legend)))


def _view(rules: Sequence[Rule], pixel: tuple[int, ...] | None, start: int, style: Style) -> View:
    """What is seen of these rules, which share a grid."""
    first = rules[0]
    if pixel is not None and len(first.axes) == 1:
        raise LattendError(
            f'pixel={tuple(pixel)} needs a rule on an image; "{titles.name(first)}" lives on a line. '
            f"Its queries are the rows of its picture: leave pixel out"
        )
    if any(rule.values[size] == 0 for rule in rules for size in rule.sizes):
        return View((), (), 0, empty=titles.empty(first))
    if len(first.axes) == 1:
        most = max(first.values[size] for axis in first.axes for size in (axis.queries, axis.keys))
    else:
        most = math.prod(first.values[axis.queries] for axis in first.axes)
    if pixel is None and most <= MOST_SQUARES:
        return view.squares(rules, start, own=style == "colour")
    if len(first.axes) > 1:
        return keys_of(rules, pixel, start)
    from lattend.counts import tile_counts

    return view.tiles(rules, tile_counts, start)


MOST_PIXELS = 2**20
MOST_SLICES = 8
MOST_PANELS = 16
AROUND = 2  # pixels left around a neighbourhood that is cut out of a large image

Place = tuple[int, int, int]  # slice, row, column; an image is one slice


def keys_of(rules: Sequence[Rule], pixel: tuple[int, ...] | None, start: int = 0) -> View:
    """The keys of this pixel, counted from `start`; of the one in the centre where none is named."""
    lengths = [rules[0].values[axis.queries] for axis in rules[0].axes]
    what = "pixel" if len(lengths) == 2 else "voxel"
    if math.prod(lengths) > MOST_PIXELS:
        raise TooLarge(
            f"{titles.several(lengths)} is {math.prod(lengths):,} {what}s, and the keys of one are looked "
            f"for among at most {MOST_PIXELS:,}; draw the rule at a smaller size"
        )
    query = tuple(length // 2 for length in lengths) if pixel is None else _checked(pixel, rules[0], start)
    heads, head_notes = per_head(rules)
    masks = [(title, [_key_mask(rule, query, lengths) for rule in at_head]) for title, at_head in heads]
    attended = np.logical_or.reduce([mask for _, pair in masks for mask in pair])
    place: Place = (query[-3] if len(query) == 3 else 0, query[-2], query[-1])
    shown = _shown(attended, place, max(1, min(MOST_SLICES, MOST_PANELS // len(heads))))
    tile = -(-max(len(shown[1]), len(shown[2])) // MOST_TILES)
    panels = tuple(
        _panel([mask[z] for mask in pair], place, z, shown, tile, start, _title(title, z + start, what))
        for title, pair in masks
        for z in shown[0]
    )
    counts = [[int(part.sum()) for part in classes(pair)] for _, pair in masks]
    notes = [titles.tile_note((tile, tile), f"{what}s", len(rules))] if tile > 1 else []
    cut = [
        f"{name} {part.start + start:,} to {part.stop - 1 + start:,} of {length:,}"
        for name, part, length in zip(("slices", "rows", "columns"), shown, attended.shape, strict=True)
        if len(part) < length
    ]
    if cut:
        notes.append(f"shown: {', '.join(cut)}")
    centre = "the centre " if pixel is None else ""
    return View(
        panels,
        tuple(map(sum, zip(*counts, strict=True))),
        len(heads) * math.prod(lengths),
        (*notes, *head_notes),
        of=f"keys of {centre}{what} ({', '.join(str(at + start) for at in query)}): ",
        what=f"{what}s",
    )


def _checked(pixel: tuple[int, ...], rule: Rule, start: int) -> tuple[int, ...]:
    names = [axis.query for axis in rule.axes]
    if len(pixel) != len(names):
        raise LattendError(f"a pixel of this rule is ({', '.join(names)}), got {tuple(pixel)}")
    for at, name, axis in zip(pixel, names, rule.axes, strict=True):
        if not start <= at < start + rule.values[axis.queries]:
            raise DomainError(f"{name} = {at} lies outside {start} … {start + rule.values[axis.queries] - 1}")
    return tuple(at - start for at in pixel)


def _key_mask(rule: Rule, query: tuple[int, ...], lengths: Sequence[int]) -> Bools:
    """Which pixels are keys of this one, as [slice, row, column]."""
    mask = np.zeros(lengths, dtype=bool)
    keys = rule.keys(*query)
    if keys:
        mask[tuple(np.array(keys).T)] = True
    return mask if mask.ndim == 3 else mask[np.newaxis]


def _title(head: str, z: int, what: str) -> str:
    return ", ".join(part for part in (head, f"z = {z}" if what == "voxel" else "") if part)


def _shown(attended: Bools, place: Place, most_slices: int) -> tuple[range, range, range]:
    """The slices, rows and columns to draw: all of them, or those around the keys and the pixel."""
    attended_cells = np.argwhere(attended)
    low = [min([at, *attended_cells[:, axis].tolist()]) for axis, at in enumerate(place)]
    high = [max([at, *attended_cells[:, axis].tolist()]) + 1 for axis, at in enumerate(place)]
    depth, *sides = attended.shape
    slices = range(depth) if depth <= most_slices else range(low[0], high[0])
    if len(slices) > most_slices:
        first = min(max(place[0] - most_slices // 2, slices.start), slices.stop - most_slices)
        slices = range(first, first + most_slices)
    if max(sides) <= MOST_TILES:
        return slices, range(sides[0]), range(sides[1])
    rows, cols = (
        range(max(0, low[axis] - AROUND), min(sides[axis - 1], high[axis] + AROUND)) for axis in (1, 2)
    )
    return slices, rows, cols


def _panel(
    masks: Sequence[Bools],
    place: Place,
    z: int,
    shown: tuple[range, range, range],
    tile: int,
    start: int,
    title: str,
) -> Panel:
    _, rows, cols = shown
    parts = [mask[rows.start : rows.stop, cols.start : cols.stop] for mask in masks]
    if tile > 1:
        cuts = [edges(len(part), tile) for part in (rows, cols)]
        areas = np.outer(*(np.diff(cut) for cut in cuts))
        counts = [
            np.add.reduceat(np.add.reduceat(part.astype(int), cuts[0][:-1], 0), cuts[1][:-1], 1)
            for part in classes(parts)
        ]
        sides = (
            tile_side("row", len(rows), tile, rows.start + start),
            tile_side("column", len(cols), tile, cols.start + start),
        )
        return tile_panel(counts, areas, *sides, title)
    sides = (
        cell_side("row", len(rows), rows.start + start),
        cell_side("column", len(cols), cols.start + start),
    )
    if len(parts) == 2:
        return panel.compared(parts[0], parts[1], *sides, title)
    center = (place[1] - rows.start, place[2] - cols.start) if z == place[0] else None
    return panel.neighbourhood(parts[0], center, *sides, title)


class CounterexamplePairs(NamedTuple):
    """A mask of [queries, keys] at these numbers; of a claim about one query or key, which row or column."""

    numbers: dict[str, int]
    mask: Bools
    row: int | None
    column: int | None


def numbers_for(rule: Rule, example: Counterexample) -> dict[str, int]:
    """The sizes and parameters of the counterexample, without positions."""
    return {name: value for name, value in example.values.items() if name in rule.free}


def counterexample_pairs(
    rule: Rule, example: Counterexample, first: int = 0, longest: int = 32
) -> CounterexamplePairs | None:
    """The pairs there, positions told from `first` on; None of heads, and beyond `longest` positions a side.

    >>> from lattend.rules.reader import rule
    >>> causal = rule("k <= q")
    >>> found = causal.count(per="query").claim("q").counterexample  # query 0 has 1 key
    >>> counterexample_pairs(causal, found)[1:3]
    (array([[ True]]), 0)
    """
    numbers = numbers_for(rule, example)
    bound = rule.at(**numbers)
    sides = zip(*((axis.queries, axis.keys) for axis in rule.axes), strict=True)
    lengths = [prod(bound.values.get(size, longest + 1) for size in side) for side in sides]
    if rule.has_heads or max(lengths) > longest:
        return None
    axis, places = rule.axes[0], example.values if len(rule.axes) == 1 else {}
    row, column = (places[name] - first if name in places else None for name in (axis.query, axis.key))
    return CounterexamplePairs(numbers, flat_mask(bound), row, column)
