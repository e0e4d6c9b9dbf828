"""field: what a query sees through several layers, and which layer first connects two positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from lattend.errors import DeadlineError, DomainError, LattendError, NoClosedForm, NotAffineError
from lattend.web.copies import call, command, python, show
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Integer, Numbers, Panel, Question
from lattend.web.panels.draw import drawn_at
from lattend.web.panels.reach import SpanView, distance_latex
from lattend.web.rules import numbers_of, read

if TYPE_CHECKING:
    from lattend.rules import Rule

SECONDS = 1.6  # of set work, for all parts of an answer
MOST_LAYERS = 4096
MOST_POSITIONS = 2**53  # of which a page knows each one exactly


class ReceptiveFieldQuestion(Question):
    """A rule, the numbers given so far, and how many layers of it are stacked."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)
    layers: Integer = Field(default=2, ge=1, le=MOST_LAYERS)


class ReceptiveFieldAnswer(Answer):
    """The pairs that the layers connect, as a rule; the keys that a query sees, and how far they are.

    `until` is after how many layers that grows no more, and `sees` what a query sees then; where that is not
    known, `unknown` says why.
    """

    text: str
    keys: Formula
    spans: list[SpanView]
    until: Formula | None
    sees: str
    all_reached: bool
    unknown: str


def answer(question: ReceptiveFieldQuestion) -> ReceptiveFieldAnswer:
    """The receptive field of so many layers, and how many it takes until it grows no more."""
    from lattend.report.latex import aligned

    rule = _read(question.rule)
    numbers = numbers_of(rule, question.numbers)
    bound = rule.at(**numbers)
    seen = bound.receptive_field(question.layers)
    keys = formula(seen.count(per="query", method="closed"))
    spans = [
        SpanView(distance=span.distance, direction=span.direction, most=formula(span.most))
        for span in seen.reach().spans
    ]
    found = ReceptiveFieldAnswer(
        text=seen.text,
        keys=keys,
        spans=spans,
        until=None,
        sees="",
        all_reached=False,
        unknown="",
        copies=Copies(
            python=python(
                f"rule = {_bound_in_python(question.rule, numbers)}",
                f"field = rule.receptive_field({question.layers})",
                "print(field)",
                show("field.count", per="query"),
                "print(field.reach())",
            ),
            command=command("reach", question.rule, at=numbers, layers=str(question.layers)),
            latex=aligned(
                rf"\text{{keys of a query}} &= {keys.latex}",
                *(rf"\max ({distance_latex(span)}) &= {span.most.latex}" for span in spans),
            ),
        ),
    )
    try:
        depth = bound.layers_to_reach_all()
    except (NoClosedForm, NotAffineError) as reason:
        late = isinstance(reason, DeadlineError)
        return found.model_copy(update={"unknown": reason.reason, "late": late})
    until = formula(depth.layers)
    copies = found.copies
    copies.python += "\nprint(rule.layers_to_reach_all())"
    return found.model_copy(
        update={"until": until, "sees": depth.seen(), "all_reached": depth.all_reached, "copies": copies}
    )


class FirstLayersQuestion(Question):
    """A rule, the numbers given so far, and the pixel of an image whose field is shown."""

    rule: str
    numbers: Numbers = Field(default_factory=dict)
    pixel: list[Integer] = Field(default=[], max_length=3)


class FirstLayersAnswer(Answer):
    """The layer that first connects each query (a row) to each key (a column); -1 where none does.

    Of an image: `pixel` to each other pixel. `rows` and `columns` are the positions that are shown; not all
    where there are many. `at` are the numbers. Where there is no map, `no_map` says why.
    """

    at: str
    rows: list[int]
    columns: list[int]
    layers: list[list[int]]
    pixel: list[int]
    no_map: str


def first_layers(question: FirstLayersQuestion) -> FirstLayersAnswer:
    """The map of first layers, at the numbers of the grid."""
    from lattend.counts.field_map import FieldMap, field_map

    rule = _read(question.rule)
    numbers = drawn_at([rule], question.numbers)
    bound = rule.at(**numbers)
    sizes = [bound.values[axis.queries] for axis in bound.axes]
    pixel = question.pixel if len(question.pixel) == len(sizes) == 2 else []
    inside = all(0 <= place < size for place, size in zip(pixel, sizes, strict=False))
    at = ", ".join(f"{name} = {value:,}" for name, value in numbers.items())
    asked = (pixel[0], pixel[1]) if pixel and inside else None
    copies = Copies(
        python=python(
            f"print(field_map({_bound_in_python(question.rule, numbers)}{f', {asked}' if asked else ''}))",
            imports="from lattend.counts.field_map import field_map",
        ),
        command=command("reach", question.rule, at=numbers, map=True, pixel=",".join(map(str, asked or ()))),
    )
    found, reason = FieldMap([], [], []), ""
    try:
        if max(sizes) > MOST_POSITIONS:
            raise DomainError("positions beyond 2^53 are not drawn on the page; the copied Python lists them")
        found = field_map(bound, asked)
        copies.latex = found.latex()
    except DeadlineError:
        raise
    except LattendError as error:
        reason = error.reason
    return FirstLayersAnswer(
        at=at,
        rows=found.rows,
        columns=found.columns,
        layers=found.layers,
        pixel=[*(found.pixel or ())],
        no_map=reason,
        copies=copies,
    )


def _bound_in_python(text: str, numbers: Mapping[str, int]) -> str:
    return call("lt.rule", text) + (f".{call('at', **numbers)}" if numbers else "")


def _read(text: str) -> Rule:
    """The rule, with one allowance for all set work on it."""
    from lattend.budget import Budget

    return replace(read(text), budget=Budget(SECONDS).shared())


PANEL = Panel(
    "field",
    "The receptive field of a stack of layers",
    answer,
    as_typed=True,  # a field that is the rule itself is told in its words
)
FIRST_LAYERS = Panel(
    "first_layers",
    "Which layer first connects two positions",
    first_layers,
)
