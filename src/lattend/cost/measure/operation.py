"""Operation: one call of a torch operator, with its arguments by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor


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
