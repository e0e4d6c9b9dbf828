"""A rule as a page has it: its text, and numbers for letters of this rule or of one typed before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from lattend.web.panel import Numbers, Question

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


class RuleQuestion(Question):
    """A rule, and the numbers given so far."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)


class Letter(BaseModel):
    """A size or a parameter: its least number, and the one at which the picture is drawn without any."""

    name: str
    size: bool
    least: int
    example: int
    value: int | None


def letters(rule: Rule) -> list[Letter]:
    """The sizes, then the parameters, each with an example number at which the rule is drawn."""
    from lattend.draw.grid.samples import sample_numbers

    return [
        Letter(
            name=name,
            size=name in rule.sizes,
            least=1 if name in rule.sizes or name in rule.moduli else 0,
            example=example,
            value=rule.values.get(name),
        )
        for name, example in sample_numbers(rule).items()
    ]


def examples(rule: Rule, names: Iterable[str]) -> dict[str, int]:
    """The example numbers of these letters."""
    wanted = {*names}
    return {letter.name: letter.example for letter in letters(rule) if letter.name in wanted}
