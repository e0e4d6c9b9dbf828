"""Pixel: the keys of one pixel of an image, or of one voxel of a volume, slice by slice."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lattend.draw.grid import panel, titles
from lattend.draw.grid.bind import per_head
from lattend.draw.grid.panel import Bools, Panel, cell_side, tile_side
from lattend.draw.grid.view import MOST_TILES, View, classes, edges, tile_panel
from lattend.errors import DomainError, LattendError, TooLarge
from lattend.rules.rule import Rule

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
    found = rule.keys(*query)
    if found:
        mask[tuple(np.array(found).T)] = True
    return mask if mask.ndim == 3 else mask[np.newaxis]


def _title(head: str, z: int, what: str) -> str:
    return ", ".join(part for part in (head, f"z = {z}" if what == "voxel" else "") if part)


def _shown(attended: Bools, place: Place, most_slices: int) -> tuple[range, range, range]:
    """The slices, rows and columns to draw: all of them, or those around the keys and the pixel."""
    found = np.argwhere(attended)
    low = [min([at, *found[:, axis].tolist()]) for axis, at in enumerate(place)]
    high = [max([at, *found[:, axis].tolist()]) + 1 for axis, at in enumerate(place)]
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
    here = (place[1] - rows.start, place[2] - cols.start) if z == place[0] else None
    return panel.neighbourhood(parts[0], here, *sides, title)
