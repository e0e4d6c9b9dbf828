"""Sharpness: how much of a head's weight lies on its centre, and how large α must be for that.

A head of the quadratic encoding with its centre at c = q + Δ gives pixel j the weight
e^{−α‖j − c‖²} / Σ_i e^{−α‖i − c‖²}. Rows and columns part, so that with the nearest pixel's share taken out

    weight = 1 / ((1 + s_y)(1 + s_x)),    s = Σ_{j ≠ nearest} e^{−α((j − c)² − (nearest − c)²)} along an axis.

The exponents are no less than |j − nearest|, so 1 + s ≤ 1 + 2e^{−α}/(1 − e^{−α}) = coth(α/2), and

    1 − weight ≤ 1 / cosh²(α/2),    which is at most ε from α = 2 arcosh(1/√ε) on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lattend.errors import DomainError, NamingError
from lattend.report.numbers import format_exponential, format_weight
from lattend.report.shown import Shown
from lattend.rules.rule import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lattend.draw.picture import Picture

Pixel = tuple[int, int]
UNDERFLOW = 745.2  # e to the minus this is 0
STEPS = 160  # of a curve
DUAL = 1.0  # below this α, sums over the whole plane are taken over its dual
CLOSE = 1e-13  # how near to each other the two ends of a search come
# What `bound` and `enough` say, of a head's weight w
BOUND_LATEX = (
    r"1 - w \le \frac{1}{\cosh^2(\alpha/2)}, \qquad "
    r"\alpha \ge 2\operatorname{arcosh}\frac{1}{\sqrt{\varepsilon}} \implies 1 - w \le \varepsilon"
)


class Enough(NamedTuple):
    """What α keeps a leak below ε: by the closed form, and the least there is."""

    sufficient: float
    smallest: float


@dataclass(frozen=True)
class Sharpness(Shown):
    """Weight and leak of one head at one pixel, of an image or of the infinite plane; see `sharpness`."""

    alpha: float | None = None
    rows: int | None = None
    cols: int | None = None
    query: Pixel | None = None
    centre: Pixel = (0, 0)

    @property
    def weight(self) -> float:
        """The share of the pixel at the centre, or of the one nearest to it."""
        y, x = (sum_.value for sum_ in self._sums(self._given))
        return 1 / ((1 + y) * (1 + x))

    @property
    def leak(self) -> float:
        """The share of all other pixels, 1 − weight, without loss of digits."""
        y, x = (sum_.value for sum_ in self._sums(self._given))
        return (y + x + y * x) / ((1 + y) * (1 + x))

    @property
    def log_leak(self) -> float:
        """The natural logarithm of the leak, which is finite where the leak itself is too small to hold."""
        return self._log_leak(self._given)

    def leak_text(self, digits: int = 3) -> str:
        """The leak as text; it is 0 only where no other pixel is left."""
        return format_exponential(self.log_leak, digits)

    @property
    def bound(self) -> float:
        """1/cosh²(α/2), which the leak does not pass."""
        return bound(self._given)

    @property
    def nearest(self) -> Pixel | None:
        """The pixel that the weight goes to; None on the plane."""
        axes = self._axes()
        return None if axes is None else (axes[0].nearest, axes[1].nearest)

    def for_error(self, eps: float) -> Enough:
        """The α that keep the leak at `eps` or less: a closed form that is enough, and the smallest.

        The smallest is found to 1e-12, and is 0 where every α will do.

        >>> [round(alpha, 6) for alpha in sharpness().for_error(0.01)]  # 2 arcosh(10), and a little less
        [5.986446, 5.98393]
        """
        sufficient = enough(eps)
        wanted = math.log(eps)
        return Enough(sufficient, _least(lambda alpha: self._log_leak(alpha) <= wanted, sufficient))

    def curve(self, low: float = 0.1, high: float = 16.0, ax: Axes | None = None) -> Picture:
        """The leak against α as a picture, with the bound above it: .save(…), .svg(), .terminal()."""
        from lattend.draw.charts.chart import Chart, Dots, curves
        from lattend.draw.formats.palette import TEXT
        from lattend.draw.picture import Picture

        if not 0 < low < high < math.inf:
            raise DomainError(f"a curve runs between two α with 0 < low < high, not from {low:g} to {high:g}")

        def line(value: Callable[[Sharpness], float]) -> list[tuple[float, float]]:
            places = (low + (high - low) * step / STEPS for step in range(STEPS + 1))
            points = ((alpha, value(self.at(alpha))) for alpha in places)
            return [(alpha, share) for alpha, share in points if share > 0]  # no logarithm of 0

        lines = [("1/cosh²(α/2)", line(lambda at: at.bound)), ("leak", line(lambda at: at.leak))]
        shown = curves([(name, points) for name, points in lines if points])
        own, dots = self.alpha, ()
        if own and low <= own <= high and self.leak > 0:
            dots = (Dots([(own, self.leak)], colour=TEXT, size=3.0, shape="square", labels=[f"α = {own:g}"]),)
        ends = tuple((f"α = {alpha:g}", f"leak {self.at(alpha).leak_text()}") for alpha in (low, high))
        chart = Chart("", "α", "leak", shown, dots, log_y=10)
        title = "Leaked weight as α grows"
        return Picture(title, subtitle=(self.place,), charts=(chart,), facts=ends).onto(ax)

    def at(self, alpha: float) -> Sharpness:
        """The same place with another α."""
        return sharpness(alpha, rows=self.rows, cols=self.cols, query=self.query, centre=self.centre)

    def __str__(self) -> str:
        if self.alpha is None:
            return f"sharpness of {self.place}"
        weight = format_weight(math.log1p(-self.leak), self.log_leak, 12)
        return f"α = {self.alpha:g}, {self.place}: weight {weight}, leak {self.leak_text(6)}"

    @property
    def place(self) -> str:
        """Where it is: on the plane, or at a pixel of an image."""
        if self.rows is None:
            return "the infinite plane"
        return f"{self.rows} × {self.cols} pixels, query {self.query}, centre {self.centre}"

    @property
    def _given(self) -> float:
        if self.alpha is None:
            raise NamingError("weight and leak need α: lt.nn.sharpness(alpha, …), or .at(alpha)")
        return self.alpha

    def _axes(self) -> tuple[_CentredAxis, _CentredAxis] | None:
        if self.rows is None or self.cols is None or self.query is None:
            return None
        sizes = zip((self.rows, self.cols), self.query, self.centre, strict=True)
        y, x = (_CentredAxis(size, place + shift) for size, place, shift in sizes)
        return y, x

    def _sums(self, alpha: float) -> tuple[_ScaledSum, _ScaledSum]:
        """S along rows and along columns."""
        axes = self._axes()
        if axes is None:
            return _plane(alpha), _plane(alpha)
        return axes[0].others(alpha), axes[1].others(alpha)

    def _log_leak(self, alpha: float) -> float:
        sums = self._sums(alpha)
        y, x = (sum_.value for sum_ in sums)
        low = min(sum_.shift for sum_ in sums)
        # s_y + s_x + s_y s_x, times e^low, so that nothing is lost where both are tiny
        first, second = (sum_.total * math.exp(low - sum_.shift) for sum_ in sums)
        top = first + second + first * x
        return math.log(top) - low - math.log1p(y) - math.log1p(x) if top else -math.inf


def sharpness(
    alpha: float | None = None,
    *,
    rows: int | None = None,
    cols: int | None = None,
    query: Pixel | None = None,
    centre: Pixel = (0, 0),
) -> Sharpness:
    """How much of a head's weight lies on its centre `query + centre`, and how much leaks elsewhere.

    On an image of `rows` by `cols` (the middle pixel asks unless a `query` is given), or without them on the
    infinite plane. A centre outside the image stands for the nearest pixel. Without α it tells which to take.

    >>> round(sharpness(2.0).leak, 6)  # s = 2e^-2 + 2e^-8 + … = 0.271342: 1 - 1/1.271342²
    0.381307
    >>> round(sharpness(2.0, rows=3, cols=3, query=(0, 0)).leak, 6)  # a corner: 1 - 1/(1 + e^-2 + e^-8)²
    0.224655
    """
    if alpha is not None:
        check_alpha(alpha)
    sizes = {"rows": rows, "cols": cols}
    missing = [name for name, size in sizes.items() if size is None]
    if len(missing) == 1:
        raise NamingError(f"an image has rows and cols: give {missing[0]}=…, or neither for the plane")
    if missing and (query is not None or tuple(centre) != (0, 0)):
        raise NamingError(
            "every pixel of the plane is alike: query and centre need an image, rows=… and cols=…"
        )
    _check_pixel("centre", centre)
    if rows is None or cols is None:
        return Sharpness(alpha)
    for name, size in sizes.items():
        check_integer(name, size)
    if min(rows, cols) < 1:
        raise DomainError(f"an image has at least one pixel, not {rows} × {cols}")
    asked = ((rows - 1) // 2, (cols - 1) // 2) if query is None else query
    _check_pixel("query", asked)
    if not (0 <= asked[0] < rows and 0 <= asked[1] < cols):
        raise DomainError(f"pixel {tuple(asked)} lies outside an image of {rows} × {cols}; only a centre may")
    return Sharpness(alpha, rows, cols, (asked[0], asked[1]), (centre[0], centre[1]))


def _check_pixel(name: str, pixel: Pixel) -> None:
    if len(pixel) != 2:
        raise NamingError(f"{name} is a row and a column, not {pixel}")
    for place in pixel:
        check_integer(name, place)


def check_alpha(alpha: float) -> None:
    """Raises unless α is a positive finite number."""
    if not 0 < alpha < math.inf:
        raise DomainError(f"α = {alpha:g}: it must be positive and finite, so that near pixels weigh more")


def check_share(name: str, share: float) -> None:
    """Raises unless it lies between 0 and 1."""
    if not 0 < share < 1:
        raise DomainError(f"{name} = {share:g}: a leak is a share, so ask for one between 0 and 1")


def enough(eps: float) -> float:
    """2 arcosh(1/√ε): an α that keeps the leak at ε or less, wherever its centre lies.

    >>> round(enough(1e-6), 6)
    15.201804
    """
    check_share("eps", eps)
    found = 2 * math.log1p(math.sqrt(1 - eps)) - math.log(eps)
    return found + 4 * math.ulp(found)  # rounded up, so that it is enough


def bound(alpha: float) -> float:
    """1/cosh²(α/2), written so that it does not overflow."""
    return 4 * math.exp(-alpha) / (1 + math.exp(-alpha)) ** 2


def bound_text(alpha: float, digits: int = 3) -> str:
    """The same as text, which is never 0."""
    return format_exponential(math.log(4) - alpha - 2 * math.log1p(math.exp(-alpha)), digits)


class _ScaledSum(NamedTuple):
    """A sum, total · e^{−shift}."""

    shift: float
    total: float

    @property
    def value(self) -> float:
        return self.total * math.exp(-self.shift)


@dataclass(frozen=True)
class _CentredAxis:
    """One axis of an image, and where the head's centre lies on it."""

    size: int
    centre: int

    @property
    def nearest(self) -> int:
        return min(max(self.centre, 0), self.size - 1)

    def others(self, alpha: float) -> _ScaledSum:
        """S over the other pixels, d steps from the nearest one on either side."""
        left, right = sorted((self.nearest, self.size - 1 - self.nearest))
        return _both_sides(alpha, left, right, abs(self.centre - self.nearest))


