"""Picture: grids of cells with title, caption and legend, in every form a reader may want."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lattend.draw.formats.palette import Look
from lattend.draw.formats.scene import Scene
from lattend.draw.grid import layout
from lattend.draw.grid.panel import Panel
from lattend.errors import LattendError


@dataclass(frozen=True, eq=False)
class Picture:
    """A title, panels, caption lines and a legend; immutable, and drawn when a form is asked for.

    >>> from lattend.rules import rule
    >>> rule("k <= q").draw(n=3).caption  # 1 + 2 + 3 = 6 squares
    ('6 of 9 squares, 66.7%',)
    """

    title: str
    panels: tuple[Panel, ...]
    caption: tuple[str, ...]
    subtitle: tuple[str, ...] = ()
    legend: tuple[Look, ...] = ()

    @cached_property
    def scene(self) -> Scene:
        """The rectangles, lines and texts that all graphic forms draw."""
        return layout.compose(self.title, self.subtitle, self.panels, self.caption, self.legend)

    @property
    def words(self) -> str:
        """What a screen reader says after the title."""
        return ". ".join((*self.subtitle, *self.caption))

    def terminal(
        self, width: int | None = None, colour: bool | None = None, encoding: str | None = None
    ) -> str:
        """The picture as lines of text, by default as wide, coloured and encoded as standard output.

        Colour is left out where NO_COLOR is set or the output is no terminal.
        """
        from lattend.draw.formats.terminal import terminal

        return terminal(
            self.title,
            self.subtitle,
            self.panels,
            self.caption,
            self.legend,
            width=width or terminal_columns(),
            colour=wants_colour() if colour is None else colour,
            encoding=encoding or getattr(sys.stdout, "encoding", None) or "utf-8",
        )

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
        form = forms.get(path.suffix.lower())
        if form is None:
            raise LattendError(
                f'cannot save a picture as "{path}": the ending is not one of {", ".join(forms)}'
            )
        if not path.parent.is_dir():
            raise LattendError(f'cannot save "{path}": there is no folder "{path.parent}"; make it first')
        content = form()
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
        return f"<Picture {self.title}: {self.caption[0] if self.caption else ''}>"


def terminal_columns() -> int:
    """The columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size().columns


def wants_colour() -> bool:
    """Whether standard output shows colour: a terminal that is not dumb, and no NO_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(getattr(sys.stdout, "isatty", lambda: False)())
