"""docs/notation.md says what the catalogue says: conditions, parameters, keys."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from lattend.rules import CATALOGUE, Rule
from lattend.rules.language.evaluation import evaluate_term
from lattend.rules.language.parser import parse, parse_term

PAGE = (Path(__file__).parents[2] / "docs" / "notation.md").read_text(encoding="utf-8")
# `strided(t)` | `k <= q and q - k <= t` | `t + 1`
ROWS = re.findall(r"^\| `(\w+)\((.*?)\)` \| `(.*?)` \| `(.*?)` \|$", PAGE, re.MULTILINE)
LETTERS = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)))
VALUES = {"t": 2, "w": 3, "shift": 1, "r": 1, "step": 2, "before": 3, "after": 2, "l": 4, "c": 2, "g": 2,
          "p": 5, "s": 2, "n": 60, "rows": 11, "cols": 12}  # fmt: skip
MIDDLE = {"q": 30, "qy": 5, "qx": 6}


def _rule(name: str, arguments: str) -> Rule:
    """The rule of a row; a neighbourhood has a step only where one is asked for."""
    return (
        CATALOGUE[name](step="step")
        if (name, arguments) == ("neighbourhood", "r, step")
        else CATALOGUE[name]()
    )


def test_every_rule_has_its_row() -> None:
    assert list(dict.fromkeys(name for name, *_ in ROWS)) == [
        name for name in CATALOGUE if name != "documents"
    ]
    assert "| `documents(lengths)` | `doc[q] == doc[k]` |" in PAGE


@pytest.mark.parametrize(("name", "arguments", "condition", "keys"), ROWS)
def test_a_row_is_the_rule(name: str, arguments: str, condition: str, keys: str) -> None:
    rule = _rule(name, arguments)
    named = arguments.split(", ") if arguments else []
    assert parse(condition) == rule.condition
    assert sorted(named) == sorted(rule.parameters)
    assert set(named) <= set(LETTERS)  # each has a line of its own
    assert list(inspect.signature(CATALOGUE[name]).parameters)[: len(named)] == named
    values = {letter: VALUES[letter] for letter in rule.sizes + rule.parameters}
    query = {axis.query: MIDDLE[axis.query] for axis in rule.axes}
    seen = rule.mask(**values)[tuple(query.values())].sum()
    assert evaluate_term(parse_term(keys), {**values, **query}, {}) == seen
