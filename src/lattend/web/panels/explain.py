"""explain, tile_map: what attention would do under a rule, and which tiles it would compute."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lattend.cli.explain import ExplainCommand
from lattend.errors import DomainError
from lattend.web.library import with_program_threads
from lattend.web.panel import Answer, AnswerPart, Panel
from lattend.web.rules import RuleQuestion, examples, numbers_of, read
from lattend.web.snippets import call, command, show, snippets

if TYPE_CHECKING:
    from lattend.attend.explain.explain import Explanation
    from lattend.draw import Picture


MOST_HEADS = 1 << 12


class PlanQuestion(RuleQuestion):
    """A rule, its numbers, and the tensors of a call; `kv_heads` are as many as heads where it is 0."""

    device: Literal["cpu", "cuda"] = "cpu"
    dtype: Literal["bfloat16", "float16", "float32", "float64"] = "float32"
    head_dim: int = Field(default=64, ge=1, le=1 << 12)
    heads: int = Field(default=8, ge=1, le=MOST_HEADS)
    kv_heads: int = Field(default=0, ge=0, le=MOST_HEADS)
    batch: int = Field(default=1, ge=1, le=1 << 20)
    kernel: Literal["", "sdpa", "triton", "native", "cpu", "dense", "reference"] = ""

    @property
    def options(self) -> dict[str, str | int]:
        """The arguments of explain that differ from its defaults."""
        options = {name: getattr(self, name) for name in ("device", "dtype", "head_dim", "heads", "kv_heads")}
        options |= {"batch": self.batch, "kernel": self.kernel}
        default = PlanQuestion(rule="")
        return {name: value for name, value in options.items() if value != getattr(default, name)}


def numbers_in(question: PlanQuestion) -> tuple[dict[str, int], dict[str, int]]:
    """The question's numbers, and examples for open parameters; explain has defaults for sizes.

    A line is longer than that where the rule's own numbers ask for it.
    """
    from lattend.rules.example_numbers import priced_number

    rule = read(question.rule)
    numbers = numbers_of(rule, question.numbers)
    taken = examples(rule, (name for name in rule.free if name not in numbers))
    return numbers, {
        name: value for name, value in taken.items() if name in rule.parameters or value > priced_number(name)
    }


def open_numbers(question: PlanQuestion, explanation: Explanation) -> dict[str, int]:
    """The numbers of a call that the rule's text leaves open."""
    bound = read(question.rule).values
    return {name: value for name, value in explanation.at.items() if name not in bound}


def explained(question: PlanQuestion) -> Explanation:
    """The explanation of the call. It is kept, since maps of it at several zooms follow."""
    return _explained(question.model_dump_json(include={*PlanQuestion.model_fields}))


@lru_cache(maxsize=8)
def _explained(text: str) -> Explanation:
    from lattend.attend.explain.explain import explain
    from lattend.rules.language.call import array_missing

    question = PlanQuestion.model_validate_json(text)
    numbers, taken = numbers_in(question)
    rule = read(question.rule)
    if rule.open:
        raise array_missing(question.rule, rule.open[0])
    known = numbers | taken
    bound = rule.at(**{name: value for name, value in known.items() if name in rule.parameters})
    sizes: dict[str, Any] = {name: value for name, value in known.items() if name not in rule.parameters}
    heads = sizes.pop("heads", question.heads)  # a rule that speaks of heads may have its own number
    with with_program_threads():  # as the copies of the panel
        return explain(
            bound,
            device=question.device,
            dtype=question.dtype,
            head_dim=question.head_dim,
            heads=None if "heads" in rule.values else heads,
            kv_heads=question.kv_heads or None,
            batch=question.batch,
            kernel=question.kernel or None,
            **sizes,
        )


class Amount(AnswerPart):
    """Pairs in digits, and as a share of all: above 1 where tiles reach past the ends."""

    name: str
    pairs: str
    share: float | None
    share_text: str


class PlanPart(AnswerPart):
    """One part of the plan, in words."""

    condition: str
    layout: str
    checked: str
    tiles: str
    steps: str
    executed: str


class KernelChoice(AnswerPart):
    """A kernel, and why it cannot run this; "" where it can."""

    name: str
    reason: str
    chosen: bool


class PlanFact(AnswerPart):
    """A fact: its name and its words."""

    name: str
    words: str


class ExplainAnswer(Answer):
    """The plan at the numbers `at`; `examples` are those that the question did not give."""

    title: str
    at: dict[str, int]
    examples: list[str]
    tensors: str
    of: str
    amounts: list[Amount]
    useful: str
    why: str
    as_written: str
    parts: list[PlanPart]
    kernels: list[KernelChoice]
    refused: str
    facts: list[PlanFact]
    mapped: bool  # whether the panel tile_map has it


