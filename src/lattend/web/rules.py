"""A rule as a page has it: its text, and numbers for letters of this rule or of one typed before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lattend.rules import Rule

SECONDS = 2.5  # of set work; an answer may take twice as long


@lru_cache(maxsize=256)
def read(text: str) -> Rule:
    """Read a rule. Its set work gets more time than elsewhere, since a server is busy."""
    from lattend.budget import Budget
    from lattend.rules.reader import read_rule

    return replace(read_rule(text), budget=Budget(SECONDS))


def numbers_of(rule: Rule, numbers: Mapping[str, int]) -> dict[str, int]:
    """The numbers of the rule's open letters; those of other letters belong to an earlier rule."""
    return {name: numbers[name] for name in rule.free if name in numbers}
