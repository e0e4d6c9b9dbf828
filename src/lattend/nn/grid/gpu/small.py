"""Small images on the GPU: what surrounds the wavefront in one launch each, to spare the host.

Large images leave their products to torch, whose matrix products are the faster the more there is to do.
"""

from __future__ import annotations

from math import prod
from typing import Any

from torch import Tensor

from lattend.attend.kernels.triton import launch_replay
from lattend.attend.seams import Recorder, contiguous_strides
from lattend.nn.grid.cells import Edges, Flips, GridOptions
from lattend.nn.grid.gpu.backend import (
    Shape,
    contiguous,
    empty,
    padded,
    parts_of,
    precision,
    room_of,
    run_forward,
    shape_of,
)
from lattend.nn.grid.gpu.products import grid_gradients_kernel, grid_inputs_kernel, grid_join_kernel
from lattend.nn.grid.layout import RowMajorLayout

MOST_PIXELS = 1024  # of all images: a program sums over them, one block after another
MOST_PRODUCTS = 1 << 26  # multiply-adds of all weights
TILE, LENGTH = 32, 64  # sides of a program's tile, and of a product's block


def cdiv(a: int, b: int) -> int:
    """How many blocks of b cover a."""
    return -(-a // b)


def fits(how: GridOptions, x: Tensor, left: Tensor) -> bool:
    """Whether the images are small enough."""
    pixels, size = x[..., 0].numel(), left.shape[-1]
    products = pixels * len(how.flips) * how.cell.gates * size * (x.shape[-1] + 2 * size)
    return pixels <= MOST_PIXELS and products <= MOST_PRODUCTS


def forward(
    recorder: Recorder, how: GridOptions, layout: RowMajorLayout, x: Tensor, into: Tensor, bias: Tensor |
    None, left: Tensor, top: Tensor, edges: Edges, mask: Tensor | None,
) -> Tensor:  # fmt: skip
    """One tensor with the states h and c, their edges, and the gates if they are to be saved; see `parts`."""
    into, left, top = (contiguous(recorder, w) for w in (into, left, top))
    bias, *sides = (None if e is None else contiguous(recorder, e) for e in (bias, *edges))
    directions, batch, rows, cols = layout.shape
    size, height = left.shape[-1], how.cell.gates * left.shape[-1]
    pre = empty(recorder, layout, x, height)
    room = room_of(recorder, x, _shapes(how, layout, size))
    h, c, gates = parts(recorder, how, layout, size, room)
    constants = _constants(how, x, size)
    wide = constants["BN"]
    tiles = directions * cdiv(batch * rows * cols, TILE) * cdiv(height, wide)
    around = cdiv(directions * batch * (rows + cols + 1), TILE)
    sums = (x, into, bias, pre, h, c, *sides, *_pixels(how, x), tiles)
    launch_replay.launch(recorder, grid_inputs_kernel, tiles + around, sums, constants)
    run_forward(recorder, how.cell, layout, pre, h, c, gates, left, top, mask)
    return room


def parts(
    recorder: Recorder, how: GridOptions, layout: RowMajorLayout, size: int, room: Tensor
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The states h and c with their edges, and the gates, of what forward gave."""
    found: Any = parts_of(recorder, room, _shapes(how, layout, size))
    return found


def _shapes(how: GridOptions, layout: RowMajorLayout, size: int) -> list[Shape | None]:
    directions, batch, rows, cols = layout.shape
    frame = (directions, batch, rows + 1, cols + 1, size)
    saves = how.save_gates and how.cell.name != "rnn"
    return [frame, frame if how.cell.name == "lstm" else None, shape_of(layout, 5 * size) if saves else None]


def gradients(
    recorder: Recorder, how: GridOptions, wanted: tuple[bool, ...], x: Tensor, into: Tensor, bias: Tensor |
    None, left: Tensor, top: Tensor, h: Tensor, d_pre: Tensor, d_hidden: Tensor,
) -> list[Tensor | None]:  # fmt: skip
    """The gradients of x, into, bias, left and top; None where none is wanted."""
    into = contiguous(recorder, into)
    size, channels = left.shape[-1], x.shape[-1]
    found = [
        recorder.empty(of.shape, of.dtype, of.device) if asked and of is not None else None
        for of, asked in zip((x, into, bias, left, top), wanted, strict=False)
    ]
    constants = _constants(how, x, size)
    wide = constants["BN"]
    columns = (channels, size, size)
    of_weights = [
        cdiv(n, wide) if out is not None else 0
        for n, out in zip(columns, (found[1], *found[3:]), strict=True)
    ]
    parts = sum(of_weights) + (found[2] is not None)
    tiles = parts * len(how.flips) * cdiv(how.cell.gates * size, TILE)
    of_x = 0 if found[0] is None else cdiv(x[..., 0].numel(), TILE) * cdiv(channels, wide)
    if tiles + of_x > 0:
        constants |= dict(zip(("OF_INTO", "OF_LEFT", "OF_TOP"), of_weights, strict=True)) | {
            "PARTS": max(1, parts)
        }
        given = (x, into, h, d_pre, d_hidden, *found, *_pixels(how, x), tiles)
        launch_replay.launch(recorder, grid_gradients_kernel, tiles + of_x, given, constants)
    return found


def joined(recorder: Recorder, flips: Flips, layout: RowMajorLayout, size: int, room: Tensor) -> Tensor:
    """The maps of all directions side by side in the order of the image, [batch, rows, cols, D*h]."""
    directions, batch, rows, cols = layout.shape
    strides, first = contiguous_strides((directions, batch, rows + 1, cols + 1, size)), (cols + 2) * size
    if flips == ((),):
        return recorder.part(room, (batch, rows, cols, size), strides[1:], first)
    maps = recorder.part(room, (directions, batch, rows, cols, size), strides, first)
    found = recorder.empty((batch, rows, cols, directions * size), maps.dtype, maps.device)
    _join(recorder, flips, maps, found, apart=False)
    return found


def parted(recorder: Recorder, flips: Flips, grad: Tensor) -> Tensor:
    """The gradient at `joined` as each direction meets it, [D, batch, rows, cols, h]."""
    if flips == ((),):
        return grad  # whose first axis nobody asks for
    *images, width = grad.shape
    found = recorder.empty((len(flips), *images, width // len(flips)), grad.dtype, grad.device)
    _join(recorder, flips, found, grad, apart=True)
    return found


def _join(recorder: Recorder, flips: Flips, maps: Tensor, joint: Tensor, *, apart: bool) -> None:
    directions, *images, size = maps.shape
    constants = {"H": size, "APART": apart, "BM": TILE, "BN": min(64, padded(size)), "num_warps": 4}
    numbers = (*images, _flip_bits(flips), *maps.stride()[:3], *joint.stride())
    launch_replay.launch(
        recorder, grid_join_kernel, directions * cdiv(prod(images), TILE), (maps, joint, *numbers), constants
    )


def _pixels(how: GridOptions, x: Tensor) -> tuple[int, ...]:
    """What the kernels ask of the image: its sizes, its strides, and how each direction sees it."""
    return *x.shape[:3], *x.stride(), _flip_bits(how.flips)


def _flip_bits(flips: Flips) -> int:
    """Two bits for each direction: 1 if it goes up, 2 if it goes left.

    >>> _flip_bits(((), (2,), (1,), (1, 2)))  # 0 + 2*4 + 1*16 + 3*64
    216
    """
    return sum(((1 in axes) + 2 * (2 in axes)) << 2 * d for d, axes in enumerate(flips))


def _constants(how: GridOptions, x: Tensor, size: int) -> dict[str, Any]:
    sizes = {"D": len(how.flips), "C": x.shape[-1], "G": how.cell.gates, "H": size}
    tile = {"BM": TILE, "BN": TILE, "BK": LENGTH, "num_warps": 4}
    return sizes | tile | precision(x)
