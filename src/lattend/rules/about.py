"""About: what the catalogue says of a rule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """What the catalogue says of a rule: its name, meaning, source, and how many keys it admits.

    `aliases` are names that are read as well, with what their numbers are here; `elsewhere` is what other
    libraries call the rule, with their numbers in our letters. `common` is what most people call it, where
    that is not its name.
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
