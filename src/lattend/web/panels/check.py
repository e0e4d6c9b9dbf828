"""check: the numbers of an answer judged: right, rounded on the way, following from a slip, or a slip."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from lattend.web.copies import call, python
from lattend.web.matrices import Rows
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.panels.work import WorkQuestion, call_of, command_of, worked_of

if TYPE_CHECKING:
    from lattend.study.worked.judge import Judgement

Tables = Annotated[list[Rows], Field(max_length=16)]


class CheckQuestion(WorkQuestion):
    """A piece of work, and for some of its steps a table a head; "" where a number is not given."""

    answer: dict[str, Tables] = Field(default_factory=dict, max_length=10)


class PlaceView(BaseModel):
    """A number of a step, counted from 0."""

    step: str
    head: int
    row: int
    column: int


class NumberCheck(PlaceView):
    """The verdict on one number: "right", "rounded", "follows" or "slip"; `roots` are the slips behind it."""

    given: str
    exact: str
    verdict: str
    roots: list[PlaceView]


class CheckAnswer(Answer):
    """The verdicts, and what is said of them; `slips` tell each slip once, with what follows from it."""

    right: bool
    summary: str
    slips: list[str]
    notes: list[str]
    numbers: list[NumberCheck]


def answer(question: CheckQuestion) -> CheckAnswer:
    """Every number of the answer against the exact one, and again with the numbers given before it."""
    from lattend.study.worked.judge import judge
    from lattend.study.worked.judgement_text import format_true

    worked = worked_of(question)
    given: dict[str, Any] = {
        name: tables if name in worked.parts and worked.parts[name].per_head else tables[0]
        for name, tables in question.answer.items()
        if any(cell.strip() for rows in tables for row in rows for cell in row)
    }
    found = judge(worked, given, nothing='""')
    told = found.json()

    def place(name: str, head: int, row: int, column: int) -> PlaceView:
        return PlaceView(step=name, head=head, row=row, column=column)

    return CheckAnswer(
        right=bool(found),
        summary=told["summary"],
        slips=[*told["strays"], *told["slips"]],
        notes=told["notes"],
        numbers=[
            NumberCheck(
                **place(*verdict.place).model_dump(),
                given=verdict.written.text,
                exact=format_true(verdict),
                verdict=verdict.kind,
                roots=[place(*root) for root in sorted(verdict.roots - {verdict.place})],
            )
            for verdict in found.verdicts
        ],
        copies=copies(question, given, _latex(found, told["summary"])),
    )


def _latex(found: Judgement, summary: str) -> str:
    """The verdicts as a table."""
    from lattend.report.report import Report
    from lattend.report.table import Table
    from lattend.study.worked.judgement_text import format_true

    rows = [
        (
            one.place[0],
            *(str(number + 1) for number in one.place[1:]),
            one.written.text,
            format_true(one),
            one.kind,
        )
        for one in found.verdicts
    ]
    head = ("step", "head", "row", "column", "given", "exact", "verdict")
    return Report(summary, [Table(head, rows)] if rows else []).latex()


def copies(question: CheckQuestion, given: dict[str, Any], latex: str) -> Copies:
    """The same check in Python and in the shell."""
    file = f"echo {shlex.quote(json.dumps(given))} > answer.json"
    return Copies(
        python=python(call_of(question), call("print(worked.check", given) + ")"),
        command=f"{file}\n{command_of(question)} --check answer.json",
        latex=latex,
    )


PANEL = Panel("check", "An answer checked", answer)
