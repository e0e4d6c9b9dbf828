"""Tensors as TMA copies them, and how the kernels for Hopper are launched: what the host makes for them."""

# Triton has no stubs
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from lattend.attend.kernels.triton.shapes import padded
from lattend.plans.order import Order

OPTIONS = {"num_warps": 4, "maxnreg": 168}  # three groups of four warps, loader's included, at the beginning
NARROW_OPTIONS = {"num_warps": 4, "maxnreg": 128}  # four groups
IN_ORDER = Order()
ELEMENTS = {
    torch.bfloat16: gl.bfloat16,
    torch.float16: gl.float16,
    torch.float8_e4m3fn: gl.float8e4nv,
}


def described(rows: int, *tensors: Tensor, order: Order = IN_ORDER) -> list[Any]:
    """The tensors as TMA copies them, so many rows of an order at once."""
    if order == IN_ORDER:
        return [described_block(x, rows, padded(x.shape[-1])) for x in tensors]
    return [described_groups(x, rows, order) for x in tensors]


def described_groups(x: Tensor, rows: int, order: Order) -> Any:
    """A view [batch, heads, periods, period, size], of which rows of a group are copied at once."""
    (batch, heads, length, size), (of_batch, of_head, of_row, one) = x.shape, x.stride()
    shape = [batch, heads, length // order.period, order.period, size]
    strides = [of_batch, of_head, order.period * of_row, of_row, one]
    block = [1, 1, rows // order.group, order.group, padded(size)]
    layout: Any = gl.NVMMASharedLayout.get_default_for(block, ELEMENTS[x.dtype])
    return TensorDescriptor(x, shape, strides, block, layout)


def described_block(x: Tensor, rows: int, columns: int) -> Any:
    """A tensor as TMA copies it, so many rows and columns at once."""
    block = [1, 1, rows, columns]
    layout: Any = gl.NVMMASharedLayout.get_default_for(block, ELEMENTS[x.dtype])
    return TensorDescriptor.from_tensor(x, block, layout)


def processors(device: torch.device) -> int:
    """The multiprocessors of a GPU; an H200's where there is none."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 132


def described_boxes(x: Tensor, sizes: tuple[int, ...], box: tuple[int, ...]) -> Any:
    """Images [batch, heads, rows * cols, head_dim] as TMA copies them, such a box at once."""
    (batch, heads, _, size), (of_batch, of_head, of_row, one) = x.shape, x.stride()
    shape, strides = [batch, heads, *sizes, size], [of_batch, of_head, sizes[1] * of_row, of_row, one]
    block = [1, 1, *box, padded(size)]
    layout: Any = gl.NVMMASharedLayout.get_default_for(block, ELEMENTS[x.dtype])
    return TensorDescriptor(x, shape, strides, block, layout)


def described_numbers(step: int, x: Tensor) -> Any:
    """Numbers of queries [batch, heads, queries] as TMA copies them, those of a step at once."""
    layout = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=1)
    return TensorDescriptor(x, [x.numel()], [1], [step], layout)
