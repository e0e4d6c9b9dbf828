"""Attention under a rule on a GPU, beside its peers: batch 1, 16 heads, bf16 unless --dtype says otherwise.

    python benchmarks/attention_gpu.py --warm --processes 8 --json rows.json     # compiles all first
    python benchmarks/attention_gpu.py --cases strided windowed-256 --head-dim 128 --no-peers
    python benchmarks/attention_gpu.py --dtype float32 TF32 --json float32.json
    python benchmarks/attention_gpu.py --no-ours --json peers.json      # the peers once, and then
    python benchmarks/attention_gpu.py --peers-json peers.json          # lattend beside them

Peers: FlexAttention, compiled, its block mask made beforehand; cuDNN through SDPA, for causal, and for
windowed on the reshaped windows; in float32 SDPA's memory-efficient kernel, with a mask where the rule is not
causal. Before it is timed, each is compared with plain attention in float32 (float64 for float32 numbers) on
sampled queries, output and gradients; lattend's gradients also with FlexAttention's where that runs.

A time is the median of CUDA events around one call on inputs larger than the L2 cache, which is emptied
before; each call waits in a queue, so what Python takes is not in it but apart, as host. The clock of a GPU
falls under load: calls come in series of a few, and a pause before each series lets it rise. --timer do_bench
is Triton's instead, without pauses. Forward is that of training: inputs need gradients.

--dtype TF32 is float32 with `torch.backends.cuda.matmul.allow_tf32`, which lattend and FlexAttention heed;
SDPA's kernel makes three products in TF32 of each, as lattend does where that is not set.

The floor is the larger of needed multiply-adds at the rate of products of matrices (2 products of D a pair
forward, 4 backward) and one read of the inputs and one write of the outputs at 4.3 TB/s (4 tensors of n by D
a head forward, 8 backward). That rate is 798 TFLOP/s in bf16; in TF32 that of a large product in the same
run, and a third of it in float32.

--warm runs the kernels of all rows once before, in --processes of them: compiling takes far longer than
running, and what one has compiled the others find in the caches of Triton and Inductor.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import Any

import report
from attention_cpu import Attend, block_mask, compiled_flex, errors, masked, ours, relative, say
from report import OURS, Case, Row
from timing_gpu import Timer, tf32

import lattend as lt
from lattend.machines import MACHINES

HEADS = 16
RATE, BANDWIDTH = MACHINES["H200 measured"].rate, MACHINES["H200 measured"].bandwidth
WORK = {"forward": (2, 4), "backward": (4, 8)}  # products of D a pair; tensors read or written
AIMS = {  # milliseconds at D = 128, forward and backward
    **{"causal": (1.63, 5.0), "strided-255": (0.40, 1.2), "strided-1023": (1.04, 3.2)},
    **{"strided-4095": (3.7, 10.5), "windowed-256": (0.26, 1.0), "windowed-1024": (0.52, 1.9)},
    **{"neighbourhood-7": (0.11, 0.30), "neighbourhood-13": (0.17, 0.45)},
    **{"sparse-strided": (0.18, 0.50), "sparse-fixed": (0.25, 0.75)},
    **{"sinks": (0.65, 2.4), "prefix": (2.0, 5.8)},
}
LONG = {
    **dict.fromkeys(("strided", "windowed"), 65_536),
    "sinks": 32_768,
}  # positions; the others have 16,384
BF16, FLOAT32, TF32 = "bfloat16", "float32", "TF32"
IN_FLOAT32 = {"causal": 4096, "strided-1023": 16_384}  # positions
WRONG = {BF16: 2e-2, FLOAT32: 1e-5, TF32: 4e-3}  # relative error
UNORDERED, FLEX, CUDNN = f"{OURS}, not deterministic", "FlexAttention", "cuDNN SDPA"
EFFICIENT = "SDPA, memory-efficient"
SMALL = ("strided-255", "windowed-256", "neighbourhood", "sparse")  # where smaller blocks may pay
SMALL_BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_M1": 32, "BLOCK_N1": 64, "BLOCK_M2": 64, "BLOCK_N2": 32}


def case_of(name: str, dtype: str = BF16, shrink: int = 1) -> Case:
    """One of the cases at its size; a dry run shrinks it."""
    n = LONG.get(name.partition("-")[0], 16_384) if dtype == BF16 else IN_FLOAT32[name]
    return report.case(name, n // shrink)


def chosen(cases: Sequence[str] | None, dtype: str) -> list[str]:
    """The cases asked for that there are in this dtype."""
    return [name for name in report.chosen(cases) if dtype == BF16 or name in IN_FLOAT32]


def row_of(case: Case, D: int, work: str, dtype: str = BF16, rate: float = RATE) -> Row:
    """A row with nothing measured; rate is that of products of these numbers."""
    products, tensors = WORK[work]
    width = 2 if dtype == BF16 else 4
    floor = max(
        case.needed * HEADS * D * 2 * products / rate,
        tensors * case.n * HEADS * D * width / BANDWIDTH,
    )
    aim = AIMS[case.name][("forward", "backward").index(work)] if D == 128 and dtype == BF16 else None
    told = lt.explain(
        case.rule, **(case.sizes or {"n": case.n}), heads=HEADS, head_dim=D, device="cuda",
        dtype=BF16 if dtype == BF16 else FLOAT32,
    )  # fmt: skip
    expected = told.forward_time if work == "forward" else told.backward_time
    seconds = expected.seconds if expected is not None and expected.bound == "about" else None
    return Row(
        case.name, case.title, case.n, HEADS, D, work, case.needed, floor * 1e3, aim=aim,
        predicted=None if seconds is None else seconds * 1e3, dtype="" if dtype == BF16 else dtype,
    )  # fmt: skip


def cudnn(case: Case) -> Attend | None:
    """SDPA by cuDNN, for the rules where that is the same."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    def attend(q: Any, k: Any, v: Any) -> Any:
        shape = q.shape
        if case.w is not None:
            q, k, v = (x.view(HEADS, -1, case.w, shape[-1]) for x in (q, k, v))
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return sdpa(q, k, v, is_causal=True).view(shape)

    return attend if case.w is not None or case.name == "causal" else None


