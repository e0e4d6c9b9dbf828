"""An entry of the catalogue: what is known about a rule, and the rule of its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from lattend.budget import UNLIMITED
from lattend.rules.language.parser import parse
from lattend.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """What the catalogue says about a rule: its name, meaning, source, and how many keys a query has.

    `aliases` are other names that are read too, with their numbers in our letters; `elsewhere` is what other
    libraries call the rule. `common` is what most people call it, where that is not its name.
    """

    name: str
    meaning: str
    keys: str
    reference: str
    aliases: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    common: str = ""

    @property
    def alias_names(self) -> list[str]:
        """The aliases without their numbers."""
        return [alias.partition("(")[0] for alias in self.aliases]


def entry(
    text: str,
    about: RuleInfo,
    *,
    where: str = "true",
    data: Mapping[str, Any] | None = None,
    **parameters: int | None,
) -> Rule:
    """Returns the rule of a text; a parameter that is None stays symbolic, an array that is None comes later.

    Its set work has no time limit: tests show that it is quick.
    """
    numbers = {name: value for name, value in parameters.items() if value is not None}
    if data is None and all(type(value) is int for value in numbers.values()):  # True is no 1
        return _known(text, about, where, tuple(numbers.items()))
    return _made(text, about, where, data).at(**numbers)


@lru_cache(maxsize=256)
def _known(text: str, about: RuleInfo, where: str, numbers: tuple[tuple[str, int], ...]) -> Rule:
    """A rule without arrays, which is the same each time: people write lt.rules.causal() where they call."""
    return _made(text, about, where, None).at(**dict(numbers))


def _made(text: str, about: RuleInfo, where: str, data: Mapping[str, Any] | None) -> Rule:
    return replace(
        Rule.of(parse(text), where=parse(where), data=data, source=text), about=about, budget=UNLIMITED
    )
