"""Hard heads on a GPU, step by step: keys laid out channels last, then one product that gathers them."""

# Kernels take plain numbers for constexpr
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import os
from functools import partial
from math import gcd
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from lattend.attend.kernels.triton.launch_replay import launch
from lattend.attend.seams import Recorder
from lattend.nn.convolution.geometry import Geometry
from lattend.nn.convolution.gpu import axis_taps
from lattend.nn.convolution.gpu.axis_taps import AxisTaps, padded, power_of_two
from lattend.nn.convolution.gpu.kernels import channels_last_kernel, heads_kernel, weight_gradient_kernel

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
LAYOUT = 64, 64  # the most pixels and channels of a tile that is laid out
RUN = 8  # the most neighbours that are written together

Edges = tuple[tuple[int, int], tuple[int, int]]  # before and after the rows, before and after the columns


class Image(NamedTuple):
    """Images in memory: how many numbers on the next image, group, row, pixel and channel begin."""

    tensor: Tensor
    image: int
    group: int
    row: int
    pixel: int
    channel: int
    depth: int  # channels of a group, with those that are padding
    begin: int  # of the first pixel that is no padding


def forward(
    recorder: Recorder,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    geometry: Geometry,
    groups: int,
    exact: bool,
) -> Tensor:
    """The output, [N, c_out, rows, cols], which lies in memory as x does."""
    y, across = axis_taps.forward(geometry.y, x.shape[2]), axis_taps.forward(geometry.x, x.shape[3])
    keys = _channels_last(recorder, x, groups, (y.edges(x.shape[2]), across.edges(x.shape[3])))
    matrices = _columns_first(recorder, weight, groups)
    out = _empty_like(recorder, x, (len(x), weight.shape[2], y.outputs, across.outputs))
    _gather(recorder, keys, matrices, bias, out, (y, across), geometry, groups, exact)
    return out


def backward(
    recorder: Recorder, grad: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, groups: int, exact: bool,
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of x, the weights and the bias that are wanted."""
    by_y, by_x = (
        axis_taps.backward(a, n) for a, n in zip((geometry.y, geometry.x), x.shape[2:], strict=True)
    )
    edges = (_widest(by_y, grad.shape[2]), _widest(by_x, grad.shape[3]))
    by_channel = x.dtype != torch.float32  # TF32 is multiplied along rows of memory: there, along pixels
    grads = None
    if wanted[0] or (wanted[1] and by_channel):
        grads = _channels_last(recorder, grad, groups, edges if wanted[0] else ((0, 0), (0, 0)))
    grad_x = grad_weight = grad_bias = None
    if wanted[0] and grads is not None:
        grad_x = _empty_like(recorder, x, tuple(x.shape))
        matrices = _channels_first(recorder, weight, groups)
        for y in by_y:
            for across in by_x:
                _gather(recorder, grads, matrices, None, grad_x, (y, across), geometry, groups, exact)
    if wanted[1]:
        grad_weight = _weight_gradient(
            recorder, grads if by_channel else None, grad, x, geometry, groups, exact
        )
    if wanted[2]:
        grad_bias = recorder.do(_sum_of_pixels, grad)
    return grad_x, grad_weight, grad_bias


def _sum_of_pixels(grad: Tensor) -> Tensor:
    return grad.sum((0, 2, 3))


def _widest(classes: list[AxisTaps], size: int) -> tuple[int, int]:
    before, after = zip(*(look.edges(size) for look in classes), strict=True)
    return max(before), max(after)


# Memory


def _empty_like(recorder: Recorder, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Room that lies in memory as x does: channels last, or pixels."""
    if not is_channels_last(x):
        return recorder.empty(shape, x.dtype, x.device)
    _, channels, rows, cols = shape
    return recorder.empty(shape, x.dtype, x.device, (rows * cols * channels, 1, cols * channels, channels))


def is_channels_last(x: Tensor) -> bool:
    """Whether x lies in memory channels last, and not also the other way."""
    return not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)


def _channels_last(recorder: Recorder, x: Tensor, groups: int, edges: Edges) -> Image:
    """The image with its padding, [N, groups, rows, cols, depth]; x itself where it is that."""
    batch, channels, rows, cols = x.shape
    channels //= groups
    (top, bottom), (left, right) = edges
    depth, high, wide = padded(channels), rows + top + bottom, cols + left + right
    if _is_laid_out(x, channels, depth, (top, bottom, left, right)):
        return Image(x, x.stride(0), channels, x.stride(2), x.stride(3), 1, depth, 0)
    laid = recorder.empty((batch, groups, high, wide, depth), x.dtype, x.device)
    _lay_out(recorder, x, laid, rows, cols, (top, left, high, wide), channels, groups)
    size = high * wide * depth
    return Image(laid, groups * size, size, wide * depth, depth, 1, depth, (top * wide + left) * depth)


