"""draw_scores: the terms of a positional encoding as heat maps over the image, their sum, and the weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.draw.charts import chart
from lattend.draw.charts.chart import Scale
from lattend.draw.formats.palette import SIGNED, ink
from lattend.draw.grid.marks import Label
from lattend.draw.grid.panel import Panel, cell_side
from lattend.draw.picture import Picture
from lattend.errors import DomainError, NamingError
from lattend.nn.attention.gaussian_heads import shifts, softmax
from lattend.nn.images.patch_grid import pair
from lattend.nn.pictures.panels import QUERY, Pixel, check_size, outline, pixel_of
from lattend.report.numbers import format_number, format_weights

LARGEST = 64  # rows or columns of an example
FAR = 8.0  # of the quadratic score: lower than this weighs under e^-8 of the query's own pixel


def draw_scores(
    encoding: str,
    *,
    size: int | Pixel | None = None,
    pixel: Pixel | None = None,
    width: int = 16,
    seed: int = 0,
    centres: Sequence[Sequence[float]] | None = None,
    alpha: Sequence[float] | None = None,
) -> Picture:
    """Heat maps of the four terms of an encoding's score for one query pixel, of their sum, and the weights.

    Encodings are absolute, relative, quadratic and sinusoidal. Contents and weights are random, and said to
    be so; the quadratic one, which is exact, takes one centre and one alpha.

    >>> draw_scores("quadratic", centres=[(1, 2)], alpha=[0.5]).title
    'Scores of the quadratic encoding'
    """
    if encoding != "quadratic" and (centres is not None or alpha is not None):
        raise NamingError(f"centres and alpha are for the quadratic encoding, not for {encoding}")
    for name, given in (("centres", centres), ("alpha", alpha)):
        if given is not None and len(given) != 1:
            raise NamingError(f"scores are those of one head: give one of {name}, not {len(given)}")
    centre = (1.0, 2.0) if centres is None else (centres[0][0], centres[0][1])
    sharpness = 1.0 if alpha is None else alpha[0]
    rows, cols = image = pair("size", 9 if size is None else size)
    check_size(image, LARGEST)
    query = pixel_of(image, pixel)
    found = terms(encoding, rows, cols, query, width=width, seed=seed, centre=centre, alpha=sharpness)
    total = np.sum([term.values for term in found], axis=0)
    weights = softmax(total)
    scale, share = _scale(encoding, found, total), chart.amount_scale("weight: softmax of the sum", weights)
    panels = [_panel(term.name, term.values, scale, query) for term in found]
    panels += [_panel("sum", total, scale, query), _panel("weights", weights, share, query)]
    facts = [(term.name, term.formula) for term in found]
    if encoding == "quadratic":
        facts += _vectors(centre, sharpness)
    best = np.unravel_index(int(weights.argmax()), weights.shape)
    most = (int(best[0]), int(best[1]))
    max_weight = format_weights(total.ravel())[int(weights.argmax())]
    facts.append(("greatest weight", f"{max_weight} at pixel {most}"))
    dy, dx, sharp = map(format_number, (*centre, sharpness))
    made = (
        f"exact: centre Δ = ({dy}, {dx}), α = {sharp}, and W_q = W_k = 0"
        if encoding == "quadratic"
        else f"an example: contents and weights are random, seed {seed}, {width} numbers a pixel"
    )
    return Picture(
        f"Scores of the {encoding} encoding",
        tuple(panels),
        (f"Q, outlined: the query, pixel {query} of {rows} × {cols}",),
        (made,),
        facts=tuple(facts),
        scales=(scale, share),
        columns=3,
        grid=198,
        data={
            **_data(encoding, image, query, found, total, weights, made),
            **({"v": quadratic_vector(centre, sharpness).tolist()} if encoding == "quadratic" else {}),
        },
    )


def _vectors(centre: tuple[float, float], alpha: float) -> list[tuple[str, str]]:
    """The vectors v and r_δ of the quadratic encoding, and their product at the centre, its greatest."""
    v, r = quadratic_vector(centre, alpha), shift_vector(*centre)
    at = f"at the centre δ = {_vector(centre)} it is {_vector(r)}"
    return [
        ("v", f"−α(1, −2Δ₁, −2Δ₂) = {_vector(v)}"),
        ("r_δ", f"(‖δ‖², δ₁, δ₂); {at}, and vᵀ r_δ = {format_number(float(v @ r))} = α‖Δ‖²"),
    ]


def _vector(numbers: Iterable[float]) -> str:
    return f"({', '.join(format_number(float(number)) for number in numbers)})"


def _scale(encoding: str, found: tuple[ScoreTerm, ...], total: Floats) -> Scale:
    """One scale for all terms and their sum; the quadratic score is cut where it no longer weighs."""
    values = np.array([*(term.values for term in found), total])
    if encoding == "quadratic":
        most = max(FAR, float(values.max()))
        if values.min() < -most:
            return Scale("score", -most, most, SIGNED, least=f"{format_number(-most)} or less")
    return chart.signed_scale("score", values)


def _panel(name: str, values: Floats, scale: Scale, query: tuple[int, int]) -> Panel:
    (row, col), cells = query, scale.cells(values)
    dark = ink(scale.looks[int(cells[query])].fill) == "#ffffff"
    marks = outline(query, 1.8), Label(row + 0.5, col + 0.5, "Q", "#ffffff" if dark else QUERY, room=0.8)
    sides = cell_side("row", values.shape[0]), cell_side("column", values.shape[1])
    return Panel(cells, scale.looks, *sides, name, marks)


def _data(
    encoding: str,
    size: tuple[int, int],
    query: tuple[int, int],
    found: tuple[ScoreTerm, ...],
    total: Floats,
    weights: Floats,
    made: str,
) -> dict[str, object]:
    return {
        "encoding": encoding,
        "size": list(size),
        "pixel": list(query),
        "made": made,
        "terms": [{"name": t.name, "formula": t.formula, "values": t.values.tolist()} for t in found],
        "sum": total.tolist(),
        "weights": weights.tolist(),
    }


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
