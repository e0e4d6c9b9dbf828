"""Roofline: the least time a machine needs for a cost, by its arithmetic or by its memory.

A multiply and the add after it are two operations. Arithmetic is no faster than the machine multiplies large
matrices, memory no faster than it copies what must be moved at least once: inputs and parameters read, the
result written. Whichever takes longer is the floor. Nothing here is fitted to a run of attention.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lattend.cost.amount import ZERO, Amount
from lattend.cost.layer import Layer
from lattend.errors import DomainError
from lattend.machines import Machine, machine
from lattend.report.numbers import seconds
from lattend.report.shown import Shown

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

ARITHMETIC, MEMORY = "arithmetic", "memory"


@dataclass(frozen=True)
class Floor(Shown):
    """The least time of a cost on a machine, and what it is bound by."""

    JSON = "seconds bound_by=binds operations bytes"

    machine: Machine
    operations: int
    bytes: int
    arithmetic: float  # seconds of its products
    memory: float  # seconds of its compulsory traffic
    seconds: float
    width: int | None  # bytes of its numbers; None where they are of several formats

    @property
    def binds(self) -> str:
        """The bottleneck: arithmetic or memory."""
        return ARITHMETIC if self.arithmetic >= self.memory else MEMORY

    def __str__(self) -> str:
        numbers = "" if self.width is None else f" of {self.width}-byte numbers"
        return (
            f"{seconds(self.seconds)} on {self.machine.name}, bound by {self.binds}: "
            f"{self.operations:,} operations take {seconds(self.arithmetic)}, "
            f"{self.bytes:,} bytes{numbers} {seconds(self.memory)}"
        )

    __repr__ = __str__


def time_of(cost: Cost, on: str | Machine = "H200 measured", *, width: int | None = None) -> Floor:
    """The least time of a cost, layer after layer, once every size has a number.

    Numbers are as wide as those the machine's rate was measured with, unless a `width` in bytes is given.

    >>> from lattend.cost import linear
    >>> time_of(linear(n=8192, d_in=8192, d_out=8192, bias=False), "H200 measured")  # 2*8192^3 / 798e12
    1.38 ms on H200, measured, bound by arithmetic: 1,099,511,627,776 operations take 1.38 ms, 402,653,184 \
bytes of 2-byte numbers 93.6 µs
    """
    chosen = machine(on)
    wide = chosen.width if width is None else width
    if wide < 1:
        raise DomainError(f"width is in bytes and at least 1, got {wide}")
    seconds = 0.0
    operations = traffic = 0
    for times, layer in cost.parts:
        one = replace(cost, name=layer.name, parts=((Amount.number(1), layer),))
        many = cost.number(times)
        work = 2 * cost.number(one.amount("multiplies"))
        moved = wide * cost.number(compulsory(layer, backward=cost.way == "backward"))
        seconds += many * max(work / chosen.rate, moved / chosen.bandwidth)
        operations, traffic = operations + many * work, traffic + many * moved
    return Floor(
        chosen, operations, traffic, operations / chosen.rate, traffic / chosen.bandwidth, seconds, wide
    )


def compulsory(layer: Layer, *, backward: bool = False) -> Amount:
    """The numbers that must be moved at least once: inputs and parameters read, the result written.

    Backward, these and the gradient of the result are read, and the gradients of inputs and parameters
    written. A table that is only looked up counts nothing.
    """
    read = ZERO
    for array in layer.arrays():
        if array.kind in ("input", "parameter"):
            read = read + array.size.dense
    written = layer.statements[-1].writes.size.dense if layer.statements else ZERO
    return read * 2 + written if backward else read + written
