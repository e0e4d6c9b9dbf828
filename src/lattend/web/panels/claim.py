"""claim, cost_claim, cost_check: whether a formula is the count of a rule or the cost of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from lattend.cli.claim import ClaimCommand
from lattend.cli.cost import CostCommand
from lattend.errors import DomainError, LattendError, UnknownName
from lattend.web.panel import MANY, Answer, AnswerPart, Panel, Question, Snippets
from lattend.web.panels.cost import LayerText, Per, python_of_layer, read_layer
from lattend.web.rules import read
from lattend.web.snippets import call, command, show, snippets
from lattend.web.views import Formula, ReportView, formula, report_view

if TYPE_CHECKING:
    from lattend.cost.cost import Cost
    from lattend.counts import Count
    from lattend.counts.verdict import Verdict
    from lattend.draw import Picture
    from lattend.rules import Rule


LONGEST_SIDE = 32  # positions of a counterexample that is drawn
Name = Annotated[str, Field(max_length=100)]


class ClaimQuestion(Question):
    """A rule and a formula for its count; `per` counts the keys of a query, or the reverse, from `first`."""

    rule: str
    claim: str
    per: Literal["", "query", "key"] = ""
    first: Literal[0, 1] = 0
    assume: str = ""
    rename: dict[Name, Name] = Field(default_factory=dict, max_length=MANY)


class Counterexample(AnswerPart):
    """Numbers at which claim and count differ, with the value of each; "" where it has none."""

    values: dict[str, int]
    claimed: str
    exact: str
    sentence: str


class Judgement(AnswerPart):
    """The verdict on a claim, on one equation of a chain, or on another reading, which `how` names."""

    claim: str
    status: Literal["holds", "holds only where", "fails", "undecided"]
    sentence: str
    where: str
    example: Counterexample | None
    remaining: str
    because: str
    how: str = ""
    readings: list[str] = []
    links: list[Judgement] = []
    instead: list[Judgement] = []


class CounterexampleGrid(AnswerPart):
    """The attended pairs at a counterexample, one text of 0 and 1 per query; the counted row or column."""

    numbers: dict[str, int]
    squares: list[str]
    row: int | None = None
    column: int | None = None


class OpenLetter(AnswerPart):
    """A letter of the formula that the count does not have, its position, and what it may mean."""

    name: str
    start: int
    end: int
    offers: list[str]
    message: str


class ClaimAnswer(Answer):
    """The verdict, the formula as it was read, and the count. There is no verdict while a letter is open."""

    read: str
    verdict: Judgement | None
    letter: OpenLetter | None
    count: Formula
    drawing: CounterexampleGrid | None


def answer_claim(question: ClaimQuestion) -> ClaimAnswer:
    """The verdict on a formula, for every size and parameter at once."""
    from lattend.counts.formula_parser import parse_claim
    from lattend.counts.latex import claim_latex, verdict_latex

    rule = read(question.rule)
    count = _count(rule, question)
    known = {*count.names, *count.values, *question.rename}
    parsed = parse_claim(question.claim, known)
    verdict, letter = None, None
    try:
        verdict = count.claim(question.claim, rename=question.rename)
    except UnknownName as error:
        letter = _letter(error, count)
    options = {"per": question.per, "first": question.first or None}
    return ClaimAnswer(
        read=claim_latex(parsed),
        verdict=None if verdict is None else judgement(verdict),
        letter=letter,
        count=formula(count),
        drawing=None if verdict is None else _drawing(rule, verdict, question.first),
        copies=snippets(
            call("rule = lt.rule", question.rule),
            call("count = rule.count", **options),
            show(
                "count.claim",
                question.claim,
                assuming=question.assume or None,
                rename=question.rename or None,
            ),
            command=command(ClaimCommand, question, formula=question.claim),
            latex=verdict_latex(parsed, verdict, _name(count)),
        ),
    )


def _count(rule: Rule, question: ClaimQuestion) -> Count:
    """The count that the claim is about, as a formula."""
    count = rule.count(per=question.per or None, first=question.first, method="closed")
    if isinstance(count, int):
        raise LattendError(f"every letter has a number, and the count is {count:,}: nothing is left to prove")
    return count.assuming(question.assume) if question.assume.strip() else count


def _name(count: Count) -> str:
    """The count in LaTeX, with the position it is a function of."""
    return r"\text{count}" + (f"({', '.join(count.fixed)})" if count.fixed else "")


def _letter(error: UnknownName, count: Count) -> OpenLetter:
    """The names that a letter may mean: the usual ones, or else all that the count has."""
    positions = [f"{name} + 1" for name in count.fixed if count.first == 0]
    return OpenLetter.view_of(
        error,
        offers=error.meant or [*error.known, *positions],
        message=f"the count has no {error.name}; it has {', '.join(error.known)}",
    )


def judgement(verdict: Verdict, how: str = "") -> Judgement:
    """A verdict as the page shows it, with those on its links and on its other readings."""
    counterexample = verdict.counterexample
    example = None
    if counterexample is not None:
        example = Counterexample.view_of(
            counterexample,
            claimed="" if counterexample.claimed is None else str(counterexample.claimed),
            exact="" if counterexample.exact is None else str(counterexample.exact),
            sentence=str(counterexample),
        )
    return Judgement.view_of(
        verdict,
        sentence=str(verdict),
        example=example,
        how=how,
        links=[judgement(link) for link in verdict.links],
        instead=[judgement(other, reading) for reading, other in verdict.instead],
    )


def _drawing(rule: Rule, verdict: Verdict, first: int) -> CounterexampleGrid | None:
    from lattend.draw.grid.rules import counterexample_pairs

    example = verdict.first_counterexample
    drawn = None if example is None else counterexample_pairs(rule, example, first, LONGEST_SIDE)
    if drawn is None:
        return None
    squares = ["".join("1" if held else "0" for held in line) for line in drawn.mask]
    return CounterexampleGrid.view_of(drawn, squares=squares)


def claim_picture(question: ClaimQuestion) -> Picture:
    """The grid of the rule at the counterexample."""
    from lattend.draw.grid.rules import numbers_for

    rule = read(question.rule)
    example = _count(rule, question).claim(question.claim, rename=question.rename).first_counterexample
    if example is None:
        raise LattendError("there is no counterexample to draw")
    return rule.draw(**numbers_for(rule, example), title=str(example))


CLAIM = Panel("claim", "Whether a formula is the count", answer_claim, claim_picture)


SMALL = (5, 3, 2, 4, 3, 2)  # sizes of a run, letter by letter


class CostClaimQuestion(Question):
    """A layer, and a claim about one of its quantities: `multiplies: n^2 h c + 2n(n - 1)h^2`."""

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


def answer_cost_claim(question: CostClaimQuestion) -> CostClaimAnswer:
    """Prove a claim about a cost for every size, or refute it with the smallest counterexample."""
    from lattend.counts.formula_parser import parse_claim
    from lattend.counts.latex import verdict_latex
    from lattend.report.latex import escape

    quantity, colon, formula = (part.strip() for part in question.claim.partition(":"))
    if not colon or not formula:
        raise LattendError('write the quantity, a colon and the formula, as in "multiplies: n^2 h c"')
    layer = read_layer(question.layer, question.rule, {}).open
    cost = layer.per(question.per) if question.per else layer.backward if question.backward else layer
    assuming = question.assume.strip() or None
    verdict = cost.claim(quantity, formula, assuming=assuming, rename=question.rename)
    parsed = parse_claim(formula, {*layer.names, *question.rename})
    which = f".per({question.per!r})" if question.per else ".backward" if question.backward else ""
    return CostClaimAnswer(
        quantity=quantity,
        verdict=judgement(verdict),
        copies=Snippets(
            python=python_of_layer(
                question.layer,
                question.rule,
                {},
                show(
                    f"layer{which}.claim",
                    quantity,
                    formula,
                    assuming=assuming,
                    rename=question.rename or None,
                ),
            ),
            command=command(CostCommand, question, backward=question.backward and not question.per),
            latex=verdict_latex(parsed, verdict, rf"\text{{{escape(quantity)}}}"),
        ),
    )


class CostCheckQuestion(Question):
    """A layer that is run at small sizes."""

    layer: LayerText
    rule: LayerText = ""


class CostCheckAnswer(Answer):
    """The report that compares the formulas with the counted operations."""

    equal: bool
    report: ReportView


def answer_cost_check(question: CostCheckQuestion) -> CostCheckAnswer:
    """Run plain code of the layer at small sizes, on numbers that count their own operations."""
    layer = read_layer(question.layer, question.rule, {}).open
    numbers = small_sizes(layer)
    try:
        checked = layer.check(**numbers)
    except DomainError:  # an image smaller than one patch
        numbers |= {side: 32 for side in ("rows", "cols") if side in numbers}
        checked = layer.check(**numbers)
    return CostCheckAnswer(
        equal=bool(checked),
        report=report_view(checked.report()),
        copies=Snippets(
            python=python_of_layer(question.layer, question.rule, {}, show("layer.check", **numbers)),
            command=command(CostCommand, question, at=numbers, check=True),
            latex=checked.report().latex(),
        ),
    )


def small_sizes(cost: Cost) -> dict[str, int]:
    """Small sizes for a quick run. They differ, so that no size can be mistaken for another."""
    sizes = {name: SMALL[index % len(SMALL)] for index, name in enumerate(cost.names)}
    return sizes | ({"vocabulary": 11} if "vocabulary" in sizes else {})  # more words than tokens


COST_CLAIM = Panel("cost_claim", "Whether a formula is the price", answer_cost_claim)
COST_CHECK = Panel("cost_check", "The price, counted by running", answer_cost_check)
