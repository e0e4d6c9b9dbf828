"""A layer as the price page has it: its text, an attention mask, and numbers for its letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from lattend.web.copies import call, python

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

LayerText = Annotated[str, Field(max_length=2000)]


class SizeLetter(BaseModel):
    """A size of a layer that is open, and the number at which its slider stands until it has one."""

    name: str
    example: int


def size_letters(names: Iterable[str]) -> list[SizeLetter]:
    """The letters in the order in which they are written."""
    from lattend.rules.example_numbers import priced_number

    return [SizeLetter(name=name, example=priced_number(name)) for name in names]


@dataclass(frozen=True)
class PricedLayer:
    """The layer with all its letters, and with the numbers of those that have one."""

    open: Cost
    cost: Cost
    given: dict[str, int]

    @property
    def is_number(self) -> bool:
        """Whether every letter has a number."""
        return not self.cost.names


def read_layer(text: str, rule: str, numbers: Mapping[str, int]) -> PricedLayer:
    """The layer that a text means; numbers of letters that it does not have are kept for later."""
    from lattend.cost.reader import from_text

    mask: dict[str, Any] = {"rule": rule} if rule else {}
    whole = from_text(text, mask)
    given = {name: numbers[name] for name in whole.names if name in numbers}
    return PricedLayer(whole, from_text(text, {**given, **mask}) if given else whole, given)


def python_of_layer(text: str, rule: str, given: Mapping[str, int], *lines: str) -> str:
    """Python that reads the layer, and then these lines."""
    mask: dict[str, Any] = {"rule": rule} if rule else {}
    named = {**given, **mask}
    layer = call("layer = from_text", text, *([named] if named else []))
    return python(layer, *lines, imports="from lattend.cost.reader import from_text")
