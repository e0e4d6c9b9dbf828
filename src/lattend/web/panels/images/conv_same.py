"""conv_same: the proof that hard heads cost what their convolution costs, on images of every size."""

from __future__ import annotations

from pydantic import BaseModel

from lattend.web.copies import command, python
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.panels.images.conv_price import ConvPriceQuestion


class SamePrice(BaseModel):
    """Whether heads and convolution cost the same, at all sizes of the image; and how much at this one."""

    quantity: str
    holds: bool
    words: str
    number: str


class ConvSameAnswer(Answer):
    """What is proved of the parameters, the multiplies and the adds."""

    same: list[SamePrice]


def answer(question: ConvPriceQuestion) -> ConvSameAnswer:
    """Whether the heads' parameters, multiplies and adds are the convolution's, decided for all sizes."""
    from lattend.nn.convolution.convert import priced_heads
    from lattend.nn.convolution.price import QUANTITIES, of_conv
    from lattend.report.numbers import format_value
    from lattend.report.report import Report
    from lattend.report.table import Table

    geometry, rows, cols = question.small()
    c_in, c_out = question.channels, question.out_channels
    layer = priced_heads(geometry, c_in, c_out)
    here = of_conv(layer, rows, cols)
    verdicts = {quantity: layer.same_price(quantity) for quantity in QUANTITIES}
    same = [
        SamePrice(
            quantity=quantity,
            holds=verdict.holds,
            words=str(verdict),
            number=format_value(here.value(quantity)),
        )
        for quantity, verdict in verdicts.items()
    ]
    return ConvSameAnswer(
        same=same,
        copies=Copies(
            python=python(
                question.torch_line(c_in, c_out),
                "heads = lt.nn.from_conv(conv)",
                f"price = heads.cost(rows={rows}, cols={cols})",
                f"for quantity in {QUANTITIES}:",
                "    print(heads.same_price(quantity), price.value(quantity))",
                imports="import torch",
            ),
            latex=Report(
                "A convolution and its heads",
                [
                    Table(
                        ("", "here", "at all sizes"),
                        [(one.quantity, one.number, one.words) for one in same],
                    )
                ],
            ).latex(),
            command=command(
                "conv",
                **question.options(),
                channels=str(c_in),
                out_channels=str(c_out),
                prove=True,
            ),
        ),
    )


PANEL = Panel("conv_same", "The same price, proved", answer, torch=True)
