"""Results as plain data that JSON can hold: their declared attributes, read by one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, ClassVar, cast


class Data:
    """A result with JSON: the attributes that it declares, or all fields of its dataclass.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Side(Data):
    ...     JSON = "length even=is_even"
    ...     length: int
    ...
    ...     @property
    ...     def is_even(self):
    ...         return self.length % 2 == 0
    >>> Side(4).json()
    {'length': 4, 'even': True}
    """

    __slots__ = ()
    JSON: ClassVar[str] = ""  # names of attributes; `key=attribute` where the key is another, a.b of a part

    def json(self) -> dict[str, Any]:
        """The result as plain data that JSON can hold."""
        return _declared_data(self)


def _declared_data(result: Any) -> dict[str, Any]:
    """What the class declares in JSON, or else all fields."""
    names: list[str] = getattr(result, "JSON", "").split() or [field.name for field in fields(result)]
    pairs = (name.partition("=") for name in names)
    return {key: plain_data(_attribute(result, name or key)) for key, _, name in pairs}


def _attribute(result: object, name: str) -> Any:
    return bool(result) if name == "__bool__" else attrgetter(name)(result)


def plain_data(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries alone; arrays as lists, and formulas as texts.

    >>> plain_data({"size": (2, 3), "none": None})
    {'size': [2, 3], 'none': None}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "json"):
        return value.json()
    if hasattr(value, "_asdict"):
        return plain_data(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain_data(held) for key, held in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, Sequence | Set):
        return [plain_data(part) for part in cast(Sequence[Any], value)]
    if is_dataclass(value):
        return _declared_data(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)
