"""The steps of one call of the recurrence, forward and backward, each noted on a Recorder.

A kernel runs the wavefront. Around it are the sums W_in x + b before, and the gradients of all else after: by
torch, for small images on a GPU by kernels of their own, and the native kernel does all of it.
"""

from __future__ import annotations

from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from lattend.attend.replay.recorder import Recorder
from lattend.attend.replay.signature import is_plain
from lattend.nn.grid import native
from lattend.nn.grid.call import Edges, GridOptions
from lattend.nn.grid.gradients import edge_gradients, gates_again, gradients
from lattend.nn.grid.inputs import flipped, inner, input_sums, joined, parted
from lattend.nn.grid.layout import RowMajorLayout

SMALL = "lattend.nn.grid.gpu.small"


def forward_steps(
    recorder: Recorder, how: GridOptions, mask: Tensor | None, x: Tensor, into: Tensor, bias: Any, left:
    Tensor, top: Tensor, *edges: Tensor | None,
) -> tuple[Any, ...]:  # fmt: skip
    """What GridRecord.forward gives."""
    small = small_images(how, x, left)
    if how.kernel == "native":
        h, c, gates = native.forward(recorder, how, mask, x, into, bias, left, top, *edges)
    else:
        layout, around = how.layout(x), Edges(*edges)
        there = _there(recorder, how, layout, mask)
        if small is not None:
            room = small.forward(recorder, how, layout, x, into, bias, left, top, around, there)
            if how.joined:
                return small.joined(recorder, how.flips, layout, left.shape[-1], room), room, None, None
            h, c, _ = small.parts(recorder, how, layout, left.shape[-1], room)
            return *recorder.do(inner, h, c), room, None, None
        pre = recorder.do(partial(input_sums, how.flips, layout), x, into, bias)
        run = backend(how.kernel).forward
        h, c, gates = run(recorder, how.cell, layout, pre, left, top, around, there, how.save_gates)
    if how.joined:
        return recorder.do(partial(joined, how.flips), h), h, c, gates
    return *recorder.do(inner, h, c), h, c, gates


def backward_steps(
    recorder: Recorder, how: GridOptions, wanted: tuple[bool, ...], *given: Any
) -> tuple[Tensor | None, ...]:
    """What GridRecord.backward gives."""
    if not how.joined:
        return _backward_steps(recorder, how, wanted, *given)
    grad, *saved = given
    small = small_images(how, saved[1], saved[4])
    if grad is not None and small is not None:
        grad = small.parted(recorder, how.flips, grad)
    elif grad is not None:
        grad = recorder.do(partial(parted, how.flips), grad)
    return _backward_steps(recorder, how, wanted, grad, None, *saved)


def _backward_steps(
    recorder: Recorder, how: GridOptions, wanted: tuple[bool, ...], grad_h: Any, grad_c: Any, mask: Tensor |
    None, x: Tensor, into: Tensor, bias: Any, left: Tensor, top: Tensor, *others: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The same, from the gradients at the states of each direction."""
    if how.kernel == "native":
        return native.backward(recorder, how, wanted, grad_h, grad_c, mask, x, into, bias, left, top, *others)
    h, c, gates = others[-3:]
    layout = how.layout(x)
    if h.dim() == 1:  # the room of a small image
        h, c, gates = import_module(SMALL).parts(recorder, how, layout, left.shape[-1], h)
    if gates is None and how.cell.name != "rnn":
        pre = recorder.do(partial(input_sums, how.flips, layout), x, into, bias)
        gates = recorder.do(partial(gates_again, how.cell, layout), pre, left, top, h)
    if grad_h is None:
        grad_h = recorder.do(_nothing, h)
    there = _there(recorder, how, layout, mask)
    run = backend(how.kernel).backward
    found = run(recorder, how.cell, layout, grad_h, grad_c, left, top, h, c, gates, there)
    small = small_images(how, x, left)
    if small is None:
        of_all: Any = (x, into, left, top, h, gates, *found)
        return recorder.do(partial(gradients, how, layout, wanted), *of_all)
    d_pre, d_hidden, d_state = found
    of_weights = small.gradients(recorder, how, wanted, x, into, bias, left, top, h, d_pre, d_hidden)
    of_edges: Any = (None, None, None, None)
    if any(wanted[5:]):
        states: Any = (left, top, gates, d_hidden, d_state)
        of_edges = recorder.do(partial(edge_gradients, how, layout, wanted), *states)
    return *of_weights, *of_edges


def _there(
    recorder: Recorder, how: GridOptions, layout: RowMajorLayout, mask: Tensor | None
) -> Tensor | None:
    """The mask as each direction meets it, in the kernel's order."""
    return None if mask is None else recorder.do(lambda mask: layout.take(flipped(how.flips, mask)), mask)


def _nothing(h: Tensor) -> Tensor:
    return torch.zeros_like(h[:, :, 1:, 1:])


def small_images(how: GridOptions, x: Tensor, left: Tensor) -> Any | None:
    """The module for small images on a GPU, if these are; see gpu/small.py.

    Whoever traces or watches is shown torch's products.
    """
    if how.kernel != "gpu" or not is_plain(x, left):
        return None
    small = import_module(SMALL)
    return small if small.fits(how, x, left) else None


@lru_cache(maxsize=2)
def backend(kernel: str) -> Any:
    """The module of a kernel with a forward and a backward of its own."""
    return import_module(f"lattend.nn.grid.{'gpu.backend' if kernel == 'gpu' else kernel}")
