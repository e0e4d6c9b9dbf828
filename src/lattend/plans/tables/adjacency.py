"""Whether the positions of a part's tiles follow each other in memory, and how large its numbers become."""

from __future__ import annotations

from lattend.plans.part import Part
from lattend.plans.plan import max_magnitude
from lattend.rules.language import expr
from lattend.rules.language.expr import Num

BOXES = (1, 2, 4, 8, 16, 32, 64)  # rows that follow each other in a box


def in_order(part: Part) -> bool:
    """Whether positions follow each other in its tiles, outer and inner ones."""
    axis = part.axes[0]
    return len(part.axes) == 1 and axis.outer_order.period == axis.inner_order.period == 1


def in_boxes(part: Part, kernel: str) -> bool:
    """Whether TMA can copy the positions of its tiles, every l-th or c of each l, as boxes of rows.

    Numbers of queries are copied by themselves: those of every l-th query together, no others.
    """
    axis = part.axes[0]
    if len(part.axes) > 1 or not part.exact or part.data or axis.class_slots is not None:
        return False
    outer = (axis.outer_order, axis.outer_bases, axis.outer_size)
    inner = (axis.inner_order, axis.inner_bases, axis.inner_size)
    for order, bases, size in (outer, inner):
        whole = size % order.period == 0 and bases.min() >= 0 and bases.max() + order.group <= order.period
        if order.period > 1 and not (whole and order.group in BOXES):
            return False
    lone = kernel != "backward_dkdv" or axis.inner_order.group == 1
    return lone and not (axis.slots[0] % axis.outer_order.group).any()


def has_large_numbers(part: Part) -> bool:
    """Whether a number on the way to its bounds and conditions may need 64 bits."""
    literals = [node.value for node in expr.walk(expr.all_of(*part.branch)) if isinstance(node, Num)]
    written = max((abs(value) for value in (*part.numbers.values(), *literals)), default=0)
    return written >= 1 << 28 or max_magnitude(part) >= 1 << 30
