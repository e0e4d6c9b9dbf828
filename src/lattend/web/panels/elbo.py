"""elbo: the evidence lower bound of one number from one latent, exactly, for any Gaussian q."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from lattend.web.bounds import BoundView
from lattend.web.bounds import view as bound_view
from lattend.web.chart_lines import ChartLine, chart_line
from lattend.web.copies import call, command, python
from lattend.web.panel import Answer, Copies, Panel, Question

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.generative.exact_bound import GaussianLine

Number = Annotated[str, Field(max_length=40)]
"""A fraction or a decimal."""


class ElboQuestion(Question):
    """x = weight·z + bias + noise with z ~ N(0, 1), the x that is seen, and q = N(mean, variance)."""

    weight: Number = "1"
    bias: Number = "0"
    noise: Number = "1"
    x: Number = "3/2"
    mean: Number = "0"
    variance: Number = "1"


class ElboAnswer(Answer):
    """The terms; the densities of prior, posterior and q; and the q of equal gap, by mean and variance."""

    bound: BoundView
    posterior: tuple[str, str]
    place: tuple[float, float]  # of q: mean and variance
    best: tuple[float, float]  # of the posterior
    densities: list[ChartLine]
    gaps: list[ChartLine]


def answer(question: ElboQuestion) -> ElboAnswer:
    """The terms as formulas, with a proof that they add up."""
    from lattend.study.exact.function import as_float
    from lattend.study.exact.numbers import exact
    from lattend.study.exact.writing import format_exact
    from lattend.study.generative.line_picture import densities, gaps

    model = _model(question)
    mean, variance = question.mean, question.variance
    bound = model.bound(mean, variance)
    best = model.posterior
    return ElboAnswer(
        bound=bound_view(bound),
        posterior=(format_exact(best[0]), format_exact(best[1])),
        place=(as_float(exact(mean)), as_float(exact(variance))),
        best=(as_float(best[0]), as_float(best[1])),
        densities=[chart_line(stroke) for stroke in densities(model, mean, variance).lines],
        gaps=[chart_line(stroke) for stroke in gaps(model, mean, variance).lines],
        copies=Copies(
            python=python(
                call(
                    "line = lt.study.generative.GaussianLine",
                    question.weight,
                    question.bias,
                    question.noise,
                    question.x,
                ),
                f"print({call('line.bound', mean, variance)})",
            ),
            command=command("elbo gaussian", **question.model_dump()),
            latex=bound.latex(),
        ),
    )


def _model(question: ElboQuestion) -> GaussianLine:
    from lattend.study.generative.exact_bound import GaussianLine

    return GaussianLine(question.weight, question.bias, question.noise, question.x)


def picture(question: ElboQuestion) -> Picture:
    """The densities and the lines of equal gap, with the terms."""
    from lattend.study.generative.line_picture import draw_line

    return draw_line(_model(question), question.mean, question.variance)


PANEL = Panel("elbo", "The evidence lower bound, exactly", ElboQuestion, ElboAnswer, answer, picture)
