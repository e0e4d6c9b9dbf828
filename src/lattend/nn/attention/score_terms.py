"""Encodings: the four terms of a positional encoding's score, for one query pixel of an example image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, NamingError
from lattend.nn.attention.gaussian_heads import shifts

Floats = NDArray[np.float64]
ENCODINGS = ("absolute", "relative", "quadratic", "sinusoidal")
LONGEST = 10_000.0  # the slowest wave of the sinusoids is 2π times as long, in pixels


class ScoreTerm(NamedTuple):
    """One summand of the score: what meets what, its formula, and its value for every key."""

    name: str
    formula: str
    values: Floats  # [rows, cols]


def terms(
    encoding: str,
    rows: int,
    cols: int,
    query: tuple[int, int],
    *,
    width: int = 16,
    seed: int = 0,
    centre: tuple[float, float] = (0.0, 0.0),
    alpha: float = 1.0,
) -> tuple[ScoreTerm, ...]:
    """The four terms of a score for every key of an image; their sum is the score.

    Contents and weights are drawn at random from `seed`, `width` numbers a pixel. The quadratic encoding has
    no content, W_q = W_k = 0, and is exact: -α(‖δ - centre‖² - ‖centre‖²).

    >>> float(terms("quadratic", 3, 3, (1, 1), centre=(0, 1), alpha=2)[3].values[1, 2])  # -2(0 - 1)
    2.0
    """
    if encoding not in ENCODINGS:
        raise NamingError(f"an encoding is one of {', '.join(ENCODINGS)}, not {encoding}")
    if width < 4 or width % 4:
        raise DomainError(f"width is a multiple of 4, sines and cosines of rows and columns, got {width}")
    if encoding == "quadratic":
        return _quadratic(rows, cols, query, centre, alpha)
    example = _Example(rows, cols, query, width, seed)
    return example.relative() if encoding == "relative" else example.absolute(encoding)


def waves(y: Floats, x: Floats, width: int) -> Floats:
    """Sines and cosines of rows and of columns, a quarter of `width` numbers each; [..., width]."""
    quarter = width // 4
    rates = LONGEST ** (-np.arange(quarter) / quarter)
    angles = [np.asarray(axis)[..., None] * rates for axis in (y, x)]
    return np.concatenate([wave(angle) for angle in angles for wave in (np.sin, np.cos)], axis=-1)


class _Example:
    """An image of random contents x, and random weights of one head."""

    def __init__(self, rows: int, cols: int, query: tuple[int, int], width: int, seed: int) -> None:
        self.shape, self.query, self.width = (rows, cols), query, width
        random = np.random.RandomState(seed)  # its numbers are the same in every version of numpy
        self.x = random.standard_normal((rows, cols, width))
        self.learned = random.standard_normal((rows, cols, width))
        # Variances that leave queries, keys and so each term of about one size
        self.w_q, self.w_k, self.w_r = (
            random.standard_normal((width, width)) / np.sqrt(width) for _ in range(3)
        )
        self.u, self.v = random.standard_normal((2, width))

    def absolute(self, encoding: str) -> tuple[ScoreTerm, ...]:
        rows, cols = self.shape
        y, x = shifts(rows, cols, (0, 0))
        p = waves(y, x, self.width) if encoding == "sinusoidal" else self.learned
        content, place = self.x[self.query] @ self.w_q, p[self.query] @ self.w_q
        return (
            ScoreTerm("content to content", "x_q W_q W_kᵀ x_kᵀ", self._scaled(content, self.x @ self.w_k)),
            ScoreTerm("content to place", "x_q W_q W_kᵀ p_kᵀ", self._scaled(content, p @ self.w_k)),
            ScoreTerm("place to content", "p_q W_q W_kᵀ x_kᵀ", self._scaled(place, self.x @ self.w_k)),
            ScoreTerm("place to place", "p_q W_q W_kᵀ p_kᵀ", self._scaled(place, p @ self.w_k)),
        )

    def relative(self) -> tuple[ScoreTerm, ...]:
        r = waves(*shifts(*self.shape, self.query), self.width)
        content = self.x[self.query] @ self.w_q
        return (
            ScoreTerm("content to content", "x_q W_q W_kᵀ x_kᵀ", self._scaled(content, self.x @ self.w_k)),
            ScoreTerm("content to shift", "x_q W_q W'_k r_δ", self._scaled(content, r @ self.w_r)),
            ScoreTerm("content alone", "uᵀ W_kᵀ x_kᵀ", self._scaled(self.u, self.x @ self.w_k)),
            ScoreTerm("shift alone", "vᵀ W'_k r_δ", self._scaled(self.v, r @ self.w_r)),
        )

    def _scaled(self, one: Floats, keys: Floats) -> Floats:
        return keys @ one / np.sqrt(self.width)


def quadratic_vector(centre: tuple[float, float], alpha: float) -> Floats:
    """The vector v = −α(1, −2Δ₁, −2Δ₂) of a head with this centre Δ, for the score vᵀ r_δ.

    >>> quadratic_vector((1, 2), 0.5).tolist()
    [-0.5, 1.0, 2.0]
    """
    return -alpha * np.array([1.0, -2 * centre[0], -2 * centre[1]])


def shift_vector(dy: Floats | float, dx: Floats | float) -> Floats:
    """The encoding r_δ = (‖δ‖², δ₁, δ₂) of shifts, [..., 3].

    >>> shift_vector(1, 2).tolist()
    [5.0, 1.0, 2.0]
    """
    return np.stack([dy * dy + dx * dx, dy, dx], axis=-1).astype(np.float64)


def _quadratic(
    rows: int, cols: int, query: tuple[int, int], centre: tuple[float, float], alpha: float
) -> tuple[ScoreTerm, ...]:
    if not alpha > 0:
        raise DomainError(f"alpha must be above 0, got {alpha:g}")
    nothing = np.zeros((rows, cols))
    score = shift_vector(*shifts(rows, cols, query)) @ quadratic_vector(centre, alpha)
    return (
        ScoreTerm("content to content", "0", nothing),
        ScoreTerm("content to shift", "0", nothing),
        ScoreTerm("content alone", "0", nothing),
        ScoreTerm("shift alone", "vᵀ r_δ = −α(‖δ − Δ‖² − ‖Δ‖²)", score),
    )
