"""growth: the big-O of a rule's count as all its letters grow."""

from __future__ import annotations

from lattend.web.copies import call, command, python
from lattend.web.formulas import Formula, Piece
from lattend.web.panel import Answer, Copies, Panel, Question
from lattend.web.rules import read


class GrowthQuestion(Question):
    """A rule."""

    rule: str


class GrowthAnswer(Answer):
    """The order of growth, by region where it differs."""

    order: Formula


def answer(question: GrowthQuestion) -> GrowthAnswer:
    """The order of growth of the number of attended pairs."""
    from lattend.report.latex import cases

    count = read(question.rule).count(method="closed")
    if isinstance(count, int):
        pieces, text, names = [Piece(latex="O(1)", when="")], "O(1)", [""]
    else:
        found, names = count.order(), count.names
        pieces = [Piece(latex=order, when=when) for order, when in found.latex_orders]
        text = str(found)
    latex = cases([(piece.latex, piece.when) for piece in pieces])
    return GrowthAnswer(
        order=Formula(pieces=pieces, where="", text=text, latex=latex),
        copies=Copies(
            python=python(call("rule = lt.rule", question.rule), "print(rule.count().order())"),
            command=command("count", question.rule, order=",".join(names)),
            latex=latex,
        ),
    )


PANEL = Panel("growth", "The order of growth of a rule's count", answer)
