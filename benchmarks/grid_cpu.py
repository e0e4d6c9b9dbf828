"""GridRNN on a CPU beside its peers: float32, n x n images of 3 channels, forward and training step.

    python benchmarks/grid_cpu.py                                  # some 4 minutes on one thread
    python benchmarks/grid_cpu.py --threads 2 --cells lstm --sizes 32,64,16

With one thread the processor's own time is taken, which other programs do not lengthen; with more, wall time.
Contenders take turns of a few calls in a row, as a training loop makes them, and the best call counts.

Peers: the cells one by one (reference); eager diagonals, as one writes them by hand for this cell: pixels
sorted by diagonal, the states of live cells only, left and top in one product; the skewed image of PixelRNN,
all rows at every step; and torch.nn.RNN, LSTM or GRU over the pixels as one line of n², which is another
function with about half the products: a reference line. The floor is the matrix products alone, as large
torch.mm calls of the same multiply count, timed in the same run: c + 2h by gates*h a pixel forward, three
times that in a training step.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

import lattend as lt
from lattend.nn.grid.cells import Neighbours, state

Contender = tuple[Callable[[Tensor], Tensor], list[Any]]
C = 3
SIZES = ["16,16,4", "32,64,1", "28,32,32", "32,64,16", "64,128,8"]  # n, h, batch
IN_A_ROW = 4
SLOW = 64 * 1024  # pixels times batch from which on the reference is left out
OURS, DIAGONALS, SKEWED, REFERENCE, LINE, FLOOR = (
    "lattend", "eager diagonals", "eager skewed", "cell by cell", "torch.nn, a line", "floor",
)  # fmt: skip


# Peers: functions of x [batch, n, n, C] and the weights of a GridRNN with one direction and no bias


def diagonals(net: Any, x: Tensor) -> Tensor:
    """The states diagonal by diagonal: only cells that are there, one product a step."""
    batch, rows, cols, _ = x.shape
    first = [max(0, s - cols + 1) for s in range(rows + cols - 1)]
    stop = [min(s, rows - 1) + 1 for s in range(rows + cols - 1)]
    place = torch.arange(rows)[:, None] + torch.arange(cols)
    cells = (place * rows + torch.arange(rows)[:, None]).flatten().argsort()
    counts = [b - a for a, b in zip(first, stop, strict=True)]
    slabs = (x @ net.W_in[0].T).flatten(1, 2).index_select(1, cells).split(counts, 1)
    weights = torch.cat((net.W_left[0], net.W_top[0]), 1).T
    zero = x.new_zeros(batch, 1, net.h)
    states: list[tuple[Tensor, Tensor | None]] = []
    for step, slab in enumerate(slabs):
        if step == 0:
            near = Neighbours(zero, zero, zero, zero)
        else:
            skip, last = first[step] - first[step - 1], stop[step] - 1 - first[step - 1]
            near = Neighbours(
                *(side for s in states[-1] if s is not None for side in _sides(s, skip, last, zero))
            )
        past = torch.cat((near.h_left, near.h_top), -1) @ weights
        states.append(state(net.cell, slab, past, near))
    order = torch.empty_like(cells)
    order[cells] = torch.arange(len(cells))
    return torch.cat([h for h, _ in states], 1).index_select(1, order).unflatten(1, (rows, cols))


def _sides(states: Tensor, skip: int, last: int, zero: Tensor) -> tuple[Tensor, Tensor]:
    """Left and top states of a diagonal from the one before, [batch, cells, h], with zeros at the edges."""
    left = states[:, skip:] if last < states.shape[1] else torch.cat((states[:, skip:], zero), 1)
    top = states[:, :last] if skip else torch.cat((zero, states[:, :last]), 1)
    return left, top


def skewed(net: Any, x: Tensor) -> Tensor:
    """Every row one column further right, then a line of columns; zeros where a skewed row has no pixel."""
    batch, rows, cols, _ = x.shape
    steps, width = rows + cols - 1, net.cell.gates * net.h
    sums = (
        pad(x @ net.W_in[0].T, (0, 0, 0, rows))
        .flatten(1, 2)[:, : rows * steps]
        .view(batch, rows, steps, width)
    )
    place = torch.arange(steps)[:, None] - torch.arange(rows)
    there = ((place >= 0) & (place < cols)).to(x.dtype)[..., None]
    weights = torch.cat((net.W_left[0], net.W_top[0]), 1).T
    kinds = 2 if net.cell.name == "lstm" else 1
    last = [x.new_zeros(batch, rows, net.h)] * kinds
    found: list[Tensor] = []
    for step, slab in enumerate(sums.unbind(2)):
        near = Neighbours(*(side for s in last for side in (s, pad(s[:, :-1], (0, 0, 1, 0)))))
        new = state(net.cell, slab, torch.cat((near.h_left, near.h_top), -1) @ weights, near)
        last = [s * there[step] for s in new if s is not None]
        found.append(last[0])
    flat = pad(torch.stack(found, 2).flatten(1, 2), (0, 0, 0, rows))
    return flat.view(batch, rows, steps + 1, net.h)[:, :, :cols]


def contenders(
    cell: str, n: int, h: int, batch: int
) -> dict[str, tuple[Callable[[Tensor], Tensor], list[Any]]]:
    """Each one's function of x, and the parameters it learns."""
    net = lt.nn.GridRNN(C, h, cell)
    plain = lt.nn.GridRNN(C, h, cell, kernel="reference")
    plain.load_state_dict(net.state_dict())
    line = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](
        C, h, bias=False, batch_first=True
    )
    found: dict[str, Contender] = {
        OURS: (net, list(net.parameters())),
        DIAGONALS: (lambda x: diagonals(net, x), list(net.parameters())),
        SKEWED: (lambda x: skewed(net, x), list(net.parameters())),
        LINE: (lambda x: line(x.flatten(1, 2))[0].view(batch, n, n, h), list(line.parameters())),
    }
    if n * n * batch < SLOW and n <= 16:
        found[REFERENCE] = (plain, list(plain.parameters()))
    return found


