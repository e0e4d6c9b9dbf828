"""Numbers that count what is done with them and know the cells before them; vectors and gradients of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from lattend.errors import NamingError


@dataclass
class CountingTape:
    """How often each kind of operation was done; a subtraction is an add, a change of sign is nothing.

    >>> tape = CountingTape()
    >>> a, b, c = counting([2.0, 3.0, 4.0], tape)  # ordinary code runs on these numbers unchanged
    >>> a * b + c, tape.multiplies, tape.adds
    (CountingNumber(10.0), 1, 1)
    """

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


@dataclass
class Backward:
    """The operations of a backward pass, and the gradient of each number."""

    tape: CountingTape
    gradients: dict[CountingNumber, float]

    def of(self, nested: Any) -> Any:
        """The gradients of lists of numbers, as lists; 0 where none arrived."""
        if isinstance(nested, CountingNumber):
            return self.gradients.get(nested, 0.0)
        return [self.of(part) for part in nested]

    def give(self, to: Scalar, gradient: float) -> None:
        """Add to the gradient of a number; constants take none."""
        if not isinstance(to, CountingNumber):
            return
        if to in self.gradients:
            self.tape.adds += 1
            gradient += self.gradients[to]
        self.gradients[to] = gradient


def backward(outputs: Any, seeds: Sequence[float] | None = None) -> Backward:
    """Gradients of all numbers of a run, those of its outputs given (1 unless said); constants get none.

    Back through a*b of two numbers is 2 multiplies, of a number and a constant 1; through exp 1 multiply;
    through a/b a division for a, a multiply and a division for b; through a function a multiply and a
    function, its slope. Where several gradients meet they are added: one add less than there are. Every
    operation of the run is gone back through; where no output needs it the gradient is a given 0.

    >>> a, b = counting([2.0, 3.0], CountingTape())
    >>> back = backward([a * b + a])  # a is met twice: one add
    >>> back.of([a, b]), back.tape.multiplies, back.tape.adds
    ([4.0, 2.0], 2, 1)
    """
    ends = list(numbers(outputs))
    back = Backward(CountingTape(), {})
    for end, seed in zip(ends, seeds or [1.0] * len(ends), strict=True):
        back.give(end, seed)
    for number in reversed(ends[0].tape.numbers):
        if number.parents and (number in back.gradients or number.made_by != "same"):
            _go_back(number, back.gradients.get(number, 0.0), back)
    return back


def _go_back(number: CountingNumber, gradient: float, back: Backward) -> None:
    tape, (first, second) = back.tape, (*number.parents, 0.0)[:2]
    match number.made_by:
        case "same":
            back.give(first, gradient)
        case "+":
            back.give(first, gradient)
            back.give(second, gradient)
        case "-":
            back.give(first, gradient)
            back.give(second, -gradient)
        case "*":
            for one, other in (first, second), (second, first):
                if isinstance(one, CountingNumber):
                    tape.multiplies += 1
                    back.give(one, gradient * value(other))
        case "/":
            if isinstance(first, CountingNumber):
                tape.divisions += 1
                back.give(first, gradient / value(second))
            if isinstance(second, CountingNumber):
                tape.multiplies += 1
                tape.divisions += 1
                back.give(second, -gradient * value(number) / value(second))
        case "exp":
            tape.multiplies += 1
            back.give(first, gradient * value(number))
        case name:
            tape.multiplies += 1
            tape.functions += 1
            back.give(first, gradient * FUNCTIONS[name][1](value(first)))


Vector: TypeAlias = list[Scalar]
Matrix: TypeAlias = list[Vector]
Weights: TypeAlias = dict[str, Any]


def total(values: Iterable[Scalar]) -> Scalar:
    """The sum: one add less than there are values."""
    first, *rest = values
    for each in rest:
        first = first + each
    return first


def dot(left: Sequence[Scalar], right: Sequence[Scalar]) -> Scalar:
    """The sum of products, entry by entry.

    >>> dot([1.0, 2.0], [3.0, 4.0])  # 1*3 + 2*4
    11.0
    """
    return total(a * b for a, b in zip(left, right, strict=True))


def times(matrix: Matrix, vector: Sequence[Scalar]) -> Vector:
    """A matrix times a vector: one dot product a row."""
    return [dot(row, vector) for row in matrix]


def plus(left: Vector, right: Vector) -> Vector:
    """Two vectors added."""
    return [a + b for a, b in zip(left, right, strict=True)]


def by_entry(left: Vector, right: Vector) -> Vector:
    """Two vectors multiplied entry by entry."""
    return [a * b for a, b in zip(left, right, strict=True)]


def each(function: str, vector: Vector) -> Vector:
    """A function of every entry."""
    return [apply(function, x) for x in vector]


def zeros(like: Scalar, size: int) -> Vector:
    """Zeros that are counted wherever `like` is."""
    return [CountingNumber(0.0, like.tape) if isinstance(like, CountingNumber) else 0.0 for _ in range(size)]


def blocks(vector: Vector, count: int) -> list[Vector]:
    """Parts of equal size: the gates that are stacked in a vector.

    >>> blocks([1.0, 2.0, 3.0, 4.0], 2)
    [[1.0, 2.0], [3.0, 4.0]]
    """
    size = len(vector) // count
    return [vector[size * index : size * (index + 1)] for index in range(count)]


def part(weights: Weights, name: str) -> Weights:
    """The weights of one part of a layer: "norm1" of {"norm1.weight": …} is {"weight": …}."""
    return {key[len(name) + 1 :]: each for key, each in weights.items() if key.startswith(name + ".")}


def check_function(name: str) -> None:
    """Raise where no function has this name."""
    if name not in FUNCTIONS:
        raise NamingError(f"activation is one of {', '.join(FUNCTIONS)}, not {name!r}")
