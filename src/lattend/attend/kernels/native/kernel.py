"""The native kernel: a call of compiled code, which goes through a plan's tiles of 16 queries."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from lattend.attend.bias import dtype_name
from lattend.attend.call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.kernels.crossover import Crossover
from lattend.attend.kernels.native import crossovers, library
from lattend.attend.kernels.native.tile_lists import MAX_ENTRIES, TileLists, entries, tile_lists
from lattend.attend.kernels.sdpa import diagonal_blocks
from lattend.attend.memory import strides
from lattend.attend.tape import Tape
from lattend.plans.plan import plan

DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}  # as in source/vectors.h
MOST_ALONE = 1 << 19  # multiply-adds of a product that one thread does sooner than several
MATRICES = ("q", "k", "v", "out", "grad_out", "dq", "dk", "dv")


class Layout(ctypes.Structure):
    """The struct Layout of source/tiles.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("batch", "heads", "kv_heads", "queries", "keys")),
        *((name, ctypes.c_int64) for name in ("dims", "value_dims", "dtype", "sums_dtype")),
        *((name, ctypes.c_int64 * 3) for name in MATRICES),
        ("scale", ctypes.c_double),
        ("parallel", ctypes.c_void_p),
    )


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why this kernel cannot take the call, or None when it can."""
    if q.device.type != "cpu":
        return f"it runs on the CPU, and q is on {q.device.type}"
    if (reason := library.missing()) is not None:
        return reason
    if q.dtype not in DTYPES:
        return f"it does not compute in {dtype_name(q.dtype)}"
    if call.term is not None:
        return "there is a bias"
    if call.softcap is not None:
        return "scores have a softcap"
    if call.dropout:
        return "there is dropout"
    if call.data:
        return "the rule looks up arrays that are given at call time"
    found = plan(call.rule)
    if not found.fits or max(q.shape[2], k.shape[2]) >= 1 << 31:
        return "the rule's numbers lead beyond 64 bits"
    if entries(found) > MAX_ENTRIES:
        return "too many tiles have masks of their own"
    return None


def crossover(work: str, call: AttentionCall, q: Tensor, v: Tensor) -> Crossover | None:
    """Where torch's own attention overtakes this kernel; None where it cannot run or was not measured."""
    blocks = diagonal_blocks(plan(call.rule)) if q.device.type == "cpu" else None
    if blocks is None:
        return None
    keys = v.shape[2] if blocks.window is None else blocks.window
    return crossovers.crossover(work, q.dtype, blocks.causal, keys, max(q.shape[3], v.shape[3]))


def forward(tape: Tape, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp; the same bits however many threads there are."""
    lists = tile_lists(plan(call.rule))
    q, k, v = (_with_rows(tape, x) for x in (q, k, v))
    dtype = _sums_dtype(lists, q)
    out = tape.empty((*q.shape[:-1], v.shape[-1]), dtype, q.device, strides(q, v.shape[-1]))
    lse = tape.empty(q.shape[:-1], torch.float32, q.device)
    layout = _layout(call, q, k, v, dtype, out=out)
    run, threads = library.function("forward"), _threads(lists, q, v)
    at, how = lists.address, ctypes.addressof(layout)
    kept = lists, layout

    def step(q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, *real: Tensor) -> None:
        inputs = q.data_ptr(), k.data_ptr(), v.data_ptr(), real[0].data_ptr() if real else None
        _check(run(at, how, *inputs, out.data_ptr(), lse.data_ptr(), threads()), kept)

    tape.do(step, q, k, v, out, lse, *_real_keys(tape, call, k))
    return _in(tape, out, q.dtype), lse


def backward(tape: Tape, call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v; the same bits however many threads there are."""
    lists = tile_lists(plan(call.rule))
    grad_out, q, k, v, out = (
        _with_rows(tape, x) for x in (given.grad_out, given.q, given.k, given.v, given.out)
    )
    lse, *grad_lse = (
        x if x.is_contiguous() else tape.do(Tensor.contiguous, x)
        for x in (given.lse, given.grad_lse)
        if x is not None
    )
    dtype = _sums_dtype(lists, q)
    dq = tape.empty(q.shape, dtype, q.device, strides(q, q.shape[-1]))
    dk, dv = (tape.empty(x.shape, x.dtype, x.device, strides(x, x.shape[-1])) for x in (k, v))
    layout = _layout(call, q, k, v, dtype, out=out, grad_out=grad_out, dq=dq, dk=dk, dv=dv)
    run, threads, with_lse = library.function("backward"), _threads(lists, q, v), bool(grad_lse)
    at, how = lists.address, ctypes.addressof(layout)
    kept = lists, layout

    def step(grad_out: Tensor, *others: Tensor) -> None:
        slopes, others = (others[0].data_ptr(), others[1:]) if with_lse else (None, others)
        *inputs, dq, dk, dv = (x.data_ptr() for x in others[:8])
        padding = others[8].data_ptr() if len(others) > 8 else None
        failed = run(at, how, grad_out.data_ptr(), slopes, *inputs, padding, dq, dk, dv, threads())
        _check(failed, kept)

    tape.do(step, grad_out, *grad_lse, q, k, v, out, lse, dq, dk, dv, *_real_keys(tape, call, k))
    return _in(tape, dq, q.dtype), dk, dv, []


def _with_rows(tape: Tape, x: Tensor) -> Tensor:
    """The numbers of a row side by side."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else tape.do(Tensor.contiguous, x)


def _sums_dtype(lists: TileLists, q: Tensor) -> torch.dtype:
    """Where a query is in several tiles, what is between them is not rounded."""
    return q.dtype if lists.stages <= 1 else torch.float32


def _in(tape: Tape, x: Tensor, dtype: torch.dtype) -> Tensor:
    return x if x.dtype == dtype else tape.do(partial(Tensor.to, dtype=dtype), x)


def _layout(
    call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, sums: torch.dtype, **others: Tensor
) -> Layout:
    sizes = (*q.shape[:2], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3])
    layout = Layout(*sizes, DTYPES[q.dtype], DTYPES[sums], scale=call.scale, parallel=library.parallel())
    for name, x in {"q": q, "k": k, "v": v, **others}.items():
        getattr(layout, name)[:] = x.stride()[:3]
    return layout


def _threads(lists: TileLists, q: Tensor, v: Tensor) -> Callable[[], int]:
    """How many threads a call takes."""
    work = lists.pairs * q.shape[0] * q.shape[1] * (q.shape[3] + v.shape[3]) // 2
    return torch.get_num_threads if work > MOST_ALONE else lambda: 1


def _real_keys(tape: Tape, call: AttentionCall, k: Tensor) -> list[Tensor]:
    """Which keys of each element are no padding, [batch, m], where some are."""
    if call.key_mask is not None:
        return [tape.do(Tensor.contiguous, call.key_mask)]
    if call.key_range is None:
        return []
    keys = k.shape[2]

    def real(key_range: Tensor) -> Tensor:
        places = torch.arange(keys)
        return (places >= key_range[:, :1]) & (places < key_range[:, 1:])

    return [tape.do(real, call.key_range)]


def _check(failed: int, _kept: object) -> None:
    """Raises where there was too little memory; what compiled code points to lives as long as its step."""
    if failed:
        raise MemoryError("attention needs a few rows of memory for each thread, and there is none")
