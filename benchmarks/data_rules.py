"""Rules that depend on data, on a GPU: packed documents and chosen blocks; bf16, 16 heads, D = 128.

    python benchmarks/data_rules.py                     # n = 32,768: half a minute
    python benchmarks/data_rules.py --n 8192

Device time is that between events behind a queue that the host fills meanwhile; wall time is that of one call
that is waited for. Documents have random lengths; their peer is one call of torch's SDPA a document, on
lengths that the host knows. Blocks of 128 × 128 are chosen at random for each head; their share of causal
attention's time is what they should take. The floor is the needed multiply-adds at the rate of a matrix
product.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt
from lattend.machines import MACHINES

HEADS, D, BLOCK, SHARE, DOCUMENTS = 16, 128, 128, 0.13, (4, 16, 64)
WARM, ROUNDS, QUEUED = 5, 10, 4_000_000  # cycles of the device in which the host prepares a call
Work = Callable[[], Any]


def on_device(work: Work) -> float:
    times: list[float] = []
    for _ in range(WARM + ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(QUEUED)  # pyright: ignore
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return median(times[WARM:])


def wall(work: Work) -> float:
    times: list[float] = []
    for _ in range(WARM + ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return median(times[WARM:])


def measured(name: str, attend: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, needed: int) -> float:
    """Prints a row; gives the forward's time on the device."""
    learned = [x.clone().requires_grad_() for x in (q, k, v)]
    out, grad = attend(*learned), torch.randn_like(q)
    works: tuple[Work, Work] = (
        lambda: attend(q, k, v),
        lambda: torch.autograd.grad(out, learned, grad, retain_graph=True),
    )
    times = [on_device(work) for work in works]
    floor = needed * HEADS * D * 4 / MACHINES["H200 measured"].rate * 1e3
    waited = " / ".join(f"{wall(work):.2f}" for work in works)
    print(f"{name:44}{floor:8.2f}{times[0]:10.2f} / {times[1]:.2f}{'':6}{waited}", flush=True)
    return times[0]


def documents(n: int, count: int) -> tuple[Tensor, list[int]]:
    """Ids on the device, and lengths on the host."""
    cuts = torch.sort(torch.randperm(n - 1)[: count - 1]).values + 1
    lengths = torch.diff(torch.cat([torch.tensor([0]), cuts, torch.tensor([n])]))
    return torch.repeat_interleave(torch.arange(count), lengths).cuda(), lengths.tolist()


def one_by_one(lengths: list[int]) -> Callable[..., Tensor]:
    def attend(*qkv: Tensor) -> Tensor:
        parts = zip(*(x.split(lengths, 2) for x in qkv), strict=True)
        return torch.cat([scaled_dot_product_attention(*part, is_causal=True) for part in parts], 2)

    return attend


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=32_768)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here")
    torch.manual_seed(0)
    n, ours = args.n, lt.attention
    q, k, v = (torch.randn(1, HEADS, n, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    print(f"{'n = ' + format(n, ','):44}{'floor':>8}{'device, forward / backward':>28}   wall, ms")
    causal = n * (n + 1) // 2
    measured("causal, Triton", partial(ours, rule="k <= q", kernel="triton"), q, k, v, causal)
    for count in DOCUMENTS:
        ids, lengths = documents(n, count)
        needed = sum(length * (length + 1) // 2 for length in lengths)
        packed = partial(ours, rule="doc[q] == doc[k] and k <= q", doc=ids)
        measured(f"{count} documents", packed, q, k, v, needed)
        measured(f"{count} documents, a call of SDPA each", one_by_one(lengths), q, k, v, needed)
    rows = -(-n // BLOCK)
    table = (torch.rand(HEADS, rows, rows, device="cuda") < SHARE) | torch.eye(rows, device="cuda").bool()
    rule = f"blocks[head, q // {BLOCK}, k // {BLOCK}] and k <= q"
    share = float(table.tril().sum() / (HEADS * rows * (rows + 1) / 2))
    name = f"blocks of {BLOCK}, {share:.1%} of causal's"
    measured(name, partial(ours, rule=rule, blocks=table), q, k, v, round(causal * share))


if __name__ == "__main__":
    main()
