"""A thousand random rules and the whole catalogue on a GPU: outputs and gradients beside float64, twice.

    python tests/attend/rules_on_gpu.py                    # `make gpu-rules`: minutes, one process a core
    python tests/attend/rules_on_gpu.py --rules 50 --processes 2 --seed 7
    python tests/attend/rules_on_gpu.py --rules 0 --runs 50       # the catalogue, fifty times each
    python tests/attend/rules_on_gpu.py --emulated                # without a GPU: an hour on two cores

A rule is a drawn condition with drawn numbers in it, on a line or on an image; conditions are drawn anew for
every NUMBERS rules, since kernels are compiled for a condition and not for its numbers. Calls are drawn too:
size, heads, head_dim, dtype, and whether gradients may differ from run to run. What is checked: the error of
the output, of the log-sum-exp and of all gradients, zeros where a query has no key, NaN that stays in its
head, and equal bits on further runs of a deterministic call.

Emulated, calls have fewer positions and heads, and take the kernels that they would take on an H200: those in
Gluon in an emulator, under another schedule on each run, those in Triton by its interpreter.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import accumulate
from math import prod
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import lattend as lt
from lattend import amx
from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.draw.grid.samples import SAMPLES
from lattend.errors import LattendError

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HOW: dict[str, Any] = {}  # options of the calls that are checked
RAN: list[Counter[str]] = []  # how often kernels were emulated, by name; of this process one
NUMBERS = 10  # rules of one condition
LEFT = ("q - k", "k - q", "abs(q - k)", "q", "k", "q + k", "2*q - k", "n - 1 - q", "max(q - a, 0) - k")
RESIDUES = ("(q - k) % w", "q // w - k // w", "k % w", "q % w", "(q + k) % 3")
RIGHT = ("0", "a", "b", "n - 1 - a", "-b")
IMAGES = 0.15  # of all conditions
LEFT_ON_IMAGES = (
    *("qy - ky", "abs(qy - ky)", "abs(qx - kx)", "qx - kx", "kx - qx", "abs(ky - qx)", "abs(ky - qy - qx)"),
    *("abs(kx - qy)", "qy", "kx", "ky - 2*qx"),
)
RIGHT_ON_IMAGES = ("c", "c", "2", "3", "0", "-c")
IMAGE_AXES = {"rows", "cols"}
IMAGE_SIZES = ((16, 64), (16, 128), (37, 40), (24, 80), (130, 9), (8, 200))
NAMES = ("a", "b", "c", "w")
DTYPES = (torch.bfloat16, torch.bfloat16, torch.bfloat16, torch.float16, torch.float32)
HEADS = ((8, 8), (8, 8), (8, 2), (3, 1), (16, 16))
HEAD_DIMS = (128, 128, 64, 80, 256)
SIZES = (1601, 1536, 1900, 777, 1000, 130, 63)
WRONG_LSE = 5e-3
TOLD = 20  # times that it is said how far it is


class Case(NamedTuple):
    """A rule with its numbers, and a call."""

    text: str
    numbers: dict[str, int]
    sizes: dict[str, int]
    heads: tuple[int, int]
    head_dim: int
    dtype: torch.dtype
    deterministic: bool
    seed: int


def condition(draw: random.Random) -> str:
    """One to three comparisons, joined by and, or and not."""

    def one() -> str:
        if draw.random() < 0.25:
            return (
                f"{draw.choice(RESIDUES)} {draw.choice(('==', '!=', '<=', '>='))} {draw.choice(('0', '1'))}"
            )
        return f"{draw.choice(LEFT)} {draw.choice(('<=', '<', '>=', '>', '!='))} {draw.choice(RIGHT)}"

    text = one()
    for _ in range(draw.choice((0, 1, 1, 2))):
        text = f"({text}) {draw.choice(('and', 'and', 'or'))} ({one()})"
    if draw.random() < 0.5:
        text = f"k <= q and ({text})"
    return f"not ({text})" if draw.random() < 0.1 else text


def on_an_image(draw: random.Random) -> str:
    """Two or three comparisons of rows and columns."""
    some = [
        f"{draw.choice(LEFT_ON_IMAGES)} {draw.choice(('<=', '<=', '<', '>='))} {draw.choice(RIGHT_ON_IMAGES)}"
        for _ in range(draw.choice((2, 2, 3)))
    ]
    return " and ".join(some)


def drawn(count: int, seed: int) -> list[list[Case]]:
    """So many random rules, those of a condition together."""
    draw, groups = random.Random(seed), list[list[Case]]()
    while sum(map(len, groups)) < count:
        image = draw.random() < IMAGES
        text, heads = on_an_image(draw) if image else condition(draw), draw.choice(HEADS)
        head_dim, dtype = draw.choice(HEAD_DIMS), draw.choice(DTYPES)
        group: list[Case] = []
        for _ in range(min(NUMBERS, count - sum(map(len, groups)))):
            numbers = {
                "a": draw.randrange(900),
                "b": draw.randrange(300),
                "c": draw.randrange(1, 14),
                "w": draw.choice((2, 7, 64, 100, 257)),
            }
            used = {name: numbers[name] for name in NAMES if name in lt.rule(text).parameters}
            rows, cols = draw.choice(IMAGE_SIZES)
            sizes = {"rows": rows, "cols": cols} if image else {"n": draw.choice(SIZES)}
            some = draw.random() < 0.8, draw.randrange(1 << 30)
            group.append(Case(text, used, sizes, heads, head_dim, dtype, *some))
        groups.append(group)
    return groups


def catalogue() -> list[list[Case]]:
    """Every rule of the catalogue, at the sizes at which it is drawn, and larger where it has n."""
    groups: list[list[Case]] = []
    for sample in SAMPLES:
        sizes = [sample.at]
        if "n" in sample.at:
            sizes.append(sample.at | {name: 1600 for name in ("n", "m") if name in sample.at})
        calls = [(at, head_dim) for at in sizes for head_dim in (64, 128)]
        groups.append([Case(sample.call, at, {}, (8, 8), d, torch.bfloat16, True, 0) for at, d in calls])
    return groups


def smaller(case: Case) -> Case:
    """The same call with fewer heads and positions; fewest where kernels in Triton run, which are slow."""
    heads, kv_heads = case.heads
    few, in_gluon = min(kv_heads, 2), case.dtype != torch.float32 and case.head_dim in (80, 128)
    by = {"n": 2, "m": 2} if in_gluon else {"n": 8, "m": 8} | dict.fromkeys(IMAGE_AXES, 3)
    short = {
        name: size // by.get(name, 1) if size > 128 or name in IMAGE_AXES & case.sizes.keys() else size
        for name, size in (case.numbers | case.sizes).items()
    }
    numbers, sizes = ({name: short[name] for name in given} for given in (case.numbers, case.sizes))
    return case._replace(numbers=numbers, sizes=sizes, heads=(few * (heads // kv_heads), few))


def relative(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted).norm() / wanted.norm().clamp(min=1e-9))


def check(case: Case, runs: int = 2) -> str:
    """What is wrong, or nothing; so many runs of a deterministic call are to have the same bits."""
    rule = lt.rule(case.text)
    values = {**case.numbers, **case.sizes}
    if rule.has_heads:
        values["heads"] = case.heads[0]
    whole = rule.at(**values)
    queries, keys = (
        prod(whole.values[getattr(axis, kind)] for axis in whole.axes) for kind in ("queries", "keys")
    )
    source = torch.Generator(DEVICE).manual_seed(case.seed)
    shapes = [
        (case.heads[0], queries),
        (case.heads[1], keys),
        (case.heads[1], keys),
        (case.heads[0], queries),
    ]
    q, k, v, grad = (
        torch.randn(1, h, n, case.head_dim, generator=source, device=DEVICE).to(case.dtype) for h, n in shapes
    )
    grad_lse = torch.randn(1, case.heads[0], queries, generator=source, device=DEVICE)
    given: dict[str, Any] = {name: number for name, number in values.items() if name not in ("n", "heads")}

    def run(*tensors: Tensor, **how: Any) -> list[Tensor]:
        learned = [x.detach().requires_grad_() for x in tensors]
        attend: Any = lt.attention
        out, lse = attend(*learned, rule, return_lse=True, **given, **how)
        known = torch.where(lse.isinf(), 0.0, lse)
        end = (out * grad.to(out.dtype)).sum() + (grad_lse * known).sum()
        return [out.detach(), lse.detach(), *torch.autograd.grad(end, learned)]

    def minuends() -> list[Tensor]:
        """Of the gradients of q and k, what weights times dO·v alone would give.

        dO·out is taken from that: where a query has one key they are equal, and what is left is rounding.
        """
        learned = [x.double().requires_grad_() for x in (q, k)]
        attend: Any = lt.attention
        out, lse = attend(*learned, v.double(), rule, return_lse=True, kernel="dense", **given)
        known = torch.where(lse.isinf(), 0.0, lse)
        end = (out * (known - known.detach()).exp()[..., None] * grad).sum()
        return [*torch.autograd.grad(end, learned)]

    def checked() -> list[Tensor]:
        return run(q, k, v, deterministic=case.deterministic, **HOW)

    wanted, found = run(*(x.double() for x in (q, k, v)), kernel="dense"), checked()
    empty = wanted[1] == -torch.inf
    if not torch.equal(found[1] == -torch.inf, empty):
        return "the log-sum-exp of rows without keys"
    if bool(empty.any()) and bool((found[0][empty] != 0).any() or (found[2][empty] != 0).any()):
        return "rows without keys are not 0"
    gap = (found[1].double() - wanted[1])[~empty].abs().max() if bool((~empty).any()) else torch.zeros(())
    if not float(gap) <= WRONG_LSE:
        return f"the log-sum-exp is off by {float(gap):.1e}"
    for name, place in (("out", 0), ("dq", 2), ("dk", 3), ("dv", 4)):
        error = relative(found[place], wanted[place])
        if not error <= TOLERANCE[case.dtype]:
            larger = minuends()[place - 2] if name in ("dq", "dk") else wanted[place]
            error *= float(wanted[place].norm() / larger.norm().clamp(min=wanted[place].norm()))
            if not error <= TOLERANCE[case.dtype]:
                return f"{name} is off by {error:.1e}"
    for again in range(1, runs) if case.deterministic else ():
        if not all(torch.equal(a, b) for a, b in zip(found, checked(), strict=True)):
            return f"other bits on run {again + 1}"
    if case.heads[0] == case.heads[1] and case.heads[0] > 1 and not rule.has_heads:
        q[:, 0], v[:, 0, ::2], k[:, 0, 1::3] = torch.nan, torch.inf, torch.nan
        if not all(
            torch.equal(a[:, 1:], b[:, 1:])
            for a, b in zip(checked(), found, strict=True)
            if case.deterministic
        ):
            return "what is strange leaves its head"
    return ""


def emulate(seed: int) -> None:
    """Has this process take calls as an H200 would."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import emulated_gpu
    import triton_interpreter

    triton_interpreter.look_once()
    RAN.append(emulated_gpu.install(seed))
    HOW["kernel"] = "triton"
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RuntimeWarning)  # the interpreter's, of NaN


