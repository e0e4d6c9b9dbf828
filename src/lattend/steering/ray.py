"""Ray: the queries that lead to wanted weights, start + γ·direction, and where they lead."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from lattend.steering.faces import Mask, smallest_face
from lattend.steering.fit import Floats, best_fit, entropy, log_of, shortest, softmax
from lattend.steering.linear import Rows, is_exact, rank, relations, with_ones
from lattend.steering.numbers import Given

EXACTLY, LIMIT, NEVER = "exactly", "in the limit", "never"
MOST_POWER = 4096  # of weights multiplied exactly


@dataclass(frozen=True, eq=False)
class Certificate:
    """Why no query gives the wanted weights, not even in the limit; all of it can be checked by hand.

    `relation` is y with Kᵀy = 0 and Σy = 0, so that every query gives Σ yᵢ·logitᵢ = 0, and every weights
    that attention returns have Σ yᵢ log aᵢ = 0. For the wanted ones it is `total`, which is not 0 (−∞ where
    y is above 0 on a key that should get nothing). `weights` have the same mean key as the wanted ones and
    a greater entropy, by `nats`: for every query KL(wanted ‖ attention) ≥ nats, and the best fit attains it.
    """

    relation: Rows
    total: float
    nats: float
    weights: Floats


@dataclass(frozen=True, eq=False)
class Ray:
    """Queries start + γ·direction; their attention tends to `limit`, which lives on the keys of `face`.

    Sharpness β says how far to go: the mean weight on the face is e^β times the greatest weight off it.
    `independent` keys can be given any logits up to a common constant, and that too where `levelled`.
    """

    keys: Floats
    wanted: Floats
    face: Mask
    touching: Mask
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

    def far(self, sharpness: float) -> float:
        """γ for this sharpness β: the least with which no key off the face comes nearer than β."""
        if self.face.all():
            return sharpness
        centred = self.keys - self.keys[self.face].mean(axis=0)
        on, off = centred[self.face] @ self.start, centred[~self.face] @ self.start
        level = on.max() + math.log(np.exp(on - on.max()).mean())
        gaps = (centred[self.face] @ self.direction).mean() - centred[~self.face] @ self.direction
        return float(((sharpness - level + off) / gaps).max())

    def query(self, sharpness: float) -> Floats:
        """The query of this sharpness."""
        return self.start + self.far(sharpness) * self.direction

    def leak(self, sharpness: float) -> tuple[float, Floats]:
        """The weight that goes to keys off the face, exactly, and each key's part of it."""
        parts = np.zeros(len(self.keys))
        if self.face.all():
            return 0.0, parts
        off = self.keys[~self.face] @ self.query(sharpness)
        raised = np.exp(off - off.max())
        parts[~self.face] = raised / raised.sum()
        return leaked(float(raised.sum()), int(self.face.sum()), sharpness), parts

    def leak_bound(self, sharpness: float) -> float:
        """(m − s)/(s·e^β + m − s): the weight off the face were all keys there as near as the nearest."""
        return leaked(float((~self.face).sum()), int(self.face.sum()), sharpness)

    def apart(self, sharpness: float) -> Floats:
        """Reached weights less wanted ones, without the rounding of a difference of nearly equal numbers."""
        leak, parts = self.leak(sharpness)
        return (self.limit - self.wanted) - leak * self.limit + leak * parts

    def misfit(self) -> float:
        """How far the limit is from the wanted weights: half the sum of the differences."""
        return float(np.abs(self.limit - self.wanted).sum() / 2)


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


def aim(keys: Given, wanted: Given) -> Ray:
    """The ray of queries whose attention comes nearest to the wanted weights [m], for keys [m, d]."""
    numbers, weights = keys.floats, wanted.floats
    exact = keys.floats if keys.fractions is None else keys.fractions
    support = weights > 0
    many, size = len(weights), float(support.sum())
    if rank(with_ones(exact), keys.small) == many:  # then logits are set: β + log(s·wanted), 0 elsewhere
        logits = np.where(support, np.log(np.where(support, size * weights, 1.0)), 0.0)
        levelled = rank(exact, keys.small) == many
        inverse: Any = np.linalg.pinv(numbers if levelled else numbers - numbers.mean(axis=0), rcond=1e-12)
        start, direction = inverse @ logits, inverse @ support
        return Ray(numbers, weights, support, ~support, start, direction, weights, None, True, levelled)
    face = smallest_face(exact, support, keys.small)
    held = exact[face.keys]
    relation, total = face.relation, -math.inf
    if relation is None:
        within = None if wanted.fractions is None else wanted.fractions[face.keys]
        small = max(keys.small, wanted.small)
        found, total = _broken(held, Given(weights[face.keys], within, small))
        relation = None if found is None else _spread(found, face.keys)
    if relation is None:
        start = shortest(numbers[face.keys], log_of(weights[face.keys]))
        limit, why = weights, None
    else:
        start = best_fit(numbers[face.keys], weights[face.keys])
        limit = np.zeros(many)
        limit[face.keys] = softmax(numbers[face.keys] @ start)
        why = Certificate(relation, total, max(0.0, entropy(limit) - entropy(weights)), limit)
    return Ray(numbers, weights, face.keys, face.touching, start, face.direction, limit, why)


def _broken(keys: Rows, weights: Given) -> tuple[Rows | None, float]:
    """A relation of the keys that these positive weights break, and Σ yᵢ log wᵢ; None where they keep all."""
    logs, fractions = np.log(weights.floats), weights.fractions
    zero = weights.small * (1 + float(np.abs(logs).max()))
    if not is_exact(keys):
        columns = with_ones(keys)
        rest = logs - columns @ np.linalg.lstsq(columns, logs, rcond=None)[0]
        if np.abs(rest).max() <= zero:
            return None, 0.0
        rest = rest / np.abs(rest).max()
        return rest, float(rest @ logs)
    for y in sorted(relations(with_ones(keys)), key=lambda y: sum(number != 0 for number in y)):
        powers = [int(number) for number in y]
        total = float(np.array(powers, dtype=float) @ logs)
        if fractions is not None and sum(map(abs, powers)) <= MOST_POWER:
            powered = (weight**power for weight, power in zip(fractions, powers, strict=True))
            kept = math.prod(powered, start=Fraction(1)) == 1
        else:
            kept = abs(total) <= zero * sum(map(abs, powers))
        if not kept:
            return y, total
    return None, 0.0


def _spread(relation: Any, face: Mask) -> Rows:
    found = np.zeros(len(face), dtype=relation.dtype)
    found[face] = relation
    return found
