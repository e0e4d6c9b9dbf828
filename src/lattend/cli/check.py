"""lattend check: the closed forms against enumeration at every small case."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from lattend.cli.arguments import At, Json, RuleText, read_numbers, read_rule
from lattend.cli.failures import NO, YES
from lattend.cli.output import show_report

if TYPE_CHECKING:
    from lattend.counts.check import Progress

PROGRESS_AFTER = 0.7  # seconds before a progress bar appears


EXAMPLES = (
    "lattend check strided",
    'lattend check "k <= q and (q - k) % w == 0" --upto 20',
)


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
        found = compare(bound, upto, progress)
    show_report(found, json)
    return YES if found else NO


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on standard error, where that is a terminal and the check takes long."""
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
