"""The query whose attention is nearest to given weights, where no query gives them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lattend.steering.linear import span

Floats = NDArray[np.float64]
MOST_STEPS = 500


def softmax(logits: Floats) -> Floats:
    """e^logit over the sum of all of them."""
    raised = np.exp(logits - logits.max())
    return raised / raised.sum()


def log_of(weights: Floats) -> Floats:
    """Log weight, −∞ for a weight of 0."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


def entropy(weights: Floats) -> float:
    """−Σ w log w, in nats."""
    used = weights[weights > 0]
    return float(-(used * np.log(used)).sum())


def shortest(keys: Floats, logits: Floats) -> Floats:
    """The shortest query that gives these logits up to a common constant, as nearly as the keys allow."""
    return np.linalg.lstsq(keys - keys.mean(axis=0), logits - logits.mean(), rcond=1e-12)[0]


def best_fit(keys: Floats, wanted: Floats) -> Floats:
    """The shortest q with the least KL(wanted ‖ softmax(Kq)).

    There is one where the mean key by `wanted` lies on no face but the whole hull. Newton's method:
    log Σ e^{kq} − Σ wanted·kq is convex, and its slope is the mean key by softmax(Kq) less that by `wanted`.

    >>> best_fit(np.array([[-1.0], [0.0], [1.0]]), np.array([0.0, 1.0, 0.0]))  # 1/3 each is all it can do
    array([0.])
    """
    centred = keys - keys.mean(axis=0)
    size = float(np.abs(centred).max()) or 1.0
    basis = span(centred)
    places = centred @ basis.T / size  # [m, r] of size 1, so that the curvature can be inverted
    mean = wanted @ places

    def height(at: Floats) -> float:
        logits = places @ at
        return float(logits.max() + np.log(np.exp(logits - logits.max()).sum()) - mean @ at)

    at = np.zeros(places.shape[1])
    for _ in range(MOST_STEPS):
        weights = softmax(places @ at)
        slope = (weights - wanted) @ places
        about = places - weights @ places
        step = np.linalg.lstsq(about.T @ (weights[:, None] * about), -slope, rcond=None)[0]
        fall = float(-slope @ step)
        if fall <= 1e-30:
            break
        if np.abs(about @ step).max() < 0.1:  # the curvature hardly changes on the way
            at = at + step
            continue
        share, before = 1.0, height(at)
        while share > 1e-6 and height(at + share * step) > before - 0.25 * share * fall:
            share /= 2
        at = at + share * step
    return basis.T @ at / size + 0.0
