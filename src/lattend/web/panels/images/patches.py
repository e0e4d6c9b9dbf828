"""patches: an image cut into patches, each a token: how many, what they share, what is left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from lattend.errors import DomainError
from lattend.web.copies import command, python, show
from lattend.web.panel import Answer, Copies, Integer, Panel, Question

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.nn.images.patch_grid import Cuts, PatchGrid

LONGEST = 24  # characters of a size
LARGEST = 100_000  # rows or columns
WIDEST = 1 << 20


class PatchesQuestion(Question):
    """Sizes are 16, or rows by columns as in 8x16; a stride of "" is the patch."""

    image: str = Field("224", max_length=LONGEST)
    patch: str = Field("16", max_length=LONGEST)
    stride: str = Field("", max_length=LONGEST)
    padding: Literal["error", "crop", "zeros"] = "error"
    channels: Integer = Field(3, ge=1, le=WIDEST)
    width: Integer = Field(768, ge=1, le=WIDEST)

    def sizes(self) -> dict[str, Any]:
        """The image, the patch, and the stride where there is one."""
        from lattend.nn.images.size_text import read_size

        names = ["image", "patch", *(["stride"] if self.stride else [])]
        return {name: read_size(f"the {name}", getattr(self, name)) for name in names}

    def grid(self) -> PatchGrid:
        """The patches; raises where the image is too large to be drawn, or does not divide."""
        from lattend.nn.images.patch_grid import patch_grid

        found = patch_grid(**self.sizes(), padding=self.padding)
        if max(cuts.size for cuts in found) > LARGEST:
            raise DomainError(f"an image has at most {LARGEST:,} rows and columns here")
        return found

    def python_line(self) -> str:
        """What prints the patches and the price of their embedding."""
        return show(
            "lt.nn.draw_patches",
            *self.sizes().values(),
            padding="" if self.padding == "error" else self.padding,
            channels=self.channels,
            width=self.width,
        )

    def command_line(self) -> str:
        """The same as a command."""
        return command(
            "patches",
            self.image,
            self.patch,
            stride=self.stride,
            padding="" if self.padding == "error" else self.padding,
            channels=str(self.channels),
            width=str(self.width),
        )


class PatchAxis(BaseModel):
    """Patches along one axis, in pixels; the formula says how many."""

    size: int
    patch: int
    stride: int
    tokens: int
    overlap: int
    skipped: int
    cropped: int
    added: int
    latex: str


class PatchFact(BaseModel):
    """A fact, as `lattend patches` tells it."""

    name: str
    words: str


class PatchesAnswer(Answer):
    """The patches along rows and columns, how many tokens they are, and the numbers of one."""

    rows: PatchAxis
    cols: PatchAxis
    tokens: int
    numbers: str
    facts: list[PatchFact]


def answer(question: PatchesQuestion) -> PatchesAnswer:
    """The grid of tokens, what patches share, and what is left out or added at the edges."""
    from lattend.nn.pictures.patches import facts

    grid = question.grid()
    return PatchesAnswer(
        rows=_axis(grid.rows, question.padding),
        cols=_axis(grid.cols, question.padding),
        tokens=grid.tokens,
        numbers=grid.numbers_text(question.channels),
        facts=[PatchFact(name=name, words=words) for name, words in facts(grid)],
        copies=Copies(
            python=python(question.python_line()),
            command=question.command_line(),
            latex=rf"{grid.rows.latex(question.padding)}, \quad {grid.cols.latex(question.padding)}",
        ),
    )


def _axis(cuts: Cuts, padding: str) -> PatchAxis:
    names = ("size", "patch", "stride", "tokens", "overlap", "skipped", "cropped", "added")
    return PatchAxis(**{name: getattr(cuts, name) for name in names}, latex=cuts.latex(padding))


def picture(question: PatchesQuestion) -> Picture:
    """The library's own picture."""
    from lattend.nn.pictures.patches import draw_patches

    question.grid()
    return draw_patches(
        **question.sizes(), padding=question.padding, channels=question.channels, width=question.width
    )


PANEL = Panel("patches", "An image in patches", answer, picture)
