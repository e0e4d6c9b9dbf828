"""What a caller waits for: lt.attention beside torch's scaled_dot_product_attention on everyday calls.

    python benchmarks/everyday.py --quick                         # a sample, under a minute
    python benchmarks/everyday.py --device cuda --save            # all, to results/everyday_<device>.json
    python benchmarks/everyday.py --only causal bfloat16 training # rows whose line has all these words
    python benchmarks/everyday.py --deterministic                 # gradients that are the same on every run
    python benchmarks/everyday.py --quick --warm 14 --cases 200   # its kernels compiled by 14 processes first
    python benchmarks/everyday.py --control                       # SDPA beside itself: the ratios of noise

Both do the same work on the same tensors: SDPA with is_causal, without a mask, or with a bool mask that was
made beforehand, and with enable_gqa where heads share keys. torch's backward pass on a GPU is not
deterministic (atomics), so Lattend's need not be, by deterministic=False; --deterministic times its default,
the same bits on every run. Outputs, and gradients in a training step, are compared before anything is timed.
The two take turns, and medians count. On a CPU with --threads 1 the processor's own time is taken, which
other programs do not lengthen much; with more, wall time. With --control the ratios are SDPA's to itself.

A time is that of a loop of calls, kernel, launch and Python together, for one call. On a GPU a row also has
one call that is waited for, and the time on the device alone, from events behind a queue. The floor is the
larger of needed multiply-adds (2 products of D a pair forward, 6 in a training step) at the rate of a matrix
product and one read of the inputs and one write of the results at that of a copy; a CPU has the first only.

Rules and sizes here were tuned on, but for those of the group `random`: twenty rules drawn by chance.
"""

from __future__ import annotations

import argparse
import gc
import math
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import report
from attention_cpu import rate, relative, say
from report import OURS, short
from timing_gpu import Timer

import lattend as lt
from lattend.machines import MACHINES

SDPA = "SDPA"
WORKS = ("forward", "training step")
PRODUCTS = {"forward": 2, "training step": 6}  # of D multiply-adds a pair
PASSES_OVER = {"forward": 2, "training step": 6}  # tensors as large as q, and as many as large as k
SIZES = (16, 64, 256, 1024, 4096, 16_384, 65_536)
SHAPES = (  # batch, heads, kv heads, D
    *((1, 8, 8, 64), (8, 8, 8, 64), (1, 4, 4, 32), (1, 16, 16, 128), (1, 8, 8, 256)),
    *((1, 32, 4, 128), (8, 16, 4, 64), (1, 8, 1, 80)),
)
DTYPES = ("float32", "bfloat16")
RANDOM_SIZES, RANDOM_SHAPES = (128, 1024, 4096), ((1, 8, 8, 64), (8, 4, 4, 32), (1, 16, 4, 128))
RANDOM_RULES, SEED = 20, 17
LIMIT = 1.05  # times SDPA's time
QUICK_SECONDS, QUICK_SIZES = 45, {"cpu": 1024, "cuda": 16_384}
LOOP = 2e-3  # seconds that a loop of calls takes at least, or 20 calls
ROUNDS, TURNS = 9, 6  # turns at most; a case is left out if so many calls of SDPA take too long


@dataclass(frozen=True)
class Case:
    """One call: a rule on tensors of these sizes, one pass."""

    group: str
    rule: lt.Rule
    n: int
    m: int
    shape: tuple[int, int, int, int]  # batch, heads, kv heads, D
    dtype: str
    work: str

    @property
    def sizes(self) -> dict[str, Any]:
        return {} if self.n == self.m else {"m": self.m}

    @property
    def pairs(self) -> int:
        return self.n * self.m

    @property
    def masked(self) -> bool:
        return self.group not in ("full", "causal", "cross-attention")

    def needed(self) -> int:
        """The attended pairs of a head."""
        if self.masked:
            return int(mask_of(self.rule, self.n, self.m).sum())
        return self.n * (self.n + 1) // 2 if self.group == "causal" else self.pairs

    def operations(self, pairs: int) -> int:
        """Multiplies and adds of this pass, where a head has so many pairs."""
        batch, heads, _, D = self.shape
        return pairs * batch * heads * D * 2 * PRODUCTS[self.work]

    def held(self) -> int:
        """About what SDPA holds at once: scores of all pairs where masked or float32 heads share keys."""
        batch, heads, kv_heads, D = self.shape
        tensors = 4 * batch * D * (4 * heads * self.n + 4 * kv_heads * self.m)
        mask = 5 * self.pairs if self.masked else 0
        written_out = kv_heads < heads and (self.masked or self.dtype == "float32")
        shared = 12 * batch * heads * self.pairs if written_out else 0
        return tensors + mask + shared

    def __str__(self) -> str:
        batch, heads, kv_heads, D = self.shape
        sizes = f"n = {self.n:,}" + (f", m = {self.m:,}" if self.m != self.n else "")
        shared = f" on {kv_heads}" if kv_heads < heads else ""
        shape = f"batch {batch}, {heads}{shared} heads, D = {D}"
        return f"{self.group}: {self.rule}, {sizes}, {shape}, {self.dtype}, {self.work}"


