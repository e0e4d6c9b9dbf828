"""Pictures of rules: of one, or of two, compared, at given numbers."""

from __future__ import annotations

import math

from lattend.draw.grid import pixel as pixels
from lattend.draw.grid import titles, view
from lattend.draw.grid.bind import bound
from lattend.draw.picture import Picture
from lattend.errors import LattendError
from lattend.rules.rule import Rule

MOST_SQUARES = 256  # along a side, one cell each; beyond it, tiles


def draw(
    rule: Rule,
    *,
    compare: Rule | None = None,
    pixel: tuple[int, ...] | None = None,
    title: str | None = None,
    **values: int,
) -> Picture:
    """The picture of the rule: queries down, keys across, attended pairs dark.

    Up to 256 positions each pair is a square; beyond that, tiles are shaded by how full they are.
    `compare` draws a second rule over the first: only A, only B, both. `pixel=(y, x)` draws the keys
    of one pixel of an image. A size that is not given is small: n=12, an image of 8 by 8.

    >>> from lattend.rules.reader import rule
    >>> draw(rule("k <= q and q - k <= t"), n=8, t=2).caption  # 1 + 2 + 6*3 = 21 pairs
    ('21 of 64 pairs, 32.8%',)
    """
    rules = bound([rule] if compare is None else [rule, compare], values)
    heading, lines = titles.heading(rules, title)
    seen = _view(rules, pixel)
    if seen is None:
        zero = ", ".join(f"{size} = 0" for size in rules[0].sizes if rules[0].values[size] == 0)
        return Picture(heading, (), (f"the grid is empty: {zero}",), lines)
    return Picture(heading, seen.panels, seen.caption, lines, seen.legend)


def _view(rules: list[Rule], pixel: tuple[int, ...] | None) -> view.View | None:
    """What is seen of these rules; None where a size is 0."""
    first = rules[0]
    if pixel is not None and len(first.axes) == 1:
        raise LattendError(
            f'pixel={tuple(pixel)} needs a rule on an image; "{titles.name(first)}" lives on a line. '
            f"Its queries are the rows of its picture: leave pixel out"
        )
    if any(rule.values[size] == 0 for rule in rules for size in rule.sizes):
        return None
    if len(first.axes) > 1:
        positions = math.prod(first.values[axis.queries] for axis in first.axes)
        flat = pixel is None and positions <= MOST_SQUARES
        return view.squares(rules) if flat else pixels.keys_of(rules, pixel)
    if max(first.values[size] for axis in first.axes for size in (axis.queries, axis.keys)) <= MOST_SQUARES:
        return view.squares(rules)
    from lattend.counts import tile_counts

    return view.tiles(rules, tile_counts)
