"""Attention under a rule on a GPU, beside its peers: bf16, batch 1, 16 heads, D = 128 and D = 64.

    python benchmarks/attention_gpu.py --no-ours --json peers.json      # the peers once: minutes of compiling
    python benchmarks/attention_gpu.py --peers-json peers.json          # then lattend beside them, fast
    python benchmarks/attention_gpu.py --cases strided windowed-256 --head-dim 128 --no-peers

Peers: FlexAttention, compiled, its block mask made beforehand; cuDNN through SDPA, for causal, and for
windowed on the reshaped windows. Before it is timed, each is compared with plain attention in float32 on
sampled queries, output and gradients; lattend's gradients also with FlexAttention's where that runs.

A time is the median of CUDA events around one call on inputs larger than the L2 cache, which is emptied
before; each call waits in a queue, so what Python takes is not in it but apart, as host. --timer do_bench
is Triton's instead. Forward is that of training: inputs need gradients. The floor is the larger of needed
multiply-adds at 798 TFLOP/s (2 products of D a pair forward, 4 backward) and one read of the inputs and
one write of the outputs at 4.3 TB/s (4 tensors of n by D a head forward, 8 backward).
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import report
from attention_cpu import Attend, block_mask, compiled_flex, errors, ours, relative, say
from report import OURS, Case, Row

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
}
WRONG = 2e-2  # relative error in bf16
UNORDERED, FLEX, CUDNN = f"{OURS}, not deterministic", "FlexAttention", "cuDNN SDPA"
SMALL = ("strided-255", "windowed-256", "neighbourhood", "sparse")  # where smaller blocks may pay
SMALL_BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_M1": 32, "BLOCK_N1": 64, "BLOCK_M2": 64, "BLOCK_N2": 32}


def case_of(name: str, shrink: int = 1) -> Case:
    """One of the ten cases at its size; a dry run shrinks it."""
    return report.case(name, (65_536 if name.startswith(("strided", "windowed")) else 16_384) // shrink)


def row_of(case: Case, D: int, work: str) -> Row:
    products, tensors = WORK[work]
    floor = max(
        case.needed * HEADS * D * 2 * products / RATE,
        tensors * case.n * HEADS * D * 2 / BANDWIDTH,
    )
    aim = AIMS[case.name][("forward", "backward").index(work)] if D == 128 else None
    told = lt.explain(
        case.rule, **(case.sizes or {"n": case.n}), heads=HEADS, head_dim=D, dtype="bfloat16", device="cuda"
    )
    expected = told.forward_time if work == "forward" else told.backward_time
    seconds = expected.seconds if expected is not None else None
    predicted = None if seconds is None else seconds * 1e3
    return Row(
        case.name, case.title, case.n, HEADS, D, work, case.needed, floor * 1e3, aim=aim, predicted=predicted
    )


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


# Timing


class Timer:
    """Calling it on some work gives its milliseconds on the device, and those of the call in Python."""

    def __init__(self, device: str, kind: str) -> None:
        import torch

        self.torch, self.device, self.kind = torch, device, kind
        size = 2**28 if device == "cuda" else 1
        self.filler = torch.empty(size, dtype=torch.int8, device=device)  # larger than the L2 cache
        self.fill = self.events(self.filler.zero_, 5, 0) if device == "cuda" else 0.0

    def __call__(self, work: Callable[[], object]) -> tuple[float, float]:
        work()
        host = min(self.host(work) for _ in range(5))
        if self.device != "cuda":
            return host, host
        if self.kind == "do_bench":
            from triton.testing import do_bench

            return do_bench(work, warmup=50, rep=300, return_mode="median"), host
        fills = 1 + math.ceil(1.5 * host / self.fill)
        once = self.events(work, 3, fills)
        return self.events(work, max(10, min(100, int(400 / (once + fills * self.fill)))), fills), host

    def host(self, work: Callable[[], object]) -> float:
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1e3

    def events(self, work: Callable[[], object], runs: int, fills: int) -> float:
        """The median of these runs, each queued behind so many fills of the cache."""
        event = partial(self.torch.cuda.Event, enable_timing=True)
        pairs = [(event(), event()) for _ in range(runs)]
        for start, end in pairs:
            for _ in range(fills):
                self.filler.zero_()
            start.record()
            work()
            end.record()
        self.torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) for start, end in pairs)


# Running


class Bench:
    """One run: what was asked for, the machine, and the rows so far."""

    def __init__(self, args: argparse.Namespace) -> None:
        import torch

        self.args, self.torch = args, torch
        self.device = "cpu" if args.dry_run else "cuda"
        self.about = report.machine()
        self.rows: list[Row] = []
        self.failed = False
        self.timer = Timer(self.device, args.timer)
        self.flex = compiled_flex()
        torch._functorch.config.donated_buffer = False  # its backward is run many times
        self.earlier: dict[tuple[str, int, str], Row] = {}
        if args.peers_json:
            self.read(args.peers_json)
        print(", ".join(f"{key} {value}" for key, value in self.about.items() if value), flush=True)

    def read(self, path: str) -> None:
        """Peers of an earlier run, which must be one on such a machine."""
        about, rows = report.load(path)
        if about["device"] != self.about["device"]:
            raise SystemExit(f"{path} was measured on {about['device']}, this is {self.about['device']}")
        self.earlier = {(row.case, row.head_dim, row.work): row for row in rows}
        self.about["peers"] = f"from {path} of {about['date']}, torch {about['torch']}"

    def show(self, rows: Sequence[Row]) -> None:
        for row in rows:
            print(report.line(row), flush=True)

    def run(self, name: str, D: int) -> None:
        """The rows of one case: lattend first, shown at once, then the peers."""
        case = case_of(name, 64 if self.args.dry_run else 1)
        forward, backward = rows = [row_of(case, D, work) for work in WORK]
        self.torch.manual_seed(0)
        make = partial(self.torch.randn, 1, HEADS, case.n, D, device=self.device, dtype=self.torch.bfloat16)
        inputs, towards = [make(requires_grad=True) for _ in range(3)], make()
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
        self.rows += [forward, backward]
        self.show(rows)
        if self.args.json:
            report.save(self.args.json, self.about, self.rows)

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
        rows[0].first.setdefault(OURS, time.perf_counter() - start)
        return self.time(case, attend, rows, who, inputs, towards)

    def time(
        self, case: Case, attend: Attend, rows: Sequence[Row], who: str, inputs: list[Any], towards: Any
    ) -> list[Any]:
        """Checks and times both passes; gives the gradients."""
        found = errors(case, attend, *inputs)
        rows[1].errors[who] = found["gradients"]
        if not max(found.values()) <= WRONG:  # NaN is wrong too
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
        if library := cudnn(case):
            self.guarded(rows, CUDNN, partial(self.time, case, library, rows, CUDNN, inputs, towards))
        say(f"compiling {FLEX} for {case.title}")
        kept = self.guarded(rows, FLEX, lambda: self.flexed(case, rows, inputs, towards, 128, None))
        if self.args.tune_flex and case.name.startswith(SMALL):
            small = [row_of(case, row.head_dim, row.work) for row in rows]
            self.guarded(rows, FLEX, lambda: self.flexed(case, small, inputs, towards, 64, SMALL_BLOCKS))
            for row, other in zip(rows, small, strict=True):
                if other.times.get(FLEX, math.inf) < row.times.get(FLEX, math.inf) and not small[0].notes:
                    row.times[FLEX], row.host[FLEX] = other.times[FLEX], other.host[FLEX]
                    row.notes.append(f"{FLEX} in blocks of 64")
        if grads and kept:
            worst = max(relative(a, b) for a, b in zip(grads, kept, strict=True))
            rows[1].errors[f"to {FLEX}"] = worst
            if not worst <= WRONG:
                rows[1].notes.append(f"{OURS} and {FLEX} DIFFER")
                self.failed = True

    def flexed(
        self, case: Case, rows: Sequence[Row], inputs: list[Any], towards: Any, block: int, options: Any
    ) -> list[Any]:
        mask = block_mask(case, self.device, block)
        attend = partial(self.flex, block_mask=mask, kernel_options=options)
        start = time.perf_counter()
        self.torch.autograd.grad(attend(*inputs), inputs, towards)
        rows[0].first[FLEX] = time.perf_counter() - start
        return self.time(case, attend, rows, FLEX, inputs, towards)

    def reuse(self, rows: Sequence[Row]) -> None:
        for row in rows:
            known = self.earlier.get((row.case, row.head_dim, row.work))
            for who, took in known.times.items() if known else ():
                if not who.startswith(OURS):
                    row.times[f"{who} (earlier run)"] = took


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", nargs="+", metavar="NAME", help=", ".join(report.NAMES))
    parser.add_argument("--head-dim", nargs="+", type=int, default=[128, 64], metavar="D")
    parser.add_argument("--kernel", choices=["triton", "sdpa"], help="lattend's; it chooses otherwise")
    parser.add_argument("--no-peers", action="store_true", help="only lattend")
    parser.add_argument("--no-ours", action="store_true", help="only the peers")
    parser.add_argument("--peers-json", metavar="FILE", help="take the peers from an earlier --json")
    parser.add_argument("--tune-flex", action="store_true", help="try smaller blocks for small windows")
    parser.add_argument("--timer", choices=["events", "do_bench"], default="events")
    parser.add_argument("--json", metavar="FILE", help="save the rows here, after each case")
    parser.add_argument("--chart", metavar="FILE", help="draw them here: .svg or .png")
    parser.add_argument("--dry-run", action="store_true", help="small sizes on the CPU: tests this file only")
    args = parser.parse_args(argv)
    names = report.chosen(args.cases)
    import torch

    if not (torch.cuda.is_available() or args.dry_run):
        print("no CUDA device here: attention on a GPU is not timed")
        return
    bench = Bench(args)
    for D in args.head_dim:
        for name in names:
            bench.run(name, D)
    report.table(bench.about, bench.rows, details=False)
    if args.chart:
        print("drawn:", *report.draw(args.chart, bench.about, bench.rows, "Attention under a rule, GPU"))
    if bench.failed:
        sys.exit("lattend failed or was wrong in a row above")


if __name__ == "__main__":
    main()
