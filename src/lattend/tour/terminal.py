"""The tour in the terminal: each line of code is shown, run, and followed by what it gives."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import lattend as lt
from lattend.cli.output import say, width
from lattend.report.numbers import seconds as format_seconds
from lattend.report.table import wrap_text
from lattend.tour.topics import Visit, run

if TYPE_CHECKING:
    from lattend.tour.entry import CatalogueEntry

LARGE = "Large"
# A heading, what it shows, and the lines of code
STATIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Write a rule; see its picture and its exact price",
        "A rule says which keys a query attends to. Each attended pair is a dot product to compute.",
        (
            'band = lt.rule("k <= q and q - k <= t")',
            "band.draw(n=12, t=3)",
            "band.count()",
            "band.count(n=65536, t=255)",
        ),
    ),
    (
        "The other two figures",
        "Autoregressive attention, and causal attention inside windows of w.",
        (
            "lt.rules.causal().draw(n=12)",
            "lt.rules.causal().count()",
            "windowed = lt.rules.windowed()",
            "windowed.draw(n=12, w=4)",
            "windowed.count()",
            'windowed.count().assuming("w | n")',
        ),
    ),
    (
        "Is this formula right?",
        "Proved piece by piece, or refuted with the smallest counterexample.",
        (
            "price = lt.rules.strided().count()",
            'price.claim("(2n - t)(t + 1)/2", assuming="t <= n")',
            'price.claim("n*t + n - t^2/2 - t/2", assuming="t <= n")',
            'price.claim(r"\\sum_{i=n-t}^{n} i", assuming="t <= n")',
            'price.claim("n*t")',
            'price.claim("sum(i, i, n - t, n)")',
            'windowed.count().claim("n*(w + 1)/2")',
            'windowed.count().claim("n*(w + 1)/2", assuming="w | n")',
            'price.claim("O(n*t)")',
            'price.claim("O(t^2)")',
        ),
    ),
    (
        "Rows, columns and reach",
        "How many keys a query has, how many queries a key has, and the attention span.",
        (
            'lt.rules.sparse_fixed().count(per="query")',
            'lt.rules.strided().count(per="key")',
            "lt.rules.strided().reach()",
            'lt.rules.strided().count().order("n")',
        ),
    ),
    (
        "Are two rules the same?",
        "Decided for all sizes and parameters at once, without trying any.",
        (
            'lt.rule("k <= q").same_as(lt.rule("not k > q"))',
            "lt.rules.strided(3).same_as(lt.rules.windowed(4))",
            "lt.rules.strided(3).difference(lt.rules.windowed(4))",
            "lt.rules.strided(3).draw(n=12, compare=lt.rules.windowed(4))",
        ),
    ),
    (
        "Images",
        "Rows and columns are counted apart and multiplied.",
        (
            'patch = lt.rules.neighbourhood(edge="shift")',
            "patch.draw(rows=8, cols=8, r=2, pixel=(1, 3))",
            "patch.count()",
            "patch.count(rows=224, cols=224, r=3)",
        ),
    ),
    (
        LARGE,
        "The cost of asking does not grow with n: tiles are shaded from the formula, not from n*n pairs.",
        (
            "lt.rules.sparse_strided().draw(n=1_000_000, l=60_000)",
            "lt.rules.sparse_strided().count(n=10**12, l=10**6)",
        ),
    ),
)


def heading(title: str) -> None:
    """Print a title, underlined."""
    say(f"\n{title}\n{'=' * min(len(title), width())}")


def stations() -> None:
    """Print every station but the catalogue."""
    names: dict[str, Any] = {"lt": lt}
    say("Lattend: write who attends to whom; get its picture and its exact cost.")
    for title, about, lines in STATIONS:
        heading(title)
        say("\n".join(wrap_text(about, width())))
        say("")
        for line in lines:
            _run(line, names, timed=title == LARGE)


def _run(line: str, names: dict[str, Any], timed: bool) -> None:
    """Show a line of code, run it, and show what it gives."""
    say(f">>> {line}")
    begun = time.perf_counter()
    printed = run(line, names)
    elapsed = time.perf_counter() - begun
    if printed:
        say(printed)
        say(f"({format_seconds(elapsed)})\n" if timed else "")


def topics(visits: Iterable[Visit]) -> None:
    """Print each topic beyond rules: its lines, what they gave, the fact, and a command to go on with."""
    for one in visits:
        heading(one.topic.title)
        say("\n".join(wrap_text(one.topic.about, width())))
        say("")
        for line, printed in one.printed:
            say("\n".join(filter(None, (f">>> {line}", printed))))
        say("\n" + "\n".join(wrap_text(one.fact, width())))
        say(f"$ {one.topic.command}")


def catalogue(entries: Sequence[CatalogueEntry]) -> None:
    """Print each rule of the catalogue with its count, the check and the time."""
    heading("The catalogue, counted and checked")
    for entry in entries:
        say(f"\n{entry.sample.call}   {entry.time}")
        say(textwrap.indent(entry.printed, "    "))
        text = entry.verdict if entry.equal else f"DIFFERS: {entry.verdict}"
        say("\n".join(wrap_text(text, width(), indent="  ")))
    slowest = max(entries, key=lambda entry: entry.seconds)
    wrong = [entry.sample.call for entry in entries if not entry.equal]
    pairs = sum(entry.check.pairs for entry in entries if entry.check is not None)
    say(
        f"\n{len(entries)} rules, {pairs:,} pairs enumerated; the slowest count, "
        f"{slowest.sample.call}, took {slowest.time}"
    )
    say(f"differ: {', '.join(wrong)}" if wrong else "every count equals enumeration")