# Timing


def best(works: dict[str, Callable[[], Any]], clock: Callable[[], float], seconds: float) -> dict[str, float]:
    """The shortest time of each, in ms; they take turns until the time is used up."""
    for work in works.values():
        work()
    found = dict.fromkeys(works, float("inf"))
    end = time.perf_counter() + seconds * len(works)
    while time.perf_counter() < end:
        for name, work in works.items():
            for _ in range(IN_A_ROW):
                start = clock()
                work()
                found[name] = min(found[name], (clock() - start) * 1e3)
    return found


def products(cell: str, n: int, h: int, batch: int, training: bool) -> Callable[[], None]:
    """The matrix products alone, as few large ones."""
    height = {"rnn": 1, "lstm": 5, "gru": 4}[cell] * h
    pixels = torch.randn(batch * n * n, C + 2 * h)
    weights, sums = torch.randn(C + 2 * h, height), torch.empty(batch * n * n, height)
    back, grads = torch.empty_like(pixels), torch.empty_like(weights)

    def work() -> None:
        torch.mm(pixels, weights, out=sums)
        if training:
            torch.mm(sums, weights.T, out=back)
            torch.mm(pixels.T, sums, out=grads)

    return work


def measure(cell: str, n: int, h: int, batch: int, seconds: float) -> list[dict[str, Any]]:
    """One row for forward and one for the training step, with the time of every contender."""
    x, grad = torch.randn(batch, n, n, C), torch.randn(batch, n, n, h)
    given = contenders(cell, n, h, batch)
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter

    def forward(run: Callable[[Tensor], Tensor]) -> Callable[[], None]:
        def work() -> None:
            with torch.no_grad():
                run(x)

        return work

    def training(run: Callable[[Tensor], Tensor], parameters: list[Any]) -> Callable[[], None]:
        def work() -> None:
            torch.autograd.grad(run(x), parameters, grad)

        return work

    works = {
        "forward": {name: forward(run) for name, (run, _) in given.items()},
        "training step": {name: training(run, own) for name, (run, own) in given.items()},
    }
    rows: list[dict[str, Any]] = []
    for kind, each in works.items():
        each[FLOOR] = products(cell, n, h, batch, kind != "forward")
        sizes = {"cell": cell, "n": n, "h": h, "batch": batch, "threads": torch.get_num_threads()}
        rows.append({**sizes, "work": kind, "ms": best(each, clock, seconds)})
    return rows


def show(row: dict[str, Any]) -> str:
    """One line: our time, how many times longer each peer takes, and what share of ours the floor is."""
    times = row["ms"]
    name = f"{row['cell']:4} n={row['n']:<3} h={row['h']:<4} batch={row['batch']:<3} {row['work']:13}"
    peers = (DIAGONALS, SKEWED, REFERENCE, LINE)
    ratios = [f"{times[p] / times[OURS]:>16.2f}x" if p in times else f"{'':>17}" for p in peers]
    return f"{name} {times[OURS]:9.2f} ms" + "".join(ratios) + f"{times[FLOOR] / times[OURS]:9.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cells", nargs="+", default=["rnn", "lstm", "gru"])
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="n,h,batch")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each contender of a row")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    heads = "".join(f"{p:>17}" for p in (DIAGONALS, SKEWED, REFERENCE, LINE))
    print(f"{'':45} {OURS:>12}{heads}{FLOOR:>9}   ({options.threads} threads)")
    for cell in options.cells:
        for size in options.sizes:
            n, h, batch = map(int, size.split(","))
            for row in measure(cell, n, h, batch, options.seconds):
                rows.append(row)
                print(show(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
