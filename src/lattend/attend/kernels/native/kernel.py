"""The native kernel: a call of compiled code, which goes through a plan's tiles of 16 queries."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from lattend.attend.bias import dtype_name
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.tensors import strides
from lattend.attend.kernels.crossover import KernelCrossover
from lattend.attend.kernels.diagonal_blocks import diagonal_blocks
from lattend.attend.kernels.native import crossovers, library
from lattend.attend.kernels.native.dense_bias import DenseBias
from lattend.attend.kernels.native.tile_lists import (
    MAX_ENTRIES,
    TileLists,
    entries,
    pairs_in_tiles,
    tile_lists,
)
from lattend.attend.replay import host
from lattend.attend.replay.recorder import Recorder, contiguous_strides
from lattend.plans.plan import plan

DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}  # as in source/vectors.h
MAX_BIASED = 1 << 24  # pairs of all heads and batch elements: 64 MiB of numbers
FEW_BIASED = 1 << 21  # and those up to which all of them are evaluated sooner than those in torch's tiles
MOST_UNUSED = 4  # beyond that, pairs for each one in a tile
MOST_ALONE = 1 << 19  # multiply-adds of a product that one thread does sooner than several
MATRICES = ("q", "k", "v", "out", "grad_out", "dq", "dk", "dv")


class LayoutStruct(ctypes.Structure):
    """The struct Layout of source/tiles.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("batch", "heads", "kv_heads", "queries", "keys")),
        *((name, ctypes.c_int64) for name in ("dims", "value_dims", "dtype", "sums_dtype")),
        *((name, ctypes.c_int64 * 3) for name in MATRICES),
        ("bias", ctypes.c_int64 * 4),
        ("scale", ctypes.c_double),
        ("softcap", ctypes.c_double),
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
    if call.dropout:
        return "there is dropout"
    if call.data:
        return "the rule looks up arrays that are given at call time"
    found = plan(call.rule)
    if not found.fits or max(q.shape[2], k.shape[2]) >= 1 << 31:
        return "the rule's numbers lead beyond 64 bits"
    if entries(found) > MAX_ENTRIES:
        return "too many tiles have masks of their own"
    return None if call.term is None else _why_not_bias(call, prod(q.shape[:2]), q.shape[2] * k.shape[2])


def _why_not_bias(call: AttentionCall, members: int, pairs: int) -> str | None:
    """Why it cannot take the bias of so many pairs in each head of each batch element."""
    if members * pairs > MAX_BIASED:
        return f"it holds the bias of all pairs, at most {MAX_BIASED:,}: there are {members * pairs:,}"
    evaluated = all(tensor.numel() < pairs for tensor in call.bias.values())
    if evaluated and members * pairs > FEW_BIASED and pairs > MOST_UNUSED * pairs_in_tiles(plan(call.rule)):
        return "it evaluates the bias on all pairs, and few of them are attended"
    return None


def crossover(work: str, call: AttentionCall, q: Tensor, v: Tensor) -> KernelCrossover | None:
    """Where torch's own attention overtakes this kernel; None where it cannot run or was not measured."""
    blocks = diagonal_blocks(plan(call.rule)) if q.device.type == "cpu" else None
    if blocks is None:
        return None
    keys = v.shape[2] if blocks.window is None else blocks.window
    return crossovers.crossover(work, q.dtype, blocks.causal, keys, max(q.shape[3], v.shape[3]))


