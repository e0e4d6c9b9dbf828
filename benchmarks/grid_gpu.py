"""Recurrent nets on a grid on a GPU, beside what a user would write: bf16, batch 16.

    python benchmarks/grid_gpu.py                                # every size: minutes
    python benchmarks/grid_gpu.py --sizes 128x128 --json out.json

Peers: a loop over pixels (naive), anti-diagonals in eager torch, the same captured as a CUDA graph, and
torch.nn.RNN (cuDNN) along the flattened pixels, which has half the products and no neighbour above. All
start from an image [16, n, n, 3] and give every state. Before it is timed, each is compared with the
diagonals in float64. A time is the median of triton.testing.do_bench; backward is forward and backward
less forward.

Two floors: `roofline` is one read and one write of everything at 4.3 TB/s, or the multiply-adds at 798
TFLOP/s if those take longer; `chain` is 2n - 1 steps at the time of one in a single row block of 16 rows,
where no program waits for another.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor

from lattend.machines import MACHINES
from lattend.nn.grid.rnn import GridRNN

BATCH, CHANNELS, ROW_BLOCK = 16, 3, 16
RATE, BANDWIDTH = MACHINES["H200 measured"].rate, MACHINES["H200 measured"].bandwidth
SIZES = ("32x128", "64x128", "128x64", "128x128", "128x256", "128x512", "256x128")
OURS, GRAPHED, DIAGONALS, GRAPH, NAIVE, FLAT = (
    "lattend", "lattend, CUDA graph", "diagonals, eager", "diagonals, CUDA graph", "pixel by pixel", "nn.RNN",
)  # fmt: skip
WRONG = 5e-2  # relative error in bf16; torch rounds each sum, and gradients go through hundreds of them


@dataclass
class Row:
    """One size and one pass: floors and times in milliseconds, errors against float64."""

    n: int
    h: int
    cell: str
    work: str
    roofline: float
    chain_floor: float = 0.0
    times: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)


# Peers


def naive(x: Tensor, into: Tensor, left: Tensor, top: Tensor) -> Tensor:
    batch, rows, cols, _ = x.shape
    pre, zero = x @ into.T, x.new_zeros(batch, into.shape[0])
    above = [zero] * cols
    lines: list[Tensor] = []
    for row in range(rows):
        state, states = zero, list[Tensor]()
        for col in range(cols):
            state = torch.tanh(pre[:, row, col] + state @ left.T + above[col] @ top.T)
            states.append(state)
        above = states
        lines.append(torch.stack(states, 1))
    return torch.stack(lines, 1)


def diagonals(x: Tensor, into: Tensor, left: Tensor, top: Tensor) -> Tensor:
    """Row r of step s is pixel (r, s - r): a step is one product for all rows that have a pixel then."""
    batch, rows, cols, _ = x.shape
    size, steps = into.shape[0], rows + cols - 1
    pre = torch.nn.functional.pad(x @ into.T, (0, 0, 0, rows))  # rows of cols + rows pixels
    slanted = pre.flatten(1, 2)[:, : rows * steps].unflatten(1, (rows, steps)).unbind(2)  # moved by r each
    both = torch.cat((left, top), 1).T
    state = x.new_zeros(batch, rows + 1, size)  # one row above the image
    found: list[Tensor] = []
    for step in range(steps):
        low, high = max(0, step - cols + 1), min(rows, step + 1)
        near = torch.cat((state[:, low + 1 : high + 1], state[:, low:high]), 2)
        new = torch.tanh(slanted[step][:, low:high] + near @ both)
        state = torch.cat((state[:, : low + 1], new, state[:, high + 1 :]), 1)
        found.append(state[:, 1:])
    flat = torch.stack(found, 2).flatten(1, 2)  # [batch, rows * steps, size]
    return torch.nn.functional.pad(flat, (0, 0, 0, rows)).unflatten(1, (rows, steps + 1))[:, :, :cols]


def graphed(work: Callable[[], Any]) -> Callable[[], Any]:
    """The work captured once; replayed by each call."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


