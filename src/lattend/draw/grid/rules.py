"""Pictures of rules at given numbers: of one, of two that are compared, or of several side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from lattend.draw.formats.palette import SHADES, on_paper
from lattend.draw.grid import pixel as pixels
from lattend.draw.grid import titles, view
from lattend.draw.grid.bind import bound, bound_each
from lattend.draw.grid.view import View
from lattend.draw.picture import Picture
from lattend.errors import DomainError, LattendError, NamingError, TooLarge
from lattend.rules.by_name import check_options
from lattend.rules.reader import read_rule
from lattend.rules.rule import Rule

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
        return pixels.keys_of(rules, pixel, start)
    from lattend.counts import tile_counts

    return view.tiles(rules, tile_counts, start)
