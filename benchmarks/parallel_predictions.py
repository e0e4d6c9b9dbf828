"""What lt.parallel.plan predicts beside what is measured, for a cluster of this machine's own numbers.

Called by parallel_cpu.py --predict, on every rank. Before each rule the machine is measured with all ranks at
work, as they are in a run, since others may use it too: the product of two matrices, a copy, attention of a
shard with itself forward and backward, and messages that all ranks send to the next at once. A Cluster of
these numbers has all that a plan is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from parallel_runs import BACKWARD, FORWARD, HEADS, Contender, D, measure, seconds, spread, timed

import lattend as lt
from lattend.machines import Machine
from lattend.parallel.strategies import BACK

SIDE, COPIED = 768, 1 << 24  # of the matrices, and bytes that are copied
PLANNED = {"halo": "halo", "ring": "halo, staged", "gather": "all-gather", "ulysses": "Ulysses"}
WORKS = FORWARD, BACKWARD


@dataclass(frozen=True)
class Compared:
    """Seconds of a pass of a strategy, predicted and measured."""

    rule: str
    strategy: str
    work: str
    predicted: float
    measured: float
    spread: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


# The machine


def measured_cluster(n: int, repeats: int) -> lt.parallel.Cluster:
    """The ranks of this group as a cluster: one node, with the rates that all have at once."""
    often = partial(usual, repeats=repeats)
    a, copied = torch.randn(SIDE, SIDE), torch.zeros(COPIED, dtype=torch.uint8)
    products = 2 * SIDE**3 / often(lambda: a @ a)
    bandwidth = 2 * COPIED / often(copied.clone)
    rates = [attention_rate(n // dist.get_world_size(), work, repeats) for work in WORKS]
    rate = max(products, *rates)
    latency = often(partial(sent, 1))
    size = n // dist.get_world_size() * HEADS * 2 * D * 4
    wire = size / max(1e-9, often(partial(sent, size)) - latency)
    machine = Machine("this machine, a rank", rate, bandwidth, 4)
    return lt.parallel.Cluster(
        machine, dist.get_world_size(), wire, wire, latency, rates[0] / rate, rates[1] / rate
    )


def usual(run: Callable[[], object], repeats: int) -> float:
    """The median of the seconds of some runs, after one that does not count."""
    return median([seconds(run) for _ in range(repeats + 1)][1:])


def attention_rate(n: int, work: str, repeats: int) -> float:
    """Operations a second of full attention of n positions with themselves, as a plan counts them."""
    qkv = [torch.randn(1, HEADS, n, D) for _ in range(3)]
    attend: Any = partial(lt.attention, rule="full")
    took = median([timed(attend, qkv, work) for _ in range(repeats + 1)][1:])
    return 4 * D * HEADS * n * n * (BACK if work == BACKWARD else 1) / took


def sent(size: int) -> None:
    """Sends so many bytes to the next rank and gets as many of the one before."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    leaving, coming = torch.zeros(size, dtype=torch.uint8), torch.empty(size, dtype=torch.uint8)
    works = [dist.isend(leaving, (rank + 1) % ranks), dist.irecv(coming, (rank - 1) % ranks)]
    for one in works:
        assert one is not None
        one.wait()


# Strategies


def compared(
    name: str, rule: lt.Rule, n: int, numbers: dict[str, int], cluster: lt.parallel.Cluster, repeats: int
) -> list[Compared]:
    """Every strategy that runs, forward and backward."""
    plan = lt.parallel.plan(
        rule, ranks=dist.get_world_size(), heads=HEADS, head_dim=D, dtype="float32", cut="contiguous",
        cluster=cluster, **(numbers or {"n": n}),
    )  # fmt: skip
    times = {one.name: one.times for one in plan.strategies}
    some = {
        strategy: Contender(partial(lt.parallel.attention, rule=rule, strategy=strategy, **numbers))
        for strategy, planned in PLANNED.items()
        if planned in times
    }
    measure(some, n, repeats, WORKS)
    return [
        Compared(name, strategy, work, predicted, median(one.seconds[work]), spread(one.seconds[work]))
        for strategy, one in some.items()
        for work, predicted in zip(WORKS, times[PLANNED[strategy]], strict=True)
    ]


def text_of(row: Compared) -> str:
    times = f"{1e3 * row.predicted:12.1f}{1e3 * row.measured:12.1f} ±{100 * row.spread:3.0f}%"
    return f"{row.rule:22}{row.strategy:10}{row.work:10}{times}{row.ratio:8.2f}"


def summary(rows: list[Compared]) -> str:
    """How far predictions are off in the median, and how often of two strategies the quicker is known."""
    off = median(abs(row.ratio - 1) for row in rows)
    right, pairs, firsts, quickest = 0, 0, 0, 0
    for rule, work in dict.fromkeys((row.rule, row.work) for row in rows):
        some = [row for row in rows if (row.rule, row.work) == (rule, work)]
        firsts += min(some, key=lambda row: row.predicted) is min(some, key=lambda row: row.measured)
        quickest += 1
        for at, one in enumerate(some):
            for other in some[:at]:
                pairs += 1
                right += (one.predicted < other.predicted) == (one.measured < other.measured)
    return (
        f"median of |predicted/measured - 1|: {off:.2f}; the quickest strategy was predicted in {firsts} of "
        f"{quickest} passes, the order of {right} of {pairs} pairs of strategies"
    )
