"""read: what a rule's text means, before anything is counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from lattend.web.copies import call, command, python
from lattend.web.panel import Answer, Copies, Panel, Question
from lattend.web.rules import read

if TYPE_CHECKING:
    from lattend.rules import Rule
    from lattend.rules.language.expr import Node

MOST_ENTRIES = 1 << 16  # of an array that the page gets

Tree = list[Any]
"""A node of the rule: its kind, what it holds, and the characters of the text it was read from."""


class ReadQuestion(Question):
    """A rule, as typed."""

    rule: str


class OtherQuestion(Question):
    """The second rule, as typed."""

    other: str


class Letter(BaseModel):
    """A size or a parameter: its least number, and the one at which the picture is drawn without any."""

    name: str
    size: bool
    least: int
    example: int
    value: int | None


class ReadSlip(BaseModel):
    """A letter that is read as a new one, what may be meant by it, and the whole text with that."""

    name: str
    meant: str
    text: str


class ReadAnswer(Answer):
    """The rule that was meant. `tree` is its condition, for the page to draw at any numbers."""

    text: str
    name: str
    meaning: str
    axes: list[list[str]]  # of each: the query's and the key's position, and their sizes
    letters: list[Letter]
    slips: list[ReadSlip]
    positions: list[str]
    tree: Tree
    data: dict[str, list[Any]]  # but for arrays that are too long to send; the server knows them
    source: bool  # whether the places in the tree are places of the text as typed
    written: str  # the text that they are places of


def answer(question: ReadQuestion) -> ReadAnswer:
    """What the text means: its letters, its axes and its condition as a tree."""
    return _meaning(question.rule)


def other(question: OtherQuestion) -> ReadAnswer:
    """What the text of the second rule means."""
    return _meaning(question.other)


def _meaning(text: str) -> ReadAnswer:
    from lattend.counts.latex import set_latex
    from lattend.rules.language.arrays import array_missing
    from lattend.rules.typos import typos

    rule = read(text)
    if rule.open:
        raise array_missing(text, rule.open[0])
    return ReadAnswer(
        text=rule.text,
        name=rule.about.name if rule.about else "",
        meaning=rule.about.meaning if rule.about else "",
        axes=[[axis.query, axis.key, axis.queries, axis.keys] for axis in rule.axes],
        letters=letters(rule),
        slips=[ReadSlip(**asdict(slip)) for slip in typos(rule)],
        positions=rule.positions,
        tree=tree(rule.condition),
        data={name: array.tolist() for name, array in rule.data.items() if array.size <= MOST_ENTRIES},
        source=rule.source == text,
        written=rule.source or "",
        copies=Copies(
            python=python(call("rule = lt.rule", text), "print(rule)"),
            command=command("rules", text),
            latex=set_latex(rule),
        ),
    )


def letters(rule: Rule) -> list[Letter]:
    """Sizes first, then parameters, each with a number that shows what the rule is."""
    from lattend.draw.grid.samples import sample_numbers

    return [
        Letter(
            name=name,
            size=name in rule.sizes,
            least=1 if name in rule.sizes or name in rule.moduli else 0,
            example=example,
            value=rule.values.get(name),
        )
        for name, example in sample_numbers(rule).items()
    ]


def examples(rule: Rule, names: Iterable[str]) -> dict[str, int]:
    """The numbers at which these letters of a rule are drawn until they have one."""
    wanted = {*names}
    return {letter.name: letter.example for letter in letters(rule) if letter.name in wanted}


def tree(node: Node) -> Tree:
    """The node as nested lists: kind, parts, [start, end] of its text or null."""
    from lattend.rules.language import expr

    place = list(node.span) if node.span else None
    match node:
        case expr.Num():
            return ["num", node.value, place]
        case expr.Name():
            return ["name", node.name, place]
        case expr.Truth():
            return ["truth", node.value, place]
        case expr.Lookup():
            return ["entry", node.array, [tree(index) for index in node.indices], place]
        case expr.Arith():
            return ["arith", node.op, [tree(part) for part in node.args], place]
        case expr.Compare():
            return ["compare", node.op, [tree(node.left), tree(node.right)], place]
        case expr.And():
            return ["and", [tree(part) for part in node.args], place]
        case expr.Or():
            return ["or", [tree(part) for part in node.args], place]
        case expr.Not():
            return ["not", tree(node.arg), place]


PANEL = Panel("read", "What a rule's text means", ReadQuestion, ReadAnswer, answer, first=True, as_typed=True)
OTHER = Panel(
    "other",
    "What the text of a second rule means",
    OtherQuestion,
    ReadAnswer,
    other,
    first=True,
    as_typed=True,
)
