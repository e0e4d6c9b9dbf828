"""How long rules, counts, claims and pictures take.

    python benchmarks/counts.py

Warm means: a process that has counted before, with the memory of closed forms emptied. Cold means: a
new process, start of Python included. Each figure is the median of several runs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import lattend as lt
from lattend.counts import forget
from lattend.rules import CATALOGUE

MORE = {
    "causal, bottom right": lt.rules.causal(align="bottom-right"),
    "neighbourhood, shifted": lt.rules.neighbourhood(edge="shift"),
    "neighbourhood, step": lt.rules.neighbourhood(step="step"),
    "neighbourhood, step, shifted": lt.rules.neighbourhood(step="step", edge="shift"),
    "neighbourhood, 3-D": lt.rules.neighbourhood(axes=3),
}


def milliseconds(work: Callable[[], object], runs: int = 7) -> float:
    """The median time of `work`, in milliseconds."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def counts() -> None:
    print("closed form of each catalogue rule, all parameters symbolic (aim: under 50 ms warm)")
    rules = {name: make() for name, make in CATALOGUE.items() if name != "documents"} | MORE
    for name, rule in rules.items():

        def fresh(rule: lt.Rule = rule) -> object:
            forget()
            return rule.count()

        fresh()
        known = rule.count()
        print(f"  {name:<30} {milliseconds(fresh):7.1f} ms  {len(known.pieces)} pieces")


def numbers() -> None:
    print("strided at a number, its closed form known: n = 10 and n = 10**12")
    for n in (10, 10**12):
        print(f"  n = {n:<14} {milliseconds(lambda n=n: lt.rules.strided().count(n=n, t=7), 51):7.3f} ms")


def claims() -> None:
    print("claims on strided")
    count = lt.rules.strided().count()
    for formula in ("(2n - t)(t + 1)/2", "sum(i, i, n - t, n)", "n*t", "O(n*t)"):
        print(f"  {formula:<30} {milliseconds(lambda f=formula: count.claim(f)):7.1f} ms")


def pictures() -> None:
    print("pictures at n = 1,000,000 as SVG, first and second time (aim: under 1 s)")
    for rule in (lt.rules.strided(5000), lt.rules.windowed(4096), lt.rules.sparse_fixed(1000, 10)):
        start = time.perf_counter()
        rule.draw(n=1_000_000).svg()
        first = (time.perf_counter() - start) * 1e3
        again = milliseconds(lambda rule=rule: rule.draw(n=1_000_000).svg(), 3)
        print(f"  {rule.about.name if rule.about else rule.text:<30} {first:7.0f} ms {again:7.0f} ms")


def cold() -> None:
    print("cold, as a new process")
    python = sys.executable
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "import lattend (aim: under 200 ms)": [python, "-c", "import lattend"],
        "lattend count strided (aim: under 1 s)": [python, "-m", "lattend", "count", "strided"],
        "lattend count 'k <= q' (aim: under 1 s)": [python, "-m", "lattend", "count", "k <= q"],
        "lattend --help": [python, "-m", "lattend", "--help"],
    }
    for name, command in commands.items():
        took = milliseconds(lambda c=command: subprocess.run(c, check=True, capture_output=True), 5)
        print(f"  {name:<42} {took:7.0f} ms")


if __name__ == "__main__":
    for part in (counts, numbers, claims, pictures, cold):
        part()
        print()
