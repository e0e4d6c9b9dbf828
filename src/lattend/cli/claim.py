"""lattend claim: whether a formula is the rule's count."""

from __future__ import annotations

from typing import Annotated

import typer

from lattend.cli.arguments import (
    Assume,
    At,
    Deadline,
    First,
    Json,
    Per,
    RuleText,
    argument,
    option,
    read_numbers,
    read_renames,
    read_rule,
)
from lattend.cli.failures import NO, NO_ANSWER, YES, with_options
from lattend.cli.output import say, say_json
from lattend.counts.claim import judge_number

EXAMPLES = (
    'lattend claim causal "n*(n + 1)/2"',
    r'lattend claim causal "N = 1 + 2 + \dots + n = n(n + 1)/2"',
    'lattend claim strided "n*(t + 1)"',
    'lattend claim windowed "n*(w + 1)/2" --assume "w | n"',
    "lattend claim causal i --per query --from 1",
    'lattend claim strided "Theta(n*t)" --assume "1 <= t <= n"',
)


def claim(
    rule: RuleText,
    formula: Annotated[str, argument("FORMULA", "What the count should be.")],
    assume: Assume = None,
    rename: Annotated[
        list[str] | None, option("L=n,i=q+1", "Letters of the formula, and ours for them.")
    ] = None,
    at: At = None,
    per: Per = None,
    first: First = 0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Accept nothing but the count: an order such as O(n) fails.")
    ] = False,
    deadline: Deadline = None,
    json: Json = False,
) -> int:
    """Whether a formula is the count of a rule.

    Proved, or refuted with the smallest counterexample. FORMULA is written as on paper: plain or LaTeX, sums,
    1 + 2 + ... + n, a chain N = a = b of which each equation is judged, as `lattend count` prints it, or an
    order: O(n*t), Theta, Omega, o, omega. The exit code is 0 when it holds, 1 when it fails or holds only
    somewhere, 3 when that stays undecided.
    """
    numbers, attended = read_numbers(at), read_rule(rule)
    places = {name: value for name, value in numbers.items() if per and name in attended.positions}
    bound = attended.at(**{name: value for name, value in numbers.items() if name not in places})
    found = bound.count(per=per, first=first, method="closed", deadline=deadline, **places)
    if isinstance(found, int):
        values = {**bound.values, **places}
        verdict = judge_number(found, formula, values, read_renames(rename), assume or (), exact=exact)
    else:
        for text in assume or ():
            found = found.assuming(text)
        verdict = found.claim(formula, rename=read_renames(rename), exact=exact)
    if json:
        say_json(verdict.json())
    else:
        say(with_options(str(verdict)))
    return YES if verdict.holds else NO_ANSWER if verdict.status == "undecided" else NO
