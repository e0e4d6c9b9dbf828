"""reach, field, first_layers, cache: the attention span of a rule, its receptive field, its KV cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from lattend.cli.reach import CacheCommand, ReachCommand
from lattend.errors import DeadlineError, DomainError, LattendError, NoClosedForm, NotAffineError
from lattend.web.panel import Answer, AnswerPart, Integer, Panel
from lattend.web.panels.draw import drawn_at
from lattend.web.rules import RuleQuestion, examples, numbers_of, read
from lattend.web.snippets import call, command, python, show, snippets
from lattend.web.views import Formula, formula

if TYPE_CHECKING:
    from lattend.rules import Rule


class SpanView(AnswerPart):
    """The greatest distance of an attended key along one axis, from the query or towards it."""

    distance: str  # q - k
    direction: str
    most: Formula


class ReachAnswer(Answer):
    """The spans, two for each axis."""

    spans: list[SpanView]


def answer_reach(question: RuleQuestion) -> ReachAnswer:
    """How far back and ahead of a query its keys can be, as formulas."""
    from lattend.report.latex import aligned

    rule = read(question.rule)
    numbers = numbers_of(rule, question.numbers)
    reached = rule.at(**numbers).reach()
    spans = [SpanView.view_of(span, most=formula(span.most)) for span in reached.spans]
    return ReachAnswer(
        spans=spans,
        copies=snippets(
            call("rule = lt.rule", question.rule),
            f"print({call('rule.at', **numbers)}.reach())",
            command=command(ReachCommand, question, at=numbers),
            latex=aligned(*(rf"{distance_latex(span)} &\le {span.most.latex}" for span in spans)),
        ),
    )


def distance_latex(span: SpanView) -> str:
    """The distance with its positions as LaTeX names."""
    from lattend.counts.notation import latex_name

    return " - ".join(map(latex_name, span.distance.split(" - ")))


REACH = Panel("reach", "The attention span of a rule", answer_reach)


SECONDS = 1.6  # of set work, for all parts of an answer
MOST_LAYERS = 4096
MOST_POSITIONS = 2**53  # of which a page knows each one exactly


class ReceptiveFieldQuestion(RuleQuestion):
    """A rule, the numbers given so far, and how many layers of it are stacked."""

    layers: Integer = Field(default=2, ge=1, le=MOST_LAYERS)


class ReceptiveFieldAnswer(Answer):
    """The pairs that the layers connect as a rule, the number of keys that a query sees, and their distances.

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


