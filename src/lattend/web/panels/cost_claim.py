"""cost_claim: whether a formula is the price of a layer; cost_check: what plain code counts that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from lattend.errors import DomainError, LattendError
from lattend.web.copies import command, show
from lattend.web.costs import LayerText, python_of_layer, read_layer
from lattend.web.panel import MANY, Answer, Copies, Panel, Question
from lattend.web.panels.claim import Judgement, Name, judgement
from lattend.web.panels.cost import Per
from lattend.web.reports import ReportView, view

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

SMALL = (5, 3, 2, 4, 3, 2)  # sizes of a run, letter by letter


class CostClaimQuestion(Question):
    """A layer, and what is said of one of its quantities: `multiplies: n^2 h c + 2n(n - 1)h^2`."""

    layer: LayerText
    claim: Annotated[str, Field(max_length=2000)]
    rule: LayerText = ""
    backward: bool = False
    per: Per = ""
    assume: str = Field("", max_length=200)
    rename: dict[Name, Name] = Field(default_factory=dict, max_length=MANY)


class CostClaimAnswer(Answer):
    """The verdict."""

    quantity: str
    verdict: Judgement


def answer(question: CostClaimQuestion) -> CostClaimAnswer:
    """Proved for every size at once, or refuted with the smallest counterexample."""
    from lattend.counts.formula_latex import verdict_latex
    from lattend.counts.formula_parser import parse_claim
    from lattend.report.latex import escape

    quantity, colon, formula = (part.strip() for part in question.claim.partition(":"))
    if not colon or not formula:
        raise LattendError('write the quantity, a colon and the formula, as in "multiplies: n^2 h c"')
    whole = read_layer(question.layer, question.rule, {}).open
    cost = whole.per(question.per) if question.per else whole.backward if question.backward else whole
    assuming = question.assume.strip() or None
    verdict = cost.claim(quantity, formula, assuming=assuming, rename=question.rename)
    parsed = parse_claim(formula, {*whole.names, *question.rename})
    asked = f".per({question.per!r})" if question.per else ".backward" if question.backward else ""
    return CostClaimAnswer(
        quantity=quantity,
        verdict=judgement(verdict),
        copies=Copies(
            python=python_of_layer(
                question.layer,
                question.rule,
                {},
                show(
                    f"layer{asked}.claim",
                    quantity,
                    formula,
                    assuming=assuming,
                    rename=question.rename or None,
                ),
            ),
            command=command(
                "cost",
                question.layer,
                rule=question.rule,
                per=question.per,
                backward=question.backward and not question.per,
                claim=question.claim,
                assume=assuming or "",
                rename=",".join(f"{theirs}={ours}" for theirs, ours in question.rename.items()),
            ),
            latex=verdict_latex(parsed, verdict, rf"\text{{{escape(quantity)}}}"),
        ),
    )


class CostCheckQuestion(Question):
    """A layer that is run at small sizes."""

    layer: LayerText
    rule: LayerText = ""


class CostCheckAnswer(Answer):
    """What the formulas say, and what was counted."""

    equal: bool
    report: ReportView


def check(question: CostCheckQuestion) -> CostCheckAnswer:
    """Plain code runs at small sizes, on numbers that count their own operations."""
    whole = read_layer(question.layer, question.rule, {}).open
    numbers = small_sizes(whole)
    try:
        found = whole.check(**numbers)
    except DomainError:  # an image smaller than one patch
        numbers |= {side: 32 for side in ("rows", "cols") if side in numbers}
        found = whole.check(**numbers)
    return CostCheckAnswer(
        equal=bool(found),
        report=view(found.report()),
        copies=Copies(
            python=python_of_layer(question.layer, question.rule, {}, show("layer.check", **numbers)),
            command=command("cost", question.layer, at=numbers, rule=question.rule, check=True),
            latex=found.report().latex(),
        ),
    )


def small_sizes(cost: Cost) -> dict[str, int]:
    """Sizes at which a run takes no time; two of a kind differ, so that none stands for another."""
    found = {name: SMALL[place % len(SMALL)] for place, name in enumerate(cost.names)}
    return found | ({"vocabulary": 11} if "vocabulary" in found else {})  # more words than tokens


PANEL = Panel("cost_claim", "Whether a formula is the price", CostClaimQuestion, CostClaimAnswer, answer)
CHECK = Panel("cost_check", "The price, counted by running", CostCheckQuestion, CostCheckAnswer, check)
