"""The recurrence on the CPU, forward: step after step on packed states, which leave their gates behind.

Large matrix products are torch's. What is done number by number is NumPy's: it starts faster on small slabs,
and its tanh takes a seventh of the time of torch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lattend.nn.grid.cpu_room import Array, Call, Room, RoomKind, parts


class ForwardRoom(Room):
    """Sums, states and gates of one direction, packed; weights are [h, gates*h]."""

    def __init__(
        self, kind: RoomKind, saves: bool, pre: Tensor | None = None, gates: Tensor | None = None
    ) -> None:
        super().__init__(kind, kind.size, kind.height)
        self.saves = saves
        self.pre = self.empty(kind.pixels, kind.height) if pre is None else pre
        self.states = [self.framed() for _ in range(kind.states)]
        self.gates = self.pre  # an lstm's sums become its gates
        if kind.cell.name == "gru":
            rows = kind.pixels if saves else max(self.packing.inner.sizes)
            self.gates = self.empty(rows, 5 * kind.size) if gates is None else gates
        self._edged: set[int] = set()  # edges that the last call had
        self.calls = list(CELLS[kind.cell.name](self))

    def begin(self, pre: Tensor, edges: list[Tensor | None]) -> None:
        """Takes the sums of a call, and its edges left, top, left_c and top_c where there are any."""
        if pre is not self.pre:
            self.pre.copy_(pre)
        for place, edge in enumerate(edges[: 2 * len(self.states)]):
            state = self.states[place // 2]
            rows = self.packing.top_edge if place % 2 else self.packing.left_edge
            if edge is not None:
                state.index_copy_(0, rows, edge.flatten(0, 1))
                self._edged.add(place)
            elif place in self._edged:
                state.index_fill_(0, rows, 0)
                self._edged.remove(place)

    def end(self, *states: Tensor | None) -> None:
        """Gives the states with their edges, [batch, rows + 1, cols + 1, h]."""
        for found, out in zip(self.states, states, strict=False):
            if out is not None:
                torch.index_select(found, 0, self.packing.framed_rows, out=out.view(-1, self.kind.size))

    def steps(self) -> Iterator[tuple[slice, slice, slice, slice, Tensor, Tensor, Tensor]]:
        """The rows of each step, here, left and above, and the slabs of products: sums, h_left, h_top."""
        p, h = self.packing, self.states[0]
        ranges = (p.inner.ranges, p.here.ranges, p.left.ranges, p.top.ranges)
        return zip(*ranges, p.inner.of(self.pre), p.left.of(h), p.top.of(h), strict=True)


def rnn(room: ForwardRoom) -> Iterator[Call]:
    """Fills h = σ(pre + W_left h_left + W_top h_top); pre becomes the sums."""
    h, sums = room.states[0].numpy(), room.pre.numpy()
    for rows, here, _, _, total, h_left, h_top in room.steps():
        yield from room.add_product(total, h_left, room.left)
        yield from room.add_product(total, h_top, room.top)
        yield ACTIVATIONS[room.kind.cell.activation](sums[rows], h[here])
        yield from room.clear(h[here], rows)


ACTIVATIONS: dict[str, Callable[[Array, Array], Call]] = {
    "tanh": lambda a, out: partial(np.tanh, a, out),
    "relu": lambda a, out: partial(np.maximum, a, 0, out),
    "sigmoid": lambda a, out: partial(torch.sigmoid, torch.from_numpy(a), out=torch.from_numpy(out)),
    "identity": lambda a, out: partial(np.copyto, out, a),
}


def lstm(room: ForwardRoom) -> Iterator[Call]:
    """Fills c = f (l c_left + (1 - l) c_top) + i g and h = o tanh(c); pre becomes the gates."""
    h, c = (x.numpy() for x in room.states)
    spare = [room.empty(max(room.packing.inner.sizes), room.kind.size).numpy() for _ in range(2)]
    for rows, here, left, top, total, h_left, h_top in room.steps():
        one, two = (x[: len(total)] for x in spare)
        i, f, share, g, o = parts(total, 5)
        yield from room.add_product(total, h_left, room.left)
        yield from room.add_product(total, h_top, room.top)
        yield partial(np.tanh, g, one)
        yield total.sigmoid_  # all five at once, since they lie together; g is put back
        if room.saves:
            yield partial(np.copyto, g, one)
        yield partial(np.multiply, i, one, one)
        yield partial(np.subtract, c[left], c[top], two)
        yield partial(np.multiply, two, share, two)
        yield partial(np.add, two, c[top], two)
        yield partial(np.multiply, two, f, two)
        yield partial(np.add, one, two, c[here])
        yield from room.clear(c[here], rows)
        yield partial(np.tanh, c[here], one)
        yield partial(np.multiply, o, one, h[here])  # where there is no pixel c is 0, and so is h


def gru(room: ForwardRoom) -> Iterator[Call]:
    """Fills h = n + z (l h_left + (1 - l) h_top - n), where n = tanh(pre_n + r m), and gates if saved."""
    h, size, most = room.states[0].numpy(), room.kind.size, max(room.packing.inner.sizes)
    products, spare = room.empty(most, 4 * size), room.empty(most, size).numpy()
    for rows, here, left, top, total, h_left, h_top in room.steps():
        product, one = products[: len(total)], spare[: len(total)]
        gates = room.gates[rows] if room.saves else room.gates[: len(total)]
        r, z, share, n, m = parts(gates, 5)
        opened, sums, hidden = (x[:, : 3 * size] for x in (gates, total, product))
        before, past = (x[:, 3 * size :].numpy() for x in (total, product))
        yield from room.product(h_left, room.left, product)
        yield from room.add_product(product, h_top, room.top)
        yield partial(torch.add, sums, hidden, out=opened)
        yield opened.sigmoid_
        if room.saves:
            yield partial(np.copyto, m, past)
        yield partial(np.multiply, r, past, one)
        yield partial(np.add, one, before, one)
        yield partial(np.tanh, one, n)
        yield partial(np.subtract, h[left], h[top], one)
        yield partial(np.multiply, one, share, one)
        yield partial(np.add, one, h[top], one)
        yield partial(np.subtract, one, n, one)
        yield partial(np.multiply, one, z, one)
        yield partial(np.add, one, n, h[here])
        yield from room.clear(h[here], rows)


CELLS: dict[str, Callable[[ForwardRoom], Iterator[Call]]] = {"rnn": rnn, "lstm": lstm, "gru": gru}
