"""keys: how many keys each query attends, and how many queries attend each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from lattend.errors import NoClosedForm, NotAffineError
from lattend.web.copies import call, command, python, show
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.rules import numbers_of, read

if TYPE_CHECKING:
    from lattend.rules import Rule


class KeysQuestion(Question):
    """A rule, and the numbers given so far."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)


class KeysAnswer(Answer):
    """Formulas in the position of the query, and in that of the key."""

    per_query: Formula
    per_key: Formula


def answer(question: KeysQuestion) -> KeysAnswer:
    """The keys of one query and the queries of one key, as formulas in its position, from 0."""
    from lattend.report.latex import named

    rule = read(question.rule)
    numbers = numbers_of(rule, question.numbers)
    bound = rule.at(**numbers)
    (per_query, in_query), (per_key, in_key) = (_formula(rule, bound, per) for per in ("query", "key"))
    given = {"query": numbers if in_query else {}, "key": numbers if in_key else {}}
    return KeysAnswer(
        per_query=per_query,
        per_key=per_key,
        copies=Copies(
            python=python(
                call("rule = lt.rule", question.rule),
                *(show("rule.count", per=per, **at) for per, at in given.items()),
            ),
            command="\n".join(command("count", question.rule, at=at, per=per) for per, at in given.items()),
            latex=named((("keys of a query", per_query.latex), ("queries of a key", per_key.latex))),
        ),
    )


def _formula(rule: Rule, bound: Rule, per: str) -> tuple[Formula, bool]:
    """The formula, and whether the numbers are put in: not where that would take too many cases."""
    try:
        return formula(bound.count(per=per, method="closed")), True
    except (NoClosedForm, NotAffineError):
        return formula(rule.count(per=per, method="closed")), False


PANEL = Panel("keys", "Keys of a query, queries of a key", answer)
