"""conv, conv_price, conv_same: convolution as attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import ConfigDict, Field

from lattend.cli.conv import ConvCommand, KernelFields
from lattend.errors import DomainError
from lattend.web.panel import Answer, AnswerPart, Integer, Panel, Question
from lattend.web.snippets import command, show, snippets

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.nn.convolution.geometry import Geometry


MOST_KEYS = 32  # rows or columns of the image with its padding
MOST_HEADS = 64
LONGEST = 24  # characters of a size


class KernelQuestion(Question, KernelFields):  # pyright: ignore[reportGeneralTypeIssues]
    """A kernel, and the image it runs on; padding "" or null is half the kernel."""

    model_config = ConfigDict(str_max_length=LONGEST)
    called: ClassVar[str] = "the {}"

    def small(self) -> tuple[Geometry, int, int]:
        """The kernel and the image; raises where they are too large for the page."""
        geometry, (rows, cols) = self.geometry(), self.image()
        geometry.outputs(rows, cols)
        if geometry.heads > MOST_HEADS:
            raise DomainError(f"{geometry.heads:,} heads are more than the page draws: at most {MOST_HEADS}")
        keys = max(rows, cols, *geometry.keys(rows, cols))
        if keys > MOST_KEYS:
            raise DomainError(
                f"the image has {keys:,} rows or columns with its padding, and the page draws {MOST_KEYS} "
                "at most; `lattend conv` has no such limit"
            )
        return geometry, rows, cols

    def torch_line(self, channels: int = 1, out_channels: int = 1) -> str:
        """The line of Python that builds this convolution."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.geometry().options.items())
        kernel = self.geometry().kernel
        sizes = f"{channels}, {out_channels}, {kernel}"
        return f"conv = torch.nn.Conv2d({sizes}, {options}, bias=False, dtype=torch.float64)"


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
    pixel: str = ""


class ConvHead(AnswerPart):
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


def answer_conv(question: ConvQuestion) -> ConvAnswer:
    """Where each head of a kernel attends for one query, and how much of its weight misses its pixel."""
    from lattend.nn.convolution.query_heads import query_heads
    from lattend.nn.convolution.sharpness import bound_text
    from lattend.nn.images.size_text import read_pixel
    from lattend.nn.pictures.conv import KernelHeads

    geometry, rows, cols = question.small()
    kernel = KernelHeads(geometry, rows, cols)
    pixel = read_pixel("the query", question.pixel)
    inside = pixel and (min(pixel[0], kernel.outputs[0] - 1), min(pixel[1], kernel.outputs[1] - 1))
    heads = query_heads(geometry, rows, cols, question.alpha, inside)
    return ConvAnswer.view_of(
        heads,
        title=kernel.title,
        words=kernel.words,
        size=(rows, cols),
        outputs=kernel.outputs,
        stride=(geometry.y.stride, geometry.x.stride),
        heads=[
            ConvHead(
                shift=head.shift,
                tap=head.tap,
                weights=head.weights.round(PLACES).tolist(),
                leak=head.sharpness.leak_text(),
            )
            for head in heads.heads
        ],
        leak=heads.worst.leak_text(),
        bound=bound_text(question.alpha),
        latex=LATEX,
        copies=snippets(
            show("lt.nn.draw_conv", **question.arguments(), size=(rows, cols), alpha=question.alpha),
            command=command(ConvCommand, question),
            latex=LATEX,
        ),
    )


def conv_picture(question: ConvQuestion) -> Picture:
    """The pixels that the heads take, and the leak against α."""
    from lattend.nn.pictures.conv import draw_conv

    question.small()
    return draw_conv(**question.arguments(), size=question.image(), alpha=question.alpha)


CONV = Panel("conv", "The heads of a convolution", answer_conv, conv_picture)


CHANNELS = 1 << 20


class ConvPriceQuestion(KernelQuestion):
    """A kernel, an image, and the channels in and out."""

    channels: Integer = Field(16, ge=1, le=CHANNELS)
    out_channels: Integer = Field(32, ge=1, le=CHANNELS)


class ConvPriceAnswer(Answer):
    """The prices in words."""

    facts: list[tuple[str, str]]


def answer_conv_price(question: ConvPriceQuestion) -> ConvPriceAnswer:
    """The multiplications of the convolution, and those of its hard and soft heads."""
    from lattend.nn.pictures.conv import KernelHeads
    from lattend.report.report import Report
    from lattend.report.table import Facts

    geometry, rows, cols = question.small()
    channels = {"c_in": question.channels, "c_out": question.out_channels}
    facts, _ = KernelHeads(geometry, rows, cols).price(**channels)
    return ConvPriceAnswer(
        facts=[*facts],
        copies=snippets(
            show("lt.nn.draw_conv", **question.arguments(), size=(rows, cols), **channels),
            command=command(ConvCommand, question),
            latex=Report(KernelHeads(geometry, rows, cols).title, [Facts(facts)]).latex(),
        ),
    )


CONV_PRICE = Panel("conv_price", "The price of both", answer_conv_price)


class SamePrice(AnswerPart):
    """Whether heads and convolution cost the same, at all sizes of the image; and how much at this one."""

    quantity: str
    holds: bool
    words: str
    number: str


class ConvSameAnswer(Answer):
    """What is proved about the parameters, the multiplies and the adds."""

    same: list[SamePrice]


def answer_conv_same(question: ConvPriceQuestion) -> ConvSameAnswer:
    """Whether the heads' parameters, multiplies and adds are the convolution's, decided for all sizes."""
    from lattend.nn.convolution.convert import priced_heads
    from lattend.nn.convolution.price import QUANTITIES, of_conv
    from lattend.report.numbers import format_value
    from lattend.report.report import Report
    from lattend.report.table import Table

    geometry, rows, cols = question.small()
    c_in, c_out = question.channels, question.out_channels
    layer = priced_heads(geometry, c_in, c_out)
    price = of_conv(layer, rows, cols)
    verdicts = {quantity: layer.same_price(quantity) for quantity in QUANTITIES}
    same = [
        SamePrice(
            quantity=quantity,
            holds=verdict.holds,
            words=str(verdict),
            number=format_value(price.value(quantity)),
        )
        for quantity, verdict in verdicts.items()
    ]
    return ConvSameAnswer(
        same=same,
        copies=snippets(
            question.torch_line(c_in, c_out),
            "heads = lt.nn.from_conv(conv)",
            f"price = heads.cost(rows={rows}, cols={cols})",
            f"for quantity in {QUANTITIES}:",
            "    print(heads.same_price(quantity), price.value(quantity))",
            imports="import torch",
            latex=Report(
                "A convolution and its heads",
                [
                    Table(
                        ("", "here", "at all sizes"), [(one.quantity, one.number, one.words) for one in same]
                    )
                ],
            ).latex(),
            command=command(ConvCommand, question, prove=True),
        ),
    )


CONV_SAME = Panel("conv_same", "The same price, proved", answer_conv_same, torch=True)
