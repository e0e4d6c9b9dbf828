"""elbo_linear: the bound of a linear-Gaussian model of many numbers, and the bound of k samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from lattend.web.chart_lines import ChartLine, chart_line
from lattend.web.copies import command, show
from lattend.web.panel import Answer, Copies, Panel, Question
from lattend.web.reports import ReportPart, part_view

if TYPE_CHECKING:
    from lattend.draw import Picture

SAMPLES = 50


class LinearQuestion(Question):
    """Numbers in an example, in z, the noise's variance, how many examples, and the seed of the model."""

    size: int = Field(default=6, ge=1, le=24)
    latent: int = Field(default=2, ge=1, le=6)
    noise_variance: float = Field(default=1.0, ge=1e-3, le=100)
    examples: int = Field(default=5, ge=1, le=8)
    seed: int = Field(default=0, ge=0, le=10**6)


class LinearAnswer(Answer):
    """The terms for three q, and how far the importance bound is below log p(x) at each k."""

    parts: list[ReportPart]
    bounds: list[ChartLine]
    log: bool  # whether all of it is above 0


def answer(question: LinearQuestion) -> LinearAnswer:
    """ELBO + gap = log p(x) for the posterior, the best diagonal q and the prior."""
    from lattend.report.report import Report
    from lattend.report.table import Facts, Table

    found = picture(question)
    chart = found.charts[0]
    head, *rows = found.table
    given: dict[str, Any] = {
        "size": question.size,
        "latent": question.latent,
        "noise": question.noise_variance,
        "examples": question.examples,
        "samples": SAMPLES,
        "seed": question.seed,
    }
    parts = [Facts(found.facts), Table(tuple(head), [tuple(row) for row in rows]), *found.caption]
    return LinearAnswer(
        parts=[part_view(part) for part in parts],
        bounds=[chart_line(stroke) for stroke in chart.lines],
        log=chart.log_y == 10,
        copies=Copies(
            python="from lattend.study.generative.linear_picture import show_linear\n\n"
            + show("show_linear", **given),
            command=command("elbo", "linear", **_texts(given)),
            latex=Report(found.title, parts).latex(),
        ),
    )


def _texts(given: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) for name, value in given.items()}


def picture(question: LinearQuestion) -> Picture:
    """The terms, and the bounds as curves."""
    from lattend.study.generative.linear_picture import show_linear

    return show_linear(
        question.size,
        question.latent,
        question.noise_variance,
        question.examples,
        samples=SAMPLES,
        seed=question.seed,
    )


PANEL = Panel("elbo_linear", "A linear-Gaussian model", answer, picture, torch=True)
