"""conv_error: soft heads in place of a convolution on an image: both outputs, their difference, a bound."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lattend.web.copies import call, command, python
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.panels.images.kernels import KernelQuestion

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


def answer(question: ErrorQuestion) -> ErrorAnswer:
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
        copies=Copies(
            python=python(
                call("geometry = read_geometry", **question.arguments()),
                f"trial = try_heads(geometry, {rows}, {cols}, {question.alpha!r}, {question.filter!r})",
                'print(f"they differ by {trial.error:.3g}, at most {trial.bound.max():.3g}")',
                imports="from lattend.nn.convolution.geometry import read_geometry\n"
                "from lattend.nn.convolution.trial import try_heads",
            ),
            command=command(
                "conv", **question.options(), alpha=f"{question.alpha:g}", filter=question.filter
            ),
            latex=r"\max_q \left| y_{\mathrm{heads}} - y_{\mathrm{conv}} \right| = "
            rf"{number(format_number(trial.error))} \le {number(format_number(float(trial.bound.max())))}",
        ),
    )


PANEL = Panel("conv_error", "Heads in place of the convolution", answer, torch=True)
