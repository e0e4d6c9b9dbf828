"""Linear algebra on rows, exact for Fractions, and the best fit of attention to weights out of reach."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[Any]
SMALL = 1e-7  # of the size of the keys: float64 below it is taken for 0
_HALVES = 2.0**27 + 1  # splits 53 digits in two halves


def is_exact(rows: Rows) -> bool:
    """Whether these are Fractions."""
    return rows.dtype == object


def with_ones(keys: Rows) -> Rows:
    """The keys with a column of ones: what logits and a common constant can be made of."""
    ones = np.full((len(keys), 1), Fraction(1) if is_exact(keys) else 1.0, dtype=keys.dtype)
    return np.hstack((keys, ones))


def centred(keys: Rows) -> Rows:
    """The keys about their mean: what logits can be made of, up to a common constant."""
    return keys - keys.sum(axis=0) / len(keys)


def rank(rows: Rows, small: float = SMALL) -> int:
    """How many rows of size 1 are independent."""
    if is_exact(rows):
        return len(_reduced(rows)[1])
    return len(rows) if square_of_orthogonal(rows) else len(span(rows, small))


def square_of_orthogonal(rows: Rows) -> float | None:
    """r·r of rows of floats that are exactly orthogonal and equally long, as unit vectors are; else None.

    >>> square_of_orthogonal(2 * np.eye(3))
    4.0
    """
    if rows.shape[0] > rows.shape[1]:
        return None
    products = rows @ rows.T
    square = float(products[0, 0])
    return square if square > 0 and np.array_equal(products, square * np.eye(len(rows))) else None


def factors(rows: Rows, order: int) -> tuple[Rows, Rows, Rows]:
    """The singular vectors and values of rows of floats that are known to have this rank."""
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    order = int((sizes[:order] > 1e-16 * sizes.max(initial=0.0)).sum())  # floats may be equal
    return left[:, :order], sizes[:order], right[:order]


def inverse(rows: Rows, order: int) -> Rows:
    """The pseudo-inverse of rows of floats that are known to have this rank."""
    if square := square_of_orthogonal(rows):
        return rows.T / square
    left, sizes, right = factors(rows, order)
    return (right.T / sizes) @ left.T


def dots(keys: Rows, query: Rows) -> tuple[Rows, Rows]:
    """K·q for keys of floats as a sum of two floats: as if worked out in 32 digits, then cut.

    >>> dots(np.array([[1e16, 1.0, -1e16]]), np.ones(3))[0]
    array([1.])
    """
    total, rest = np.zeros(len(keys)), np.zeros(len(keys))
    for column, factor in zip(keys.T, query, strict=True):
        product, lost = _product(column, factor)
        total, missed = _sum(total, product)
        rest = rest + (lost + missed)
    return _sum(total, rest)


def heights(keys: Rows, query: Rows) -> Rows:
    """K·q less that of the highest key, without the rounding of a difference of long sums."""
    high, low = dots(keys, query)
    top = int(high.argmax())
    return (high - high[top]) + (low - low[top])


def _sum(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    """The sum, and what its rounding lost."""
    total = left + right
    part = total - left
    return total, (left - (total - part)) + (right - part)


def _product(left: Rows, right: Any) -> tuple[Rows, Rows]:
    """The product, and what its rounding lost."""
    (high, low), (upper, lower) = _halves(left), _halves(right)
    product = left * right
    return product, ((high * upper - product) + high * lower + low * upper) + low * lower


def _halves(number: Any) -> tuple[Any, Any]:
    large = _HALVES * number
    high = large - (large - number)
    return high, number - high


def solve(matrix: Rows, right: Rows) -> Rows:
    """X with matrix @ x = right, which has a solution; of several any one."""
    if not is_exact(matrix):
        return np.linalg.lstsq(matrix, right, rcond=None)[0]
    reduced, pivots = _reduced(np.hstack((matrix, right[:, None])))
    solution = np.full(matrix.shape[1], Fraction(0), dtype=object)
    for row, column in enumerate(pivots):
        solution[column] = reduced[row, -1]
    return solution


def relations(rows: Rows) -> list[Rows]:
    """Whole numbers y with y @ rows = 0, from which all such y follow; rows of Fractions.

    >>> rows = np.array([[Fraction(k), Fraction(1)] for k in (0, 1, 2)])
    >>> [[int(number) for number in y] for y in relations(rows)]  # 1·0 − 2·1 + 1·2 = 0
    [[1, -2, 1]]
    """
    reduced, pivots = _reduced(rows.T)
    basis: list[Rows] = []
    for free in sorted(set(range(len(rows))) - set(pivots)):
        y = np.full(len(rows), Fraction(0), dtype=object)
        y[free] = Fraction(1)
        for row, column in enumerate(pivots):
            y[column] = -reduced[row, free]
        basis.append(y * math.lcm(*(number.denominator for number in y)))
    return basis


def off(points: Rows, rows: Rows, small: float = SMALL) -> Rows:
    """The points less their parts in the span of the rows."""
    if is_exact(points):
        for direction in _orthogonal(rows):
            along = points @ direction / (direction @ direction)
            points = points - along[:, None] * direction
        return points
    basis = span(rows, small)
    return points - points @ basis.T @ basis


def span(rows: Rows, small: float = SMALL) -> Rows:
    """An orthonormal basis of the span of these rows of floats, where some of them is longer than small."""
    left, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[np.abs(left * sizes).max(axis=0, initial=0.0) > small]


def _orthogonal(rows: Rows) -> list[Rows]:
    """Rows of Fractions made orthogonal one after the other, those that add nothing left out."""
    basis: list[Rows] = []
    for row in rows:
        for direction in basis:
            row = row - (row @ direction) / (direction @ direction) * direction  # noqa: PLW2901
        if any(row):
            basis.append(row)
    return basis


def _reduced(rows: Rows) -> tuple[Rows, list[int]]:
    """The reduced row echelon form of Fractions, and its pivot columns."""
    rows, pivots = rows.copy(), list[int]()
    for column in range(rows.shape[1]):
        top = len(pivots)
        pivot = next((row for row in range(top, len(rows)) if rows[row, column]), None)
        if pivot is None:
            continue
        rows[[top, pivot]] = rows[[pivot, top]]
        rows[top] = rows[top] / rows[top, column]
        for row in range(len(rows)):
            if row != top and rows[row, column]:
                rows[row] = rows[row] - rows[row, column] * rows[top]
        pivots.append(column)
    return rows, pivots


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
