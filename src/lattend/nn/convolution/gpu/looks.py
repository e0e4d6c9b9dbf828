"""Where heads look along one axis: the tap u of position j sees by·j + begin + step·u.

The gradient of an image looks back. Of a convolution with a stride, pixels stride apart have the same taps:
each such class is a convolution without a stride, which fills its own pixels.
"""

from __future__ import annotations

from typing import NamedTuple

from lattend.nn.convolution.geometry import Along


class AxisTaps(NamedTuple):
    """`outputs` positions, written at first, first + every, …; taps are numbered tap, tap + next, …."""

    outputs: int
    first: int
    every: int
    by: int
    begin: int
    step: int
    taps: int
    tap: int
    next: int

    @property
    def last(self) -> int:
        """How far the last tap's key is from the first's."""
        return self.step * max(0, self.taps - 1)

    def edges(self, size: int) -> tuple[int, int]:
        """How many pixels before the first of `size` and after the last are looked at.

        >>> forward(Along(3, before=1, after=1), 8).edges(8)
        (1, 1)
        """
        if not self.taps:
            return 0, 0
        least, most = self.begin + min(0, self.last), self.by * (self.outputs - 1) + self.begin
        return max(0, -least), max(0, most + max(0, self.last) - (size - 1))


def forward(along: Along, size: int) -> AxisTaps:
    """Every output sees its keys."""
    begin = -along.before
    return AxisTaps(along.outputs(size), 0, 1, along.stride, begin, along.dilation, along.taps, 0, 1)


def backward(along: Along, size: int) -> list[AxisTaps]:
    """Every pixel sees the queries whose key it is, a class of pixels at a time.

    >>> [look.taps for look in backward(Along(3, stride=2, before=1, after=1), 8)]  # the middle, both sides
    [1, 2]
    """
    return [_class(along, size, rest) for rest in range(min(along.stride, size))]


def _class(along: Along, size: int, rest: int) -> AxisTaps:
    """Pixels rest, rest + stride, …; of tap t the query is (pixel + before − dilation·t) / stride."""
    far = [rest + along.before - along.dilation * tap for tap in range(along.taps)]
    taps = [tap for tap in range(along.taps) if far[tap] % along.stride == 0]
    tap, apart = taps[0] if taps else 0, taps[1] - taps[0] if len(taps) > 1 else 1
    return AxisTaps(
        outputs=-(-(size - rest) // along.stride),
        first=rest,
        every=along.stride,
        by=1,
        begin=far[tap] // along.stride,
        step=-(along.dilation * apart // along.stride),
        taps=len(taps),
        tap=tap,
        next=apart,
    )
