"""Layers of every encoding, and random cases of them."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st

import lattend as lt

LINES = ("full", "causal", "k < q", "strided(t=1)", "abs(q - k) <= 2", "k <= q + head", "q % 2 == 0")
IMAGES = ("full", "neighbourhood(r=1)", "axial", "raster", "ky < qy", "abs(qx - kx) <= head")
ENCODINGS = (
    None,
    "absolute",
    "sinusoidal",
    "tables",
    "near tables",
    "relative",
    "quadratic",
    "quadratic beside content",
    "fixed quadratic",
    "covariance",
    "covariance beside content",
)


def encoding_of(name: str | None, heads: int, axes: int, d_hidden: int) -> Any:
    """The encoding of that name, where it is more than a name of the library's."""
    kind: dict[str, Any] = {"dtype": torch.float64}
    match name:
        case "near tables":
            return lt.nn.Tables(heads, (1, 0)[:axes], **kind)
        case "relative":
            return lt.nn.Relative(heads, d_hidden, 8, **kind)
        case "quadratic beside content":
            return lt.nn.Quadratic(heads, axes, content=True, **kind)
        case "fixed quadratic":
            return lt.nn.Quadratic(heads, axes, learned=False, **kind)
        case "covariance" | "covariance beside content":
            return lt.nn.Quadratic(heads, axes, isotropic=axes == 1, content="beside" in name, **kind)
    return name


@st.composite
def layers(draw: st.DrawFn) -> tuple[Any, tuple[int, ...], dict[str, int]]:
    """A layer with random numbers in it, the sizes of its inputs, and those sizes by name."""
    axes = draw(st.sampled_from([1, 2]))
    sizes = tuple(draw(st.integers(1, 4)) for _ in range(axes))
    named: dict[str, int] = dict(zip(("n",) if axes == 1 else ("rows", "cols"), sizes, strict=True))
    rule = draw(st.sampled_from(LINES if axes == 1 else IMAGES))
    heads, d_hidden, d_head_out, d_out = (draw(st.integers(1, 3)) for _ in range(4))
    name = draw(st.sampled_from(ENCODINGS))
    d_in = 4 if name == "sinusoidal" else draw(st.integers(1, 4))
    layer = lt.nn.MultiHeadAttention(
        d_in,
        d_hidden,
        d_head_out,
        d_out,
        heads,
        rule,
        encoding_of(name, heads, axes, d_hidden),
        bias=draw(st.booleans()),
        out_bias=draw(st.booleans()),
        scale=draw(st.sampled_from([None, 1.0, 0.3])),
        dtype=torch.float64,
        **named,
    )
    scramble(layer, draw(st.integers(0, 1000)))
    return layer, sizes, named


def scramble(module: torch.nn.Module, seed: int = 0) -> None:
    """Random numbers for all parameters, biases among them."""
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=source, dtype=parameter.dtype) * 0.7)


def gradients(out: torch.Tensor, *of: torch.Tensor) -> list[torch.Tensor]:
    """Gradients of a fixed mixture of all outputs; zeros where an input takes no part."""
    into = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    found = torch.autograd.grad((out * into).sum(), of, allow_unused=True)
    return [torch.zeros_like(x) if grad is None else grad for x, grad in zip(of, found, strict=True)]
