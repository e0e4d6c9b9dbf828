"""grid_price: what a 2-D RNN costs beside a convnet: as formulas, and at the numbers of the image."""

from __future__ import annotations

from pydantic import BaseModel, Field

from lattend.web.copies import command, python, show
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Integer, Panel
from lattend.web.panels.images.grids import GridQuestion

WIDEST = 1 << 20


class GridPriceQuestion(GridQuestion):
    """The nets, the channels of a pixel and of a state."""

    kernel: int = Field(3, ge=1, le=15)
    layers: int = Field(3, ge=1, le=32)
    c: Integer = Field(3, ge=1, le=WIDEST)
    h: Integer = Field(64, ge=1, le=WIDEST)


class NetPrice(BaseModel):
    """A quantity of a net: its formula, and the number at this image."""

    net: str
    quantity: str
    formula: Formula
    number: str


class GridPriceAnswer(Answer):
    """Multiplies, parameters and sequential steps of both nets."""

    prices: list[NetPrice]


QUANTITIES = ("multiplies", "parameters", "depth")


def answer(question: GridPriceQuestion) -> GridPriceAnswer:
    """The price of the 2-D RNN and of the convnet, for all sizes, and here."""
    from lattend import cost
    from lattend.nn.pictures.grid import grid_nets
    from lattend.report.latex import named
    from lattend.report.numbers import format_value

    rows, cols = question.image()
    kinds = {"directions": question.directions, "kernel": question.kernel, "layers": question.layers}
    nets = grid_nets((rows, cols), cell=question.cell, **kinds)
    here = nets.recurrent(question.c, question.h), nets.convnet(question.c, question.h)
    recurrent = cost.rnn2d(
        rows="n", cols="m", c="c", h="h", directions=question.directions, cell=question.cell
    )
    prices = [
        NetPrice(
            net="2-D RNN",
            quantity=quantity,
            formula=formula(recurrent.value(quantity)),
            number=format_value(here[0].value(quantity)),
        )
        for quantity in QUANTITIES
    ]
    letters = nets.convnet("c", "h")
    prices += [
        NetPrice(
            net=f"convnet, {question.layers} of {question.kernel} × {question.kernel}",
            quantity=quantity,
            formula=formula(letters.value(quantity)),
            number=format_value(here[1].value(quantity)),
        )
        for quantity in QUANTITIES
    ]
    numbers = {"c": question.c, "h": question.h}
    convnet = {"kernel": str(question.kernel), "layers": str(question.layers)}
    return GridPriceAnswer(
        prices=prices,
        copies=Copies(
            python=python(
                show(
                    "lt.nn.draw_grid",
                    (rows, cols),
                    **question.arguments(),
                    kernel=question.kernel,
                    layers=question.layers,
                    **numbers,
                )
            ),
            command=command("grid", question.size, at=numbers, **question.options(), **convnet),
            latex=named((f"{one.net}, {one.quantity}", one.formula.latex) for one in prices),
        ),
    )


PANEL = Panel("grid_price", "The price of a 2-D RNN", answer)
