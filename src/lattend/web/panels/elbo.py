"""elbo, elbo_discrete, elbo_linear: evidence lower bounds of three kinds of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from lattend.cli.elbo import ElboCommand, ElboDiscreteCommand, ElboGaussianCommand, GaussianFields
from lattend.web.panel import Answer, AnswerPart, Panel, Question, Snippets
from lattend.web.snippets import call, command, show, snippets
from lattend.web.views import ChartLine, ReportPart, chart_line, part_view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.generative.exact_bound import ExactBound


class BoundTerm(AnswerPart):
    """reconstruction, kl, elbo, gap or log_prob: the formula, its decimals, and a number to draw."""

    name: str
    latex: str
    text: str
    value: float


class BoundView(AnswerPart):
    """All terms, and whether ELBO + gap = log p(x) was proved for them."""

    terms: list[BoundTerm]
    proved: bool


def bound_view(bound: ExactBound) -> BoundView:
    """The bound as typed data."""
    from lattend.study.exact.function import as_float
    from lattend.study.exact.writing import decimal, latex

    terms = [
        BoundTerm(name=name, latex=latex(term), text=decimal(term, 6).replace("-", "−"), value=as_float(term))
        for name, term in bound.terms.items()
    ]
    return BoundView(terms=terms, proved=bound.proved)


class ElboQuestion(Question, GaussianFields):  # pyright: ignore[reportGeneralTypeIssues]
    """x = weight·z + bias + noise with z ~ N(0, 1), the x that is seen, and q = N(mean, variance)."""

    model_config = ConfigDict(str_max_length=40)


class ElboAnswer(Answer):
    """The terms; the densities of prior, posterior and q; and the q of equal gap, by mean and variance."""

    bound: BoundView
    posterior: tuple[str, str]
    place: tuple[float, float]  # of q: mean and variance
    best: tuple[float, float]  # of the posterior
    densities: list[ChartLine]
    gaps: list[ChartLine]


def answer_elbo(question: ElboQuestion) -> ElboAnswer:
    """The terms as formulas, with a proof that they add up."""
    from lattend.study.exact.function import as_float
    from lattend.study.exact.numbers import exact
    from lattend.study.exact.writing import format_exact
    from lattend.study.generative.exact_bound import densities, gaps

    model = question.line()
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
        copies=snippets(
            call(
                "line = lt.study.generative.GaussianLine",
                question.weight,
                question.bias,
                question.noise,
                question.x,
            ),
            f"print({call('line.bound', mean, variance)})",
            command=command(ElboGaussianCommand, question),
            latex=bound.latex(),
        ),
    )


def elbo_picture(question: ElboQuestion) -> Picture:
    """The densities and the lines of equal gap, with the terms."""
    from lattend.study.generative.exact_bound import draw_line

    return draw_line(question.line(), question.mean, question.variance)


ELBO = Panel("elbo", "The evidence lower bound, exactly", answer_elbo, elbo_picture)


class DiscreteQuestion(Question):
    """Numbers with commas, one for each z: the prior p(z), the likelihood p(x|z), and q(z|x)."""

    prior: str = Field(default="1/2, 1/4, 1/4", max_length=400)
    likelihood: str = Field(default="1/10, 3/5, 9/10", max_length=400)
    guess: str = Field(default="1/5, 2/5, 2/5", max_length=400)


class Value(AnswerPart):
    """One value of z: its probabilities as texts and as numbers to draw."""

    prior: float
    posterior: float
    guess: float
    text: str


class DiscreteAnswer(Answer):
    """The terms and the posterior; `best` is a text that makes q the posterior."""

    bound: BoundView
    best: str
    values: list[Value]


def answer_elbo_discrete(question: DiscreteQuestion) -> DiscreteAnswer:
    """The bound, its gap and log p(x) as formulas, by a sum over all z."""
    from lattend.study.exact.function import as_float
    from lattend.study.exact.numbers import exact
    from lattend.study.exact.writing import format_exact
    from lattend.study.generative.exact_bound import DiscreteModel

    prior, likelihood, guess = (
        [part.strip() for part in text.split(",") if part.strip()]
        for text in (question.prior, question.likelihood, question.guess)
    )
    model = DiscreteModel(prior, likelihood)
    bound = model.bound(guess)
    best = [format_exact(one) for one in model.posterior]
    rows = zip(model.prior, model.posterior, map(exact, guess), best, strict=True)
    return DiscreteAnswer(
        bound=bound_view(bound),
        best=", ".join(best),
        values=[
            Value(prior=as_float(p), posterior=as_float(p_after), guess=as_float(q), text=text)
            for p, p_after, q, text in rows
        ],
        copies=snippets(
            call("model = lt.study.generative.DiscreteModel", prior, likelihood),
            f"print({call('model.bound', guess)})",
            command=command(ElboDiscreteCommand, prior=prior, likelihood=likelihood, q=guess),
            latex=bound.latex(),
        ),
    )


ELBO_DISCRETE = Panel("elbo_discrete", "The bound where z is summed", answer_elbo_discrete)


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


def answer_elbo_linear(question: LinearQuestion) -> LinearAnswer:
    """ELBO + gap = log p(x) for the posterior, the best diagonal q and the prior."""
    from lattend.report.report import Report
    from lattend.report.table import Facts, Table

    figure = elbo_linear_picture(question)
    chart = figure.charts[0]
    head, *rows = figure.table
    options: dict[str, Any] = {
        "size": question.size,
        "latent": question.latent,
        "noise": question.noise_variance,
        "examples": question.examples,
        "samples": SAMPLES,
        "seed": question.seed,
    }
    parts = [Facts(figure.facts), Table(tuple(head), [tuple(row) for row in rows]), *figure.caption]
    return LinearAnswer(
        parts=[part_view(part) for part in parts],
        bounds=[chart_line(stroke) for stroke in chart.lines],
        log=chart.log_y == 10,
        copies=Snippets(
            python="from lattend.study.generative.linear_picture import show_linear\n\n"
            + show("show_linear", **options),
            command=command(ElboCommand, model="linear", **options),
            latex=Report(figure.title, parts).latex(),
        ),
    )


def elbo_linear_picture(question: LinearQuestion) -> Picture:
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


ELBO_LINEAR = Panel(
    "elbo_linear", "A linear-Gaussian model", answer_elbo_linear, elbo_linear_picture, torch=True
)
