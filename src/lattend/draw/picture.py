"""Picture: grids and charts with title, facts, caption and legend, in every form a reader may want."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lattend.draw.charts.bars import Bars
from lattend.draw.charts.chart import Chart, Scale
from lattend.draw.formats.palette import Look
from lattend.draw.formats.scene import Diagram, Scene
from lattend.draw.grid import layout
from lattend.draw.grid.panel import Panel
from lattend.errors import LattendError
from lattend.report.shown import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = (".svg", ".png", ".pdf", ".tex", ".tikz", ".txt")  # of files that a picture is saved as


@dataclass(frozen=True)
class Below:
    """What stands below the panels in a terminal."""

    caption: tuple[str, ...] = ()
    legend: tuple[Look, ...] = ()
    scales: tuple[Scale, ...] = ()


@dataclass(frozen=True, eq=False)
class Picture(Shown):
    """A title, panels, diagrams or charts, what they tell in rows of (name, words), and as `data`; immutable.

    For the terminal alone: `table`, a heading first, and `rough`, panels that suit it better, with scales
    of their own. `labelled` stands below panels that show the words in their cells, `bare` below those that
    have no room for them. `drawn` is a caption for the other forms alone.

    >>> from lattend.rules.reader import rule
    >>> rule("k <= q").draw(n=3).caption  # 1 + 2 + 3 = 6 pairs
    ('6 of 9 pairs, 66.7%',)
    """

    title: str
    panels: tuple[Panel, ...] = ()
    caption: tuple[str, ...] = ()
    subtitle: tuple[str, ...] = ()
    legend: tuple[Look, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    scales: tuple[Scale, ...] = ()
    diagrams: tuple[Diagram, ...] = ()
    charts: tuple[Chart, ...] = ()
    bars: tuple[Bars, ...] = ()
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
        """The rectangles, lines and texts that all graphic forms draw."""
        return layout.compose(self)

    @property
    def words(self) -> str:
        """What a screen reader says after the title."""
        facts = (f"{name}: {text}" for name, text in self.facts)
        charts = (chart.words for chart in (*self.diagrams, *self.charts, *self.bars) if chart.words)
        return ". ".join((*self.subtitle, *facts, *charts, *self.drawn, *self.caption))

    def terminal(
        self, width: int | None = None, colour: bool | None = None, encoding: str | None = None
    ) -> str:
        """The picture as lines of text, by default as wide, coloured and encoded as standard output.

        Colour is left out where NO_COLOR is set or the output is no terminal.
        """
        from lattend.draw.formats.terminal import terminal

        return terminal(
            self,
            width or terminal_columns(),
            wants_colour() if colour is None else colour,
            encoding or getattr(sys.stdout, "encoding", None) or "utf-8",
        )

    def below(self, width: int) -> Below:
        """What explains the characters that a terminal of this width shows."""
        from lattend.draw.formats.terminal import types_labels

        usual = Below(self.caption, self.legend, self.rough_scales or self.scales)
        labelled, bare = self.labelled or usual, self.bare or usual
        shown = {types_labels(panel, width) for panel in self.rough or self.panels if panel.labels()}
        if shown == {True}:
            return labelled
        if True not in shown:
            return bare
        caption = tuple(dict.fromkeys((*labelled.caption, *bare.caption)))
        return Below(caption, bare.legend, bare.scales)

    def onto(self, ax: Axes | None) -> Picture:
        """The picture itself, its one chart drawn into the axes of a matplotlib figure if some are given."""
        if ax is not None:
            charts = (*self.charts, *self.bars)
            if len(charts) != 1:
                raise LattendError(
                    f'"{self.title}" has {len(charts)} charts, and axes take one: draw one of '
                    "picture.charts, as in picture.charts[0].draw(ax)"
                )
            charts[0].draw(ax)
        return self

    def json(self) -> dict[str, Any]:
        """What the picture tells, as plain data."""
        return {"title": self.title, **self.data}

    def svg(self) -> str:
        """The picture as a standalone SVG image."""
        from lattend.draw.formats.svg import svg

        return svg(self.scene, self.title, self.words)

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as a PNG file, `scale` pixels a unit."""
        from lattend.draw.formats.page import png

        return png(self.scene, scale)

    def pdf(self) -> bytes:
        """The picture as a PDF file of one page; equal pictures give equal bytes."""
        from lattend.draw.formats.page import pdf

        return pdf(self.scene, self.title)

    def tikz(self) -> str:
        """The picture as a `tikzpicture`, for a document that uses tikz."""
        from lattend.draw.formats.tikz import tikz

        return tikz(self.scene)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the form that the path's ending names, and gives the path: .svg .png .pdf .tex .txt."""
        path = Path(path)
        forms: dict[str, Callable[[], str | bytes]] = {
            ".svg": self.svg,
            ".png": self.png,
            ".pdf": self.pdf,
            ".tex": self.tikz,
            ".tikz": self.tikz,
            ".txt": lambda: self.terminal(width=100, colour=False, encoding="utf-8") + "\n",
        }
        check_place(path)
        content = forms[path.suffix.lower()]()
        try:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise LattendError(f'cannot save "{path}": {error.strerror}') from error
        return path

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return self.terminal()

    def __repr__(self) -> str:
        return f"<Picture {': '.join((self.title, *self.caption[:1]))}>"


def terminal_columns() -> int:
    """The columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size().columns


def wants_colour() -> bool:
    """Whether standard output shows colour: a terminal that is not dumb, and no NO_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(getattr(sys.stdout, "isatty", lambda: False)())


def check_place(path: str | os.PathLike[str]) -> None:
    """Raises where no picture can be saved there; for asking before a long piece of work."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise LattendError(
            f'cannot save a picture as "{path}": the ending is not one of {", ".join(ENDINGS)}'
        )
    if not path.parent.is_dir():
        raise LattendError(f'cannot save "{path}": there is no folder "{path.parent}"; make it first')
