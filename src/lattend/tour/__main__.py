"""`python -m lattend.tour`: the tour in the terminal, and its page."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from lattend.cli.main import exit_code
from lattend.cli.output import say
from lattend.draw.grid.samples import SAMPLES
from lattend.report.numbers import seconds
from lattend.tour.entry import CatalogueEntry, measured
from lattend.tour.page import page
from lattend.tour.terminal import catalogue, heading, stations, topics
from lattend.tour.topics import TOPICS, visit


def main(arguments: list[str] | None = None) -> int:
    """Run the tour. Returns 0 if every count equals enumeration, else 1."""
    parser = argparse.ArgumentParser(prog="python -m lattend.tour", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/tour.html"), help="where to write the page")
    out: Path = parser.parse_args(arguments).out
    out.parent.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    stations()
    entries = _entries()
    catalogue(entries)
    visits = [visit(topic) for topic in TOPICS]
    topics(visits)
    heading("The page")
    out.write_text(page(entries, visits), encoding="utf-8")
    say(f"{out}: every topic with its picture, and every rule with its meaning, formula and check.")
    say(f"The tour took {seconds(time.perf_counter() - begun, 3)}.")
    return 0 if all(entry.equal for entry in entries) else 1


def _entries() -> list[CatalogueEntry]:
    """Measure every sample, with a line of progress on a terminal."""
    entries: list[CatalogueEntry] = []
    for number, sample in enumerate(SAMPLES, start=1):
        if sys.stderr.isatty():
            print(f"\r\x1b[Kchecking {sample.name}, {number} of {len(SAMPLES)}", end="", file=sys.stderr)
        entries.append(measured(sample))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return entries


if __name__ == "__main__":
    sys.exit(exit_code(main))