# Measuring


def time_of(work: Callable[[], Any], slow: bool = False) -> float:
    warm, rep = (1, 1) if slow else (20, 100)
    return float(triton.testing.do_bench(work, warmup=warm, rep=rep, return_mode="median"))


def relative(found: Tensor, exact: Tensor) -> float:
    return float((found.detach().double() - exact).norm() / exact.norm())


def floor(n: int, h: int, work: str) -> float:
    """Milliseconds: products of 2h by h and c by h a pixel; backward twice those, three times the bytes."""
    pixels = BATCH * n * n
    products = pixels * (2 * h * h + CHANNELS * h) * (1 if work == "forward" else 2)
    moved = pixels * (h + CHANNELS) * 2 * (1 if work == "forward" else 3)  # h and its gradient, x and its
    return max(2 * products / RATE, moved / BANDWIDTH) * 1e3


def train(run: Callable[..., Tensor], tensors: list[Tensor], slope: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(run(*tensors), tensors, slope))


def measure(n: int, h: int, slow_peers: bool) -> list[Row]:
    """Forward and backward at one size, ours and the peers'."""
    device, dtype = "cuda", torch.bfloat16
    torch.manual_seed(n + h)
    model = GridRNN(CHANNELS, h, device=device, dtype=dtype)
    weights = [p.detach().clone().requires_grad_() for p in (model.W_in[0], model.W_left[0], model.W_top[0])]
    x = torch.randn(BATCH, n, n, CHANNELS, device=device, dtype=dtype, requires_grad=True)
    slope = torch.randn(BATCH, n, n, h, device=device, dtype=dtype)
    tensors = [x, *weights]
    exact = [t.detach().double().requires_grad_() for t in tensors]
    out = diagonals(*exact)
    wanted = [out.detach(), *torch.autograd.grad(out, exact, slope.double())]
    del out

    def ours(*_: Tensor) -> Tensor:
        return model(x)

    mine = [x, *model.parameters()]
    rows = [Row(n, h, "rnn", work, floor(n, h, work)) for work in ("forward", "backward")]
    peers: list[tuple[str, Callable[..., Tensor], list[Tensor]]] = [
        (OURS, ours, mine),
        (DIAGONALS, diagonals, tensors),
    ]
    for name, run, given in peers:
        out = run(*given)
        found = [out.detach(), *torch.autograd.grad(out, given, slope)]
        errors = [relative(a, b) for a, b in zip(found, wanted, strict=True)]
        del out, found
        rows[0].errors[name], rows[1].errors[name] = errors[0], max(errors[1:])
        if max(errors) > WRONG:
            raise SystemExit(f"{name} at n = {n}, h = {h} is off by {max(errors):.1e}")
        with torch.no_grad():
            rows[0].times[name] = time_of(partial(run, *given))
        rows[1].times[name] = time_of(partial(train, run, given, slope)) - rows[0].times[name]
        label = GRAPHED if name == OURS else GRAPH
        with torch.no_grad():
            rows[0].times[label] = time_of(graphed(partial(run, *given)))
        whole = time_of(graphed(partial(train, run, given, slope)))
        rows[1].times[label] = whole - rows[0].times[label]
    if slow_peers:
        with torch.no_grad():
            rows[0].times[NAIVE] = time_of(partial(naive, *tensors), slow=True)
            flat = torch.nn.RNN(CHANNELS, h, bias=False, batch_first=True, device=device, dtype=dtype)
            rows[0].times[FLAT] = time_of(partial(flat, x.detach().flatten(1, 2)), slow=True)
    add_chain_floors(rows, model)
    return rows


