"""Orders of positions (plans/order.py) in the kernels for Hopper.

ORDER is 0 where positions follow each other, else how many of each period do: slots are every period-th
position, or a few of each period. TMA copies them as boxes of a view [batch, heads, periods, period, size].
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from lattend.attend.kernels.triton.geometry import floor_divide


@gluon.jit
def position_of(slot, base, period, ORDER: gl.constexpr):
    """The position of a slot."""
    if ORDER == 0:
        return slot + base
    else:
        return slot // ORDER * period + slot % ORDER + base


@gluon.jit
def slots_below(position, base, period, ORDER: gl.constexpr):
    """How many slots of the class with this base lie below a position."""
    gap = position - base
    if ORDER > 0:
        whole = floor_divide(gap, period)
        gap = whole * ORDER + gl.minimum(gap - whole * period, ORDER)
    return gap


@gluon.jit
def corner(batch, head, slot, base, ORDER: gl.constexpr):
    """Where TMA begins to copy rows, from this slot on."""
    if ORDER == 0:
        return [batch, head, slot + base, 0]
    else:
        return [batch, head, slot // ORDER, base, 0]
