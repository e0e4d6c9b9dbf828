"""explain: what attention would do under a rule: pairs, parts, kernels, why not the others, time, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from lattend.web.copies import command, python, show
from lattend.web.panel import Answer, Copies, Panel
from lattend.web.plans import PlanQuestion, explained, numbers_in, open_numbers
from lattend.web.rules import read

if TYPE_CHECKING:
    from lattend.attend.explain.explain import Explanation
    from lattend.draw import Picture


class Amount(BaseModel):
    """Pairs in digits, and as a share of all: above 1 where tiles reach past the ends."""

    name: str
    pairs: str
    share: float | None
    share_text: str


class PlanPart(BaseModel):
    """One part of the plan, in words."""

    condition: str
    layout: str
    checked: str
    tiles: str
    steps: str
    executed: str


class KernelChoice(BaseModel):
    """A kernel, and why it cannot run this; "" where it can."""

    name: str
    reason: str
    chosen: bool


class PlanFact(BaseModel):
    """A name and words."""

    name: str
    words: str


class ExplainAnswer(Answer):
    """The plan; `at` are its numbers, of which `examples` were given by nobody."""

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


def answer(question: PlanQuestion) -> ExplainAnswer:
    """What attention would do, found without doing it."""
    from lattend.attend.explain.memory import format_memory

    found = explained(question)
    given, _ = numbers_in(question)
    numbers = open_numbers(question, found)
    options = {name: value for name, value in question.options.items() if name not in found.at}
    facts = [*([] if found.refused else found.facts), *format_memory(found.memory)]
    return ExplainAnswer(
        title=", ".join(f"{name} = {value:,}" for name, value in found.at.items()),
        at=found.at,
        examples=[
            name for name in read(question.rule).free if name in found.at and name not in (*given, "heads")
        ],
        tensors=found.tensors,
        of=found.of,
        amounts=_amounts(found),
        useful=found.useful_text,
        why=found.why,
        as_written=found.as_written,
        parts=[
            PlanPart(
                condition=part.condition,
                layout=part.layout,
                checked=part.checked,
                tiles=part.tile_text,
                steps=part.step_text,
                executed=f"{part.executed:,}",
            )
            for part in found.parts
        ],
        kernels=[
            KernelChoice(name=name, reason=reason or "", chosen=name == found.kernel)
            for name, reason in found.kernels.items()
        ],
        refused=found.refused,
        facts=[PlanFact(name=name, words=words) for name, words in facts],
        mapped=found.has_tile_map,
        copies=Copies(
            python=python(show("lt.explain", question.rule, **numbers, **options)),
            command=command(
                "explain",
                question.rule,
                at=numbers,
                **{name: str(value) for name, value in options.items()},
            ),
            latex=found.report().latex(),
        ),
    )


def _amounts(found: Explanation) -> list[Amount]:
    from lattend.attend.explain.text import executed_label, share_text

    values = {"needed": found.needed, executed_label(found): found.executed, "dense": found.dense}
    return [
        Amount(
            name=name,
            pairs="not counted" if value is None else f"{value:,}",
            share=None if value is None else value / max(1, found.dense),
            share_text="" if value is None or not found.dense else share_text(value, found.dense),
        )
        for name, value in values.items()
    ]


def picture(question: PlanQuestion) -> Picture:
    """The tiles over the rule, at a size that can be read."""
    return explained(question).picture()


PANEL = Panel(
    "explain",
    "What attention would do",
    answer,
    picture,
    torch=True,
    as_typed=True,
)
