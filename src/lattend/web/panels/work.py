"""work, check: attention worked through in exact numbers, and an answer to it judged."""

from __future__ import annotations

import json
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from lattend.cli.work import WorkCommand
from lattend.web.panel import Answer, AnswerPart, Numbers, Panel, Question, Row, Rows, Snippets, Text
from lattend.web.snippets import call, command, literal, literals, snippets

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.worked.entry import Step
    from lattend.study.worked.judge import Judgement
    from lattend.study.worked.work import Worked


MATRICES = ("tokens", "wq", "wk", "wv", "memory")
DIRECT = ("q", "k", "v")
MOST_ORIGINS = 1200  # numbers of which it is told where they come from
MOST_EXACT = 3000  # numbers that have exact forms
FROM_TOKENS = ("n", "m", "heads")  # sizes that are known
Tokens = Annotated[list[Row], Field(max_length=16)]


class WorkQuestion(Question):
    """Tokens, rows of numbers, and matrices; those that are empty are left out, and are the identity.

    Where `q`, `k` and `v` are given, they take the place of tokens and matrices, which the page may keep.
    """

    tokens: Tokens = Field(default_factory=list)
    wq: Rows = Field(default_factory=list)
    wk: Rows = Field(default_factory=list)
    wv: Rows = Field(default_factory=list)
    wo: Rows = Field(default_factory=list)
    memory: Rows = Field(default_factory=list)
    q: Rows = Field(default_factory=list)
    k: Rows = Field(default_factory=list)
    v: Rows = Field(default_factory=list)
    rule: str = "full"
    numbers: Numbers = Field(default_factory=dict)
    scale: Text = "1"
    heads: int = Field(default=1, ge=1, le=16)
    columns: bool = False
    places: int = Field(default=4, ge=0, le=20)


class SourceView(AnswerPart):
    """Numbers of another table: one, or a whole row or column where the other is null."""

    name: str
    head: int
    row: int | None
    column: int | None


class NumberView(AnswerPart):
    """A number: its exact form in LaTeX and as one types it, "" where too long; its decimal; its origin."""

    exact: str
    text: str
    decimal: str
    share: float | None = None  # of a weight
    origin: str = ""
    sources: list[SourceView] = []


class StepView(AnswerPart):
    """A step: a table a head, rows of numbers; `formula` is LaTeX over whole matrices."""

    name: str
    title: str
    formula: str
    down: str  # what a row is
    across: str  # what a column is
    tables: list[list[list[NumberView]]]


class WorkAnswer(Answer):
    """All steps, and the statements of what was given."""

    facts: list[str]
    steps: list[StepView]
    markdown: str


def answer_work(question: WorkQuestion) -> WorkAnswer:
    """Queries, keys, values, scores, exponentials, row sums, weights and outputs, worked out exactly."""
    from lattend.study.worked.documents import step_formula

    worked = worked_of(question)
    return WorkAnswer(
        facts=list(worked.statements()),
        steps=[step_view(worked, step, step_formula(worked, step), question.places) for step in worked.steps],
        markdown=worked.markdown(question.places),
        copies=_work_copies(question, worked),
    )


def worked_of(question: WorkQuestion) -> Worked:
    """The worked attention. Recent ones are kept, since answers are checked against them."""
    return _worked(question.model_dump_json(include={*WorkQuestion.model_fields} - {"places"}))


@lru_cache(maxsize=8)
def _worked(question: str) -> Worked:
    from lattend.study.worked.work import work

    return work(**arguments(WorkQuestion.model_validate_json(question)))


def arguments(question: WorkQuestion) -> dict[str, Any]:
    """The arguments of lt.study.work that differ from its defaults."""
    direct = question.q or question.k or question.v
    names = (*(DIRECT if direct else MATRICES), "wo")
    options: dict[str, Any] = {} if direct else {"tokens": question.tokens}
    options |= {name: rows for name in names if (rows := getattr(question, name))}
    if question.rule.strip() != "full":
        options |= {"rule": question.rule, **letters_of(question)}
    if question.scale.strip() != "1":
        options["scale"] = question.scale
    if question.heads > 1:
        options["heads"] = question.heads
    if question.columns and not direct:
        options["columns"] = True
    return options


def letters_of(question: WorkQuestion) -> dict[str, int]:
    """Numbers for the letters of the rule: the question's, and examples for the other parameters."""
    from lattend.web.rules import letters, read

    return {
        letter.name: question.numbers.get(letter.name, letter.example)
        for letter in letters(read(question.rule))
        if letter.value is None
        and letter.name not in FROM_TOKENS
        and (letter.name in question.numbers or not letter.size)
    }


