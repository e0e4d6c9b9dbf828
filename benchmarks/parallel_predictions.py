"""What lt.parallel.plan predicts beside what is measured, for a cluster of this machine's own numbers.

Called by parallel_cpu.py --predict, on every rank. Before each rule the machine is measured with all ranks at
work, as they are in a run, since others may use it too: the product of two matrices, a copy, attention of a
shard with itself forward and backward, and messages that all ranks send to the next at once. All times are
the least of several: what others use of the machine only adds to them.

A plan is told a Cluster of these numbers, in three ways, which say where a prediction goes wrong:

    plan        the rate of full attention, whatever the rule: all that a Cluster knows of attention
    own rate    the rate that this rule has in one process, on a shard
    and a call  as before, and what a call costs that has next to no pairs: agreeing, Python, empty messages
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import prod
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from parallel_runs import BACKWARD, FORWARD, HEADS, Contender, D, measure, seconds, spread, timed

import lattend as lt
from lattend.machines import Machine
from lattend.parallel.strategies import BACK

SIDE, COPIED = 768, 1 << 24  # of the matrices, and bytes that are copied
MANY = 10  # times as often: a message that waits for a core takes ten times as long as one that does not
FEW = 8  # positions of a rank in a call with next to no pairs
PLANNED = {"halo": "halo", "ring": "halo, staged", "gather": "all-gather", "ulysses": "Ulysses"}
WORKS = FORWARD, BACKWARD
WAYS = ("plan", "own rate", "and a call")

Times = dict[tuple[str, str], float]  # seconds by strategy and pass


@dataclass(frozen=True)
class Compared:
    """Seconds of a pass of a strategy, as each way predicts them and as measured."""

    rule: str
    strategy: str
    work: str
    predicted: dict[str, float]
    measured: float
    spread: float


# The machine


@dataclass(frozen=True)
class Measured:
    """What all ranks have at once: operations and bytes copied a second, those of messages, and latency."""

    products: float
    bandwidth: float
    wire: float
    latency: float

    def cluster(self, rates: list[float]) -> lt.parallel.Cluster:
        """The ranks of this group as one node, with these rates of attention forward and backward."""
        rate = max(self.products, *rates)
        machine, ranks = Machine("a rank of this machine", rate, self.bandwidth, 4), dist.get_world_size()
        shares = rates[0] / rate, rates[1] / rate
        return lt.parallel.Cluster(machine, ranks, self.wire, self.wire, self.latency, *shares)


def measured_machine(n: int, repeats: int) -> Measured:
    """The rates of this machine; messages are as long as a shard of n positions."""
    a, copied = torch.randn(SIDE, SIDE), torch.zeros(COPIED, dtype=torch.uint8)
    products = 2 * SIDE**3 / least(lambda: a @ a, repeats)
    bandwidth = 2 * COPIED / least(copied.clone, repeats)
    latency = least(partial(sent, 1), MANY * repeats)
    size = n // dist.get_world_size() * HEADS * 2 * D * 4
    wire = size / max(1e-9, least(partial(sent, size), repeats) - latency)
    return Measured(products, bandwidth, wire, latency)


def attention_rates(rule: lt.Rule, sizes: dict[str, int], repeats: int) -> list[float]:
    """Operations a second of a rule in one process, forward and backward, as a plan counts them."""
    first, *others = sizes
    shard = {first: sizes[first] // dist.get_world_size()} | {name: sizes[name] for name in others}
    positions = prod(shard.values())
    qkv = [torch.randn(1, HEADS, positions, D) for _ in range(3)]
    numbers = {name: size for name, size in shard.items() if name != "n"}
    attend: Any = partial(lt.attention, rule=rule, **numbers)
    flops = 4 * D * HEADS * rule.count(**shard)
    return [
        flops * factor / min([timed(attend, qkv, work) for _ in range(repeats + 1)][1:])
        for work, factor in ((FORWARD, 1.0), (BACKWARD, BACK))
    ]


def least(run: Callable[[], object], repeats: int) -> float:
    """The least of the seconds of some runs, after one that does not count."""
    return min([seconds(run) for _ in range(repeats + 1)][1:])


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
    name: str, rule: lt.Rule, n: int, numbers: dict[str, int], repeats: int
) -> tuple[lt.parallel.Cluster, list[Compared]]:
    """The cluster that a plan is told, and every strategy that runs, forward and backward."""
    machine, sizes = measured_machine(n, repeats), numbers or {"n": n}
    cluster = machine.cluster(attention_rates(lt.rules.full(), {"n": n}, repeats))
    predicted = planned(rule, sizes, cluster)
    own = planned(rule, sizes, machine.cluster(attention_rates(rule, sizes, repeats)))
    few, full = FEW * dist.get_world_size(), lt.rules.full()
    empty, _ = strategies(full, few, {}, 4 * repeats)
    known = planned(full, {"n": few}, cluster)
    calls = {key: max(0.0, took - known[key]) for key, took in empty.items()}
    found, spreads = strategies(rule, n, numbers, repeats)
    return cluster, [
        Compared(
            name, *key, dict(zip(WAYS, (predicted[key], own[key], own[key] + calls[key]), strict=True)), took,
            spreads[key],
        )
        for key, took in found.items()
    ]  # fmt: skip


def planned(rule: lt.Rule, sizes: dict[str, int], cluster: lt.parallel.Cluster) -> Times:
    """The seconds that a plan predicts, by the names that strategies have where they run."""
    plan = lt.parallel.plan(
        rule, ranks=dist.get_world_size(), heads=HEADS, head_dim=D, dtype="float32", cut="contiguous",
        cluster=cluster, **sizes,
    )  # fmt: skip
    times = {one.name: one.times for one in plan.strategies}
    return {
        (strategy, work): took
        for strategy, name in PLANNED.items()
        for work, took in zip(WORKS, times[name], strict=True)
    }


def strategies(rule: lt.Rule, n: int, numbers: dict[str, int], repeats: int) -> tuple[Times, Times]:
    """The seconds that each strategy takes, and how far these are spread."""
    some = {
        strategy: Contender(partial(lt.parallel.attention, rule=rule, strategy=strategy, **numbers))
        for strategy in PLANNED
    }
    measure(some, n, repeats, WORKS)
    keys = [(strategy, work) for strategy in some for work in WORKS]
    times = {key: some[key[0]].seconds[key[1]] for key in keys}
    return {key: min(taken) for key, taken in times.items()}, {key: spread(times[key]) for key in keys}


# What is said

HEADER = f"{'rule':22}{'strategy':10}{'':10}{'measured':>12}{'':6}" + "".join(
    f"{way:>12}{'ratio':>7}" for way in WAYS
)


def text_of(row: Compared) -> str:
    ways = "".join(
        f"{1e3 * predicted:12.1f}{predicted / row.measured:7.2f}" for predicted in row.predicted.values()
    )
    measured = f"{1e3 * row.measured:12.1f} ±{100 * row.spread:3.0f}%"
    return f"{row.rule:22}{row.strategy:10}{row.work:10}{measured}{ways}"


def summary(rows: list[Compared], way: str) -> str:
    """How far predictions are off in the median, and how often of two strategies the quicker is known."""
    off = median(abs(row.predicted[way] / row.measured - 1) for row in rows)
    passes = [
        [row for row in rows if (row.rule, row.work) == both]
        for both in dict.fromkeys((row.rule, row.work) for row in rows)
    ]
    pairs = [pair for some in passes for pair in combinations(some, 2)]
    right = sum((a.predicted[way] < b.predicted[way]) == (a.measured < b.measured) for a, b in pairs)
    firsts = sum(
        min(some, key=lambda row: row.predicted[way]) is min(some, key=lambda row: row.measured)
        for some in passes
    )
    return (
        f"{way}: median of |predicted/measured - 1| {off:.2f}; the quickest strategy of {firsts} of "
        f"{len(passes)} passes, the order of {right} of {len(pairs)} pairs of strategies"
    )
