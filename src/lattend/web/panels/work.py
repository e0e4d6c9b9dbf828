"""work: attention worked through, every number exact, in decimals, and with where it comes from."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from lattend.web.copies import call, command, python
from lattend.web.matrices import Row, Rows, Text, literal, literals, rows_text
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.worked.step import Step
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


class SourceView(BaseModel):
    """Numbers of another table: one, or a whole row or column where the other is null."""

    name: str
    head: int
    row: int | None
    column: int | None


class NumberView(BaseModel):
    """A number: its exact form in LaTeX and as one types it, "" where too long; its decimal; its origin."""

    exact: str
    text: str
    decimal: str
    share: float | None = None  # of a weight
    origin: str = ""
    sources: list[SourceView] = []


class StepView(BaseModel):
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


def answer(question: WorkQuestion) -> WorkAnswer:
    """Queries, keys, values, scores, exponentials, row sums, weights and outputs, worked out exactly."""
    from lattend.study.worked.documents import step_formula

    worked = worked_of(question)
    return WorkAnswer(
        facts=list(worked.statements()),
        steps=[step_view(worked, step, step_formula(worked, step), question.places) for step in worked.steps],
        markdown=worked.markdown(question.places),
        copies=copies(question, worked),
    )


def worked_of(question: WorkQuestion) -> Worked:
    """What the library works out; the last ones are kept, as an answer is checked against them."""
    return _worked(question.model_dump_json(include={*WorkQuestion.model_fields} - {"places"}))


@lru_cache(maxsize=8)
def _worked(question: str) -> Worked:
    from lattend.study.worked.work import work

    return work(**arguments(WorkQuestion.model_validate_json(question)))


def arguments(question: WorkQuestion) -> dict[str, Any]:
    """What is given to the library's `work`; what is usual is left out."""
    direct = question.q or question.k or question.v
    names = (*(DIRECT if direct else MATRICES), "wo")
    found: dict[str, Any] = {} if direct else {"tokens": question.tokens}
    found |= {name: rows for name in names if (rows := getattr(question, name))}
    if question.rule.strip() != "full":
        found |= {"rule": question.rule, **letters_of(question)}
    if question.scale.strip() != "1":
        found["scale"] = question.scale
    if question.heads > 1:
        found["heads"] = question.heads
    if question.columns and not direct:
        found["columns"] = True
    return found


def letters_of(question: WorkQuestion) -> dict[str, int]:
    """Numbers for the letters of the rule: those given, and an example for each other parameter."""
    from lattend.web.panels.read import letters
    from lattend.web.rules import read

    return {
        letter.name: question.numbers.get(letter.name, letter.example)
        for letter in letters(read(question.rule))
        if letter.value is None
        and letter.name not in FROM_TOKENS
        and (letter.name in question.numbers or not letter.size)
    }


def step_view(worked: Worked, step: Step, formula: str, places: int) -> StepView:
    """A step as typed data."""
    from lattend.study.worked.origin import origin

    many = sum(len(rows) * len(rows[0]) for rows in step.tables)

    def view(head: int, row: int, column: int) -> NumberView:
        entry = step.tables[head][row][column]
        found = NumberView(
            exact=entry.latex if many <= MOST_EXACT and entry.text is not None else "",
            text=entry.text or "",
            decimal=entry.decimal(places),
            share=float(entry.value) if step.name == "weights" else None,
        )
        if many <= MOST_ORIGINS:
            made_of = origin(worked, (step.name, head, row, column), places)
            found.origin = made_of.latex
            found.sources = [SourceView(**source._asdict()) for source in made_of.sources]
        return found

    tables = [
        [[view(head, row, column) for column in range(len(rows[0]))] for row in range(len(rows))]
        for head, rows in enumerate(step.tables)
    ]
    return StepView(
        name=step.name,
        title=step.title,
        formula=formula,
        down=step.down,
        across=step.across,
        tables=tables,
    )


def copies(question: WorkQuestion, worked: Worked) -> Copies:
    """The same work in Python, in the shell and in LaTeX."""
    places = "" if question.places == 4 else f" --places {question.places}"
    return Copies(
        python=python(call_of(question), "print(worked)"),
        command=command_of(question) + places,
        latex=worked.latex(question.places),
    )


def call_of(question: WorkQuestion) -> str:
    """The line of Python that works it through."""
    named = {
        name: literals(value) if isinstance(value, list) else literal(value) if name == "scale" else value
        for name, value in arguments(question).items()
    }
    return call("worked = lt.study.work", **named)


def command_of(question: WorkQuestion) -> str:
    """The command that works it through."""
    given = arguments(question)
    return command(
        "work",
        at=letters_of(question) if "rule" in given else {},
        **{name: rows_text(given[name]) for name in (*MATRICES, "wo", *DIRECT) if name in given},
        rule=given.get("rule", ""),
        scale=given.get("scale", ""),
        heads=str(given.get("heads", "")),
        columns=given.get("columns", False),
    )


def picture(question: WorkQuestion) -> Picture:
    """The weights as a heat picture."""
    return worked_of(question).draw(question.places)


PANEL = Panel("work", "Attention worked through", WorkQuestion, WorkAnswer, answer, picture, as_typed=True)
