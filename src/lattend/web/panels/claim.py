"""claim: whether a formula is the count of a rule: proved, or refuted with the smallest counterexample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field

from lattend.errors import LattendError, UnknownName
from lattend.web.copies import call, command, python, show
from lattend.web.formulas import Formula, formula
from lattend.web.panel import MANY, Answer, Copies, Panel, Question
from lattend.web.rules import read

if TYPE_CHECKING:
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


class Counterexample(BaseModel):
    """Numbers at which two sides differ: what the formula says, and what is so; "" where it has no value."""

    values: dict[str, int]
    claimed: str
    exact: str
    sentence: str


class Judgement(BaseModel):
    """The verdict on a claim, on a link of a chain, or on another reading of it, which `how` names."""

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


class CounterexampleGrid(BaseModel):
    """The attended pairs there, a text of 0 and 1 a query; `row` or `column` is the one counted."""

    numbers: dict[str, int]
    squares: list[str]
    row: int | None = None
    column: int | None = None


class OpenLetter(BaseModel):
    """A letter of the formula that the count has not, where it stands, and what it may stand for."""

    name: str
    start: int
    end: int
    offers: list[str]
    message: str


class ClaimAnswer(Answer):
    """The verdict, how the formula was read, and the count itself; no verdict while a letter is open."""

    read: str
    verdict: Judgement | None
    letter: OpenLetter | None
    count: Formula
    drawing: CounterexampleGrid | None


def answer(question: ClaimQuestion) -> ClaimAnswer:
    """The verdict on a formula, for every size and parameter at once."""
    from lattend.counts.formula_latex import claim_latex, verdict_latex
    from lattend.counts.formula_parser import parse_claim

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
        copies=Copies(
            python=python(
                call("rule = lt.rule", question.rule),
                call("count = rule.count", **options),
                show(
                    "count.claim",
                    question.claim,
                    assuming=question.assume or None,
                    rename=question.rename or None,
                ),
            ),
            command=command(
                "claim",
                question.rule,
                question.claim,
                assume=question.assume,
                rename=",".join(f"{theirs}={ours}" for theirs, ours in question.rename.items()),
                per=question.per,
                from_="1" if question.first else "",
            ),
            latex=verdict_latex(parsed, verdict, _name(count)),
        ),
    )


def _count(rule: Rule, question: ClaimQuestion) -> Count:
    """The count that the claim is about, as a formula."""
    found = rule.count(per=question.per or None, first=question.first, method="closed")
    if isinstance(found, int):
        raise LattendError(f"every letter has a number, and the count is {found:,}: nothing is left to prove")
    return found.assuming(question.assume) if question.assume.strip() else found


def _name(count: Count) -> str:
    """The count in LaTeX, with the position it is a function of."""
    return r"\text{count}" + (f"({', '.join(count.fixed)})" if count.fixed else "")


def _letter(error: UnknownName, count: Count) -> OpenLetter:
    """What a letter may stand for: what it is often called, or else anything the count has."""
    positions = [f"{name} + 1" for name in count.fixed if count.first == 0]
    return OpenLetter(
        name=error.name,
        start=error.start,
        end=error.end,
        offers=error.meant or [*error.known, *positions],
        message=f"the count has no {error.name}; it has {', '.join(error.known)}",
    )


def judgement(verdict: Verdict, how: str = "") -> Judgement:
    """A verdict as the page shows it, with those on its links and on its other readings."""
    found = verdict.counterexample
    example = None
    if found is not None:
        example = Counterexample(
            values=found.values,
            claimed="" if found.claimed is None else str(found.claimed),
            exact="" if found.exact is None else str(found.exact),
            sentence=str(found),
        )
    return Judgement(
        claim=verdict.claim,
        status=verdict.status,
        sentence=str(verdict),
        where=verdict.where,
        example=example,
        remaining=verdict.remaining,
        because=verdict.because,
        how=how,
        readings=[*verdict.readings],
        links=[judgement(link) for link in verdict.links],
        instead=[judgement(other, reading) for reading, other in verdict.instead],
    )


def _drawing(rule: Rule, verdict: Verdict, first: int) -> CounterexampleGrid | None:
    from lattend.draw.grid.rules import counterexample_pairs

    example = verdict.first_counterexample
    found = None if example is None else counterexample_pairs(rule, example, first, LONGEST_SIDE)
    if found is None:
        return None
    squares = ["".join("1" if held else "0" for held in line) for line in found.mask]
    return CounterexampleGrid(numbers=found.numbers, squares=squares, row=found.row, column=found.column)


def picture(question: ClaimQuestion) -> Picture:
    """The grid of the rule at the counterexample."""
    from lattend.draw.grid.rules import numbers_for

    rule = read(question.rule)
    example = _count(rule, question).claim(question.claim, rename=question.rename).first_counterexample
    if example is None:
        raise LattendError("there is no counterexample to draw")
    return rule.draw(**numbers_for(rule, example), title=str(example))


PANEL = Panel("claim", "Whether a formula is the count", ClaimQuestion, ClaimAnswer, answer, picture)
