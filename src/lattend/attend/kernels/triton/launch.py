"""Running a plan on the GPU: one launch of a kernel for each part, sums carried on from part to part."""

# Triton has no stubs, and its kernels take plain numbers for constexpr
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from lattend.attend.call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.dropout import kept_share, limit_of
from lattend.attend.kernels.triton.backward import (
    attention_bwd_dkdv_kernel,
    attention_bwd_dq_kernel,
)
from lattend.attend.kernels.triton.device_tables import (
    depends_on_data,
    device_table,
    room_for_row_bounds,
)
from lattend.attend.kernels.triton.fixed_point import FixedPointSums
from lattend.attend.kernels.triton.forward import attention_fwd_kernel
from lattend.attend.kernels.triton.fused import fused_backward
from lattend.attend.kernels.triton.hopper.query_order import by_keys, first_tiles
from lattend.attend.kernels.triton.kernel import may_take_hopper, whole_16_bytes
from lattend.attend.kernels.triton.largest import attention_max_kernel
from lattend.attend.kernels.triton.launched import launch
from lattend.attend.kernels.triton.prepared import (
    MOST_KNOWN,
    Arrays,
    Prepared,
    has_large_numbers,
    header_numbers,
    is_wide,
)
from lattend.attend.kernels.triton.shapes import FUSED_SHAPE, TileShape, choose
from lattend.attend.kernels.triton.source import generated
from lattend.attend.kernels.triton.tables import with_known_lists, without_full
from lattend.attend.kernels.triton.turns import Turn, sequence
from lattend.attend.linalg import vecdot
from lattend.attend.memory import per_kv_head, per_query_head, row_strides, strides
from lattend.attend.tape import Tape
from lattend.plans.part import Part
from lattend.plans.plan import PROBE, Plan
from lattend.recent import Recent
from lattend.rules.language.expr import Term

# Keys of all kv heads whose tiles leave the chip idle, and queries of all heads that meet one of these tiles
# from which on it takes long in float32
FEW_KEYS, MANY_ROWS = 128 * 64, 2048
FUSED = ("backward", "backward_ordered")  # kernels that make all gradients
BY_KEYS = ("backward_dkdv", *FUSED)  # whose tiles are of keys
Shapes = Callable[[str, int], TileShape]  # kernel and part to shape


