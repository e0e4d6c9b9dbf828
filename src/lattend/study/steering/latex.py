"""LaTeX of queries: the query, the weights it gives, and the relation that bars others."""

from __future__ import annotations

from typing import Any

from lattend.report.latex import aligned, number
from lattend.study.steering.reports import six_digits, tidy
from lattend.study.steering.steer import Steered, plain
from lattend.study.steering.trial import Trial


def trial_latex(trial: Trial) -> str:
    """The query and its weights, and the output where there are values."""
    lines = [_query(trial.query), _weights(trial.weights, trial.scale)]
    if trial.output is not None:
        lines.append(f"z = V^{{\\top}} a &\\approx {_vector(trial.output)}")
    return aligned(*lines)


def steered_latex(steered: Steered) -> str:
    """The query that was found, its weights, those wanted, and why none gives them where none does."""
    lines = [_query(plain(steered.query)), _weights(plain(steered.weights), steered.scale)]
    lines.append(f"w &= {_vector(steered.ray.wanted)}")
    why = steered.certificate
    if why is not None:
        sides = (_mixture(why.relation, sign) for sign in (-1, 1))
        lines.append(f"{' &= '.join(sides)}")
        lines.append(rf"\mathrm{{KL}}(w \,\|\, a) &\ge {number(six_digits(why.nats))}")
    return aligned(*lines)


def _query(query: Any) -> str:
    return f"q &= {_vector(query)}"


def _weights(weights: Any, scale: float) -> str:
    factor = "" if scale == 1 else rf"{number(six_digits(scale))} \cdot "
    return rf"a = \operatorname{{softmax}}({factor}K q) &\approx {_vector(weights)}"


def _vector(numbers: Any) -> str:
    return f"({', '.join(number(six_digits(one)) for one in tidy(numbers))})"


def _mixture(relation: Any, sign: int) -> str:
    """One side of Σ yᵢkᵢ = 0."""
    terms = ((at, sign * float(y)) for at, y in enumerate(relation) if sign * y > 0)
    return " + ".join(
        f"k_{{{at}}}" if y == 1 else rf"{number(six_digits(y))}\, k_{{{at}}}" for at, y in terms
    )
