"""count: how many (query, key) pairs a rule attends, as a formula and at numbers."""

from __future__ import annotations

from pydantic import Field

from lattend.web.copies import call, command, python
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.rules import numbers_of, read


class CountQuestion(Question):
    """A rule, the numbers given so far, and what is counted: all pairs, or per "query" or "key"."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)
    per: str = ""


class CountAnswer(Answer):
    """The closed form; `value` is the number once every letter has one, in digits with commas."""

    formula: Formula
    value: str
    domain: str


def answer(question: CountQuestion) -> CountAnswer:
    """The exact number of attended pairs in closed form, with the places where it holds."""
    rule = read(question.rule)
    numbers = numbers_of(rule, question.numbers)
    found = rule.at(**numbers).count(per=question.per or None)
    number = isinstance(found, int)
    closed = rule.count(per=question.per or None) if number else found
    return CountAnswer(
        formula=formula(closed),
        value=f"{found:,}" if number else "",
        domain="" if isinstance(closed, int) else closed.domain_text,
        copies=Copies(
            python=python(
                call("rule = lt.rule", question.rule),
                call("rule.count", per=question.per, **numbers),
            ),
            command=command("count", question.rule, at=numbers, per=question.per),
            latex="" if isinstance(closed, int) else closed.latex(),
        ),
    )


PANEL = Panel("count", "How many pairs a rule attends", CountQuestion, CountAnswer, answer)
