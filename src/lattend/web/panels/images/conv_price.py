"""conv_price: the multiplies of a convolution, of its hard heads, and of its soft heads."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lattend.web.copies import command, python, show
from lattend.web.panel import Answer, Copies, Integer, Panel
from lattend.web.panels.images.kernels import KernelQuestion

CHANNELS = 1 << 20


class ConvPriceQuestion(KernelQuestion):
    """A kernel, an image, and the channels in and out."""

    channels: Integer = Field(16, ge=1, le=CHANNELS)
    out_channels: Integer = Field(32, ge=1, le=CHANNELS)


class ConvPriceAnswer(Answer):
    """The prices in words."""

    facts: list[tuple[str, str]]


def answer(question: ConvPriceQuestion) -> ConvPriceAnswer:
    """What the convolution multiplies, and what its heads do, hard and soft."""
    from lattend.nn.pictures.conv import KernelHeads
    from lattend.report.report import Report
    from lattend.report.table import Facts

    geometry, rows, cols = question.small()
    channels = {"c_in": question.channels, "c_out": question.out_channels}
    facts, _ = KernelHeads(geometry, rows, cols).price(**channels)
    options: dict[str, Any] = {"channels": str(question.channels), "out_channels": str(question.out_channels)}
    return ConvPriceAnswer(
        facts=[*facts],
        copies=Copies(
            python=python(show("lt.nn.draw_conv", **question.arguments(), size=(rows, cols), **channels)),
            command=command("conv", **question.options(), **options),
            latex=Report(KernelHeads(geometry, rows, cols).title, [Facts(facts)]).latex(),
        ),
    )


PANEL = Panel("conv_price", "The price of both", answer)
