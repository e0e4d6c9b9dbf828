"""lattend claim, lattend check: a formula against a count, and closed forms against enumeration."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lattend.cli.arguments import (
    assume_option,
    at_option,
    deadline_option,
    first_option,
    per_option,
    read_numbers,
    read_renames,
    read_rule,
    rule_argument,
)
from lattend.cli.command import Answer, Command, argument, flag, option, setting
from lattend.cli.failures import NO, NO_ANSWER, YES, with_options
from lattend.cli.output import say, say_json

if TYPE_CHECKING:
    from lattend.counts.check import Progress


@dataclass(frozen=True)
class ClaimCommand(Command):
    r"""Whether a formula is the count of a rule.

    Proved, or refuted with the smallest counterexample. FORMULA is written as on paper: plain or LaTeX, sums,
    1 + 2 + ... + n, a chain N = a = b of which each equation is judged, as `lattend count` prints it, or an
    order: O(n*t), Theta, Omega, o, omega. The exit code is 0 when it holds, 1 when it fails or holds only
    somewhere, 3 when that stays undecided.

        lattend claim causal "n*(n + 1)/2"
        lattend claim causal "N = 1 + 2 + \dots + n = n(n + 1)/2"
        lattend claim strided "n*(t + 1)"
        lattend claim windowed "n*(w + 1)/2" --assume "w | n"
        lattend claim causal i --per query --from 1
        lattend claim strided "Theta(n*t)" --assume "1 <= t <= n"
    """

    rule: str = rule_argument()
    formula: str = argument("FORMULA", "What the count should be.")
    assume: list[str] | None = assume_option()
    rename: list[str] | None = option("L=n,i=q+1", "Letters of the formula, and ours for them.")
    at: list[str] | None = at_option()
    per: str | None = per_option()
    first: int = first_option()
    exact: bool = flag("Accept nothing but the count: an order such as O(n) fails.")
    deadline: float | None = deadline_option()

    def answer(self) -> Answer:
        numbers, attended = read_numbers(self.at), read_rule(self.rule)
        positions = {
            name: value for name, value in numbers.items() if self.per and name in attended.positions
        }
        bound = attended.at(**{name: value for name, value in numbers.items() if name not in positions})
        count = bound.count(
            per=self.per, first=self.first, method="closed", deadline=self.deadline, **positions
        )
        if isinstance(count, int):
            from lattend.counts.claim import judge_number

            values = {**bound.values, **positions}
            verdict = judge_number(
                count, self.formula, values, read_renames(self.rename), self.assume or (), exact=self.exact
            )
        else:
            for text in self.assume or ():
                count = count.assuming(text)
            verdict = count.claim(self.formula, rename=read_renames(self.rename), exact=self.exact)
        if self.json:
            say_json(verdict.json())
        else:
            say(with_options(str(verdict)))
        return YES if verdict.holds else NO_ANSWER if verdict.status == "undecided" else NO


PROGRESS_AFTER = 0.7  # seconds before a progress bar appears


@dataclass(frozen=True)
class CheckCommand(Command):
    """Whether the closed forms equal enumeration.

    Everything small is counted twice, by the closed form and pair by pair: all pairs,
    the keys of each query and the queries of each key, at all sizes and parameters up to N.
    The exit code is 0 when all agree and 1 at the first mismatch.

        lattend check strided
        lattend check "k <= q and (q - k) % w == 0" --upto 20
    """

    rule: str = rule_argument()
    upto: int = setting("N", "Sizes and parameters up to this number.", 12, least=0, most=64)
    at: list[str] | None = at_option()

    def answer(self) -> Answer:
        from lattend.counts.check import check as compare

        bound = read_rule(self.rule).at(**read_numbers(self.at))
        with _progress() as progress:
            result = compare(bound, self.upto, progress)
        return result


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
