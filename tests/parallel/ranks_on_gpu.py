"""Attention over ranks that share one GPU: outputs and gradients beside float64, bytes, bits, streams.

    python tests/parallel/ranks_on_gpu.py                     # `make gpu-ranks`: minutes
    python tests/parallel/ranks_on_gpu.py --quick
    python tests/parallel/ranks_on_gpu.py --quick --device cpu --ranks 2
    TRITON_INTERPRET=1 python tests/parallel/ranks_on_gpu.py --device cpu --kernel triton --only halo
    python tests/parallel/ranks_on_gpu.py --only causal ring float32

Two ranks and four are processes on one GPU, and gloo carries their messages by way of the host, since NCCL
refuses two ranks on one device; a world of NCCL with one rank comes last. What is checked of attention: the
errors of the output, the log-sum-exp and all gradients beside one process in float64 on the same GPU, by the
table of tolerances; the bytes that came to each rank, by enumeration and by lt.parallel.plan; equal bits over
five runs. Then decoding with keys over ranks, nets on a grid, tensors that are still being made on another
stream, and messages that are late. A line a case; the last says how many passed.
"""

# ruff: noqa: E402  (what torch and gloo read from the environment is set first)

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from lattend import amx

amx.limit(os.environ)  # before torch is loaded
for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
    os.environ.setdefault(name, "lo")  # a machine without a network may not know its own name

import parallel_grids
import torch
from gloo_ranks import Crew, Failed
from parallel_cases import Case
from parallel_devices import Found, compared, late_messages, late_tensors, on_a_mesh
from parallel_repeated import decoded

import lattend as lt
from lattend.attend.kernels.tolerance import TOLERANCE

RUNS = 5  # whose bits are compared
SECONDS = 600  # that ranks wait for one that compiles
GRID = 2  # times the tolerance, for nets on a grid, as in their own tests
BF16, FLOAT32 = torch.bfloat16, torch.float32
FEW = {
    ("sliding window", "halo"),
    ("sliding window", "ulysses"),
    ("causal", "ring"),
    ("neighbourhood", "halo"),
}
PLANNED = {"halo": "halo", "ring": "halo, staged"}  # by the names of a plan


class Check(NamedTuple):
    """A line: its name, the ranks it needs, and what gives the errors that are wrong and the largest."""

    name: str
    ranks: int
    run: Callable[[Crew], tuple[list[str], float]]
    quick: bool = False
    nccl: bool = False


# Attention


