"""Figure: a picture with the facts it shows, curves and scales of colour, as people and programs read it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lattend.draw import layout
from lattend.draw.curve import Curve
from lattend.draw.heat import Scale
from lattend.draw.panel import Panel
from lattend.draw.picture import Picture, terminal_columns, wants_colour
from lattend.draw.scene import Scene


@dataclass(frozen=True, eq=False)
class Figure(Picture):
    """A picture, what it tells in rows of (name, words), and the same as `data`.

    For the terminal alone: `table`, a heading first, and `rough`, panels that suit it better, with scales
    of their own. `drawn` is a caption for the other forms alone.
    """

    facts: tuple[tuple[str, str], ...] = ()
    scales: tuple[Scale, ...] = ()
    curves: tuple[Curve, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    rough: tuple[Panel, ...] = ()
    rough_scales: tuple[Scale, ...] = ()
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
        from lattend.draw.terminal import terminal

        return terminal(
            self.title,
            self.subtitle,
            self.rough or self.panels,
            self.caption,
            self.legend,
            width=width or terminal_columns(),
            colour=wants_colour() if colour is None else colour,
            encoding=encoding or getattr(sys.stdout, "encoding", None) or "utf-8",
            facts=self.facts,
            table=self.table,
            curves=self.curves,
            scales=self.rough_scales or self.scales,
        )

    def json(self) -> dict[str, Any]:
        """What the figure tells, as plain data."""
        return {"title": self.title, **self.data}

    def __repr__(self) -> str:
        return f"<Figure {self.title}>"