def efficient(case: Case, device: str) -> Attend:
    """SDPA's memory-efficient kernel, with a mask where the rule is not causal."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    run = partial(sdpa, is_causal=True) if case.name == "causal" else masked(case, device)

    def attend(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION if device == "cuda" else SDPBackend.MATH):
            return run(q, k, v)

    return attend


# Running


class Bench:
    """One run: what was asked for, the machine, and the rows so far."""

    def __init__(self, args: argparse.Namespace, quiet: bool = False) -> None:
        import torch

        self.args, self.torch = args, torch
        self.device = "cpu" if args.dry_run else "cuda"
        self.about = report.machine()
        self.rows: list[Row] = []
        self.failed = False
        self.timer = Timer(self.device, args.timer)
        self.rates = {dtype: self.timer.rate(dtype) for dtype in args.dtype}
        self.flex = compiled_flex()
        torch._functorch.config.donated_buffer = False  # its backward is run many times
        self.earlier: dict[tuple[str, int, str, str], Row] = {}
        if args.peers_json:
            self.read(args.peers_json)
        if TF32 in self.rates and self.device == "cuda":
            self.about["TF32"] = f"{self.rates[TF32] / 1e12:.0f} TFLOP/s in a product of matrices"
        if not quiet:
            print(", ".join(f"{key} {value}" for key, value in self.about.items() if value), flush=True)

    def read(self, path: str) -> None:
        """Peers of an earlier run, which must be one on such a machine."""
        about, rows = report.load(path)
        if about["device"] != self.about["device"]:
            raise SystemExit(f"{path} was measured on {about['device']}, this is {self.about['device']}")
        self.earlier = {(row.case, row.head_dim, row.work, row.dtype): row for row in rows}
        self.about["peers"] = f"from {path} of {about['date']}, torch {about['torch']}"

    def show(self, rows: Sequence[Row]) -> None:
        for row in rows:
            print(report.line(row), flush=True)

    def empty(self, case: Case, D: int, dtype: str) -> list[Row]:
        return [row_of(case, D, work, dtype, self.rates[dtype]) for work in WORK]

    def tensors(self, case: Case, D: int, dtype: str) -> tuple[list[Any], Any]:
        """q, k and v, and the gradient of the output."""
        self.torch.manual_seed(0)
        kind = self.torch.bfloat16 if dtype == BF16 else self.torch.float32
        make = partial(self.torch.randn, 1, HEADS, case.n, D, device=self.device, dtype=kind)
        return [make(requires_grad=True) for _ in range(3)], make()

    def run(self, name: str, D: int, dtype: str) -> None:
        """The rows of one case: lattend first, shown at once, then the peers."""
        case = case_of(name, dtype, 64 if self.args.dry_run else 1)
        with tf32(dtype == TF32):
            rows = self.empty(case, D, dtype)
            self.measure(case, rows, *self.tensors(case, D, dtype))
        self.rows += rows
        self.show(rows)
        if self.args.json:
            report.save(self.args.json, self.about, self.rows)

    def measure(self, case: Case, rows: Sequence[Row], inputs: list[Any], towards: Any) -> None:
        grads = None
        if not self.args.no_ours:
            for who, fixed in ((OURS, True), (UNORDERED, False)):
                attend = ours(case, deterministic=fixed, kernel=self.args.kernel)
                kept = self.guarded(rows, who, partial(self.ours, case, attend, rows, who, inputs, towards))
                grads = kept if fixed else grads
            if not self.args.no_peers and not self.earlier:
                self.show(rows)
        if self.earlier:
            self.reuse(rows)
        elif not self.args.no_peers:
            self.peers(case, rows, inputs, towards, grads)

    def guarded(self, rows: Sequence[Row], who: str, work: Callable[[], Any]) -> Any:
        """The result, or None and a note where it failed: the other cases go on."""
        try:
            return work()
        except Exception as error:
            text = " ".join(str(error).split())
            rows[0].notes.append(f"{who} failed: {type(error).__name__}: {text[:200]}")
            self.failed |= who.startswith(OURS)
        finally:
            gc.collect()
            if self.device == "cuda":
                self.torch.cuda.empty_cache()

    def ours(
        self, case: Case, attend: Attend, rows: Sequence[Row], who: str, inputs: list[Any], towards: Any
    ) -> list[Any]:
        start = time.perf_counter()
        attend(*inputs)
        self.timer.host(lambda: None)  # waits for the device
        if not self.args.warm:
            rows[0].first.setdefault(OURS, time.perf_counter() - start)
        return self.time(case, attend, rows, who, inputs, towards)

    def time(
        self, case: Case, attend: Attend, rows: Sequence[Row], who: str, inputs: list[Any], towards: Any
    ) -> list[Any]:
        """Checks and times both passes; gives the gradients."""
        exact = self.torch.float64 if rows[0].dtype else self.torch.float32
        found = errors(case, attend, *inputs, exact=exact)
        rows[1].errors[who] = found["gradients"]
        if not max(found.values()) <= WRONG[rows[0].dtype or BF16]:  # NaN is wrong too
            rows[0].notes.append(f"{who} is WRONG")
            self.failed |= who.startswith(OURS)
        if who != UNORDERED:  # the order of sums plays no part in a forward pass
            rows[0].errors[who] = found["out"]
            rows[0].times[who], rows[0].host[who] = self.timer(lambda: attend(*inputs))
        out = attend(*inputs)
        back = partial(self.torch.autograd.grad, out, inputs, towards, retain_graph=True)
        rows[1].times[who], rows[1].host[who] = self.timer(back)
        return list(back())

    def peers(
        self, case: Case, rows: Sequence[Row], inputs: list[Any], towards: Any, grads: list[Any] | None
    ) -> None:
        if rows[0].dtype:
            with_mask = partial(self.time, case, efficient(case, self.device), rows, EFFICIENT)
            self.guarded(rows, EFFICIENT, partial(with_mask, inputs, towards))
        elif library := cudnn(case):
            self.guarded(rows, CUDNN, partial(self.time, case, library, rows, CUDNN, inputs, towards))
        say(f"compiling {FLEX} for {case.title}")
        kept = self.guarded(rows, FLEX, lambda: self.flexed(case, rows, inputs, towards, 128, None))
        if self.args.tune_flex and case.name.startswith(SMALL):
            small = self.empty(case, rows[0].head_dim, rows[0].dtype or BF16)
            self.guarded(rows, FLEX, lambda: self.flexed(case, small, inputs, towards, 64, SMALL_BLOCKS))
            for row, other in zip(rows, small, strict=True):
                if other.times.get(FLEX, math.inf) < row.times.get(FLEX, math.inf) and not small[0].notes:
                    row.times[FLEX], row.host[FLEX] = other.times[FLEX], other.host[FLEX]
                    row.notes.append(f"{FLEX} in blocks of 64")
        if grads and kept:
            worst = max(relative(a, b) for a, b in zip(grads, kept, strict=True))
            rows[1].errors[f"to {FLEX}"] = worst
            if not worst <= WRONG[rows[0].dtype or BF16]:
                rows[1].notes.append(f"{OURS} and {FLEX} DIFFER")
                self.failed = True

    def flexed(
        self, case: Case, rows: Sequence[Row], inputs: list[Any], towards: Any, block: int, options: Any
    ) -> list[Any]:
        attend = self.flex_with(case, block, options)
        start = time.perf_counter()
        self.torch.autograd.grad(attend(*inputs), inputs, towards)
        if not self.args.warm:
            rows[0].first[FLEX] = time.perf_counter() - start
        return self.time(case, attend, rows, FLEX, inputs, towards)

    def flex_with(self, case: Case, block: int, options: Any) -> Attend:
        return partial(self.flex, block_mask=block_mask(case, self.device, block), kernel_options=options)

    def reuse(self, rows: Sequence[Row]) -> None:
        for row in rows:
            known = self.earlier.get((row.case, row.head_dim, row.work, row.dtype))
            for who, took in known.times.items() if known else ():
                if not who.startswith(OURS):
                    row.times[f"{who} (earlier run)"] = took


# Compiling before anything is timed


def compile_row(args: argparse.Namespace, who: str, dtype: str, D: int, name: str) -> str:
    """Runs both passes of one row once, by lattend or FlexAttention; gives a line about it."""
    start = time.perf_counter()
    bench = Bench(argparse.Namespace(**vars(args) | {"dtype": [], "peers_json": None}), quiet=True)
    case = case_of(name, dtype, 64 if args.dry_run else 1)
    with tf32(dtype == TF32):
        inputs, towards = bench.tensors(case, D, dtype)
        if who == FLEX:
            some = [bench.flex_with(case, 128, None)]
            if args.tune_flex and name.startswith(SMALL):
                some.append(bench.flex_with(case, 64, SMALL_BLOCKS))
        else:
            some = [ours(case, deterministic=fixed, kernel=args.kernel) for fixed in (True, False)]
        for attend in some:
            bench.torch.autograd.grad(attend(*inputs), inputs, towards)
    bench.timer.host(lambda: None)  # waits for the device
    return f"{who}, {name}, D = {D}, {dtype}: {time.perf_counter() - start:.0f} s"


def compile_all(args: argparse.Namespace, rows: Sequence[tuple[str, int, str]]) -> None:
    """Compiles what all rows need, in processes: caches on disk are how they share it."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # the processes are the threads
    whose = [*([] if args.no_peers or args.peers_json else [FLEX]), *([] if args.no_ours else [OURS])]
    start = time.perf_counter()
    with ProcessPoolExecutor(args.processes, get_context("spawn")) as pool:
        begun = [pool.submit(compile_row, args, who, *row) for who, row in product(whose, rows)]
        for one in as_completed(begun):
            failure = one.exception()
            say(one.result() if failure is None else f"{type(failure).__name__}: {failure}"[:300])
    say(f"compiled in {time.perf_counter() - start:.0f} s, {args.processes} processes")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", nargs="+", metavar="NAME", help=", ".join(report.NAMES))
    parser.add_argument(
        "--head-dim", nargs="+", type=int, default=[128, 64], metavar="D", choices=[64, 128, 256]
    )
    parser.add_argument("--dtype", nargs="+", default=[BF16], choices=[BF16, FLOAT32, TF32])
    parser.add_argument("--kernel", choices=["triton", "sdpa"], help="lattend's; it chooses otherwise")
    parser.add_argument("--no-peers", action="store_true", help="only lattend")
    parser.add_argument("--no-ours", action="store_true", help="only the peers")
    parser.add_argument("--peers-json", metavar="FILE", help="take the peers from an earlier --json")
    parser.add_argument("--tune-flex", action="store_true", help="try smaller blocks for small windows")
    parser.add_argument("--warm", action="store_true", help="run each kernel once before, in processes")
    parser.add_argument("--processes", type=int, default=min(8, os.cpu_count() or 1), metavar="N")
    parser.add_argument("--timer", choices=["events", "do_bench"], default="events")
    parser.add_argument("--json", metavar="FILE", help="save the rows here, after each case")
    parser.add_argument("--chart", metavar="FILE", help="draw them here: .svg or .png")
    parser.add_argument("--dry-run", action="store_true", help="small sizes on the CPU: tests this file only")
    args = parser.parse_args(argv)
    rows = [
        (dtype, D, name)
        for dtype, D in product(args.dtype, args.head_dim)
        for name in chosen(args.cases, dtype)
    ]
    import torch

    if not (torch.cuda.is_available() or args.dry_run):
        print("no CUDA device here: attention on a GPU is not timed")
        return
    if args.warm:
        compile_all(args, rows)
    bench = Bench(args)
    for dtype, D, name in rows:
        bench.run(name, D, dtype)
    report.table(bench.about, bench.rows, details=False)
    if args.chart:
        print("drawn:", *report.draw(args.chart, bench.about, bench.rows, "Attention under a rule, GPU"))
    if bench.failed:
        sys.exit("lattend failed or was wrong in a row above")


if __name__ == "__main__":
    main()
