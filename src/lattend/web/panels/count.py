"""count, keys, growth: how many pairs a rule attends, how many a query has, and how that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.cli.count import CountCommand
from lattend.errors import LattendError, NoClosedForm, NotAffineError
from lattend.web.panel import Answer, Panel, Question
from lattend.web.rules import RuleQuestion, examples, numbers_of, read
from lattend.web.snippets import call, command, show, snippets
from lattend.web.views import Formula, Piece, formula

if TYPE_CHECKING:
    from lattend.counts import Count
    from lattend.rules import Rule


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


def answer_count(question: RuleQuestion) -> CountAnswer:
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
    count = closed
    if numbers or closed is None:
        try:
            count = bound.count()
        except (NoClosedForm, NotAffineError):  # numbers may take too many cases; the form in letters stands
            if closed is None:
                raise
    value = count if isinstance(count, int) else None
    dense = 0 if value is None else bound.dense
    return CountAnswer(
        formula=shown,
        no_formula="" if reason is None else reason.reason,
        domain="" if closed is None or isinstance(closed, int) else closed.domain_text,
        partly=formula(count) if count is not None and count is not closed and value is None else None,
        value="" if value is None else f"{value:,}",
        examples=drawn,
        dense=f"{dense:,}" if dense else "",
        share=percent(value, dense) if value is not None and dense else "",
        copies=snippets(
            call("rule = lt.rule", question.rule),
            show("rule.count", **numbers),
            command=command(CountCommand, question, at=numbers),
            latex="" if shown is None else shown.latex,
        ),
    )


def _closed(rule: Rule) -> tuple[Count | int, None] | tuple[None, LattendError]:
    """The closed form, or why there is none."""
    try:
        return rule.count(), None
    except (NoClosedForm, NotAffineError) as reason:
        return None, reason


COUNT = Panel("count", "How many pairs a rule attends", answer_count, first=True)


class KeysAnswer(Answer):
    """Formulas in the position of the query, and in that of the key."""

    per_query: Formula
    per_key: Formula


def answer_keys(question: RuleQuestion) -> KeysAnswer:
    """The keys of one query and the queries of one key, as formulas in its position, from 0."""
    from lattend.report.latex import named

    rule = read(question.rule)
    numbers = numbers_of(rule, question.numbers)
    bound = rule.at(**numbers)
    (per_query, in_query), (per_key, in_key) = (_formula(rule, bound, per) for per in ("query", "key"))
    numbers_of_side = {"query": numbers if in_query else {}, "key": numbers if in_key else {}}
    return KeysAnswer(
        per_query=per_query,
        per_key=per_key,
        copies=snippets(
            call("rule = lt.rule", question.rule),
            *(show("rule.count", per=per, **at) for per, at in numbers_of_side.items()),
            command="\n".join(
                command(CountCommand, question, at=at, per=per) for per, at in numbers_of_side.items()
            ),
            latex=named((("keys of a query", per_query.latex), ("queries of a key", per_key.latex))),
        ),
    )


def _formula(rule: Rule, bound: Rule, per: str) -> tuple[Formula, bool]:
    """The formula, and whether it has the numbers: not where it would have too many cases."""
    try:
        return formula(bound.count(per=per, method="closed")), True
    except (NoClosedForm, NotAffineError):
        return formula(rule.count(per=per, method="closed")), False


KEYS = Panel("keys", "Keys of a query, queries of a key", answer_keys)


class GrowthQuestion(Question):
    """A rule."""

    rule: str


class GrowthAnswer(Answer):
    """The order of growth, by region where it differs."""

    order: Formula


def answer_growth(question: GrowthQuestion) -> GrowthAnswer:
    """The order of growth of the number of attended pairs."""
    from lattend.report.latex import cases

    count = read(question.rule).count(method="closed")
    if isinstance(count, int):
        pieces, text, names = [Piece(latex="O(1)", when="")], "O(1)", [""]
    else:
        growth, names = count.order(), count.names
        pieces = [Piece(latex=order, when=when) for order, when in growth.latex_orders]
        text = str(growth)
    latex = cases([(piece.latex, piece.when) for piece in pieces])
    return GrowthAnswer(
        order=Formula(pieces=pieces, where="", text=text, latex=latex),
        copies=snippets(
            call("rule = lt.rule", question.rule),
            "print(rule.count().order())",
            command=command(CountCommand, question, order=names),
            latex=latex,
        ),
    )


GROWTH = Panel("growth", "The order of growth of a rule's count", answer_growth)
