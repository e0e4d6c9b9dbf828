"""read, other: what the text of a rule means, before anything is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lattend.cli.rules import RulesCommand
from lattend.web.panel import Answer, AnswerPart, Panel, Question
from lattend.web.rules import Letter, letters, read
from lattend.web.snippets import call, command, snippets

if TYPE_CHECKING:
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


class ReadSlip(AnswerPart):
    """A letter that may be a typo, the name that may be meant, and the corrected text."""

    name: str
    meant: str
    text: str


class ReadAnswer(Answer):
    """The rule as it was read. The page draws it at any numbers from `tree`, its condition."""

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


def answer_read(question: ReadQuestion) -> ReadAnswer:
    """What the text means: its letters, its axes and its condition as a tree."""
    return _meaning(question.rule)


def answer_other(question: OtherQuestion) -> ReadAnswer:
    """What the text of the second rule means."""
    return _meaning(question.other)


def _meaning(text: str) -> ReadAnswer:
    from lattend.counts.latex import set_latex
    from lattend.rules.language.call import array_missing
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
        slips=[ReadSlip.view_of(slip) for slip in typos(rule)],
        positions=rule.positions,
        tree=tree(rule.condition),
        data={name: array.tolist() for name, array in rule.data.items() if array.size <= MOST_ENTRIES},
        source=rule.source == text,
        written=rule.source or "",
        copies=snippets(
            call("rule = lt.rule", text),
            "print(rule)",
            command=command(RulesCommand, name=text),
            latex=set_latex(rule),
        ),
    )


def tree(node: Node) -> Tree:
    """The node as nested lists: kind, parts, [start, end] of its text or null."""
    from lattend.rules.language import expr

    span = list(node.span) if node.span else None
    match node:
        case expr.Num():
            return ["num", node.value, span]
        case expr.Name():
            return ["name", node.name, span]
        case expr.Truth():
            return ["truth", node.value, span]
        case expr.Lookup():
            return ["entry", node.array, [tree(index) for index in node.indices], span]
        case expr.Arith():
            return ["arith", node.op, [tree(part) for part in node.args], span]
        case expr.Compare():
            return ["compare", node.op, [tree(node.left), tree(node.right)], span]
        case expr.And():
            return ["and", [tree(part) for part in node.args], span]
        case expr.Or():
            return ["or", [tree(part) for part in node.args], span]
        case expr.Not():
            return ["not", tree(node.arg), span]


READ = Panel("read", "What a rule's text means", answer_read, first=True, as_typed=True)
OTHER = Panel("other", "What the text of a second rule means", answer_other, first=True, as_typed=True)
