"""The steps of one call of the recurrence, forward and backward, each noted on a Recorder.

The native kernel does all of it. The GPU's runs the wavefront; the sums W_in x + b before and the gradients
of all else after are torch's, or kernels' of their own for small images.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from lattend.attend.seams import Recorder, is_plain
from lattend.nn.grid import native
from lattend.nn.grid.cells import CellKind, Edges, GridOptions, beside, gate_values
from lattend.nn.grid.layout import (
    RowMajorLayout,
    by_direction,
    flipped,
    inner,
    input_sums,
    joined,
    parted,
    pixels,
    unflipped_sum,
)

BACKEND, SMALL = "lattend.nn.grid.gpu.backend", "lattend.nn.grid.gpu.small"


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
        run = import_module(BACKEND).forward
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
    run = import_module(BACKEND).backward
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


def gates_again(
    cell: CellKind, layout: RowMajorLayout, pre: Tensor, left: Tensor, top: Tensor, h: Tensor
) -> Tensor:
    """The gates of all pixels from the saved states: products over many pixels, no recurrence."""
    weights = beside(*(w.view(len(h), -1, h.shape[-1]) for w in (left, top)))
    return torch.cat(gate_values(cell, pre, layout.near(h) @ weights), -1)


def gradients(
    how: GridOptions, layout: RowMajorLayout, wanted: tuple[bool, ...], x: Tensor, into: Tensor, left: Tensor,
    top: Tensor, h: Tensor, gates: Tensor | None, d_pre: Tensor, d_hidden: Tensor, d_state: Tensor | None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of x, into, bias, left, top and the four edges; None where none is wanted."""
    found: list[Tensor | None] = [None] * 9
    if wanted[0]:
        found[0] = unflipped_sum(how.flips, layout.give(torch.bmm(d_pre, by_direction(how.flips, into))))
    if wanted[1]:
        seen = pixels(how.flips, layout, x)
        # This way round the thin side comes first: much faster
        found[1] = torch.bmm(seen.mT, d_pre).mT.reshape(into.shape)
    if wanted[2]:
        found[2] = d_pre.sum(1).view(into.shape[:-1])
    if wanted[3] or wanted[4]:
        both = torch.bmm(d_hidden.mT, layout.near(h)).view(*left.shape[:-1], -1)
        found[3], found[4] = both.chunk(2, -1)
    if any(wanted[5:]):
        found[5:] = edge_gradients(how, layout, wanted, left, top, gates, d_hidden, d_state)
    return tuple(g if w else None for g, w in zip(found, wanted, strict=True))


def edge_gradients(
    how: GridOptions, layout: RowMajorLayout, wanted: tuple[bool, ...], left: Tensor, top: Tensor,
    gates: Tensor | None, d_hidden: Tensor, d_state: Tensor | None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of the four edges; None where none is wanted."""
    found = _of_edges(how, layout, left, top, gates, d_hidden, d_state)
    return tuple(g if w else None for g, w in zip(found, wanted[5:], strict=True))


def _of_edges(
    how: GridOptions, layout: RowMajorLayout, left: Tensor, top: Tensor, gates: Tensor | None,
    d_hidden: Tensor, d_state: Tensor | None,
) -> list[Any]:  # fmt: skip
    """The gradients of the states on the left and the top edge, and of their c."""
    d_left = layout.first_col(d_hidden) @ by_direction(how.flips, left)[:, None]
    d_top = layout.first_row(d_hidden) @ by_direction(how.flips, top)[:, None]
    if gates is None or d_state is None:
        return [d_left, d_top, None, None]
    at_left, at_top = layout.first_col(d_state), layout.first_row(d_state)
    on_left, on_top = layout.first_col(gates).chunk(5, -1), layout.first_row(gates).chunk(5, -1)
    # Of what an lstm keeps by f, or a gru by z, the share l comes from the left
    back_left, back_top = at_left * on_left[1] * on_left[2], at_top * on_top[1] * (1 - on_top[2])
    if how.cell.name == "lstm":
        return [d_left, d_top, back_left, back_top]
    return [d_left + back_left, d_top + back_top, None, None]
