"""Numbers that count what is done with them, and know how many cells lie before them.

Ordinary code runs on them unchanged:

>>> tape = CountingTape()
>>> a, b, c = counting([2.0, 3.0, 4.0], tape)
>>> a * b + c, tape.multiplies, tape.adds
(CountingNumber(10.0), 1, 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast


@dataclass
class CountingTape:
    """How often each kind of operation was done; a subtraction is an add, a change of sign is nothing."""

    multiplies: int = 0
    adds: int = 0
    exponentials: int = 0
    divisions: int = 0
    functions: int = 0
    comparisons: int = 0
    numbers: list[CountingNumber] = field(
        default_factory=list["CountingNumber"], repr=False
    )  # all, in the order of making


class CountingNumber:
    """A value, the cells before it, and what it was made of."""

    __slots__ = ("level", "made_by", "parents", "tape", "value")

    def __init__(
        self,
        value: float,
        tape: CountingTape,
        made_by: str = "given",
        parents: tuple[Scalar, ...] = (),
    ) -> None:
        self.value = value
        self.tape = tape
        self.made_by = made_by
        self.parents = parents
        self.level: int = max((level(parent) for parent in parents), default=0)
        tape.numbers.append(self)

    def __repr__(self) -> str:
        return f"CountingNumber({self.value})"

    def __add__(self, other: Scalar) -> CountingNumber:
        self.tape.adds += 1
        return CountingNumber(self.value + value(other), self.tape, "+", (self, other))

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> CountingNumber:
        self.tape.adds += 1
        return CountingNumber(self.value - value(other), self.tape, "-", (self, other))

    def __rsub__(self, other: float) -> CountingNumber:
        self.tape.adds += 1
        return CountingNumber(other - self.value, self.tape, "-", (other, self))

    def __neg__(self) -> CountingNumber:
        return CountingNumber(-self.value, self.tape, "-", (0.0, self))

    def __mul__(self, other: Scalar) -> CountingNumber:
        self.tape.multiplies += 1
        return CountingNumber(self.value * value(other), self.tape, "*", (self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> CountingNumber:
        self.tape.divisions += 1
        return CountingNumber(self.value / value(other), self.tape, "/", (self, other))

    def __rtruediv__(self, other: float) -> CountingNumber:
        self.tape.divisions += 1
        return CountingNumber(other / self.value, self.tape, "/", (other, self))

    def __lt__(self, other: Scalar) -> bool:
        self.tape.comparisons += 1
        return self.value < value(other)

    def __le__(self, other: Scalar) -> bool:
        self.tape.comparisons += 1
        return self.value <= value(other)

    def __gt__(self, other: Scalar) -> bool:
        self.tape.comparisons += 1
        return self.value > value(other)

    def __ge__(self, other: Scalar) -> bool:
        self.tape.comparisons += 1
        return self.value >= value(other)


Scalar: TypeAlias = CountingNumber | float


def value(number: Scalar) -> float:
    """The float of a number; a float is its own."""
    return number.value if isinstance(number, CountingNumber) else number


def level(number: Scalar) -> int:
    """The cells on the critical path to a number; 0 for what was given."""
    return number.level if isinstance(number, CountingNumber) else 0


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
    if not isinstance(x, CountingNumber):
        return FUNCTIONS[name][0](x)
    x.tape.functions += 1
    return CountingNumber(FUNCTIONS[name][0](x.value), x.tape, name, (x,))


def exp(x: Scalar) -> Scalar:
    """E to the power of a number."""
    if not isinstance(x, CountingNumber):
        return math.exp(x)
    x.tape.exponentials += 1
    return CountingNumber(math.exp(x.value), x.tape, "exp", (x,))


def numbers(nested: Any) -> Iterator[CountingNumber]:
    """Every number in lists of lists, or in the values of a table of them; plain floats are constants."""
    if isinstance(nested, CountingNumber):
        yield nested
    elif isinstance(nested, dict):
        yield from numbers(cast("dict[str, Any]", nested).values())
    elif isinstance(nested, Iterable):
        for part in cast("Iterable[Any]", nested):
            yield from numbers(part)


def counting(nested: Any, tape: CountingTape) -> Any:
    """The same lists with a number of this tape in place of each float."""
    if isinstance(nested, dict):
        return {name: counting(part, tape) for name, part in cast("dict[str, Any]", nested).items()}
    if isinstance(nested, float):
        return CountingNumber(nested, tape)
    return [counting(part, tape) for part in nested]


def floats(nested: Any) -> Any:
    """The same lists with a float in place of each number."""
    return value(nested) if isinstance(nested, CountingNumber | float) else [floats(part) for part in nested]


def unit(values: Sequence[Any], after: Any = ()) -> Any:
    """The same values as what one cell gives: one level above all that any of them was made of.

    The cell also waits for the numbers of `after`, which it does not read.
    """
    done = 1 + max((number.level for number in numbers([values, after])), default=0)

    def raised(part: Any) -> Any:
        if isinstance(part, CountingNumber):
            part = CountingNumber(part.value, part.tape, "same", (part,))
            part.level = done
            return part
        return part if isinstance(part, float) else [raised(each) for each in part]

    return raised(values)


def depth(nested: Any) -> int:
    """The sequential depth: cells on the critical path to all of these."""
    return max((number.level for number in numbers(nested)), default=0)
