"""ExactBound: ELBO + gap = log p(x) as formulas, proved, on the two models whose sums are closed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.draw.charts.chart import COLOURS, Chart, Dots, Stroke, curves
from lattend.draw.picture import Picture
from lattend.errors import DomainError
from lattend.report.latex import aligned
from lattend.report.numbers import significant
from lattend.report.report import Printed, Report
from lattend.report.table import Facts
from lattend.study.exact.function import as_float
from lattend.study.exact.numbers import exact, log, one_log
from lattend.study.exact.sign import is_zero
from lattend.study.exact.writing import decimal, format_exact, latex
from lattend.wording import many

Floats = NDArray[np.float64]
PLACES = 6
MOST_VALUES = 12  # of z
LARGEST = 10**6  # of a number of the Gaussian model
TURN = 96  # places of a line of equal gap
TERM_LATEX = {
    "reconstruction": r"\mathbb{E}_q[\log p(x \mid z)]",
    "kl": r"\mathrm{KL}(q \,\|\, p(z))",
    "elbo": r"\mathrm{ELBO}",
    "gap": r"\mathrm{KL}(q \,\|\, p(z \mid x))",
    "log_prob": r"\log p(x)",
}


@dataclass(frozen=True, eq=False)
class ExactBound(Printed):
    """The terms of the evidence lower bound of one x, in nats, as exact formulas."""

    reconstruction: Any  # E_q[log p(x|z)]
    kl: Any  # KL(q ‖ prior)
    gap: Any  # KL(q ‖ posterior)
    log_prob: Any  # log p(x)

    @property
    def elbo(self) -> Any:
        """The bound: reconstruction − KL."""
        return self.reconstruction - self.kl

    @cached_property
    def proved(self) -> bool:
        """Whether elbo + gap − log_prob is 0 by algebra, each of the three worked out on its own."""
        return is_zero(self.elbo + self.gap - self.log_prob)

    @property
    def terms(self) -> dict[str, Any]:
        """All five by name, as they are best read."""
        return {name: one_log(getattr(self, name)) for name in TERM_LATEX}

    def latex(self) -> str:
        """The terms as aligned lines, each after its sign."""
        return aligned(*(f"{TERM_LATEX[name]} &= {latex(term)}" for name, term in self.terms.items()))

    def json(self) -> dict[str, Any]:
        """Formulas as texts, and decimals."""
        return {name: [format_exact(term), as_float(term)] for name, term in self.terms.items()}

    def report(self) -> Report:
        """The terms, and whether they add up."""
        written = {
            name: f"{format_exact(term)} = {decimal(term, PLACES)}" for name, term in self.terms.items()
        }
        facts = (
            ("reconstruction", written["reconstruction"]),
            ("KL", f"{written['kl']}, of q and the prior"),
            ("ELBO", written["elbo"]),
            ("gap", f"{written['gap']}, the KL of q and the posterior"),
            ("log p(x)", written["log_prob"]),
            ("identity", "ELBO + gap = log p(x), proved" if self.proved else "not proved"),
        )
        return Report("The evidence lower bound, in nats", [Facts(facts)], self.json())

    def __repr__(self) -> str:
        return f"<ExactBound ELBO {decimal(self.elbo)} + gap {decimal(self.gap)}>"


class GaussianLine:
    """x = weight·z + bias + noise with z ~ N(0, 1), and one x that is observed; `noise` is a variance.

    >>> line = GaussianLine(1, 0, 1, 3)  # x ~ N(0, 1 + 1)
    >>> line.posterior  # half of x, half of the variance
    (3/2, 1/2)
    >>> line.bound(0, 1).proved
    True
    """

    def __init__(self, weight: Any, bias: Any, noise: Any, x: Any) -> None:
        self.weight, self.bias, self.x = _number("weight", weight), _number("bias", bias), _number("x", x)
        self.noise = _variance("noise", noise)

    @property
    def posterior(self) -> tuple[Any, Any]:
        """Mean and variance of p(z|x)."""
        total = self.weight**2 + self.noise
        return self.weight * (self.x - self.bias) / total, self.noise / total

    def bound(self, mean: Any, variance: Any) -> ExactBound:
        """The terms for q = N(mean, variance)."""
        m, s = _number("mean", mean), _variance("variance", variance)
        centre, width = self.posterior
        off = (self.x - self.bias - self.weight * m) ** 2 + self.weight**2 * s
        return ExactBound(
            reconstruction=-_half_log(self.noise) - off / (2 * self.noise),
            kl=(s + m**2 - 1 - log(s)) / 2,
            gap=(s / width + (m - centre) ** 2 / width - 1 - log(s) + log(width)) / 2,
            log_prob=-_half_log(self.weight**2 + self.noise)
            - (self.x - self.bias) ** 2 / (2 * (self.weight**2 + self.noise)),
        )

    def equal_gap(self, gap: float) -> Floats:
        """The (mean, variance) of all q with this gap, a closed line around the posterior, [places, 2].

        2·gap = r − 1 − log r + (mean − centre)²/width with r = variance/width, which is solved for the mean.
        """
        centre, width = map(as_float, self.posterior)
        low, high = _ends(2 * gap)
        turn = np.linspace(0, math.pi, TURN)
        r = np.exp((math.log(low) + math.log(high)) / 2 - np.cos(turn) * math.log(high / low) / 2)
        far = np.sqrt(np.maximum(0, 2 * gap + 1 + np.log(r) - r) * width)
        right = np.stack([centre + far, r * width], 1)
        left = np.stack([centre - far, r * width], 1)
        return np.concatenate([right, left[::-1]])


class DiscreteModel:
    """z takes a few values: the prior p(z), and the likelihood p(x|z) of the x that is observed.

    >>> model = DiscreteModel(["1/2", "1/4", "1/4"], ["1/10", "3/5", "9/10"])
    >>> model.evidence  # 1/20 + 3/20 + 9/40
    17/40
    >>> model.bound(model.posterior).gap
    0
    """

    def __init__(self, prior: Sequence[Any], likelihood: Sequence[Any]) -> None:
        self.prior = _distribution("p(z)", prior)
        self.likelihood = _row("p(x|z)", likelihood, len(self.prior))
        if all(one == 0 for one in self.joint):
            raise DomainError("p(x) is 0: no z that occurs gives this x; then there is nothing to bound")

    @property
    def joint(self) -> tuple[Any, ...]:
        """p(x, z) by z."""
        return tuple(p * seen for p, seen in zip(self.prior, self.likelihood, strict=True))

    @property
    def evidence(self) -> Any:
        """p(x)."""
        return sum(self.joint)

    @property
    def posterior(self) -> tuple[Any, ...]:
        """p(z|x) by z."""
        return tuple(one / self.evidence for one in self.joint)

    def report(self, q: Sequence[Any]) -> Report:
        """The terms for this q(z|x), and the posterior, which leaves no gap."""
        bound_report = self.bound(q).report()
        posterior = Facts([("posterior", ", ".join(map(format_exact, self.posterior)))])
        return replace(bound_report, parts=[*bound_report.parts, posterior])

    def bound(self, q: Sequence[Any]) -> ExactBound:
        """The terms for this q(z|x); a z of which q makes 0 adds nothing."""
        guess = _distribution("q(z|x)", q, len(self.prior))
        for index, (one, joint) in enumerate(zip(guess, self.joint, strict=True), 1):
            if one != 0 and joint == 0:
                raise DomainError(
                    f"q(z|x) is {format_exact(one)} for z = {index}, and p(x, z) is 0 there: "
                    "the ELBO is −∞; make it 0"
                )

        def mean(values: Sequence[Any]) -> Any:
            return sum(
                one * log(value).expand() for one, value in zip(guess, values, strict=True) if one != 0
            )

        entropy = -mean(guess)
        return ExactBound(
            reconstruction=mean(self.likelihood),
            kl=-entropy - mean(self.prior),
            gap=-entropy - mean(self.posterior),
            log_prob=log(self.evidence),
        )


def _half_log(variance: Any) -> Any:
    """½ log(2π·variance)."""
    return (log(2 * exact("pi")) + log(variance)) / 2


def _ends(twice: float) -> tuple[float, float]:
    """The least and the greatest r with r − 1 − log r = twice, by halving."""

    def solve(inside: float, outside: float) -> float:
        for _ in range(80):
            middle = math.sqrt(inside * outside)
            inside, outside = (middle, outside) if middle - 1 - math.log(middle) < twice else (inside, middle)
        return inside

    return solve(1.0, math.exp(-1 - twice)), solve(1.0, 4 + 2 * twice)


def _number(name: str, value: Any) -> Any:
    try:
        number = exact(value)
    except DomainError as error:
        raise DomainError(f"{name}: {error}") from None
    if not number.is_Rational or abs(number) > LARGEST:
        raise DomainError(f"{name} is a fraction or a decimal up to {LARGEST:,}, got {value}")
    return number


def _variance(name: str, value: Any) -> Any:
    variance = _number(name, value)
    if variance * LARGEST < 1:
        raise DomainError(f"{name} must be above 0, at least 1/{LARGEST}: it is a variance; got {value}")
    return variance


def _row(name: str, entries: Sequence[Any], length: int | None = None) -> tuple[Any, ...]:
    numbers: list[Any] = []
    for one in entries:
        try:
            numbers.append(exact(one))
        except DomainError as error:
            raise DomainError(f"{name}: {error}") from None
        if not numbers[-1].is_Rational or not 0 <= numbers[-1] <= 1:
            raise DomainError(f"{name} has fractions from 0 to 1, got {one}")
    if not numbers or len(numbers) > MOST_VALUES:
        raise DomainError(f"{name} has 1 to {MOST_VALUES} numbers, got {len(numbers)}")
    if length is not None and len(numbers) != length:
        size_text = many(len(numbers), "number")
        raise DomainError(f"p(z) is of {many(length, 'value')} of z, and {name} has {size_text}")
    return tuple(numbers)


def _distribution(name: str, chances: Sequence[Any], length: int | None = None) -> tuple[Any, ...]:
    numbers = _row(name, chances, length)
    if sum(numbers) != 1:
        raise DomainError(f"the numbers of {name} add up to {format_exact(sum(numbers))}, not to 1")
    return numbers


GAPS = (0.02, 0.1, 0.3, 0.7, 1.5, 3.0)  # nats
DENSITY_PLACES = 121  # of a density
FAR = 4.0  # standard deviations that are shown of each density


def draw_line(line: GaussianLine, mean: Any, variance: Any) -> Picture:
    """The terms of the bound for q = N(mean, variance), the densities, and lines of equal gap.

    >>> [chart.title for chart in draw_line(GaussianLine(1, 0, 1, 3), 0, 1).charts]
    ['Densities of z', 'Gap of every q']
    """
    bound = line.bound(mean, variance)
    charts = densities(line, mean, variance), gaps(line, mean, variance)
    report = bound.report()
    facts = tuple(row for part in report.parts if not isinstance(part, str) for row in part.rows)
    middle, width = map(format_exact, line.posterior)
    pairs = (*((row[0], row[1]) for row in facts), ("posterior", f"mean {middle}, variance {width}"))
    return Picture("The evidence lower bound, in nats", facts=pairs, charts=charts, data=bound.json())


def densities(line: GaussianLine, mean: Any, variance: Any) -> Chart:
    """The prior, the posterior and q as curves over z."""
    known = {"prior": (0.0, 1.0), "posterior": line.posterior, "q": (exact(mean), exact(variance))}
    pairs = {name: (as_float(m), math.sqrt(as_float(s))) for name, (m, s) in known.items()}
    low = min(m - FAR * s for m, s in pairs.values())
    high = max(m + FAR * s for m, s in pairs.values())
    near = [np.linspace(m - FAR * s, m + FAR * s, DENSITY_PLACES // 2) for m, s in pairs.values()]
    places = np.unique(np.concatenate([np.linspace(low, high, DENSITY_PLACES), *near]))
    strokes = [
        (name, list(zip(places.tolist(), _density(places, m, s).tolist(), strict=True)))
        for name, (m, s) in pairs.items()
    ]
    return Chart("Densities of z", "z", "density", curves(strokes))


def gaps(line: GaussianLine, mean: Any, variance: Any) -> Chart:
    """All q by mean and variance: lines of equal gap around the posterior, where it is 0."""
    lines = tuple(
        Stroke(line.equal_gap(gap), f"gap {significant(gap, 2)}", COLOURS[9], 1.0, under=True) for gap in GAPS
    )
    best = [as_float(one) for one in line.posterior]
    parameters = [as_float(exact(mean)), as_float(exact(variance))]
    dots = (
        Dots([best], "posterior", COLOURS[0], 3.4, "ring"),
        Dots([[0.0, 1.0]], "prior", COLOURS[1], 3.0, "square"),
        Dots([parameters], "q", COLOURS[6], 3.4, "diamond"),
    )
    return Chart("Gap of every q", "mean of q", "variance of q", lines, dots)


def _density(places: Any, mean: float, deviation: float) -> Any:
    return np.exp(-(((places - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
