"""scan: the recurrence over a grid with its gradients, by the kernel that fits.

Kernels cpu and gpu have a forward and a backward of one signature, that of cpu.py. Kernels diagonals and
reference have `grid`, which torch differentiates; a second derivative takes diagonals as well.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend import amx
from lattend.errors import LattendError, NamingError
from lattend.nn.grid import diagonals, reference
from lattend.nn.grid.cells import CellKind, beside, gate_values
from lattend.nn.grid.layout import PackedLayout, RowMajorLayout

KERNELS = ("gpu", "cpu", "diagonals", "reference")
PLAIN = {"diagonals": diagonals.grid, "reference": reference.grid}
Flips = tuple[tuple[int, ...], ...]


class Edges(NamedTuple):
    """The states that come in over the left edge [D, batch, rows, h] and the top edge [D, batch, cols, h]."""

    left: Tensor | None = None  # None is zeros
    top: Tensor | None = None
    left_c: Tensor | None = None
    top_c: Tensor | None = None


class How(NamedTuple):
    """Everything about a call that is not a tensor."""

    cell: CellKind
    flips: Flips = ((),)
    kernel: str = "cpu"
    save_gates: bool = True  # for backward, which works them out again without


ON_GPU = (torch.float32, torch.bfloat16, torch.float16)


def why_not(kernel: str, x: Tensor) -> str | None:
    """Why a kernel cannot run on this tensor, or None if it can."""
    if kernel == "gpu":
        interpreted = x.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"
        if x.device.type != "cuda" and not interpreted:
            return f"x is on {x.device} and Triton needs a CUDA device (or TRITON_INTERPRET=1, to try it out)"
        if find_spec("triton") is None:
            return "Triton is not installed"
        if x.dtype not in ON_GPU:
            return f'x is {x.dtype}, and it takes float32, bfloat16 and float16; kernel="diagonals" takes all'
    if kernel == "cpu" and x.device.type != "cpu":
        return f'x is on {x.device}; kernel="diagonals" runs on every device'
    return None


def chosen(kernel: str | None, x: Tensor) -> str:
    """The kernel that was asked for, or the fastest that can run."""
    if kernel is None:
        best = "cpu" if x.device.type == "cpu" else "gpu"
        return best if why_not(best, x) is None else "diagonals"
    known(kernel)
    reason = why_not(kernel, x)
    if reason is not None:
        raise LattendError(f'kernel="{kernel}" cannot run this: {reason}')
    return kernel


def known(kernel: str) -> None:
    """Raises unless there is a kernel of that name."""
    if kernel not in KERNELS:
        raise NamingError(f"kernel is one of {', '.join(KERNELS)}, not {kernel!r}; leave it out for the best")


def scan(
    cell: CellKind,
    x: Tensor,
    into: Tensor,
    bias: Tensor | None,
    left: Tensor,
    top: Tensor,
    edges: Edges | None = None,
    mask: Tensor | None = None,
    *,
    flips: Flips = ((),),
    kernel: str | None = None,
    recompute: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The states h [D, batch, rows, cols, h] of every pixel, for each of D directions, and c for an lstm.

    x [batch, rows, cols, c], and mask [batch, rows, cols]; into [D, gates*h, c], bias [D, gates*h], left and
    top [D, gates*h, h]. Direction d sees the image flipped along the axes flips[d] (1 rows, 2 cols); its
    edges and its states are in the order in which it travels. With `recompute` no gates are saved.
    """
    amx.check(x)
    name = chosen(kernel, x)
    if mask is not None:
        x = x.masked_fill(~mask[..., None], 0)  # not even a NaN there may reach a sum
    tensors = (x, into, bias, left, top, *(edges or Edges()))
    graph = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    how = How(cell, flips, name, graph and not recompute)
    with _uncast(x):
        return _plain(how, mask, *tensors) if name in PLAIN else _Scan.apply(how, mask, *tensors)  # pyright: ignore


def _uncast(x: Tensor) -> AbstractContextManager[Any]:
    """Where products keep their dtype: what comes here was cast before."""
    device = x.device.type
    casts = device != "meta" and torch.is_autocast_enabled(device)
    return torch.autocast(device, enabled=False) if casts else nullcontext()