class Runner:
    """The tables of one plan on one device, and the launches."""

    def __init__(
        self, plan: Plan, device: torch.device, shapes: Shapes | None = None, term: Term | None = None,
        tensors: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.plan, self.device, self.shapes = plan, device, shapes
        self.term, self.tensors = term, tensors
        self.prepared: Recent[object, Prepared] = Recent(MOST_KNOWN)
        self.sent: Recent[object, Tensor] = Recent(MOST_KNOWN)

    @cached_property
    def most_queries(self) -> int:
        """The queries of one head that a tile of keys meets, at most."""
        places = range(len(self.plan.transposed))
        found = (self.plan.tiles(place, PROBE[len(self.plan.axes)], transposed=True) for place in places)
        return max((int(tiles.inner.max(initial=0)) for tiles in found), default=0)

    def part(
        self, tape: Tape, kernel: str, place: int, q: Tensor, v: Tensor, arrays: Arrays, *,
        hopper: bool = False,
    ) -> Prepared:  # fmt: skip
        """A part made ready, and remembered where it depends on nothing that is given now."""
        part = (self.plan.transposed if kernel in BY_KEYS else self.plan.parts)[place]
        given = (part, kernel, place, q, v, arrays, hopper)
        if any(name not in self.plan.rule.data for name in part.data):
            return self._prepared(tape, *given)
        if self.term is not None:
            ready = self._prepared(Tape(), *given)
        else:
            key = (kernel, place, q.shape[-1], v.shape[-1], q.dtype, hopper)
            ready = self.prepared.find(key, lambda: self._prepared(Tape(), *given))
        for known in (ready.table, ready.header, ready.row_bounds, ready.first_tiles):
            if known is not None:
                tape.keep(known)
        return ready

    def _prepared(
        self, tape: Tape, part: Part, kernel: str, place: int, q: Tensor, v: Tensor, arrays: Arrays,
        hopper: bool,
    ) -> Prepared:  # fmt: skip
        size, transposed = max(q.shape[-1], v.shape[-1]), kernel in BY_KEYS
        ordered = kernel == "backward_ordered"
        if kernel in FUSED:
            shape = FUSED_SHAPE
        elif self.shapes is None:
            shape = choose(self.plan, place, kernel, size, q.dtype, hopper=hopper).shape
        else:
            shape = self.shapes(kernel, place)
        if not all(map(whole_16_bytes, (q, v))):
            shape = replace(shape, tma=False)  # TMA takes no other rows
        tiles, order = self.plan.tiles(place, shape.outer, transposed=transposed), None
        if ordered:
            tiles = replace(tiles, table=by_keys(tiles.table))
            first = first_tiles(tiles.table, part.axes[0].inner_size, shape.step)
            order = tape.keep(torch.from_numpy(first).to(self.device))
        table = self.sent.find(
            (transposed, ordered, place, shape.outer),
            lambda: _sent(part, with_known_lists(tiles, self.device)),
        )
        functions = generated(part, self.term, self.tensors)
        numbers = header_numbers(part, functions, arrays)
        header = self.sent.find(
            tuple(numbers), lambda: torch.tensor(numbers, dtype=torch.int64).to(self.device)
        )
        tape.keep(table)
        tape.keep(header)
        row_bounds = None
        if tiles.lists is None and depends_on_data(part):
            wide = has_large_numbers(part)
            row_bounds = room_for_row_bounds(tape, part, arrays) if shape.hopper else None
            table = device_table(tape, part, table, shape.rows, functions, header, arrays, wide, row_bounds)
        data = tuple(arrays[name] for name in functions.arrays)
        return Prepared(part, shape, functions, table, header, data, row_bounds, order)

    def forward(
        self, tape: Tape, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, arrays: Arrays
    ) -> tuple[Tensor, Tensor]:
        """The output in the inputs' dtype, and the log-sum-exp in float32."""
        if call.scale < 0:  # the kernel takes the largest score before it multiplies
            q, call = tape.do(torch.neg, q), replace(call, scale=-call.scale)
        q, k, v = (_rows_together(tape, x) for x in (q, k, v))
        (batch, heads, rows, _), width = q.shape, v.shape[-1]
        turns, begins, ends = sequence(self.plan.parts)
        out = tape.empty((batch, heads, rows, width), q.dtype, q.device, strides(q, width))
        sums, lse = out, tape.empty(q.shape[:-1], torch.float32, q.device)
        if not all(turn.alone for turn in turns):
            sums = tape.empty(out.shape, torch.float32, q.device)
        if not begins:
            tape.do(_filled(0.0), sums)
            tape.do(_filled(float("-inf")), lse)
        hopper = may_take_hopper(call, q, v)
        for turn in turns:
            small = hopper and not is_wide(self.plan.parts[turn.place], q, k, v)
            ready = self.part(tape, "forward", turn.place, q, v, arrays, hopper=small)
            programs = ready.tiles * batch * heads
            if not programs:
                continue
            constants = turn.constants
            if ready.shape.hopper:
                _on_hopper().forward(tape, ready, call.scale, q, k, v, out, sums, lse, constants)
            else:
                arguments = (
                    q, *ready.inner(k, v), out, sums, lse,
                    ready.table, ready.header, ready.data or (lse,), *_weighing(tape, call, lse),
                    *row_strides(q), *row_strides(k), *row_strides(v), *row_strides(out),
                    heads, heads // k.shape[1], rows, ready.tiles, *ready.strides,
                )  # fmt: skip
                constants |= ready.constants(call, q, k, v)
                launch(tape, attention_fwd_kernel, programs, arguments, constants)
        return (out if ends else tape.in_dtype(sums, q.dtype)), lse

    def largest(self, tape: Tape, call: AttentionCall, q: Tensor, k: Tensor, arrays: Arrays) -> Tensor:
        """The largest score of each query in float32."""
        q, k = (_rows_together(tape, x) for x in (q, k))
        batch, heads, rows, _ = q.shape
        found = tape.empty(q.shape[:-1], torch.float32, q.device)
        tape.do(_filled(float("-inf")), found)
        for place in range(len(self.plan.parts)):
            ready = self.part(tape, "forward", place, q, k, arrays)
            if ready.tiles and batch * heads:
                arguments = (
                    q, *ready.inner(k), found,
                    ready.table, ready.header, ready.data or (found,), *_weighing(tape, call, found),
                    *row_strides(q), *row_strides(k),
                    heads, heads // k.shape[1], rows, ready.tiles, *ready.strides,
                )  # fmt: skip
                constants = ready.constants(call, q, k, k)
                launch(tape, attention_max_kernel, ready.tiles * batch * heads, arguments, constants)
        return found

    def backward(self, tape: Tape, call: AttentionCall, given: BackwardInputs, arrays: Arrays) -> Gradients:
        """The gradients of queries, keys and values, and of a bias; the same on every run."""
        whole = (given.q, given.k, given.v, given.grad_out, given.out)
        q, k, v, grad, out = (_rows_together(tape, x) for x in whole)
        grad_lse, lse = given.grad_lse, given.lse
        given = BackwardInputs(grad, grad_lse, q, k, v, out, lse)
        if self.takes_fused(call, given):
            return (*self.backward_fused(tape, call, given, arrays), [])
        delta = tape.empty(lse.shape, lse.dtype, lse.device)
        fixed = FixedPointSums.of(tape, self.plan, call, arrays, given)
        grad_q = self.backward_dq(tape, call, given, delta, arrays, fixed)
        grad_k, grad_v = self.backward_dkdv(tape, call, given, delta, arrays)
        return grad_q, grad_k, grad_v, fixed.gradients(tape)

    def takes_fused(self, call: AttentionCall, given: BackwardInputs) -> bool:
        """Whether one kernel makes all gradients."""
        q, k, v = given.q, given.k, given.v
        if self.shapes is not None or self._few_keys(q, k):
            return False
        wide = any(is_wide(part, q, k, v) for part in self.plan.transposed)
        return not wide and fused_backward(self.plan, call, q, v) is not None

    def backward_fused(
        self, tape: Tape, call: AttentionCall, given: BackwardInputs, arrays: Arrays
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of queries, keys and values by one kernel, part by part."""
        q, k, v = given.q, given.k, given.v
        turns, begins, ends = sequence(self.plan.transposed)
        from lattend.attend.kernels.triton.hopper import query_sums

        queries = query_sums.begin(tape, given, FUSED_SHAPE.step)
        found_k, sums_k = _sums(tape, k, turns, begins)
        found_v, sums_v = _sums(tape, v, turns, begins)
        for number, turn in enumerate(turns):
            kernel = "backward_ordered" if call.deterministic else "backward"
            ready = self.part(tape, kernel, turn.place, q, v, arrays, hopper=True)
            if not ready.tiles * k.shape[0] * k.shape[1]:
                continue
            if number:
                tape.do(_filled(0), queries.counters)
            sums, found = (sums_k, sums_v), (found_k, found_v)
            _on_hopper().backward_fused(tape, ready, call.scale, given, queries, sums, found, turn.constants)
        grad_q = tape.empty(q.shape, q.dtype, q.device, strides(q, q.shape[-1]))
        query_sums.end(tape, queries.sums, call.scale, grad_q)
        if ends:
            return grad_q, found_k, found_v
        return grad_q, tape.in_dtype(sums_k, k.dtype), tape.in_dtype(sums_v, v.dtype)

    def _few_keys(self, q: Tensor, k: Tensor) -> bool:
        """Whether heads share keys, and these are too few to keep the chip busy."""
        share = q.shape[1] // max(1, k.shape[1])
        many = MANY_ROWS if q.dtype == torch.float32 else 4 * MANY_ROWS
        return share > 1 and k.shape[:3].numel() < FEW_KEYS and share * self.most_queries >= many

    def backward_dq(
        self, tape: Tape, call: AttentionCall, given: BackwardInputs, delta: Tensor, arrays: Arrays,
        fixed: FixedPointSums,
    ) -> Tensor:  # fmt: skip
        """The gradient of the queries; also fills delta, and adds to the gradients of a bias."""
        grad, grad_lse, q, k, v, out, lse = given
        batch, heads, rows, _ = q.shape
        turns, begins, ends = sequence(self.plan.parts)
        found, sums = _sums(tape, q, turns, begins)
        if not begins:
            tape.do(_make_delta, delta, out, grad, *(() if grad_lse is None else (grad_lse,)))
        other = delta if grad_lse is None else tape.do(Tensor.contiguous, grad_lse)
        hopper = may_take_hopper(call, q, v, "backward_dq")
        for turn in turns:
            small = hopper and not is_wide(self.plan.parts[turn.place], q, k, v)
            ready = self.part(tape, "backward_dq", turn.place, q, v, arrays, hopper=small)
            makes_delta = begins and not turn.continues
            constants = turn.constants | {"MAKES_DELTA": makes_delta, "HAS_GRAD_LSE": grad_lse is not None}
            programs = ready.tiles * batch * heads
            if not programs:
                continue
            if ready.shape.hopper:
                _on_hopper().backward_dq(tape, ready, call.scale, given, other, delta, sums, found, constants)
            else:
                arguments = (
                    q, *ready.inner(k, v), out, grad, other, lse, delta, sums, found,
                    fixed.sums or (lse,), fixed.quanta,
                    ready.table, ready.header, ready.data or (lse,), *_weighing(tape, call, lse),
                    *row_strides(q), *row_strides(k), *row_strides(v), *row_strides(out), *row_strides(grad),
                    *row_strides(found),
                    heads, heads // k.shape[1], rows, ready.tiles, *ready.strides,
                )  # fmt: skip
                constants |= {"SLOPES": ready.functions.slopes if fixed.sums else None}
                constants |= ready.constants(call, q, k, v)
                launch(tape, attention_bwd_dq_kernel, programs, arguments, constants)
        return found if ends else tape.in_dtype(sums, q.dtype)

    def backward_dkdv(
        self, tape: Tape, call: AttentionCall, given: BackwardInputs, delta: Tensor, arrays: Arrays
    ) -> tuple[Tensor, Tensor]:
        """The gradients of the keys and values.

        Where heads share keys, and these are too few to keep the chip busy, each head has its own first.
        """
        q, k, v = given.q, given.k, given.v
        if not self._few_keys(q, k):
            return self._dkdv(tape, call, given, delta, arrays)
        repeat = partial(per_query_head, heads=q.shape[1])
        apart = given._replace(k=tape.do(repeat, k), v=tape.do(repeat, v))
        each = self._dkdv(tape, call, apart, delta, arrays, torch.float32)
        found = (tape.do(per_kv_head, x, like) for x, like in zip(each, (k, v), strict=True))
        dk, dv = (tape.in_dtype(x, k.dtype) for x in found)
        return dk, dv

    def _dkdv(
        self, tape: Tape, call: AttentionCall, given: BackwardInputs, delta: Tensor, arrays: Arrays,
        dtype: torch.dtype | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The gradients of each kv head, in their own dtype or this."""
        grad, _, q, k, v, _, lse = given
        batch, heads, rows, _ = q.shape
        kv_heads, keys = k.shape[1], k.shape[2]
        turns, begins, ends = sequence(self.plan.transposed)
        hopper = dtype is None and may_take_hopper(call, q, v, "backward_dkdv")
        found_k, sums_k = _sums(tape, k, turns, begins, dtype)
        found_v, sums_v = _sums(tape, v, turns, begins, dtype)
        for turn in turns:
            small = hopper and not is_wide(self.plan.transposed[turn.place], q, k, v)
            ready = self.part(tape, "backward_dkdv", turn.place, q, v, arrays, hopper=small)
            constants = turn.constants
            programs = ready.tiles * batch * kv_heads
            if not programs:
                continue
            if ready.shape.hopper:
                sums, found = (sums_k, sums_v), (found_k, found_v)
                _on_hopper().backward_dkdv(tape, ready, call.scale, given, delta, sums, found, constants)
            else:
                inner_q, inner_grad = ready.inner(q, grad)
                arguments = (
                    inner_q, k, v, inner_grad, lse, delta, sums_k, sums_v, found_k, found_v,
                    ready.table, ready.header, ready.data or (lse,), *_weighing(tape, call, lse),
                    *row_strides(q), *row_strides(k), *row_strides(v), *row_strides(grad),
                    *row_strides(found_k), *row_strides(found_v),
                    heads, heads // kv_heads, rows, keys, ready.tiles, *ready.strides,
                )  # fmt: skip
                constants |= ready.constants(call, q, k, v)
                launch(tape, attention_bwd_dkdv_kernel, programs, arguments, constants)
        if ends:
            return found_k, found_v
        return tape.in_dtype(sums_k, dtype or k.dtype), tape.in_dtype(sums_v, dtype or v.dtype)


def _on_hopper() -> Any:
    """The launches of kernels in Gluon, which not every Triton has."""
    from lattend.attend.kernels.triton.hopper import launches

    return launches


def _weighing(tape: Tape, call: AttentionCall, unused: Tensor) -> tuple[Any, ...]:
    """The arguments about scores and weights: scale, softcap, seed, limit and share of dropout, padding."""
    softcap, seed = call.softcap or 1.0, unused if call.seed is None else call.seed
    real = unused if call.key_range is None else tape.do(Tensor.contiguous, call.key_range)
    mask, row = unused, 0
    if call.key_mask is not None:
        mask, row = tape.do(_as_bytes, call.key_mask), call.key_mask.shape[1]
    return call.scale, softcap, seed, limit_of(call.dropout), kept_share(call.dropout), real, mask, row


def _filled(value: float) -> Callable[[Tensor], Tensor]:
    return lambda x: x.fill_(value)


def _as_bytes(mask: Tensor) -> Tensor:
    return mask.contiguous().view(torch.uint8)


def _make_delta(delta: Tensor, out: Tensor, grad: Tensor, grad_lse: Tensor | None = None) -> None:
    delta.copy_(vecdot(out.float(), grad.float()))
    delta -= 0.0 if grad_lse is None else grad_lse


def _sent(part: Part, table: Tensor) -> Tensor:
    """The plan's table as the kernels read it, entries in order; no full range is known without the data."""
    # a table with lists behind it lies so already and is not copied
    return (table if depends_on_data(part) or not part.cut_by else without_full(table)).contiguous()


def _rows_together(tape: Tape, x: Tensor) -> Tensor:
    """The tensor, or a copy, that TMA can read: rows whole, all strides multiples of 16 bytes."""
    apart = 16 // x.element_size()
    fits = x.stride(-1) == 1 and all(s % apart == 0 for s in x.stride()[:-1]) and x.data_ptr() % 16 == 0
    return x if fits else tape.do(_copied, x)


def _copied(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format)


def _sums(
    tape: Tape, x: Tensor, turns: Sequence[Turn], begins: bool, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """Where a gradient goes, in its own dtype or this, and where it is summed up over several parts.

    It lies in memory as its tensor does, so that it is not copied; the sums lie in order.
    """
    found = tape.empty(x.shape, dtype or x.dtype, x.device, strides(x, x.shape[-1]))
    sums = found if all(turn.alone for turn in turns) else tape.empty(x.shape, torch.float32, x.device)
    return found, sums if begins else tape.do(_filled(0.0), sums)
