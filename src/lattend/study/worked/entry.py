"""MatrixEntry and Step: a number of worked attention, exact and as a decimal, and the tables of a step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.report import numbers
from lattend.report.shown import Shown
from lattend.study.exact import writing
from lattend.study.exact.numbers import exact

CONTEXT = numbers.context()
CERTAIN = numbers.context(54)  # digits of the 60 that rounding on the way leaves as they are
MASKED = Decimal("-Infinity")
E = exact("e")
LONGEST = 60  # characters of an exact form that is still read
LONGEST_FRACTION = 12  # of each fraction in it
MOST_PLACES = 40
HIGHEST_POWER = 40  # of e, up to which common factors are looked for
MOST_TERMS = LONGEST // 5  # each at least 5 characters, as in 2e +
LARGE = Decimal(10) ** 9  # written as 1.2346e9 from here on
_FRACTION = re.compile(r"\d+/\d+")


@dataclass(frozen=True, eq=False)
class MatrixEntry:
    """A number: its decimal, and its exact form, `known` at once or made when asked for.

    `reached` is the decimal as the steps give it, with rounding on the way. `length` is about how many
    characters the exact form has, so that a long one need not be made.
    """

    reached: Decimal
    known: Any = None
    make: Callable[[], Any] | None = None
    length: int = 0

    @cached_property
    def value(self) -> Decimal:
        """The decimal, which rounds as the number itself does."""
        rational = self.known is not None and self.known.is_Rational
        return decimal_of(self.known) if rational else settled(self.reached)

    @cached_property
    def exact(self) -> Any:
        """The number itself; -inf for a score that the rule masks."""
        if self.value == MASKED:
            return float("-inf")
        return self.known if self.make is None else self.make()

    @cached_property
    def text(self) -> str | None:
        """The exact form as people type it; None where it, or a fraction in it, is too long to be read."""
        if self.value == MASKED:
            return "-inf"
        if self.length > 4 * LONGEST:
            return None
        written = writing.format_exact(self.exact)
        fractions = _FRACTION.findall(written)
        short = len(written) <= LONGEST and all(len(part) <= LONGEST_FRACTION for part in fractions)
        return written if short else None

    @cached_property
    def latex(self) -> str:
        """The exact form in LaTeX."""
        return r"-\infty" if self.value == MASKED else writing.latex(self.exact)

    @property
    def whole(self) -> bool:
        return self.known is not None and bool(self.known.is_Integer)

    def decimal(self, places: int) -> str:
        """The number rounded, halves away from 0; whole numbers as they are."""
        if self.value == MASKED:
            return "-inf"
        if self.whole and abs(self.value) < LARGE:
            return str(self.known)
        return rounded(self.value, places)


def number(value: Any, decimal: Decimal | None = None) -> MatrixEntry:
    """The entry of an exact number that is at hand, and its decimal where that is too."""
    return MatrixEntry(decimal_of(value) if decimal is None else decimal, value, length=length(value))


def length(value: Any) -> int:
    """About how many characters a number has when it is written.

    >>> length(exact("1/4")), length(exact("sqrt(2)/2"))
    (3, 11)
    """
    if isinstance(value, int) or value.is_Integer:
        return _digits(int(value))
    if value.is_Rational:
        return _digits(int(value.p)) + _digits(int(value.q)) + 1
    factor, rest = value.as_coeff_Mul()
    return len(str(rest)) + (0 if factor == 1 else length(factor) + 1)


def _digits(number: int) -> int:
    return number.bit_length() * 3 // 10 + 1 + (number < 0)


def decimal_of(value: Any) -> Decimal:
    """An exact number as a decimal of 60 digits.

    >>> decimal_of(exact("1/8"))
    Decimal('0.125')
    """
    if value.is_Rational:
        return numbers.decimal_of(writing.fraction(value))
    return CONTEXT.plus(Decimal(writing.decimal(value, numbers.DIGITS)))


def settled(value: Decimal) -> Decimal:
    """A decimal that was reached with rounding on the way, without its last digits: 0.09374999…9 is 3/32."""
    return CERTAIN.plus(value)


def rounded(value: Decimal, places: int) -> str:
    """The decimal with so many places.

    >>> rounded(Decimal("13.82561976"), 4), rounded(Decimal("2.5e12"), 4)
    ('13.8256', '2.5000e12')
    """
    check_places(places)
    large = value.is_finite() and abs(value) >= LARGE
    return numbers.scientific(value, places) if large else numbers.fixed(value, places)


def check_places(places: object) -> None:
    """Raises unless so many places can be written."""
    if isinstance(places, bool) or not isinstance(places, int) or not 0 <= places <= MOST_PLACES:
        raise DomainError(f"places must be a whole number from 0 to {MOST_PLACES}, got {places!r}")


def exponential(score: Any, value: Decimal) -> MatrixEntry:
    """E to the power of an exact score."""
    return MatrixEntry(value, E**score, length=length(score) + 3)


def total(scores: list[Any], value: Decimal) -> MatrixEntry:
    """The sum of e^score."""
    if not scores:
        return number(exact(0))
    counts = _counts(scores)
    if len(counts) == 1:
        return number(len(scores) * E ** scores[0], value)
    return MatrixEntry(
        value, None, lambda: sum(many * E**score for score, many in counts.items()), _length(counts)
    )


def mixture(scores: list[Any], parts: list[Any], value: Decimal) -> MatrixEntry:
    """The sum of e^score * part over the sum of e^score.

    Keys with one score weigh alike, so that the mixture is constant where their means are: it is exact then.

    >>> one, two = exact(1), exact(2)
    >>> mixture([one, two, two], [one, one + two, -one], Decimal(1)).exact  # (3 - 1)/2 = 1
    1
    """
    if not scores:
        return number(exact(0))
    counts, totals = _counts(scores), dict[Any, Any]()
    for score, part in zip(scores, parts, strict=True):
        totals[score] = totals.get(score, 0) + part
    means = {totals[score] / many for score, many in counts.items()}
    if len(means) == 1:
        return number(means.pop(), value)
    return MatrixEntry(value, None, lambda: _ratio(totals, counts), _length(totals) + _length(counts))


def _counts(scores: list[Any]) -> dict[Any, Any]:
    counts: dict[Any, Any] = {}
    for score in scores:
        counts[score] = counts.get(score, 0) + 1
    return counts


def _length(terms: Mapping[Any, Any]) -> int:
    if len(terms) > MOST_TERMS:
        return 4 * LONGEST + 1
    return sum(length(score) + length(factor) + 3 for score, factor in terms.items())


def _ratio(above: Mapping[Any, Any], below: Mapping[Any, Any]) -> Any:
    """Two sums of factor * e^score, divided by e to the least score, and by what both share."""
    least = min(below, key=decimal_of)
    upper, lower = (
        sum((factor * E ** (score - least) for score, factor in terms.items()), exact(0))
        for terms in (above, below)
    )
    powers = [score - least for score in below]
    small = all(power.is_Integer and power <= HIGHEST_POWER for power in powers)
    quotient: Any = upper / lower
    return quotient.cancel() if small and all(factor.is_Rational for factor in above.values()) else quotient


Rows = tuple[tuple[MatrixEntry, ...], ...]


@dataclass(frozen=True, eq=False)
class Step(Shown):
    """A step: one table of numbers, or one a head.

    `exact`, `decimals` and `values` are rows of numbers; where `per_head` is true, a list of them.
    """

    name: str
    title: str
    formula: str
    tables: tuple[Rows, ...]
    per_head: bool = False
    down: str = "query"  # what a row is
    across: str = ""  # what a column is

    @property
    def exact(self) -> Any:
        """The numbers themselves, as sympy holds them: e/(e^2 + 2e + 1), 1/4; -inf where the rule masks."""
        return self._nested(lambda entry: entry.exact)

    def decimals(self, places: int = 4) -> Any:
        """The numbers rounded, as texts."""
        return self._nested(lambda entry: entry.decimal(places))

    @property
    def values(self) -> NDArray[np.float64]:
        """The numbers as floats: [rows, columns], or [heads, rows, columns]."""
        return np.array(self._nested(lambda entry: float(entry.value)))

    @cached_property
    def readable(self) -> bool:
        """Whether every exact form is short enough to be read."""
        return all(entry.text is not None for rows in self.tables for row in rows for entry in row)

    def _nested(self, read: Callable[[MatrixEntry], Any]) -> Any:
        nested = [[[read(entry) for entry in row] for row in rows] for rows in self.tables]
        return nested if self.per_head else nested[0]

    def json(self, places: int = 4) -> dict[str, Any]:
        """The step as plain data; exact forms are texts, null where they are too long to be read."""
        return {
            "name": self.name,
            "title": self.title,
            "formula": self.formula,
            "exact": self._nested(lambda entry: entry.text),
            "decimals": self.decimals(places),
        }

    def __str__(self) -> str:
        from lattend.study.worked.documents import step_text

        return step_text(self)

    def __repr__(self) -> str:
        rows = self.tables[0]
        heads = f"{len(self.tables)} × " if self.per_head else ""
        return f"<Step {self.name}: {heads}{len(rows)} × {len(rows[0])}>"


def plain(rows: Rows) -> bool:
    """Whether all numbers are whole, so that they need no decimals beside them."""
    return all(entry.text == entry.decimal(0) for row in rows for entry in row)


def too_long(steps: Sequence[Step], show: str = "both") -> list[str]:
    """Why steps show decimals alone, in one sentence; none where exact forms are short or not asked for."""
    names = [step.name for step in steps if not step.readable]
    if show == "decimal" or not names:
        return []
    where = "here" if len(steps) == 1 else f"in {', '.join(names)}"
    return [
        f"decimals alone {where}: exact forms have more than {LONGEST} characters, or fractions of more than "
        f"{LONGEST_FRACTION}; .exact has them"
    ]
