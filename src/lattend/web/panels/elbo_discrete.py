"""elbo_discrete: the evidence lower bound where z takes a few values, exactly, for any q."""

from __future__ import annotations

from pydantic import BaseModel, Field

from lattend.web.bounds import BoundView
from lattend.web.bounds import view as bound_view
from lattend.web.copies import call, command, python
from lattend.web.panel import Answer, Copies, Panel, Question


class DiscreteQuestion(Question):
    """Numbers with commas, one for each z: the prior p(z), the likelihood p(x|z), and q(z|x)."""

    prior: str = Field(default="1/2, 1/4, 1/4", max_length=400)
    likelihood: str = Field(default="1/10, 3/5, 9/10", max_length=400)
    guess: str = Field(default="1/5, 2/5, 2/5", max_length=400)


class Value(BaseModel):
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


def answer(question: DiscreteQuestion) -> DiscreteAnswer:
    """All z are summed: log p(x), the bound and what it leaves, as formulas."""
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
            Value(prior=as_float(p), posterior=as_float(found), guess=as_float(q), text=text)
            for p, found, q, text in rows
        ],
        copies=Copies(
            python=python(
                call("model = lt.study.generative.DiscreteModel", prior, likelihood),
                f"print({call('model.bound', guess)})",
            ),
            command=command(
                "elbo discrete", prior=",".join(prior), likelihood=",".join(likelihood), q=",".join(guess)
            ),
            latex=bound.latex(),
        ),
    )


PANEL = Panel("elbo_discrete", "The bound where z is summed", answer)
