"""same: whether two rules attend the same pairs, where they first differ, and how much they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from lattend.errors import LattendError
from lattend.web.copies import call, command, python
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.rules import numbers_of, read

if TYPE_CHECKING:
    from lattend.rules import Rule
    from lattend.sets.compare import Witness


class SameQuestion(Question):
    """Two rules; numbers of parameters are put in, those of sizes only give the counts a value."""

    rule: str
    other: str
    numbers: Numbers = Field(default_factory=dict)


class FirstDifference(BaseModel):
    """The smallest pair that only one of the rules has."""

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
    """Whether the sets are the same for all numbers left open, and the counts of their parts."""

    same: bool
    at: dict[str, int]
    first: FirstDifference | None
    parts: list[SharedCount]


def answer(question: SameQuestion) -> SameAnswer:
    """Whether two rules are the same, for all sizes and for all parameters that have no number."""
    rule, other = read(question.rule), read(question.other)
    at = _parameters(rule, question.numbers) | _parameters(other, question.numbers)
    left, right = (one.at(**_parameters(one, question.numbers)) for one in (rule, other))
    witness = left.difference(right)
    bound = [_bound(name, one, question.numbers) for name, one in (("rule", rule), ("other", other))]
    parts = {"both": left & right}
    if witness is not None:
        parts |= {"rule": left - right, "other": right - left}
    return SameAnswer(
        same=witness is None,
        at=at,
        first=None if witness is None else _first(witness, left),
        parts=[_counted(whose, part, question.numbers) for whose, part in parts.items()],
        copies=Copies(
            python=python(
                call("rule = lt.rule", question.rule),
                call("other = lt.rule", question.other),
                f"{bound[0]}.difference({bound[1]})",
            ),
            command=command("same", question.rule, question.other),
        ),
    )


def _parameters(rule: Rule, numbers: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in numbers_of(rule, numbers).items() if name in rule.parameters}


def _bound(name: str, rule: Rule, numbers: Mapping[str, int]) -> str:
    given = _parameters(rule, numbers)
    return call(f"{name}.at", **given) if given else name


def _first(witness: Witness, left: Rule) -> FirstDifference:
    pair = dict(zip(left.positions, witness.pair, strict=True))
    values = {name: value for name, value in witness.values.items() if name in left.free}
    mine = left.contains(*witness.pair, **values)
    return FirstDifference(numbers=witness.values, pair=pair, rule="rule" if mine else "other")


def _counted(whose: str, part: Rule, numbers: Mapping[str, int]) -> SharedCount:
    sizes = numbers_of(part, numbers)
    value, why, closed = "", "", None
    try:
        found = part.count(**sizes) if sizes else part.count()
        value = f"{found:,}" if isinstance(found, int) else ""
        closed = formula(part.count())
    except LattendError as reason:
        why = str(reason)
    return SharedCount(whose=whose, formula=closed, value=value, why=why)


PANEL = Panel("same", "Whether two rules are the same", SameQuestion, SameAnswer, answer)
