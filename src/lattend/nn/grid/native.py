"""The recurrence by compiled code: a thread takes a few images through all diagonals, forward or backward.

Products, gates and the gradients of all weights are in one call of the library that attention's native kernel
is in; see source/grid.h there. It computes in float64 or float32; half precision is converted to float32 and
back.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lattend.attend.seams import Recorder, is_plain, library
from lattend.nn.grid.cells import GridOptions

CELLS = ("rnn", "lstm", "gru")  # as in source/grid.h
ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity")
ENOUGH = 32  # cells of a diagonal that fill the products; fewer, and more images run side by side
MOST_TASKS = 64  # of a direction, each with gradients of its own
MOST_ALONE = 1 << 19  # multiply-adds that one thread does sooner than several
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class GridStruct(ctypes.Structure):
    """The struct GridShape of source/grid.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("cell", "activation", "directions", "batch", "rows", "cols")),
        *((name, ctypes.c_int64) for name in ("channels", "size", "together", "of_task")),
        ("flips", ctypes.c_int64 * 4),
        ("parallel", ctypes.c_void_p),
    )


def why_not(x: Tensor, *weights: Tensor) -> str | None:
    """Why this kernel cannot run on these tensors, or None if it can."""
    if x.device.type != "cpu":
        return f'x is on {x.device}; kernel="diagonals" runs on every device'
    if x.dtype not in DTYPES:
        return f'x is {x.dtype}, and it takes float64 to float16; kernel="diagonals" takes others'
    if not is_plain(x, *weights):
        return 'somebody traces or watches what torch does, and would not see it; kernel="diagonals" shows it'
    return library.missing()


def forward(
    recorder: Recorder,
    how: GridOptions,
    mask: Tensor | None,
    x: Tensor,
    *weights_and_edges: Tensor | None,
) -> tuple[Any, ...]:
    """The states h and c with their edges, and the gates if they are saved."""
    dtype = x.dtype
    tensors: Any = (mask, x, *weights_and_edges)
    mask, x, *given = (_readable(recorder, t) for t in tensors)
    shape = _shape(how, x, given[2])
    states = (shape.directions, shape.batch, shape.rows + 1, shape.cols + 1, shape.size)
    h = recorder.empty(states, x.dtype, x.device)
    c = recorder.empty(states, x.dtype, x.device) if how.cell.name == "lstm" else None
    gates = None
    if how.save_gates and how.cell.name != "rnn":
        gates = recorder.empty((shape.directions, *x.shape[:3], 5 * shape.size), x.dtype, x.device)
    _run(recorder, "grid_forward", shape, how.cell.gates, x, mask, *given, h, c, gates)
    return _in_dtype(recorder, dtype, h, c, gates)


def backward(
    recorder: Recorder, how: GridOptions, wanted: Sequence[bool], grad_h: Tensor | None, grad_c: Tensor |
    None, mask: Tensor | None, x: Tensor, *saved: Tensor | None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """What GridRecord.backward gives."""
    dtype = x.dtype
    tensors: Any = (grad_h, grad_c, mask, x, *saved)
    grad_h, grad_c, mask, x, *given = (_readable(recorder, t) for t in tensors)
    shape, gates = _shape(how, x, given[2]), how.cell.gates
    directions, padded = shape.directions, -(-shape.size // 16) * 16
    rows = shape.channels + 2 * shape.size + 1
    tasks = -(-shape.batch // shape.of_task)
    partial_sums = recorder.empty((directions, tasks, rows, gates * padded), x.dtype, x.device)
    shapes = [(directions, *x.shape), *(None if t is None else t.shape for t in given[:8])]
    dx, *others = (
        recorder.empty(found, x.dtype, x.device) if found is not None and asked else None
        for found, asked in zip(shapes, wanted, strict=True)
    )
    outputs = (grad_h, grad_c, partial_sums, dx, *others)
    _run(recorder, "grid_backward", shape, 3 * gates, x, mask, *given, *outputs)
    dx = None if dx is None else recorder.do(_sum_of_directions, dx)
    return _in_dtype(recorder, dtype, dx, *others)


def _sum_of_directions(dx: Tensor) -> Tensor:
    return dx[0] if len(dx) == 1 else dx.sum(0)


def _readable(recorder: Recorder, x: Any) -> Any:
    """The tensor as compiled code reads it: contiguous, and float32 in place of half precision."""
    if x is not None and x.dtype in (torch.bfloat16, torch.float16):
        x = recorder.in_dtype(x, torch.float32)
    return x if x is None or x.is_contiguous() else recorder.do(Tensor.contiguous, x)


def _in_dtype(recorder: Recorder, dtype: torch.dtype, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    return tuple(None if x is None else recorder.in_dtype(x, dtype) for x in tensors)


def _shape(how: GridOptions, x: Tensor, left: Tensor) -> GridStruct:
    """Sizes, and how images are dealt out, which sizes alone decide: sums do not depend on threads."""
    batch, rows, cols, channels = x.shape
    together = min(batch, -(-ENOUGH // min(rows, cols)))
    of_task = together * -(-batch // (together * MOST_TASKS))
    cell, activation = CELLS.index(how.cell.name), ACTIVATIONS.index(how.cell.activation)
    sizes = (len(how.flips), batch, rows, cols, channels, left.shape[-1], together, of_task)
    shape = GridStruct(cell, activation, *sizes, parallel=library.parallel())
    for d, axes in enumerate(how.flips):
        shape.flips[d] = (1 in axes) + 2 * (2 in axes)
    return shape


def _run(recorder: Recorder, name: str, shape: GridStruct, products: int, *given: Tensor | None) -> None:
    """Calls compiled code with the addresses of these tensors; null for one that is not there."""
    there = [(place, x) for place, x in enumerate(given) if x is not None]
    number = "float64" if there[0][1].dtype == torch.float64 else "float32"
    run, at, count = library.function(f"{name}_{number}"), ctypes.addressof(shape), len(given)
    places = [place for place, _ in there]
    pixels = shape.directions * shape.batch * shape.rows * shape.cols
    work = pixels * products * shape.size * (shape.channels + 2 * shape.size)
    threads: Callable[[], int] = torch.get_num_threads if work > MOST_ALONE else lambda: 1

    def step(*tensors: Tensor, kept: object = shape) -> None:  # what compiled code points to
        addresses = array("Q", bytes(8 * count))
        for place, x in zip(places, tensors, strict=True):
            addresses[place] = x.data_ptr()
        if run(at, addresses.buffer_info()[0], threads()):
            raise MemoryError(f"a grid needs some rows of memory for each thread, and there is none: {kept}")

    recorder.do(step, *(x for _, x in there))
