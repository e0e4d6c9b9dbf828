"""The recurrence on the CPU, forward: step after step on packed states, which leave their gates behind.

Matrix products are torch's. What is done number by number is NumPy's: it starts faster on small slabs, and
its tanh takes a seventh of the time of torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.packed import Packing

Array = NDArray[Any]


def rnn(
    cell: CellKind, pre: Tensor, left: Tensor, top: Tensor, states: list[Tensor], gone: Array | None,
    gates: Tensor | None, p: Packing,
) -> None:  # fmt: skip
    """Fills h = σ(pre + W_left h_left + W_top h_top); pre becomes the sums. Weights are [h, gates*h]."""
    h = states[0]
    sums, new, bend = pre.numpy(), h.numpy(), _BEND[cell.activation]
    slabs = zip(p.inner.of(pre), p.left.of(h), p.top.of(h), strict=True)
    for inner, here, (total, h_left, h_top) in zip(p.inner.ranges, p.here.ranges, slabs, strict=True):
        torch.addmm(total, h_left, left, out=total)
        torch.addmm(total, h_top, top, out=total)
        bend(sums[inner], new[here])
        if gone is not None:
            np.copyto(new[here], 0, where=gone[inner])


def _sigmoid(a: Array, out: Array) -> None:
    torch.sigmoid(torch.from_numpy(a), out=torch.from_numpy(out))


_BEND: dict[str, Callable[[Array, Array], Any]] = {
    "tanh": lambda a, out: np.tanh(a, out=out),
    "relu": lambda a, out: np.maximum(a, 0, out=out),
    "sigmoid": _sigmoid,
    "identity": lambda a, out: np.copyto(out, a),
}


def lstm(
    cell: CellKind, pre: Tensor, left: Tensor, top: Tensor, states: list[Tensor], gone: Array | None,
    gates: Tensor | None, p: Packing,
) -> None:  # fmt: skip
    """Fills c = f (l c_left + (1 - l) c_top) + i g and h = o tanh(c); pre becomes the gates."""
    h, c = states
    size = h.shape[1]
    new_h, new_c, opened = h.numpy(), c.numpy(), pre.numpy().reshape(-1, 5, size)
    room = np.empty((2, max(p.inner.sizes), size), new_h.dtype)
    slabs = zip(p.inner.of(pre), p.left.of(h), p.top.of(h), strict=True)
    ranges = zip(p.inner.ranges, p.here.ranges, p.left.ranges, p.top.ranges, strict=True)
    for (inner, here, at_left, at_top), (total, h_left, h_top) in zip(ranges, slabs, strict=True):
        torch.addmm(total, h_left, left, out=total)
        torch.addmm(total, h_top, top, out=total)
        gate, state = opened[inner], new_c[here]
        i, f, share, g, o = gate.swapaxes(0, 1)
        one, two = room[:, : len(state)]
        np.tanh(g, out=one)
        total.sigmoid_()  # all five at once, since they lie together; g is put back
        np.copyto(g, one)
        np.multiply(i, one, out=one)
        np.subtract(new_c[at_left], new_c[at_top], out=two)
        np.multiply(two, share, out=two)
        np.add(two, new_c[at_top], out=two)
        np.multiply(two, f, out=two)
        np.add(one, two, out=state)
        if gone is not None:
            np.copyto(state, 0, where=gone[inner])
        np.tanh(state, out=one)
        np.multiply(o, one, out=new_h[here])  # where there is no pixel c is 0, and so is h


def gru(
    cell: CellKind, pre: Tensor, left: Tensor, top: Tensor, states: list[Tensor], gone: Array | None,
    gates: Tensor | None, p: Packing,
) -> None:  # fmt: skip
    """Fills h = n + z (l h_left + (1 - l) h_top - n), where n = tanh(pre_n + r m), and gates if saved."""
    h = states[0]
    size, most = h.shape[1], max(p.inner.sizes)
    sums, new = pre.numpy().reshape(-1, 4, size), h.numpy()
    room = pre.new_empty(most, 5 * size) if gates is None else gates
    products, spare = pre.new_empty(most, 4 * size), np.empty((most, size), new.dtype)
    opened, hidden = room.numpy().reshape(-1, 5, size), products.numpy().reshape(-1, 4, size)
    slabs = zip(p.left.of(h), p.top.of(h), strict=True)
    ranges = zip(p.inner.ranges, p.here.ranges, p.left.ranges, p.top.ranges, strict=True)
    for (inner, here, at_left, at_top), (h_left, h_top) in zip(ranges, slabs, strict=True):
        many = len(h_left)
        product, to = products[:many], slice(many) if gates is None else inner
        torch.mm(h_left, left, out=product)
        torch.addmm(product, h_top, top, out=product)
        gate, past, one, state = opened[to], hidden[:many, 3], spare[:many], new[here]
        np.add(sums[inner], hidden[:many], out=gate[:, :4])
        room[to].sigmoid_()
        r, z, share, n, m = gate.swapaxes(0, 1)
        np.copyto(m, past)
        np.multiply(r, past, out=one)
        np.add(one, sums[inner, 3], out=one)
        np.tanh(one, out=n)
        np.subtract(new[at_left], new[at_top], out=one)
        np.multiply(one, share, out=one)
        np.add(one, new[at_top], out=one)
        np.subtract(one, n, out=one)
        np.multiply(one, z, out=one)
        np.add(one, n, out=state)
        if gone is not None:
            np.copyto(state, 0, where=gone[inner])


FORWARD: dict[str, Callable[..., None]] = {"rnn": rnn, "lstm": lstm, "gru": gru}
