"""What explain predicts beside what is measured, on rules that no cost was fitted to: bf16, milliseconds.

    python benchmarks/predictions_gpu.py                     # all rows: a minute
    python benchmarks/predictions_gpu.py --only blocks-384 prefix-5000

Costs of kernels (plans/tables/tile_costs.py) were fitted to runs of other rules. A prediction is
made before anything runs, from exact counts of tiles and steps. A time is the median of CUDA events around
calls that wait in a queue, after a pause, so that neither Python nor a clock that fell under load is in it.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any, NamedTuple

import torch
from timing_gpu import Timer

import lattend as lt

PAUSE = 0.05  # seconds


class Row(NamedTuple):
    """A rule at its size, heads and kv heads, head dimension."""

    rule: lt.Rule
    sizes: dict[str, int]
    heads: tuple[int, int] = (16, 16)
    head_dim: int = 128


R = lt.rules
ROWS = {
    "causal-10000": Row(R.causal(), {"n": 10_000}),
    "causal-256": Row(R.causal(), {"n": 8192}, head_dim=256),
    "window-701": Row(R.strided(700), {"n": 50_000}, (32, 8)),
    "window-200": Row(R.strided(199), {"n": 50_000}),
    "window-300": Row(R.strided(299), {"n": 40_000}),
    "window-2500": Row(R.strided(2499), {"n": 40_000}),
    "both-sides-600": Row(lt.rule("abs(q - k) <= 600"), {"n": 30_000}),
    "both-sides-2047": Row(lt.rule("abs(q - k) <= 2047"), {"n": 32_768}, head_dim=64),
    "blocks-384": Row(lt.rule("q // 384 == k // 384"), {"n": 49_152}),
    "blocks-2000": Row(lt.rule("q // 2000 == k // 2000"), {"n": 40_000}),
    "prefix-5000": Row(lt.rule("k <= q or k < 5000"), {"n": 12_000}),
    "sinks-16": Row(R.sinks(s=16, t=2047), {"n": 40_000}),
    "anti-causal": Row(lt.rule("k >= q"), {"n": 9000}),
    "window-512-d80": Row(R.strided(511), {"n": 60_000}, head_dim=80),
    "neighbourhood-9": Row(R.neighbourhood(r=4), {"rows": 200, "cols": 100}),
    "neighbourhood-11": Row(R.neighbourhood(r=5), {"rows": 90, "cols": 160}, head_dim=64),
    "swin-8": Row(R.swin(8, 0), {"rows": 128, "cols": 128}, head_dim=64),
    "dilated-64": Row(R.dilated(t=127, step=64), {"n": 32_768}),
    "sparse-strided-96": Row(R.sparse_strided(96), {"n": 15_360}),
}


def measured(row: Row, timer: Timer) -> tuple[float, float]:
    """Milliseconds of a forward pass and of a backward one."""
    source = torch.Generator("cuda").manual_seed(0)
    total = row.sizes["n"] if "n" in row.sizes else row.sizes["rows"] * row.sizes["cols"]
    q, k, v = (
        torch.randn(1, h, total, row.head_dim, generator=source, device="cuda", dtype=torch.bfloat16)
        for h in (row.heads[0], row.heads[1], row.heads[1])
    )
    grad = torch.randn(q.shape, generator=source, device="cuda", dtype=torch.bfloat16)
    learned = [x.requires_grad_() for x in (q, k, v)]
    named: dict[str, Any] = {name: size for name, size in row.sizes.items() if name != "n"}

    def forward() -> torch.Tensor:
        attend: Any = lt.attention
        return attend(*learned, row.rule, **named)

    out = forward()
    found: list[float] = []
    for work in (forward, lambda: torch.autograd.grad(out, learned, grad, retain_graph=True)):
        work()
        torch.cuda.synchronize()
        time.sleep(PAUSE)
        found.append(timer(work)[0])
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(ROWS), help=", ".join(ROWS))
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(1, "predictions_gpu.py: it needs a GPU, an H200 for the costs as they are\n")
    timer, errors = Timer("cuda", "events"), list[float]()
    print(f"{torch.cuda.get_device_name()}: measured (predicted, error), forward and backward")
    for name in args.only or ROWS:
        row = ROWS[name]
        told = lt.explain(
            row.rule, **row.sizes, heads=row.heads[0], kv_heads=row.heads[1], head_dim=row.head_dim,
            dtype="bfloat16", device="cuda",
        )  # fmt: skip
        cells: list[str] = []
        times = zip(measured(row, timer), (told.forward_time, told.backward_time), strict=True)
        for taken, expected in times:
            if expected is None or expected.seconds is None:
                cells.append(f"{taken:.3f} (not predicted)")
                continue
            error = expected.seconds * 1e3 / taken - 1
            errors.append(abs(error))
            cells.append(f"{taken:.3f} ({expected.seconds * 1e3:.3f}, {error:+.0%})")
        print(f"{name:20} {cells[0]:28} {cells[1]}", flush=True)
    if errors:
        ordered = sorted(errors)
        print(
            f"{len(errors)} predictions: median error {median(errors):.1%}, nine of ten within "
            f"{ordered[int(0.9 * (len(ordered) - 1))]:.0%}, at most {ordered[-1]:.0%}"
        )


if __name__ == "__main__":
    main()