def add_chain_floors(rows: list[Row], model: GridRNN) -> None:
    """Notes 2n - 1 times a step of a single row block, forward and backward."""
    kind: dict[str, Any] = {"device": "cuda", "dtype": torch.bfloat16}
    x = torch.randn(BATCH, ROW_BLOCK, 8 * ROW_BLOCK, CHANNELS, **kind)
    slope = torch.randn(BATCH, ROW_BLOCK, 8 * ROW_BLOCK, rows[0].h, **kind)
    with torch.no_grad():
        alone = time_of(graphed(lambda: model(x)))
    both = time_of(graphed(lambda: torch.autograd.grad(model(x), list(model.parameters()), slope)))
    for row, time in zip(rows, (alone, both - alone), strict=True):
        row.chain_floor = time / (9 * ROW_BLOCK - 1) * (2 * row.n - 1)


def measure_cell(cell: str, n: int, h: int) -> list[Row]:
    """Another cell, ours beside its anti-diagonals in eager torch."""
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    torch.manual_seed(n + h)
    model = GridRNN(CHANNELS, h, cell=cell, **kind)
    eager = GridRNN(CHANNELS, h, cell=cell, kernel="diagonals", **kind)
    eager.load_state_dict(model.state_dict())
    exact = GridRNN(CHANNELS, h, cell=cell, kernel="diagonals", **kind).double()
    exact.load_state_dict(model.state_dict())
    x, slope = torch.randn(BATCH, n, n, CHANNELS, **kind), torch.randn(BATCH, n, n, h, **kind)
    gates = {"lstm": 5, "gru": 4}[cell]
    rows = [Row(n, h, cell, work, gates * floor(n, h, work)) for work in ("forward", "backward")]
    out = exact(x.double())
    wanted = [out.detach(), *torch.autograd.grad(out, list(exact.parameters()), slope.double())]
    del out
    for name, run in ((OURS, model), (DIAGONALS, eager)):
        out = run(x)
        found = [out.detach(), *torch.autograd.grad(out, list(run.parameters()), slope)]
        errors = [relative(a, b) for a, b in zip(found, wanted, strict=True)]
        del out, found
        rows[0].errors[name], rows[1].errors[name] = errors[0], max(errors[1:])
        if max(errors) > WRONG:
            raise SystemExit(f"{name}, {cell} at n = {n}, h = {h} is off by {max(errors):.1e}")
        work = partial(lambda run: torch.autograd.grad(run(x), list(run.parameters()), slope), run)
        with torch.no_grad():
            rows[0].times[name] = time_of(partial(run, x))
        rows[1].times[name] = time_of(work) - rows[0].times[name]
        if name == OURS:
            with torch.no_grad():
                rows[0].times[GRAPHED] = time_of(graphed(partial(run, x)))
            rows[1].times[GRAPHED] = time_of(graphed(work)) - rows[0].times[GRAPHED]
    add_chain_floors(rows, model)
    return rows


def say(row: Row) -> None:
    times = ", ".join(f"{name} {time:.3f}" for name, time in row.times.items())
    errors = ", ".join(f"{name} {error:.0e}" for name, error in row.errors.items())
    floors = f"floors: roofline {row.roofline:.3f}, chain {row.chain_floor:.3f}"
    size = f"{row.cell:4} {row.n:4} x {row.n:<4} h {row.h:<4} {row.work:8}"
    print(f"{size} {times} ms; {floors}; errors {errors}", flush=True)


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), metavar="NxH")
    parser.add_argument(
        "--cells", nargs="*", default=["lstm", "gru"], help="other cells, at 128 x 128, h 128"
    )
    parser.add_argument("--json", type=Path, help="write the rows there")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA GPU here; benchmarks/grid_cpu.py runs anywhere")
        return
    versions = f"torch {torch.__version__}, triton {triton.__version__}"
    print(f"{torch.cuda.get_device_name()}, {versions}, bf16, batch {BATCH}")
    found: list[Row] = []
    work = [
        partial(measure, *map(int, size.split("x")), slow_peers=size == "128x128") for size in arguments.sizes
    ]
    work += [partial(measure_cell, cell, 128, 128) for cell in arguments.cells]
    for rows in (each() for each in work):
        found += rows
        for row in rows:
            say(row)
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(row) for row in found], indent=1))


if __name__ == "__main__":
    main()
