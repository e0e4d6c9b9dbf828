"""One line of the catalogue: a text with its meaning, its domain and the numbers given so far."""

from __future__ import annotations

from dataclasses import replace

from lattend.rules.rule import About, Rule, rule


def entry(text: str, about: About, *, where: str | None = None, **given: int | None) -> Rule:
    """The rule of this text; parameters that are None stay symbolic."""
    plain = replace(rule(text, where=where), about=about)
    return plain.at(**{name: value for name, value in given.items() if value is not None})
