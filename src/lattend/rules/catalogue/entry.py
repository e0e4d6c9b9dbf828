"""One line of the catalogue: a text with its meaning, its domain and the numbers given so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lattend.budget import UNLIMITED
from lattend.rules.language.parser import parse
from lattend.rules.rule import About, Rule


def entry(
    text: str,
    about: About,
    *,
    where: str = "true",
    data: Mapping[str, Any] | None = None,
    **given: int | None,
) -> Rule:
    """The rule of this text; parameters that are None stay symbolic, arrays that are None are given later.

    Tests know that its sets are quick.
    """
    numbers = {name: value for name, value in given.items() if value is not None}
    if data is None and all(type(value) is int for value in numbers.values()):  # True is no 1
        return _known(text, about, where, tuple(numbers.items()))
    return _made(text, about, where, data).at(**numbers)


@lru_cache(maxsize=256)
def _known(text: str, about: About, where: str, numbers: tuple[tuple[str, int], ...]) -> Rule:
    """A rule without arrays, which is the same each time: people write lt.rules.causal() where they call."""
    return _made(text, about, where, None).at(**dict(numbers))


def _made(text: str, about: About, where: str, data: Mapping[str, Any] | None) -> Rule:
    return replace(
        Rule.of(parse(text), where=parse(where), data=data, source=text), about=about, budget=UNLIMITED
    )
