"""lattend count: the number of attended pairs, as a formula or at given numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import (
    assume_option,
    at_option,
    deadline_option,
    first_option,
    per_option,
    read_names,
    read_numbers,
    read_rule,
    rule_argument,
)
from lattend.cli.command import Answer, Command, flag, option, setting
from lattend.cli.output import say, say_json, width
from lattend.errors import NoClosedForm, NotAffineError
from lattend.report.table import fitted

if TYPE_CHECKING:
    from lattend.counts import Count
    from lattend.rules import Rule


@dataclass(frozen=True)
class CountCommand(Command):
    """How many (query, key) pairs a rule attends.

    A formula with the places where it holds, or a number when every size and parameter has one.

        lattend count strided
        lattend count strided --at n=65536,t=255
        lattend count windowed --assume "w | n"
        lattend count "k <= q or k < p" --per query
        lattend count causal --per query --from 1
    """

    rule: str = rule_argument()
    at: list[str] | None = at_option()
    assume: list[str] | None = assume_option()
    per: str | None = per_option()
    first: int = first_option()
    order: str | None = option("n,t", "The big-O as these grow and the rest stay.")
    latex: bool = flag("Print LaTeX.")
    method: str = setting("auto|closed|enumerate", "How to count; auto takes what works.", "auto")
    deadline: float | None = deadline_option()

    def answer(self) -> Answer:
        chosen, values = read_rule(self.rule), read_numbers(self.at)
        how = self.options("per first method deadline")
        if self.assume:
            from lattend.rules.language import expr
            from lattend.rules.language.parser import parse_assumption

            letters = {name for text in self.assume for name in expr.names(parse_assumption(text))}
            numbers = {name: values[name] for name in values.keys() - letters if name in chosen.parameters}
            result = chosen.at(**numbers).count(**how)
            for text in self.assume:
                result = result.assuming(text)
            rest = {name: value for name, value in values.items() if name not in numbers}
            result = result.at(**rest) if rest else result
        else:
            positions: dict[str, Any] = {
                name: value for name, value in values.items() if self.per and name in chosen.positions
            }
            bound = chosen.at(**{name: value for name, value in values.items() if name not in positions})
            result = bound.count(**how, **positions)
        growth = (
            None if self.order is None else str(_formula(chosen, result, how).order(*read_names(self.order)))
        )
        if self.json:
            say_json(_data(chosen, result, how, values) | ({} if growth is None else {"order": growth}))
        elif growth is not None:
            say(growth)
        else:
            say(result.latex() if self.latex and not isinstance(result, int) else _pieces(str(result)))


def _pieces(text: str) -> str:
    """The formula, with long pieces split over several lines."""
    lines = text.splitlines()
    return "\n".join(part for line in lines for part in (fitted(line, width()) if len(lines) > 1 else [line]))


def _formula(chosen: Rule, result: Count | int, how: dict[str, Any]) -> Count:
    """The count as a formula, even if all letters have numbers."""
    return chosen.count(**how) if isinstance(result, int) else result


def _data(chosen: Rule, result: Count | int, how: dict[str, Any], values: dict[str, int]) -> dict[str, Any]:
    """`parameters` are the names the pieces are written in; `value` is null until all have a number.

    Where there are no pieces, `no_formula` says why.
    """
    formula, why = None, {}
    try:
        formula = _formula(chosen, result, {**how, "method": "closed"})
    except (NoClosedForm, NotAffineError) as reason:
        why = {"no_formula": str(reason)}
    known = formula.json() if formula is not None and not isinstance(formula, int) else {}
    return {
        "rule": chosen.text,
        "parameters": known.get("parameters", chosen.free),
        "pieces": known.get("pieces", []),
        "at": {**chosen.values, **values},
        "value": result if isinstance(result, int) else None,
        **why,
    }
