"""reach: the attention span of a query, back and ahead, along each axis."""

from __future__ import annotations

from pydantic import BaseModel, Field

from lattend.web.copies import call, command, python
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.rules import numbers_of, read


class ReachQuestion(Question):
    """A rule, and the numbers given so far."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)


class SpanView(BaseModel):
    """The greatest distance of an attended key along one axis, from the query or towards it."""

    distance: str  # q - k
    direction: str
    most: Formula


class ReachAnswer(Answer):
    """The spans, two for each axis."""

    spans: list[SpanView]


def answer(question: ReachQuestion) -> ReachAnswer:
    """How far back and ahead of a query its keys can be, as formulas."""
    from lattend.report.latex import aligned

    rule = read(question.rule)
    numbers = numbers_of(rule, question.numbers)
    found = rule.at(**numbers).reach()
    spans = [
        SpanView(distance=span.distance, direction=span.direction, most=formula(span.most))
        for span in found.spans
    ]
    return ReachAnswer(
        spans=spans,
        copies=Copies(
            python=python(
                call("rule = lt.rule", question.rule), f"print({call('rule.at', **numbers)}.reach())"
            ),
            command=command("reach", question.rule, at=numbers),
            latex=aligned(*(rf"{distance_latex(span)} &\le {span.most.latex}" for span in spans)),
        ),
    )


def distance_latex(span: SpanView) -> str:
    """The distance with its positions as LaTeX names."""
    from lattend.counts.notation import latex_name

    return " - ".join(map(latex_name, span.distance.split(" - ")))


PANEL = Panel("reach", "The attention span of a rule", answer)
