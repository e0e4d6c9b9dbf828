"""Attention of 8 bits beside bfloat16 on a Hopper GPU: forward, milliseconds on the device, and errors.

    python benchmarks/fp8_gpu.py                        # all rows at D = 128: a minute
    python benchmarks/fp8_gpu.py --head-dim 64 --only causal

Times of 8 bits have the transposing of values in them, which is also beside them. All take turns, with a
pause before each, as in hopper_gpu.py; so does cuDNN in bfloat16, through torch's SDPA, on causal rows.
Errors are ‖found - exact‖ / ‖exact‖ on some queries of one head, exact in float64: of 8 bits beside what
they stand for, which is the kernel's, and in all, beside what they were before; and of bfloat16. Values
have a mean of 0, and of 1: where their mean is large, so are the sums, and what is lost on the way to them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from hopper_gpu import PAUSE, by_cudnn, in_turns
from torch import Tensor

import lattend as lt
from lattend.attend import quantize
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.kernels.triton.hopper.transposed import transposed
from lattend.attend.kernels.triton.launch import PlanExecutor
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import plan

LONG = [(65_536, 16, 16)]  # n, query heads and kv heads
CASES = {
    "causal": (lt.rules.causal(), [(4096, 16, 16), (16_384, 16, 16), (8192, 32, 4)]),
    **{f"strided-{t}": (lt.rules.strided(t), LONG) for t in (255, 1023, 4095)},
    **{f"blocks-{w}": (lt.rule(f"q // {w} == k // {w}"), LONG) for w in (256, 1024)},
    "prefix": (lt.rule("k <= q or k < 3000"), [(16_384, 16, 16)]),
}
ROWS = 64  # queries whose errors are looked at
Work = Callable[[], Any]


def noted(forward: Callable[..., Any], *tensors: Tensor) -> Work:
    """What a later call of its kind does: the launches of `forward`, given a recorder and the tensors."""
    recorder = Recorder(*tensors)
    steps = recorder.steps(forward(recorder, *tensors))
    if steps is None:
        raise ValueError("it cannot be repeated")
    return lambda: steps(*tensors)


def of_8_bits(run: PlanExecutor, rule: lt.Rule, recorder: Recorder, *tensors: Tensor) -> Tensor:
    q, k, v, *scales = tensors
    call = AttentionCall(rule, q.shape[-1] ** -0.5, scales=(scales[0], scales[1], scales[2]))
    return run.forward(recorder, call, q, k, v, {})[0]


def of_16_bits(run: PlanExecutor, rule: lt.Rule, recorder: Recorder, *tensors: Tensor) -> Tensor:
    q, k, v = tensors
    return run.forward(recorder, AttentionCall(rule, q.shape[-1] ** -0.5), q, k, v, {})[0]


def exactly(attended: Tensor, rows: Tensor, qkv: Sequence[Tensor]) -> Tensor:
    """The output of some queries of the first head in float64."""
    q, k, v = (x[0, 0].double() for x in qkv)
    scores = q[rows] @ k.T * q.shape[-1] ** -0.5
    return scores.masked_fill(~attended, -torch.inf).softmax(-1) @ v


def error(found: Tensor, wanted: Tensor, rows: Tensor) -> float:
    return float((found[0, 0, rows].double() - wanted).norm() / wanted.norm())


def errors(works: dict[str, PlanExecutor], rule: lt.Rule, given: Sequence[Tensor], mean: float) -> str:
    """Errors of 8 bits beside what they stand for, beside what they were, and of bfloat16."""
    n = given[0].shape[2]
    rows = torch.linspace(0, n - 1, ROWS).long()
    mask = rule.at(n=n).mask_at({"q": rows.numpy(), "k": torch.arange(n).numpy()})
    attended, rows = torch.tensor(mask).cuda(), rows.cuda()
    q, k, v = given[0], given[1], given[2] + mean
    (q8, of_q), (k8, of_k), (v8, of_v) = map(quantize, (q, k, v))
    stands = [x.double() * scale[..., None, None] for x, scale in ((q8, of_q), (k8, of_k), (v8, of_v))]
    small = of_8_bits(works["8 bits"], rule, Recorder(), q8, k8, v8, of_q, of_k, of_v)
    wide = of_16_bits(works["bf16"], rule, Recorder(), q, k, v)
    before = exactly(attended, rows, (q, k, v))
    own, whole = error(small, exactly(attended, rows, stands), rows), error(small, before, rows)
    return f"mean {mean:.0f}: 8 bits {own:.1e} ({whole:.1e} in all), bf16 {error(wide, before, rows):.1e}"


def row(name: str, rule: lt.Rule, n: int, heads: int, kv_heads: int, head_dim: int) -> None:
    """Measures and prints one rule at one size."""
    source = torch.Generator("cuda").manual_seed(0)
    q, k, v = (
        torch.randn(1, h, n, head_dim, generator=source, device="cuda", dtype=torch.bfloat16)
        for h in (heads, kv_heads, kv_heads)
    )
    runners = {kind: PlanExecutor(plan(rule, n=n), q.device) for kind in ("8 bits", "bf16")}
    (q8, of_q), (k8, of_k), (v8, of_v) = map(quantize, (q, k, v))
    works = {
        "8 bits": noted(partial(of_8_bits, runners["8 bits"], rule), q8, k8, v8, of_q, of_k, of_v),
        "transposing": noted(transposed, v8),
        "bf16": noted(partial(of_16_bits, runners["bf16"], rule), q, k, v),
    }
    if name == "causal":
        works["cuDNN bf16"] = by_cudnn(q, k, v, q)["forward"]
    times = in_turns(works, PAUSE)
    flop = 4 * rule.at(n=n).total() * heads * head_dim / 1e9
    print(f"\n{name}: {rule}, n = {n:,}, {heads} heads on {kv_heads}, D = {head_dim}")
    for kind, time in times.items():
        rate = "" if kind == "transposing" else f", {flop / time:.0f} TFLOP/s"
        print(f"  {kind:12} {time:.3f}{rate}", flush=True)
    for mean in (0.0, 1.0):
        print(f"  errors, {errors(runners, rule, (q, k, v), mean)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--head-dim", type=int, default=128, choices=[64, 128])
    parser.add_argument("--only", nargs="+", metavar="NAME", help=", ".join(CASES))
    args = parser.parse_args()
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        parser.exit(1, "fp8_gpu.py: it needs a Hopper GPU (H100, H200)\n")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: forward")
    for name, (rule, sizes) in CASES.items():
        if not args.only or any(name.startswith(start) for start in args.only):
            for n, heads, kv_heads in sizes:
                row(name, rule, n, heads, kv_heads, args.head_dim)


if __name__ == "__main__":
    main()
