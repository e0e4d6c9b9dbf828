"""Attention over four gloo processes: time, and bytes that come to the busiest rank, beside all-gather.

    python benchmarks/parallel_cpu.py                    # n = 8192, 4 heads, D = 64, float32: some minutes
    python benchmarks/parallel_cpu.py --n 4096 --only causal --repeats 5 --json rows.json
    python benchmarks/parallel_cpu.py --predict          # each strategy beside what lt.parallel.plan predicts

Each process has one thread, and takes its turn with the others on as many cores as there are. Contenders:

    lt.parallel            the keys that a rank's queries reach, by the strategy of fewest bytes
    lt.parallel gather     all keys, then the same kernels
    all-gather, SDPA       what one writes by hand: all_gather, reduce_scatter, a mask of the rank's rows
    torch ring, all-gather torch's own context parallelism, causal and full alone; "zigzag" is its balance,
                           and beside it is lt.parallel's ring with the same cut
    torch flex             FlexAttention's context parallelism, with --flex: its compiler takes minutes; on a
                           CPU it has no gradients

Outputs and gradients are those of lt.parallel, or it stops. Bytes are counted as torch dispatches messages
and collectives, in a first call that is not timed; of collectives, what others sent. Times are those of the
slowest rank, the median of turns in which all contenders run; ± is half the distance of their quartiles.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import context_parallel
import parallel_predictions
import torch
import torch.distributed as dist
from parallel_runs import FORWARD, HEADS, TRAINING, Attend, Contender, D, measure, spread
from torch import Tensor
from torch.multiprocessing.spawn import spawn
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt

WORKS = FORWARD, TRAINING


def rules(n: int) -> dict[str, tuple[str, dict[str, int]]]:
    """Name, rule and numbers; windows as long as a shard or longer are left as they are."""
    return {
        "sliding 255": ("strided(255)", {}),
        "sliding 4095": ("strided(4095)", {}),
        "blocks of 256": ("windowed(256)", {}),
        "causal": ("causal", {}),
        "full": ("full", {}),
        "7 × 7 neighbourhood": ("neighbourhood(3)", {"rows": n // 128, "cols": 128}),
    }


# On a rank


class AllGathered(torch.autograd.Function):
    """All ranks' keys, one after another; gradients are added up and cut again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, 2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        parts = [part.contiguous() for part in grads[0].chunk(dist.get_world_size(), 2)]
        own = torch.empty_like(parts[0])
        dist.reduce_scatter(own, parts)
        return own


def by_hand(mask: Tensor) -> Attend:
    """All keys and values by all_gather, gradients by reduce_scatter, and a mask of this rank's rows."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = (AllGathered.apply(x) for x in (k, v))
        return scaled_dot_product_attention(q, keys, values, attn_mask=mask)  # pyright: ignore

    return attend


def contenders(rule: lt.Rule, n: int, numbers: dict[str, int], with_flex: bool) -> dict[str, Contender]:
    """All who can run the rule, ours first."""
    ours = partial(lt.parallel.attention, rule=rule, **numbers)
    mask = torch.from_numpy(
        rule.mask(**(numbers or {"n": n})).reshape(n, n)[lt.parallel.positions(n).numpy()]
    )
    found = {
        "lt.parallel": Contender(ours),
        "lt.parallel gather": Contender(partial(ours, strategy="gather")),
        "all-gather, SDPA": Contender(by_hand(mask)),
    }
    causal = rule.text == lt.rules.causal().text
    if (causal or rule.text == lt.rules.full().text) and not context_parallel.missing:
        for name, rotate in (("torch ring", "alltoall"), ("torch all-gather", "allgather")):
            found[name] = Contender(context_parallel.ring(rotate, causal, False))
            if causal:
                attend = context_parallel.ring(rotate, causal, True)
                found[f"{name}, zigzag"] = Contender(attend, "zigzag")
        if causal:
            attend = partial(ours, strategy="ring", cut="zigzag")
            found["lt.parallel ring, zigzag"] = Contender(attend, "zigzag")
    if with_flex and not context_parallel.missing:
        found["torch flex"] = Contender(context_parallel.flex(rule, n, **numbers), learns=False)
    return found


def rank_main(rank: int, port: int, asked: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=asked.ranks)
    chosen = {name: found for name, found in rules(asked.n).items() if not asked.only or name in asked.only}
    rows = (predict if asked.predict else compare)(chosen, asked)
    if rank == 0 and asked.json:
        Path(asked.json).write_text(json.dumps(rows, indent=1))
    dist.destroy_process_group()


def compare(chosen: dict[str, tuple[str, dict[str, int]]], asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Prints times and bytes of all contenders, a row each."""
    say(f"{'rule':22}{'':26}{'forward':>10}{'':6}{'train':>10}{'':6}{'MiB fwd':>10}{'MiB train':>10}")
    rows: list[dict[str, Any]] = []
    for name, (text, numbers) in chosen.items():
        some = contenders(lt.rule(text), asked.n, numbers, asked.flex)
        measure(some, asked.n, asked.repeats, WORKS)
        for contender, one in some.items():
            rows.append({"rule": name, "contender": contender, "seconds": one.seconds, "bytes": one.bytes})
            say(text_of(rows[-1]))
    return rows


def predict(chosen: dict[str, tuple[str, dict[str, int]]], asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Prints what was measured of each strategy beside what a plan predicts for this machine's numbers."""
    say(parallel_predictions.HEADER)
    rows: list[parallel_predictions.Compared] = []
    for name, (text, numbers) in chosen.items():
        cluster, found = parallel_predictions.compared(name, lt.rule(text), asked.n, numbers, asked.repeats)
        say(f"{cluster}; {cluster.shares}")
        say("\n".join(map(parallel_predictions.text_of, found)))
        rows += found
    for way in parallel_predictions.WAYS:
        say(parallel_predictions.summary(rows, way))
    return [asdict(row) for row in rows]


def say(text: str) -> None:
    """Prints on the first rank, at once."""
    if dist.get_rank() == 0:
        print(text, flush=True)


def text_of(row: dict[str, Any]) -> str:
    times = [
        f"{1e3 * median(some):10.1f} ±{100 * spread(some):3.0f}%" if some else f"{'':16}"
        for some in (row["seconds"].get(work) for work in WORKS)
    ]
    sizes = [f"{row['bytes'][work] / 2**20:10.3f}" for work in WORKS if work in row["bytes"]]
    return f"{row['rule']:22}{row['contender']:26}{''.join(times)}{''.join(sizes)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=8192)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", metavar="RULE", choices=[*rules(0)], help="these rules alone")
    parser.add_argument("--flex", action="store_true", help="FlexAttention's context parallelism too")
    parser.add_argument("--predict", action="store_true", help="strategies beside what a plan predicts")
    parser.add_argument("--json", default="", metavar="FILE", help="write the rows with all times")
    asked = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    print(
        f"n = {asked.n}, {asked.ranks} ranks, {HEADS} heads, D = {D}, float32; ms, MiB to the busiest rank",
        flush=True,
    )
    if context_parallel.missing:
        print(f"without torch's context parallelism: {context_parallel.missing}", flush=True)
    spawn(rank_main, (port, asked), nprocs=asked.ranks)


if __name__ == "__main__":
    main()
