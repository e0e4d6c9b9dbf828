"""Hard heads as moves: each head's one key for every query is a strided view of the padded image.

A head with one key has weight 1, whatever its score, so that attention is a copy of the key's value. All
heads together are one view with overlapping entries; it is copied once, and one product applies every W^(h).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from lattend.nn.convolution.geometry import Geometry


def hard_heads(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, groups: int) -> Tensor:
    """Σ_h x at the key of head h · W^(h), [N, c_out, rows, cols], of x [N, c_in, rows, cols]."""
    heads, depth, c_out = weight.shape
    batch, rows, cols = len(x), *geometry.outputs(x.shape[2], x.shape[3])
    keys = moved(x.unflatten(1, (groups, depth)), geometry).flatten(0, 1).flatten(1, 3).flatten(2)
    matrices = weight.view(heads * depth, groups, c_out // groups).permute(1, 2, 0)  # of each group
    matrices = matrices.expand(batch, -1, -1, -1).flatten(0, 1)
    if bias is None:
        found = torch.bmm(matrices, keys)
    else:
        added = bias.view(groups, -1, 1).expand(batch, -1, -1, rows * cols).flatten(0, 1)
        found = torch.baddbmm(added, matrices, keys)
    return found.view(batch, c_out, rows, cols)


def moved(x: Tensor, geometry: Geometry) -> Tensor:
    """What each head moves to each query, [N, groups, taps, taps, channels, rows, cols].

    The image is [N, groups, channels, rows, cols].

    >>> from lattend.nn.convolution.geometry import Along
    >>> image = torch.arange(1.0, 4).view(1, 1, 1, 1, 3)
    >>> moved(image, Geometry(Along(1), Along(3, before=1, after=1))).view(
    ...     3, 3
    ... )  # from the left, itself, right
    tensor([[0., 1., 2.],
            [1., 2., 3.],
            [2., 3., 0.]])
    """
    y, across = geometry.y, geometry.x
    edges = (across.before, across.after, y.before, y.after)
    if any(edges):
        mode = "constant" if geometry.mode == "zeros" else "replicate"
        x = pad(x.flatten(1, 2), edges, mode=mode).unflatten(1, x.shape[1:3])
    return _view(x, geometry) if torch.compiler.is_compiling() else _Moved.apply(x, geometry)  # pyright: ignore


def _view(x: Tensor, geometry: Geometry) -> Tensor:
    y, across = geometry.y, geometry.x
    seen = x.unfold(3, y.span, y.stride).unfold(4, across.span, across.stride)
    return seen[..., :: y.dilation, :: across.dilation].permute(0, 1, 5, 6, 2, 3, 4)


class _Moved(torch.autograd.Function):
    """The view, whose gradient adds up slices: torch's own for overlapping views is slower."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, geometry: Geometry) -> Tensor:
        return _view(x, geometry).contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Geometry], output: Tensor) -> None:
        x, ctx.geometry = inputs
        ctx.shape = x.shape

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _MovedBack.apply(grads[0], ctx.shape, ctx.geometry), None  # pyright: ignore

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _Moved.apply(tangents[0], ctx.geometry)  # pyright: ignore


class _MovedBack(torch.autograd.Function):
    """The transposed of `_Moved`: each head's entries are added where they came from."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, shape: torch.Size, geometry: Geometry) -> Tensor:
        y, x = geometry.y, geometry.x
        rows, cols = grad.shape[5:]
        found = grad.new_zeros(shape)
        for i in range(y.taps):
            for j in range(x.taps):
                top, left = i * y.dilation, j * x.dilation
                below, right = top + y.stride * (rows - 1) + 1, left + x.stride * (cols - 1) + 1
                found[..., top : below : y.stride, left : right : x.stride] += grad[:, :, i, j]
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, torch.Size, Geometry], output: Tensor) -> None:
        ctx.shape, ctx.geometry = inputs[1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _Moved.apply(grads[0], ctx.geometry), None, None  # pyright: ignore

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _MovedBack.apply(tangents[0], ctx.shape, ctx.geometry)  # pyright: ignore
