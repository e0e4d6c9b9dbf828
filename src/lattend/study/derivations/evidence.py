"""The evidence lower bound out of log p(x), on models whose z is summed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

from lattend.study.derivations.argument import Argument, Chain, Instances, Link
from lattend.study.derivations.evaluation import Environment
from lattend.study.exact.numbers import exact

MODELS = 5
VALUES_OF_X, VALUES_OF_Z = 2, 3


def elbo() -> Argument:
    """The evidence: log p(x) ≥ E_q[log p(x|z)] − KL(q(z|x) ‖ p(z)) in six lines, with what is lost."""
    definitions = [
        ("p(x,z)", "p(x|z) p(z)", "a model: the prior p(z) and the likelihood p(x | z)"),
        ("p(x)", "sum(p(x,z), z)", "the evidence"),
        ("p(z|x)", "p(x,z)/p(x)", "the posterior"),
    ]
    ground = Instances(
        f"exactly, for every x of {MODELS} random models of {VALUES_OF_Z} z, which are summed",
        _model,
        definitions,
        many=MODELS,
        over=("x",),
        distributions="pq",
    )
    links = [
        Link("sum(q(z|x) log(p(x)), z)", "the chances q(z | x) of all z add up to 1"),
        Link("sum(q(z|x) log(p(x,z)/p(z|x)), z)", "p(x, z) = p(z | x) p(x)"),
        Link("sum(q(z|x) log((p(x,z)/q(z|x)) (q(z|x)/p(z|x))), z)", "times q(z | x), divided by it"),
        Link(
            "sum(q(z|x) log(p(x,z)/q(z|x)), z) + sum(q(z|x) log(q(z|x)/p(z|x)), z)",
            "the logarithm of a product: ELBO + KL(q(z | x) ‖ p(z | x))",
        ),
        Link("sum(q(z|x) log(p(x,z)/q(z|x)), z)", "a KL divergence is never below 0: the ELBO", "≥"),
        Link(
            "sum(q(z|x) log(p(x|z)), z) - sum(q(z|x) log(q(z|x)/p(z)), z)",
            "p(x, z) = p(x | z) p(z): reconstruction minus KL(q(z | x) ‖ p(z)), the regulariser",
        ),
    ]
    return Argument(
        "elbo",
        "The evidence lower bound",
        "x is observed, z is not; q(z | x) is any distribution that is nowhere 0",
        [Chain("log(p(x))", links, ground)],
        definitions,
        "What the bound leaves is KL(q(z | x) ‖ p(z | x)), which is 0 only where q is the posterior.",
        "pq",
    )


def _model(random: Random) -> Environment:
    """Random chances, all above 0, as fractions."""
    prior = _chances(random, VALUES_OF_Z)
    likelihood = [_chances(random, VALUES_OF_X) for _ in range(VALUES_OF_Z)]
    guess = [_chances(random, VALUES_OF_Z) for _ in range(VALUES_OF_X)]
    functions: dict[str, Callable[..., Any]] = {
        "p(z)": lambda z: prior[z],
        "p(x|z)": lambda x, z: likelihood[z][x],
        "q(z|x)": lambda z, x: guess[x][z],
    }
    return {"each x": range(VALUES_OF_X), "each z": range(VALUES_OF_Z), **functions}


def _chances(random: Random, many: int) -> list[Any]:
    parts = [random.randint(1, 9) for _ in range(many)]
    return [exact(Fraction(part, sum(parts))) for part in parts]
