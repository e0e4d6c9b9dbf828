"""Host time of one small call of attention, in microseconds, beside torch's SDPA.

    python benchmarks/attention_host.py                 # on a GPU where there is one: a few seconds
    python benchmarks/attention_host.py --profile       # and where the time of a sliding window goes

4 heads, n = 128, D = 64, bfloat16 on a GPU; n = 16 and float32 on a CPU with one thread. Calls follow each
other without a wait for the device; each number is the median of several rows of them, and all contenders
take turns. `backward` is a training step less its forward. "autograd alone" is a product of four numbers with
its gradient: what torch.autograd takes for any function.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt

HEADS, D = 4, 64
ROWS, CALLS, WARM = 9, 100, 20
Call = Callable[[Tensor, Tensor, Tensor], Tensor]


def contenders(n: int, device: str) -> dict[str, Call]:
    ids = torch.arange(n, device=device) // (n // 4)
    alibi = lt.Bias("-slope[head]*(q - k)", slope=torch.rand(HEADS, device=device))
    ours: Any = lt.attention
    return {
        "SDPA, causal": lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
        "causal": lambda q, k, v: ours(q, k, v, "k <= q"),
        "causal, deterministic=False": lambda q, k, v: ours(q, k, v, "k <= q", deterministic=False),
        "strided(15)": lambda q, k, v: ours(q, k, v, "strided(15)"),
        "documents": lambda q, k, v: ours(q, k, v, "doc[q] == doc[k] and k <= q", doc=ids),
        "ALiBi": lambda q, k, v: ours(q, k, v, "k <= q", bias=alibi),
    }


def in_turn(works: dict[str, Callable[[], Any]], device: str) -> dict[str, float]:
    """The median microseconds of a call of each."""
    clock = time.perf_counter if device == "cuda" else time.thread_time
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        for _ in range(WARM):
            work()
    for _ in range(ROWS):
        for name, work in works.items():
            if device == "cuda":
                torch.cuda.synchronize()
            start = clock()
            for _ in range(CALLS):
                work()
            times[name].append((clock() - start) / CALLS * 1e6)
    return {name: median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], help="the GPU where there is one")
    parser.add_argument("--profile", action="store_true", help="where the time of a sliding window goes")
    args = parser.parse_args()
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(1)
    n, dtype = (128, torch.bfloat16) if device == "cuda" else (16, torch.float32)
    q, k, v, grad = (torch.randn(1, HEADS, n, D, device=device, dtype=dtype) for _ in range(4))
    learned = [x.clone().requires_grad_() for x in (q, k, v)]
    few, its = torch.ones(4, device=device, requires_grad=True), torch.ones(4, device=device)
    calls = contenders(n, device)
    forward = in_turn({name: lambda call=call: call(q, k, v) for name, call in calls.items()}, device)
    works: dict[str, Callable[[], Any]] = {"autograd alone": lambda: few * 2}
    works |= {name: lambda call=call: call(*learned) for name, call in calls.items()}
    recorded = in_turn(works, device)
    works = {"autograd alone": lambda: torch.autograd.grad(few * 2, few, its)}
    works |= {
        name: lambda call=call: torch.autograd.grad(call(*learned), learned, grad)
        for name, call in calls.items()
    }
    steps = in_turn(works, device)
    print(f"{device}, torch {torch.__version__}, {dtype}, {HEADS} heads, n = {n}, D = {D}: microseconds")
    print(f"{'':30}{'no gradients':>14}{'forward':>10}{'backward':>10}")
    for name in steps:
        without = f"{forward[name]:14.0f}" if name in forward else f"{'':14}"
        print(f"{name:30}{without}{recorded[name]:10.0f}{steps[name] - recorded[name]:10.0f}")
    if args.profile:
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(1000):
            calls["strided(15)"](q, k, v)
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(20)


if __name__ == "__main__":
    main()
