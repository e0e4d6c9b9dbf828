"""A step of decoding as one call of compiled code: it puts the new key into its slot, and attends to all.

The condition and the bias go with it as programs (program.py), so that the host evaluates nothing.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lattend.attend.decode.step import Scoring, Slots
from lattend.attend.kernels.native import library
from lattend.attend.kernels.native.kernel import DTYPES, caller
from lattend.attend.kernels.native.program import Instruction, NoProgram, program
from lattend.rules.axes import HEAD
from lattend.rules.language import expr

MAX_TABLES, MAX_AXES = 6, 4  # as in source/terms.h
TABLE_DTYPES = {**DTYPES, torch.float64: 3, torch.int64: 4}
MATRICES = ("q", "k", "v", "keys", "values", "out")
# The arguments of compiled code, by place
Q, K, V, KEYS, VALUES, STORED, NOW, HIGH, DRAFTED, OUT, LSE, TABLES = range(1, 13)
POSITION, SLOT, SLOTS = range(TABLES + MAX_TABLES, TABLES + MAX_TABLES + 3)

# q, k, v, the tensors of a bias, and the new token's position and slot, and the slots in use
NativeStep = Callable[..., tuple[Tensor, Tensor | None]]


class _Program(ctypes.Structure):
    _fields_ = (("instructions", ctypes.c_void_p), ("count", ctypes.c_int64))


class _Table(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("dtype", "axes")),
        *((name, ctypes.c_int64 * MAX_AXES) for name in ("sizes", "strides")),
    )


class _Step(ctypes.Structure):
    """The struct Step of source/decode.cpp."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("batch", "heads", "kv_heads", "dims", "value_dims", "dtype")),
        *((name, ctypes.c_int64 * 3) for name in MATRICES),
        ("positions_by_row", ctypes.c_int64),
        *((name, ctypes.c_int64) for name in ("pinned", "ring", "reach", "length")),
        *((name, ctypes.c_double) for name in ("scale", "softcap")),
        ("condition", _Program),
        ("by_head", ctypes.c_int64),
        ("bias", _Program),
        ("tables", _Table * MAX_TABLES),
        ("parallel", ctypes.c_void_p),
    )


def native_step(q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring) -> NativeStep | None:
    """What takes steps on such tensors at once; None where compiled code does not."""
    if q.device.type != "cpu" or q.dtype not in DTYPES or not q.numel() or library.missing() is not None:
        return None
    if any(x.stride(-1) != 1 and x.shape[-1] != 1 for x in (q, k, v)):
        run = native_step(q.contiguous(), k.contiguous(), v.contiguous(), slots, how)
        return None if run is None else partial(_with_rows, run)
    learned = {} if how.bias is None else {name: x.detach() for name, x in how.bias.tensors.items()}
    tables = [*slots.data.values(), *learned.values()]
    if len(tables) > MAX_TABLES or any(x.dim() > MAX_AXES or x.dtype not in TABLE_DTYPES for x in tables):
        return None
    try:
        condition = None if slots.condition is None else program(slots.condition, (*slots.data,))
        bias = (
            None if how.bias is None else program(how.bias.term, (*slots.data,), (*learned,), gives_real=True)
        )
    except NoProgram:
        return None
    step = _step_of(q, k, v, slots, how, tables)
    kept = [_put(step.condition, condition), _put(step.bias, bias), step, slots]
    step.by_head = slots.condition is not None and HEAD in expr.names(slots.condition)
    return _call(q, v, slots, how, len(learned), step, kept)


def _with_rows(run: NativeStep, q: Tensor, k: Tensor, v: Tensor, *others: Any) -> Any:
    return run(q.contiguous(), k.contiguous(), v.contiguous(), *others)


def _step_of(q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring, tables: Sequence[Tensor]) -> _Step:
    (batch, heads, _, dims), keys, values = q.shape, slots.keys, slots.values
    step = _Step(batch, heads, keys.shape[1], dims, values.shape[3], DTYPES[q.dtype])
    step.out[:] = (heads * values.shape[3], values.shape[3], values.shape[3])
    given = {"q": q, "k": k, "v": v, "keys": keys, "values": values}
    for name, x in given.items():
        getattr(step, name)[:] = x.stride()[:3]
    if slots.positions is not None and len(slots.positions) > 1:
        step.positions_by_row = slots.positions.shape[1]
    step.pinned, step.ring, step.reach, step.length = slots.ring
    step.scale, step.softcap = how.scale, how.softcap or 0.0
    for place, x in enumerate(tables):
        table = step.tables[place]
        table.dtype, table.axes = TABLE_DTYPES[x.dtype], x.dim()
        table.sizes[: x.dim()], table.strides[: x.dim()] = x.shape, x.stride()
    step.parallel = library.parallel()
    return step


def _put(to: _Program, instructions: Sequence[Instruction] | None) -> array[int]:
    """Points a program to its instructions, which are to be kept."""
    words = array("q", [number for one in instructions or () for number in one])
    to.instructions, to.count = words.buffer_info()[0], len(words) // 2
    return words


def _call(
    q: Tensor, v: Tensor, slots: Slots, how: Scoring, learned: int, step: _Step, kept: object
) -> NativeStep:  # fmt: skip
    arguments = [0] * (SLOTS + 1)
    arguments[0] = ctypes.addressof(step)
    arguments[KEYS], arguments[VALUES] = slots.keys.data_ptr(), slots.values.data_ptr()
    if isinstance(slots.positions, Tensor):
        arguments[STORED] = slots.positions.data_ptr()
    elif slots.positions is not None:
        arguments[STORED] = slots.positions.__array_interface__["data"][0]
    for place, x in zip((NOW, HIGH, DRAFTED), slots.state, strict=False):
        arguments[place] = x.data_ptr()
    for place, x in enumerate(slots.data.values(), TABLES):
        arguments[place] = x.data_ptr()
    first = TABLES + len(slots.data)
    given = (OUT, Q, K, V, *range(first, first + learned), POSITION, SLOT, SLOTS)
    given = (*given, LSE) if how.return_lse else given
    places = tuple((place, number) for number, place in enumerate(given))
    call = caller(library.function("decode"), arguments, places, torch.get_num_threads, kept)
    shape = (*q.shape[:3], v.shape[3])
    like = q.is_contiguous() and q.shape == shape
    empty = partial(torch.empty, shape, dtype=q.dtype)
    sums = partial(torch.empty, q.shape[:3], dtype=torch.float32)

    if how.return_lse:

        def run_with_lse(q: Tensor, *others: Any) -> tuple[Tensor, Tensor | None]:
            out, lse = empty(), sums()
            call(out, q, *others, lse)
            return out, lse

        return run_with_lse

    def run(q: Tensor, *others: Any) -> tuple[Tensor, Tensor | None]:
        out = torch.empty_like(q) if like else empty()
        call(out, q, *others)
        return out, None

    return run
