"""The kernels for Hopper beside those in Triton, each pass by itself: bf16, milliseconds on the device.

    python benchmarks/hopper_gpu.py                          # all rows at D = 128: two minutes
    python benchmarks/hopper_gpu.py --head-dim 64 --only causal
    python benchmarks/hopper_gpu.py --no-pause               # as under load, when the clock falls

Both take the same plan, and their turns alternate, so that a clock that changes does so for both; a pause
before each lets it rise again. A pass is launched as a repeated call launches it. Gradients are the same on
every run in both; cuDNN's, through torch's SDPA on causal rows, are not. Where flash-attn-4 is installed it
is beside them on causal rows and sliding windows, deterministic too. Useful TFLOP/s are those of the attended
pairs: two products forward, five backward. Results of both kernels are compared before they are timed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.kernels.triton.fixed_point import FixedPointSums
from lattend.attend.kernels.triton.launch import PlanExecutor
from lattend.attend.kernels.triton.shapes import choose
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import Plan, plan
from lattend.plans.tables.tile_costs import TileShape

LONG = [(65_536, 16, 16)]  # n, query heads and kv heads
CASES = {
    "causal": (lt.rules.causal(), [(4096, 16, 16), (16_384, 16, 16), (8192, 32, 4)]),
    **{f"strided-{t}": (lt.rules.strided(t), LONG) for t in (255, 1023, 4095)},
    **{f"windowed-{w}": (lt.rules.windowed(w), LONG) for w in (256, 1024)},
    **{f"blocks-{w}": (lt.rule(f"q // {w} == k // {w}"), LONG) for w in (256, 1024)},
    "sinks": (lt.rules.sinks(s=4, t=1023), [(32_768, 16, 16)]),
    "prefix": (lt.rule("k <= q or k < 3000"), [(16_384, 16, 16)]),
}
PASSES, WRONG = ("forward", "backward_dq", "backward_dkdv"), 2e-2
WARM, CALLS, TURNS = 1, 3, 7
PAUSE = 0.012  # seconds
Work = Callable[[], Any]


def runner(found: Plan, head_dim: int, device: torch.device, *, hopper: bool) -> PlanExecutor:
    """The plan with the best shapes of Triton's kernels, or of all; at D = 64 Hopper has none for queries."""

    def shape(kernel: str, place: int) -> TileShape:
        return choose(found, place, kernel, head_dim, torch.bfloat16, hopper=hopper).shape

    return PlanExecutor(found, device, shapes=shape)


def repeated(run: PlanExecutor, name: str, call: AttentionCall, given: BackwardInputs) -> Work:
    """A pass as a later call of its kind takes it: its launches and nothing else."""
    tensors = [x for x in given if x is not None]
    recorder = Recorder(*tensors)
    if name == "forward":
        found: Sequence[Tensor] = run.forward(recorder, call, given.q, given.k, given.v, {})
    elif name == "backward_dq":
        delta = recorder.empty(given.lse.shape, torch.float32, given.lse.device)
        fixed = FixedPointSums.of(recorder, run.plan, call, {}, given)
        found = (run.backward_dq(recorder, call, given, delta, {}, fixed),)
    else:
        found = run.backward_dkdv(
            recorder, call, given, recorder.keep(given.lse.new_zeros(given.lse.shape)), {}
        )
    steps = recorder.steps(*found)
    if steps is None:
        raise ValueError(f"{name} cannot be repeated")
    return lambda: steps(*tensors)


def milliseconds(work: Work, pause: float) -> float:
    torch.cuda.synchronize()
    time.sleep(pause)
    for _ in range(WARM):
        work()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(CALLS)]
    for begin, end in events:
        begin.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return median(begin.elapsed_time(end) for begin, end in events)


def in_turns(works: dict[str, Work], pause: float) -> dict[str, float]:
    turns = [{name: milliseconds(work, pause) for name, work in works.items()} for _ in range(TURNS)]
    return {name: median(turn[name] for turn in turns) for name in works}


def compared(ours: Work, theirs: Work) -> None:
    for a, b in zip(ours(), theirs(), strict=True):
        finite = b.isfinite()
        error = (a - b)[finite].double().norm() / b[finite].double().norm().clamp(min=1e-9)
        if error > WRONG or not torch.equal(a.isfinite(), finite):
            raise AssertionError(f"results differ by {error:.1e}")


