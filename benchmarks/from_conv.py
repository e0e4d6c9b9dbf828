"""How near attention heads come to the convolution they were made from, and how long they take.

    python benchmarks/from_conv.py --cases 400
    python benchmarks/from_conv.py --device cuda        # times on a GPU alone, under a minute

Three tables: the largest differences of hard heads over random convolutions, outputs and gradients; the
error of soft heads against its bound; and the time of hard heads as a multiple of torch's conv2d, beside
that of the same heads as one call of attention with their rule. Without cases, the last one alone.

On a GPU a table of its own: larger layers in float32, where both may use TF32, and in bfloat16. Before they
are timed, outputs and gradients of both are compared with the convolution in float64. cuDNN picks its
fastest algorithm by trial. A time is that of calls in a row, by events on the GPU.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

import lattend as lt
from lattend.nn.convolution.layer import mixed

Mode = Literal["zeros", "replicate"]
MODES: tuple[Mode, ...] = ("zeros", "replicate")
DTYPES = (torch.float64, torch.float32)
ALPHAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# batch, channels in, rows and columns, channels out, and options of the convolution
TIMED: tuple[tuple[int, int, int, int, dict[str, Any]], ...] = (
    (8, 3, 32, 16, {"kernel_size": 3, "padding": 1}),
    (4, 32, 28, 64, {"kernel_size": 3, "padding": 1}),
    (16, 64, 14, 64, {"kernel_size": 3, "padding": 1}),
    (2, 64, 56, 64, {"kernel_size": 3, "padding": 1}),
    (2, 64, 56, 128, {"kernel_size": 3, "padding": 1, "stride": 2}),
    (4, 128, 14, 16, {"kernel_size": 3, "padding": 1}),
    (4, 32, 28, 32, {"kernel_size": 5, "padding": 2, "groups": 4}),
    (4, 64, 28, 64, {"kernel_size": 1}),
)
ON_GPU: tuple[tuple[int, int, int, int, dict[str, Any]], ...] = (
    (16, 32, 32, 32, {"kernel_size": 3, "padding": 1}),
    (16, 32, 128, 32, {"kernel_size": 3, "padding": 1}),
    (16, 64, 64, 64, {"kernel_size": 3, "padding": 1}),
    (16, 64, 128, 64, {"kernel_size": 3, "padding": 1}),
    (16, 128, 32, 128, {"kernel_size": 3, "padding": 1}),
    (16, 128, 64, 128, {"kernel_size": 3, "padding": 1}),
    (16, 256, 32, 256, {"kernel_size": 3, "padding": 1}),
    (16, 256, 64, 256, {"kernel_size": 3, "padding": 1}),
    (16, 64, 64, 64, {"kernel_size": 5, "padding": 2}),
    (16, 128, 32, 128, {"kernel_size": 5, "padding": 2}),
    (16, 64, 64, 64, {"kernel_size": 3, "padding": 2, "dilation": 2}),
    (16, 128, 64, 128, {"kernel_size": 3, "padding": 4, "dilation": 4}),
    (16, 64, 128, 128, {"kernel_size": 3, "padding": 1, "stride": 2}),
    (16, 128, 64, 256, {"kernel_size": 3, "padding": 1, "stride": 2}),
)
WRONG = {torch.float32: 5e-3, torch.bfloat16: 3e-2}  # relative errors of TF32 and of bfloat16


def pair(least: int, most: int) -> tuple[int, int]:
    """Two random numbers, for rows and columns."""
    return random.randint(least, most), random.randint(least, most)


def case(dtype: torch.dtype, mode: Mode) -> tuple[nn.Conv2d, Tensor]:
    """A random convolution, and images at least as large as its kernel."""
    kernel, dilation, groups = pair(1, 5), pair(1, 3), random.choice((1, 1, 2, 3))
    padding = random.choice(("same", "valid", pair(0, 4), pair(0, 4), pair(0, 4)))
    conv = nn.Conv2d(
        groups * random.randint(1, 6),
        groups * random.randint(1, 6),
        kernel,
        stride=1 if padding == "same" else pair(1, 3),
        dilation=dilation,
        padding=padding,
        padding_mode=mode,
        groups=groups,
        bias=random.random() < 0.7,
        dtype=dtype,
    )
    sizes = [d * (k - 1) + 1 + random.randint(0, 6) for d, k in zip(dilation, kernel, strict=True)]
    return conv, torch.randn(random.randint(1, 3), conv.in_channels, *sizes, dtype=dtype)


def gradients(module: nn.Module, x: Tensor) -> list[Tensor]:
    """Those of x, the weights and the bias, for the sum of the output's squares."""
    x = x.detach().requires_grad_()
    wanted = [x, *(p for p in (module.weight, module.bias) if isinstance(p, Tensor))]
    return list(torch.autograd.grad(module(x).square().sum(), wanted))


