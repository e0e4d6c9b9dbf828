"""Attention over four gloo processes: time, and bytes that come to the busiest rank, beside all-gather.

    python benchmarks/parallel_cpu.py                    # n = 8192, 4 heads, D = 64, float32: some minutes
    python benchmarks/parallel_cpu.py --n 4096 --repeats 5 --json rows.json

Each process has one thread, and takes its turn with the others on as many cores as there are. Contenders:

    lt.parallel            the keys that a rank's queries reach, by the strategy of fewest bytes
    lt.parallel gather     all keys, then the same kernels
    all-gather, SDPA       what one writes by hand: all_gather, reduce_scatter, a mask of the rank's rows

torch's own context parallelism (torch.distributed.tensor.experimental.context_parallel, torch 2.13) does not
run on a CPU: scaled_dot_product_attention for CPUs "does not have a sharding strategy registered"; nor has it
rules other than full and causal. What it would move is known all the same: all keys and values of the other
ranks, n (P - 1) / P rows, forward and, as gradients, backward. The first line says it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

RANKS, HEADS, D = 4, 4, 64
WRONG = 1e-4
RECEIVED: Counter[str] = Counter()

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def rules(n: int) -> dict[str, tuple[str, dict[str, int]]]:
    """Name, rule and numbers; windows as long as a shard or longer are left as they are."""
    return {
        "sliding 255": ("strided(255)", {}),
        "sliding 4095": ("strided(4095)", {}),
        "blocks of 256": ("windowed(256)", {}),
        "causal": ("causal", {}),
        "7 × 7 neighbourhood": ("neighbourhood(3)", {"rows": n // 128, "cols": 128}),
    }


# On a rank


class AllGathered(torch.autograd.Function):
    """All ranks' keys, one after another; gradients are added up and cut again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        parts = [torch.empty_like(x) for _ in range(RANKS)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, 2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        parts = [part.contiguous() for part in grads[0].chunk(RANKS, 2)]
        own = torch.empty_like(parts[0])
        dist.reduce_scatter(own, parts)
        return own


def by_hand(mask: Tensor) -> Attend:
    """All keys and values by all_gather, gradients by reduce_scatter, and a mask of this rank's rows."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = (AllGathered.apply(x) for x in (k, v))
        return scaled_dot_product_attention(q, keys, values, attn_mask=mask)  # pyright: ignore

    return attend


@contextmanager
def received() -> Iterator[Counter[str]]:
    """The bytes that come to this rank in messages and collectives while it is open."""
    before, found = Counter(RECEIVED), Counter[str]()
    yield found
    found.update(RECEIVED)
    found.subtract(before)


def count_bytes() -> None:
    """Counts at the process group itself what arrives; of collectives, what others sent."""
    group: Any = dist.ProcessGroup
    receive, gather, reduce = group.recv, group.allgather, group.reduce_scatter

    def counted_receive(self: Any, tensors: Any, *rest: Any) -> Any:
        RECEIVED["bytes"] += sum(x.nbytes for x in tensors)
        return receive(self, tensors, *rest)

    def counted_gather(self: Any, outputs: Any, inputs: Any, *rest: Any) -> Any:
        RECEIVED["bytes"] += sum(x.nbytes for x in outputs[0]) - inputs[0].nbytes
        return gather(self, outputs, inputs, *rest)

    def counted_reduce(self: Any, outputs: Any, inputs: Any, *rest: Any) -> Any:
        RECEIVED["bytes"] += sum(x.nbytes for x in inputs[0]) - outputs[0].nbytes
        return reduce(self, outputs, inputs, *rest)

    group.recv, group.allgather, group.reduce_scatter = counted_receive, counted_gather, counted_reduce


def measured(attend: Attend, qkv: list[Tensor], repeats: int) -> dict[str, Any]:
    """Milliseconds of a forward pass and of a training step, on the slowest rank, and bytes of each."""
    times: dict[str, list[float]] = {"forward": [], "training step": []}
    sizes: dict[str, int] = {}
    for turn in range(repeats + 1):
        for name, some in times.items():
            x = [one.detach().requires_grad_(name != "forward") for one in qkv]
            dist.barrier()
            began = time.perf_counter()
            with received() as came:
                out = attend(*x)
                if name != "forward":
                    out.square().sum().backward()
            took = torch.tensor([time.perf_counter() - began, float(came["bytes"])], dtype=torch.float64)
            dist.all_reduce(took, dist.ReduceOp.MAX)
            if turn:
                some.append(1e3 * float(took[0]))
            sizes[name] = int(took[1])
    return {**{name: statistics.median(some) for name, some in times.items()}, "bytes": sizes}


def rank_main(rank: int, port: int, n: int, repeats: int, path: str) -> None:
    import lattend as lt
    from lattend.parallel.sharded_attention import attention
    from lattend.parallel.sharding import positions, shard

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    count_bytes()
    rows: list[dict[str, Any]] = []
    for name, (text, numbers) in rules(n).items():
        torch.manual_seed(0)
        whole = [torch.randn(1, HEADS, n, D) for _ in range(3)]
        mine = [shard(x) for x in whole]
        rule = lt.rule(text)
        sizes = numbers or {"n": n}
        mask = torch.from_numpy(rule.mask(**sizes).reshape(n, n)[positions(n).numpy()])
        contenders: dict[str, Attend] = {
            "lt.parallel": lambda q, k, v, rule=rule, how=numbers: attention(q, k, v, rule, **how),
            "lt.parallel gather": lambda q, k, v, rule=rule, how=numbers: attention(
                q, k, v, rule, strategy="gather", **how
            ),
            "all-gather, SDPA": by_hand(mask),
        }
        first = None
        for contender, attend in contenders.items():
            out = attend(*mine)
            first = out if first is None else first
            worst = float((out - first).abs().max())
            assert worst < WRONG, f"{name}, {contender}: {worst}"
            row = {"rule": name, "contender": contender, **measured(attend, mine, repeats)}
            rows.append(row)
            if rank == 0:
                print(text_of(row), flush=True)
    if rank == 0 and path:
        Path(path).write_text(json.dumps(rows, indent=1))
    dist.destroy_process_group()


# Together


def text_of(row: dict[str, Any]) -> str:
    sizes = [f"{row['bytes'][name] / 2**20:10.3f}" for name in ("forward", "training step")]
    times = [f"{row[name]:10.1f}" for name in ("forward", "training step")]
    return f"{row['rule']:22}{row['contender']:22}{''.join(times)}{''.join(sizes)}"


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--n", type=int, default=8192)
    said.add_argument("--repeats", type=int, default=5)
    said.add_argument("--json", default="")
    asked = said.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    others = asked.n * (RANKS - 1) // RANKS * HEADS * 2 * D * 4 / 2**20
    print(f"n = {asked.n}, {RANKS} ranks, {HEADS} heads, D = {D}, float32; ms, MiB to the busiest rank")
    print(
        f"context_parallel would move {others:.1f} MiB forward, {2 * others:.1f} in a training step, any rule"
    )
    print(f"{'rule':22}{'':22}{'forward':>10}{'train':>10}{'MiB fwd':>10}{'MiB train':>10}")
    torch.multiprocessing.spawn(rank_main, (port, asked.n, asked.repeats, asked.json), nprocs=RANKS)


if __name__ == "__main__":
    main()
