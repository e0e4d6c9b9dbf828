"""Figure: a picture with facts, planes, curves and scales of colour, as people and programs read it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lattend.draw.charts.curve import Curve
from lattend.draw.charts.heat import Scale
from lattend.draw.charts.plane import Plane
from lattend.draw.formats.palette import SHADES, Look
from lattend.draw.formats.scene import Scene
from lattend.draw.grid import layout
from lattend.draw.grid.marks import Label, word_size
from lattend.draw.grid.panel import Panel
from lattend.draw.picture import Picture, terminal_columns, wants_colour


@dataclass(frozen=True)
class Below:
    """What stands below the panels in a terminal."""

    caption: tuple[str, ...] = ()
    legend: tuple[Look, ...] = ()
    scales: tuple[Scale, ...] = ()


@dataclass(frozen=True, eq=False)
class Figure(Picture):
    """A picture, what it tells in rows of (name, words), and the same as `data`.

    For the terminal alone: `table`, a heading first, and `rough`, panels that suit it better, with scales
    of their own. `labelled` stands below panels that show the words in their cells, `bare` below those that
    have no room for them. `drawn` is a caption for the other forms alone.
    """

    facts: tuple[tuple[str, str], ...] = ()
    scales: tuple[Scale, ...] = ()
    planes: tuple[Plane, ...] = ()
    curves: tuple[Curve, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    rough: tuple[Panel, ...] = ()
    rough_scales: tuple[Scale, ...] = ()
    labelled: Below | None = None
    bare: Below | None = None
    drawn: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    columns: int = 4
    grid: float = 0  # wanted length of a panel's side

    @cached_property
    def scene(self) -> Scene:
        """The items that all graphic forms draw."""
        return layout.compose(
            self.title,
            self.subtitle,
            self.panels,
            (*self.drawn, *self.caption),
            self.legend,
            self.columns,
            grid=self.grid,
            planes=self.planes,
            curves=self.curves,
            facts=self.facts,
            scales=self.scales,
        )

    @property
    def words(self) -> str:
        """What a screen reader says after the title."""
        facts = (f"{name}: {said}" for name, said in self.facts)
        return ". ".join((*self.subtitle, *facts, *self.drawn, *self.caption))

    def terminal(
        self, width: int | None = None, colour: bool | None = None, encoding: str | None = None
    ) -> str:
        """The figure as lines of text, by default as wide, coloured and encoded as standard output."""
        from lattend.draw.formats.terminal import terminal

        columns = width or terminal_columns()
        below = self._below(columns)
        return terminal(
            self.title,
            self.subtitle,
            self.rough or self.panels,
            below.caption,
            below.legend,
            width=columns,
            colour=wants_colour() if colour is None else colour,
            encoding=encoding or getattr(sys.stdout, "encoding", None) or "utf-8",
            facts=self.facts,
            table=self.table,
            planes=self.planes,
            curves=self.curves,
            scales=below.scales,
        )

    def _below(self, width: int) -> Below:
        """What explains the characters that a terminal of this width shows."""
        usual = Below(self.caption, self.legend, self.rough_scales or self.scales)
        labelled, bare = self.labelled or usual, self.bare or usual
        shown = {types_labels(panel, width) for panel in self.rough or self.panels if panel.labels()}
        if shown == {True}:
            return labelled
        if True not in shown:
            return bare
        caption = tuple(dict.fromkeys((*labelled.caption, *bare.caption)))
        return Below(caption, bare.legend, bare.scales)

    def json(self) -> dict[str, Any]:
        """What the figure tells, as plain data."""
        return {"title": self.title, **self.data}

    def __repr__(self) -> str:
        return f"<Figure {self.title}>"


def types_labels(panel: Panel, width: int) -> bool:
    """Whether a terminal of so many columns has room for the words in a panel's cells."""
    from lattend.draw.formats.terminal import NARROWEST

    margin = max((len(text) for _, text in panel.rows.ticks), default=0) + 1
    room, cols = max(8, max(NARROWEST, width) - margin), panel.cells.shape[1]
    if cols > room or (2 * cols > room and panel.looks is SHADES):
        return False
    longest = max(map(len, panel.labels().values()), default=0)
    return (longest + 1) * cols <= room or longest <= (2 if 2 * cols <= room else 1)


def draws_labels(panel: Panel, panels: int = 1, grid: float = 0) -> bool:
    """Whether a picture with so many panels, of sides `grid` long, has room for the words in this one."""
    height, width = layout.cell_size(panel.rows.length, panel.cols.length, panels, grid)
    return any(word_size(mark, height, width) > 0 for mark in panel.marks if isinstance(mark, Label))


def first_to_last(many: int) -> str:
    """`0–8` for nine things counted from 0, `0` for one.

    >>> first_to_last(9)
    '0–8'
    """
    return f"0–{many - 1:,}" if many > 1 else "0"
