"""About: what the catalogue says of a rule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """What the catalogue says of a rule: its name, meaning, source, and how many keys it admits."""

    name: str
    meaning: str
    keys: str
    reference: str
