"""conv: the heads of a convolution's kernel for one query: where they attend, and what they leak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from lattend.web.copies import command, python, show
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.panels.images.kernels import LONGEST, KernelQuestion

if TYPE_CHECKING:
    from lattend.draw import Picture

PLACES = 6  # of a weight
Place = tuple[int, int]
LATEX = (
    r"w_h(k \mid q) = \frac{e^{-\alpha \lVert k - sq - \Delta_h \rVert^2}}"
    r"{\sum_{j} e^{-\alpha \lVert j - sq - \Delta_h \rVert^2}}"
)


class ConvQuestion(KernelQuestion):
    """A kernel, an image, how sharp its heads are, and the pixel of the output that asks; "" is the middle.

    A pixel beyond the last one stands for the last.
    """

    alpha: float = Field(2.0, le=1000)
    pixel: str = Field("", max_length=LONGEST)


class ConvHead(BaseModel):
    """A head: its shift Δ, the pixel its centre stands on, the weight of every key, and what leaks."""

    shift: Place
    tap: Place
    weights: list[list[float]]
    leak: str


class ConvAnswer(Answer):
    """The heads of one query. The first key is pixel `origin`; `pixel` is stride times the query."""

    title: str
    words: str
    size: Place
    outputs: Place
    origin: Place
    keys: Place
    query: Place
    pixel: Place
    stride: Place
    heads: list[ConvHead]
    radius: float  # of the circle around a centre that holds half of its Gaussian, in pixels
    leak: str
    bound: str
    latex: str


def answer(question: ConvQuestion) -> ConvAnswer:
    """Where each head of a kernel attends for one query, and how much of its weight misses its pixel."""
    from lattend.nn.convolution.query_heads import query_heads
    from lattend.nn.convolution.sharpness import bound_text
    from lattend.nn.images.size_text import read_pixel
    from lattend.nn.pictures.conv import KernelHeads

    geometry, rows, cols = question.small()
    kernel = KernelHeads(geometry, rows, cols)
    asked = read_pixel("the query", question.pixel)
    inside = asked and (min(asked[0], kernel.outputs[0] - 1), min(asked[1], kernel.outputs[1] - 1))
    found = query_heads(geometry, rows, cols, question.alpha, inside)
    return ConvAnswer(
        title=kernel.title,
        words=kernel.words,
        size=(rows, cols),
        outputs=kernel.outputs,
        origin=found.origin,
        keys=found.keys,
        query=found.query,
        pixel=found.pixel,
        stride=(geometry.y.stride, geometry.x.stride),
        heads=[
            ConvHead(
                shift=head.shift,
                tap=head.tap,
                weights=head.weights.round(PLACES).tolist(),
                leak=head.sharpness.leak_text(),
            )
            for head in found.heads
        ],
        radius=found.radius,
        leak=found.worst.leak_text(),
        bound=bound_text(question.alpha),
        latex=LATEX,
        copies=Copies(
            python=python(
                show("lt.nn.draw_conv", **question.arguments(), size=(rows, cols), alpha=question.alpha)
            ),
            command=command("conv", **question.options(), alpha=f"{question.alpha:g}"),
            latex=LATEX,
        ),
    )


def picture(question: ConvQuestion) -> Picture:
    """The pixels that the heads take, and the leak against α."""
    from lattend.nn.pictures.conv import draw_conv

    question.small()
    return draw_conv(**question.arguments(), size=question.image(), alpha=question.alpha)


PANEL = Panel("conv", "The heads of a convolution", answer, picture)
