"""From where on torch's own attention is faster than the native kernel on this CPU: its crossovers.json.

    python benchmarks/calibrate_cpu.py            # prints ratios and crossovers; some three minutes
    python benchmarks/calibrate_cpu.py --save     # and writes them to attend/kernels/native/crossovers.json

kernel="native" and kernel="sdpa" take turns on training steps, of which the forward and the backward pass are
timed by themselves: first on one thread, by that thread's own time, then on all of them, by wall time. Both
kernels are called through lt.attention, so Python counts for both. A ratio is native's median over sdpa's.

Sizes are those of a block's keys, n times D. The ratios of one size, several head dimensions, grouped-query
attention and all numbers of threads, have one median; the crossover lies where these medians pass 1 for good,
between two sizes by a straight line of logarithms. A pass that wins at the largest size has none.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import report
import torch

import lattend as lt
from lattend.attend.kernels.native.crossovers import FILE, PASSES
from lattend.attend.kernels.native.library import missing

KERNELS = ("native", "sdpa")
DTYPES = ("float32", "bfloat16", "float16")
BLOCKS = {"causal": lt.rules.causal(), "full": lt.rules.full()}
SIZES = (16, 64, 256, 1024, 4096, 8192)
SHAPES = ((32, 1), (64, 1), (128, 1), (256, 1), (64, 4))  # D, and how many query heads share a kv head
THREADED = (SIZES[2:], SHAPES[1:4:2])  # of these, on all threads
MOST_HEADS, WORK = 8, 1 << 27  # heads are as many as keep the multiply-adds of a product below this
MOST_SECONDS = 1.5  # of a turn of both kernels: larger sizes are left out
LOOP, TURNS, SHARE = 1e-3, 7, 0.12  # seconds of a turn at least, turns at most, seconds of a case


Given = tuple[list[torch.Tensor], torch.Tensor]  # q, k and v, and the gradient of the output


@dataclass(frozen=True)
class Case:
    """A training step on blocks of one kind and size."""

    dtype: str
    blocks: str
    n: int
    head_dim: int
    shared: int
    threads: int

    @property
    def heads(self) -> int:
        return min(MOST_HEADS, max(self.shared, self.threads, WORK // (self.n**2 * self.head_dim)))

    def inputs(self) -> Given:
        """q, k and v, and the gradient of the output."""
        dtype, size = getattr(torch, self.dtype), (self.n, self.head_dim)
        counts = self.heads, self.heads // self.shared, self.heads // self.shared
        given = [torch.randn(1, heads, *size, dtype=dtype, requires_grad=True) for heads in counts]
        return given, torch.randn(1, self.heads, *size, dtype=dtype)

    def __str__(self) -> str:
        shared = f", {self.shared} heads on one" if self.shared > 1 else ""
        return (
            f"{self.dtype} {self.blocks}, n = {self.n:,}, D = {self.head_dim}{shared}, threads {self.threads}"
        )


def cases() -> Iterator[Case]:
    """One thread first; small ones before large ones, so that a case too long ends its row."""
    for threads in sorted({1, torch.get_num_threads()}):
        sizes, shapes = (SIZES, SHAPES) if threads == 1 else THREADED
        for dtype, blocks, (head_dim, shared), n in product(DTYPES, BLOCKS, shapes, sizes):
            yield Case(dtype, blocks, n, head_dim, shared, threads)


def timed(kernel: str, case: Case, given: Given, calls: int) -> tuple[float, float]:
    """Seconds of so many forward passes, and of their backward passes."""
    now = time.thread_time if case.threads == 1 else time.perf_counter
    (inputs, towards), rule = given, BLOCKS[case.blocks]
    begun = now()
    outs = [lt.attention(*inputs, rule, kernel=kernel) for _ in range(calls)]
    middle = now()
    for out in outs:
        torch.autograd.grad(out, inputs, towards)
    return middle - begun, now() - middle


def ratios(case: Case) -> dict[str, float] | None:
    """Native's median time over sdpa's, by pass; None where a turn takes too long."""
    torch.set_num_threads(case.threads)
    given = case.inputs()
    first = sum(sum(timed(kernel, case, given, 1)) for kernel in KERNELS)  # plans are made here
    if first > MOST_SECONDS:
        return None
    once = sum(sum(timed(kernel, case, given, 1)) for kernel in KERNELS) if first < SHARE else first
    calls, turns = math.ceil(LOOP / once), max(2, min(TURNS, int(SHARE / once)))
    found: dict[str, list[tuple[float, float]]] = {kernel: [] for kernel in KERNELS}
    for _ in range(turns):
        for kernel in KERNELS:
            found[kernel].append(timed(kernel, case, given, calls))
    native, library = (map(statistics.median, zip(*found[name], strict=True)) for name in KERNELS)
    return {name: ours / theirs for name, ours, theirs in zip(PASSES, native, library, strict=True)}


def crossover(measured: Mapping[int, Sequence[float]]) -> int | None:
    """The size from which the median ratio stays above 1, in two digits, or None where it does not.

    >>> crossover({16: [0.5], 64: [0.5], 256: [2.0]})  # half way from 64 to 256 by logarithms, 128
    130
    >>> crossover({16: [2.0], 64: [0.5], 256: [0.9, 0.8]})
    """
    sizes = sorted(measured)
    logs = [math.log(statistics.median(measured[size])) for size in sizes]
    won = max((place for place, log in enumerate(logs) if log <= 0), default=-1)
    if won == len(sizes) - 1:
        return None
    if won < 0:
        return sizes[0]
    share = logs[won] / (logs[won] - logs[won + 1])
    return int(float(f"{sizes[won] * (sizes[won + 1] / sizes[won]) ** share:.2g}"))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--save", action="store_true", help=f"write {FILE.name}")
    parser.add_argument("--most-n", type=int, default=SIZES[-1], metavar="N", help="sizes up to this")
    args = parser.parse_args(argv)
    if (reason := missing()) is not None:
        raise SystemExit(f"there is no native kernel to time: {reason}")
    measured: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    too_long: tuple[object, ...] = ()
    start = time.perf_counter()
    for case in cases():
        row = case.dtype, case.blocks, case.head_dim, case.shared, case.threads
        found = None if row == too_long or case.n > args.most_n else ratios(case)
        gc.collect(0)
        if found is None:
            too_long = row
            continue
        print(f"{case}:", ", ".join(f"{name} {ratio:.2f}" for name, ratio in found.items()), flush=True)
        for name, ratio in found.items():
            sizes = measured.setdefault((name, case.dtype, case.blocks), {})
            sizes.setdefault(case.n * case.head_dim, []).append(ratio)
    table: dict[str, dict[str, dict[str, dict[str, int | None]]]] = {}
    for (name, dtype, blocks), sizes in measured.items():
        at = crossover(sizes)
        found = {"crossover": at, "measured to": max(sizes)}
        table.setdefault(name, {}).setdefault(dtype, {})[blocks] = found
        medians = ", ".join(f"{size:,}: {statistics.median(sizes[size]):.2f}" for size in sorted(sizes))
        print(f"{name}, {dtype} {blocks}: {'none' if at is None else f'{at:,}'}; {medians}")
    print(f"took {time.perf_counter() - start:.0f} s")
    if args.save:
        about = {key: value for key, value in report.machine().items() if key in ("date", "cpu", "torch")}
        told = {"made by": "python benchmarks/calibrate_cpu.py --save", "machine": about, "numbers": table}
        FILE.write_text(json.dumps(told, indent=1) + "\n")
        print("saved:", FILE)


if __name__ == "__main__":
    main()
