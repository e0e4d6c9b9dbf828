"""derive: a derivation line by line, each line checked, and lines changed by hand judged."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lattend.cli.derive import DeriveCommand
from lattend.errors import DomainError
from lattend.web.panel import Answer, AnswerPart, Panel, Question
from lattend.web.snippets import command, show, snippets

if TYPE_CHECKING:
    from lattend.study.derivations.derivation import DerivedLine
    from lattend.study.derivations.draft import Draft, TriedLine


GAME = "game"
MOST_LINES = 60


class DeriveQuestion(Question):
    """Which derivation; for game its function, method and step; and lines by number that were changed."""

    derivation: str = Field(default="causal", max_length=40)
    f: str = Field(default="p*q", max_length=200)
    method: str = Field(default="alternating", max_length=40)
    step: str = Field(default="1", max_length=60)
    changes: Annotated[dict[str, Annotated[str, Field(max_length=400)]], Field(max_length=MOST_LINES)] = (
        Field(default_factory=dict)
    )


class LineView(AnswerPart):
    """A line in LaTeX, why it holds, the text it was read from, and the verdict in words.

    `start` to `end` are the characters that the words speak of.
    """

    left: str
    relation: str
    right: str
    reason: str
    text: str
    verdict: Literal["holds", "refuted", "unread", "definition"]
    sentence: str
    domain: str
    changed: bool = False
    start: int = 0
    end: int = 0


class Listed(AnswerPart):
    """The name and the summary of a derivation."""

    name: str
    summary: str


class DeriveAnswer(Answer):
    """The derivation, with a verdict on every line, and all that there are."""

    title: str
    given: str
    definitions: list[LineView]
    lines: list[LineView]
    remark: str
    holds: bool
    derivations: list[Listed]


def answer_derive(question: DeriveQuestion) -> DeriveAnswer:
    """Check every line of a derivation, for all sizes or in exact numbers."""
    from lattend.study.derivations.draft import listed, tried

    is_game = question.derivation == GAME
    arguments = (question.f, question.method, question.step) if is_game else ()
    draft = _draft(question.derivation, arguments)
    changes = {_number(name): text for name, text in question.changes.items()}
    derivation = tried(draft, changes)
    defined = list(zip(_definitions(draft), draft.definitions, strict=True))
    options: dict[str, Any] = {"method": question.method, "step": question.step} if is_game else {}
    return DeriveAnswer(
        title=draft.title,
        given=draft.given,
        definitions=[_definition(line, text) for line, (_, text, _) in defined],
        lines=[_line(line, number in changes) for number, line in enumerate(derivation, 1)],
        remark="" if changes else draft.remark,
        holds=all(line.verdict == "holds" for line in derivation),
        derivations=[Listed(name=name, summary=summary) for name, summary in listed().items()],
        copies=snippets(
            show("lt.study.derive", question.derivation, f=question.f if is_game else "", **options),
            command=command(
                DeriveCommand, name=question.derivation, formula=question.f if is_game else "", **options
            ),
            latex=_latex(draft, derivation),
        ),
    )


@lru_cache(maxsize=32)
def _draft(name: str, arguments: tuple[str, ...]) -> Draft:
    from lattend.study.derivations.draft import draft

    return draft(name)(*arguments)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 3:
        raise DomainError(f"lines have numbers from 1 on, got {text[:20]!r}")
    return int(text)


def _definitions(draft: Draft) -> list[DerivedLine]:
    from lattend.study.derivations.derivation import DerivedLine

    read = draft.read
    return [DerivedLine(read(left), "=", read(right), reason) for left, right, reason in draft.definitions]


def _definition(line: DerivedLine, text: str) -> LineView:
    sides = _sides(line)
    return LineView(**sides, text=text, reason=line.reason, verdict="definition", sentence="", domain="")


def _line(tried: TriedLine, changed: bool) -> LineView:
    line = tried.line
    sides: dict[str, Any] = {"left": "", "relation": "=", "right": ""} if line is None else _sides(line)
    return LineView(
        **sides,
        reason=line.reason if line else "",
        text=tried.text,
        verdict=tried.verdict,
        sentence=tried.said,
        domain=line.domain if line else "",
        changed=changed,
        start=tried.place[0],
        end=tried.place[1],
    )


def _sides(line: DerivedLine) -> dict[str, Any]:
    from lattend.counts.terms.notations import LATEX

    return dict(zip(("left", "relation", "right"), line.parts(LATEX), strict=True))


def _latex(draft: Draft, lines: list[TriedLine]) -> str:
    """The derivation as an align environment; "" where a line does not hold."""
    from lattend.study.derivations.derivation import Derivation

    kept = [line.line for line in lines if line.line is not None and line.verdict == "holds"]
    if len(kept) < len(lines):
        return ""
    definitions = tuple(_definitions(draft))
    return Derivation(draft.name, draft.title, draft.given, definitions, tuple(kept), draft.remark).latex()


DERIVE = Panel("derive", "A derivation, line by line", answer_derive)
