"""Random convolutions for the tests, and what their kernel sees, written out pixel by pixel."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn


@st.composite
def convolutions(draw: st.DrawFn, dtype: torch.dtype = torch.float64) -> tuple[nn.Conv2d, Tensor]:
    """A convolution of any shape, and images that are large enough for it."""
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    dilation = (draw(st.integers(1, 3)), draw(st.integers(1, 2)))
    groups = draw(st.sampled_from([1, 1, 2]))
    padding = draw(st.sampled_from(["same", "valid", 0, 1, (2, 0), (1, 3)]))
    stride = (1, 1) if padding == "same" else (draw(st.integers(1, 3)), draw(st.integers(1, 2)))
    torch.manual_seed(draw(st.integers(0, 1000)))
    conv = nn.Conv2d(
        groups * draw(st.integers(1, 3)),
        groups * draw(st.integers(1, 3)),
        kernel,
        stride=stride,
        dilation=dilation,
        padding=padding,
        padding_mode=draw(st.sampled_from(["zeros", "replicate"])),
        groups=groups,
        bias=draw(st.booleans()),
        dtype=dtype,
    )
    least = [
        max(1, d * (k - 1) + 1 - 2 * p) for d, k, p in zip(dilation, kernel, _pads(padding), strict=True)
    ]
    sizes = [draw(st.integers(size, size + 4)) for size in least]
    return conv, torch.randn(draw(st.integers(1, 2)), conv.in_channels, *sizes, dtype=dtype)


def _pads(padding: Any) -> tuple[int, int]:
    if isinstance(padding, tuple):
        return padding
    return (0, 0) if isinstance(padding, str) else (padding, padding)


def gradients(module: nn.Module, x: Tensor) -> list[Tensor]:
    """The gradients of a curved function of the output by the image and all parameters."""
    x = x.detach().requires_grad_()
    wanted = [x, *(p for p in (module.weight, module.bias) if isinstance(p, Tensor))]
    return list(torch.autograd.grad(module(x).sin().sum(), wanted))


def as_conv(grads: list[Tensor], conv: nn.Conv2d) -> list[Tensor]:
    """The gradients of a ConvAttention with that of its weights in the shape of the convolution's."""
    return [grads[0], grads[1].permute(2, 1, 0).reshape(conv.weight.shape), *grads[2:]]