def apart(conv: nn.Conv2d, x: Tensor) -> list[float]:
    """The largest difference of the output, and of each gradient as a share of its largest entry."""
    layer = lt.nn.from_conv(conv)
    found, wanted = gradients(layer, x), gradients(conv, x)
    found[1] = found[1].permute(2, 1, 0).reshape(conv.weight.shape)
    with torch.no_grad():
        output = float((layer(x) - conv(x)).abs().max())
    pairs = zip(found, wanted, strict=True)
    return [output, *(float((a - b).abs().max() / b.abs().max().clamp(min=1e-9)) for a, b in pairs)]


def differences(cases: int) -> None:
    print(f"hard heads against conv2d: largest differences over {cases} random convolutions for each row")
    print("(kernel 1 to 5, stride 1 to 3, dilation 1 to 3, groups 1 to 3, padding 0 to 4, same and valid)")
    names = "".join(f"{name:>10}" for name in ("output", "grad x", "grad W", "grad b"))
    print(f"  {'dtype':<9}{'padding':<11}{names}   (gradients relative to their largest)")
    for dtype in DTYPES:
        for mode in MODES:
            worst = [0.0] * 4
            for _ in range(cases):
                found = apart(*case(dtype, mode))
                worst = [max(both) for both in zip(worst, [*found, 0.0], strict=False)]
            shown = "".join(f"{value:10.1e}" for value in worst)
            print(f"  {str(dtype).removeprefix('torch.'):<9}{mode:<11}{shown}")


def soft(cases: int) -> None:
    print(f"\nsoft heads, float64, {cases} random convolutions for each α: a pixel's error against its bound")
    names = "".join(f"{name:>16}" for name in ("largest error", "largest bound", "error / bound"))
    print(f"  {'α':>5}{'leak on the plane':>20}{names}")
    for alpha in ALPHAS:
        most = bounded = share = 0.0
        for _ in range(cases):
            conv, x = case(torch.float64, random.choice(MODES))
            layer = lt.nn.from_conv(conv, alpha)
            with torch.no_grad():
                error = torch.linalg.vector_norm(layer(x) - conv(x), dim=1)
            bound = lt.nn.error_bound(layer, x)
            assert (error <= bound + 1e-12).all(), "an error above its bound"
            most, bounded = max(most, float(error.max())), max(bounded, float(bound.max()))
            sure = bound > 1e-9  # below, rounding is all there is
            share = max(share, float((error / bound)[sure].max())) if sure.any() else share
        told = f"{share:16.2f}" if share else f"{'rounding':>16}"
        print(f"  {alpha:>5g}{lt.nn.sharpness(alpha).leak:>20.3e}{most:>16.2e}{bounded:>16.2e}{told}")


class ByRule(nn.Module):
    """The same heads as one call of attention with their rule: scores and softmax for each one key."""

    def __init__(self, layer: lt.nn.ConvAttention) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        layer, (rows, cols) = self.layer, x.shape[2:]
        rule, values = layer.rule(rows, cols), x.flatten(2).mT[:, None]
        found = mixed(values, layer.geometry.heads, rule.values["n"], rule, None, {})  # [heads, n, N, c_in]
        weight = layer.weight.unflatten(2, (layer.groups, -1))
        out = torch.einsum("hqbgi,higo->bgoq", found.unflatten(3, (layer.groups, -1)), weight).flatten(1, 2)
        out = out if layer.bias is None else out + layer.bias[:, None]
        return out.unflatten(2, layer.geometry.outputs(rows, cols))


def milliseconds(work: Callable[[], object], runs: int = 15) -> float:
    """The least time of `work` in milliseconds, once it is warm."""
    work()
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return min(times)


def step(module: nn.Module, x: Tensor) -> None:
    """An output and the gradients of x and all parameters."""
    module(x.requires_grad_()).sum().backward()


