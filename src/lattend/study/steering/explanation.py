"""Words: what is said of a steered query, and of the certificate that none is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from lattend.report.numbers import significant
from lattend.study.steering.ray import EXACTLY, LIMIT, Certificate, Ray
from lattend.study.steering.steered import Steered, one

MOST_TERMS = 8  # of a relation that are written out
MOST_POWER = 9  # of weights in a product that is written out
LONGEST = 9  # characters of a fraction
NOTICED = 1e-9  # of the largest number of a relation
LEAST = "KL(wanted ‖ attention) is least"
FADING = "What the others get fades as β grows, and never is 0."


def how(steered: Steered) -> str:
    """How the query comes about, where it leads, and whether floats are too coarse for it."""
    error, promised = one(steered.error), steered.ray.promised(one(steered.sharpness))
    if error <= 1.01 * promised + 1e-6:
        return _way(steered.ray)
    digits = f"with more of them the error would be at most {number(promised)}"
    return f"{_way(steered.ray)} But the digits of these numbers are too few for so long a query: {digits}."


def _way(ray: Ray) -> str:
    if ray.reach == EXACTLY:
        if ray.independent:
            return f"{_settable(ray)}: here log(m·wanted), so that the weights are the wanted ones."
        return (
            "The logarithms of the wanted weights lie in the span of the keys' columns and ones, so that "
            "this query gives them exactly."
        )
    if ray.reach == LIMIT:
        if ray.independent:
            return f"{_settable(ray)}: β + log(s·wanted) on the s wanted keys, 0 elsewhere. {FADING}"
        return (
            f"The convex hull of {_count(int(ray.face.sum()), 'wanted key')} is a face of the hull of all: "
            f"from there a direction leads away from all other keys at once. {FADING}"
        )
    assert ray.certificate is not None
    because = f": {_no_face(ray.wanted)}" if math.isinf(ray.certificate.total) else ""
    end = f"is nearest by KL: {LEAST}"
    if not ray.face.all():
        end = f"nears the nearest by KL as β grows: {LEAST} there"
    return f"No query gives these weights{because}. This one {end}."


def _no_face(wanted: Any) -> str:
    """Why the wanted keys cannot be favoured alone."""
    alone = np.flatnonzero(wanted).tolist()
    if len(alone) == 1:
        return f"no corner of the hull of the keys has {_keys(alone)} and no other"
    return f"no face (side, edge) of the hull of the keys has {_keys(alone)} and no others"


def _settable(ray: Ray) -> str:
    m = len(ray.keys)
    if np.allclose(ray.keys @ ray.keys.T, np.eye(m), atol=1e-9):
        return "The keys are orthonormal, and q = Σ βᵢkᵢ has logits βᵢ"
    level = "" if ray.levelled else " up to a common constant"
    return f"The keys are independent, so that every logit can be set{level}"


def why(certificate: Certificate, wanted: Any) -> list[tuple[str, str]]:
    """The certificate in facts: the relation, what it asks of the weights, the least distance."""
    largest = max(abs(y) for y in certificate.relation)
    least = max(NOTICED, certificate.within)  # smaller parts change nothing that is known
    relation = [y if abs(y) > least * largest else 0 for y in certificate.relation]
    about, which = "", "every query"
    if certificate.within > NOTICED:
        about = f", within {number(certificate.within, 1)} of the size of the keys"
        which = "every query that is not extremely long"
    same = f"so that {which} gives both sides the same logit"
    facts = [("because", f"{_sides(relation)}{about}, {same}")]
    asks = _products(relation)
    inside = math.isinf(certificate.total)
    if inside:
        barred = [at for at, y in enumerate(relation) if y > 0 and wanted[at] == 0]
        together = " together" if len(barred) > 1 else ""
        facts.append(
            ("so", f"{_keys(barred)}{together} cannot fade while the wanted keys keep their weights")
        )
    elif asks:
        left, right = (_product(relation, wanted, sign) for sign in (1, -1))
        facts.append(
            ("so", f"attention has {asks}; the wanted weights have {number(left)} and {number(right)}")
        )
    else:
        factors = "with y the factors above, those on the left negative"
        said = f"attention has Σ yᵢ log aᵢ = 0, and the wanted weights {number(certificate.total)}"
        facts.append(("so", f"{factors}, {said}"))
    alone = np.flatnonzero(wanted)
    if len(alone) == 1:
        most = number(float(certificate.weights[alone[0]]))
        facts.append(("at most", f"{most} for key {alone[0]}, whatever the query"))
    return [*facts, ("least KL", f"{number(certificate.nats)} nats from the wanted weights, for {which}")]


def _sides(relation: Sequence[Any]) -> str:
    """`key 0 + key 2 = 2·key 1`, from numbers with sum 0."""
    sides = [
        [(at, abs(y)) for at, y in enumerate(relation) if (y > 0) == positive and y != 0]
        for positive in (False, True)
    ]
    return " = ".join(_terms(side) for side in sides)


def _terms(side: Sequence[tuple[int, Any]]) -> str:
    factors = [(at, _factor(y)) for at, y in side[:MOST_TERMS]]
    shown = [f"key {at}" if factor == "1" else f"{factor}·key {at}" for at, factor in factors]
    more = len(side) - len(shown)
    return " + ".join([*shown, f"… ({more} more)"] if more > 0 else shown)


def _factor(y: Any) -> str:
    """A short fraction as it is, other numbers in six digits."""
    text = str(y) if isinstance(y, Fraction) else ""
    return text if 0 < len(text) <= LONGEST else number(float(y))


def _products(relation: Sequence[Any]) -> str:
    """`a1^2 = a0·a2`, where the relation has a few small whole numbers; else nothing."""
    used = [y for y in relation if y != 0]
    whole = all(isinstance(y, (int, Fraction)) and y == int(y) and abs(y) <= MOST_POWER for y in used)
    if not whole or len(used) > MOST_TERMS:
        return ""

    def side(sign: int) -> str:
        factors = ((at, int(sign * y)) for at, y in enumerate(relation) if sign * y > 0)
        return "·".join(f"a{at}" if y == 1 else f"a{at}^{y}" for at, y in factors)

    return f"{side(-1)} = {side(1)}"


def _product(relation: Sequence[Any], weights: Any, sign: int) -> float:
    return math.prod(
        float(w) ** float(-sign * y) for y, w in zip(relation, weights, strict=True) if sign * y < 0
    )


def _keys(places: Sequence[int]) -> str:
    shown = [str(at) for at in places[:MOST_TERMS]] + (["…"] if len(places) > MOST_TERMS else [])
    return f"key {shown[0]}" if len(shown) == 1 else f"keys {', '.join(shown)}"


def _count(many: int, noun: str) -> str:
    return f"the {noun}" if many == 1 else f"the {many:,} {noun}s"


def number(value: float, digits: int = 6) -> str:
    """A number in so many digits at most, as people write it.

    >>> number(0.0066928509), number(-2.0), number(1.5e-12)
    ('0.00669285', '−2', '1.5e−12')
    """
    return significant(value, digits).replace("-", "−")


def tidy(values: Any) -> Any:
    """The numbers of a vector, those that are nothing but rounding as 0."""
    return np.where(np.abs(values) > 1e-12 * np.abs(values).max(), values, 0.0)


def numbers(values: Any) -> str:
    """`(5, 0)`, long vectors cut."""
    shown = [number(value) for value in tidy(values)[:MOST_TERMS]]
    more = len(values) - len(shown)
    return f"({', '.join(shown)}{f', … {more} more' if more > 0 else ''})"