@lru_cache(maxsize=len(KERNELS))
def _backend(name: str) -> Any:
    return import_module(f"lattend.nn.grid.{'gpu.backend' if name == 'gpu' else name}")


def _plain(how: How, mask: Tensor | None, *tensors: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The states by operations that torch differentiates."""
    return PLAIN[how.kernel](how.cell, *_begun(how, mask, *tensors))


def _begun(how: How, mask: Tensor | None, *tensors: Tensor | None) -> tuple[Any, ...]:
    """What a kernel starts from: pre, left, top, h and c with their edges, and the mask."""
    x, into, bias, left, top, *edges = tensors
    assert x is not None and into is not None
    layout = _layout(how, x)
    pre = _pre(how, layout, x, into, bias)
    return pre, left, top, *_framed(how.cell, layout, pre, Edges(*edges)), _there(how, layout, mask)


class _Scan(torch.autograd.Function):
    """The recurrence by a kernel with its own backward."""

    @staticmethod
    def forward(ctx: Any, how: How, mask: Tensor | None, *tensors: Tensor | None) -> Any:
        begun = _begun(how, mask, *tensors)
        _, _, _, h, c, _ = begun
        gates = _backend(how.kernel).forward(how.cell, *begun, how.save_gates)
        ctx.how = how
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(mask, *tensors, h, c, gates)
        return tuple(None if t is None else t[:, :, 1:, 1:] for t in (h, c))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        how, wanted = ctx.how, ctx.needs_input_grad[2:]
        mask, *tensors, h, c, gates = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, None, *_twice(how, mask, tensors, wanted, grads)
        x, into, bias, left, top, *_ = tensors
        layout = _layout(how, x)
        if gates is None and how.cell.name != "rnn":
            gates = _gates_again(how.cell, layout, _pre(how, layout, x, into, bias), left, top, h)
        grad_h = torch.zeros_like(h[:, :, 1:, 1:]) if grads[0] is None else grads[0]
        there = _there(how, layout, mask)
        found = _backend(how.kernel).backward(how.cell, grad_h, grads[1], left, top, h, c, gates, there)
        return None, None, *_gradients(how, layout, tensors, wanted, h, gates, *found)


def _twice(
    how: How, mask: Tensor | None, tensors: list[Tensor | None], wanted: tuple[bool, ...],
    grads: tuple[Tensor | None, ...],
) -> list[Tensor | None]:  # fmt: skip
    """The gradients by the plain path, so that they can be differentiated again."""
    states = _plain(how._replace(kernel="diagonals"), mask, *tensors)
    given = [(s, g) for s, g in zip(states, grads, strict=True) if s is not None and g is not None]
    asked = [t for t, w in zip(tensors, wanted, strict=True) if w and t is not None]
    found = iter(
        torch.autograd.grad(
            [s for s, _ in given], asked, [g for _, g in given], create_graph=True, allow_unused=True
        )
    )
    return [next(found) if w else None for w in wanted]


def _gates_again(
    cell: CellKind, layout: RowMajorLayout, pre: Tensor, left: Tensor, top: Tensor, h: Tensor
) -> Tensor:
    """The gates of all pixels from the saved states: products over many pixels, no recurrence."""
    gates = pre.new_empty(*pre.shape[:-1], 5 * h.shape[-1])
    weights, flat, sums = beside(left, top), layout.joined(gates), layout.joined(pre)
    for rows, near in layout.near(h):
        torch.cat(gate_values(cell, sums[:, rows], near @ weights), -1, out=flat[:, rows])
    return gates


def _gradients(
    how: How, layout: RowMajorLayout, tensors: list[Any], wanted: tuple[bool, ...], h: Tensor,
    gates: Tensor | None, d_pre: Tensor, d_hidden: Tensor, d_state: Tensor | None,
) -> list[Tensor | None]:  # fmt: skip
    """The gradients of x, into, bias, left, top and the edges, from those at the sums and states."""
    x, into, _, left, top, *_ = tensors
    sums = layout.joined(d_pre)
    found: list[Tensor | None] = [None] * 9
    if wanted[0]:
        each = layout.give((sums @ into).view(*d_pre.shape[:-1], into.shape[-1]))
        found[0] = _unflipped_sum(each, how.flips)
    if wanted[1]:
        flipped = layout.joined(layout.take(_flipped(x, how.flips)))
        found[1] = (flipped.mT @ sums).mT  # this way round the thin side comes first, which is much faster
    if wanted[2]:
        found[2] = sums.sum(1)
    if wanted[3] or wanted[4]:
        both = h.new_zeros(*left.shape[:2], 2 * h.shape[-1])
        for rows, near in layout.near(h):
            both.baddbmm_(layout.joined(d_hidden)[:, rows].mT, near)
        found[3], found[4] = both.chunk(2, -1)
    if any(wanted[5:]):
        found[5:] = _edges(how.cell, layout, left, top, gates, d_hidden, d_state)
    return [g if w else None for g, w in zip(found, wanted, strict=True)]


def _edges(
    cell: CellKind, layout: RowMajorLayout, left: Tensor, top: Tensor, gates: Tensor | None, d_hidden: Tensor,
    d_state: Tensor | None,
) -> list[Tensor | None]:  # fmt: skip
    """The gradients of the states on the left and the top edge, and of their c."""
    d_left = layout.first_col(d_hidden) @ left[:, None]
    d_top = layout.first_row(d_hidden) @ top[:, None]
    if gates is None or d_state is None:
        return [d_left, d_top, None, None]
    at_left, at_top = layout.first_col(d_state), layout.first_row(d_state)
    on_left, on_top = layout.first_col(gates).chunk(5, -1), layout.first_row(gates).chunk(5, -1)
    # Of what an lstm keeps by f, or a gru by z, the share l comes from the left
    back_left, back_top = at_left * on_left[1] * on_left[2], at_top * on_top[1] * (1 - on_top[2])
    if cell.name == "lstm":
        return [d_left, d_top, back_left, back_top]
    return [d_left + back_left, d_top + back_top, None, None]


# Laying out


def _layout(how: How, x: Tensor) -> RowMajorLayout:
    batch, rows, cols, _ = x.shape
    if how.kernel == "cpu":
        return PackedLayout(len(how.flips), batch, rows, cols)
    return RowMajorLayout(len(how.flips), batch, rows, cols)


def _flipped(x: Tensor, flips: Flips) -> Tensor:
    """The image as each direction meets it, [D, batch, rows, cols, ..]."""
    return x[None] if flips == ((),) else torch.stack([x.flip(axes) if axes else x for axes in flips])


def _unflipped_sum(x: Tensor, flips: Flips) -> Tensor:
    """The sum over directions, each turned back into the order of the image."""
    if flips == ((),):
        return x[0]
    return torch.stack([e.flip(axes) if axes else e for e, axes in zip(x, flips, strict=True)]).sum(0)


def _there(how: How, layout: RowMajorLayout, mask: Tensor | None) -> Tensor | None:
    """The mask as each direction meets it, in the kernel's order."""
    return None if mask is None else layout.take(_flipped(mask, how.flips))


def _pre(how: How, layout: RowMajorLayout, x: Tensor, into: Tensor, bias: Tensor | None) -> Tensor:
    """W_in x + b of all pixels, in the kernel's order."""
    flipped = layout.take(_flipped(x, how.flips))
    pixels = layout.joined(flipped)
    sums = pixels @ into.mT if bias is None else torch.baddbmm(bias[:, None], pixels, into.mT)
    return sums.view(*flipped.shape[:-1], into.shape[1])


def _framed(
    cell: CellKind, layout: RowMajorLayout, pre: Tensor, edges: Edges
) -> tuple[Tensor, Tensor | None]:
    """Room for h and c [D, batch, rows + 1, cols + 1, h], with the edges in row 0 and column 0."""

    def frame(left: Tensor | None, top: Tensor | None) -> Tensor:
        directions, batch, rows, cols = layout.shape
        found = pre.new_empty(directions, batch, rows + 1, cols + 1, pre.shape[-1] // cell.gates)
        found[:, :, 0], found[:, :, :, 0] = 0, 0
        if left is not None:
            found[:, :, 1:, 0] = left
        if top is not None:
            found[:, :, 0, 1:] = top
        return found

    h = frame(edges.left, edges.top)
    return h, frame(edges.left_c, edges.top_c) if cell.name == "lstm" else None
