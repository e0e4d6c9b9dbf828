"""Host time of a small compiled call: attention beside torch's SDPA and an operator that does nothing.

    python benchmarks/compiled_calls.py                     # on the CPU, one thread: half a minute
    python benchmarks/compiled_calls.py --device cuda

The operator that does nothing allocates its results and is one of Python, with a gradient as torch.library
makes it. "One more" is a call among several in one program, without entering it. Microseconds of the calling
thread, medians of short rows in which all take turns.
"""

# torch.library has no types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt

HEADS, N, D = 8, 16, 64
ROUNDS, CALLS, ROW = 15, 100, 9
Call = Callable[[], Any]


# An operator that does nothing

LIBRARY = torch.library.Library("lattend_benchmark", "DEF")
LIBRARY.define("nothing(Tensor q, Tensor k, Tensor v) -> (Tensor, Tensor)")
LIBRARY.define("nothing_backward(Tensor grad, Tensor q, Tensor k, Tensor v) -> (Tensor, Tensor, Tensor)")


def results(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As much memory as attention gives."""
    return torch.empty_like(q), q.new_empty(q.shape[:-1])


def gradients(grad: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """As much memory as its backward gives."""
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


NOTHING = torch.ops.lattend_benchmark.nothing.default
NOTHING_BACKWARD = torch.ops.lattend_benchmark.nothing_backward.default
impl: Any = torch.library.impl
for operator, run in ((NOTHING, results), (NOTHING_BACKWARD, gradients)):
    impl(LIBRARY, operator.name().split("::")[1], "CompositeExplicitAutograd")(run)
    torch.library.register_fake(operator, run, lib=LIBRARY)
torch.library.register_autograd(
    NOTHING,
    lambda ctx, grad, _: NOTHING_BACKWARD(grad, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    lib=LIBRARY,
)


# Time


def contenders() -> dict[str, Callable[..., Tensor]]:
    """What is compiled."""
    causal, strided = lt.rules.causal(), lt.rules.strided(7)
    return {
        "nothing": lambda q, k, v: NOTHING(q, k, v)[0],
        "SDPA": lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
        "causal": lambda q, k, v: lt.attention(q, k, v, causal),
        "strided(7)": lambda q, k, v: lt.attention(q, k, v, strided),
    }


def times(calls: Mapping[str, Call]) -> dict[str, float]:
    """Microseconds of each call."""
    for call in calls.values():
        for _ in range(5):
            call()
    rows: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin = time.thread_time()
            for _ in range(CALLS):
                call()
            rows[name].append(1e6 * (time.thread_time() - begin) / CALLS)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
    return {name: median(row) for name, row in rows.items()}


def in_a_row(function: Callable[..., Tensor], count: int) -> Callable[..., Tensor]:
    """So many calls, each of the last one's output."""

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        for _ in range(count):
            q = function(q, k, v)
        return q

    return run


def training_step(function: Callable[..., Tensor], qkv: list[Tensor], grad: Tensor) -> None:
    """A forward and a backward."""
    torch.autograd.grad(function(*qkv), qkv, grad)


def main() -> None:
    """Print a table: each contender as it is and compiled, without gradients and as a training step."""
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--device", default="cpu")
    device: str = reader.parse_args().device
    torch.set_num_threads(1)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    plain = [torch.randn(1, HEADS, N, D, device=device, dtype=dtype) for _ in range(3)]
    learned = [x.clone().requires_grad_() for x in plain]
    found: dict[str, dict[str, float]] = {}
    for way, made in (("eager", lambda f: f), ("compiled", torch.compile)):
        functions = {name: made(function) for name, function in contenders().items()}
        with torch.no_grad():
            found[f"{way}, forward"] = times({name: partial(f, *plain) for name, f in functions.items()})
            rows = {name: made(in_a_row(function, ROW)) for name, function in contenders().items()}
            many = times({name: partial(f, *plain) for name, f in rows.items()})
            one = found[f"{way}, forward"]
            found[f"{way}, one more"] = {name: (many[name] - one[name]) / (ROW - 1) for name in many}
        functions = {name: made(function) for name, function in contenders().items()}
        steps = {name: partial(training_step, f, learned, plain[0]) for name, f in functions.items()}
        found[f"{way}, training"] = times(steps)
    print(f"{'µs':20}" + "".join(f"{name:>12}" for name in contenders()))
    for name, row in found.items():
        print(f"{name:20}" + "".join(f"{took:12.0f}" for took in row.values()))


if __name__ == "__main__":
    main()
