"""count: how many (query, key) pairs a rule attends, as a formula and at numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from lattend.errors import LattendError, NoClosedForm, NotAffineError
from lattend.web.copies import call, command, python, show
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.panels.read import examples
from lattend.web.rules import numbers_of, read

if TYPE_CHECKING:
    from lattend.counts import Count
    from lattend.rules import Rule


class CountQuestion(Question):
    """A rule, and the numbers given so far."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)


class CountAnswer(Answer):
    """The closed form, or why there is none, and where it is defined.

    `partly` is the form with the numbers given so far. Once every letter has one, `value` is the count in
    digits with commas, and `share` its percentage of all pairs, of which there are `dense`. Of a rule without
    a closed form it is there at once, with the numbers of `examples` for letters that have none.
    """

    formula: Formula | None
    no_formula: str
    domain: str
    partly: Formula | None
    value: str
    examples: dict[str, int]
    dense: str
    share: str


def answer(question: CountQuestion) -> CountAnswer:
    """The exact number of attended pairs in closed form, with the places where it holds."""
    from lattend.report.numbers import percent

    rule = read(question.rule)
    numbers = numbers_of(rule, question.numbers)
    bound = rule.at(**numbers)
    closed, reason = _closed(rule)
    drawn: dict[str, int] = {}
    if reason is not None and bound.free:
        if not isinstance(reason, NotAffineError):
            raise reason
        drawn = examples(rule, bound.free)
        numbers = {**numbers, **drawn}
        bound = rule.at(**numbers)
    shown = None if closed is None else formula(closed)
    found = closed
    if numbers or closed is None:
        try:
            found = bound.count()
        except (NoClosedForm, NotAffineError):  # numbers may take too many cases; the form in letters stands
            if closed is None:
                raise
    value = found if isinstance(found, int) else None
    dense = 0 if value is None else bound.dense
    return CountAnswer(
        formula=shown,
        no_formula="" if reason is None else reason.reason,
        domain="" if closed is None or isinstance(closed, int) else closed.domain_text,
        partly=formula(found) if found is not None and found is not closed and value is None else None,
        value="" if value is None else f"{value:,}",
        examples=drawn,
        dense=f"{dense:,}" if dense else "",
        share=percent(value, dense) if value is not None and dense else "",
        copies=Copies(
            python=python(call("rule = lt.rule", question.rule), show("rule.count", **numbers)),
            command=command("count", question.rule, at=numbers),
            latex="" if shown is None else shown.latex,
        ),
    )


def _closed(rule: Rule) -> tuple[Count | int, None] | tuple[None, LattendError]:
    """The closed form, or why there is none."""
    try:
        return rule.count(), None
    except (NoClosedForm, NotAffineError) as reason:
        return None, reason


PANEL = Panel("count", "How many pairs a rule attends", answer, first=True)
