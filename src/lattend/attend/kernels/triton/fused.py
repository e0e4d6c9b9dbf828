"""When one kernel makes all gradients (hopper/backward_fused.py): where it is expected to take less time."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lattend.attend.call import AttentionCall
from lattend.attend.kernels.triton.hopper.query_order import by_keys, first_tiles
from lattend.attend.kernels.triton.kernel import may_take_hopper
from lattend.attend.kernels.triton.shapes import FUSED_ROW, FUSED_SHAPE, Choice, choose, fused_cost, padded
from lattend.attend.kernels.triton.tables import in_order
from lattend.plans.plan import Plan


@dataclass(frozen=True)
class FusedBackward:
    """What the kernel takes for each part, keys outside; whether all add to the queries' gradient in order.

    The nanoseconds are those of one head of one batch element, with what comes before and after.
    """

    parts: tuple[Choice, ...]
    ordered: bool
    nanoseconds: float


def fused_backward(found: Plan, call: AttentionCall, q: Tensor, v: Tensor) -> FusedBackward | None:
    """The choice of this kernel for a call, None where two kernels are expected to be sooner, or it cannot.

    It takes what the kernel for keys and values takes on Hopper, for heads of 65 to 128 numbers. Where
    gradients are to be the same on every run, it must be known in which order tiles add to a query.
    """
    size, places = max(q.shape[-1], v.shape[-1]), range(len(found.transposed))
    takes = may_take_hopper(call, q, v, "backward_dkdv") and may_take_hopper(call, q, v, "backward_dq")
    if not takes or padded(size) != 128 or not all(map(in_order, found.transposed)):
        return None
    ordered = call.deterministic
    if ordered and not all(has_order(found, place) for place in places):
        return None
    parts = tuple(fused_cost(found, place, ordered=ordered) for place in places)
    own = sum(part.nanoseconds for part in parts) + FUSED_ROW * q.shape[2]
    kernels = {"backward_dq": found.parts, "backward_dkdv": found.transposed}
    others = sum(
        choose(found, place, kernel, size, q.dtype, hopper=True).nanoseconds
        for kernel, of_kernel in kernels.items()
        for place in range(len(of_kernel))
    )
    return FusedBackward(parts, ordered, own) if own < others else None


def has_order(found: Plan, place: int) -> bool:
    """Whether it is known in which order the tiles of a part add to the gradient of a query."""
    part = found.transposed[place]
    if part.cut_by or part.block_table is not None:  # data say which queries a tile meets
        return False
    table = by_keys(found.tiles(place, FUSED_SHAPE.outer, transposed=True).table)
    return first_tiles(table, part.axes[0].inner_size, FUSED_SHAPE.step) is not None
