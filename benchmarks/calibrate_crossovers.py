"""From where on torch's own attention is faster than ours on this GPU: attend/kernels/gpu_crossovers.json.

    python benchmarks/calibrate_crossovers.py            # prints every case and the limits: two minutes
    python benchmarks/calibrate_crossovers.py --save     # and writes them
    python benchmarks/calibrate_crossovers.py --only windows "hopper causal" --save    # others stay

kernel="triton" and kernel="sdpa" take turns on the same tensors, through lt.attention, so that kernel, launch
and Python count for both: loops of calls that are waited for at their end, medians of turns. Forward passes
have no gradients; of windows the backward passes are timed too. A choice of limits says of each case which of
the two would run; those are kept that have the least sum of the logarithms of its times.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import report
import torch
from timing_gpu import tf32

import lattend as lt
from lattend.attend.kernels.gpu_crossovers import FILE, WIDTHS, measured

KERNELS = ("triton", "sdpa")
DTYPES = {"half": torch.bfloat16, "float32": torch.float32, "TF32": torch.float32}
HEAD_DIMS, HEADS = (32, 64, 128, 256), (4, 16, 64)
SIZES = (16, 64, 256, 512, 768, 1024, 2048, 4096)
LONG, FEW = (1024, 2048, 4096, 8192, 16_384, 32_768), (4, 8, 16, 32, 64)  # of Hopper's causal blocks
WINDOWS, WINDOWED = (64, 128, 256, 512, 1024, 2048), (2048, 16_384, 65_536)
MOST_PRODUCTS = 1 << 34  # of a case: longer ones are not about a launch
CALLS, TURNS, SECONDS = 20, 5, 0.15  # of a loop, of a case


@dataclass(frozen=True)
class Case:
    """One pass on blocks of one kind and size."""

    group: str  # which limits it is for
    precision: str
    causal: bool
    keys: int
    head_dim: int
    heads: int
    n: int
    backward: bool = False

    @property
    def numbers(self) -> int:
        return self.keys * self.head_dim

    @property
    def products(self) -> float:
        return self.heads * self.n * self.numbers * (0.5 if self.causal else 1)

    @property
    def rule(self) -> str:
        block = "" if self.keys == self.n else f"q // {self.keys} == k // {self.keys}"
        parts = [text for text in ("k <= q" if self.causal else "", block) if text]
        return " and ".join(parts) or "full"

    def works(self) -> dict[str, Callable[[], Any]]:
        """What is timed, by kernel."""
        size, dtype = (1, self.heads, self.n, self.head_dim), DTYPES[self.precision]
        q, k, v, grad = (torch.randn(size, device="cuda", dtype=dtype) for _ in range(4))
        given = [x.requires_grad_(self.backward) for x in (q, k, v)]

        def run(kernel: str) -> Callable[[], Any]:
            attend: Any = lt.attention
            if not self.backward:
                return lambda: attend(*given, self.rule, kernel=kernel)
            out = attend(*given, self.rule, kernel=kernel, deterministic=False)
            return lambda: torch.autograd.grad(out, given, grad, retain_graph=True)

        return {kernel: run(kernel) for kernel in KERNELS}

    def __str__(self) -> str:
        work = "backward" if self.backward else "forward"
        return f"{self.group}: {self.rule}, {self.heads} heads, n = {self.n:,}, D = {self.head_dim}, {work}"


def cases() -> Iterator[Case]:
    for precision, causal, head_dim, heads, n in itertools.product(
        DTYPES, (True, False), HEAD_DIMS, HEADS, SIZES
    ):
        by_hopper = precision == "half" and causal and n >= LONG[0] and head_dim == WIDTHS[0]
        width = next(limit for limit in WIDTHS if head_dim <= limit)
        group = f"{precision}, {'causal' if causal else 'full'}, D to {width}"
        case = Case(group, precision, causal, n, head_dim, heads, n)
        if not by_hopper and case.products <= MOST_PRODUCTS:
            yield case
    for heads, n in itertools.product(FEW, LONG):
        yield Case("hopper causal", "half", True, n, 128, heads, n)
    for causal, head_dim, window in itertools.product((True, False), (64, 128), WINDOWS):
        for n in WINDOWED:
            yield Case("windows", "half", causal, window, head_dim, 16, n)
        yield Case("windows, backward", "half", causal, window, head_dim, 16, WINDOWED[-1], backward=True)


Timed = Sequence[tuple[Case, Mapping[str, float]]]


def timed(case: Case) -> dict[str, float]:
    """Microseconds of a call, by kernel."""
    with tf32(case.precision == "TF32"):
        return in_turns(case.works())


def in_turns(works: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    for work in works.values():
        work()
        work()
    found: dict[str, list[float]] = {kernel: [] for kernel in KERNELS}
    end = time.perf_counter() + SECONDS
    for turn in range(TURNS):
        for kernel, work in works.items():
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for _ in range(CALLS):
                work()
            torch.cuda.synchronize()
            found[kernel].append((time.perf_counter() - begun) / CALLS * 1e6)
        if turn and time.perf_counter() > end:
            break
    return {kernel: median(times) for kernel, times in found.items()}


def cost(rows: Timed, ours: Callable[[Case], bool]) -> float:
    """The sum of the logarithms of times, where `ours` says which kernel runs a case."""
    return sum(math.log(times[KERNELS[0] if ours(case) else KERNELS[1]]) for case, times in rows)


def fitted(rows: Timed) -> dict[str, float]:
    """The limits of small blocks: `numbers` of a block, and `products` of all, with the least cost; and the
    most keys that were measured.
    """
    numbers = sorted({case.numbers for case, _ in rows})
    products = sorted({case.products for case, _ in rows})
    limits = itertools.product((0, *between(numbers)), between(products))
    best = min(
        limits,
        key=lambda at: cost(rows, lambda case: case.numbers < at[0] and case.products < at[1]),
    )
    return {"numbers": best[0], "products": best[1], "measured": max(case.keys for case, _ in rows)}


def fitted_hopper(rows: Timed) -> dict[str, float]:
    """The limits of causal blocks on which Hopper's kernel is ahead."""
    limits = itertools.product(
        sorted({case.keys for case, _ in rows}), between(sorted({case.heads * case.n for case, _ in rows}), 2)
    )
    best = min(
        limits,
        key=lambda at: cost(rows, lambda case: case.keys >= at[0] and case.heads * case.n < at[1]),
    )
    return {"keys": best[0], "rows": best[1]}


