"""Ray: the queries that lead to wanted weights, start + γ·direction, and where they lead."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.study.steering.linear import (
    SMALL,
    Floats,
    Rows,
    apart,
    best_fit,
    centred,
    divergence,
    dots,
    entropy,
    factors,
    heights,
    is_exact,
    log_of,
    off,
    rank,
    relations,
    shortest,
    softmax,
    solve,
    square_of_orthogonal,
    with_ones,
)
from lattend.study.steering.numbers import NumberArray

EXACTLY, LIMIT, NEVER = "exactly", "in the limit", "never"
MOST_FACTORS = 4096  # of weights multiplied exactly
UNDECIDED = "the keys are too nearly dependent for a query in floats; omit one of those that nearly agree"
LEAST_SPREAD = 1e-6  # of the greatest number; below, the keys' own rounding is seen
LEVEL = 1e-3  # of the size of the keys: a common constant that asks for more is left free


@dataclass(frozen=True, eq=False)
class Certificate:
    """Why no query gives the wanted weights, not even in the limit; all of it can be checked by hand.

    `relation` is y with Kᵀy = 0 and Σy = 0, so that every query gives Σ yᵢ·logitᵢ = 0, and every weights
    that attention returns have Σ yᵢ log aᵢ = 0. For the wanted ones it is `total`, which is not 0 (−∞ where
    y is above 0 on a key that should get nothing). `weights` have the same mean key as the wanted ones and
    a greater entropy, by `nats`: for every query KL(wanted ‖ attention) ≥ nats, and the best fit attains it.
    Floats are taken to be equal up to a share of the size of the keys; `within` is what this relation needs.
    """

    relation: Rows
    total: float
    nats: float
    weights: Floats
    within: float  # Kᵀy is 0 up to this share of the size of the keys

    def meeting(self, keys: Floats) -> Floats:
        """The point [D] that both sides of the relation mix from keys: Σ y⁺k / Σ y⁺ = Σ y⁻k / Σ y⁻."""
        above = np.maximum(self.relation, 0).astype(float)
        return above @ keys / above.sum()


@dataclass(frozen=True, eq=False)
class Ray:
    """Queries (start + γ·direction)/unit, whose attention tends to `limit`, on the keys of `face` alone.

    Sharpness β says how far to go: the mean weight on the face is e^β times the greatest weight off it.
    `unit` is about the size of the keys. `order` is the rank of the keys of the face about their mean, or of
    all keys where they are `independent`: then all logits are set, and a common constant where `levelled`.
    """

    keys: Floats
    wanted: Floats
    unit: float
    face: Mask
    touching: Mask
    order: int
    start: Floats
    direction: Floats
    limit: Floats
    certificate: Certificate | None
    independent: bool = False
    levelled: bool = False

    @property
    def reach(self) -> str:
        """How the wanted weights are reached: "exactly", "in the limit" or "never"."""
        if self.certificate is not None:
            return NEVER
        return EXACTLY if self.face.all() else LIMIT

    @cached_property
    def _lines(self) -> tuple[Floats, Floats]:
        """The logits at the start, and how they rise with γ, each up to a common constant."""
        rows = self.keys / self.unit
        return heights(rows, self.start), heights(rows, self.direction)

    @property
    def gaps(self) -> Floats:
        """How much faster the logits of the face rise than those off it."""
        _, rise = self._lines
        return rise[self.face].mean() - rise[~self.face]

    def far(self, sharpness: float) -> float:
        """γ for this sharpness β: the least with which no key off the face comes nearer than β."""
        return sharpness if self.face.all() else float(((sharpness + self._heights) / self.gaps).max())

    @cached_property
    def _heights(self) -> Floats:
        """The logits off the face at the start, less the logarithm of the mean of e^logit on it."""
        at, _ = self._lines
        top = at[self.face].max()
        return at[~self.face] - top - math.log(np.exp(at[self.face] - top).mean())

    def turns(self, sharpnesses: Floats) -> list[float]:
        """The β at which another key becomes the greatest off the face, so that γ bends."""
        heights, gaps, turning = self._heights, self.gaps, list[float]()
        nearest = [int(((beta + heights) / gaps).argmax()) for beta in sharpnesses]
        for i, j in pairwise(nearest):
            if gaps[i] != gaps[j]:  # (β + hᵢ)/gᵢ = (β + hⱼ)/gⱼ
                turning.append(float((heights[j] * gaps[i] - heights[i] * gaps[j]) / (gaps[j] - gaps[i])))
        return turning

    def query(self, sharpness: float) -> Floats:
        """The query of this sharpness."""
        return (self.start + self.far(sharpness) * self.direction) / self.unit

    def logits(self, sharpness: float) -> Floats:
        """The logits of this sharpness, up to a common constant, before the query is rounded to floats."""
        at, rise = self._lines
        return at + self.far(sharpness) * rise

    def measured(self, query: Floats, scale: float) -> tuple[Floats, Floats]:
        """The logits scale·Kq of these very floats, and the same less the greatest with no digits lost."""
        rows, long = self.keys / self.unit, query * self.unit
        high, low = dots(rows, long)
        logits, about = scale * (high + low), abs(scale) * heights(rows, math.copysign(1, scale) * long)
        if not np.isfinite([*query, *logits, *about]).all():
            raise DomainError(
                "the query is too long for floats; give a smaller sharpness, or keys and a scale nearer to 1"
            )
        return logits, about

    def error(self, logits: Floats) -> float:
        """The total-variation distance of softmax(logits) from the wanted weights."""
        return float(np.abs(apart(logits, self.face, self.wanted)).sum() / 2)

    def promised(self, sharpness: float) -> float:
        """The bound of the error before the query is rounded: the error of the limit, and the leak.

        The leak is (m − s)/(s·e^β + m − s), were all keys off the face as near as the nearest.
        """
        misfit = float(np.abs(self.limit - self.wanted).sum() / 2)
        return misfit + leaked(float((~self.face).sum()), int(self.face.sum()), sharpness)


def leaked(rest: float, many: int, sharpness: float) -> float:
    """rest/(s·e^β + rest), rising with rest after rounding too.

    >>> round(leaked(1, 1, 5.0), 6)  # 1/(e⁵ + 1)
    0.006693
    """
    if rest == 0:
        return 0.0
    above = sharpness + math.log(many / rest)
    return 1 / (1 + math.exp(above)) if above < 700 else math.exp(-above)


def sharpness_of(error: float, keys: int, many: int) -> float:
    """log((m−s)(1−ε)/(s·ε)): the sharpness at which at most ε goes to the m − s other keys.

    >>> round(sharpness_of(0.01, keys=11, many=1), 4)  # log(10·99)
    6.8977
    """
    if keys == many:
        return 0.0
    return math.log((keys - many) * (1 - error) / (many * error))


def aim(keys: NumberArray, wanted: NumberArray) -> Ray:
    """The ray of queries whose attention comes nearest to the wanted weights [m], for keys [m, D]."""
    unit = unit_of(keys.floats)
    numbers, weights = keys.floats / unit, wanted.floats
    exact = numbers if keys.fractions is None else keys.fractions / Fraction(unit)
    support, many = weights > 0, len(weights)
    order = many - 1 if square_of_orthogonal(numbers) else rank(centred(exact), keys.small)
    if order == many - 1:  # then logits are set: β + log(s·wanted), 0 elsewhere
        logits = np.where(support, np.log(np.where(support, support.sum() * weights, 1.0)), 0.0)
        levelled = rank(numbers, LEVEL) == many
        start, direction = (
            shortest(numbers, logit_array, order + levelled, levelled)
            for logit_array in (logits, support.astype(float))
        )
        return Ray(
            *(keys.floats, weights, unit, support, ~support, order, start, direction, weights, None),
            independent=True, levelled=levelled,
        )  # fmt: skip
    face = smallest_face(exact, support, keys.small)
    held = numbers[face.keys]
    order = rank(centred(exact[face.keys]), keys.small)
    relation, total = face.relation, -math.inf
    if relation is None:
        within = None if wanted.fractions is None else wanted.fractions[face.keys]
        small = max(keys.small, wanted.small)
        broken, total = _broken(exact[face.keys], NumberArray(weights[face.keys], within, small), order)
        relation = None if broken is None else _spread(broken, face.keys)
    if relation is None:
        start = shortest(held, log_of(weights[face.keys]), order)
        limit, why = weights, None
    else:
        start = best_fit(held, weights[face.keys], order)
        limit = np.zeros(many)
        logits = heights(held, start)
        limit[face.keys] = softmax(logits)
        nats = min(entropy(limit) - entropy(weights), divergence(weights[face.keys], logits))
        within = _within(exact, relation, limit - weights, keys.small)
        why = Certificate(relation, total, max(0.0, nats), limit, within)
    direction = face.direction - shortest(held, heights(held, face.direction), order)
    ray = Ray(keys.floats, weights, unit, face.keys, face.touching, order, start, direction, limit, why)
    if not face.keys.all() and ray.gaps.min() <= 0:
        raise DomainError(UNDECIDED)
    return ray


def _within(keys: Rows, relation: Rows, missed: Floats, small: float) -> float:
    """How far the keys, of size 1, are from the relation; raises where they, or their means, are far off."""
    y = relation / np.abs(relation).max()
    error, mean = (float(np.abs(parts @ centred(keys)).max()) for parts in (y, missed))
    if max(error / len(y), mean) > 10 * small:
        raise DomainError(UNDECIDED)
    return error


def unit_of(keys: Floats) -> float:
    """A power of 2 of about the size of the keys: how far they are from their mean, if not nearly equal.

    >>> unit_of(np.array([[100.0], [107.0]]))
    2.0
    """
    top = float(np.abs(keys).max()) or 1.0
    spread = max(LEAST_SPREAD, float(np.abs(centred(keys / top)).max()))
    return 2.0 ** min(1023, math.floor(math.log2(top) + math.log2(spread)))


def _broken(keys: Rows, weights: NumberArray, order: int) -> tuple[Rows | None, float]:
    """A relation of the keys that these positive weights break, and Σ yᵢ log wᵢ; None where they keep all."""
    logs, fractions = np.log(weights.floats), weights.fractions
    zero = weights.small * (1 + float(np.abs(logs).max()))
    if not is_exact(keys):
        parts, _, _ = factors(centred(keys), order)
        made = np.linalg.qr(np.column_stack((np.ones(len(keys)), parts)))[0]
        rest = logs - made @ (made.T @ logs)
        rest = rest - made @ (made.T @ rest)  # again, for what rounding left
        if np.abs(rest).max() <= zero:
            return None, 0.0
        rest = rest / np.abs(rest).max()
        return rest, float(rest @ logs)
    for y in sorted(relations(with_ones(keys)), key=lambda y: sum(number != 0 for number in y)):
        powers = [int(number) for number in y]
        total = float(np.array(powers, dtype=float) @ logs)
        if fractions is not None and sum(map(abs, powers)) <= MOST_FACTORS:
            powered = (weight**power for weight, power in zip(fractions, powers, strict=True))
            kept = math.prod(powered, start=Fraction(1)) == 1
        else:
            kept = abs(total) <= zero * sum(map(abs, powers))
        if not kept:
            return y, total
    return None, 0.0


def _spread(relation: Any, face: Mask) -> Rows:
    spread = np.zeros(len(face), dtype=relation.dtype)
    spread[face] = relation
    return spread


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
        used = np.array([row @ row <= zero for row in shifted])  # these lie in the flat of the face
        mixture = used * (keys[0, 0] * 0 + 1)
        if not used.any():
            mixture = nearest(shifted)
            point = mixture @ shifted
            length = point @ point
            if length > zero:
                touching = np.zeros(len(keys), dtype=bool)
                touching[rest[mixture > 0]] = True
                return Face(inside, np.array(-point / length, dtype=float), touching, relation)
            used = mixture > math.sqrt(zero)  # a key with less changes nothing
        if relation is None:
            relation = _relation(keys, inside, rest[used], mixture[used] / mixture[used].sum())
        inside[rest[used]] = True


def _relation(keys: Rows, inside: Mask, rest: NDArray[np.intp], mixture: Rows) -> Rows:
    """The mixture of outer keys less the same point written with the inner ones, whose parts have sum 1."""
    coefficients = np.zeros(len(keys), dtype=keys.dtype)
    coefficients[rest] = mixture
    first, *others = np.flatnonzero(inside)
    parts = solve((keys[others] - keys[first]).T, mixture @ (keys[rest] - keys[first]))
    coefficients[others] = coefficients[others] - parts
    coefficients[first] = coefficients[first] - (1 - parts.sum())
    return coefficients


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
    mixture = np.array([0 * one] * len(points))
    mixture[chosen] = weights
    return mixture


def _nearest_flat(points: Rows) -> Rows:
    """Weights of any sign, with sum 1, of the point nearest to the origin in the flat through the points."""
    first, apart = points[0], points[1:] - points[0]
    rest = solve(apart @ apart.T, -(apart @ first)) if is_exact(points) else solve(apart.T, -first)
    return np.append(1 - rest.sum(), rest)
