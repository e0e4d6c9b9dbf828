"""same, shared: whether two rules attend to the same pairs, and how many they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from lattend.cli.same import SameCommand
from lattend.errors import LattendError, NoClosedForm
from lattend.web.panel import Answer, AnswerPart, Numbers, Panel, Snippets
from lattend.web.panels.draw import drawn_at, rules_of
from lattend.web.rules import RuleQuestion, numbers_of, read
from lattend.web.snippets import call, command, python, show
from lattend.web.views import Formula, formula

if TYPE_CHECKING:
    from lattend.rules import Rule
    from lattend.sets.compare import Witness


SETS = {"both": r"A \cap B", "rule": r"A \setminus B", "other": r"B \setminus A"}
DIFFERENCE = "print({}.difference({}) or 'the same pairs')"
SECONDS = 3.0  # for all counts of two rules together


class SameQuestion(RuleQuestion):
    """Two rules; numbers of parameters are put in, those of sizes only give the counts a value."""

    other: str
    numbers: Numbers = Field(default_factory=dict)


class FirstDifference(AnswerPart):
    """The first pair that only one of the rules has, and the numbers at which it does."""

    numbers: dict[str, int]
    pair: dict[str, int]
    rule: str  # "rule" or "other", whose it is


class SharedCount(AnswerPart):
    """The number of pairs of both rules or of one only; `why` says why there is no formula."""

    whose: str  # "both", "rule" or "other"
    formula: Formula | None
    value: str
    why: str


class SameAnswer(Answer):
    """Whether the sets are equal for all open numbers; `at` are the fixed ones.

    `first` is the difference at the smallest numbers, `here` the one at those of the page's grid, which are
    `drawn`: None where they are the same there.
    """

    same: bool
    at: dict[str, int]
    first: FirstDifference | None
    here: FirstDifference | None
    drawn: dict[str, int]


class SharedAnswer(Answer):
    """The counts of the parts of two rules."""

    parts: list[SharedCount]


def answer_same(question: SameQuestion) -> SameAnswer:
    """Whether two rules are the same, for all sizes and for all parameters that have no number."""
    from lattend.draw.grid.bind import bound
    from lattend.report.latex import aligned

    left, right = _bound(question)
    if left.data or right.data:
        raise NoClosedForm(
            "rules that look up data can be compared at given numbers only: the grid shows where they differ"
        )
    witness = left.difference(right)
    at_numbers, drawn = None, dict[str, int]()
    if witness is not None:
        rules = rules_of(question.rule, question.other)
        drawn = drawn_at(rules, question.numbers)
        a, b = bound(rules, drawn)
        pair = a.difference(b)
        at_numbers = None if pair is None else _first(pair, a)
    sign = "=" if witness is None else r"\ne"
    return SameAnswer(
        same=witness is None,
        at={**left.values, **right.values},
        first=None if witness is None else _first(witness, left),
        here=at_numbers,
        drawn=drawn,
        copies=Snippets(
            latex=aligned(*_sets_latex(left, right), f"A &{sign} B"),
            python=_python(question),
            command=_commands(question),
        ),
    )


def answer_shared(question: SameQuestion) -> SharedAnswer:
    """How many pairs both rules attend, and how many only one of them."""
    from lattend.budget import Budget
    from lattend.report.latex import aligned

    rules = _bound(question)
    left, right = (replace(one.baked(), values={}) for one in rules)
    parts = {"both": left & right, "rule": left - right, "other": right - left}
    allowed = Budget(SECONDS).shared()
    counts = [
        _counted(whose, replace(part, budget=allowed), question.numbers) for whose, part in parts.items()
    ]
    return SharedAnswer(
        parts=counts,
        copies=Snippets(
            latex=aligned(*_sets_latex(*rules), *_counts_latex(counts, _sizes(question))),
            python=_python(question, counts),
            command=_commands(question, count=True),
        ),
    )


def _bound(question: SameQuestion) -> list[Rule]:
    """Both rules with the numbers of their parameters."""
    rules = (read(question.rule), read(question.other))
    return [rule.at(**_parameters(rule, question.numbers)) for rule in rules]


def _fixed(question: SameQuestion) -> dict[str, int]:
    """The numbers of the parameters of both rules."""
    both = (_parameters(read(text), question.numbers) for text in (question.rule, question.other))
    return {name: value for numbers in both for name, value in numbers.items()}


def _sizes(question: SameQuestion) -> dict[str, int]:
    """The numbers of the sizes that both rules leave open."""
    rules = [read(text) for text in (question.rule, question.other)]
    return {
        name: value
        for name, value in numbers_of(rules[0], question.numbers).items()
        if name not in rules[0].parameters and name in rules[1].free
    }


def _python(question: SameQuestion, counts: Sequence[SharedCount] = ()) -> str:
    """Python that compares the rules, for all sizes and at the question's, and prints the counts."""
    fixed, sizes = _fixed(question), _sizes(question)
    lines: list[str] = []
    for name, text in (("rule", question.rule), ("other", question.other)):
        numbers = _parameters(read(text), question.numbers)
        lines.append(call(f"{name} = lt.rule", text) + (call(".at", **numbers) if numbers else ""))
    if not _looks_up(question):
        lines.append(DIFFERENCE.format("rule", "other"))
    if sizes and not _looks_up(question):
        lines.append(DIFFERENCE.format(call("rule.at", **sizes), call("other.at", **sizes)))
    if fixed and counts:
        lines.append("rule, other = rule.baked(), other.baked()")
    for part, one in zip(("rule & other", "rule - other", "other - rule"), counts, strict=False):
        lines += [show(f"({part}).count")] if one.formula else []
        lines += [show(f"({part}).count", **sizes)] if _has_value(one) else []
    return python(*lines)


