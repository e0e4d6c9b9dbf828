"""Milliseconds on a GPU: medians of calls that wait in a queue, in series with pauses between them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from lattend.machines import MACHINES

PAUSE, SERIES = 0.012, 4  # seconds before a series, for the clock to rise, and its calls
SIDE = 8192  # of the matrices whose product says how fast TF32 is


@contextmanager
def tf32(used: bool) -> Iterator[None]:
    """The setting of torch by which lattend and FlexAttention round factors."""
    import torch

    before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, used
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


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
        return self.events(work, max(12, min(100, int(400 / (once + fills * self.fill)))), fills), host

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
        for index, (start, end) in enumerate(pairs):
            if index % SERIES == 0:
                self.torch.cuda.synchronize()
                time.sleep(PAUSE)
                work()  # the first after a pause is not timed
            for _ in range(fills):
                self.filler.zero_()
            start.record()
            work()
            end.record()
        self.torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) for start, end in pairs)

    def rate(self, dtype: str) -> float:
        """Multiplies and adds a second in products of such numbers."""
        if dtype == "bfloat16" or self.device != "cuda":
            return MACHINES["H200 measured"].rate
        with tf32(used=True):
            a, b = (self.torch.randn(SIDE, SIDE, device=self.device) for _ in range(2))
            took = self.events(lambda: a @ b, 12, 1) / 1e3
        return 2 * SIDE**3 / took / (1 if dtype == "TF32" else 3)
