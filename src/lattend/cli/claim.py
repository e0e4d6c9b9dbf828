"""lattend claim, lattend check: a formula against a count, and closed forms against enumeration."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

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
from lattend.cli.output import say, say_json, show_report

if TYPE_CHECKING:
    from lattend.counts.check import Progress


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
    positions = {name: value for name, value in numbers.items() if per and name in attended.positions}
    bound = attended.at(**{name: value for name, value in numbers.items() if name not in positions})
    count = bound.count(per=per, first=first, method="closed", deadline=deadline, **positions)
    if isinstance(count, int):
        from lattend.counts.claim import judge_number

        values = {**bound.values, **positions}
        verdict = judge_number(count, formula, values, read_renames(rename), assume or (), exact=exact)
    else:
        for text in assume or ():
            count = count.assuming(text)
        verdict = count.claim(formula, rename=read_renames(rename), exact=exact)
    if json:
        say_json(verdict.json())
    else:
        say(with_options(str(verdict)))
    return YES if verdict.holds else NO_ANSWER if verdict.status == "undecided" else NO


PROGRESS_AFTER = 0.7  # seconds before a progress bar appears


CHECK_EXAMPLES = ("lattend check strided", 'lattend check "k <= q and (q - k) % w == 0" --upto 20')


def check(
    rule: RuleText,
    upto: Annotated[
        int, typer.Option(min=0, max=64, metavar="N", help="Sizes and parameters up to this number.")
    ] = 12,
    at: At = None,
    json: Json = False,
) -> int:
    """Whether the closed forms equal enumeration.

    Everything small is counted twice, by the closed form and pair by pair: all pairs,
    the keys of each query and the queries of each key, at all sizes and parameters up to N.
    The exit code is 0 when all agree and 1 at the first mismatch.
    """
    from lattend.counts.check import check as compare

    bound = read_rule(rule).at(**read_numbers(at))
    with _progress() as progress:
        result = compare(bound, upto, progress)
    show_report(result, json)
    return YES if result else NO


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A progress bar on standard error, if that is a terminal and the check takes long."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    bar = Bar(console=Console(stderr=True), transient=True)
    task = bar.add_task("pairs")
    begun = time.monotonic()

    def update(done: int, total: int) -> None:
        if time.monotonic() - begun > PROGRESS_AFTER:
            bar.start()
            bar.update(task, completed=done, total=total)

    try:
        yield update
    finally:
        bar.stop()
