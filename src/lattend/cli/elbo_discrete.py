"""lattend elbo discrete: the bound where z takes a few values, as exact formulas."""

from __future__ import annotations

from typing import Annotated

from lattend.cli.arguments import Json, option, read_names
from lattend.cli.output import show_report

EXAMPLES = (
    "lattend elbo discrete",
    "lattend elbo discrete --prior 1/2,1/4,1/4 --likelihood 1/10,3/5,9/10 --q 1/5,2/5,2/5",
    "lattend elbo discrete --prior 0.9,0.1 --likelihood 0.05,0.8",
)


def elbo_discrete(
    prior: Annotated[str, option("P,P", "p(z), a number for each z; 1/2,1/4,1/4.")] = "1/2,1/4,1/4",
    likelihood: Annotated[
        str, option("P,P", "p(x|z) of the x that is seen; 1/10,3/5,9/10.")
    ] = "1/10,3/5,9/10",
    q: Annotated[str | None, option("P,P", "q(z|x); the prior if not given.")] = None,
    json: Json = False,
) -> None:
    """The ELBO where z takes a few values, exactly.

    All z are summed: log p(x), the bound and what it leaves as formulas, with the proof that
    ELBO + gap = log p(x), and the posterior, where the gap is 0. Numbers are fractions or decimals.
    """
    from lattend.study.generative.exact_bound import DiscreteModel

    model = DiscreteModel(read_names(prior), read_names(likelihood))
    show_report(model.report(read_names(prior if q is None else q)), json)
