"""The recurrence on the CPU, backward: from the last step to the first, with what each cell left behind.

A gradient at a sum is the gradient at a state times a factor that forward alone decides. The factors of some
steps are found together; then the steps themselves are few operations, factors times gradients, and the
products that hand gradients on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lattend.nn.grid.cpu_room import Array, Call, Room, RoomKind, parts

BLOCK = 512  # rows whose factors are found together, so that they stay in the cache


class StepBlock(NamedTuple):
    """Some steps that follow each other: what their factors are made of and where they go."""

    rows: slice
    steps: list[int]  # the last one first
    factors: list[Array]  # of the gradients at the sums, in their place
    spare: list[Array]  # [rows, h] each: factors that are needed within the block alone, and room


class BackwardRoom(Room):
    """Gradients, states and gates of one direction, packed; weights are [gates*h, h]."""

    def __init__(
        self, kind: RoomKind, gates: Tensor | None = None, d_pre: Tensor | None = None,
        d_hidden: Tensor | None = None, d_state: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kind, kind.height, kind.size)
        name, pixels, size = kind.cell.name, kind.pixels, kind.size
        self.d_pre = self.empty(pixels, kind.height) if d_pre is None else d_pre
        self.d_hidden = self.d_pre
        if name == "gru":
            self.d_hidden = self.empty(pixels, kind.height) if d_hidden is None else d_hidden
        saved = 0 if name == "rnn" else pixels
        self.gates = self.empty(saved, 5 * size) if gates is None else gates
        self.d_state = self.empty(saved, size) if d_state is None else d_state
        self.own, self.near = self.empty(pixels, size), self.empty(saved, 2 * size)
        self.grads = [self.framed() for _ in range(kind.states)]
        p, grad = self.packing, self.grads[0]
        self._slabs = p.inner.of(self.d_hidden), p.left.of(grad), p.top.of(grad)
        self.calls = list(CELLS[name](self))

    def begin(
        self, grad_h: Tensor, grad_c: Tensor | None, h: Tensor, c: Tensor | None, gates: Tensor | None
    ) -> None:
        """Takes the gradients of a call, the states with their edges, and the gates."""
        p, size = self.packing, self.kind.size
        for room, grad in zip(self.grads, (grad_h, grad_c), strict=False):
            if grad is None:
                room.zero_()
            else:
                torch.index_select(grad.reshape(-1, size), 0, p.framing, out=room)
        states = (h if c is None else c).view(-1, size)  # of those a cell looks at, an lstm's are c
        torch.index_select(states, 0, p.inner_pixels, out=self.own)
        if gates is not None:
            torch.index_select(states, 0, p.near_pixels.view(-1), out=self.near.view(-1, size))
            if gates is not self.gates:
                self.gates.copy_(gates)

    def end(self, d_pre: Tensor, d_hidden: Tensor, d_state: Tensor | None) -> None:
        """Gives the gradients at the sums, and at the state that an lstm or gru hands on."""
        d_pre.copy_(self.d_pre)
        if d_state is not None:
            d_state.copy_(self.d_state)
        if self.d_hidden is not self.d_pre:
            d_hidden.copy_(self.d_hidden)

    def blocks(self) -> Iterator[StepBlock]:
        """The steps in blocks, the last ones first."""
        ranges = self.packing.inner.ranges
        most = BLOCK + max(self.packing.inner.sizes)
        spare = [self.empty(most, self.kind.size).numpy() for _ in range(4)]
        for _, group in groupby(reversed(range(len(ranges))), lambda step: ranges[step].start // BLOCK):
            steps = list(group)
            rows = slice(ranges[steps[-1]].start, ranges[steps[0]].stop)
            factors = parts(self.d_hidden[rows], self.kind.cell.gates)
            yield StepBlock(rows, steps, factors, [x[: rows.stop - rows.start] for x in spare])

    def step(self, number: int, block: StepBlock) -> tuple[slice, slice, Array, list[Array]]:
        """The rows of a step, framed ones, and its part of the block: factors [rows, gates, h], and spare."""
        rows = self.packing.inner.ranges[number]
        within = slice(rows.start - block.rows.start, rows.stop - block.rows.start)
        sums = self.d_hidden.numpy()[rows].reshape(-1, self.kind.cell.gates, self.kind.size)
        return rows, self.packing.here.ranges[number], sums, [x[within] for x in block.spare]

    def hand_on(self, number: int) -> Iterator[Call]:
        """The products that give the gradients at h_left and h_top their share."""
        sums, to_left, to_top = (slabs[number] for slabs in self._slabs)
        yield from self.add_product(to_left, sums, self.left)
        yield from self.add_product(to_top, sums, self.top)

    def share_out(
        self, number: int, from_left: Array, from_top: Array, state: Array, one: Array
    ) -> Iterator[Call]:
        """What the states left and above get of the gradient at the state that an lstm or gru keeps."""
        grads = self.grads[-1].numpy()
        near = grads[self.packing.left.ranges[number]], grads[self.packing.top.ranges[number]]
        for factor, grad in zip((from_left, from_top), near, strict=True):
            yield partial(np.multiply, factor, state, one)
            yield partial(np.add, grad, one, grad)


def rnn(room: BackwardRoom) -> Iterator[Call]:
    """d_pre = grad_h σ'(sum), with σ' computed from h."""
    grads = room.grads[0].numpy()
    for block in room.blocks():
        yield from SLOPES[room.kind.cell.activation](room.own[block.rows].numpy(), block.factors[0])
        for number in block.steps:
            rows, here, sums, _ = room.step(number, block)
            yield partial(np.multiply, sums[:, 0], grads[here], sums[:, 0])
            yield from room.clear(sums[:, 0], rows)
            yield from room.hand_on(number)


def _tanh(y: Array, out: Array) -> Iterator[Call]:
    yield partial(np.multiply, y, y, out)
    yield partial(np.subtract, 1, out, out)


def _sigmoid(y: Array, out: Array) -> Iterator[Call]:
    yield partial(np.subtract, 1, y, out)
    yield partial(np.multiply, out, y, out)


SLOPES: dict[str, Callable[[Array, Array], Iterator[Call]]] = {
    "tanh": _tanh,
    "relu": lambda y, out: iter([partial(np.greater, y, 0, out)]),
    "sigmoid": _sigmoid,
    "identity": lambda y, out: iter([partial(np.copyto, out, 1)]),
}


def lstm(room: BackwardRoom) -> Iterator[Call]:
    """With c = f (l c_left + (1 - l) c_top) + i g and h = o tanh(c); d_state is the gradient at c."""
    grads_h, grads_c = (x.numpy() for x in room.grads)
    for block in room.blocks():
        yield from _lstm_factors(room, block)
        for number in block.steps:
            rows, here, sums, (of_h, from_left, from_top, one) = room.step(number, block)
            dc, dh = room.d_state.numpy()[rows], grads_h[here]
            yield partial(np.multiply, dh, of_h, one)
            yield partial(np.add, grads_c[here], one, dc)
            yield partial(np.multiply, sums[:, 4], dh, sums[:, 4])
            yield from room.clear(dc, rows)
            yield from room.clear(sums[:, 4], rows)
            yield partial(np.multiply, sums[:, :4], dc[:, None], sums[:, :4])
            yield from room.hand_on(number)
            yield from room.share_out(number, from_left, from_top, dc, one)


def _lstm_factors(room: BackwardRoom, block: StepBlock) -> Iterator[Call]:
    """Of dc at i, f, l and g, and of dh at o; then of dh at c, and of dc at c_left and c_top."""
    i, f, share, g, o = parts(room.gates[block.rows], 5)
    left, top = parts(room.near[block.rows], 2)
    d_i, d_f, d_share, d_g, d_o = block.factors
    of_h, from_left, from_top, one = block.spare
    gates, slopes = (x[block.rows].numpy() for x in (room.gates, room.d_pre))
    yield from _sigmoid(gates, slopes)  # all five at once, since they lie together; that of g comes below
    yield partial(np.tanh, room.own[block.rows].numpy(), one)
    yield partial(np.multiply, d_o, one, d_o)
    yield from _tanh(one, of_h)
    yield partial(np.multiply, of_h, o, of_h)
    yield partial(np.multiply, d_i, g, d_i)
    yield partial(np.subtract, left, top, one)
    yield partial(np.multiply, d_share, one, d_share)
    yield partial(np.multiply, d_share, f, d_share)
    yield partial(np.multiply, one, share, one)
    yield partial(np.add, one, top, one)  # what f kept a part of
    yield partial(np.multiply, d_f, one, d_f)
    yield from _tanh(g, d_g)
    yield partial(np.multiply, d_g, i, d_g)
    yield partial(np.multiply, f, share, from_left)
    yield partial(np.subtract, f, from_left, from_top)


def gru(room: BackwardRoom) -> Iterator[Call]:
    """With h = n + z (l h_left + (1 - l) h_top - n), n = tanh(pre_n + r m); d_state is the gradient at h."""
    grads, size = room.grads[0].numpy(), room.kind.size
    for block in room.blocks():
        yield from _gru_factors(room, block)
        for number in block.steps:
            rows, here, sums, (from_left, from_top, of_n, one) = room.step(number, block)
            dh = room.d_state.numpy()[rows]
            yield from room.clear(grads[here], rows)
            yield partial(np.copyto, dh, grads[here])
            yield partial(np.multiply, sums, dh[:, None], sums)
            yield from room.hand_on(number)
            yield from room.share_out(number, from_left, from_top, dh, one)
        of_n, dh = block.spare[2], room.d_state[block.rows].numpy()
        d_pre, d_hidden = (x[block.rows].numpy() for x in (room.d_pre, room.d_hidden))
        yield partial(np.copyto, d_pre[:, : 3 * size], d_hidden[:, : 3 * size])
        yield partial(np.multiply, of_n, dh, d_pre[:, 3 * size :])


def _gru_factors(room: BackwardRoom, block: StepBlock) -> Iterator[Call]:
    """Of dh at r, z, l and m; then of dh at h_left, h_top and n."""
    r, z, share, n, m = parts(room.gates[block.rows], 5)
    left, top = parts(room.near[block.rows], 2)
    d_r, d_z, d_share, d_m = block.factors
    from_left, from_top, of_n, one = block.spare
    yield partial(np.subtract, 1, z, one)
    yield partial(np.subtract, room.own[block.rows].numpy(), n, d_z)  # z (mix - n)
    yield partial(np.multiply, d_z, one, d_z)
    yield from _tanh(n, of_n)
    yield partial(np.multiply, of_n, one, of_n)
    yield partial(np.multiply, of_n, r, d_m)
    yield partial(np.multiply, d_m, m, d_r)
    yield partial(np.subtract, 1, r, one)
    yield partial(np.multiply, d_r, one, d_r)
    yield partial(np.multiply, z, share, from_left)
    yield partial(np.subtract, z, from_left, from_top)
    yield partial(np.subtract, left, top, d_share)
    yield partial(np.multiply, d_share, share, d_share)
    yield partial(np.multiply, d_share, from_top, d_share)


CELLS: dict[str, Callable[[BackwardRoom], Iterator[Call]]] = {"rnn": rnn, "lstm": lstm, "gru": gru}
