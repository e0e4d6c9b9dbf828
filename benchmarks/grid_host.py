"""Host time of one small call of GridRNN, in microseconds, beside torch.nn's cell on the same pixels.

    python benchmarks/grid_host.py                       # on a GPU where there is one: a few seconds
    python benchmarks/grid_host.py --cells rnn --profile # and where the time goes, by cProfile

n = 8, h = 32, batch 2: forward without gradients, forward with, and backward. `host` is the median time until
a call comes back, calls following each other without a wait; `wall` waits for the device after each call;
`device` is the kernels' own time, between events. The peer is torch.nn.RNN, LSTM or
GRU (cuDNN) along the n² pixels as one line, another function of about half the products.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from statistics import median
from typing import Any, cast

import torch
from torch import Tensor, nn

import lattend as lt
from lattend.nn.grid import scan

N, H, BATCH, CHANNELS = 8, 32, 2, 3
CALLS = 200  # in a row: fewer launches than the driver queues
WARM = 20  # calls before those that count
QUEUED = 4_000_000  # cycles of the device in which the host prepares a call
LINES = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
Work = Callable[[], Any]


class Contender:
    """A module on one image, its output without and with gradients, and those gradients."""

    def __init__(self, name: str, module: nn.Module, x: Tensor) -> None:
        self.name, self.module, self.x = name, module, x
        self.parameters = list(module.parameters())
        self.grad = torch.randn_like(self.output())

    def output(self) -> Tensor:
        found = self.module(self.x)
        return found[0] if isinstance(found, tuple) else found

    def inference(self) -> Tensor:
        with torch.no_grad():
            return self.output()

    def gradients(self, out: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(out, self.parameters, self.grad)


def contenders(cell: str, device: str, dtype: torch.dtype) -> list[Contender]:
    """Ours, and torch's cell on the same pixels one after the other."""
    x = torch.randn(BATCH, N, N, CHANNELS, device=device, dtype=dtype)
    net = lt.nn.GridRNN(CHANNELS, H, cell, device=device, dtype=dtype)
    line = LINES[cell](CHANNELS, H, bias=False, batch_first=True, device=device, dtype=dtype)
    peer = f"torch.nn.{type(line).__name__}"
    return [Contender("lattend", net, x), Contender(peer, line, x.flatten(1, 2).contiguous())]


# Measuring


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def microseconds(work: Callable[..., Any], waits: bool, prepare: Callable[[], tuple[Any, ...]]) -> float:
    """The median time of a call of `work` on what `prepare` gives, which is not counted."""
    times: list[float] = []
    for turn in range(WARM + CALLS):
        given = prepare()
        if waits or turn == WARM:
            wait()
        start = time.perf_counter()
        work(*given)
        if waits:
            wait()
        times.append((time.perf_counter() - start) * 1e6)
    wait()
    return median(times[WARM:])


def on_device(work: Work) -> float:
    """Microseconds of the work on the device, between events behind a queue that the host fills meanwhile."""
    times: list[float] = []
    for _ in range(WARM):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        wait()
        torch.cuda._sleep(QUEUED)  # pyright: ignore
        begin.record()
        work()
        end.record()
        wait()
        times.append(begin.elapsed_time(end) * 1e3)
    return median(times)


def measure(contender: Contender) -> list[tuple[str, float, float, float | None]]:
    """For each work its name, and the microseconds of host, wall and device."""
    nothing: Callable[[], tuple[Any, ...]] = tuple
    works: list[tuple[str, Callable[..., Any], Callable[[], tuple[Any, ...]]]] = [
        ("forward, no gradients", contender.inference, nothing),
        ("forward, gradients", contender.output, nothing),
        ("backward", contender.gradients, lambda: (contender.output(),)),
    ]
    devices: tuple[float | None, ...] = (None, None, None)
    if contender.x.is_cuda and isinstance(contender.module, lt.nn.GridRNN):
        alone = on_device(contender.inference)
        devices = alone, alone, on_device(lambda: contender.gradients(contender.output())) - alone
    return [
        (name, microseconds(work, False, prepare), microseconds(work, True, prepare), device)
        for (name, work, prepare), device in zip(works, devices, strict=True)
    ]


# Where the time goes


def profiled(contender: Contender) -> None:
    """Prints cProfile of forward, and of backward, which is switched on in the thread that runs it."""
    for work in (contender.inference, contender.output):
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(CALLS):
            work()
        profile.disable()
        wait()
        show(profile, work.__name__)
    profile, function = cProfile.Profile(), cast("Any", scan._Scan)
    plain = function.backward

    def watched(*given: Any) -> Any:
        profile.enable()
        try:
            return plain(*given)
        finally:
            profile.disable()

    function.backward = staticmethod(watched)
    try:
        for _ in range(CALLS):
            contender.gradients(contender.output())
    finally:
        function.backward = staticmethod(plain)
    wait()
    show(profile, "backward")


def show(profile: cProfile.Profile, name: str) -> None:
    found = pstats.Stats(profile)
    total = sum(entry[2] for entry in found.stats.values())  # pyright: ignore[reportAttributeAccessIssue]
    print(f"\n{name}: {total / CALLS * 1e6:.0f} µs a call under the profiler")
    found.sort_stats("tottime").print_stats(25)


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--cells", nargs="+", default=list(LINES), choices=list(LINES))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default=None, choices=("float32", "bfloat16"))
    parser.add_argument("--profile", action="store_true", help="print where the time of our calls goes")
    given = parser.parse_args()
    dtype = getattr(torch, given.dtype or ("bfloat16" if given.device == "cuda" else "float32"))
    torch.set_num_threads(1)
    print(
        f"{given.device}, torch {torch.__version__}, {dtype}, n = {N}, h = {H}, batch {BATCH}: microseconds"
    )
    print(f"{'':32}{'':24}{'host':>8}{'wall':>8}{'device':>8}{'host - device':>16}")
    for cell in given.cells:
        found = contenders(cell, given.device, dtype)
        for contender in found:
            for name, host, wall, device in measure(contender):
                own = ("", "") if device is None else (f"{device:.0f}", f"{host - device:.0f}")
                row = f"{cell:6}{contender.name:26}{name:24}{host:8.0f}{wall:8.0f}{own[0]:>8}{own[1]:>16}"
                print(row, flush=True)
        if given.profile:
            profiled(found[0])


if __name__ == "__main__":
    main()
