"""What a program and a step of each kernel cost on this GPU, for plans/tables/tile_costs.py.

    python benchmarks/calibrate_gpu.py --json costs.json

Every shape that the kernels may take is timed on rules that are in no benchmark table; a program, a step and
what a mask adds to it get the costs, none negative, whose sum comes nearest to the times. The library's
causal blocks are timed too. So a benchmark's rows can be predicted with nothing fitted on them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.kernels.triton.fixed_point import FixedPointSums
from lattend.attend.kernels.triton.launch import PlanExecutor
from lattend.attend.kernels.triton.shapes import apart, candidates, steps
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan
from lattend.plans.tables.tile_costs import ShapeCost, TileShape

HEADS = 16
PROCESSES = 14
KINDS = ("lines", "apart", "boxes")
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
SHARE = {"bfloat16": 1, "float32": 4}  # float32 runs on the plain units: shorter sequences will do
LIBRARY = ((0, 4096), (0, 8192), (0, 32768), (128, 32768), (512, 32768), (2048, 32768))  # window or 0, n


@dataclass(frozen=True)
class Job:
    """One kernel in one shape on one rule."""

    dtype: str
    head_dim: int
    kind: str  # of rule: lines, apart or boxes
    kernel: str
    shape: TileShape
    rule: str

    def timed(self) -> tuple[Callable[[], object], tuple[float, float, float]]:
        """What to run, and how many programs, steps, and steps with a mask it has."""
        rule, sizes = rules(self.dtype, self.kind)[self.rule]
        found = plan(rule, **sizes)
        transposed = self.kernel == "backward_dkdv"
        part = (found.transposed if transposed else found.parts)[0]
        table = found.tiles(0, self.shape.outer, transposed=transposed)
        masked, full = steps(table, part, self.shape)
        n = sizes.get("n") or sizes["rows"] * sizes["cols"]
        dtype = DTYPES[self.dtype]
        q, k, v, grad = (
            torch.randn(1, HEADS, n, self.head_dim, device="cuda", dtype=dtype) for _ in range(4)
        )
        lse, delta = (torch.zeros(1, HEADS, n, device="cuda") for _ in range(2))
        run = PlanExecutor(found, q.device, shapes=lambda kernel, place: self.shape)
        call = AttentionCall(rule, self.head_dim**-0.5)
        fixed = FixedPointSums((), torch.ones(1, device="cuda"), ())
        inputs = BackwardInputs(grad, None, q, k, v, q, lse)
        work: dict[str, Callable[[], object]] = {
            "forward": lambda: run.forward(Recorder(), call, q, k, v, {}),
            "backward_dq": lambda: run.backward_dq(Recorder(), call, inputs, delta, {}, fixed),
            "backward_dkdv": lambda: run.backward_dkdv(Recorder(), call, inputs, delta, {}),
        }
        return work[self.kernel], (HEADS * table.table.shape[1], HEADS * (masked + full), HEADS * masked)


def rules(dtype: str, kind: str) -> dict[str, tuple[lt.Rule, dict[str, int]]]:
    """Rules that no benchmark table has: keys side by side on a line, apart on a line, around a pixel."""
    n, side = 32_768 // SHARE[dtype], 160 // SHARE[dtype]
    if kind == "lines":
        bands = {f"band {t}": (lt.rules.strided(t=t), {"n": n}) for t in (63, 127, 511, 2047, 6143) if t < n}
        return bands | {"full": (lt.rule("q >= 0"), {"n": 8192 // SHARE[dtype]})}
    if kind == "apart":
        groups = {
            f"last {c} of {of}": (lt.rule(f"k <= q and k % {of} >= {of - c}"), {"n": n // 2})
            for of, c in ((64, 2), (64, 6), (256, 12))
        }
        far = {
            f"every {step} to {t}": (lt.rule(f"k <= q and q - k <= {t} and (q - k) % {step} == 0"), {"n": n})
            for step, t in ((16, 2047), (16, 8191), (64, 8191))
        }
        return groups | far
    around = [(r, s) for r in (1, 2, 4, 8) for s in (side, side // 2)]
    return {f"around {r}, {s}": (lt.rules.neighbourhood(r=r), {"rows": s, "cols": s}) for r, s in around}


def jobs(head_dims: list[int], dtypes: list[str], kinds: list[str]) -> Iterator[Job]:
    for dtype, head_dim, kind in itertools.product(dtypes, head_dims, kinds):
        for kernel in ("forward", "backward_dq", "backward_dkdv"):
            axes = 2 if kind == "boxes" else 1
            shapes = candidates(kernel, head_dim, axes, DTYPES[dtype], kind == "apart")
            for cost in shapes if axes == 1 else _square(shapes):
                for name, (rule, sizes) in rules(dtype, kind).items():
                    found = plan(rule, **sizes)
                    part = (found.transposed if kernel == "backward_dkdv" else found.parts)[0]
                    if apart(part) == (kind == "apart"):
                        yield Job(dtype, head_dim, kind, kernel, cost.shape, name)


def _square(shapes: tuple[ShapeCost, ...]) -> list[ShapeCost]:
    """Those whose boxes are about square: thin ones cost what these do."""
    return [
        one
        for one in shapes
        if one.shape.outer in ((8, 8), (4, 16)) and one.shape.inner in ((), (2, 16), (4, 8))
    ]


def milliseconds(work: Callable[[], object]) -> float:
    """The median of ten runs as a CUDA graph, so that Python does not count."""
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    times: list[float] = []
    for _ in range(12):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[2:])


def compiled(job: Job) -> str | None:
    try:
        job.timed()[0]()
        torch.cuda.synchronize()
    except Exception as error:
        return f"{job}: {error!r}"[:300]
    return None


def nearest(counts: Any, times: Any) -> tuple[Any, float]:
    """The costs, none negative, with the least squares of relative errors; and the largest of these."""
    best: tuple[float, Any] | None = None
    scaled = counts / times[:, None]
    for size in range(1, scaled.shape[1] + 1):
        for columns in itertools.combinations(range(scaled.shape[1]), size):
            found, *_ = np.linalg.lstsq(scaled[:, columns], np.ones(len(times)), rcond=None)
            error = float(np.linalg.norm(scaled[:, columns] @ found - 1))
            if (found >= 0).all() and (best is None or error < best[0] - 1e-9):
                costs = np.zeros(scaled.shape[1])
                costs[list(columns)] = found
                best = error, costs
    assert best is not None
    return best[1], float(np.abs(scaled @ best[1] - 1).max())


def library(head_dims: list[int]) -> list[dict[str, Any]]:
    """CuDNN on causal blocks: nanoseconds for a query and for a pair in tiles of 128."""
    found: list[dict[str, Any]] = []
    for head_dim, way in itertools.product(
        (size for size in head_dims if size <= 128), ("forward", "backward")
    ):
        counts: list[tuple[float, float]] = []
        times: list[float] = []
        for window, n in LIBRARY:
            side = window or n
            shape = (HEADS, n // side, side, head_dim) if window else (1, HEADS, n, head_dim)
            tiles = -(-side // 128)
            counts.append((HEADS * n, HEADS * n // side * tiles * (tiles + 1) // 2 * 128 * 128))
            times.append(milliseconds(cudnn(way, shape)) * 1e6)
        costs, error = nearest(np.array(counts, float), np.array(times))
        print(f"cuDNN {way} D = {head_dim}: {costs} within {error:.0%}", flush=True)
        found.append({"way": way, "head_dim": head_dim, "costs": list(costs), "error": error})
    return found


def cudnn(way: str, shape: tuple[int, ...]) -> Callable[[], object]:
    """A pass of causal attention by cuDNN."""
    aten, side = torch.ops.aten, shape[-2]
    q, k, v, grad = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    given = (q, k, v, None, True, 0.0, True, False)
    if way == "forward":
        return lambda: aten._scaled_dot_product_cudnn_attention(*given)
    out, lse, _, _, _, _, seed, offset, _ = aten._scaled_dot_product_cudnn_attention(*given)
    rest = (out, lse, seed, offset, None, None, None, side, side, 0.0, True)
    return lambda: aten._scaled_dot_product_cudnn_attention_backward(grad, q, k, v, *rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--head-dim", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--dtype", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--kind", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = {"device": torch.cuda.get_device_name()}
    found |= {"tiles": tiles(args), "library": library(args.head_dim)}
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


def tiles(args: argparse.Namespace) -> list[dict[str, Any]]:
    """The costs of every kernel in every shape."""
    groups: dict[tuple[Any, ...], list[Job]] = {}
    for job in jobs(args.head_dim, args.dtype, args.kind):
        groups.setdefault((job.dtype, job.head_dim, job.kind, job.kernel, job.shape), []).append(job)
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for done, error in enumerate(
            pool.imap_unordered(compiled, [group[0] for group in groups.values()]), 1
        ):
            if error or done % 10 == 0:
                print(f"compiled {done} of {len(groups)}" if error is None else error, flush=True)
    return [found for group in groups.values() if (found := measured(group)) is not None]


def measured(group: list[Job]) -> dict[str, Any] | None:
    """What a program and a step cost, from the times of one kernel in one shape; None where nothing ran."""
    points: list[tuple[tuple[float, ...], float]] = []
    for job in group:
        try:
            work, counts = job.timed()
            points.append((counts, milliseconds(work) * 1e6))
        except Exception as error:
            print(f"{job}: {error!r}"[:300], flush=True)
    if not points:
        return None
    costs, error = nearest(np.array([p[0] for p in points], float), np.array([p[1] for p in points]))
    program, full, masked = (float(f"{cost:.3g}") for cost in (costs[0], costs[1], costs[1] + costs[2]))
    one = group[0]
    about = f"{one.dtype} {one.head_dim} {one.kind} {one.kernel} {one.shape}"
    print(f"{about}: {program} {masked} {full} within {error:.0%}", flush=True)
    return {**asdict(one), "costs": [program, masked, full], "error": error, "points": points}


if __name__ == "__main__":
    main()