def forward(
    recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp; the same bits however many threads there are."""
    lists = tile_lists(plan(call.rule))
    q, k, v = (_with_rows(recorder, x) for x in (q, k, v))
    dtype = _sums_dtype(lists, q)
    out = recorder.empty((*q.shape[:-1], v.shape[-1]), dtype, q.device, strides(q, v.shape[-1]))
    real, bias = _real_keys(recorder, call, k), None
    if call.term is not None:
        bias = DenseBias(recorder, call, q, k).values()
    layout = _layout(call, q, k, v, dtype, bias, out=out)
    given = q, k, v, real, bias, out
    sizes = tuple(q.shape[:-1])
    order = contiguous_strides(sizes)  # torch.empty takes longer than empty_strided
    empty = partial(torch.empty_strided, sizes, order, dtype=torch.float32, device=q.device)
    with_lse, alone = (_caller("forward", lists, layout, *_are_there(given), lse) for lse in (True, False))

    def both(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        lse = empty()
        with_lse(*tensors, lse)
        return tensors[-1], lse

    def output(*tensors: Tensor) -> Tensor:
        alone(*tensors)
        return tensors[-1]

    first = output if lists.stages <= 1 else None  # later stages go on from the log-sum-exp
    out, lse = recorder.do(both, *_there(given), first=first)
    return recorder.in_dtype(out, q.dtype), lse


def backward(recorder: Recorder, call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k, v and the bias; the same bits however many threads there are."""
    lists = tile_lists(plan(call.rule))
    grad_out, q, k, v, out = (
        _with_rows(recorder, x) for x in (given.grad_out, given.q, given.k, given.v, given.out)
    )
    lse, grad_lse = (
        x if x is None or x.is_contiguous() else recorder.do(Tensor.contiguous, x)
        for x in (given.lse, given.grad_lse)
    )
    dtype = _sums_dtype(lists, q)
    dq = recorder.empty(q.shape, dtype, q.device, strides(q, q.shape[-1]))
    dk, dv = (recorder.empty(x.shape, x.dtype, x.device, strides(x, x.shape[-1])) for x in (k, v))
    real, dense, bias, slopes = _real_keys(recorder, call, k), None, None, None
    if call.term is not None:
        dense = DenseBias(recorder, call, q, k)
        bias = dense.values()
        if call.learned and call.bias:
            slopes = recorder.do(partial(torch.zeros, dense.shape, dtype=torch.float32))
    layout = _layout(call, q, k, v, dtype, bias, out=out, grad_out=grad_out, dq=dq, dk=dk, dv=dv)
    inputs = grad_out, grad_lse, q, k, v, out, lse, real, bias
    whole = *inputs, dq, dk, dv, slopes
    recorder.do(_caller("backward", lists, layout, *_are_there(whole)), *_there(whole))
    if dense is not None and slopes is not None:
        biases = dense.gradients(slopes)
    else:
        biases = [recorder.do(torch.zeros_like, x) for x in call.bias.values()]
    return recorder.in_dtype(dq, q.dtype), dk, dv, biases


def _with_rows(recorder: Recorder, x: Tensor) -> Tensor:
    """The numbers of a row side by side."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else recorder.do(Tensor.contiguous, x)


def _sums_dtype(lists: TileLists, q: Tensor) -> torch.dtype:
    """Where a query is in several tiles, what is between them is not rounded."""
    return q.dtype if lists.stages <= 1 else torch.float32


def _layout(
    call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, sums: torch.dtype, bias: Tensor | None,
    **others: Tensor,
) -> LayoutStruct:  # fmt: skip
    sizes = (*q.shape[:2], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3])
    layout = LayoutStruct(
        *sizes, DTYPES[q.dtype], DTYPES[sums], scale=call.scale, softcap=call.softcap or 0.0
    )
    layout.parallel = library.parallel()
    if bias is not None:
        layout.bias[:] = bias.stride()
    for name, x in {"q": q, "k": k, "v": v, **others}.items():
        getattr(layout, name)[:] = x.stride()[:3]
    return layout


def _there(given: Sequence[Tensor | None]) -> list[Tensor]:
    return [x for x in given if x is not None]


def _are_there(given: Sequence[Tensor | None]) -> list[bool]:
    return [x is not None for x in given]


def _caller(name: str, lists: TileLists, layout: LayoutStruct, *there: bool) -> Callable[..., None]:
    """A call of compiled code with the addresses of tensors; null for one that is not there."""
    places = [place for place, given in enumerate(there, 2) if given]
    arguments = [lists.address, ctypes.addressof(layout), *[0] * len(there)]
    work = lists.pairs * layout.batch * layout.heads * (layout.dims + layout.value_dims) // 2
    threads = torch.get_num_threads if work > MOST_ALONE else _alone
    kept = lists, layout  # what compiled code points to
    numbered = tuple((place, tensor) for tensor, place in enumerate(places))
    return caller(library.function(name), arguments, numbered, threads, kept)


def _alone() -> int:
    return 1


def caller(
    function: Any, arguments: Sequence[int], places: tuple[tuple[int, int], ...],
    threads: Callable[[], int], kept: object,
) -> Callable[..., None]:  # fmt: skip
    """A call of compiled code: `places` says which argument is which tensor's address, or which number."""
    if (module := host.module()) is not None:
        address = ctypes.cast(function, ctypes.c_void_p).value
        return module.caller(address, array("Q", arguments).tobytes(), places, len(places), threads, kept)

    def call(*given: Tensor | int, kept: object = kept) -> None:
        mine = [*arguments]
        for place, number in places:
            x = given[number]
            mine[place] = x if isinstance(x, int) else x.data_ptr()
        if function(*mine, threads()):
            raise MemoryError("attention needs some rows of memory for each thread, and there is none")

    return call


def _real_keys(recorder: Recorder, call: AttentionCall, k: Tensor) -> Tensor | None:
    """Which keys of each element are no padding, [batch, m], where some are."""
    if call.key_mask is not None:
        return recorder.do(Tensor.contiguous, call.key_mask)
    if call.key_range is None:
        return None
    keys = k.shape[2]

    def real(key_range: Tensor) -> Tensor:
        places = torch.arange(keys)
        return (places >= key_range[:, :1]) & (places < key_range[:, 1:])

    return recorder.do(real, call.key_range)
