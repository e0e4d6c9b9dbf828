"""Where weights stay on the chip for a whole lstm or gru, and the launches that hold them there."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from lattend.attend.seams import Recorder, has_gluon
from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.gpu.launch import INTERPRETED, GridShape, launch
from lattend.nn.grid.layout import RowMajorLayout

ROW_BLOCK = 16  # rows of a program: a product's columns
SIZES = (64, 128)  # of h: a product takes 64 units for each four warps, and no more than these fit
DTYPES = (torch.bfloat16, torch.float16)
HOPPER = (9, 0)  # the architecture for which the kernels are written
MOST_NUMBERS = 1 << 31  # of an image's gates: their places are counted with 32 bits
IN_REGISTERS = {64: 0, 128: 4}  # matrices [h, h] of the weights, by h; the others are in shared memory


def fits(cell: CellKind, layout: RowMajorLayout, weights: Tensor) -> bool:
    """Whether the weights of all gates are held, on this GPU."""
    *_, rows, cols = layout.shape
    size = weights.shape[-1]
    return (
        cell.name != "rnn"
        and size in SIZES
        and weights.dtype in DTYPES
        and (rows + 1) * (cols + 1) * 5 * size < MOST_NUMBERS
        and on_hopper(weights)
    )


def on_hopper(x: Tensor) -> bool:
    """Whether a tensor is on a GPU with the kernels' instructions, and Triton has their language."""
    if not x.is_cuda or INTERPRETED or torch.version.hip is not None or not has_gluon():
        return False
    return torch.cuda.get_device_capability(x.device) == HOPPER


def forward(
    recorder: Recorder, cell: CellKind, grid: GridShape, pre: Tensor, h: Tensor, c: Tensor | None,
    gates: Tensor | None, left: Tensor, top: Tensor, mask: Tensor | None,
) -> None:  # fmt: skip
    """Fills the states, in which the edges are, and the gates if there are any."""
    from lattend.nn.grid.gpu.hopper_forward import grid_hopper_fwd_kernel  # not every Triton has Gluon

    constants = _constants(cell, left.shape[-1], mask) | {"SAVE": gates is not None}
    hand = _hand(recorder, cell, grid, h, h.dtype)
    launch(recorder, grid_hopper_fwd_kernel, (pre, h, c, gates, mask, left, top, hand), grid, constants)


def backward(
    recorder: Recorder, cell: CellKind, grid: GridShape, grad_h: Tensor, grad_c: Tensor | None, h: Tensor,
    c: Tensor | None, gates: Tensor | None, mask: Tensor | None, left: Tensor, top: Tensor, d_pre: Tensor,
    d_hidden: Tensor, d_state: Tensor,
) -> None:  # fmt: skip
    """Fills the gradients at pre, at W_left h_left + W_top h_top, and at c of an lstm or h of a gru."""
    from lattend.nn.grid.gpu.hopper_backward import grid_hopper_bwd_kernel

    hand = _hand(recorder, cell, grid, h, torch.float32)
    tensors = (grad_h, grad_c, h, c, gates, mask, left, top, d_pre, d_hidden, d_state, hand)
    launch(recorder, grid_hopper_bwd_kernel, tensors, grid, _constants(cell, left.shape[-1], mask))


def _hand(
    recorder: Recorder, cell: CellKind, grid: GridShape, h: Tensor, dtype: torch.dtype
) -> Tensor | None:
    """Room for what row blocks hand on, all bits set; None where there is one row block."""
    row_blocks = -(-grid.rows // ROW_BLOCK)
    if row_blocks == 1:
        return None
    whole = {2: torch.int16, 4: torch.int32}[dtype.itemsize]
    shape = grid.images, row_blocks, grid.cols, (2 if cell.name == "lstm" else 1) * h.shape[-1]
    return recorder.do(partial(_all_bits, shape, whole, dtype, h.device))


def _all_bits(shape: tuple[int, ...], whole: torch.dtype, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full(shape, -1, dtype=whole, device=device).view(dtype)


def _constants(cell: CellKind, size: int, mask: Tensor | None) -> dict[str, Any]:
    return {
        "CELL": cell.name,
        "G": cell.gates,
        "H": size,
        "MASKED": mask is not None,
        "BR": ROW_BLOCK,
        "HELD": IN_REGISTERS[size],
        "num_warps": size // 16,
    }
