"""conv, conv_price, conv_same, conv_leak, conv_error: convolution as attention, and how far it is off."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import ConfigDict, Field

from lattend.cli.conv import ConvCommand, KernelFields
from lattend.errors import DomainError
from lattend.web.panel import Answer, AnswerPart, Integer, Panel, Question
from lattend.web.snippets import call, command, show, snippets

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
    from lattend.nn.images.patch_grid import read_pixel
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


FARTHEST = 40.0  # the end of the curve: beyond it float64 has no digit for the leak beside 1
ERRORS = (1e-2, 1e-3, 1e-6, 1e-9, 1e-15)


class LeakQuestion(KernelQuestion):
    """A kernel, an image, and how sharp its heads are."""

    alpha: float = Field(2.0, le=1000)


class LeakCurve(AnswerPart):
    """A leak at each α of the answer; what is too small for a number is left out."""

    name: str
    values: list[float | None]


class NeededAlpha(AnswerPart):
    """A leak, the least α that keeps it, and the closed form that is enough."""

    error: str
    smallest: str
    sufficient: str
    alpha: float


class LeakAnswer(Answer):
    """The curves, the leak at this α beside its bound, and the α that small leaks need."""

    alphas: list[float]
    curves: list[LeakCurve]
    leak: str
    level: float  # the same as a number
    corner: str
    bound: str
    needed: list[NeededAlpha]
    latex: str


def answer_conv_leak(question: LeakQuestion) -> LeakAnswer:
    """The leak of the worst pixel and of the corner against α, below the bound of every pixel."""
    from lattend.nn.convolution.sharpness import BOUND_LATEX, bound_text, check_alpha
    from lattend.nn.pictures.leaks import Leaks
    from lattend.report.numbers import format_number

    check_alpha(question.alpha)
    geometry, rows, cols = question.small()
    leaks = Leaks.of(geometry.keys(rows, cols), geometry.centres(rows, cols))
    curve: dict[str, list[list[float]]] = leaks.data(min(question.alpha, FARTHEST), None)["curve"]
    worst = leaks.worst.at(question.alpha)
    return LeakAnswer(
        alphas=[alpha for alpha, _ in next(iter(curve.values()))],
        curves=[
            LeakCurve(name=name, values=[leak if leak > 0 else None for _, leak in points])
            for name, points in curve.items()
        ],
        leak=worst.leak_text(),
        level=worst.leak,
        corner=leaks.corner.at(question.alpha).leak_text(),
        bound=bound_text(question.alpha),
        needed=[
            NeededAlpha(
                error=format_number(error),
                smallest=format_number(enough.smallest, 5),
                sufficient=format_number(enough.sufficient, 5),
                alpha=round(enough.sufficient, 4),
            )
            for error in ERRORS
            for enough in (leaks.worst.for_error(error),)
        ],
        latex=BOUND_LATEX,
        copies=snippets(
            show(
                "lt.nn.draw_conv", **question.arguments(), size=(rows, cols), alpha=question.alpha, error=1e-6
            ),
            command=command(ConvCommand, question, error="1e-6"),
            latex=BOUND_LATEX,
        ),
    )


CONV_LEAK = Panel("conv_leak", "How much weight the heads leak", answer_conv_leak)


Map = list[list[float]]


class ErrorQuestion(KernelQuestion):
    """A kernel, an image, how sharp its heads are, and the filter whose weights the taps have."""

    alpha: float = Field(2.0, le=1000)
    filter: Literal["edges", "average", "sharpen", "random"] = "edges"


class ErrorAnswer(Answer):
    """The image, the convolution of it, what soft heads give, and their difference; the greatest as text."""

    image: Map
    wanted: Map
    soft: Map
    difference: Map
    error: str
    bound: str
    hard_error: str
    filter: list[list[str]]


def answer_conv_error(question: ErrorQuestion) -> ErrorAnswer:
    """How far soft heads are from the convolution on a small image, in float64, and how far they can be."""
    from lattend.nn.convolution.trial import try_heads
    from lattend.report.latex import number
    from lattend.report.numbers import format_number

    geometry, rows, cols = question.small()
    trial = try_heads(geometry, rows, cols, question.alpha, question.filter)

    def listed(name: str) -> Map:
        return getattr(trial, name).double().numpy().round(PLACES).tolist()

    difference = (trial.soft - trial.wanted).numpy()
    return ErrorAnswer(
        image=listed("image"),
        wanted=listed("wanted"),
        soft=listed("soft"),
        difference=difference.tolist(),
        error=format_number(trial.error),
        bound=format_number(float(trial.bound.max())),
        hard_error=format_number(trial.hard_error),
        filter=[[format_number(weight) for weight in row] for row in trial.filter.tolist()],
        copies=snippets(
            call("geometry = read_geometry", **question.arguments()),
            f"trial = try_heads(geometry, {rows}, {cols}, {question.alpha!r}, {question.filter!r})",
            'print(f"they differ by {trial.error:.3g}, at most {trial.bound.max():.3g}")',
            imports="from lattend.nn.convolution.geometry import read_geometry\n"
            "from lattend.nn.convolution.trial import try_heads",
            command=command(ConvCommand, question),
            latex=r"\max_q \left| y_{\mathrm{heads}} - y_{\mathrm{conv}} \right| = "
            rf"{number(format_number(trial.error))} \le {number(format_number(float(trial.bound.max())))}",
        ),
    )


CONV_ERROR = Panel("conv_error", "Heads in place of the convolution", answer_conv_error, torch=True)
