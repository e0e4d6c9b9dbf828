"""What steer is given, read and checked: floats to work with, Fractions where numbers are exact, shapes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, TensorError
from lattend.report.numbers import significant
from lattend.study.steering.linear import SMALL, Floats

MOST_EXACT = 256  # numbers that are worked with as Fractions
MOST_DIGITS = 12  # a float with more is the rounding of something
LONGEST = 24  # characters of a number that are shown
ROWS = (list, tuple, np.ndarray)
SUM_SLACK = 1e-6  # at least, that weights may be off 1


class NumberArray(NamedTuple):
    """Numbers in float64, as Fractions where all are exact and not too many, and how well they are known."""

    floats: NDArray[np.float64]
    fractions: NDArray[Any] | None = None
    small: float = SMALL


def read(name: str, numbers: Any) -> NumberArray:
    """The numbers of a list, a list of lists or an array: Fractions, floats, text as "1/3" or "sqrt(2)".

    >>> read("weights", ["1/3", 0.25, 2]).fractions.tolist()
    [Fraction(1, 3), Fraction(1, 4), Fraction(2, 1)]
    """
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind in "fiub":
        entries, floats, small = numbers, numbers.astype(np.float64), rounding(numbers.dtype)
    else:
        entries, small = _entries(name, numbers), SMALL
        floats = np.empty(entries.shape)
        for at in np.ndindex(entries.shape):
            entries[at], floats[at] = _number(name, at, entries[at])
    check_finite(name, floats)
    if floats.size > MOST_EXACT:
        return NumberArray(floats, None, small)
    parsed = [fraction(entry) for entry in entries.ravel().tolist()]
    if None in parsed:
        return NumberArray(floats, None, small)
    fractions = np.empty(len(parsed), dtype=object)
    fractions[:] = parsed
    return NumberArray(floats, fractions.reshape(floats.shape), small)


def rounding(dtype: Any) -> float:
    """The largest number that counts as 0, for numbers of size 1 in this dtype of numpy.

    >>> rounding(np.dtype("float64"))
    1e-07
    """
    return min(1e-3, max(SMALL, 100 * float(np.finfo(dtype).eps))) if dtype.kind == "f" else SMALL


def fraction(entry: Any) -> Fraction | None:
    """A number exactly, a float as the shortest decimal that names it; None for floats with too many digits.

    >>> fraction(0.1), fraction(3), fraction(1 / 3)
    (Fraction(1, 10), Fraction(3, 1), None)
    """
    if isinstance(entry, numbers.Rational):
        return Fraction(int(entry.numerator), int(entry.denominator))
    if isinstance(entry, Decimal):
        return Fraction(entry)
    digits = Decimal(repr(float(entry))).normalize()
    return Fraction(digits) if len(digits.as_tuple().digits) <= MOST_DIGITS else None


def _entries(name: str, numbers: Any) -> NDArray[Any]:
    try:
        entries = np.array(numbers, dtype=object)
    except ValueError:
        entries = None
    if entries is None or any(isinstance(entry, ROWS) for entry in entries.flat):
        raise DomainError(f"{name} must have as many numbers in each row{_uneven(numbers)}")
    if not entries.size:
        raise DomainError(f"{name} must be numbers; there is no number in it")
    return entries


def _uneven(rows: Any) -> str:
    """Which rows differ: `; row 1 has 2 and row 2 has 1`."""
    lengths = [len(row) for row in rows if isinstance(row, ROWS)]
    for index, length in enumerate(lengths, 1):
        if length != lengths[0]:
            return f"; row 1 has {lengths[0]:,} and row {index} has {length:,}"
    return next(filter(None, (_uneven(row) for row in rows if isinstance(row, ROWS))), "")


def check_number(entry: Any) -> float:
    """The float of a number or a text; raises where there is none, or it is 0 and the number is not.

    >>> check_number("1/4")
    0.25
    """
    return _meant(entry)[1]


def _meant(entry: Any) -> tuple[Any, float]:
    """A number itself, or what a text means; and the float of it."""
    number = entry
    if isinstance(entry, str):
        from lattend.study.exact.numbers import exact  # loads sympy, which numbers alone do not need

        number = exact(entry)
    try:
        meant = float(number)
    except (TypeError, ValueError):
        raise DomainError(f'{entry!r} is not a number; give 2, 0.5 or text such as "1/3"') from None
    except OverflowError:
        meant = 0.0
    if (meant == 0 and number != 0) or (isinstance(entry, str) and math.isinf(meant)):
        shown = str(entry) if len(str(entry)) <= LONGEST else f"{str(entry)[:LONGEST]}…"
        raise DomainError(f"{shown} is beyond floats, which go from 1e-308 to 1e308; use another unit")
    return number, meant


def _number(name: str, place: tuple[int, ...], entry: Any) -> tuple[Any, float]:
    try:
        return _meant(entry)
    except DomainError as error:
        raise DomainError(f"{name}{place_of(place)}: {error}") from None


def check_finite(name: str, floats: NDArray[np.float64]) -> None:
    """Raises where a number is not finite, and says which."""
    wrong = np.argwhere(~np.isfinite(floats))
    if len(wrong):
        raise DomainError(f"{name}{place_of(wrong[0])} is {floats[tuple(wrong[0])]}; give finite numbers")


def place_of(index: Iterable[int]) -> str:
    """`[0][2]`, as people index lists."""
    return "".join(f"[{at}]" for at in index)


def shares(parts: Iterable[Any]) -> list[Any]:
    """The parts over their sum, exactly where they are: weights from numbers in any unit.

    >>> [str(share) for share in shares(["1", 2, 0.5])]  # of 3.5
    ['2/7', '4/7', '1/7']
    """
    parts_read = read("weights", list(parts))
    numbers = parts_read.floats if parts_read.fractions is None else parts_read.fractions
    check_positive(parts_read.floats)
    total = numbers.sum()
    if total == 0:
        raise DomainError("the weights are all 0; give one of them more")
    return [part / total for part in numbers.tolist()]


def check_shapes(keys: Floats, weights: Floats, slack: float = 0.0) -> tuple[int, ...]:
    """The leading axes; raises where the keys or the weights are none, or have a sum off 1 by the slack."""
    if keys.ndim < 2 or 0 in keys.shape:
        raise TensorError(f"keys has shape {keys.shape}; give [..., m, D], a row for each of m keys")
    many = keys.shape[-2]
    if weights.ndim < 1 or weights.shape[-1] != many:
        shape = f"weights has shape {weights.shape} for {many} keys"
        raise TensorError(f"{shape}; give [..., {many}], one for each key")
    check_positive(weights)
    sums = weights.sum(axis=-1)
    off = np.argwhere(np.abs(sums - 1) > max(SUM_SLACK, slack))
    if len(off):
        where = f" of head {tuple(off[0].tolist())}" if sums.ndim else ""
        raise DomainError(
            f"the weights{where} sum to {significant(sums[tuple(off[0])], 6)}, not 1; "
            "divide them by their sum"
        )
    try:
        return np.broadcast_shapes(keys.shape[:-2], weights.shape[:-1])
    except ValueError:
        heads = f"keys have leading axes {keys.shape[:-2]} and weights {weights.shape[:-1]}"
        raise TensorError(f"{heads}; give both the same heads") from None


def check_positive(weights: Floats) -> None:
    """Raises where a weight is below 0."""
    negative = np.argwhere(weights < 0)
    if len(negative):
        place = negative[0]
        raise DomainError(
            f"weights{place_of(place)} is {significant(weights[tuple(place)], 6)}; a weight is at least 0"
        )


def check_error(error: Floats, lead: tuple[int, ...]) -> Floats:
    """The error of each head, between 0 and 1."""
    for value in error.flat:
        if not 0 < value < 1:
            raise DomainError(
                f"error is {significant(value, 6)}; the share that may go elsewhere lies between 0 and 1"
            )
    return at_heads("error", error, lead)


def at_heads(name: str, numbers: Floats, lead: tuple[int, ...]) -> Floats:
    """One number for each head."""
    try:
        return np.broadcast_to(numbers, lead)
    except ValueError:
        heads = f"one number, or one a head: {lead}" if lead else "one number"
        raise TensorError(f"{name} has shape {numbers.shape}; give {heads}") from None


def check_values(values: Floats, many: int, lead: tuple[int, ...]) -> Floats:
    """The values of each head, a row for each of so many keys."""
    if values.ndim < 2 or values.shape[-2] != many:
        raise TensorError(f"values has shape {values.shape}; give [..., {many}, v], a row for each key")
    try:
        return np.broadcast_to(values, lead + values.shape[-2:])
    except ValueError:
        raise TensorError(f"values have leading axes {values.shape[:-2]}; the heads are {lead}") from None


def check_scale(scale: Any, width: int) -> float:
    """The factor of the logits, for keys of so many numbers."""
    if isinstance(scale, str) and scale == "sqrt":
        return 1 / math.sqrt(width)
    try:
        number = check_number(scale)
    except DomainError as error:
        raise DomainError(f'scale is a number or "sqrt", for 1/√D: {error}') from None
    if not math.isfinite(number) or number == 0:
        raise DomainError(
            f"scale is {significant(number, 6)}; no query would change a weight, give a finite number but 0"
        )
    return number
