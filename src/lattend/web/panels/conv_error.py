"""conv_leak, conv_error: how far attention is from the convolution that it stands for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lattend.cli.conv import ConvCommand
from lattend.web.panel import Answer, AnswerPart, Panel
from lattend.web.panels.conv import KernelQuestion
from lattend.web.snippets import call, command, show, snippets

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


PLACES = 6
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