def cases(
    ranks: int, dtype: torch.dtype, device: str, kernel: str | None = None
) -> Iterator[tuple[str, Case, bool]]:
    """Name, call, and whether it is one of the few: rules, strategies, then options."""
    n, width = (1601, 64) if device == "cuda" else (101, 8)
    heads, kv_heads = 8, 4
    plain = Case(
        "", ranks, n, heads, kv_heads, batch=2, width=width, value_width=width, dtype=dtype, device=device,
        kernel=kernel,
    )  # fmt: skip
    t, w, cols = n // 6, n // 8, n // 16
    image = {"shape": (16, cols), "n": 16 * cols}
    ids = torch.repeat_interleave(torch.arange(4), torch.tensor([n // 4, 3, n // 2, n - n // 4 - 3 - n // 2]))
    rules: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
        "sliding window": (f"strided({t})", {}, ("halo", "ring", "gather", "ulysses")),
        "causal": ("causal", {}, ("ring", "halo", "gather", "ulysses")),
        "full": ("full", {}, ("gather", "ring", "ulysses")),
        "blocks": (f"windowed({w})", {}, ("halo", "ulysses")),
        "sparse strided": (f"sparse_strided({w})", {}, ("halo", "ring")),
        "sparse fixed": (f"sparse_fixed({w}, 3)", {}, ("halo", "ulysses")),
        "neighbourhood": ("neighbourhood(3)", image, ("halo", "ulysses")),
        "documents": ("k <= q and doc[q] == doc[k]", {"values": {"doc": ids}}, ("halo", "ulysses")),
        "per head": (f"k <= q and q - k <= {t // 8}*head + 1 and head < heads", {}, ("halo", "ulysses")),
    }
    for name, (rule, how, strategies) in rules.items():
        for strategy in strategies:
            case = replace(plain, rule=rule, strategy=strategy, **how)
            yield f"{name}, {strategy}", case, (name, strategy) in FEW
    window = replace(plain, rule=f"strided({t})")
    yield "sliding window, zigzag", replace(window, strategy="halo", cut="zigzag"), False
    yield "causal, zigzag", replace(plain, rule="causal", strategy="ring", cut="zigzag"), False
    for name, how in options(n, heads).items():
        for strategy in ("halo", "ulysses") if name != "table" else ("halo",):
            yield f"{name}, {strategy}", replace(window, strategy=strategy, **how), name == "all"


def options(n: int, heads: int) -> dict[str, dict[str, Any]]:
    """What a call may have besides a rule."""
    source = torch.Generator().manual_seed(0)
    slopes, sinks = (torch.randn(heads, generator=source) for _ in range(2))
    mask = torch.rand(2, n, generator=source) < 0.8
    alibi = ("-slope[head]*(q - k)", {"slope": slopes.abs() / n})
    relative = ("r[head, min(max(k - q + 9, 0), 9)]", {"r": torch.randn(heads, 10, generator=source)})
    return {
        "ALiBi": {"bias": alibi},
        "relative bias": {"bias": relative},
        "table": {"bias": torch.randn(heads, n, n, generator=source)},
        "sinks": {"sinks": sinks},
        "softcap": {"options": {"softcap": 2.0}},
        "dropout": {"options": {"dropout": 0.3}},
        "lengths": {"padding": torch.tensor([n // 3, n])},
        "mask": {"padding": mask},
        "all": {
            "bias": alibi,
            "sinks": sinks,
            "padding": mask,
            "options": {"softcap": 3.0, "dropout": 0.2},
        },
    }


def joined(found: list[Found]) -> tuple[list[str], float]:
    """What is wrong on any rank, and the largest error."""
    wrong = [f"rank {rank}: {said}" for rank, one in enumerate(found) for said in one.wrong]
    return wrong, max(one.worst for one in found)


def attended(case: Case, crew: Crew) -> tuple[list[str], float]:
    """A call of attention, and its bytes beside those of a plan."""
    found: list[Found] = crew.run(case.ranks, compared, case, RUNS)
    wrong, worst = joined(found)
    most = tuple(max(one.bytes[i] for one in found) for i in range(2))
    planned = planned_bytes(case)
    if planned is not None and most != planned:
        wrong.append(f"bytes {most} to the busiest rank, planned {planned}")
    return wrong, worst


def planned_bytes(case: Case) -> tuple[int, int] | None:
    """The bytes to the busiest rank by lt.parallel.plan, where it speaks of such calls."""
    if case.strategy not in PLANNED or case.cut or case.values or case.padding is not None:
        return None
    sizes: Any = dict(zip(("rows", "cols"), case.shape, strict=True)) if case.shape else {"n": case.n}
    plan = lt.parallel.plan(
        case.rule, ranks=case.ranks, heads=case.heads, kv_heads=case.kv_heads, head_dim=case.width,
        value_dim=case.value_width, batch=case.batch, dtype=str(case.dtype).removeprefix("torch."),
        cut="contiguous", **sizes,
    )  # fmt: skip
    (one,) = (one for one in plan.strategies if one.name == PLANNED[case.strategy])
    return one.forward, one.backward


# The rest


def cached(ranks: int, rule: str, kind: dict[str, Any], crew: Crew) -> tuple[list[str], float]:
    """Decoding after a prompt, keys over ranks; a step moves outputs and log-sum-exps in float32."""
    heads, width = 8, 64 if kind["device"] == "cuda" else 8
    found = crew.run(ranks, partial(decoded, widths=(width, width), **kind), rule, heads)
    worst = max(error for error, _, _ in found)
    limit, bytes = TOLERANCE[kind["dtype"]], (ranks - 1) * 2 * heads * (width + 1) * 4
    wrong = [] if worst <= limit else [f"off by {worst:.1e}, allowed {limit:.1e}"]
    return wrong + [f"{moved} bytes a step, counted {bytes}" for *_, moved in found if moved != bytes], worst


def on_a_grid(ranks: int, cell: str, kind: dict[str, Any], crew: Crew) -> tuple[list[str], float]:
    """A recurrent net on strips of an image's rows: states and gradients, bytes of the rows that travel."""
    rows, h = (5, 7, 4, 6)[:ranks], 32 if kind["device"] == "cuda" else 5
    directions = 4 if cell == "lstm" else 1
    case = parallel_grids.Case(rows, cell, directions, layers=2, columns=8, h=h, **kind)
    found = crew.run(ranks, parallel_grids.over_ranks, case)
    worst = max(max(errors) for errors, _ in found)
    limit = GRID * TOLERANCE[kind["dtype"]]
    wrong = [] if worst <= limit else [f"off by {worst:.1e}, allowed {limit:.1e}"]
    return wrong + [f"bytes off by {beyond}" for _, beyond in found if any(beyond)], worst


def checks(device: str, ranks: list[int], every: bool, kernel: str | None = None) -> Iterator[Check]:
    """All lines: of bfloat16 on the most ranks and float32 on the fewest, or `every` pair of these."""
    kinds = [(r, dtype) for r in reversed(ranks) for dtype in (BF16, FLOAT32)]
    if not every and len(ranks) > 1:
        kinds = [(max(ranks), BF16), (min(ranks), FLOAT32)]
    for size, dtype in kinds:
        at = f"{size} ranks, {str(dtype).removeprefix('torch.')}"
        kind = {"dtype": dtype, "device": device}
        window = None
        for name, case, few in cases(size, dtype, device, kernel):
            window = window or case
            yield Check(f"{name}, {at}", size, partial(attended, case), few)
        assert window is not None
        for rule in ("k <= q", "strided(3)", "k <= q and q - k <= 4*head"):
            run = partial(cached, size, rule, kind)
            yield Check(f"KV cache, {rule}, {at}", size, run, rule == "strided(3)")
        for cell in ("lstm", "rnn", "gru"):
            yield Check(f"grid, {cell}, {at}", size, partial(on_a_grid, size, cell, kind), cell == "lstm")
        for strategy in ("halo", "ring"):
            case = replace(window, strategy=strategy)
            for late, function, args in (
                ("q, k, v on a side stream", late_tensors, (False,)),
                ("q, k, v of a side stream", late_tensors, (True,)),
                ("late messages", late_messages, ()),
            ):
                run = partial(over_all, function, case, args)
                yield Check(f"{late}, {strategy}, {at}", size, run, strategy == "halo")
        if device == "cuda":
            run = partial(over_all, on_a_mesh, replace(window, ranks=1), ())
            yield Check(f"NCCL, a mesh of one, {at}", 1, run, True, nccl=True)


def over_all(function: Any, case: Case, args: tuple[Any, ...], crew: Crew) -> tuple[list[str], float]:
    """What a function finds on all ranks of a case."""
    return joined(crew.run(case.ranks, function, case, *args))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--kernel", help="that attention is to take; it chooses otherwise")
    parser.add_argument("--ranks", type=int, nargs="+", choices=(2, 3, 4), default=[2, 4])
    parser.add_argument("--quick", action="store_true", help="a few cases")
    parser.add_argument("--every", action="store_true", help="both dtypes on every number of ranks")
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[], help="lines that have all of these")
    parser.add_argument("--seconds", type=float, default=inf, help="begin no case after so many")
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.exit(1, "ranks_on_gpu.py: it needs a GPU, or --device cpu\n")
    chosen = [
        one
        for one in checks(asked.device, asked.ranks, asked.every, asked.kernel)
        if (one.quick or not asked.quick) and all(word in one.name for word in asked.only)
    ]
    return 1 if failures(chosen, time.monotonic() + asked.seconds) else 0


def failures(chosen: list[Check], end: float) -> int:
    """Runs the checks, a line each as it goes, and counts those that fail; a line at the end has the sums."""
    passed = failed = 0
    with ExitStack() as stack:
        crews: dict[bool, Crew] = {}
        for one in chosen:
            if time.monotonic() > end:
                break
            if one.nccl not in crews:
                size = max(other.ranks for other in chosen if other.nccl == one.nccl)
                backend = "nccl" if one.nccl else "gloo"
                crews[one.nccl] = stack.enter_context(Crew(size, timeout=SECONDS, backend=backend))
            began = time.monotonic()
            wrong, worst = outcome(one, crews[one.nccl])
            passed, failed = passed + (not wrong), failed + bool(wrong)
            said = f"FAILED: {'; '.join(wrong)}" if wrong else f"largest error {worst:.1e}"
            print(f"{one.name}: {said} ({time.monotonic() - began:.1f} s)", flush=True)
    left = len(chosen) - passed - failed
    print(f"{passed} passed, {failed} failed" + (f", {left} not run" if left else ""), flush=True)
    return failed


def outcome(check: Check, crew: Crew) -> tuple[list[str], float]:
    """What is wrong and the largest error; an error of a rank is among what is wrong."""
    try:
        return check.run(crew)
    except Failed as error:
        return [f"rank {rank}: {kind}: {text[:300]}" for rank, (kind, text) in error.errors.items()], inf


if __name__ == "__main__":
    sys.exit(main())
