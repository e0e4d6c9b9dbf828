"""The query whose attention is nearest to given weights, where no query gives them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lattend.study.steering.linear import centred, dots, factors, heights, inverse

Floats = NDArray[np.float64]
MOST_STEPS = 500
REFINED = 3


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


def divergence(wanted: Floats, logits: Floats) -> float:
    """KL(wanted ‖ softmax(logits)), in nats."""
    used = wanted > 0
    logs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    return float(wanted[used] @ (np.log(wanted[used]) - logs[used]))


def apart(logits: Floats, face: NDArray[np.bool_], wanted: Floats) -> Floats:
    """softmax(logits) less the wanted weights, which are 0 off the face.

    What is off the face is far smaller than 1, and is not lost in it: with (1 − leak)·p on the face, the
    difference there is (p − wanted) − leak·p.
    """
    weights, on = softmax(logits), softmax(logits[face])
    weights[face] = (on - wanted[face]) - weights[~face].sum() * on
    return weights


def shortest(keys: Floats, logits: Floats, order: int, levelled: bool = False) -> Floats:
    """The shortest query that gives these logits, as nearly as keys of this rank allow.

    A common constant is left free unless `levelled`. Keys that are nearly dependent spoil a solution: what it
    misses, in 32 digits, is solved for again.
    """
    about = np.asarray if levelled else centred
    turned = inverse(about(keys), order)
    solution = turned @ about(logits)
    for _ in range(REFINED):
        got = sum(dots(keys, solution)) if levelled else heights(keys, solution)
        solution = solution + turned @ about(logits - got)
    return solution


def best_fit(keys: Floats, wanted: Floats, order: int) -> Floats:
    """The shortest q with the least KL(wanted ‖ softmax(Kq)), for keys of rank r about their mean.

    There is one where the mean key by `wanted` lies on no face but the whole hull. Newton's method:
    log Σ e^{kq} − Σ wanted·kq is convex, and its slope is the mean key by softmax(Kq) less that by `wanted`.

    >>> best_fit(np.array([[-1.0], [0.0], [1.0]]), np.array([0.0, 1.0, 0.0]), 1)  # 1/3 each is all it can do
    array([0.])
    """
    # Places [m, r] are as wide in every direction, so that the curvature can be inverted
    places, sizes, right = factors(centred(keys), order)
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
        while share > 1e-9 and height(at + share * step) > before - 0.25 * share * fall:
            share /= 2
        if share <= 1e-9:  # nothing but rounding is left
            break
        at = at + share * step
    return right.T @ (at / sizes) + 0.0