def step_view(worked: Worked, step: Step, formula: str, decimals: int) -> StepView:
    """A step as typed data."""
    from lattend.study.worked.origin import origin

    many = sum(len(rows) * len(rows[0]) for rows in step.tables)

    def view(head: int, row: int, column: int) -> NumberView:
        entry = step.tables[head][row][column]
        number = NumberView(
            exact=entry.latex if many <= MOST_EXACT and entry.text is not None else "",
            text=entry.text or "",
            decimal=entry.decimal(decimals),
            share=float(entry.value) if step.name == "weights" else None,
        )
        if many <= MOST_ORIGINS:
            made_of = origin(worked, (step.name, head, row, column), decimals)
            number.origin = made_of.latex
            number.sources = [SourceView.view_of(source) for source in made_of.sources]
        return number

    tables = [
        [[view(head, row, column) for column in range(len(rows[0]))] for row in range(len(rows))]
        for head, rows in enumerate(step.tables)
    ]
    return StepView.view_of(step, formula=formula, tables=tables)


def _work_copies(question: WorkQuestion, worked: Worked) -> Snippets:
    """The same work in Python, in the shell and in LaTeX."""
    return snippets(
        call_of(question),
        "print(worked)",
        command=command_of(question, places=None if question.places == 4 else question.places),
        latex=worked.latex(question.places),
    )


def call_of(question: WorkQuestion) -> str:
    """The line of Python that works it through."""
    named = {
        name: literals(value) if isinstance(value, list) else literal(value) if name == "scale" else value
        for name, value in arguments(question).items()
    }
    return call("worked = lt.study.work", **named)


def command_of(question: WorkQuestion, places: int | None = None) -> str:
    """The command that works it through."""
    options = arguments(question)
    letters = letters_of(question) if "rule" in options else {}
    named = {name: value for name, value in options.items() if name not in letters}
    return command(WorkCommand, at=letters, places=places, **named)


def work_picture(question: WorkQuestion) -> Picture:
    """The weights as a heat picture."""
    return worked_of(question).draw(question.places)


WORK = Panel("work", "Attention worked through", answer_work, work_picture, as_typed=True)


Tables = Annotated[list[Rows], Field(max_length=16)]


class CheckQuestion(WorkQuestion):
    """A piece of work, and for some of its steps a table a head; "" where a number is not given."""

    answer: dict[str, Tables] = Field(default_factory=dict, max_length=10)


class PlaceView(AnswerPart):
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
    """The verdicts and their summary; `slips` names each slip once, with what follows from it."""

    right: bool
    summary: str
    slips: list[str]
    notes: list[str]
    numbers: list[NumberCheck]


def answer_check(question: CheckQuestion) -> CheckAnswer:
    """Compare every number of the answer with the exact one, and with what its own earlier numbers give."""
    from lattend.study.worked.judge import judge
    from lattend.study.worked.judgement_text import format_true

    worked = worked_of(question)
    typed: dict[str, Any] = {
        name: tables if name in worked.parts and worked.parts[name].per_head else tables[0]
        for name, tables in question.answer.items()
        if any(cell.strip() for rows in tables for row in rows for cell in row)
    }
    judgement = judge(worked, typed, nothing='""')
    texts = judgement.json()

    def place(name: str, head: int, row: int, column: int) -> PlaceView:
        return PlaceView(step=name, head=head, row=row, column=column)

    return CheckAnswer(
        right=bool(judgement),
        summary=texts["summary"],
        slips=[*texts["strays"], *texts["slips"]],
        notes=texts["notes"],
        numbers=[
            NumberCheck(
                **place(*verdict.place).model_dump(),
                given=verdict.written.text,
                exact=format_true(verdict),
                verdict=verdict.kind,
                roots=[place(*root) for root in sorted(verdict.roots - {verdict.place})],
            )
            for verdict in judgement.verdicts
        ],
        copies=_check_copies(question, typed, _judgement_latex(judgement, texts["summary"])),
    )


def _judgement_latex(judgement: Judgement, summary: str) -> str:
    """The verdicts as a table."""
    from lattend.report.report import Report
    from lattend.report.table import Table
    from lattend.study.worked.judgement_text import format_true

    table = Table.of(
        judgement.verdicts,
        {
            "step": lambda one: one.place[0],
            "head": lambda one: str(one.place[1] + 1),
            "row": lambda one: str(one.place[2] + 1),
            "column": lambda one: str(one.place[3] + 1),
            "given": lambda one: one.written.text,
            "exact": format_true,
            "verdict": lambda one: one.kind,
        },
    )
    return Report(summary, [table] if table.rows else []).latex()


def _check_copies(question: CheckQuestion, tables: dict[str, Any], latex: str) -> Snippets:
    """The same check in Python and in the shell."""
    file = f"echo {shlex.quote(json.dumps(tables))} > answer.json"
    return snippets(
        call_of(question),
        call("print(worked.check", tables) + ")",
        command=f"{file}\n{command_of(question)} --check answer.json",
        latex=latex,
    )


CHECK = Panel("check", "An answer checked", answer_check)
