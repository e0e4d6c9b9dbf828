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
from lattend.attend.call.attention_call import (
    AttentionCall,
    BackwardInputs,
    BackwardPass,
    ForwardPass,
)
from lattend.attend.call.tensors import contiguous_strides, strides
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


def prepare(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> ForwardPass:
    """Prepares a forward pass, which gives the same bits however many threads there are."""
    lists = tile_lists(plan(call.rule))
    extras, dtype = ExtraInputs(call, q, k), _sums_dtype(lists, q)
    order, rows, q_dtype = strides(q, v.shape[-1]), q.shape[:-1], q.dtype
    layout = _layout(call, q, k, v, dtype, extras, out=order)
    empty_output = partial(torch.empty_strided, (*rows, v.shape[-1]), order, dtype=dtype)
    empty_lse = partial(torch.empty_strided, rows, contiguous_strides(rows), dtype=torch.float32)
    slots = True, True, True, *extras.present, True
    with_lse, alone = (_caller("forward", lists, layout, *slots, lse) for lse in (True, False))
    copies, has_extras = _lies_apart(q, k, v), bool(call.tensors) or any(extras.present)

    def inputs(q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        q, k, v = map(_with_rows, (q, k, v)) if copies else (q, k, v)
        return q, k, v, *extras.of(tensors)

    def run(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        tensors = inputs(*tensors) if copies or has_extras else tensors
        output, lse = empty_output(), empty_lse()
        with_lse(*tensors, output, lse)
        return output if dtype == q_dtype else output.to(q_dtype), lse

    def output_alone(*tensors: Tensor) -> Tensor:
        tensors = inputs(*tensors) if copies or has_extras else tensors
        output = empty_output()
        alone(*tensors, output)
        return output

    if lists.stages > 1:  # later stages go on from the log-sum-exp
        return ForwardPass.of(run)
    return ForwardPass(run, output_alone)


def prepare_backward(call: AttentionCall, inputs: BackwardInputs) -> BackwardPass:
    """Prepares a backward pass, which gives the same bits however many threads there are."""
    lists = tile_lists(plan(call.rule))
    grad_out, grad_lse, q, k, v, out, lse = inputs
    extras, dtype = ExtraInputs(call, q, k), _sums_dtype(lists, q)
    orders = [strides(x, x.shape[-1]) for x in (q, k, v)]
    dq, dk, dv = orders
    others = {"out": _with_rows(out).stride(), "grad_out": _with_rows(grad_out).stride()}
    layout = _layout(call, q, k, v, dtype, extras, **others, dq=dq, dk=dk, dv=dv)
    empty_dq, empty_dk, empty_dv = (
        partial(torch.empty_strided, x.shape, order, dtype=sums)
        for x, order, sums in zip((q, k, v), orders, (dtype, k.dtype, v.dtype), strict=True)
    )
    learns, has_grad_lse = call.learned and bool(call.bias), grad_lse is not None
    slots = True, has_grad_lse, *[True] * 5, *extras.present, *[True] * 3, learns
    compiled = _caller("backward", lists, layout, *slots)
    copies = has_grad_lse or not lse.is_contiguous() or _lies_apart(grad_out, q, k, v, out)
    has_extras = bool(call.tensors) or any(extras.present)
    matrices, q_dtype = 7 if has_grad_lse else 6, q.dtype

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        others, slopes = tensors[matrices:], extras.empty_slopes() if learns else []
        if copies:
            tensors = *map(_with_rows, tensors[:matrices]), *others
        if has_extras:
            tensors = *tensors[:matrices], *extras.of(others)
        dq, dk, dv = empty_dq(), empty_dk(), empty_dv()
        compiled(*tensors, dq, dk, dv, *slopes)
        dq = dq if dtype == q_dtype else dq.to(q_dtype)
        return [dq, dk, dv, *extras.bias_gradients(slopes, others)] if others else [dq, dk, dv]

    return run


class ExtraInputs:
    """What compiled code reads besides q, k and v: which keys are real, and the bias of each pair."""

    def __init__(self, call: AttentionCall, q: Tensor, k: Tensor) -> None:
        self.has_mask, self.has_range = call.key_mask is not None, call.key_range is not None
        self.keys, self.biases = k.shape[2], len(call.bias)
        self.bias = None if call.term is None else DenseBias(call, q, k)
        self.present = self.has_range, self.bias is not None
        self.bias_strides = None if self.bias is None else self.bias.values([*call.bias.values()]).stride()

    def of(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Returns those that there are, from the tensors of a call besides q, k and v."""
        if not tensors and self.bias is None:
            return []
        extras: list[Tensor] = []
        if self.has_mask:  # [batch, m]
            extras.append(tensors[-1].contiguous())
        elif self.has_range:
            key, key_range = torch.arange(self.keys), tensors[-1]
            extras.append((key >= key_range[:, :1]) & (key < key_range[:, 1:]))
        if self.bias is not None:
            extras.append(self.bias.values(tensors[: self.biases]))
        return extras

    def empty_slopes(self) -> list[Tensor]:
        """Returns zeros [batch, heads, n, m], to which a backward pass adds the slopes of all scores."""
        assert self.bias is not None
        return [torch.zeros(self.bias.shape, dtype=torch.float32)]

    def bias_gradients(self, slopes: Sequence[Tensor], tensors: Sequence[Tensor]) -> list[Tensor]:
        """Returns the gradients of the bias' tensors; zeros where none are wanted."""
        biases = tensors[: self.biases]
        if self.bias is None or not slopes:
            return [torch.zeros_like(x) for x in biases]
        return self.bias.gradients(slopes[0], biases)


def _lies_apart(*tensors: Tensor) -> bool:
    """Whether some of the tensors have rows whose numbers lie apart, and so must be copied."""
    return any(x.stride(-1) != 1 and x.shape[-1] != 1 for x in tensors)


def _with_rows(x: Tensor) -> Tensor:
    """A matrix with the numbers of a row side by side; numbers of rows, [batch, heads, n], contiguous."""
    if x.dim() == 3:
        return x.contiguous()
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _sums_dtype(lists: TileLists, q: Tensor) -> torch.dtype:
    """Where a query is in several tiles, what is between them is not rounded."""
    return q.dtype if lists.stages <= 1 else torch.float32


def _layout(
    call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, sums: torch.dtype, extras: ExtraInputs,
    **orders: Sequence[int],
) -> LayoutStruct:  # fmt: skip
    """Describes the sizes and dtypes to compiled code; `orders` are the strides of other matrices."""
    sizes = (*q.shape[:2], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3])
    layout = LayoutStruct(
        *sizes, DTYPES[q.dtype], DTYPES[sums], scale=call.scale, softcap=call.softcap or 0.0
    )
    layout.parallel = library.parallel()
    if extras.bias_strides is not None:
        layout.bias[:] = extras.bias_strides
    orders = {"q": _with_rows(q).stride(), "k": _with_rows(k).stride(), "v": _with_rows(v).stride(), **orders}
    for name, order in orders.items():
        getattr(layout, name)[:] = order[:3]
    return layout


def _caller(name: str, lists: TileLists, layout: LayoutStruct, *given: bool) -> Callable[..., None]:
    """A call of compiled code with the addresses of tensors; null for one that is not given."""
    slots = [slot for slot, there in enumerate(given, 2) if there]
    arguments = [lists.address, ctypes.addressof(layout), *[0] * len(given)]
    work = lists.pairs * layout.batch * layout.heads * (layout.dims + layout.value_dims) // 2
    threads = torch.get_num_threads if work > MOST_ALONE else _alone
    kept = lists, layout  # what compiled code points to
    numbered = tuple((slot, tensor) for tensor, slot in enumerate(slots))
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
