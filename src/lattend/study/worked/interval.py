"""DecimalInterval: a number of which only the bounds are known, since it was rounded on the way."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal

ZERO = Decimal(0)
MOST_DIGITS = 12  # before the point of a number that is rounded
_OTHER = {ROUND_HALF_UP: ROUND_HALF_DOWN, ROUND_HALF_DOWN: ROUND_HALF_UP}  # "up" is away from 0


@dataclass(frozen=True)
class DecimalInterval:
    """All numbers from `low` to `high`; `value` is the one that written digits alone lead to.

    It is added, multiplied, divided and raised as decimals are, also together with them; the bounds hold
    every result that numbers between the bounds can have.

    >>> found = DecimalInterval(Decimal("1.5"), Decimal(2), Decimal("2.5")) * Decimal(-2)
    >>> str(found.low), str(found.value), str(found.high)
    ('-5.0', '-4', '-3.0')
    """

    low: Decimal
    value: Decimal
    high: Decimal

    def __bool__(self) -> bool:
        return bool(self.low or self.high)

    def __add__(self, other: Decimal | DecimalInterval) -> DecimalInterval:
        other = interval(other)
        return DecimalInterval(self.low + other.low, self.value + other.value, self.high + other.high)

    __radd__ = __add__

    def __mul__(self, other: Decimal | DecimalInterval) -> DecimalInterval:
        other = interval(other)
        ends = [_times(x, y) for x in (self.low, self.high) for y in (other.low, other.high)]
        return DecimalInterval(min(ends), self.value * other.value, max(ends))

    __rmul__ = __mul__

    def __truediv__(self, other: Decimal | DecimalInterval) -> DecimalInterval:
        other = interval(other)
        least = ZERO if other.low <= 0 < other.high else other.low  # sums of exponentials are above 0
        ends = [x / y if x else ZERO for x in (self.low, self.high) for y in (least, other.high)]
        return DecimalInterval(min(ends), self.value / other.value, max(ends))

    def __rtruediv__(self, other: Decimal) -> DecimalInterval:
        return interval(other) / self

    def rounded(self, places: int, *, significant: bool = False) -> DecimalInterval:
        """The numbers and what they round to, halves either way; small ones to as many digits if asked for.

        >>> found = DecimalInterval(Decimal("0.25"), Decimal("0.25"), Decimal("0.26")).rounded(1)
        >>> str(found.low), str(found.high)
        ('0.2', '0.3')
        """
        low = min(self.low, _round(self.low, places, ROUND_HALF_DOWN, significant))
        high = max(self.high, _round(self.high, places, ROUND_HALF_UP, significant))
        return DecimalInterval(low, self.value, high)

    def exp(self) -> DecimalInterval:
        """E to the power of each number."""
        return DecimalInterval(self.low.exp(), self.value.exp(), self.high.exp())


def interval(number: Decimal | DecimalInterval) -> DecimalInterval:
    """The span of a number that is known."""
    return number if isinstance(number, DecimalInterval) else DecimalInterval(number, number, number)


def hull(value: Decimal, *others: Decimal) -> DecimalInterval:
    """From the least to the greatest of the numbers; the first is the one written."""
    return DecimalInterval(min(value, *others), value, max(value, *others))


def _round(number: Decimal, places: int, halves: str, significant: bool) -> Decimal:
    if not number.is_finite() or number.adjusted() > MOST_DIGITS:
        return number
    if significant and number:
        places = max(places, places - 1 - number.adjusted())
    return number.quantize(Decimal(1).scaleb(-places), halves if number >= 0 else _OTHER[halves])


def _times(x: Decimal, y: Decimal) -> Decimal:
    return x * y if x and y else ZERO  # 0 · infinity is 0: a bound of 0 is reached, infinity is not
