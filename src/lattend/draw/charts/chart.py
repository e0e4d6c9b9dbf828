"""Chart: a scene of its own, in every graphic form."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lattend.draw.formats.scene import Scene
from lattend.errors import LattendError


@dataclass(frozen=True, eq=False)
class Chart:
    """A drawn scene with its title, and the words that say the same."""

    title: str
    words: str
    scene: Scene

    def svg(self) -> str:
        """The chart as a standalone SVG image."""
        from lattend.draw.formats.svg import svg

        return svg(self.scene, self.title, self.words)

    def png(self, scale: float = 2.0) -> bytes:
        """The chart as a PNG file, `scale` pixels a unit."""
        from lattend.draw.formats.page import png

        return png(self.scene, scale)

    def pdf(self) -> bytes:
        """The chart as a PDF file of one page."""
        from lattend.draw.formats.page import pdf

        return pdf(self.scene, self.title)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the form that the path's ending names, and gives the path: .svg .png .pdf."""
        path = Path(path)
        forms: dict[str, Callable[[], str | bytes]] = {".svg": self.svg, ".png": self.png, ".pdf": self.pdf}
        form = forms.get(path.suffix.lower())
        if form is None:
            raise LattendError(
                f'cannot save a chart as "{path}": the ending is not one of {", ".join(forms)}'
            )
        if not path.parent.is_dir():
            raise LattendError(f'cannot save "{path}": there is no folder "{path.parent}"; make it first')
        content = form()
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def _repr_svg_(self) -> str:
        return self.svg()