def _both_sides(alpha: float, left: int, right: int, beyond: int = 0) -> _ScaledSum:
    """Σ_d e^{−α(d² + 2d·beyond)}, once for d = 1 … right and once for d = 1 … left, which is no more."""
    first, total = 1 + 2 * beyond, 0.0
    for d in range(1, right + 1):
        lost = alpha * (d * (d + 2 * beyond) - first)
        if lost > UNDERFLOW:
            break
        total += math.exp(-lost) * (2 if d <= left else 1)
    return _ScaledSum(alpha * first, total)


def _plane(alpha: float) -> _ScaledSum:
    """Σ_{j ≠ 0} e^{−αj²} over all whole numbers."""
    if alpha >= DUAL:
        far = math.isqrt(int(UNDERFLOW / alpha)) + 2
        return _both_sides(alpha, far, far)
    # Poisson: Σ e^{−αj²} = √(π/α) Σ e^{−π²j²/α}, and below α = 1 the second sum is 1 and next to nothing
    dual = 2 * math.exp(-min(math.pi**2 / alpha, UNDERFLOW))
    return _ScaledSum(0.0, math.sqrt(math.pi / alpha) * (1 + dual) - 1)


def _least(holds: Callable[[float], bool], high: float) -> float:
    """The least α from which on it holds, which it does at `high`; 0 if it holds for all."""
    low = math.ulp(0.0)
    if holds(low):
        return 0.0
    while high - low > CLOSE:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
