"""Whole calls of attention on a GPU, in milliseconds, beside torch's SDPA: forward, and the rest of a step.

    python benchmarks/calls_gpu.py            # rows of docs/speed.md: under a minute

Calls follow each other, and the device is waited for after twenty of them; the median of five such rows.
Rules are written where attention is called, as people do.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt

CALLS, ROWS, WARM = 20, 5, 5
CAUSAL = (  # heads, kv heads, n, D, dtype
    (16, 16, 4096, 64, torch.bfloat16),
    (32, 4, 8192, 128, torch.bfloat16),
    (16, 4, 2048, 128, torch.float32),
    (16, 16, 2048, 128, torch.float32),
)
Call = Callable[..., Tensor]


def milliseconds(work: Callable[[], Any]) -> float:
    for _ in range(WARM):
        work()
    found: list[float] = []
    for _ in range(ROWS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(CALLS):
            work()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / CALLS)
    return median(found)


def drawn(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype, requires_grad=True)


def row(name: str, call: Call, *given: Tensor) -> None:
    grad = torch.randn_like(given[0])
    with torch.no_grad():
        forward = milliseconds(lambda: call(*given))
    step = milliseconds(lambda: torch.autograd.grad(call(*given), given, grad))
    print(f"{name:58} {forward:.3f} / {step - forward:.3f}", flush=True)


def table() -> None:
    ours: Any = lt.attention
    for heads, kv_heads, n, dim, dtype in CAUSAL:
        q, k, v = (drawn((1, h, n, dim), dtype) for h in (heads, kv_heads, kv_heads))
        row(
            f"causal, {heads} on {kv_heads}, n = {n:,}, D = {dim}, {dtype}",
            lambda *x: ours(*x, "k <= q"),
            q,
            k,
            v,
        )
        row("  deterministic=False", lambda *x: ours(*x, "k <= q", deterministic=False), q, k, v)
        shared: dict[str, Any] = {"is_causal": True, "enable_gqa": heads != kv_heads}
        row("  SDPA", lambda *x, how=shared: scaled_dot_product_attention(*x, **how), q, k, v)
    image = [drawn((1, 16, 96, 96, 64), torch.bfloat16) for _ in range(3)]
    row("Swin, 12 on 96 x 96, D = 64", lambda *x: ours(*x, lt.rules.swin(w=12, shift=0)), *image)
    for dim in (64, 128):
        image = [drawn((1, 16, 96, 128, dim), torch.bfloat16) for _ in range(3)]
        row(f"axial, 96 x 128, D = {dim}", lambda *x: ours(*x, lt.rules.axial()), *image)


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here: these are calls on a GPU")
    table()


if __name__ == "__main__":
    main()
