"""Vectors and matrices as lists of numbers: sums and products with one operation where there is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from lattend.cost.reference.numbers import FUNCTIONS, CountingNumber, Scalar, apply
from lattend.errors import NamingError

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
    """So many parts of one size: the gates that are stacked in a vector.

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
