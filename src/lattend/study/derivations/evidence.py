"""The evidence lower bound out of log p(x), on models whose z is summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random
from typing import Any

from lattend.counts.terms.term import read_term
from lattend.study.derivations.draft import Chain, Draft, Instances, Link
from lattend.study.derivations.evaluation import Environment, define, evaluate
from lattend.study.exact.numbers import exact
from lattend.study.exact.writing import decimal, format_exact

EXAMPLE = ("1/2", "1/4", "1/4"), ("1/10", "3/5", "9/10"), ("1/5", "2/5", "2/5")  # p(z), p(x|z), q(z|x)
MODELS = 5
VALUES_OF_X, VALUES_OF_Z = 2, 3


def elbo() -> Draft:
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
        Link("sum(q(z|x) log(p(x)), z)", "the probabilities q(z | x) of all z add up to 1"),
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
    return Draft(
        "elbo",
        "The evidence lower bound",
        "x is observed, z is not; q(z | x) is any distribution that is nowhere 0",
        [Chain("log(p(x))", links, ground)],
        definitions,
        f"What the bound leaves is KL(q(z | x) ‖ p(z | x)), which is 0 only where q is the posterior. "
        f"{_example(definitions, links)}",
        "pq",
    )


def _example(definitions: Sequence[tuple[str, str, str]], links: Sequence[Link]) -> str:
    """The evidence, the bound and the gap of one small model, in numbers."""
    prior, seen, guess = (list(map(exact, row)) for row in EXAMPLE)
    model = {**_functions(prior, [[one] for one in seen], [guess]), "x": 0}
    for left, right, _ in definitions:
        define(model, read_term(left, "pq"), read_term(right, "pq"))
    evidence, bound = (evaluate(read_term(text, "pq"), model) for text in ("p(x)", links[-1].formula))
    log = evaluate(read_term("log(p(x))", "p"), model)
    rows = [f"({', '.join(row)})" for row in EXAMPLE]
    return (
        f"For instance, p(z) = {rows[0]}, p(x | z) = {rows[1]} and q(z | x) = {rows[2]}: "
        f"log p(x) = log {format_exact(evidence)} = {_decimal(log)}, the ELBO is {_decimal(bound)} and the "
        f"gap {_decimal(log - bound)} nats."
    )


def _decimal(number: Any) -> str:
    return decimal(number).replace("-", "−")


def _model(random: Random) -> Environment:
    """Random probabilities, all above 0, as fractions."""
    prior = _probabilities(random, VALUES_OF_Z)
    likelihood = [_probabilities(random, VALUES_OF_X) for _ in range(VALUES_OF_Z)]
    guess = [_probabilities(random, VALUES_OF_Z) for _ in range(VALUES_OF_X)]
    return _functions(prior, likelihood, guess)


def _functions(prior: list[Any], likelihood: list[list[Any]], guess: list[list[Any]]) -> Environment:
    """A model whose x and z are numbered: p(z), p(x|z) by z and x, q(z|x) by x and z."""
    functions: dict[str, Callable[..., Any]] = {
        "p(z)": lambda z: prior[z],
        "p(x|z)": lambda x, z: likelihood[z][x],
        "q(z|x)": lambda z, x: guess[x][z],
    }
    return {"each x": range(len(guess)), "each z": range(len(prior)), **functions}


def _probabilities(random: Random, many: int) -> list[Any]:
    parts = [random.randint(1, 9) for _ in range(many)]
    return [exact(Fraction(part, sum(parts))) for part in parts]