def _commands(question: SameQuestion, count: bool = False) -> str:
    """Commands that compare the rules; none for rules with data, which `same` does not compare."""
    if _looks_up(question):
        return ""
    numbers, sizes = _fixed(question), _sizes(question)
    at = [numbers, numbers | sizes] if sizes else [numbers]
    return "\n".join(command(SameCommand, question, at=one, count=count) for one in at)


def _sets_latex(*rules: Rule) -> list[str]:
    from lattend.counts.latex import set_latex

    return [f"{name} &= {set_latex(rule)}" for name, rule in zip("AB", rules, strict=True)]


def _counts_latex(counts: Sequence[SharedCount], sizes: Mapping[str, int]) -> list[str]:
    """The formula of each part, and its number at the fixed sizes."""
    from lattend.counts.notation import latex_name
    from lattend.report.latex import number

    numbers = ", ".join(f"{latex_name(name)} = {number(f'{value:,}')}" for name, value in sizes.items())
    at = rf" \quad \text{{at }} {numbers}" if numbers else ""
    lines: list[str] = []
    for one in counts:
        part = rf"\left| {SETS[one.whose]} \right| &= "
        lines += [part + one.formula.latex] if one.formula else []
        lines += [part + number(one.value) + at] if _has_value(one) else []
    return lines


def _has_value(count: SharedCount) -> bool:
    """Whether the count has a number beside its formula."""
    return bool(count.value) and not (count.formula and count.formula.text == count.value)


def _looks_up(question: SameQuestion) -> bool:
    return bool(read(question.rule).data or read(question.other).data)


def _parameters(rule: Rule, numbers: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in numbers_of(rule, numbers).items() if name in rule.parameters}


def _first(witness: Witness, left: Rule) -> FirstDifference:
    pair = dict(zip(left.positions, witness.pair, strict=True))
    values = {name: value for name, value in witness.values.items() if name in left.free}
    mine = left.contains(*witness.pair, **values)
    return FirstDifference(numbers=witness.values, pair=pair, rule="rule" if mine else "other")


def _counted(whose: str, part: Rule, numbers: Mapping[str, int]) -> SharedCount:
    sizes = numbers_of(part, numbers)
    value, why, closed = "", "", None
    try:
        count = part.count(**sizes) if sizes else None
        value = f"{count:,}" if isinstance(count, int) else ""
        closed = formula(part.count())
    except LattendError as reason:
        why = "" if value else reason.reason
    return SharedCount(whose=whose, formula=closed, value=value, why=why)


SAME = Panel("same", "Whether two rules are the same", answer_same, as_typed=True)
SHARED = Panel("shared", "How many pairs two rules share", answer_shared, as_typed=True)