def answer_field(question: ReceptiveFieldQuestion) -> ReceptiveFieldAnswer:
    """The receptive field of a stack of layers, and the depth at which it stops growing."""
    from lattend.report.latex import aligned

    rule = _read_with_shared_budget(question.rule)
    numbers = numbers_of(rule, question.numbers)
    bound = rule.at(**numbers)
    seen = bound.receptive_field(question.layers)
    keys = formula(seen.count(per="query", method="closed"))
    spans = [SpanView.view_of(span, most=formula(span.most)) for span in seen.reach().spans]
    field = ReceptiveFieldAnswer(
        text=seen.text,
        keys=keys,
        spans=spans,
        until=None,
        sees="",
        all_reached=False,
        unknown="",
        copies=snippets(
            f"rule = {_bound_in_python(question.rule, numbers)}",
            f"field = rule.receptive_field({question.layers})",
            "print(field)",
            show("field.count", per="query"),
            "print(field.reach())",
            command=command(ReachCommand, question, at=numbers),
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
        return field.model_copy(update={"unknown": reason.reason, "late": late})
    until = formula(depth.layers)
    copies = field.copies
    copies.python += "\nprint(rule.layers_to_reach_all())"
    return field.model_copy(
        update={"until": until, "sees": depth.seen(), "all_reached": depth.all_reached, "copies": copies}
    )


class FirstLayersQuestion(RuleQuestion):
    """A rule, the numbers given so far, and the pixel of an image whose field is shown."""

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


def answer_first_layers(question: FirstLayersQuestion) -> FirstLayersAnswer:
    """The first layer that connects each pair, at the numbers of the grid."""
    from lattend.counts.field_map import FieldMap, field_map

    rule = _read_with_shared_budget(question.rule)
    numbers = drawn_at([rule], question.numbers)
    bound = rule.at(**numbers)
    sizes = [bound.values[axis.queries] for axis in bound.axes]
    pixel = question.pixel if len(question.pixel) == len(sizes) == 2 else []
    inside = all(0 <= index < size for index, size in zip(pixel, sizes, strict=False))
    at = ", ".join(f"{name} = {value:,}" for name, value in numbers.items())
    start = (pixel[0], pixel[1]) if pixel and inside else None
    copies = snippets(
        f"print(field_map({_bound_in_python(question.rule, numbers)}{f', {start}' if start else ''}))",
        imports="from lattend.counts.field_map import field_map",
        command=command(ReachCommand, rule=question.rule, at=numbers, layer_map=True, pixel=start),
    )
    layer_map, reason = FieldMap([], [], []), ""
    try:
        if max(sizes) > MOST_POSITIONS:
            raise DomainError("positions beyond 2^53 are not drawn on the page; the copied Python lists them")
        layer_map = field_map(bound, start)
        copies.latex = layer_map.latex()
    except DeadlineError:
        raise
    except LattendError as error:
        reason = error.reason
    return FirstLayersAnswer(
        at=at,
        rows=layer_map.rows,
        columns=layer_map.columns,
        layers=layer_map.layers,
        pixel=[*(layer_map.pixel or ())],
        no_map=reason,
        copies=copies,
    )


def _bound_in_python(text: str, numbers: Mapping[str, int]) -> str:
    return call("lt.rule", text) + (f".{call('at', **numbers)}" if numbers else "")


def _read_with_shared_budget(text: str) -> Rule:
    """The rule with one time budget for all set work."""
    from lattend.budget import Budget

    return replace(read(text), budget=Budget(SECONDS).shared())


FIELD = Panel(
    "field",
    "The receptive field of a stack of layers",
    answer_field,
    as_typed=True,  # a field that is the rule itself is told in its words
)
FIRST_LAYERS = Panel("first_layers", "Which layer first connects two positions", answer_first_layers)


RETENTION_IMPORT = "from lattend.plans.retention import retention"


class CacheAnswer(Answer):
    """`most` is the size of the rolling buffer, "" where it grows with the sequence.

    `examples` are the numbers taken for letters that have none, and must have one; `no_cache` says why tokens
    cannot be decoded one by one.
    """

    examples: dict[str, int]
    most: str
    sentence: str
    no_cache: str


def answer_cache(question: RuleQuestion) -> CacheAnswer:
    """How many keys a KV cache holds at most, when each is dropped after the last query that reaches it."""
    from lattend.plans.retention import retention
    from lattend.report.latex import escape
    from lattend.sets.guard import deadlines_missed

    rule = read(question.rule)
    inner = {axis.queries for axis in rule.axes[1:]}  # an image is read row by row
    wanted = [name for name in rule.free if name in inner or name == "heads" or name in rule.parameters]
    numbers = {name: value for name, value in numbers_of(rule, question.numbers).items() if name in wanted}
    taken = examples(rule, (name for name in wanted if name not in numbers))
    numbers |= taken
    bound = call("lt.rule", question.rule) + (call(".at", **numbers) if numbers else "")
    copies = snippets(
        f"print(retention({bound}))",
        imports=RETENTION_IMPORT,
        command=command(CacheCommand, question, at=numbers),
    )
    missed = deadlines_missed()
    try:
        kept = retention(rule.at(**numbers))
    except DomainError:
        raise
    except LattendError as reason:
        if deadlines_missed() > missed:  # it is not that there is no cache
            raise DeadlineError(reason.reason) from None
        copies.python = python(
            "try:",
            f"    print(retention({bound}))",
            "except LattendError as reason:",
            '    print(f"no cache: {reason}")',
            imports=f"from lattend.errors import LattendError\n{RETENTION_IMPORT}",
        )
        return CacheAnswer(examples=taken, most="", sentence="", no_cache=reason.reason, copies=copies)
    most = "" if kept.most is None else f"{kept.most:,}"
    copies.latex = escape(str(kept))
    return CacheAnswer(examples=taken, most=most, sentence=str(kept), no_cache="", copies=copies)


CACHE = Panel("cache", "The KV cache that a rule needs", answer_cache)