def answer_explain(question: PlanQuestion) -> ExplainAnswer:
    """What attention would do, without running it."""
    from lattend.attend.explain.memory import format_memory

    explanation = explained(question)
    typed, _ = numbers_in(question)
    numbers = open_numbers(question, explanation)
    options = {name: value for name, value in question.options.items() if name not in explanation.at}
    facts = [*([] if explanation.refused else explanation.facts), *format_memory(explanation.memory)]
    return ExplainAnswer.view_of(
        explanation,
        title=", ".join(f"{name} = {value:,}" for name, value in explanation.at.items()),
        examples=[
            name
            for name in read(question.rule).free
            if name in explanation.at and name not in (*typed, "heads")
        ],
        amounts=_amounts(explanation),
        useful=explanation.useful_text,
        parts=[
            PlanPart.view_of(part, tiles=part.tile_text, steps=part.step_text, executed=f"{part.executed:,}")
            for part in explanation.parts
        ],
        kernels=[
            KernelChoice(name=name, reason=reason or "", chosen=name == explanation.kernel)
            for name, reason in explanation.kernels.items()
        ],
        facts=[PlanFact(name=name, words=words) for name, words in facts],
        mapped=explanation.has_tile_map,
        copies=snippets(
            show("lt.explain", question.rule, **numbers, **options),
            command=command(ExplainCommand, rule=question.rule, at=numbers, **options),
            latex=explanation.report().latex(),
        ),
    )


def _amounts(explanation: Explanation) -> list[Amount]:
    from lattend.attend.explain.text import executed_label, share_text

    values = {
        "needed": explanation.needed,
        executed_label(explanation): explanation.executed,
        "dense": explanation.dense,
    }
    return [
        Amount(
            name=name,
            pairs="not counted" if value is None else f"{value:,}",
            share=None if value is None else value / max(1, explanation.dense),
            share_text="" if value is None or not explanation.dense else share_text(value, explanation.dense),
        )
        for name, value in values.items()
    ]


def explain_picture(question: PlanQuestion) -> Picture:
    """The tiles over the rule, at a size that can be read."""
    return explained(question).picture()


EXPLAIN = Panel(
    "explain", "What attention would do", answer_explain, explain_picture, torch=True, as_typed=True
)


Edge = Annotated[int, Field(ge=0, le=1 << 40)]


class TileMapQuestion(PlanQuestion):
    """A plan, and the view: first query, end of queries, first key, end of keys; empty for all."""

    tiles_view: list[Edge] = Field(default_factory=list, max_length=4)


class TileMapAnswer(Answer):
    """The map row by row: the executed and the attended pairs of each box between edges.

    `needed` is empty where attended pairs cannot be counted box by box.
    """

    query_edges: list[int]
    key_edges: list[int]
    executed: list[list[int]]
    needed: list[list[int]]
    queries: int
    keys: int


def answer_tile_map(question: TileMapQuestion) -> TileMapAnswer:
    """The map of the plan's tiles."""
    from lattend.report.report import Report
    from lattend.report.table import Facts

    explanation = explained(question)
    view = question.tiles_view
    if len(view) not in (0, 4):
        raise DomainError(f"a view has four ends, of queries and of keys, not {len(view)}")
    spans = ((view[0], view[1]), (view[2], view[3])) if view else (None, None)
    made = explanation.tile_map(*spans)
    shown = {
        name: f"{span[0]}:{span[1]}" for name, span in zip(("queries", "keys"), spans, strict=True) if span
    }
    numbers = open_numbers(question, explanation)
    options = {name: value for name, value in question.options.items() if name not in explanation.at}
    return TileMapAnswer(
        query_edges=list(made.query_edges),
        key_edges=list(made.key_edges),
        executed=made.executed.tolist(),
        needed=[] if made.needed is None else made.needed.tolist(),
        queries=explanation.shapes[0][2],
        keys=explanation.shapes[1][2],
        copies=snippets(
            call("plan = lt.explain", question.rule, **numbers, **options),
            call("tiles = plan.tile_map", *(spans if view else ())),
            "print(tiles.executed.sum(), 'pairs run here')",
            *([] if made.needed is None else ["print(tiles.needed.sum(), 'of them are attended')"]),
            command=command(ExplainCommand, rule=question.rule, at=numbers, **options, tiles=True, **shown),
            latex=Report(TILE_MAP.title, [Facts(made.facts)]).latex(),
        ),
    )


TILE_MAP = Panel("tile_map", "Where a plan computes pairs", answer_tile_map, torch=True, as_typed=True)
