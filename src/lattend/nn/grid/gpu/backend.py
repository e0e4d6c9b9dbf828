"""The recurrence on the GPU: which kernel, with which blocks, on which tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from lattend.attend.seams import Recorder, contiguous_strides
from lattend.nn.grid.cells import CellKind, Edges
from lattend.nn.grid.gpu import weights_on_chip
from lattend.nn.grid.gpu.launch import INTERPRETED, GridShape, launch
from lattend.nn.grid.gpu.resident import grid_rnn_kernel
from lattend.nn.grid.gpu.streamed import grid_bwd_kernel, grid_fwd_kernel
from lattend.nn.grid.layout import RowMajorLayout, framed

ROW_BLOCK = (
    16  # rows of a program: the least that a matrix product takes, so that the most programs share the work
)
CHUNK = 4  # columns handed on together: fewer wait longer for flags, more wait longer for columns
ON_CHIP = 1 << 16  # bytes of two weight matrices that are held on the chip
BUFFER = 96 << 10  # bytes of weights that are read at a time,
SHARED = 200 << 10  # and of all that are under way
ALIGNED = 64  # numbers: parts of a room begin at a multiple of them
Shape = tuple[int, ...]


class BlockSizes(NamedTuple):
    """Columns of a state at a time, length of a product at a time, warps, loads ahead."""

    columns: int
    length: int
    warps: int
    stages: int


def forward(
    recorder: Recorder, cell: CellKind, layout: RowMajorLayout, pre: Tensor, left: Tensor, top: Tensor, edges:
    Edges, mask: Tensor | None, save_gates: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    """The states h and c with their edges, and the gates [D, pixels, 5h] if they are to be saved.

    pre [D, pixels, gates*h]; left, top [D*gates*h, h]; mask [D, pixels]. h and c are
    [D, batch, rows + 1, cols + 1, h], with the edges in row 0 and column 0.
    """
    left, top = contiguous(recorder, left), contiguous(recorder, top)
    size, sides = left.shape[-1], cast("Any", edges)
    h = recorder.do(partial(framed, layout, size), pre, *sides[:2])
    c = recorder.do(partial(framed, layout, size), pre, *sides[2:]) if cell.name == "lstm" else None
    gates = empty(recorder, layout, pre, 5 * size) if save_gates and cell.name != "rnn" else None
    run_forward(recorder, cell, layout, pre, h, c, gates, left, top, mask)
    return h, c, gates


def run_forward(
    recorder: Recorder, cell: CellKind, layout: RowMajorLayout, pre: Tensor, h: Tensor, c: Tensor | None,
    gates: Tensor | None, left: Tensor, top: Tensor, mask: Tensor | None,
) -> None:  # fmt: skip
    """Fills the states, in which the edges are, and the gates if there are any; weights are contiguous."""
    size, grid = left.shape[-1], GridShape.of(layout)
    constants = _constants(cell, size, pre, mask)
    if _on_chip(cell, size, pre):
        constants |= {"BACKWARD": False, "HP": padded(size), "num_warps": 8 if size > 64 else 4}
        launch(recorder, grid_rnn_kernel, (pre, h, h, mask, left, top), grid, constants)
        return
    if weights_on_chip.fits(cell, layout, left):
        weights_on_chip.forward(recorder, cell, grid, pre, h, c, gates, left, top, mask)
        return
    blocks = _blocks(size, size, 2 * cell.gates, pre)
    constants |= {"CELL": cell.name, "G": cell.gates, "SAVE": gates is not None, **_named(blocks)}
    launch(recorder, grid_fwd_kernel, (pre, h, c, gates, mask, left, top), grid, constants)


def backward(
    recorder: Recorder, cell: CellKind, layout: RowMajorLayout, grad_h: Tensor, grad_c: Tensor | None, left:
    Tensor, top: Tensor, h: Tensor, c: Tensor | None, gates: Tensor | None, mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """The gradients at pre, at W_left h_left + W_top h_top, and at c of an lstm or h of a gru.

    grad_h and grad_c are [D, batch, rows, cols, h]; the gradients are [D, pixels, ..].
    """
    grad_h, left, top = (contiguous(recorder, x) for x in (grad_h, left, top))
    grad_c = None if grad_c is None else contiguous(recorder, grad_c)
    size, grid = left.shape[-1], GridShape.of(layout)
    constants = _constants(cell, size, grad_h, mask)
    if _on_chip(cell, size, grad_h):
        d_pre = empty(recorder, layout, grad_h, size)
        constants |= {"BACKWARD": True, "HP": padded(size), "num_warps": 4}
        launch(recorder, grid_rnn_kernel, (grad_h, d_pre, h, mask, left, top), grid, constants)
        return d_pre, d_pre, None
    height = shape_of(layout, cell.gates * size)
    of_hidden, of_state = cell.name == "gru", cell.name != "rnn"
    shapes = (height, height if of_hidden else None, shape_of(layout, size) if of_state else None)
    parts: Any = parts_of(recorder, room_of(recorder, grad_h, shapes), shapes)
    d_pre, d_hidden, d_state = parts[0], parts[1] if of_hidden else parts[0], parts[2]
    if weights_on_chip.fits(cell, layout, left):
        tensors = (grad_h, grad_c, h, c, gates, mask, left, top, d_pre, d_hidden, d_state)
        weights_on_chip.backward(recorder, cell, grid, *tensors)
        return d_pre, d_hidden, d_state
    blocks = _blocks(size, cell.gates * size, 2, grad_h)
    constants |= {"CELL": cell.name, "G": cell.gates, **_named(blocks)}
    tensors = (grad_h, grad_c, h, c, gates, mask, left, top, d_pre, d_hidden, d_state)
    launch(recorder, grid_bwd_kernel, tensors, grid, constants)
    return d_pre, d_hidden, d_state


def contiguous(recorder: Recorder, x: Tensor) -> Tensor:
    """The same numbers, contiguous."""
    return x if x.is_contiguous() else recorder.do(Tensor.contiguous, x)


def shape_of(layout: RowMajorLayout, width: int) -> Shape:
    """The shape of so many numbers a pixel."""
    directions, *images = layout.shape
    return directions, prod(images), width


def empty(recorder: Recorder, layout: RowMajorLayout, like: Tensor, width: int) -> Tensor:
    """Room for so many numbers a pixel."""
    return recorder.empty(shape_of(layout, width), like.dtype, like.device)


def room_of(recorder: Recorder, like: Tensor, shapes: Sequence[Shape | None]) -> Tensor:
    """One tensor with room for tensors of these shapes, which takes the host less than several."""
    return recorder.empty((sum(_rounded(shape) for shape in shapes if shape),), like.dtype, like.device)


def parts_of(recorder: Recorder, room: Tensor, shapes: Sequence[Shape | None]) -> list[Tensor | None]:
    """The tensors of these shapes in a room for them."""
    found: list[Tensor | None] = []
    begin = 0
    for shape in shapes:
        found.append(recorder.part(room, shape, contiguous_strides(shape), begin) if shape else None)
        begin += _rounded(shape) if shape else 0
    return found


def _rounded(shape: Shape) -> int:
    return -(-prod(shape) // ALIGNED) * ALIGNED


def _constants(cell: CellKind, size: int, x: Tensor, mask: Tensor | None) -> dict[str, Any]:
    return {
        "NAME": cell.activation,
        "H": size,
        "MASKED": mask is not None,
        "BR": ROW_BLOCK,
        "CHUNK": CHUNK,
        **precision(x),
    }


def precision(x: Tensor) -> dict[str, Any]:
    """How kernels multiply numbers of this dtype."""
    return {"PRECISION": "tf32x3" if x.dtype == torch.float32 else "tf32", "UPCAST": INTERPRETED}


def _on_chip(cell: CellKind, size: int, x: Tensor) -> bool:
    """Whether the weights stay on the chip for the whole wavefront."""
    return cell.name == "rnn" and 2 * padded(size) ** 2 * x.element_size() <= ON_CHIP


def _blocks(size: int, length: int, matrices: int, x: Tensor) -> BlockSizes:
    """Blocks for products of this length that give `size` numbers, with so many weight matrices at a time.

    Narrow row blocks and wide blocks were the fastest of those tried: each step reads all weights from the
    cache that the programs share, and few turns of the loop hide more of that.
    """
    columns = min(256 if matrices == 2 else 128, padded(size))
    each = matrices * columns * x.element_size()
    fitting = [k for k in (64, 32, 16) if k * each <= BUFFER]
    deep = min(fitting[0] if fitting else 16, padded(length))
    return BlockSizes(columns, deep, 8 if columns > 64 else 4, 3 if 2 * deep * each <= SHARED else 2)


def _named(blocks: BlockSizes) -> dict[str, int]:
    names = ("BN", "BK", "num_warps", "num_stages")
    return dict(zip(names, blocks, strict=True))


def padded(size: int) -> int:
    """The next power of two; a matrix product takes at least 16."""
    return max(16, 1 << (size - 1).bit_length())
