"""One line of the catalogue: a text with its meaning, its domain and the numbers given so far."""

from __future__ import annotations

from dataclasses import replace

from lattend.budget import UNLIMITED
from lattend.rules.rule import About, Rule, rule


def entry(text: str, about: About, *, where: str | None = None, **given: int | None) -> Rule:
    """The rule of this text; parameters that are None stay symbolic. Tests know that its sets are quick."""
    plain = replace(rule(text, where=where), about=about, budget=UNLIMITED)
    return plain.at(**{name: value for name, value in given.items() if value is not None})
