"""lattend count: the number of attended pairs, as a formula or at given numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import (
    Assume,
    At,
    Deadline,
    First,
    Json,
    Per,
    RuleText,
    option,
    read_names,
    read_numbers,
    read_rule,
)
from lattend.cli.output import say, say_json, width
from lattend.errors import NoClosedForm, NotAffineError
from lattend.report.table import fitted

if TYPE_CHECKING:
    from lattend.counts import Count
    from lattend.rules import Rule


EXAMPLES = (
    "lattend count strided",
    "lattend count strided --at n=65536,t=255",
    'lattend count windowed --assume "w | n"',
    'lattend count "k <= q or k < p" --per query',
    "lattend count causal --per query --from 1",
)


def count(
    rule: RuleText,
    at: At = None,
    assume: Assume = None,
    per: Per = None,
    first: First = 0,
    order: Annotated[str | None, option("n,t", "The big-O as these grow and the rest stay.")] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.")] = False,
    method: Annotated[
        str, typer.Option(metavar="auto|closed|enumerate", help="How to count; auto takes what works.")
    ] = "auto",
    deadline: Deadline = None,
    json: Json = False,
) -> None:
    """How many (query, key) pairs a rule attends.

    A formula with the places where it holds, or a number when every size and parameter has one.
    """
    chosen, values = read_rule(rule), read_numbers(at)
    how: dict[str, Any] = {"per": per, "first": first, "method": method, "deadline": deadline}
    if assume:
        from lattend.rules.language import expr
        from lattend.rules.language.parser import parse_assumption

        letters = {name for text in assume for name in expr.names(parse_assumption(text))}
        numbers = {name: values[name] for name in values.keys() - letters if name in chosen.parameters}
        found = chosen.at(**numbers).count(**how)
        for text in assume:
            found = found.assuming(text)
        rest = {name: value for name, value in values.items() if name not in numbers}
        found = found.at(**rest) if rest else found
    else:
        places: dict[str, Any] = {
            name: value for name, value in values.items() if per and name in chosen.positions
        }
        bound = chosen.at(**{name: value for name, value in values.items() if name not in places})
        found = bound.count(**how, **places)
    growth = None if order is None else str(_formula(chosen, found, how).order(*read_names(order)))
    if json:
        say_json(_data(chosen, found, how, values) | ({} if growth is None else {"order": growth}))
    elif growth is not None:
        say(growth)
    else:
        say(found.latex() if latex and not isinstance(found, int) else _pieces(str(found)))


def _pieces(text: str) -> str:
    """A formula in several pieces, those that are too long for the terminal in lines of their own."""
    lines = text.splitlines()
    return "\n".join(part for line in lines for part in (fitted(line, width()) if len(lines) > 1 else [line]))


def _formula(chosen: Rule, found: Count | int, how: dict[str, Any]) -> Count:
    """The count as a formula, also where all numbers were given."""
    return chosen.count(**how) if isinstance(found, int) else found


def _data(chosen: Rule, found: Count | int, how: dict[str, Any], values: dict[str, int]) -> dict[str, Any]:
    """`parameters` are the names the pieces are written in; `value` is null until all have a number.

    Where there are no pieces, `no_formula` says why.
    """
    formula, why = None, {}
    try:
        formula = _formula(chosen, found, {**how, "method": "closed"})
    except (NoClosedForm, NotAffineError) as reason:
        why = {"no_formula": str(reason)}
    known = formula.json() if formula is not None and not isinstance(formula, int) else {}
    return {
        "rule": chosen.text,
        "parameters": known.get("parameters", chosen.free),
        "pieces": known.get("pieces", []),
        "at": {**chosen.values, **values},
        "value": found if isinstance(found, int) else None,
        **why,
    }
