"""A rule as a page has it: its text, and numbers for letters of this rule or of one typed before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lattend.rules import Rule


def read(text: str) -> Rule:
    """The rule that a text means."""
    from lattend.rules.reader import read_rule

    return read_rule(text)


def numbers_of(rule: Rule, numbers: Mapping[str, int]) -> dict[str, int]:
    """The numbers of letters that the rule has and that are open; the page keeps the others for later."""
    return {name: numbers[name] for name in rule.free if name in numbers}
