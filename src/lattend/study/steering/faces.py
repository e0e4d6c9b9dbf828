"""Faces of the convex hull of keys: which keys a query can favour alone, and by how much."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.study.steering.linear import SMALL, Rows, is_exact, off, solve

Mask = NDArray[np.bool_]


class Face(NamedTuple):
    """The smallest face of the hull that holds some keys.

    `keys` are those on it. `direction` u has k·u the same for all of them and at least 1 lower for all
    others; no shorter u does, and those exactly 1 lower are `touching`. `relation` is None where the keys
    asked for are a face by themselves. Otherwise y with Kᵀy = 0 and Σy = 0 that is at least 0 on all keys
    that were not asked for and above 0 on one: every query gives Σ yᵢ·logitᵢ = 0, so that their logits
    cannot all sink away.
    """

    keys: Mask
    direction: NDArray[np.float64]
    touching: Mask
    relation: Rows | None


def smallest_face(keys: Rows, support: Mask, small: float = SMALL) -> Face:
    """The smallest face that holds the keys of the support: exactly for Fractions.

    Lengths up to `small` are taken for 0 where keys are floats, which have size 1.

    >>> smallest_face(np.array([[-1.0], [0.0], [1.0]]), np.array([False, True, False])).keys
    array([ True,  True,  True])
    """
    inside, relation = support.copy(), None
    zero = 0 if is_exact(keys) else small**2
    while True:
        rest = np.flatnonzero(~inside)
        held = keys[inside]
        shifted = off(keys[rest] - held[0], held[1:] - held[0], small)
        if not len(rest):
            return Face(inside, np.zeros(keys.shape[1]), ~inside, relation)
        joined = np.array([row @ row <= zero for row in shifted])  # these lie in the flat of the face
        mixture = joined * (keys[0, 0] * 0 + 1)
        if not joined.any():
            mixture = nearest(shifted)
            point = mixture @ shifted
            length = point @ point
            if length > zero:
                touching = np.zeros(len(keys), dtype=bool)
                touching[rest[mixture > 0]] = True
                return Face(inside, np.array(-point / length, dtype=float), touching, relation)
            joined = mixture > math.sqrt(zero)  # a key with less changes nothing
        if relation is None:
            relation = _relation(keys, inside, rest[joined], mixture[joined] / mixture[joined].sum())
        inside[rest[joined]] = True


def _relation(keys: Rows, inside: Mask, rest: NDArray[np.intp], mixture: Rows) -> Rows:
    """The mixture of outer keys less the same point written with the inner ones, whose parts have sum 1."""
    found = np.zeros(len(keys), dtype=keys.dtype)
    found[rest] = mixture
    first, *others = np.flatnonzero(inside)
    parts = solve((keys[others] - keys[first]).T, mixture @ (keys[rest] - keys[first]))
    found[others] = found[others] - parts
    found[first] = found[first] - (1 - parts.sum())
    return found


def nearest(points: Rows) -> Rows:
    """The weights of the mixture of points that is nearest to the origin, exactly for Fractions.

    Wolfe's method: at most d + 1 points get a weight above 0.

    >>> nearest(np.array([[2.0, 1.0], [2.0, -1.0], [3.0, 0.0]]))
    array([0.5, 0.5, 0. ])
    """
    exact = is_exact(points)
    one, least = points[0, 0] * 0 + 1, 0 if exact else 1e-12  # weights down to `least` are 0
    sizes = np.array([row @ row for row in points])
    slack = 0 if exact else 1e-15 * sizes.max()
    chosen, weights = [int(sizes.argmin())], np.array([one])
    before = 2 * sizes.min() + 1
    while True:
        point = weights @ points[chosen]
        length, heights = point @ point, points @ point
        lowest = int(heights.argmin())
        if heights[lowest] >= length - slack or length >= before:  # the latter by rounding alone
            break
        before, chosen, weights = length, [*chosen, lowest], np.append(weights, 0 * one)
        while (target := _nearest_flat(points[chosen])).min() <= least:
            sinking = (target <= least) & (target < weights)
            share = min([one, *(weights[sinking] / (weights - target)[sinking])])
            weights = weights + share * (target - weights)
            kept = np.flatnonzero(weights > least)
            chosen, weights = [chosen[at] for at in kept], weights[kept] / weights[kept].sum()
        weights = target
    found = np.array([0 * one] * len(points))
    found[chosen] = weights
    return found


def _nearest_flat(points: Rows) -> Rows:
    """Weights of any sign, with sum 1, of the point nearest to the origin in the flat through the points."""
    first, apart = points[0], points[1:] - points[0]
    rest = solve(apart @ apart.T, -(apart @ first)) if is_exact(points) else solve(apart.T, -first)
    return np.append(1 - rest.sum(), rest)