def _is_laid_out(x: Tensor, channels: int, depth: int, edges: tuple[int, ...]) -> bool:
    strides = (x.stride(0), x.stride(2), x.stride(3))
    aligned = x.data_ptr() % 16 == 0 and not any(stride % 16 for stride in strides)
    return x.stride(1) == 1 and depth == channels and aligned and not any(edges)


def _lay_out(
    recorder: Recorder, x: Tensor, laid: Tensor, rows: int, cols: int, frame: tuple[int, ...], channels: int,
    groups: int,
) -> None:  # fmt: skip
    """Writes x [N, channels, rows, cols] into `laid`, framed by top, left, and the size of the whole."""
    depth, (high, wide) = laid.shape[-1], frame[2:]
    pixels, most = min(LAYOUT[0], power_of_two(high * wide)), gcd(depth, LAYOUT[1])
    programs = len(x) * groups * (depth // most) * -(-high * wide // pixels)
    arguments = (x, laid, *x.stride(), rows, cols, *frame, channels, groups)
    constants = {"DEPTH": depth, "CHANNELS_LAST": x.stride(1) == 1, "PIXELS": pixels, "CHANNELS": most}
    launch(recorder, channels_last_kernel, programs, arguments, constants)


class Matrices(NamedTuple):
    """Matrices of heads in memory: how many numbers on the next head, column and channel of a key begin."""

    tensor: Tensor
    head: int
    column: int
    depth: int


def _columns_first(recorder: Recorder, weight: Tensor, groups: int) -> Matrices:
    """W^(h) with a key's channels last, [heads, c_out, depth]; the weights where they do as they are."""
    heads, channels, c_out = weight.shape
    depth = padded(channels)
    whole = depth == channels and (c_out // groups) % 16 == 0
    if whole and _is_aligned(weight) and weight.dtype != torch.float32:  # TF32 is multiplied along rows
        return Matrices(weight, channels * c_out, 1, c_out)
    laid = recorder.empty((heads, c_out, depth), weight.dtype, weight.device)
    flat = recorder.do(_as_images, weight)
    _lay_out(recorder, flat, laid, 1, c_out, (0, 0, 1, c_out), channels, 1)
    return Matrices(laid, c_out * depth, depth, 1)


def _as_images(weight: Tensor) -> Tensor:
    return weight[:, :, None]


def _channels_first(recorder: Recorder, weight: Tensor, groups: int) -> Matrices:
    """W^(h) with a gradient's channels last, [heads, c_in, depth]; the weights where they are that."""
    _, channels, c_out = weight.shape
    columns = c_out // groups
    depth = padded(columns)
    if groups == 1 and depth == c_out and _is_aligned(weight):
        return Matrices(weight, channels * c_out, c_out, 1)
    laid = recorder.do(partial(_grouped, groups, depth), weight)
    return Matrices(laid, groups * channels * depth, depth, 1)


def _is_aligned(weight: Tensor) -> bool:
    return weight.is_contiguous() and weight.data_ptr() % 16 == 0


def _grouped(groups: int, depth: int, weight: Tensor) -> Tensor:
    parts = weight.unflatten(2, (groups, -1)).transpose(1, 2)  # [heads, groups, channels, columns]
    return pad(parts, (0, depth - parts.shape[3])).contiguous()


# Products


def _gather(
    recorder: Recorder, keys: Image, matrices: Matrices, bias: Tensor | None, out: Tensor,
    sight: tuple[AxisTaps, AxisTaps], geometry: Geometry, groups: int, exact: bool,
) -> None:  # fmt: skip
    """Fills the outputs that `sight` speaks of."""
    y, x = sight
    queries, columns = len(out) * y.outputs * x.outputs, out.shape[1] // groups
    tile = axis_taps.heads_tile(out.dtype, queries, columns, keys.depth)
    begin = keys.begin + y.begin * keys.row + x.begin * keys.pixel
    last, flat = is_channels_last(out), y.every == x.every == 1
    strides = out.stride()
    arguments = (
        keys.tensor, matrices.tensor, bias, out, queries, y.outputs, x.outputs, columns, groups,
        keys.image, keys.group, y.by * keys.row, x.by * keys.pixel, begin,
        y.step * keys.row, x.step * keys.pixel,
        matrices.head, matrices.column, matrices.depth,
        y.tap * geometry.x.taps + x.tap, y.next * geometry.x.taps, x.next,
        strides[0], strides[1], y.every * strides[2], x.every * strides[3],
        y.first * strides[2] + x.first * strides[3],
    )  # fmt: skip
    constants = {
        "DEPTH": keys.depth,
        "TAPS": y.taps * x.taps,
        "TAPS_X": max(1, x.taps),
        "CHANNELS_LAST": last,
        "COLUMNS_LAST": matrices.column == 1,
        "RUN": 0 if last or not flat else gcd(RUN, y.outputs * x.outputs),
        **_named(tile, out, exact),
    }
    programs = groups * -(-columns // tile.columns) * -(-queries // tile.rows)
    launch(recorder, heads_kernel, programs, arguments, constants)


def _weight_gradient(
    recorder: Recorder,
    grads: Image | None,
    grad: Tensor,
    x: Tensor,
    geometry: Geometry,
    groups: int,
    exact: bool,
) -> Tensor:
    """[heads, c_in / groups, c_out]: parts of the queries are summed apart, and then in their order."""
    y, across = axis_taps.forward(geometry.y, x.shape[2]), axis_taps.forward(geometry.x, x.shape[3])
    edges = y.edges(x.shape[2]), across.edges(x.shape[3])
    channels, columns = x.shape[1] // groups, grad.shape[1]
    by_pixel = grads is None
    if grads is None:
        keys, grads = (
            _pixels_last(recorder, x, groups, edges),
            _pixels_last(recorder, grad, groups, ((0, 0), (0, 0))),
        )
    else:
        keys = _channels_last(recorder, x, groups, edges)
    heads, rows = geometry.heads, geometry.heads * keys.depth
    tile = axis_taps.gradient_tile(x.dtype, rows, columns // groups, across.outputs)
    turns = len(x) * y.outputs * -(-across.outputs // tile.length)
    blocks = groups * -(-rows // tile.rows) * -(-(columns // groups) // tile.columns)
    each = -(-turns // max(1, axis_taps.PROGRAMS // blocks))
    splits = -(-turns // each)
    dtype = x.dtype if splits == 1 else torch.float32
    sums = recorder.empty((splits, heads, channels, columns), dtype, x.device)
    begin = keys.begin + y.begin * keys.row + across.begin * keys.pixel
    arguments = (
        keys.tensor, grads.tensor, sums, y.outputs, across.outputs, columns // groups, groups, turns, each,
        keys.image, keys.group, y.by * keys.row, across.by * keys.pixel, begin,
        y.step * keys.row, across.step * keys.pixel, keys.channel,
        grads.image, grads.group, grads.row, grads.pixel, grads.channel, grads.begin,
    )  # fmt: skip
    constants = {
        "CHANNELS": channels,
        "DEPTH": keys.depth,
        "COLUMNS": grads.depth,
        "HEADS": heads,
        "TAPS_X": geometry.x.taps,
        "PIXELS_LAST": by_pixel,
        "EVEN": across.outputs % tile.length == 0,
        **_named(tile, x, exact),
    }
    launch(recorder, weight_gradient_kernel, blocks * splits, arguments, constants)
    return recorder.do(partial(_summed, x.dtype), sums)


def _summed(dtype: torch.dtype, sums: Tensor) -> Tensor:
    return sums[0] if len(sums) == 1 else sums.sum(0).to(dtype)


def _pixels_last(recorder: Recorder, x: Tensor, groups: int, edges: Edges) -> Image:
    """The image with its padding, [N, channels, rows, cols]."""
    (top, bottom), (left, right) = edges
    if top or bottom or left or right:
        x = recorder.do(partial(_padded, (left, right, top, bottom)), x)
    elif not x.is_contiguous():
        x = recorder.do(Tensor.contiguous, x)
    channels, (_, _, rows, cols) = x.shape[1] // groups, x.shape
    size = rows * cols
    return Image(x, x.shape[1] * size, channels * size, cols, 1, size, channels, top * cols + left)


def _padded(edges: tuple[int, ...], x: Tensor) -> Tensor:
    return pad(x.contiguous(), edges)


def _named(tile: axis_taps.ProgramTile, x: Tensor, exact: bool) -> dict[str, Any]:
    each = (tile.rows + tile.columns) * tile.length * x.element_size()
    return {
        "BM": tile.rows,
        "BN": tile.columns,
        "BK": tile.length,
        "PRECISION": "tf32x3" if exact else "tf32",
        "UPCAST": INTERPRETED,
        "num_warps": tile.warps,
        "num_stages": max(1, min(tile.stages, _room(x.device) // each)),
    }


def _room(device: torch.device) -> int:
    """Bytes of shared memory that a program may have."""
    if device.type != "cuda":
        return 1 << 20
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin
