"""Prepared: a part of a plan with its tables on the device, and the arguments that every kernel takes."""

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

from lattend.attend.call import AttentionCall
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.kernels.triton.device_tables import table_numbers
from lattend.attend.kernels.triton.geometry import AXIS_NUMBERS, NUMBERS
from lattend.attend.kernels.triton.shapes import TileShape, padded
from lattend.attend.kernels.triton.source import Generated
from lattend.plans.order import Order
from lattend.plans.part import Part, largest
from lattend.recent import Recent
from lattend.rules.language import expr
from lattend.rules.language.expr import Num

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# Of float32: three products in TF32 are as exact as IEEE ones, four to seven times as fast. AMD has no TF32
EXACT_PRODUCTS = "ieee" if torch.version.hip else "tf32x3"
MOST_KNOWN = 64  # of the tables of one plan
REACH_32 = 1 << 31  # offsets from here on need 64 bits
Arrays = Mapping[str, Tensor]  # data by name, each [batch or 1, …]


@dataclass(frozen=True)
class Prepared:
    """A part with its tables on the device and the arguments that every kernel takes."""

    part: Part
    shape: TileShape
    functions: Generated
    table: Tensor  # [batch or 1, heads or 1, tiles, columns]
    header: Tensor
    data: tuple[Tensor, ...]
    row_bounds: Tensor | None = None  # of equal entries (device_tables.py)
    first_tiles: Tensor | None = None  # that add to each block of queries (hopper/query_order.py)
    known: Recent[object, dict[str, Any]] = field(default_factory=lambda: Recent(MOST_KNOWN))

    @property
    def tiles(self) -> int:
        return self.table.shape[-2]

    @property
    def tma(self) -> bool:
        """Whether inner rows are copied by TMA: asked for, and they follow each other."""
        return self.shape.tma and _inner_kinds(self.part, self.shape.step) in ((0,), (4,))

    def inner(self, *tensors: Tensor) -> tuple[Any, ...]:
        """The tensors whose rows are inner, as the kernel takes them."""
        if not self.tma:
            return tensors
        step = self.shape.step
        return tuple(TensorDescriptor.from_tensor(x, [1, 1, step, padded(x.shape[-1])]) for x in tensors)

    @property
    def strides(self) -> tuple[int, int]:
        """How many tiles to go on in the table for the next batch element and the next head."""
        batch, heads, tiles, _ = self.table.shape
        return (heads * tiles if batch > 1 else 0), (tiles if heads > 1 else 0)

    def constants(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> dict[str, Any]:
        """The compile-time arguments; remembered."""
        weighed = tuple(x is not None for x in (call.softcap, call.seed, call.key_range, call.key_mask))
        key = (q.dtype, q.shape[-1], v.shape[-1], _furthest(q, k, v) >= REACH_32, uses_tf32(), weighed)
        return self.known.find(key, lambda: self._constants(weighed, q, k, v))

    def _constants(self, weighed: tuple[bool, ...], q: Tensor, k: Tensor, v: Tensor) -> dict[str, Any]:
        axes, outer = self.part.axes, self.shape.outer
        return {
            "BOUNDS": self.functions.bounds,
            "REST": self.functions.rest,
            "BIAS": self.functions.bias,
            **dict(zip(("CAPPED", "DROPS", "PADDED", "HOLES"), weighed, strict=True)),
            "AXES": len(axes),
            "TY": outer[-2] if len(outer) > 1 else 1,
            "TX": outer[-1],
            "OUTER_KINDS": tuple(_kind(axis.outer_order) for axis in axes),
            "INNER_KINDS": _inner_kinds(self.part, self.shape.step),
            "BLOCK_M": self.shape.rows,
            "BLOCK_N": self.shape.step,
            "D": q.shape[-1],
            "DP": padded(q.shape[-1]),
            "DV": v.shape[-1],
            "DVP": padded(v.shape[-1]),
            "HAS_FULL": self.shape.split and self.part.knows_full,
            "TMA": self.tma,
            "PRECISION": EXACT_PRODUCTS if q.dtype == torch.float32 and not uses_tf32() else "tf32",
            "UPCAST": INTERPRETED,
            "WIDE": is_wide(self.part, q, k, v),
            "num_warps": self.shape.warps,
            "num_stages": self.shape.stages,
            "maxnreg": self.shape.registers,
        }


def _kind(order: Order) -> int:
    return 2 if order.group > 1 else int(order.period > 1)


def _inner_kinds(part: Part, step: int) -> tuple[int, ...]:
    """As geometry.py has them: 3 where blocks are listed, 4 where those have whole steps."""
    if part.block_table is not None:
        return (3 if part.block_table.inner % step else 4,)
    return tuple(_kind(axis.inner_order) for axis in part.axes)


def is_wide(part: Part, q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether a place in memory, or a number of the rule, may need 64 bits."""
    return _furthest(q, k, v) >= REACH_32 or has_large_numbers(part)


def has_large_numbers(part: Part) -> bool:
    """Whether a number on the way to its bounds and conditions may need 64 bits."""
    literals = [node.value for node in expr.walk(expr.all_of(*part.branch)) if isinstance(node, Num)]
    written = max((abs(value) for value in (*part.numbers.values(), *literals)), default=0)
    return written >= 1 << 28 or largest(part) >= 1 << 30


def _furthest(q: Tensor, k: Tensor, v: Tensor) -> int:
    return max(x.shape[2] * max(x.stride(2), x.shape[3]) for x in (q, k, v))


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
    if not name.startswith("__"):
        return part.numbers[name]
    what, array = name.split(" ", 1)
    whole = arrays[array]
    if what == "__stride":
        return whole.stride(0) if whole.shape[0] > 1 else 0
    return whole.shape[1 + int(what.removeprefix("__axis"))]