def check_group(group: list[Case], runs: int) -> tuple[list[tuple[Case, str]], Counter[str]]:
    """Each case with what is wrong, errors of ours among it; and the kernels that were emulated."""
    found: list[tuple[Case, str]] = []
    for case in group:
        try:
            found.append((case, check(case, runs)))
        except LattendError as error:
            found.append((case, f"refused: {error}"))
        except Exception as error:
            found.append((case, f"{type(error).__name__}: {str(error)[:200]}"))
    ran = sum(RAN, Counter[str]())
    for one in RAN:
        one.clear()
    return found, ran


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rules", type=int, default=1000, help="random rules, beside the catalogue's")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=2, help="whose bits are compared")
    parser.add_argument("--seconds", type=float, help="end then, with what was done")
    parser.add_argument("--after", type=int, default=0, metavar="N", help="go on after so many, done before")
    parser.add_argument("--emulated", action="store_true", help="as on an H200, on a CPU, and smaller")
    args = parser.parse_args()
    if args.emulated:
        amx.limit(os.environ)
        os.environ |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    elif not torch.cuda.is_available():
        parser.exit(1, "rules_on_gpu.py: it needs a GPU; without one there is --emulated\n")
    begin, counts, ran = time.monotonic(), Counter[str](), Counter[str]()
    groups = [*catalogue(), *drawn(args.rules, args.seed)]
    ends = accumulate(map(len, groups))
    groups = [group for group, end in zip(groups, ends, strict=True) if end > args.after]
    total, prepare = sum(map(len, groups)), dict[str, Any]()
    if args.emulated:
        groups = [[*map(smaller, group)] for group in groups]
        prepare = {"initializer": emulate, "initargs": (args.seed,)}
    with ProcessPoolExecutor(args.processes, get_context("spawn"), **prepare) as pool:
        begun = {pool.submit(check_group, group, args.runs): group for group in groups}
        try:
            for ended in as_completed(begun, args.seconds):
                found, emulated = ended.result()
                ran += emulated
                for case, said in found:
                    counts["refused" if said.startswith("refused") else "wrong" if said else "right"] += 1
                    if said:
                        print(f"{case.text} {case.numbers} {case.sizes} {case[3:]}: {said}", flush=True)
                done = sum(counts.values())
                if done * TOLD // total > (done - len(found)) * TOLD // total:
                    tell = f"{done} of {total}, {counts['wrong']} wrong, {time.monotonic() - begin:.0f} s"
                    print(tell, file=sys.stderr, flush=True)
        except TimeoutError:
            for future, group in begun.items():
                if future.running():
                    print(f"not ended: {group[0].text} {group[0][3:]}", flush=True)
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():  # a kernel that waits for ever holds its process
                process.kill()
    for name, times in sorted(ran.items()):
        print(f"{name}: {times} launches")
    device = "emulated" if args.emulated else torch.cuda.get_device_name()
    print(
        f"{device}: {sum(counts.values())} of {total} rules in "
        f"{time.monotonic() - begin:.0f} s: {counts['right']} right, {counts['wrong']} wrong, "
        f"{counts['refused']} refused"
    )
    return min(1, counts["wrong"])


if __name__ == "__main__":
    sys.exit(main())
