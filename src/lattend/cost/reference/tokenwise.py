"""Linear maps, feed-forward nets, norms and embeddings on lists; weights named as torch names them."""

from __future__ import annotations

from collections.abc import Sequence

from lattend.cost.reference.numbers import apply
from lattend.cost.reference.vectors import (
    Matrix,
    Vector,
    Weights,
    by_entry,
    check_function,
    dot,
    each,
    part,
    plus,
    times,
    total,
)


def linear(tokens: Matrix, weights: Weights) -> Matrix:
    """Y = W x + b for every token; without "bias" in the weights none is added.

    >>> linear([[1.0, 2.0]], {"weight": [[3.0, 4.0]], "bias": [5.0]})  # 3*1 + 4*2 + 5
    [[16.0]]
    """
    rows = [times(weights["weight"], x) for x in tokens]
    return [plus(row, weights["bias"]) for row in rows] if "bias" in weights else rows


def feed_forward(tokens: Matrix, weights: Weights, activation: str | None) -> Matrix:
    """Two maps with an activation between, which is multiplied with a third map if there is a "gate"."""
    hidden = linear(tokens, part(weights, "linear1"))
    if activation is not None:
        check_function(activation)
        hidden = [each(activation, row) for row in hidden]
    if gate := part(weights, "gate"):
        hidden = [by_entry(*rows) for rows in zip(hidden, linear(tokens, gate), strict=True)]
    return linear(hidden, part(weights, "linear2"))


def layer_norm(tokens: Matrix, weights: Weights, epsilon: float = 1e-5) -> Matrix:
    """(x - mean) / √(variance + ε) of every token, times a weight, plus a bias."""

    def normed(x: Vector) -> Vector:
        mean = total(x) / float(len(x))
        centred = [a - mean for a in x]
        variance = dot(centred, centred) / float(len(x))
        inverse = 1.0 / apply("sqrt", variance + epsilon)
        return plus(by_entry([a * inverse for a in centred], weights["weight"]), weights["bias"])

    return [normed(x) for x in tokens]


def rms_norm(tokens: Matrix, weights: Weights, epsilon: float = 1e-5) -> Matrix:
    """X / √(mean of squares + ε) of every token, times a weight."""

    def normed(x: Vector) -> Vector:
        inverse = 1.0 / apply("sqrt", dot(x, x) / float(len(x)) + epsilon)
        return by_entry([a * inverse for a in x], weights["weight"])

    return [normed(x) for x in tokens]


def embedding(tokens: Sequence[int], weights: Weights) -> Matrix:
    """The row of the table for every token."""
    return [weights["weight"][token] for token in tokens]
