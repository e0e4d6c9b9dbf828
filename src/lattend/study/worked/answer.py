"""Answers as people give them: rows of numbers whose last digit says how exact they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from lattend.errors import DomainError, NamingError, TensorError
from lattend.study.exact.numbers import exact
from lattend.study.worked.entry import CONTEXT, MASKED, decimal_of, settled
from lattend.study.worked.inputs import depth
from lattend.wording import close_names, cut, many, short

if TYPE_CHECKING:
    from lattend.study.worked.build import Tables
    from lattend.study.worked.work import Worked

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


Place = tuple[str, int, int, int]  # step, head, row, column
MOST_POWER = 10**6  # of ten; e to the largest score has 434,294 digits
NEAR = Decimal("1e-40")  # what an exact form may be off, from the 60 digits it is compared in
LEVELS = ("head", "row", "number")
ABSENT = ("", "?", "-", "–")
HIDDEN = ("-inf", "-infinity", "-∞")
SINGULAR = {
    "output": "outputs",
    "weight": "weights",
    "sum": "sums",
    "score": "scores",
    "exponential": "exponentials",
}
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


class StrayNumbers(NamedTuple):
    """The numbers that a row has too many."""

    name: str
    head: int
    row: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class WrittenNumber:
    """A number as it was written, and how far from it the true one may be."""

    text: str
    value: Decimal
    half: Decimal  # of a unit of its last digit; about 0 for an exact form
    is_form: bool = False  # 1/4 rather than 0.25

    @property
    def places(self) -> int:
        """The decimals it has; those that an exact form is compared in."""
        return max(0, -int(self.half.adjusted()) - 1)

    @property
    def has_comma(self) -> bool:
        """Whether its decimals stand behind a comma."""
        return "," in self.text

    def near(self, number: Decimal | DecimalInterval) -> bool:
        """Whether a number, or one of a span, rounds to this one; of a tie, either neighbour passes."""
        low, high = (number.low, number.high) if isinstance(number, DecimalInterval) else (number, number)
        if not self.value.is_finite() or low == high == MASKED:
            return low == self.value
        with localcontext(CONTEXT):
            return settled(low) - self.half <= self.value <= settled(high) + self.half


def read_number(value: Any, places: int | None = None) -> WrittenNumber | None:
    """The number that is written, None where there is none: "", "?" and None.

    A decimal comma is a point. With `places`, a decimal with fewer of them is taken as exact.

    >>> read_number(".1967").half  # half of 0.0001
    Decimal('0.00005')
    """
    if value is None:
        return None
    text = (value if isinstance(value, str) else str(value)).strip().replace("−", "-")
    if text in ABSENT:
        return None
    if text.lower() in HIDDEN:
        return WrittenNumber(text, MASKED, NEAR)
    plain = text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text
    if _DECIMAL.fullmatch(plain):
        number = CONTEXT.create_decimal(plain)
        last = int(number.as_tuple().exponent) if number.is_finite() else MOST_POWER + 1
        if abs(last) > MOST_POWER:
            raise DomainError(f"{text} has a power of ten beyond {MOST_POWER:,}; no number here has")
        half = CONTEXT.scaleb(Decimal(5), last - 1)
        return WrittenNumber(text, number, NEAR if places is not None and -last < places else half)
    return WrittenNumber(text, decimal_of(exact(value)), NEAR, is_form=True)


def read_answer(
    worked: Worked, answer: Any, places: int | None = None, nothing: str = "None"
) -> tuple[dict[Place, WrittenNumber], tuple[StrayNumbers, ...]]:
    """Every number of an answer by its place, and those that rows have too many.

    Raises where its shape is not that of the step.
    """
    if not isinstance(answer, Mapping) or not answer:
        known = ", ".join(step.name for step in worked.steps)
        raise NamingError(
            f'an answer has rows of numbers for some of {known}, as in {{"sums": [["13.8256"], …]}}; '
            f"got {short(answer)}"
        )
    written_numbers: dict[Place, WrittenNumber] = {}
    strays: list[StrayNumbers] = []
    for step_name, rows in answer.items():
        name = _name(worked, str(step_name))
        step = worked.parts[name]
        listed, too_many = _without_strays(name, _listed(rows), worked.have[name], step.per_head)
        strays += too_many
        tables = _tables(name, listed, worked.have[name], step.per_head, nothing)
        for head, table in enumerate(tables):
            for row, numbers in enumerate(table):
                for column, number in enumerate(numbers):
                    written = _read(name, head if step.per_head else None, row, column, number, places)
                    if written is not None:
                        written_numbers[name, head, row, column] = written
    if not written_numbers:
        raise DomainError("the answer has no number in it; give at least one")
    _check_commas(written_numbers)
    return written_numbers, tuple(strays)


def _check_commas(numbers: Mapping[Place, WrittenNumber]) -> None:
    """Raises where a comma may separate thousands: other numbers of the answer have a decimal point."""
    pointed = next((one.text for one in numbers.values() if "." in one.text and not one.is_form), None)
    for (name, _, row, column), one in numbers.items():
        if pointed is not None and _THOUSANDS.fullmatch(one.text):
            bare, point = one.text.replace(",", ""), one.text.replace(",", ".")
            raise DomainError(
                f"{name}, row {row + 1}, column {column + 1}: {one.text} may be {bare} or {point}, "
                f"as {pointed} is written with a point; write one of the two"
            )


def _without_strays(name: str, listed: Any, wanted: Tables, per_head: bool) -> tuple[Any, list[StrayNumbers]]:
    """The tables without what rows have too many, where other rows are as long as they should be."""
    width = len(wanted[0][0])
    if not isinstance(listed, list):
        return listed, []
    strays: list[StrayNumbers] = []

    def cut(rows: Any, head: int) -> Any:
        if not isinstance(rows, list) or not any(_fits(row, width) for row in rows):
            return rows
        kept: list[Any] = []
        for at, row in enumerate(rows):
            flat = _flat(row)
            if len(flat) > width:
                strays.append(StrayNumbers(name, head, at, tuple(str(one) for one in flat[width:])))
            kept.append(flat[:width] if len(flat) > width else row)
        return kept

    tables = [cut(rows, head) for head, rows in enumerate(listed if per_head else [listed])]
    return tables if per_head else tables[0], strays


def _fits(row: Any, width: int) -> bool:
    return isinstance(row, list) and len(row) == len(_flat(row)) == width


def _flat(row: Any) -> list[Any]:
    return [one for part in row for one in _flat(part)] if isinstance(row, list) else [row]


def _name(worked: Worked, text: str) -> str:
    name = SINGULAR.get(text, text)
    if name in worked.parts:
        return name
    known = [step.name for step in worked.steps]
    close = close_names(text, known)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise NamingError(f"the work has no step {cut(text)}; it has {', '.join(known)}{hint}")


def _tables(name: str, listed: Any, wanted: Tables, per_head: bool, nothing: str) -> list[list[list[Any]]]:
    """The rows of each head; a step with one number a row may be a plain list of them."""
    shape = (len(wanted), len(wanted[0]), len(wanted[0][0]))
    levels = LEVELS[0 if per_head else 1 :]
    shape = shape[-len(levels) :]
    try:
        filled = _filled(listed, shape, levels)
    except _Misfit as misfit:
        lengths = " of ".join(many(length, level) for length, level in zip(shape, levels, strict=True))
        without = per_head and isinstance(listed, list) and depth(listed) < (2 if shape[-1] == 1 else 3)
        problem = "it has no list for each head, as in [head 1, head 2]" if without else str(misfit)
        raise TensorError(
            f"{name} in the answer must be {lengths}, with {nothing} for a number"
            f"{', row or head' if per_head else ' or row'} that is not given; {problem}"
        ) from None
    return filled if per_head else [filled]


class _Misfit(Exception):
    """Raised where nested lists have the wrong length."""


def _filled(values: Any, shape: tuple[int, ...], levels: tuple[str, ...], where: str = "it") -> Any:
    """Nested lists of this shape, None wherever nothing is given for a part."""
    if not shape:
        if isinstance(values, list):
            raise _Misfit(f"{where} is a list")
        return values
    if not isinstance(values, list) and shape == (1,):
        return [values]  # the only number of its row
    if values is None:
        return [_filled(None, shape[1:], levels[1:]) for _ in range(shape[0])]
    if not isinstance(values, list):
        raise _Misfit(f"{where} is {short(values)}")
    if 0 < len(values) < shape[0]:  # the last ones are not given
        values = [*values, *[None] * (shape[0] - len(values))]
    if len(values) != shape[0]:
        commas = '; decimal commas need quotes, "0,5", or write 0.5' if len(values) == 2 * shape[0] else ""
        raise _Misfit(
            f"{where} has {many(len(values), levels[0])}{commas if levels[0] == LEVELS[-1] else ''}"
        )
    of = "" if where == "it" else f"{where}, "
    return [
        _filled(value, shape[1:], levels[1:], f"{of}{levels[0]} {at + 1}") for at, value in enumerate(values)
    ]


def _listed(values: Any) -> Any:
    """Nested lists, from lists, tuples, arrays or tensors."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        return values
    return [_listed(value) for value in values]


def _read(
    name: str, head: int | None, row: int, column: int, number: Any, places: int | None
) -> WrittenNumber | None:
    try:
        return read_number(number, places)
    except DomainError as error:
        of = "" if head is None else f" of head {head + 1}"
        raise DomainError(f"{name}{of}, row {row + 1}, column {column + 1}: {error}") from None
