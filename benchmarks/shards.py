"""How long a plan of shards takes: affine rules of the catalogue, 1,024 ranks, n = 2²⁰ and 10⁹.

Each plan is made anew, with its closed forms, for three cuts and every strategy, bytes and predicted times;
the process is warm, and times are those of its one thread on the CPU, the least of several rounds. Images are
the nearest square. `--save` writes results/shards.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import plans
import report
from rich.console import Console
from rich.table import Table

import lattend as lt
from lattend.counts.counting import forget
from lattend.parallel.shard_plan import ShardPlan, plan

SIZES = {"2²⁰": 2**20, "10⁹": 10**9}
RANKS = 1024
SAVED = Path(__file__).parent / "results" / "shards.json"


def planned(rule: lt.Rule, n: int, ranks: int = RANKS) -> ShardPlan:
    """A fresh plan, with all that its tables need."""
    forget()
    side = round(n**0.5)
    sizes: dict[str, Any] = {"n": n} if len(rule.axes) == 1 else {"rows": side, "cols": side}
    return plan(rule, ranks=ranks, heads=32, kv_heads=8, head_dim=128, **sizes)


def milliseconds(rule: lt.Rule, n: int) -> float:
    """One round."""
    begin = time.process_time()
    planned(rule, n)
    return (time.process_time() - begin) * 1e3


def measured(rounds: int = 15) -> list[dict[str, Any]]:
    """Of each rule the least milliseconds at each n, and what was chosen at the largest.

    A round takes all rules in turn, so that a busy minute of the machine is not one rule's alone.
    """
    taken: dict[tuple[str, str], list[float]] = {(name, n): [] for name in plans.RULES for n in SIZES}
    for _ in range(rounds):
        for (name, label), times in taken.items():
            times.append(milliseconds(plans.RULES[name], SIZES[label]))
    return [
        {
            "rule": name,
            "milliseconds": {label: round(min(taken[name, label]), 1) for label in SIZES},
            "chosen": planned(rule, 10**9).chosen.label,
        }
        for name, rule in plans.RULES.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="write results/shards.json")
    given = parser.parse_args()
    table = Table("rule", *(f"n = {label}, ms" for label in SIZES), "chosen at 10⁹")
    rows = measured()
    for row in rows:
        table.add_row(row["rule"], *map(str, row["milliseconds"].values()), row["chosen"])
    Console().print(table)
    if given.save:
        SAVED.write_text(
            json.dumps({"machine": report.machine(), "ranks": RANKS, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
