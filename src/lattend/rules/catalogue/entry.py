"""One line of the catalogue: a text with its meaning, its domain and the numbers given so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
    bare = Rule.of(parse(text), where=parse(where), data=data, source=text)
    plain = replace(bare, about=about, budget=UNLIMITED)
    return plain.at(**{name: value for name, value in given.items() if value is not None})
