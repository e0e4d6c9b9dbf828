"""same: whether two rules attend the same pairs, where they first differ, and how much they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from lattend.errors import LattendError, NoClosedForm
from lattend.web.copies import call, command, python
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.panels.draw import drawn_at, rules_of
from lattend.web.rules import numbers_of, read

if TYPE_CHECKING:
    from lattend.rules import Rule
    from lattend.sets.compare import Witness


WHOSE = {"both": "both", "rule": "only the first", "other": "only the second"}
SECONDS = 3.0  # for all counts of two rules together


class SameQuestion(Question):
    """Two rules; numbers of parameters are put in, those of sizes only give the counts a value."""

    rule: str
    other: str
    numbers: Numbers = Field(default_factory=dict)


class FirstDifference(BaseModel):
    """The first pair that only one of the rules has, and the numbers at which it does."""

    numbers: dict[str, int]
    pair: dict[str, int]
    rule: str  # "rule" or "other", whose it is


class SharedCount(BaseModel):
    """So many pairs are attended by both or by one only; no formula where there is none, which `why` says."""

    whose: str  # "both", "rule" or "other"
    formula: Formula | None
    value: str
    why: str


class SameAnswer(Answer):
    """Whether the sets are the same for all numbers left open; `at` are those that were put in.

    `first` is the difference at the smallest numbers, `here` the one at those of the page's grid, which are
    `drawn`: None where they are the same there.
    """

    same: bool
    at: dict[str, int]
    first: FirstDifference | None
    here: FirstDifference | None
    drawn: dict[str, int]


class SharedAnswer(Answer):
    """The counts of the parts of two rules."""

    parts: list[SharedCount]


def answer(question: SameQuestion) -> SameAnswer:
    """Whether two rules are the same, for all sizes and for all parameters that have no number."""
    from lattend.draw.grid.bind import bound
    from lattend.report.latex import escape

    left, right = _bound(question)
    if left.data or right.data:
        raise NoClosedForm(
            "rules that look up data can be compared at given numbers only: the grid shows where they differ"
        )
    witness = left.difference(right)
    here, drawn = None, dict[str, int]()
    if witness is not None:
        rules = rules_of(question.rule, question.other)
        drawn = drawn_at(rules, question.numbers)
        a, b = bound(rules, drawn)
        pair = a.difference(b)
        here = None if pair is None else _first(pair, a)
    given = _given(question)
    return SameAnswer(
        same=witness is None,
        at={**left.values, **right.values},
        first=None if witness is None else _first(witness, left),
        here=here,
        drawn=drawn,
        copies=Copies(
            latex=escape("the same pairs, always" if witness is None else f"different: {witness}"),
            python=_python(question, "print(rule.difference(other) or 'the same pairs, always')"),
            command=command("same", question.rule, question.other, at=given),
        ),
    )


def shared(question: SameQuestion) -> SharedAnswer:
    """How many pairs both rules attend, and how many only one of them."""
    from lattend.budget import Budget
    from lattend.report.latex import named

    given = _given(question)
    left, right = (replace(one.baked(), values={}) for one in _bound(question))
    parts = {"both": left & right, "rule": left - right, "other": right - left}
    allowed = Budget(SECONDS).shared()
    counts = [
        _counted(whose, replace(part, budget=allowed), question.numbers) for whose, part in parts.items()
    ]
    return SharedAnswer(
        parts=counts,
        copies=Copies(
            latex=named((WHOSE[one.whose], one.formula.latex) for one in counts if one.formula),
            python=_python(
                question,
                *(["rule, other = rule.baked(), other.baked()"] if given else []),
                "for part in (rule & other, rule - other, other - rule):",
                "    print(part.count())",
            ),
            command=command("same", question.rule, question.other, at=given, count=True),
        ),
    )


def _bound(question: SameQuestion) -> list[Rule]:
    """Both rules with the numbers of their parameters."""
    rules = (read(question.rule), read(question.other))
    return [rule.at(**_parameters(rule, question.numbers)) for rule in rules]


def _given(question: SameQuestion) -> dict[str, int]:
    """The numbers of the parameters of both rules."""
    texts = (question.rule, question.other)
    return {
        name: value for text in texts for name, value in _parameters(read(text), question.numbers).items()
    }


def _python(question: SameQuestion, *lines: str) -> str:
    made: list[str] = []
    for name, text in (("rule", question.rule), ("other", question.other)):
        given = _parameters(read(text), question.numbers)
        made.append(call(f"{name} = lt.rule", text) + (call(".at", **given) if given else ""))
    return python(*made, *lines)


def _parameters(rule: Rule, numbers: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in numbers_of(rule, numbers).items() if name in rule.parameters}


def _first(witness: Witness, left: Rule) -> FirstDifference:
    pair = dict(zip(left.positions, witness.pair, strict=True))
    values = {name: value for name, value in witness.values.items() if name in left.free}
    mine = left.contains(*witness.pair, **values)
    return FirstDifference(numbers=witness.values, pair=pair, rule="rule" if mine else "other")


def _counted(whose: str, part: Rule, numbers: Mapping[str, int]) -> SharedCount:
    sizes = numbers_of(part, numbers)
    value, why, closed = "", "", None
    try:
        found = part.count(**sizes) if sizes else None
        value = f"{found:,}" if isinstance(found, int) else ""
        closed = formula(part.count())
    except LattendError as reason:
        why = "" if value else reason.reason
    return SharedCount(whose=whose, formula=closed, value=value, why=why)


PANEL = Panel("same", "Whether two rules are the same", SameQuestion, SameAnswer, answer, as_typed=True)
SHARED = Panel("shared", "How many pairs two rules share", SameQuestion, SharedAnswer, shared)
