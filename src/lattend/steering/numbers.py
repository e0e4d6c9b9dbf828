"""Numbers as they are given: floats to work with, and Fractions where they are known exactly."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, TensorError
from lattend.steering.linear import SMALL

MOST_EXACT = 256  # numbers that are worked with as Fractions
MOST_DIGITS = 12  # a float with more is the rounding of something
MOST_ZEROS = 400  # of a number in a text
LONGEST = 24  # characters of a number that are shown
_POWER = re.compile(r"[eE]([+-]?[\d_]+)\s*$")


class Given(NamedTuple):
    """Numbers in float64, as Fractions where all are exact and not too many, and how well they are known."""

    floats: NDArray[np.float64]
    fractions: NDArray[Any] | None = None
    small: float = SMALL


def read(name: str, given: Any) -> Given:
    """The numbers of a nested list or an array: whole numbers, Fractions, floats, or text such as "1/3".

    >>> read("weights", ["1/3", 0.25, 2]).fractions.tolist()
    [Fraction(1, 3), Fraction(1, 4), Fraction(2, 1)]
    """
    if isinstance(given, np.ndarray) and given.dtype.kind in "fiub":
        entries, floats, small = given, given.astype(np.float64), rounding(given.dtype)
    else:
        entries = _entries(name, given)
        floats = np.array([_float(name, at, entries[at]) for at in np.ndindex(entries.shape)])
        floats, small = floats.reshape(entries.shape), SMALL
    check_finite(name, floats)
    if floats.size > MOST_EXACT:
        return Given(floats, None, small)
    found = [fraction(entry) for entry in entries.ravel().tolist()]
    if None in found:
        return Given(floats, None, small)
    fractions = np.empty(len(found), dtype=object)
    fractions[:] = found
    return Given(floats, fractions.reshape(floats.shape), small)


def rounding(dtype: Any) -> float:
    """What is taken for 0, of numbers of size 1 in this dtype of numpy.

    >>> rounding(np.dtype("float64"))
    1e-07
    """
    return min(1e-3, max(SMALL, 100 * float(np.finfo(dtype).eps))) if dtype.kind == "f" else SMALL


def fraction(entry: Any) -> Fraction | None:
    """A number exactly, a float as the shortest decimal that names it; None for floats with too many digits.

    >>> fraction(0.1), fraction("1/3"), fraction(1 / 3)
    (Fraction(1, 10), Fraction(1, 3), None)
    """
    if isinstance(entry, numbers.Rational):
        return Fraction(int(entry.numerator), int(entry.denominator))
    if isinstance(entry, (Decimal, str)):
        return Fraction(entry)
    digits = Decimal(repr(float(entry))).normalize()
    return Fraction(digits) if len(digits.as_tuple().digits) <= MOST_DIGITS else None


def _entries(name: str, given: Any) -> NDArray[Any]:
    try:
        entries = np.array(given, dtype=object)
    except ValueError:
        entries = np.array([[]], dtype=object)
    if not entries.size or any(isinstance(entry, (list, tuple, np.ndarray)) for entry in entries.flat):
        raise TensorError(f"{name} is empty or has rows of different lengths; give a number for every place")
    return entries


def check_number(entry: Any) -> float:
    """The float of a number or a text; raises where there is none, or it is 0 and the number is not.

    >>> check_number("1/4")
    0.25
    """
    try:
        if isinstance(entry, str):
            power = _POWER.search(entry)
            if power is not None and abs(int(power[1])) > MOST_ZEROS:  # before such a number is written out
                raise OverflowError
            found, is_zero = float(Fraction(entry)), not Fraction(entry)
        else:
            found, is_zero = float(entry), not entry
    except (TypeError, ValueError, ZeroDivisionError):
        raise DomainError(f'{entry!r} is no number; give 2, 0.5 or text such as "1/3"') from None
    except OverflowError:
        found, is_zero = 0.0, False
    if found == 0 and not is_zero:
        shown = str(entry) if len(str(entry)) <= LONGEST else f"{str(entry)[:LONGEST]}…"
        raise DomainError(f"{shown} is beyond floats, which go from 1e-308 to 1e308; use another unit")
    return found


def _float(name: str, place: tuple[int, ...], entry: Any) -> float:
    try:
        return check_number(entry)
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
