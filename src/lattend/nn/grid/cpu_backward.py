"""The recurrence on the CPU, backward: from the last step to the first, with what each cell left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.nn.grid.cells import CellKind
from lattend.nn.grid.packed import Packing

Array = NDArray[Any]


class GridBackwardInputs(NamedTuple):
    """What backward of one direction is given; all but the gates and the mask are packed with a frame."""

    grad_h: Tensor  # from outside; what later cells hand on is added to it
    grad_c: Tensor | None
    h: Tensor
    c: Tensor | None
    gates: Array | None  # [pixels, 5, h]
    gone: Array | None  # [pixels, 1]: where there is no pixel


class BackwardStep(NamedTuple):
    """The rows of one step, and the slabs that matrix products read and write."""

    inner: slice  # in tensors without a frame
    here: slice  # in framed ones
    left: slice
    top: slice
    sums: Tensor  # the gradients at the sums
    to_left: Tensor  # the gradients at the states that the sums came from
    to_top: Tensor


def steps_back(sums: Tensor, grad_h: Tensor, p: Packing) -> Iterator[BackwardStep]:
    """The steps, the last one first."""
    ranges = (p.inner.ranges, p.here.ranges, p.left.ranges, p.top.ranges)
    slabs = (p.inner.of(sums), p.left.of(grad_h), p.top.of(grad_h))
    return (BackwardStep(*each) for each in zip(*(reversed(x) for x in (*ranges, *slabs)), strict=True))


def rnn(
    cell: CellKind, given: GridBackwardInputs, left: Tensor, top: Tensor, d_pre: Tensor, d_hidden: Tensor,
    d_state: None, p: Packing,
) -> None:  # fmt: skip
    """d_pre = grad_h σ'(sum), with σ' computed from h."""
    grads, states, sums, slope = given.grad_h.numpy(), given.h.numpy(), d_pre.numpy(), SLOPES[cell.activation]
    for step in steps_back(d_pre, given.grad_h, p):
        new = sums[step.inner]
        slope(states[step.here], grads[step.here], new)
        if given.gone is not None:
            np.copyto(new, 0, where=given.gone[step.inner])
        torch.addmm(step.to_left, step.sums, left, out=step.to_left)
        torch.addmm(step.to_top, step.sums, top, out=step.to_top)


def _tanh(h: Array, grad: Array, out: Array) -> None:
    np.multiply(h, h, out=out)
    np.subtract(1, out, out=out)
    np.multiply(out, grad, out=out)


def _sigmoid(h: Array, grad: Array, out: Array) -> None:
    np.subtract(1, h, out=out)
    np.multiply(out, h, out=out)
    np.multiply(out, grad, out=out)


SLOPES: dict[str, Callable[[Array, Array, Array], Any]] = {
    "tanh": _tanh,
    "relu": lambda h, grad, out: np.multiply(h > 0, grad, out=out),
    "sigmoid": _sigmoid,
    "identity": lambda h, grad, out: np.copyto(out, grad),
}


def lstm(
    cell: CellKind, given: GridBackwardInputs, left: Tensor, top: Tensor, d_pre: Tensor, d_hidden: Tensor,
    d_state: Tensor, p: Packing,
) -> None:  # fmt: skip
    """With c = f (l c_left + (1 - l) c_top) + i g and h = o tanh(c); d_state is the gradient at c."""
    assert given.gates is not None and given.c is not None
    grad_c = torch.zeros_like(given.grad_h) if given.grad_c is None else given.grad_c
    grads_h, grads_c, states = given.grad_h.numpy(), grad_c.numpy(), given.c.numpy()
    size = states.shape[1]
    sums, d_states = d_pre.numpy().reshape(-1, 5, size), d_state.numpy()
    room = np.empty((2, max(p.inner.sizes), size), sums.dtype)
    for step in steps_back(d_pre, given.grad_h, p):
        gate, new = given.gates[step.inner], sums[step.inner]
        grad_h, grad = grads_h[step.here], grads_c[step.here]
        i, f, share, g, o = gate.swapaxes(0, 1)
        one, two = room[:, : len(grad)]
        np.subtract(1, gate, out=new)
        np.multiply(new, gate, out=new)  # the slope of all sigmoids; that of g comes below
        np.tanh(states[step.here], out=one)
        np.multiply(new[:, 4], grad_h, out=new[:, 4])
        np.multiply(new[:, 4], one, out=new[:, 4])
        np.multiply(one, one, out=one)
        np.subtract(1, one, out=one)
        np.multiply(one, o, out=one)
        np.multiply(one, grad_h, out=one)
        np.add(grad, one, out=grad)
        if given.gone is not None:
            np.copyto(grad, 0, where=given.gone[step.inner])
            np.copyto(new[:, 4], 0, where=given.gone[step.inner])
        np.multiply(new[:, 0], g, out=new[:, 0])
        np.subtract(states[step.left], states[step.top], out=one)
        np.multiply(new[:, 2], one, out=new[:, 2])
        np.multiply(new[:, 2], f, out=new[:, 2])
        np.multiply(one, share, out=one)
        np.add(one, states[step.top], out=one)  # what f kept a part of
        np.multiply(new[:, 1], one, out=new[:, 1])
        np.multiply(g, g, out=one)
        np.subtract(1, one, out=one)
        np.multiply(one, i, out=new[:, 3])
        np.multiply(new[:, :4], grad[:, None], out=new[:, :4])
        torch.addmm(step.to_left, step.sums, left, out=step.to_left)
        torch.addmm(step.to_top, step.sums, top, out=step.to_top)
        np.copyto(d_states[step.inner], grad)
        np.multiply(grad, f, out=one)
        np.multiply(one, share, out=two)
        grads_c[step.left] += two
        np.subtract(one, two, out=one)
        grads_c[step.top] += one


def gru(
    cell: CellKind, given: GridBackwardInputs, left: Tensor, top: Tensor, d_pre: Tensor, d_hidden: Tensor,
    d_state: Tensor, p: Packing,
) -> None:  # fmt: skip
    """With h = n + z (l h_left + (1 - l) h_top - n), n = tanh(pre_n + r m); d_state is the gradient at h."""
    assert given.gates is not None
    grads, states = given.grad_h.numpy(), given.h.numpy()
    size = states.shape[1]
    sums, before = (x.numpy().reshape(-1, 4, size) for x in (d_hidden, d_pre))
    d_states = d_state.numpy()
    room = np.empty((2, max(p.inner.sizes), size), sums.dtype)
    for step in steps_back(d_hidden, given.grad_h, p):
        gate, new, grad = given.gates[step.inner], sums[step.inner], grads[step.here]
        r, z, share, n, m = gate.swapaxes(0, 1)
        d_r, d_z, d_share, d_m = new.swapaxes(0, 1)
        one, two = room[:, : len(grad)]
        if given.gone is not None:
            np.copyto(grad, 0, where=given.gone[step.inner])
        np.copyto(d_states[step.inner], grad)
        np.subtract(1, z, out=one)
        np.multiply(one, grad, out=one)
        np.subtract(states[step.here], n, out=two)  # z (mix - n)
        np.multiply(two, one, out=d_z)
        np.multiply(n, n, out=two)
        np.subtract(1, two, out=two)
        np.multiply(one, two, out=one)
        d_n = before[step.inner, 3]
        np.copyto(d_n, one)
        np.multiply(one, r, out=d_m)
        np.multiply(one, m, out=one)
        np.subtract(1, r, out=two)
        np.multiply(one, two, out=one)
        np.multiply(one, r, out=d_r)
        np.multiply(grad, z, out=one)  # what goes straight to h_left and h_top
        np.multiply(one, share, out=two)
        np.subtract(one, two, out=one)
        np.subtract(states[step.left], states[step.top], out=d_share)
        np.multiply(d_share, share, out=d_share)
        np.multiply(d_share, one, out=d_share)
        np.copyto(before[step.inner, :3], new[:, :3])
        torch.addmm(step.to_left, step.sums, left, out=step.to_left)
        torch.addmm(step.to_top, step.sums, top, out=step.to_top)
        grads[step.left] += two
        grads[step.top] += one


BACKWARD: dict[str, Callable[..., None]] = {"rnn": rnn, "lstm": lstm, "gru": gru}