def between(sizes: Sequence[float], beyond: float = math.inf) -> list[float]:
    """Places between sizes that follow each other, in the middle by logarithms, in two digits; and one as
    far beyond as is said, no limit unless it is.

    >>> between([64, 256, 1024]), between([64, 256], 2)
    ([130, 510, inf], [130, 510])
    """
    middles = [math.sqrt(a * b) for a, b in itertools.pairwise(sizes)]
    return [at if at == math.inf else int(float(f"{at:.2g}")) for at in (*middles, sizes[-1] * beyond)]


def told(rows: Timed) -> dict[str, Any]:
    """The limits as the file has them, those of groups that were measured made anew."""
    groups: dict[str, list[tuple[Case, Mapping[str, float]]]] = {}
    for case, times in rows:
        groups.setdefault(case.group, []).append((case, times))
    found = json.loads(FILE.read_text())
    for group, some in groups.items():
        if group == "windows":
            found["windows"] = fitted(some)
        elif group == "windows, backward":
            limits = between(sorted({case.numbers for case, _ in some}), 2)
            best = min((0, *limits), key=lambda at: cost(some, lambda case: case.numbers < at))
            found["backward"] = {"windows": best}
        elif group == "hopper causal":
            found["hopper causal"] = fitted_hopper(some)
        else:
            precision, blocks, width = group.split(", ")
            found["forward"].setdefault(precision, {}).setdefault(blocks, {})[width] = fitted(some)
    return found


def without_inf(found: Any) -> Any:
    """As the file has it: where there is no limit, null."""
    if isinstance(found, dict):
        return {name: without_inf(one) for name, one in found.items()}
    return None if found == math.inf else found


def warm(wanted: Sequence[Case], processes: int, seconds: float) -> None:
    """Runs our kernel of each case once, in several processes, so that it is compiled and on the disk."""
    context = multiprocessing.get_context("spawn")
    running = [
        context.Process(target=run_once, args=(wanted[place::processes],), daemon=True)
        for place in range(processes)
    ]
    for process in running:
        process.start()
    end = time.perf_counter() + seconds
    for process in running:
        process.join(max(0.0, end - time.perf_counter()))
        process.terminate()


def run_once(some: Sequence[Case]) -> None:
    for case in some:
        with tf32(case.precision == "TF32"):
            case.works()[KERNELS[0]]()
        torch.cuda.synchronize()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--save", action="store_true", help=f"write {FILE.name}")
    parser.add_argument("--only", nargs="+", metavar="GROUP", help="groups that begin so")
    parser.add_argument("--warm", type=int, default=14, metavar="P", help="processes that compile first")
    parser.add_argument("--warm-seconds", type=float, default=120, help="for that, at most")
    args = parser.parse_args(argv)
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here: these are crossovers of a GPU")
    measured()["backward"]["windows"] = 0  # kernel="sdpa" is to run both passes of every window
    wanted = [case for case in cases() if not args.only or case.group.startswith(tuple(args.only))]
    warm(wanted, args.warm, args.warm_seconds)
    rows: list[tuple[Case, dict[str, float]]] = []
    for case in wanted:
        rows.append((case, timed(case)))
        ours, theirs = (rows[-1][1][kernel] for kernel in KERNELS)
        print(f"{ours / theirs:.2f}×  {case}: {ours:.1f} and {theirs:.1f} µs", flush=True)
    found = without_inf(told(rows))
    print(json.dumps(found, indent=1))
    if args.save:
        about = {key: value for key, value in report.machine().items() if key in ("date", "device", "torch")}
        made = {"made by": "python benchmarks/calibrate_crossovers.py --save", "machine": about}
        FILE.write_text(json.dumps(found | made, indent=1) + "\n")
        print("saved:", FILE)


if __name__ == "__main__":
    main()
