"""Numbers that count what is done with them, and know how many cells lie before them.

Ordinary code runs on them unchanged:

>>> tally = Tally()
>>> a, b, c = counting([2.0, 3.0, 4.0], tally)
>>> a * b + c, tally.multiplies, tally.adds
(Number(10.0), 1, 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass
class Tally:
    """How often each kind of operation was done; a subtraction is an add, a change of sign is nothing."""

    multiplies: int = 0
    adds: int = 0
    exponentials: int = 0
    divisions: int = 0
    functions: int = 0
    comparisons: int = 0
    numbers: list[Number] = field(default_factory=list["Number"], repr=False)  # all, in the order of making


class Number:
    """A value, the cells before it, and what it was made of."""

    __slots__ = ("level", "made_by", "parents", "tally", "value")

    def __init__(
        self,
        value: float,
        tally: Tally,
        made_by: str = "given",
        parents: tuple[Scalar, ...] = (),
    ) -> None:
        self.value = value
        self.tally = tally
        self.made_by = made_by
        self.parents = parents
        self.level: int = max((level(parent) for parent in parents), default=0)
        tally.numbers.append(self)

    def __repr__(self) -> str:
        return f"Number({self.value})"

    def __add__(self, other: Scalar) -> Number:
        self.tally.adds += 1
        return Number(self.value + value(other), self.tally, "+", (self, other))

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Number:
        self.tally.adds += 1
        return Number(self.value - value(other), self.tally, "-", (self, other))

    def __rsub__(self, other: float) -> Number:
        self.tally.adds += 1
        return Number(other - self.value, self.tally, "-", (other, self))

    def __neg__(self) -> Number:
        return Number(-self.value, self.tally, "-", (0.0, self))

    def __mul__(self, other: Scalar) -> Number:
        self.tally.multiplies += 1
        return Number(self.value * value(other), self.tally, "*", (self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Number:
        self.tally.divisions += 1
        return Number(self.value / value(other), self.tally, "/", (self, other))

    def __rtruediv__(self, other: float) -> Number:
        self.tally.divisions += 1
        return Number(other / self.value, self.tally, "/", (other, self))

    def __lt__(self, other: Scalar) -> bool:
        self.tally.comparisons += 1
        return self.value < value(other)

    def __le__(self, other: Scalar) -> bool:
        self.tally.comparisons += 1
        return self.value <= value(other)

    def __gt__(self, other: Scalar) -> bool:
        self.tally.comparisons += 1
        return self.value > value(other)

    def __ge__(self, other: Scalar) -> bool:
        self.tally.comparisons += 1
        return self.value >= value(other)


Scalar: TypeAlias = Number | float


def value(number: Scalar) -> float:
    """The float of a number; a float is its own."""
    return number.value if isinstance(number, Number) else number


def level(number: Scalar) -> int:
    """The cells on the critical path to a number; 0 for what was given."""
    return number.level if isinstance(number, Number) else 0


def _bell(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _below(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


# What each function gives for x, and its slope there
FUNCTIONS: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "tanh": (math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda x: 1 / (2 + math.exp(x) + math.exp(-x))),
    "relu": (lambda x: max(x, 0.0), lambda x: float(x > 0)),
    "gelu": (lambda x: x * _below(x), lambda x: _below(x) + x * _bell(x)),
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
}


def apply(name: str, x: Scalar) -> Scalar:
    """One function of one number: tanh, sigmoid, relu, gelu or sqrt."""
    if not isinstance(x, Number):
        return FUNCTIONS[name][0](x)
    x.tally.functions += 1
    return Number(FUNCTIONS[name][0](x.value), x.tally, name, (x,))


def exp(x: Scalar) -> Scalar:
    """E to the power of a number."""
    if not isinstance(x, Number):
        return math.exp(x)
    x.tally.exponentials += 1
    return Number(math.exp(x.value), x.tally, "exp", (x,))


def numbers(nested: Any) -> Iterator[Number]:
    """Every number in lists of lists, or in the values of a table of them; plain floats are constants."""
    if isinstance(nested, Number):
        yield nested
    elif isinstance(nested, dict):
        yield from numbers(nested.values())
    elif isinstance(nested, Iterable):
        for part in nested:
            yield from numbers(part)


def counting(nested: Any, tally: Tally) -> Any:
    """The same lists with a number of this tally in place of each float."""
    if isinstance(nested, dict):
        return {name: counting(part, tally) for name, part in nested.items()}
    if isinstance(nested, float):
        return Number(nested, tally)
    return [counting(part, tally) for part in nested]


def floats(nested: Any) -> Any:
    """The same lists with a float in place of each number."""
    return value(nested) if isinstance(nested, Number | float) else [floats(part) for part in nested]


def unit(values: Sequence[Any], after: Any = ()) -> Any:
    """The same values, marked as what one cell gives: one level above all that any of them was made of.

    The cell also waits for the numbers of `after`, which it does not read.
    """
    done = 1 + max((number.level for number in numbers([values, after])), default=0)

    def mark(part: Any) -> Any:
        if isinstance(part, Number):
            part = Number(part.value, part.tally, "same", (part,))
            part.level = done
            return part
        return part if isinstance(part, float) else [mark(each) for each in part]

    return mark(values)


def depth(nested: Any) -> int:
    """The sequential depth: cells on the critical path to all of these."""
    return max((number.level for number in numbers(nested)), default=0)
