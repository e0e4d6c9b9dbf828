"""Attention under a rule on a CPU, beside its peers: float32, batch 1, 4 heads, D = 64.

    python benchmarks/attention_cpu.py                         # one size a rule: some 4 minutes
    python benchmarks/attention_cpu.py --full                  # n from 1k to 64k, most of an hour
    python benchmarks/attention_cpu.py --rules strided causal --json rows.json --chart rows.svg

Peers: SDPA with a bool mask; FlexAttention, compiled, its block mask made beforehand (forward only, it has
no CPU backward); SDPA on chunks, what one writes by hand for a window (strided: each chunk and the t keys
before it, as overlapping views; windowed: reshaped); and SDPA causal, which attends to other pairs: a
reference line. The floor is the needed multiply-adds at the machine's rate of float32 matrix products,
measured in the same run: 2 products of D a pair forward, 6 in a training step.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import report
from report import OURS, Case, Row

import lattend as lt

HEADS, D = 4, 64
SIZES = [1 << power for power in range(10, 17)]
QUICK = {"strided-255": [8192], "strided-4095": [8192]}  # the others at 4096
TRAINED, LONG = 65_536, 1_000_000  # positions of the two long runs under strided t=255
MOST_MASK = 2 * 2**30  # bytes; SDPA makes floats of it, four times as many
MOST_FLEX = 65_536  # positions; its block mask is made from n² pairs
PRODUCTS = {"forward": 2, "training step": 6}  # of D multiply-adds a pair; scores once, gradients 4
CHECKED = 8192  # positions up to which peers are checked too
WRONG = 1e-4  # relative error in float32
MASK, FLEX, CHUNKS, CAUSAL = "SDPA mask", "FlexAttention", "SDPA chunks", report.REFERENCE

Attend = Callable[[Any, Any, Any], Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# The contenders: functions of q, k, v of shape [1, HEADS, n, D]


def ours(case: Case, **options: Any) -> Attend:
    return lambda q, k, v: lt.attention(q, k, v, case.rule, **options, **case.sizes)


def masked(case: Case, device: str = "cpu") -> Attend:
    import torch

    at = torch.arange(case.n, dtype=torch.int32, device=device)
    mask = torch.empty(case.n, case.n, dtype=torch.bool, device=device)
    for rows, out in zip(at.split(256), mask.split(256), strict=True):
        out.copy_(case.attended(rows[:, None], at[None]))
    return partial(torch.nn.functional.scaled_dot_product_attention, attn_mask=mask)


def causal() -> Attend:
    import torch

    return partial(torch.nn.functional.scaled_dot_product_attention, is_causal=True)


def chunks(case: Case) -> Attend | None:
    """SDPA on chunks of t + 1 or w positions, for the rules where that is the same."""
    import torch
    from torch.nn.functional import pad

    sdpa = torch.nn.functional.scaled_dot_product_attention

    def windowed(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.view(HEADS, -1, case.w, D) for x in (q, k, v))
        return sdpa(q, k, v, is_causal=True).view(1, HEADS, -1, D)

    def strided(q: Any, k: Any, v: Any) -> Any:
        t, c = case.t, case.t + 1
        if case.n % c:  # keys at the end are seen by no query that is kept
            q, k, v = (pad(x, (0, 0, 0, -case.n % c)) for x in (q, k, v))
        head = sdpa(q[:, :, :c], k[:, :, :c], v[:, :, :c], is_causal=True)
        behind = (x[0, :, 1:].unfold(1, c + t, c).transpose(2, 3) for x in (k, v))  # views: no copy
        ahead = torch.arange(c + t)[None] - torch.arange(c)[:, None]
        tail = sdpa(q[0, :, c:].view(HEADS, -1, c, D), *behind, attn_mask=(ahead >= 0) & (ahead <= t))
        return torch.cat([head, tail.reshape(1, HEADS, -1, D)], 2)[:, :, : case.n]

    if case.w is not None and case.n % case.w == 0:
        return windowed
    return strided if case.t is not None and case.n > case.t + 1 else None


def block_mask(case: Case, device: str = "cpu", block: int = 128) -> Any:
    """FlexAttention's block mask, made a row of blocks at a time: create_block_mask needs all n² at once."""
    import torch
    from torch.nn.attention.flex_attention import BlockMask

    attended, n = case.attended, case.n
    blocks = -(-n // block)
    keys = torch.arange(blocks * block, dtype=torch.int32, device=device)
    counts = torch.empty(blocks, blocks, dtype=torch.int64, device=device)
    for row, queries in enumerate(keys[:n].split(block)):
        seen = attended(queries[:, None], keys[None]) & (keys < n)
        counts[row] = seen.view(len(queries), blocks, block).sum((0, 2))
    full = counts == block * block
    numbers: list[Any] = []
    for kind in ((counts > 0) & ~full, full):
        order = kind.to(torch.int8).argsort(dim=-1, descending=True, stable=True)
        numbers += [kind.sum(-1).int()[None, None], order.int()[None, None]]
    return BlockMask.from_kv_blocks(
        *numbers, BLOCK_SIZE=block, mask_mod=lambda b, h, q, k: attended(q, k), seq_lengths=(n, n)
    )


def compiled_flex() -> Callable[..., Any]:
    """FlexAttention compiled anew for each mask and size, without giving up after a few."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    for limit in ("recompile_limit", "cache_size_limit", "accumulated_cache_size_limit"):
        if hasattr(torch._dynamo.config, limit):
            setattr(torch._dynamo.config, limit, 4096)
    return torch.compile(flex_attention, dynamic=False)


# Checking


def errors(case: Case, attend: Attend, q: Any, k: Any, v: Any, exact: Any = None) -> dict[str, float]:
    """Relative errors on sampled queries against plain attention, with gradients if q needs them.

    That is computed in float32, or in the dtype `exact`.

    Only the sampled queries get a gradient, so the whole of q's, k's and v's is known from their rows.
    """
    import torch

    n = case.n
    drawn = torch.randint(n, (30,), generator=torch.Generator().manual_seed(0))
    rows = torch.cat([drawn, torch.tensor([0, n - 1])]).unique().to(q.device)
    seen = case.attended(rows[:, None], torch.arange(n, device=q.device)[None])
    wide = [x.detach().to(exact or torch.float32).requires_grad_(x.requires_grad) for x in (q, k, v)]
    scores = wide[0][:, :, rows] @ wide[1].mT * q.shape[-1] ** -0.5
    expected = scores.masked_fill(~seen, -math.inf).softmax(-1) @ wide[2]
    given = [x.detach().requires_grad_(x.requires_grad) for x in (q, k, v)]
    out = attend(*given)
    found = {"out": relative(out[:, :, rows], expected)}
    if not q.requires_grad:
        return found
    towards = torch.zeros_like(out)
    towards[:, :, rows] = torch.randn_like(towards[:, :, rows])
    grads = torch.autograd.grad(out, given, towards)
    wanted = torch.autograd.grad(expected, wide, towards[:, :, rows].to(expected.dtype))
    return found | {"gradients": max(relative(a, b) for a, b in zip(grads, wanted, strict=True))}


def relative(found: Any, wanted: Any) -> float:
    found, wanted = found.detach().double(), wanted.detach().double()
    return float((found - wanted).norm() / wanted.norm())


# Timing


def clock(work: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def race(ready: dict[str, tuple[Callable[[], object], float]], seconds: float) -> dict[str, float]:
    """Median milliseconds of each, run in turn, so that a noisy moment hits all of them.

    Each comes with the seconds of a run already made, which stands where that was very slow.
    """

    def runs(name: str, once: float) -> int:
        if name != OURS and once > 2 * seconds:
            return int(once < 20 * seconds)
        return min(25, max(3, math.ceil(seconds / once)))

    turns = {name: runs(name, once) for name, (_, once) in ready.items()}
    times = {name: [] if turns[name] else [once] for name, (_, once) in ready.items()}
    for turn in range(max(turns.values(), default=0)):
        for name, (work, _) in ready.items():
            if turn < turns[name]:
                times[name].append(clock(work))
    return {name: statistics.median(some) * 1e3 for name, some in times.items()}


def rate(runs: int) -> float:
    """Multiplies and adds a second of a float32 matrix product, the best of these runs."""
    import torch

    size = 2048
    a, b = torch.randn(size, size), torch.randn(size, size)
    return 2 * size**3 / min(clock(lambda: a @ b) for _ in range(runs))


class Bench:
    """One run: what was asked for, the machine, and the rows so far."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.rate = rate(30)
        self.about = report.machine()
        self.flex = compiled_flex()
        self.rows: list[Row] = []
        self.causal: dict[tuple[int, str], float] = {}  # the same for every rule
        self.failed = False
        say(f"float32 matrix product: {self.rate / 1e9:.0f} GFLOP/s; load {self.about['load']}")

    def row(self, case: Case, work: str) -> Row:
        needed = int(case.rule.count(**(case.sizes or {"n": case.n})))
        return Row(case.name, case.title, case.n, HEADS, D, work, needed, 0.0)

    def busy(self) -> bool:
        """Whether matrix products run well below the best rate of this run."""
        now = rate(4)
        self.rate = max(self.rate, now)
        return now < 0.8 * self.rate

    def quietly(self, row: Row, work: Callable[[], Any]) -> Any:
        """The result of work, with a note if others used the machine; --wait tries again for so long."""
        deadline = time.perf_counter() + self.args.wait
        while True:
            while self.busy() and time.perf_counter() < deadline:
                time.sleep(1)
            found = work()
            if not self.busy():
                return found
            if time.perf_counter() >= deadline:
                row.notes.append("the machine was busy")
                return found

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.about["float32 GFLOP/s"] = round(self.rate / 1e9, 1)
        for each in self.rows:  # the best rate of the whole run is the machine's
            each.floor = each.needed * HEADS * D * 2 * PRODUCTS[each.work] / self.rate * 1e3
        say(report.line(row))
        if self.args.json:
            report.save(self.args.json, self.about, self.rows)

    def attends(self, case: Case, work: str, row: Row, peers: Sequence[str]) -> dict[str, Attend]:
        """The contenders for this case, each run once or compiled; those that fail become notes."""
        found: dict[str, Attend] = {}
        if not self.args.no_ours:
            found[OURS] = ours(case)
        if MASK in peers and case.n**2 <= MOST_MASK:
            found[MASK] = masked(case)
        elif MASK in peers:
            row.notes.append(f"{MASK}: it would take {case.n**2 / 2**30:.0f} GiB")
        if FLEX in peers and work == "forward" and case.n <= MOST_FLEX:
            found[FLEX] = partial(self.flex, block_mask=block_mask(case))
        if CHUNKS in peers and (by_hand := chunks(case)):
            found[CHUNKS] = by_hand
        if CAUSAL in peers:
            found[CAUSAL] = causal()
        return found

    def measure(self, case: Case, work: str, peers: Sequence[str]) -> None:
        """One row: the contenders on the same inputs, in turn."""
        import torch

        row = self.row(case, work)
        torch.manual_seed(0)
        inputs = [torch.randn(1, HEADS, case.n, D, requires_grad=work != "forward") for _ in range(3)]
        towards = torch.randn(1, HEADS, case.n, D)

        def run(attend: Attend) -> None:
            if work == "forward":
                attend(*inputs)
            else:
                torch.autograd.grad(attend(*inputs), inputs, towards)

        ready: dict[str, tuple[Callable[[], object], float]] = {}
        for name, attend in self.attends(case, work, row, peers).items():
            if name == CAUSAL and (case.n, work) in self.causal:
                continue
            go = partial(run, attend)
            try:
                if name in (OURS, FLEX):
                    row.first[name] = clock(go)
                if name == OURS or (work == "forward" and name != CAUSAL and case.n <= CHECKED):
                    row.errors[name] = max(errors(case, attend, *inputs).values())
                    if not row.errors[name] <= WRONG:  # NaN is wrong too
                        row.notes.append(f"{name} is WRONG")
                        self.failed |= name == OURS
                ready[name] = go, clock(go)
            except Exception as error:
                row.notes.append(f"{name} failed: {type(error).__name__}: {str(error)[:300]}")
                self.failed |= name == OURS
        row.times = self.quietly(row, lambda: race(ready, self.args.seconds))
        if row.times.get(CAUSAL, 0) > 10e3 * self.args.seconds:  # long enough to be measured once a size
            self.causal[case.n, work] = row.times[CAUSAL]
        if (case.n, work) in self.causal:
            row.times[CAUSAL] = self.causal[case.n, work]
        self.add(row)

    def long(self, who: str, row: Row) -> None:
        """A million positions forward, in a process of its own: time and peak memory."""
        command = [sys.executable, __file__, "--child", who, str(row.n)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            row.notes.append(f"{who} failed: {done.stderr.strip().splitlines()[-1:]}")
            self.failed |= who == OURS
            return
        told = json.loads(done.stdout.splitlines()[-1])
        row.times[who], row.peak[who] = told["ms"], told["peak"]


def peak() -> float:
    """The most memory this process has held, in GiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20


def child(who: str, n: int) -> None:
    import torch

    case = report.case("strided-255", n)
    torch.manual_seed(0)
    inputs = [torch.randn(1, HEADS, n, D) for _ in range(3)]
    attend = ours(case) if who == OURS else chunks(case)
    assert attend
    with torch.no_grad():
        took = min(clock(lambda: attend(*inputs)) for _ in range(2))
    print(json.dumps({"ms": took * 1e3, "peak": peak()}))


def sizes(name: str, full: bool) -> list[int]:
    if not full:
        return QUICK.get(name, [4096])
    if name.startswith("neighbourhood"):
        return [n for n in SIZES if math.isqrt(n) ** 2 == n]
    case = report.case(name, SIZES[0])
    return [n for n in SIZES if n > max((case.t or 0) + 1, case.w or 0)]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="n from 1k to 64k; one size a rule otherwise")
    parser.add_argument("--rules", nargs="+", metavar="NAME", help=", ".join(report.NAMES))
    parser.add_argument("--no-ours", action="store_true", help="only the peers")
    parser.add_argument("--no-flex", action="store_true", help="without FlexAttention: no compiling")
    parser.add_argument("--seconds", type=float, help="time each contender for about so long")
    parser.add_argument("--wait", type=float, default=0, help="seconds to try for a quiet moment, each row")
    parser.add_argument("--json", metavar="FILE", help="save the rows here, after each")
    parser.add_argument("--chart", metavar="FILE", help="draw them here: .svg or .png")
    parser.add_argument("--child", nargs=2, metavar=("WHO", "N"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    args.seconds = args.seconds or (1.5 if args.full else 0.5)
    if args.child:
        return child(args.child[0], int(args.child[1]))
    names = report.chosen(args.rules)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder  # compile seconds are those of a first time
        bench = Bench(args)
        peers = [MASK, *([] if args.no_flex else [FLEX]), CHUNKS, CAUSAL]
        for name in names:
            for n in sizes(name, args.full):
                for work in PRODUCTS:
                    bench.measure(report.case(name, n), work, peers)
    if "strided-255" in names:
        if not args.full:
            bench.measure(report.case("strided-255", TRAINED), "training step", [MASK, CHUNKS])
        row = bench.row(report.case("strided-255", LONG), "forward")
        for who in (CHUNKS,) if args.no_ours else (OURS, CHUNKS):
            bench.quietly(row, lambda who=who: bench.long(who, row))
        row.notes.append(f"inputs and output take {4 * HEADS * D * 4 * LONG / 2**30:.2f} GiB")
        bench.add(row)
    report.table(bench.about, bench.rows)
    print(
        f"{HEADS} heads, float32; floor: needed multiply-adds at {bench.rate / 1e9:.0f} GFLOP/s, the best "
        "matrix product of this run.\n"
        f"{CAUSAL} attends to other pairs: a reference line. The first call of "
        f"{FLEX} is its compiling; it has no backward on a CPU.\n"
        f"Took {time.perf_counter() - start:.0f} s."
    )
    if args.chart:
        print("drawn:", *report.draw(args.chart, bench.about, bench.rows, "Attention under a rule, CPU"))
    if bench.failed:
        raise SystemExit("lattend failed or was wrong in a row above")


if __name__ == "__main__":
    main()