@dataclass
class Row:
    """A case and its times, in ms for one call, by contender."""

    group: str
    title: str
    n: int
    m: int
    shape: tuple[int, int, int, int]
    dtype: str
    work: str
    needed: int
    floor: float | None
    tuned: bool  # whether the library was tuned on rules like this
    kernel: str  # what lt.explain chose
    times: dict[str, float] = field(default_factory=dict)  # a loop of calls
    alone: dict[str, float] = field(default_factory=dict)  # one call, waited for: on a GPU
    device: dict[str, float] = field(default_factory=dict)  # of that, on the device
    error: float = 0.0  # relative, from SDPA
    notes: list[str] = field(default_factory=list)

    def ratio(self, kind: str = "times") -> float:
        """Our time over SDPA's."""
        times = getattr(self, kind)
        return times[OURS] / times[SDPA]


# The cases


def rules_at(n: int) -> Iterator[tuple[str, lt.Rule, int]]:
    """Groups and rules at n queries, and how many keys there are."""
    yield "full", lt.rules.full(), n
    yield "causal", lt.rules.causal(), n
    yield "cross-attention", lt.rules.full(), max(1, n // 4) + 13
    for window in (64, 512):
        if window <= n:
            yield "sliding window", lt.rules.sliding_window(window), n
            yield "blocks", lt.rules.windowed(window), n
            yield "blocks", lt.rule(f"q // {window} == k // {window}"), n
    if n < 64:
        yield "sliding window", lt.rules.sliding_window(n // 2), n
        yield "blocks", lt.rules.windowed(n // 2), n


def cases() -> Iterator[Case]:
    """All of them, small ones first."""
    for n in SIZES:
        for group, rule, m in rules_at(n):
            for shape in SHAPES:
                for dtype in DTYPES:
                    for work in WORKS:
                        yield Case(group, rule, n, m, shape, dtype, work)
    for number, text in enumerate(random_rules()):
        rule = lt.rule(text)
        for at, n in enumerate(RANDOM_SIZES):
            shape = RANDOM_SHAPES[(number + at) % len(RANDOM_SHAPES)]
            for dtype in DTYPES:
                for work in WORKS:
                    yield Case("random", rule, n, n, shape, dtype, work)


@lru_cache(maxsize=1)
def random_rules() -> tuple[str, ...]:
    """Twenty rules of affine conditions; every query has a key, and 2 to 90 % of pairs are attended."""
    draw, found = random.Random(SEED), []
    while len(found) < RANDOM_RULES:
        text = _random_rule(draw)
        mask = lt.rule(text).mask(n=200)
        if text not in found and mask.any(1).all() and 0.02 <= mask.mean() <= 0.9:
            found.append(text)
    return tuple(found)


def _random_rule(draw: random.Random) -> str:
    parts: list[str] = []
    for sign in ("<=", ">="):
        slope, by = draw.randint(1, 3), draw.randint(1, 3)
        away = draw.choice((0, 3, 17, 60, 150)) * (1 if sign == "<=" else -1)
        parts.append(f"{by}*k {sign} {slope}*q + {away}".replace("+ -", "- "))
    drawn = draw.random()
    step = draw.randint(2, 9)
    if drawn < 0.25:
        parts.append(f"(q - k) % {step} == 0")
    elif drawn < 0.45:
        parts.append(f"q // {10 * step} == k // {10 * step}")
    text = " and ".join(parts)
    return f"{text} or k < {step}" if draw.random() < 0.3 else text


def fair_order(all_cases: Sequence[Case]) -> list[Case]:
    """Shuffled, the groups in turn: the first so many are a sample of all."""
    draw, groups = random.Random(SEED), {}
    for case in all_cases:
        groups.setdefault(case.group, []).append(case)
    for some in groups.values():
        draw.shuffle(some)
    rounds = max(map(len, groups.values()), default=0)
    return [some[i] for i in range(rounds) for some in groups.values() if i < len(some)]


# The contenders


@lru_cache(maxsize=4)
def mask_of(rule: lt.Rule, n: int, m: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray(rule.mask(n=n) if n == m else rule.mask(n=n, m=m))


def contenders(
    case: Case, device: str, deterministic: bool = False, control: bool = False
) -> dict[str, Callable[..., Any]]:
    """Lattend's call, or SDPA's in its place as a control, and SDPA's: functions of q, k and v."""
    import torch

    _, heads, kv_heads, _ = case.shape
    options: dict[str, Any] = {"enable_gqa": True} if kv_heads < heads else {}
    if case.group == "causal":
        options["is_causal"] = True
    elif case.masked:
        options["attn_mask"] = torch.as_tensor(mask_of(case.rule, case.n, case.m), device=device)
    theirs = partial(torch.nn.functional.scaled_dot_product_attention, **options)
    ours: Any = partial(lt.attention, rule=case.rule, deterministic=deterministic, **case.sizes)
    return {OURS: theirs if control else ours, SDPA: theirs}


def tensors(case: Case, device: str) -> tuple[list[Any], Any]:
    """q, k and v, and the gradient of the output."""
    import torch

    batch, heads, kv_heads, D = case.shape
    dtype, learned = getattr(torch, case.dtype), case.work != "forward"
    torch.manual_seed(0)
    make = partial(torch.randn, dtype=dtype, device=device)
    q = make(batch, heads, case.n, D, requires_grad=learned)
    k, v = (make(batch, kv_heads, case.m, D, requires_grad=learned) for _ in range(2))
    return [q, k, v], make(batch, heads, case.n, D)


def run(attend: Callable[..., Any], inputs: Sequence[Any], towards: Any) -> tuple[Any, ...]:
    """The call as a caller makes it: the output, or the gradients of a training step."""
    import torch

    out = attend(*inputs)
    if not inputs[0].requires_grad:
        return (out,)
    return torch.autograd.grad(out, inputs, towards)


def apart(works: dict[str, Callable[[], tuple[Any, ...]]]) -> float:
    """The largest relative difference between what both give; NaN where one has it."""
    ours, theirs = (works[name]() for name in (OURS, SDPA))
    return float(np.max([relative(a, b) for a, b in zip(ours, theirs, strict=True)]))


# Timing


def wait(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def clock(device: str) -> Callable[[], float]:
    """Wall time; of a CPU with one thread, that thread's own time."""
    import torch

    alone = device == "cpu" and torch.get_num_threads() == 1
    return time.thread_time if alone else time.perf_counter


def loop(work: Callable[[], Any], calls: int, device: str) -> float:
    """Milliseconds of a call, in a loop of so many that is waited for at its end."""
    now = clock(device)
    wait(device)
    start = now()
    for _ in range(calls):
        work()
    wait(device)
    return (now() - start) * 1e3 / calls


def in_turn(works: dict[str, Callable[[], Any]], calls: int, seconds: float, device: str) -> dict[str, float]:
    """The median milliseconds of each; they take turns, at most ROUNDS times."""
    found: dict[str, list[float]] = {name: [] for name in works}
    end = time.perf_counter() + seconds
    for _ in range(ROUNDS):
        for name, work in works.items():
            found[name].append(loop(work, calls, device))
        if time.perf_counter() > end:
            break
    return {name: statistics.median(times) for name, times in found.items()}


class Bench:
    """One run: what was asked for, the machine, and the rows so far."""

    def __init__(self, args: argparse.Namespace) -> None:
        import torch

        self.args, self.device = args, args.device
        self.about: dict[str, Any] = report.machine() | {"threads": torch.get_num_threads()}
        self.about["deterministic"] = args.deterministic
        self.about["control"] = args.control or None
        self.rows: list[Row] = []
        self.left_out = {"memory": 0, "time": 0}
        self.failed = False
        self.timer = Timer("cuda", "events") if self.device == "cuda" else None
        self.rate = rate(10) if self.device == "cpu" else MACHINES["H200 measured"].rate

    def floor(self, case: Case, needed: int) -> float | None:
        """Milliseconds, where the machine's rates are known."""
        batch, heads, kv_heads, D = case.shape
        work = case.operations(needed)
        if self.device == "cpu":
            return work / self.rate * 1e3 if case.dtype == "float32" else None
        if "H200" not in self.about["device"] or case.dtype != "bfloat16":
            return None
        moved = 2 * batch * D * (heads * case.n + kv_heads * case.m) * PASSES_OVER[case.work]
        return max(work / self.rate, moved / MACHINES["H200 measured"].bandwidth) * 1e3

    def measure(self, case: Case) -> None:
        """One row, unless SDPA would need too much memory or time."""
        if case.held() > self.args.most_memory * 2**30:
            self.left_out["memory"] += 1
            return
        if TURNS * case.operations(case.pairs) / self.rate > self.args.most_seconds:
            self.left_out["time"] += 1
            return
        inputs, towards = tensors(case, self.device)
        works = {
            name: partial(run, attend, inputs, towards)
            for name, attend in contenders(
                case, self.device, self.args.deterministic, self.args.control
            ).items()
        }
        row = self.row(case, inputs)
        row.error = apart(works)
        once = max(loop(work, 1, self.device) for work in works.values()) / 1e3
        if not row.error <= self.tolerance(inputs[0].dtype):
            row.notes.append(f"DIFFERS from {SDPA} by {row.error:.1e}")
            self.failed = True
        self.time(row, works, once)
        self.rows.append(row)
        say(line(row))

    def row(self, case: Case, inputs: Sequence[Any]) -> Row:
        how = {"deterministic": self.args.deterministic, **case.sizes}
        told = lt.explain(case.rule, like=tuple(inputs), **how)
        kernel = str(told.kernel) if case.work == "forward" else f"{told.kernel}, backward {told.backward}"
        kernel = f"{SDPA} in place of {OURS}" if self.args.control else kernel
        needed = case.needed()
        return Row(
            *(case.group, str(case), case.n, case.m, case.shape, case.dtype, case.work, needed),
            *(self.floor(case, needed), case.group != "random", kernel),
        )

    def tolerance(self, dtype: Any) -> float:
        """Each may be so far from exact results as the table of the kernels says."""
        import torch

        from lattend.attend.kernels.tolerance import TOLERANCE, uses_tf32

        if dtype == torch.float32 and self.device == "cuda" and uses_tf32():
            return 2 * 2e-3
        return 2 * TOLERANCE[dtype]

    def time(self, row: Row, works: dict[str, Callable[[], Any]], once: float) -> None:
        seconds = self.args.most_seconds
        calls = max(1, min(20, math.ceil(LOOP / once)))
        row.times = in_turn(works, calls, seconds / 2, self.device)
        if self.timer is not None:
            row.alone = in_turn(works, 1, seconds / 8, self.device)
            row.device = {name: self.timer(work)[0] for name, work in works.items()}


# What is printed


def line(row: Row) -> str:
    """A row on one line: both times, their ratio, and what was chosen."""
    parts = [f"{name} {short(row.times[name])}" for name in (OURS, SDPA)]
    for kind, name in (("alone", "one call"), ("device", "on the device")):
        if getattr(row, kind):
            parts.append(f"{name} {short(row.ratio(kind))}×")
    parts += [] if row.floor is None else [f"floor {short(row.floor)}"]
    words = "; ".join([f"{short(row.ratio())}×  {row.title}: {', '.join(parts)} ms", row.kernel, *row.notes])
    return words


def distribution(ratios: Sequence[float]) -> str:
    """Least, quartiles and largest of them, and the share above the limit."""
    low, first, middle, third, high = np.percentile(ratios, [0, 25, 50, 75, 100])
    above = sum(ratio > LIMIT for ratio in ratios) / len(ratios)
    numbers = "".join(f"{short(x):>8}" for x in (low, first, middle, third, high))
    return f"{len(ratios):>5}{numbers}{above:>9.0%}"


def summary(rows: Sequence[Row], worst: int = 10) -> str:
    """The distribution of ratios of each group and pass, and the worst rows."""
    kinds = [("times", "a loop of calls")]
    if any(row.device for row in rows):
        kinds += [("alone", "one call, waited for"), ("device", "on the device alone")]
    lines: list[str] = []
    for kind, title in kinds:
        lines += [
            f"times {SDPA}'s time, {title}",
            f"{'':34} rows     min  1st q.  median  3rd q.     max  > 1.05",
        ]
        for name, some in grouped(rows):
            lines.append(f"{name:34}" + distribution([row.ratio(kind) for row in some]))
        lines.append("")
    lines.append(f"the worst {min(worst, len(rows))}, by a loop of calls")
    lines += [line(row) for row in sorted(rows, key=Row.ratio, reverse=True)[:worst]]
    return "\n".join(lines)


def grouped(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """All rows, those tuned on and those not, and each group and pass."""
    yield "all", [*rows]
    names = dict.fromkeys((row.group, row.work) for row in rows)
    for group, work in names:
        title = f"{group}, {work}" + (", not tuned on" if group == "random" else "")
        yield title, [row for row in rows if (row.group, row.work) == (group, work)]


def results_file(about: dict[str, Any], device: str) -> Path:
    name = about["device"].split()[-1].lower() if device == "cuda" else "cpu"
    return Path(__file__).parent / "results" / f"everyday_{name}.json"


def chosen(args: argparse.Namespace) -> list[Case]:
    words = args.only or ()
    found = [case for case in cases() if all(word in str(case) for word in words)]
    found = [case for case in found if case.n <= args.most_n]
    if not found:
        raise SystemExit(f"no case has all of {' '.join(words)!r} in its line and n up to {args.most_n:,}")
    return fair_order(found) if args.quick else found


def warm(wanted: Sequence[Case], args: argparse.Namespace) -> None:
    """Runs each case once, in several processes, so that its kernels are compiled and kept on the disk."""
    context = multiprocessing.get_context("spawn")
    given = [(wanted[place :: args.warm], args) for place in range(args.warm)]
    running = [context.Process(target=run_once, args=some, daemon=True) for some in given]
    for process in running:
        process.start()
    end = time.perf_counter() + args.warm_seconds
    for process in running:
        process.join(max(0.0, end - time.perf_counter()))
        process.terminate()


def run_once(some: Sequence[Case], args: argparse.Namespace) -> None:
    for case in some:
        if case.held() <= args.most_memory * 2**30:
            inputs, towards = tensors(case, args.device)
            run(contenders(case, args.device, args.deterministic)[OURS], inputs, towards)
    wait(args.device)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], help="the GPU where there is one")
    parser.add_argument("--threads", type=int, help="of the CPU; torch's number otherwise")
    parser.add_argument("--quick", action="store_true", help="a sample, under a minute")
    parser.add_argument("--deterministic", action="store_true", help="as lt.attention is by default")
    parser.add_argument("--control", action="store_true", help=f"{SDPA} in place of Lattend")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="cases whose line has all of these")
    parser.add_argument("--most-n", type=int, metavar="N", help="cases of at most so many queries")
    parser.add_argument("--most-seconds", type=float, help="for a case: 1, in a sample 0.2")
    parser.add_argument("--most-memory", type=float, default=3, metavar="GIB", help="for a case")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds for all cases")
    parser.add_argument("--cases", type=int, metavar="N", help="so many of them at most")
    parser.add_argument("--warm", type=int, default=0, metavar="P", help="compile in so many processes first")
    parser.add_argument("--warm-seconds", type=float, default=90, help="for that, at most")
    parser.add_argument("--save", action="store_true", help="rows to results/everyday_<device>.json")
    args = parser.parse_args(argv)
    import torch

    if args.threads:
        torch.set_num_threads(args.threads)
    args.device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no CUDA device here; --device cpu times the CPU")
    args.most_seconds = args.most_seconds or (0.2 if args.quick else 1)
    args.most_n = args.most_n or (QUICK_SIZES[args.device] if args.quick else SIZES[-1])
    if args.quick and args.budget == math.inf:
        args.budget = QUICK_SECONDS
    wanted, bench = chosen(args)[: args.cases], Bench(args)
    if args.warm:
        warm(wanted, args)
    start = time.perf_counter()
    for case in wanted:
        if time.perf_counter() - start > args.budget:
            break
        bench.measure(case)
        gc.collect(0)
    print(", ".join(f"{key} {value}" for key, value in bench.about.items() if value is not None))
    left = ", ".join(f"{count:,} for {why}" for why, count in bench.left_out.items() if count)
    print(f"{len(bench.rows):,} of {len(wanted):,} cases" + (f"; left out: {left}" if left else ""))
    if bench.rows:
        print(summary(bench.rows))
    if args.save:
        file = results_file(bench.about, args.device)
        report.save(file, bench.about, bench.rows)  # pyright: ignore[reportArgumentType]
        print("saved:", file)
    if bench.failed:
        sys.exit(f"lattend and {SDPA} differ in a row above")


if __name__ == "__main__":
    main()