def times(device: str, dtype: torch.dtype) -> None:
    threads = f", {torch.get_num_threads()} threads" if device == "cpu" else ""
    print(f"\nhard heads against conv2d, {dtype}, {device}{threads}: milliseconds, and times conv2d's")
    print("(by rule: the same heads as one call of attention; heads: what the layer does)")
    names = "".join(f"{name:>9}" for name in ("conv2d", "by rule", "times", "heads", "times"))
    print(f"  {'':<56}{'output':>45}{'training step':>45}")
    print(f"  {'batch, in, size, out':<22}{'kernel':<34}{names}{names}")
    worst = [0.0, 0.0]
    for batch, c_in, size, c_out, options in TIMED:
        conv = nn.Conv2d(c_in, c_out, **options, device=device, dtype=dtype)
        layer, x = lt.nn.from_conv(conv), torch.randn(batch, c_in, size, size, device=device, dtype=dtype)
        modules = (conv, ByRule(layer), layer)
        with torch.no_grad():
            output = [milliseconds(partial(module, x)) for module in modules]
        training = [milliseconds(partial(step, module, x)) for module in modules]
        words = ", ".join(f"{name.removesuffix('_size')} {value}" for name, value in options.items())
        shape = f"{batch}, {c_in}, {size}², {c_out}"
        shown = "".join(
            f"{conv:9.3f}{rule:9.2f}{rule / conv:9.1f}{heads:9.3f}{heads / conv:9.2f}"
            for conv, rule, heads in (output, training)
        )
        worst = [max(w, t[2] / t[0]) for w, t in zip(worst, (output, training), strict=True)]
        print(f"  {shape:<22}{words:<34}{shown}")
    print(f"  largest: {worst[0]:.2f} times conv2d for an output, {worst[1]:.2f} for a training step")


# On a GPU


def relative_errors(module: nn.Module, x: Tensor, exact: nn.Conv2d) -> list[float]:
    """Those of the output and of the gradients of x and the weights, against the convolution in float64."""
    wide = x.double()
    with torch.no_grad():
        outputs = module(x), exact(wide)
    found, wanted = gradients(module, x)[:2], gradients(exact, wide)[:2]
    if found[1].dim() == 3:  # of heads
        found[1] = found[1].permute(2, 1, 0).reshape(wanted[1].shape)
    pairs = [outputs, *zip(found, wanted, strict=True)]
    return [float((a.double() - b).norm() / b.norm()) for a, b in pairs]


def on_gpu(work: Callable[[], object], calls: int = 10, rounds: int = 5) -> float:
    """Milliseconds of a call, the best of some rounds of calls in a row, by events on the GPU."""
    for _ in range(3):
        work()
    found: list[float] = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / calls)
    return min(found)


def times_on_gpu(dtypes: tuple[torch.dtype, ...], device: str = "cuda") -> None:
    names = "".join(f"{name:>9}" for name in ("conv2d", "heads", "times"))
    for dtype in dtypes:
        print(f"\nhard heads against conv2d, {dtype}, TF32 allowed: milliseconds, and times conv2d's")
        print(f"  {'':<58}{'output':>27}{'training step':>27}{'largest errors':>20}")
        print(f"  {'batch, in, size, out':<22}{'kernel':<36}{names}{names}{'conv2d':>11}{'heads':>9}")
        ratios: list[tuple[float, float]] = []
        for batch, c_in, size, c_out, options in ON_GPU:
            conv = nn.Conv2d(c_in, c_out, **options, device=device, dtype=dtype)
            exact = nn.Conv2d(c_in, c_out, **options, device=device, dtype=torch.float64)
            exact.load_state_dict(conv.state_dict())
            layer, x = lt.nn.from_conv(conv), torch.randn(batch, c_in, size, size, device=device, dtype=dtype)
            errors = [max(relative_errors(module, x[:2], exact)) for module in (conv, layer)]
            assert errors[1] <= WRONG[dtype], f"heads of {conv} are off by {errors[1]:.1e}"
            with torch.no_grad():
                output = [on_gpu(partial(module, x)) for module in (conv, layer)]
            training = [on_gpu(partial(step, module, x)) for module in (conv, layer)]
            shown = "".join(f"{a:9.3f}{b:9.3f}{b / a:9.2f}" for a, b in (output, training))
            words = ", ".join(f"{name.removesuffix('_size')} {value}" for name, value in options.items())
            shape = f"{batch}, {c_in}, {size}², {c_out}"
            print(f"  {shape:<22}{words:<36}{shown}{errors[0]:11.1e}{errors[1]:9.1e}", flush=True)
            ratios.append((output[1] / output[0], training[1] / training[0]))
        for work, each in zip(("output", "training step"), zip(*ratios, strict=True), strict=True):
            middle = sorted(each)[len(each) // 2]
            print(f"  {work}: median {middle:.2f}, largest {max(each):.2f} times conv2d")


def main() -> None:
    parser = argparse.ArgumentParser(description="Heads of convolutions: errors, bounds and times.")
    parser.add_argument("--cases", type=int, default=200, help="random convolutions for each row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="where times are taken")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="on a GPU both, else float32")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message="Using padding='same' with even kernel lengths")
    random.seed(given.seed)
    torch.manual_seed(given.seed)
    if given.device.startswith("cuda"):
        dtypes = (torch.float32, torch.bfloat16) if given.dtype is None else (getattr(torch, given.dtype),)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
        times_on_gpu(dtypes, given.device)
        return
    if given.cases:
        differences(given.cases)
        soft(max(1, given.cases // 4))
    times(given.device, getattr(torch, given.dtype or "float32"))


if __name__ == "__main__":
    main()