def by_cudnn(q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> dict[str, Work]:
    """Forward and backward of torch's SDPA on causal rows."""
    shared = q.shape[1] != k.shape[1]
    learned = [x.clone().requires_grad_() for x in (q, k, v)]

    def forward(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=shared)

    out = forward(*learned)
    return {
        "forward": lambda: forward(q, k, v),
        "backward": lambda: torch.autograd.grad(out, learned, grad, retain_graph=True),
    }


def by_flash(name: str, q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> dict[str, Work]:
    """Forward and backward of flash-attn-4, if it has the rule and is there."""
    kind, _, t = name.partition("-")
    there = find_spec("flash_attn") is not None and find_spec("flash_attn.cute") is not None
    if kind not in ("causal", "strided") or not there:
        return {}
    flash: Any = import_module("flash_attn.cute").flash_attn_func
    window = (int(t), 0) if t else (None, None)
    learned = [x.transpose(1, 2).contiguous().requires_grad_() for x in (q, k, v)]
    slope = grad.transpose(1, 2).contiguous()

    def forward() -> Tensor:
        found = flash(*learned, causal=True, window_size=window, deterministic=True)
        return found[0] if isinstance(found, tuple) else found

    out = forward()
    return {
        "forward": forward,
        "backward": lambda: torch.autograd.grad(out, learned, slope, retain_graph=True),
    }


def row(name: str, rule: lt.Rule, n: int, heads: int, kv_heads: int, head_dim: int, pause: float) -> None:
    """Measures and prints one rule at one size."""
    source = torch.Generator("cuda").manual_seed(0)
    q, k, v, grad = (
        torch.randn(1, h, n, head_dim, generator=source, device="cuda", dtype=torch.bfloat16)
        for h in (heads, kv_heads, kv_heads, heads)
    )
    found, call = plan(rule, n=n), AttentionCall(rule, head_dim**-0.5)
    both = {kind: runner(found, head_dim, q.device, hopper=kind == "Hopper") for kind in ("Triton", "Hopper")}
    out, lse = both["Triton"].forward(Recorder(), call, q, k, v, {})
    given = BackwardInputs(grad, None, q, k, v, out, lse)
    works: dict[str, Work] = {}
    for each in PASSES:
        for kind, run in both.items():
            works[f"{kind} {each}"] = repeated(run, each, call, given)
        compared(works[f"Hopper {each}"], works[f"Triton {each}"])
    if name == "causal":
        works |= {f"cuDNN {each}": work for each, work in by_cudnn(q, k, v, grad).items()}
    works |= {f"flash-attn-4 {each}": work for each, work in by_flash(name, q, k, v, grad).items()}
    times = in_turns(works, pause)
    flop = 2 * rule.at(n=n).total() * heads * head_dim / 1e9
    print(f"\n{name}: {rule}, n = {n:,}, {heads} heads on {kv_heads}, D = {head_dim}")
    for kind in ("Triton", "Hopper", "cuDNN", "flash-attn-4"):
        forward = times.get(f"{kind} forward")
        parts = [times[f"{kind} {each}"] for each in PASSES[1:] if f"{kind} {each}" in times]
        backward = sum(parts) if parts else times.get(f"{kind} backward")
        if forward is not None and backward is not None:
            apart = f" = {parts[0]:.3f} + {parts[1]:.3f}" if parts else ""
            print(
                f"  {kind}  {forward:7.3f} / {backward:7.3f}{apart}, "
                f"{2 * flop / forward:.0f} / {5 * flop / backward:.0f} TFLOP/s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--head-dim", type=int, default=128, choices=[64, 128, 256])
    parser.add_argument("--no-pause", action="store_true", help="one call after another")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=", ".join(CASES))
    args = parser.parse_args()
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        parser.exit(1, "hopper_gpu.py: it needs a Hopper GPU (H100, H200)\n")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: forward / backward = dq + dkdv")
    for name, (rule, sizes) in CASES.items():
        if not args.only or any(name.startswith(start) for start in args.only):
            for n, heads, kv_heads in sizes:
                row(name, rule, n, heads, kv_heads, args.head_dim, 0.0 if args.no_pause else PAUSE)


if __name__ == "__main__":
    main()
