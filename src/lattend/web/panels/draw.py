"""draw: the library's picture of a rule, or of two that are compared, at numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from lattend.web.copies import call, command, python, show
from lattend.web.panel import Answer, Copies, Integer, Numbers, Panel, Question
from lattend.web.panels.read import letters
from lattend.web.rules import read

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.rules import Rule

MOST_TIKZ = 60_000  # characters


class DrawQuestion(Question):
    """A rule, a second one drawn over it or "", and numbers.

    Of an image, the keys of one pixel are drawn, of the one in the middle where `pixel` is none of its own;
    where `flat`, all queries against all keys.
    """

    rule: str
    other: str = ""
    numbers: Numbers = Field(default_factory=dict)
    pixel: list[Integer] = Field(default=[], max_length=3)
    flat: bool = False


class DrawAnswer(Answer):
    """What is written over the picture and under it."""

    title: str
    caption: list[str]


def rules_of(rule: str, other: str = "") -> list[Rule]:
    """The rule, and the second one where there is one."""
    return [read(rule), *([read(other)] if other else [])]


def drawn_at(rules: Sequence[Rule], numbers: Mapping[str, int]) -> dict[str, int]:
    """A number for every open letter: the one given, else the example that the page shows."""
    bound = {name for rule in rules for name in rule.sizes if name in rule.values}
    examples = {letter.name: letter.example for rule in reversed(rules) for letter in letters(rule)}
    free = dict.fromkeys(name for rule in rules for name in rule.free if name not in bound)
    return {name: numbers.get(name, examples[name]) for name in free}


def picture(question: DrawQuestion) -> Picture:
    """The grid: squares, or tiles shaded by how full they are; of an image, the keys of one pixel."""
    rules = rules_of(question.rule, question.other)
    numbers = drawn_at(rules, question.numbers)
    over = rules[1] if len(rules) > 1 else None
    return rules[0].draw(compare=over, pixel=_pixel(question, rules[0], numbers), **numbers)


def answer(question: DrawQuestion) -> DrawAnswer:
    """The picture's title and caption, and the lines that draw it elsewhere."""
    rules = rules_of(question.rule, question.other)
    numbers, shown = drawn_at(rules, question.numbers), picture(question)
    pixel = _pixel(question, rules[0], numbers)
    named = ",".join(map(str, pixel or ()))
    return DrawAnswer(
        title=shown.title,
        caption=[*shown.caption],
        copies=Copies(
            python=python(
                call("rule = lt.rule", question.rule),
                show("rule.draw", compare=question.other, pixel=pixel, **numbers),
            ),
            command=command("draw", question.rule, at=numbers, compare=question.other, pixel=named),
            latex=_latex(shown, rules),
        ),
    )


def _latex(shown: Picture, rules: Sequence[Rule]) -> str:
    """The picture as TikZ; of one that has too many parts for TeX, the rules as sets."""
    from lattend.counts.latex import set_latex
    from lattend.report.latex import named

    found = shown.tikz()
    if len(found) <= MOST_TIKZ:
        return found
    return named((f"rule {place}", set_latex(rule)) for place, rule in enumerate(rules, 1))


def _pixel(question: DrawQuestion, rule: Rule, numbers: Mapping[str, int]) -> tuple[int, ...] | None:
    """The pixel asked for, if this rule has it: it may have been chosen while another was shown."""
    if len(rule.axes) == 1 or question.flat:
        return None
    values = {**rule.values, **numbers}
    lengths = [values[axis.queries] for axis in rule.axes]
    inside = len(question.pixel) == len(lengths) and all(
        map(range.__contains__, map(range, lengths), question.pixel)
    )
    return tuple(question.pixel) if inside else tuple(length // 2 for length in lengths)


PANEL = Panel("draw", "The picture of a rule", DrawQuestion, DrawAnswer, answer, picture, as_typed=True)
