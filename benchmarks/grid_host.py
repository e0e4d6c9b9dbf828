"""Host time of one small call of GridRNN, in microseconds, beside torch.nn's cell on the same pixels.

    python benchmarks/grid_host.py                       # on a GPU where there is one: a few seconds
    python benchmarks/grid_host.py --cells rnn --profile # and where the time goes, by cProfile
    python benchmarks/grid_host.py --no-launches         # without a GPU: on a CPU, launches left out

n = 8, h = 32, batch 2: forward without gradients, forward with, and backward. `host` is the median time until
a call comes back, calls following each other without a wait; `wall` waits for the device after each call;
`device` is the kernels' own time, between events. The peer is torch.nn.RNN, LSTM or
GRU (cuDNN) along the n² pixels as one line, another function of about half the products.

Without launches, `host` is the least time of the host's thread in many rows of calls; torch's allocator of a
GPU, its engine's thread and the driver's launch are not in it. `operations` are torch's own.
"""

from __future__ import annotations

import argparse
import cProfile
import ctypes
import os
import pstats
import time
from collections.abc import Callable
from functools import partial
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


def works(contender: Contender) -> list[tuple[str, Callable[..., Any], Callable[[], tuple[Any, ...]]]]:
    """Each work: its name, what runs, and what is prepared for it."""
    nothing: Callable[[], tuple[Any, ...]] = tuple
    return [
        ("forward, no gradients", contender.inference, nothing),
        ("forward, gradients", contender.output, nothing),
        ("backward", contender.gradients, lambda: (contender.output(),)),
    ]


def measure(contender: Contender) -> list[tuple[str, float, float, float | None]]:
    """For each work its name, and the microseconds of host, wall and device."""
    devices: tuple[float | None, ...] = (None, None, None)
    if contender.x.is_cuda and isinstance(contender.module, lt.nn.GridRNN):
        alone = on_device(contender.inference)
        devices = alone, alone, on_device(lambda: contender.gradients(contender.output())) - alone
    return [
        (name, microseconds(work, False, prepare), microseconds(work, True, prepare), device)
        for (name, work, prepare), device in zip(works(contender), devices, strict=True)
    ]


# Without a GPU


def leave_out_launches() -> None:
    """From here on a launch of a GPU's kernel hands its addresses to a function that does nothing."""
    os.environ["TRITON_INTERPRET"] = "1"  # lets the GPU's kernel take tensors of a CPU
    from lattend.attend.kernels.triton import launch_replay
    from lattend.attend.replay import host

    module = host.module()
    assert module is not None, "make setup builds the host's part of a repeated call"
    nothing = ctypes.cast(ctypes.CDLL(None).ffs, ctypes.c_void_p).value  # ffs(0) is 0: no failure

    def launch(recorder: Any, kernel: Any, programs: int, arguments: Any, constants: Any) -> None:
        made = launch_replay.Launch(print, arguments, Tensor.data_ptr, recorder.origin)
        tensors = made.given()
        places = tuple((place, place, made.offsets.get(place, 0)) for place in range(len(tensors)))
        words = bytes(8 * len(arguments))
        again = module.launcher(
            nothing, 0, programs, 128, 0, words, places, (), len(tensors), abs, 0, print
        )  # abs(0) is stream 0
        recorder.note(again, tensors)

    launch_replay.launch = launch


def of_thread(work: Callable[..., Any], prepare: Callable[[], tuple[Any, ...]]) -> float:
    """The least microseconds of a call, over rows of calls, as this thread's clock counts them."""
    rows: list[float] = []
    for _ in range(40):
        given = [prepare() for _ in range(50)]
        start = time.thread_time()
        for one in given:
            work(*one)
        rows.append((time.thread_time() - start) / len(given) * 1e6)
    return min(rows)


def operations(work: Work) -> int:
    """How many operations of torch the work takes, those within others not counted."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        work()
    found = [event for event in profile.events() or () if event.name.startswith("aten::")]
    parents = [event.cpu_parent for event in found]
    return sum(parent is None or not parent.name.startswith("aten::") for parent in parents)


def without_launches(cells: list[str]) -> None:
    leave_out_launches()
    print(f"{'':10}{'':24}{'host':>8}{'operations':>12}")
    for cell in cells:
        x = torch.randn(BATCH, N, N, CHANNELS)
        ours = Contender("lattend", lt.nn.GridRNN(CHANNELS, H, cell, kernel="gpu"), x)
        for name, work, prepare in works(ours):
            host = of_thread(work, prepare)
            given = prepare()
            count = operations(partial(work, *given))
            print(f"{cell:10}{name:24}{host:8.1f}{count:12}", flush=True)


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
    parser.add_argument("--no-launches", action="store_true", help="without a GPU, launches left out")
    given = parser.parse_args()
    if given.no_launches:
        torch.set_num_threads(1)
        without_launches(given.cells)
        return
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
