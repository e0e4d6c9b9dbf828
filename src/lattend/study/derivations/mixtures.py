"""Two equal weights: the query that makes attention return the mean of two values."""

from __future__ import annotations

from random import Random

import numpy as np

from lattend.study.derivations.draft import Chain, Draft, Instances, Link
from lattend.study.derivations.evaluation import Environment, exact_array
from lattend.study.exact.function import symbols
from lattend.study.exact.numbers import exact

MOST_KEYS = 6


def steer() -> Draft:
    """w_a = 1/(2 + (m − 2)e^(−β)) → 1/2: a query along two orthonormal keys gives the mean of two values."""
    definitions = [
        ("q", "β (K[a] + K[b])", "the query: β along each of the two keys"),
        ("w", "softmax(q K.T)", "the weights"),
    ]
    sizes = iter(range(2, MOST_KEYS + 1))
    ground = Instances(
        f"symbolically in β, for 2 to {MOST_KEYS} orthonormal keys",
        lambda random: _keys(next(sizes), random),
        definitions,
        many=MOST_KEYS - 1,
        grows="β",
    )
    weight = [
        Link("exp(q K[a])/sum(exp(q K[i]), i)", "softmax; a product of two rows is their inner product"),
        Link(
            "exp(β)/(exp(β) + exp(β) + sum(exp(0), i, 3, m))",
            "orthonormal keys: β for two of them, 0 for m − 2",
        ),
        Link("exp(β)/(2 exp(β) + m - 2)", "e^0 = 1"),
        Link("1/(2 + (m - 2) exp(-β))", "divided by e^β"),
        Link("1/2", "as β → ∞", "→"),
    ]
    rest = [
        Link("(m - 2)/(2 exp(β) + m - 2)", "what leaks to the others"),
        Link("0", "as β → ∞, and never before where there are others", "→"),
    ]
    return Draft(
        "steer",
        "Two equal weights",
        "m orthonormal keys, the rows of K, and values, the rows of V",
        [
            Chain("w[a]", weight, ground),
            Chain("1 - w[a] - w[b]", rest, ground),
            Chain("w V", [Link("(V[a] + V[b])/2", "as β → ∞: the mean of the two values", "→")], ground),
        ],
        definitions,
    )


def _keys(m: int, random: Random) -> Environment:
    """A random orthonormal basis of fractions: rotations by the angle of the 3-4-5 triangle."""
    basis = exact_array(np.eye(m, dtype=int).tolist())
    cosine, sine = exact("3/5"), exact("4/5")
    for _ in range(m):
        i, j = random.sample(range(m), 2)
        basis[i], basis[j] = cosine * basis[i] - sine * basis[j], sine * basis[i] + cosine * basis[j]
    a, b = random.sample(range(m), 2)
    values = exact_array([[random.randint(-9, 9) for _ in range(2)] for _ in range(m)])
    return {
        "K": basis,
        "V": values,
        "m": exact(m),
        "a": a,
        "b": b,
        "each i": range(m),
        "β": symbols(["β"])[0],
    }
