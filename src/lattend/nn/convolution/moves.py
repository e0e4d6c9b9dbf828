"""Hard heads as moves: each head's one key for every query is a strided view of the padded image.

A head with one key has weight 1, whatever its score, so that attention is a copy of the key's value. All
heads together are one view with overlapping entries; it is copied once, and one product applies every W^(h).
The copy is made again for the gradients rather than saved. On a GPU the kernels of `gpu/` gather each key
inside the product, and there is no such copy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from lattend.attend.seams import is_plain
from lattend.nn.convolution.geometry import Along, Geometry
from lattend.nn.convolution.gpu import record

CACHED = 1 << 20  # numbers: four megabytes of float32
HELD = 1 << 28  # on a GPU: a gigabyte


def hard_heads(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, groups: int) -> Tensor:
    """Σ_h x at the key of head h · W^(h), [N, c_out, rows, cols], of x [N, c_in, rows, cols]."""
    if geometry.mode == "replicate":
        x, geometry = pad(x, _edges(geometry), mode="replicate"), _unpadded(geometry)
    if x.is_cuda and not torch.compiler.is_compiling():
        x, weight, bias = _as_autocast(x, weight, bias)
    if record.fits(x, weight, bias, groups):
        if torch.is_grad_enabled():
            return _Gathered.apply(x, weight, bias, geometry, groups)  # pyright: ignore
        return record.forward(x, weight, bias, geometry, groups)
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return _projected(x, weight, bias, geometry, groups)
    return _HardHeads.apply(x, weight, bias, geometry, groups)  # pyright: ignore


def _as_autocast(x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """The tensors in the dtype that autocast gives a product on a GPU, if it is on."""
    if not torch.is_autocast_enabled("cuda") or x.dtype == torch.float64:
        return x, weight, bias
    dtype = torch.get_autocast_dtype("cuda")
    return x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)


def moved(x: Tensor, geometry: Geometry, groups: int = 1) -> Tensor:
    """What each head moves to each query, [N, groups, taps, taps, channels, rows, cols].

    A view of the image padded with zeros. Taps are those along y, then those along x.

    >>> image = torch.arange(1.0, 4).view(1, 1, 1, 3)
    >>> moved(image, Geometry(Along(1), Along(3, before=1, after=1))).reshape(
    ...     3, 3
    ... )  # from the left, itself, right
    tensor([[0., 1., 2.],
            [1., 2., 3.],
            [2., 3., 0.]])
    """
    y, across, edges = geometry.y, geometry.x, _edges(geometry)
    x = pad(x, edges) if any(edges) else x
    seen = x.unflatten(1, (groups, -1)).unfold(3, y.span, y.stride).unfold(4, across.span, across.stride)
    return seen[..., :: y.dilation, :: across.dilation].permute(0, 1, 5, 6, 2, 3, 4)


def _edges(geometry: Geometry) -> tuple[int, int, int, int]:
    y, x = geometry.y, geometry.x
    return x.before, x.after, y.before, y.after


def _unpadded(geometry: Geometry) -> Geometry:
    y, x = (replace(along, before=0, after=0) for along in (geometry.y, geometry.x))
    return Geometry(y, x)


def _images_at_once(x: Tensor, geometry: Geometry) -> int:
    """How many images are copied together: on a CPU those whose copies stay in its cache."""
    plain = geometry.heads == geometry.y.stride == geometry.x.stride == 1  # the image itself: no copy
    if plain or torch.compiler.is_compiling():
        return max(1, x.shape[0])
    rows, cols = geometry.y.outputs(x.shape[2]), geometry.x.outputs(x.shape[3])
    most = CACHED if x.device.type == "cpu" else HELD
    return max(1, most // max(1, geometry.heads * x.shape[1] * rows * cols))


def _projected(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, groups: int) -> Tensor:
    parts = [
        _projected_together(part, weight, bias, geometry, groups)
        for part in x.split(_images_at_once(x, geometry))
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _projected_together(
    x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, groups: int
) -> Tensor:
    batch, (heads, depth, c_out) = x.shape[0], weight.shape
    keys = moved(x, geometry, groups)
    rows, cols = keys.shape[5:]
    keys = keys.reshape(batch * groups, heads * depth, rows * cols)
    matrices = weight.reshape(heads * depth, groups, c_out // groups).permute(1, 2, 0)  # one for each group
    matrices = matrices.expand(batch, -1, -1, -1).flatten(0, 1)
    if bias is None:
        found = torch.bmm(matrices, keys)
    else:
        added = bias.view(groups, -1, 1).expand(batch, -1, -1, rows * cols).flatten(0, 1)
        found = torch.baddbmm(added, matrices, keys)
    return found.view(batch, c_out, rows, cols)


class _HardHeads(torch.autograd.Function):
    """`_projected`, which saves the image for its gradients and not the copy of it for each head."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, groups: int) -> Tensor:
        return _projected(x, weight, bias, geometry, groups)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, _, ctx.geometry, ctx.groups = inputs
        ctx.save_for_backward(x, weight)
        ctx.save_for_forward(x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *_gradients(ctx, grads[0]), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        (x, weight), (by_x, by_weight, by_bias) = ctx.saved_tensors, tangents[:3]
        geometry, groups = ctx.geometry, ctx.groups
        found = hard_heads(torch.zeros_like(x) if by_x is None else by_x, weight, by_bias, geometry, groups)
        return found if by_weight is None else found + hard_heads(x, by_weight, None, geometry, groups)


class _Gathered(torch.autograd.Function):
    """The same by the kernels of a GPU; a gradient that is differentiated again is that of `_HardHeads`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, groups: int
    ) -> Tensor:
        ctx.geometry, ctx.groups = geometry, groups
        ctx.save_for_backward(x, weight)
        return record.forward(x, weight, bias, geometry, groups)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled() or not is_plain(grads[0]):
            return *_gradients(ctx, grads[0]), None, None
        x, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        return *record.backward(grads[0], x, weight, ctx.geometry, ctx.groups, wanted), None, None


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Those of x, the weights and the bias that are wanted, which can be differentiated again."""
    grad = grad.contiguous()
    x, weight = (saved.to(grad.dtype) for saved in ctx.saved_tensors)  # under autocast they differ
    geometry, groups = ctx.geometry, ctx.groups
    grad_x = grad_weight = grad_bias = None
    if ctx.needs_input_grad[0]:
        back = _image_gradient if geometry.y.stride == geometry.x.stride == 1 else _strided_image_gradient
        grad_x = back(grad, weight, x.shape[2:], geometry, groups)
    if ctx.needs_input_grad[1]:
        grad_weight = _weight_gradient(grad, x, geometry, groups)
    if ctx.needs_input_grad[2]:
        grad_bias = grad.sum((0, 2, 3))
    return grad_x, grad_weight, grad_bias


def _weight_gradient(grad: Tensor, x: Tensor, geometry: Geometry, groups: int) -> Tensor:
    """[heads, c_in / groups, c_out]: the keys of each head with the gradients of their queries."""
    images = _images_at_once(x, geometry)
    pairs = zip(grad.split(images), x.split(images), strict=True)
    parts = [_weight_gradient_together(grad, x, geometry, groups) for grad, x in pairs]
    found = sum(parts[1:], parts[0])  # [groups, c_out / groups, heads · channels]
    return found.unflatten(2, (geometry.heads, -1)).permute(2, 3, 0, 1).flatten(2)


def _weight_gradient_together(grad: Tensor, x: Tensor, geometry: Geometry, groups: int) -> Tensor:
    keys = moved(x, geometry, groups).movedim(0, 4).flatten(5).flatten(4).flatten(1, 3)
    wanted = grad.unflatten(1, (groups, -1)).movedim(0, 2).flatten(2)
    return torch.bmm(wanted, keys.mT)


def _image_gradient(
    grad: Tensor, weight: Tensor, sizes: torch.Size, geometry: Geometry, groups: int
) -> Tensor:
    """Heads again, each looking back: the pixel k is the key of the query k − Δ_h."""
    heads, depth, _ = weight.shape
    back = weight.flip(0).reshape(heads, depth, groups, -1).permute(0, 3, 2, 1).flatten(2)
    return hard_heads(grad, back, None, Geometry(_back(geometry.y), _back(geometry.x)), groups)


def _back(along: Along) -> Along:
    rest = along.span - 1
    return replace(along, before=rest - along.before, after=rest - along.after)


def _strided_image_gradient(
    grad: Tensor, weight: Tensor, sizes: torch.Size, geometry: Geometry, groups: int
) -> Tensor:
    """The gradients of all moves, each added where it came from."""
    y, x, (rows, cols) = geometry.y, geometry.x, grad.shape[2:]
    heads, depth, _ = weight.shape
    matrices = weight.reshape(heads * depth, groups, -1).transpose(0, 1)
    moves = matrices @ grad.unflatten(1, (groups, -1)).flatten(3)  # [N, groups, heads · channels, queries]
    moves = moves.unflatten(2, (heads, depth)).unflatten(4, (rows, cols))
    high, wide = sizes[0] + y.before + y.after, sizes[1] + x.before + x.after
    found = moves.new_zeros(*moves.shape[:2], depth, high, wide)
    for head in range(heads):
        top, left = head // x.taps * y.dilation, head % x.taps * x.dilation
        below, right = top + y.stride * (rows - 1) + 1, left + x.stride * (cols - 1) + 1
        found[..., top : below : y.stride, left : right : x.stride] += moves[:, :, head]
    return found[..., y.before : y.before + sizes[0], x.before : x.before + sizes[1]].flatten(1, 2)
