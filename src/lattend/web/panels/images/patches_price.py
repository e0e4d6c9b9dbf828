"""patches_price: what tokens cost, embedding, positions and attention, with patches of every size."""

from __future__ import annotations

from pydantic import BaseModel, Field

from lattend.web.copies import call, command, python, show
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Integer, Panel
from lattend.web.panels.images.patches import PatchesQuestion


class PatchesPriceQuestion(PatchesQuestion):
    """And the heads of a layer of attention over the tokens."""

    heads: Integer = Field(12, ge=1, le=1024)


class PartPrice(BaseModel):
    """A part of the model: its parameters and multiplies, "" where it has none."""

    name: str
    parameters: str
    multiplies: str


class SizePrice(BaseModel):
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


def answer(question: PatchesPriceQuestion) -> PatchesPriceAnswer:
    """What the tokens cost, and what they would cost with larger or smaller patches."""
    from lattend.nn.images import patch_price
    from lattend.report.numbers import format_value, with_unit

    grid, width = question.grid(), question.width
    pixels = grid.rows.size * grid.cols.size
    embedding = patch_price.embedding_cost(grid, question.channels, width)
    positions = patch_price.position_cost(grid.tokens, width)
    layer = patch_price.attention_cost(width, question.heads)
    here, every = layer.at(n=grid.tokens), layer.at(n=pixels)

    def size(patch: int, tokens: int, embedded: int, attended: int) -> SizePrice:
        texts = [f"{embedded:,}", f"{attended:,}"]
        return SizePrice(patch=patch, tokens=tokens, embedding=embedded, attention=attended, texts=texts)

    sizes = {"heads": question.heads, "D_i": width, "D_hid": width // question.heads}
    found = patch_price.patch_sizes(grid.rows.size, grid.cols.size, question.channels, width, question.heads)
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
                (f"one attention layer over {grid.tokens:,} tokens", here),
                (f"the same over {with_unit(pixels)} pixels", every),
            )
        ],
        attention=formula(layer.multiplies),
        sizes=[size(*one) for one in found],
        mark=size(
            grid.rows.patch,
            grid.tokens,
            embedding.total(),
            here.total(),
        ),
        copies=Copies(
            python=python(
                question.python_line(),
                show("positions", n=grid.tokens + 1, d=width),
                call("layer = lt.cost.attention", "full", n="n", **sizes),
                *(show("layer.at", n=tokens) for tokens in (grid.tokens, pixels)),
                imports="from lattend.cost.layers.tokenwise import positions",
            ),
            command="\n".join(
                (
                    question.command_line(),
                    *(command("cost", "attention", at={"n": n} | sizes) for n in (grid.tokens, pixels)),
                )
            ),
            latex=formula(layer.multiplies).latex,
        ),
    )


PANEL = Panel("patches_price", "What the tokens cost", answer)
