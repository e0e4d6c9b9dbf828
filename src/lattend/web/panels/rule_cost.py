"""rule_cost: what attention under a rule costs, as formulas and at numbers; projections are not in it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from lattend.cli.cost import CostCommand
from lattend.errors import TooLarge
from lattend.web.panel import Answer, AnswerPart, Integer, Panel
from lattend.web.panels.explain import MOST_HEADS
from lattend.web.rules import RuleQuestion, letters, numbers_of, read
from lattend.web.snippets import call, command, snippets
from lattend.web.views import Formula, formula

if TYPE_CHECKING:
    from lattend.cost import Cost
    from lattend.counts import Count


WORK = ("multiply_adds", "exponentials")
MEMORY = ("saved_activations", "cache")
KEPT = "keys and values of all positions, numbers"  # the rolling buffer, which drops some, is the plan's

PADDED = "Tiles are whole, so those at the end of a short sequence count more pairs than there are."


class RuleCostQuestion(RuleQuestion):
    """A rule, its numbers, and the heads of a layer; `kv_heads` are as many as heads where it is 0."""

    heads: Integer = Field(default=8, ge=1, le=MOST_HEADS)
    kv_heads: Integer = Field(default=0, ge=0, le=MOST_HEADS)
    head_dim: Integer = Field(default=64, ge=1, le=1 << 12)


class PricedQuantity(AnswerPart):
    """One quantity: its formula, None where there is none, and its numbers; "" where it has none.

    Memory and paths have one number, in `needed`.
    """

    name: str
    formula: Formula | None
    needed: str
    executed: str = ""
    dense: str = ""


class RuleCostAnswer(Answer):
    """The quantities, the numbers at which they are evaluated, and a lower bound on the time."""

    at: dict[str, int]
    quantities: list[PricedQuantity]
    time: str
    note: str  # why tiles hold more pairs than there are, where they do


class _Formulas(NamedTuple):
    """The formulas of a rule's cost, which do not depend on the sliders."""

    cost: Cost
    closed: dict[str, Formula | None]
    labels: dict[str, str]


def answer_rule_cost(question: RuleCostQuestion) -> RuleCostAnswer:
    """What attention costs: operations of attended, executed and all pairs, memory, the longest path."""
    from lattend.cost import attention
    from lattend.report.latex import named
    from lattend.rules.example_numbers import priced_number

    rule = read(question.rule)
    if question.kv_heads:  # raises where heads cannot share them alike
        attention(heads=question.heads, kv_heads=question.kv_heads, projections=None)
    at = {
        letter.name: max(priced_number(letter.name), letter.example) if letter.size else letter.example
        for letter in letters(rule)
    }
    at |= numbers_of(rule, question.numbers)
    shown = {name: at[name] for name in rule.free if name != "heads"}
    heads = at["heads"] if "heads" in question.numbers and rule.has_heads else question.heads
    shown |= {"heads": heads, "D_hid": question.head_dim}
    shown |= {"kv_heads": question.kv_heads} if question.kv_heads else {}
    below = {name: value for name, value in shown.items() if value < 0}  # formulas are for 0 or more
    formulas = _formulas(question.rule, bool(question.kv_heads), tuple(below.items()))
    priced = formulas.cost.at(**{name: value for name, value in shown.items() if name not in below})
    quantities = [
        PricedQuantity(
            name=formulas.labels.get(name, name),
            formula=closed,
            **dict(zip(("needed", "executed", "dense"), _numbers(name, priced), strict=False)),
        )
        for name, closed in formulas.closed.items()
        if name != "cache" or priced.value(name) != 0  # where queries attend to later keys, none is kept
    ]
    return RuleCostAnswer(
        at=shown,
        quantities=[one for one in quantities if one.formula or one.needed],
        time=str(priced.time()),
        note=PADDED if _padded(priced) else "",
        copies=snippets(
            f"print({call('lt.cost.attention', question.rule, **shown)[:-1]}, projections=None))",
            command=command(CostCommand, layer="attention(projections=none)", at=shown, rule=question.rule),
            latex=named((one.name, one.formula.latex) for one in quantities if one.formula),
        ),
    )


@lru_cache(maxsize=64)
def _formulas(rule: str, shared: bool, below: tuple[tuple[str, int], ...]) -> _Formulas:
    from lattend.cost import attention
    from lattend.cost.result import LABELS
    from lattend.cost.summary import path_label

    numbers: dict[str, Any] = dict(below)
    cost = attention(rule, projections=None, kv_heads="kv_heads" if shared else None, **numbers)
    counts = {name: cost.columns(name)[0] for name in WORK} | {name: cost.value(name) for name in MEMORY}
    closed = {name: formula(value) for name, value in counts.items()}
    path = None if cost.path is None else formula(cost.path)
    return _Formulas(cost, {**closed, "path": path}, {**LABELS, "cache": KEPT, "path": path_label(cost)})


def _numbers(name: str, priced: Cost) -> list[str]:
    """Needed, executed and dense, or one number."""
    if name in WORK:
        try:
            return [_digits(value) for value in priced.columns(name)]
        except TooLarge:  # tiles to list
            return [_digits(priced.needed.value(name)), "", _digits(priced.dense.value(name))]
    return [_digits(priced.path if name == "path" else priced.value(name))]


def _padded(priced: Cost) -> bool:
    """Whether the tiles hold more pairs than there are."""
    try:
        _, executed, dense = priced.columns(WORK[0])
    except TooLarge:
        return False
    return isinstance(executed, int) and isinstance(dense, int) and executed > dense


def _digits(value: Count | int | None) -> str:
    return f"{value:,}" if isinstance(value, int) else ""


RULE_COST = Panel("rule_cost", "What attention under a rule costs", answer_rule_cost, torch=True)
