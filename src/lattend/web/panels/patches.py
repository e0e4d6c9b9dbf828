"""patches, patches_price: an image cut into patches, and the cost of their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from lattend.cli.cost import CostCommand
from lattend.cli.patches import PatchesCommand
from lattend.errors import DomainError
from lattend.web.panel import Answer, AnswerPart, Integer, Panel, Question
from lattend.web.snippets import call, command, show, snippets
from lattend.web.views import Formula, formula

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
        from lattend.nn.images.patch_grid import read_size

        names = ["image", "patch", *(["stride"] if self.stride else [])]
        return {name: read_size(f"the {name}", getattr(self, name)) for name in names}

    def grid(self) -> PatchGrid:
        """The patches; raises where the image is too large to be drawn, or does not divide."""
        from lattend.nn.images.patch_grid import patch_grid

        grid = patch_grid(**self.sizes(), padding=self.padding)
        if max(cuts.size for cuts in grid) > LARGEST:
            raise DomainError(f"an image has at most {LARGEST:,} rows and columns here")
        return grid

    def python_line(self) -> str:
        """The line of Python that prints the patches and the cost of their embedding."""
        return show(
            "lt.nn.draw_patches",
            *self.sizes().values(),
            padding="" if self.padding == "error" else self.padding,
            channels=self.channels,
            width=self.width,
        )

    def command_line(self) -> str:
        """The command that prints the patches."""
        return command(PatchesCommand, self)


class PatchAxis(AnswerPart):
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


class PatchFact(AnswerPart):
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


def answer_patches(question: PatchesQuestion) -> PatchesAnswer:
    """The grid of tokens, what patches share, and what is left out or added at the edges."""
    from lattend.nn.pictures.patches import facts

    grid = question.grid()
    return PatchesAnswer(
        rows=_axis(grid.rows, question.padding),
        cols=_axis(grid.cols, question.padding),
        tokens=grid.tokens,
        numbers=grid.numbers_text(question.channels),
        facts=[PatchFact(name=name, words=words) for name, words in facts(grid)],
        copies=snippets(
            question.python_line(),
            command=question.command_line(),
            latex=rf"{grid.rows.latex(question.padding)}, \quad {grid.cols.latex(question.padding)}",
        ),
    )


def _axis(cuts: Cuts, padding: str) -> PatchAxis:
    return PatchAxis.view_of(cuts, latex=cuts.latex(padding))


def patches_picture(question: PatchesQuestion) -> Picture:
    """The picture that the library draws."""
    from lattend.nn.pictures.patches import draw_patches

    question.grid()
    return draw_patches(
        **question.sizes(), padding=question.padding, channels=question.channels, width=question.width
    )


PATCHES = Panel("patches", "An image in patches", answer_patches, patches_picture)


class PatchesPriceQuestion(PatchesQuestion):
    """And the heads of a layer of attention over the tokens."""

    heads: Integer = Field(12, ge=1, le=1024)


class PartPrice(AnswerPart):
    """A part of the model: its parameters and multiplies, "" where it has none."""

    name: str
    parameters: str
    multiplies: str


class SizePrice(AnswerPart):
    """A size of patches, how many tokens they are, and the multiplies, as numbers and as text."""

    patch: int
    tokens: int
    embedding: float
    attention: float
    texts: list[str]


class PatchesPriceAnswer(Answer):
    """The parts, the formula of the attention layer in n tokens, and the same at other sizes of patches."""

    parts: list[PartPrice]
    attention: Formula
    sizes: list[SizePrice]
    mark: SizePrice


def answer_patches_price(question: PatchesPriceQuestion) -> PatchesPriceAnswer:
    """What the tokens cost, and what they would cost with larger or smaller patches."""
    from lattend.nn.images import patch_price
    from lattend.report.numbers import format_value, with_unit

    grid, width = question.grid(), question.width
    pixels = grid.rows.size * grid.cols.size
    embedding = patch_price.embedding_cost(grid, question.channels, width)
    positions = patch_price.position_cost(grid.tokens, width)
    layer = patch_price.attention_cost(width, question.heads)
    at_tokens, at_pixels = layer.at(n=grid.tokens), layer.at(n=pixels)

    def size(patch: int, tokens: int, embedded: int, attended: int) -> SizePrice:
        texts = [f"{embedded:,}", f"{attended:,}"]
        return SizePrice(patch=patch, tokens=tokens, embedding=embedded, attention=attended, texts=texts)

    sizes = {"heads": question.heads, "D_i": width, "D_hid": width // question.heads}
    rows = patch_price.patch_sizes(grid.rows.size, grid.cols.size, question.channels, width, question.heads)
    return PatchesPriceAnswer(
        parts=[
            PartPrice(
                name=name,
                parameters=format_value(one.parameters) if one.parameters else "",
                multiplies=format_value(one.multiplies) if one.multiplies else "",
            )
            for name, one in (
                ("patch embedding", embedding),
                (f"positions, {grid.tokens + 1:,} with a class token", positions),
                (f"one attention layer over {grid.tokens:,} tokens", at_tokens),
                (f"the same over {with_unit(pixels)} pixels", at_pixels),
            )
        ],
        attention=formula(layer.multiplies),
        sizes=[size(*one) for one in rows],
        mark=size(grid.rows.patch, grid.tokens, embedding.total(), at_tokens.total()),
        copies=snippets(
            question.python_line(),
            show("positions", n=grid.tokens + 1, d=width),
            call("layer = lt.cost.attention", "full", n="n", **sizes),
            *(show("layer.at", n=tokens) for tokens in (grid.tokens, pixels)),
            imports="from lattend.cost.layers.tokenwise import positions",
            command="\n".join(
                (
                    question.command_line(),
                    *(
                        command(CostCommand, layer="attention", at={"n": n} | sizes)
                        for n in (grid.tokens, pixels)
                    ),
                )
            ),
            latex=formula(layer.multiplies).latex,
        ),
    )


PATCHES_PRICE = Panel("patches_price", "What the tokens cost", answer_patches_price)
