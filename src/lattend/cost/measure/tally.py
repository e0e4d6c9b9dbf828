"""Tally: the operations that a torch operator does, by kind; multiply-adds in three columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from torch import Tensor

from lattend.cost.result import Counted, MultiplyAdds
from lattend.report.data import Data

KINDS = ("multiplies", "adds", "divisions", "exponentials", "functions", "comparisons")


@dataclass(frozen=True, slots=True)
class Tally(Data):
    """Multiply-adds of products needed, executed and dense; then what is done beside the products.

    `needed` are those of attended pairs, without multiplies by padding; `executed` those of the whole tiles
    that run; `dense` what a tool that ignores the mask reports. A function is one evaluation of tanh, σ,
    relu, gelu, √ and the like.

    >>> Tally(needed=6, executed=8, dense=16) + Tally.of(4) + Tally(adds=1)
    Tally(needed=10, executed=12, dense=20, multiplies=0, adds=1, divisions=0, exponentials=0, functions=0, comparisons=0)
    """  # noqa: E501

    JSON = "multiply_adds others"

    needed: int = 0
    executed: int = 0
    dense: int = 0
    multiplies: int = 0
    adds: int = 0
    divisions: int = 0
    exponentials: int = 0
    functions: int = 0
    comparisons: int = 0

    @classmethod
    def of(cls, multiply_adds: int, **others: int) -> Tally:
        """Products in which every multiply-add is needed."""
        return cls(multiply_adds, multiply_adds, multiply_adds, **others)

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in NAMES))

    def __mul__(self, times: int) -> Tally:
        return Tally(*(getattr(self, name) * times for name in NAMES))

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in NAMES)

    @property
    def multiply_adds(self) -> Counted:
        """The three columns."""
        return MultiplyAdds(self.needed, self.executed, self.dense)

    @property
    def others(self) -> dict[str, int]:
        """The operations beside products, by kind."""
        return {name: getattr(self, name) for name in KINDS if getattr(self, name)}


NAMES = tuple(field.name for field in fields(Tally))
NOTHING = Tally()


class Operation(NamedTuple):
    """An operator's name without its namespace, overload and trailing underscore; what it got and gave."""

    name: str
    given: Mapping[str, Any]
    out: Any

    @property
    def first(self) -> Tensor:
        """The first tensor it was given."""
        return next(tensors(self.given.values()))

    @property
    def result(self) -> Tensor:
        """The first tensor it gave."""
        return next(tensors([self.out]))

    @property
    def floating(self) -> bool:
        """Whether numbers that are no integers are among what it got or gave."""
        return any(x.is_floating_point() or x.is_complex() for x in tensors([*self.given.values(), self.out]))


def operation(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> Operation:
    """The call of an OpOverload; arguments that were left out are missing."""
    names = [argument.name for argument in func._schema.arguments]
    return Operation(short_name(func), {**dict(zip(names, args, strict=False)), **kwargs}, out)


def short_name(func: Any) -> str:
    """`add` for aten::add_.Tensor."""
    name = func._schema.name.partition("::")[2]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def tensors(values: Any) -> Iterator[Tensor]:
    """The tensors among values, in lists and tuples too."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors(value)
