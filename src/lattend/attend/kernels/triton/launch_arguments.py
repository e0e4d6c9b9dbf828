"""LaunchArguments: a part of a plan with its tables on the device, and what every kernel takes besides."""

# Triton has no stubs
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.dropout import kept_share, limit_of
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.kernels.triton.device_tables import table_numbers
from lattend.attend.kernels.triton.geometry import AXIS_NUMBERS, NUMBERS
from lattend.attend.kernels.triton.shapes import boxed, padded
from lattend.attend.kernels.triton.source import Generated
from lattend.attend.kernels.triton.tables import REACH_32, furthest
from lattend.attend.replay.recorder import Recorder
from lattend.plans.order import Order
from lattend.plans.part import Part
from lattend.plans.tables.tile_costs import TileShape
from lattend.recent import Recent

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# Of float32: three products in TF32 are as exact as IEEE ones, four to seven times as fast. AMD has no TF32
EXACT_PRODUCTS = "ieee" if torch.version.hip else "tf32x3"
MOST_KNOWN = 64  # of the tables of one plan
Arrays = Mapping[str, Tensor]  # data by name, each [batch or 1, …]


@dataclass(frozen=True)
class Joined:
    """A part that joins another (fused_parts.py): the table of that has its columns."""

    bounds: Any
    header: Tensor


@dataclass(frozen=True)
class LaunchArguments:
    """A part with its tables on the device and the arguments that every kernel takes."""

    part: Part
    shape: TileShape
    functions: Generated
    table: Tensor  # [batch or 1, heads or 1, tiles, columns]
    header: Tensor
    data: tuple[Tensor, ...]
    row_bounds: Tensor | None = None  # of equal entries (device_tables.py)
    joined: Joined | None = None
    chunks: Tensor | None = None  # of each tile (chunks.py); the table's rows are these
    even: bool = False  # whether nearly all tiles have as many steps, so that none need come first
    shares: tuple[Tensor, Tensor] | None = None  # on images: which tiles a program takes (image_tables.py)
    leaves: int = 0  # so many groups of warps leave out steps, as the table says (skippable_steps.py)
    wide: bool = False  # whether a number of the rule or of a bias, or a place in an array, needs 64 bits
    known: Recent[object, dict[str, Any]] = field(default_factory=lambda: Recent(MOST_KNOWN))

    @property
    def tiles(self) -> int:
        return self.table.shape[-2]

    @property
    def boxed(self) -> bool:
        """Whether TMA copies boxes of an image."""
        return boxed(self.part, self.shape)

    @property
    def tma(self) -> bool:
        """Whether inner rows are copied by TMA: asked for, and they follow each other or lie in boxes."""
        follow = _inner_kinds(self.part, self.shape.step) in ((0,), (4,))
        return self.boxed or (self.shape.tma and follow)

    def inner(self, *tensors: Tensor) -> tuple[Any, ...]:
        """The tensors whose rows are inner, as the kernel takes them."""
        if self.boxed:
            sizes = tuple(axis.inner_size for axis in self.part.axes)
            return tuple(_boxes(x, sizes, self.shape.inner) for x in tensors)
        if not self.tma:
            return tensors
        step = self.shape.step
        return tuple(TensorDescriptor.from_tensor(x, [1, 1, step, padded(x.shape[-1])]) for x in tensors)

    def outer(self, *tensors: Tensor) -> tuple[Any, ...]:
        """The tensors whose rows are a tile's own, as the kernel takes them."""
        if not self.boxed:
            return tensors
        sizes = tuple(axis.outer_size for axis in self.part.axes)
        return tuple(_boxes(x, sizes, self.shape.outer) for x in tensors)

    @property
    def strides(self) -> tuple[int, int]:
        """How many tiles to go on in the table for the next batch element and the next head."""
        batch, heads, tiles, _ = self.table.shape
        return (heads * tiles if batch > 1 else 0), (tiles if heads > 1 else 0)

    def constants(
        self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, *others: Tensor
    ) -> dict[str, Any]:
        """The compile-time arguments; remembered. `others` have rows too that are read or written."""
        drops = 0 if call.seed is None else 2 if call.seed.numel() > 1 else 1  # 2: a part of a larger call
        weighed = (call.softcap is not None, drops, call.key_range is not None, call.key_mask is not None)
        wide = self.wide or furthest(q, k, v, *others) >= REACH_32
        key = (q.dtype, q.shape[-1], v.shape[-1], wide, uses_tf32(), weighed)
        return self.known.find(key, lambda: self._constants(weighed, wide, q, v))

    def _constants(self, weighed: tuple[bool | int, ...], wide: bool, q: Tensor, v: Tensor) -> dict[str, Any]:
        axes, outer = self.part.axes, self.shape.outer
        return {
            "BOUNDS": self.functions.bounds,
            "REST": self.functions.rest,
            "BIAS": self.functions.bias,
            **dict(zip(("CAPPED", "DROPS", "PADDED", "HOLES"), weighed, strict=True)),
            "AXES": len(axes),
            "TY": outer[-2] if len(outer) > 1 else 1,
            "TX": outer[-1],
            "OUTER_KINDS": tuple(order_kind(axis.outer_order) for axis in axes),
            "INNER_KINDS": _inner_kinds(self.part, self.shape.step),
            "BLOCK_M": self.shape.rows,
            "BLOCK_N": self.shape.step,
            "D": q.shape[-1],
            "DP": padded(q.shape[-1]),
            "DV": v.shape[-1],
            "DVP": padded(v.shape[-1]),
            "HAS_FULL": self.shape.split and self.part.knows_full,
            "TMA": self.tma,
            "BOX": self.shape.inner[-1] if self.boxed else 0,
            "PRECISION": EXACT_PRODUCTS if q.dtype == torch.float32 and not uses_tf32() else "tf32",
            "UPCAST": INTERPRETED,
            "WIDE": wide,
            "num_warps": self.shape.warps,
            "num_stages": self.shape.stages,
            "maxnreg": self.shape.registers,
        }


def weighing(recorder: Recorder, call: AttentionCall, unused: Tensor) -> tuple[Any, ...]:
    """The arguments about scores and weights: scale, softcap, seed, limit and share of dropout, padding."""
    softcap, seed = call.softcap or 1.0, unused if call.seed is None else call.seed
    real = unused if call.key_range is None else recorder.do(Tensor.contiguous, call.key_range)
    mask, row = unused, 0
    if call.key_mask is not None:
        mask, row = recorder.do(_as_bytes, call.key_mask), call.key_mask.shape[1]
    return call.scale, softcap, seed, limit_of(call.dropout), kept_share(call.dropout), real, mask, row


def _as_bytes(mask: Tensor) -> Tensor:
    return mask.contiguous().view(torch.uint8)


def _boxes(x: Tensor, sizes: tuple[int, ...], box: tuple[int, ...]) -> TensorDescriptor:
    """The descriptor of such boxes of the images [batch, heads, rows * cols, head_dim]."""
    (batch, heads, _, size), (of_batch, of_head, of_row, one) = x.shape, x.stride()
    shape, strides = [batch, heads, *sizes, size], [of_batch, of_head, sizes[1] * of_row, of_row, one]
    return TensorDescriptor(x, shape, strides, [1, 1, *box, padded(size)])


def order_kind(order: Order) -> int:
    """As geometry.py has them: 0 in order, 1 every period-th, 2 group out of period."""
    return 2 if order.group > 1 else int(order.period > 1)


def _inner_kinds(part: Part, step: int) -> tuple[int, ...]:
    """As geometry.py has them: 3 where blocks are listed, 4 where those have whole steps."""
    if part.block_table is not None:
        return (3 if part.block_table.inner % step else 4,)
    return tuple(order_kind(axis.inner_order) for axis in part.axes)


def header_numbers(part: Part, functions: Generated, arrays: Arrays) -> list[int]:
    """The numbers of a part that kernels read from memory, in the order of geometry.py."""
    found: list[int] = []
    for place, axis in enumerate(part.axes):
        later = part.axes[place + 1 :]
        found += [
            axis.outer_order.period,
            axis.outer_order.group,
            axis.inner_order.period,
            axis.inner_order.group if part.block_table is None else part.block_table.inner,
            axis.outer_size,
            axis.inner_size,
            prod(other.outer_size for other in later),
            prod(other.inner_size for other in later),
            axis.first,
            axis.last,
            axis.class_slots if axis.class_slots is not None else REACH_32 - 1,
            0,
        ]
    found += [0] * (NUMBERS - AXIS_NUMBERS * len(part.axes))
    return found + [_number(name, part, arrays) for name in functions.numbers] + table_numbers(part, arrays)


def _number(name: str, part: Part, arrays: Arrays) -> int:
    """A number of the rule, or of an array it looks up."""
    if name.startswith("literal "):
        return part.template.literals[int(name.removeprefix("literal "))]
    return array_number(name, arrays) if name.startswith("__") else part.numbers[name]


def array_number(name: str, arrays: Arrays) -> int:
    """A stride from one batch element to the next, or the size of an axis: `__stride doc`, `__axis0 doc`."""
    what, array = name.split(" ", 1)
    whole = arrays[array]
    if what == "__stride":
        return whole.stride(0) if whole.shape[0] > 1 else 0
    return whole.shape[1 + int(what.removeprefix("__axis"))]
