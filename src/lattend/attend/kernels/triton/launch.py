"""Running a plan on the GPU: one launch of a kernel for each part, sums carried on from part to part."""

# Triton has no stubs, and its kernels take plain numbers for constexpr
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.tensors import per_kv_head, per_query_head, row_strides, vecdot
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.kernels.triton import careful
from lattend.attend.kernels.triton.backward import (
    attention_bwd_dkdv_kernel,
    attention_bwd_dq_kernel,
)
from lattend.attend.kernels.triton.chunk_sums import add_chunks
from lattend.attend.kernels.triton.device_tables import (
    depends_on_data,
    device_table,
    room_for_row_bounds,
)
from lattend.attend.kernels.triton.fixed_point import FixedPointSums
from lattend.attend.kernels.triton.forward import attention_fwd_kernel
from lattend.attend.kernels.triton.kernel import may_take_hopper, whole_16_bytes
from lattend.attend.kernels.triton.launch_arguments import (
    MOST_KNOWN,
    Arrays,
    Joined,
    LaunchArguments,
    header_numbers,
    weighing,
)
from lattend.attend.kernels.triton.launch_replay import launch
from lattend.attend.kernels.triton.max_logits import attention_max_kernel
from lattend.attend.kernels.triton.result_buffers import filled, results, row_marks, rows_together, sums_of
from lattend.attend.kernels.triton.shapes import choose, heads_apart
from lattend.attend.kernels.triton.source import Generated, generated
from lattend.attend.kernels.triton.tables import (
    has_large_bias,
    have_far_entries,
    is_wide,
    with_known_lists,
    without_full,
)
from lattend.attend.replay.recorder import Recorder
from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tables.adjacency import has_large_numbers
from lattend.plans.tables.chunks import chunk_counts, chunked, is_even
from lattend.plans.tables.fused_parts import joined_parts, with_joined
from lattend.plans.tables.image_tables import dealt, image_table
from lattend.plans.tables.part_passes import PartPass, rows_of, sequence
from lattend.plans.tables.reading_order import read_together
from lattend.plans.tables.skippable_steps import ROWS, leaving
from lattend.plans.tables.tile_costs import TileShape
from lattend.plans.tiles import Tiles
from lattend.recent import Recent
from lattend.rules.language.expr import Term

Shapes = Callable[[str, int], TileShape]  # kernel and part to shape


class PlanExecutor:
    """The tables of one plan on one device, and the launches."""

    def __init__(
        self, plan: Plan, device: torch.device, shapes: Shapes | None = None, term: Term | None = None,
        tensors: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.plan, self.device, self.shapes = plan, device, shapes
        self.term, self.tensors = term, tensors
        self.prepared: Recent[object, LaunchArguments] = Recent(MOST_KNOWN)
        self.sent: Recent[object, Tensor] = Recent(MOST_KNOWN)
        self.arranged: Recent[object, tuple[list[PartPass], bool, bool]] = Recent(MOST_KNOWN)

    def passes(
        self, kernel: str, q: Tensor, k: Tensor, v: Tensor, arrays: Arrays, *, hopper: bool
    ) -> tuple[list[PartPass], bool, bool]:
        """The passes of the parts, as `sequence` has them; some parts of queries join others."""
        parts = self.plan.parts
        may = tuple(hopper and not is_wide(part, arrays, q, k, v) for part in parts)
        key = (kernel, q.shape[-1], v.shape[-1], q.dtype, uses_tf32(), may)

        def shape(place: int) -> TileShape:
            return self.shape(kernel, place, q, v, hopper=may[place])

        return self.arranged.find(key, lambda: sequence(parts, joined_parts(self.plan, shape)))

    def shape(self, kernel: str, place: int, q: Tensor, v: Tensor, *, hopper: bool) -> TileShape:
        """How the kernel cuts a part."""
        if self.shapes is not None:
            return self.shapes(kernel, place)
        size = max(q.shape[-1], v.shape[-1])
        tma = all(map(whole_16_bytes, (q, v)))
        shared = q.shape[1] != v.shape[1]
        return choose(self.plan, place, kernel, size, q.dtype, hopper=hopper, tma=tma, shared=shared).shape

    def written(self, recorder: Recorder, each: PartPass, parts: Sequence[Part]) -> Tensor | None:
        """Which rows earlier passes have sums for, where they have none for some of this one's."""
        if not each.earlier:
            return None
        key = ("written", parts is self.plan.transposed, each.earlier)
        rows = self.sent.find(
            key, lambda: torch.from_numpy(rows_of(parts[x] for x in each.earlier)).to(self.device)
        )
        return recorder.keep(rows)

    def part(
        self, recorder: Recorder, kernel: str, place: int, q: Tensor, v: Tensor, arrays: Arrays, *,
        hopper: bool = False, joined: int | None = None,
    ) -> LaunchArguments:  # fmt: skip
        """A part made ready, and remembered where it depends on nothing that is given now."""
        part = (self.plan.transposed if kernel == "backward_dkdv" else self.plan.parts)[place]
        given = (part, kernel, place, q, v, arrays, hopper, joined)
        if any(name not in self.plan.rule.data for name in part.data):
            return self._prepared(recorder, *given)
        if self.term is not None:
            ready = self._prepared(Recorder(), *given)
        else:
            pairs = (*q.shape[:2], v.shape[1])  # chunks fill the chip, and so do shares of images
            kind = (q.shape[-1], v.shape[-1], q.dtype, uses_tf32())
            key = (kernel, place, *kind, hopper, joined, pairs)
            ready = self.prepared.find(key, lambda: self._prepared(Recorder(), *given))
        own = (ready.table, ready.header, ready.row_bounds, ready.chunks, *(ready.shares or ()))
        for known in (*own, None if ready.joined is None else ready.joined.header):
            if known is not None:
                recorder.keep(known)
        return ready

    def _prepared(
        self, recorder: Recorder, part: Part, kernel: str, place: int, q: Tensor, v: Tensor, arrays: Arrays,
        hopper: bool, joined: int | None,
    ) -> LaunchArguments:  # fmt: skip
        transposed, shape = kernel == "backward_dkdv", self.shape(kernel, place, q, v, hopper=hopper)
        if not all(map(whole_16_bytes, (q, v))):
            shape = replace(shape, tma=False)  # TMA takes no other rows
        if shape.strips:
            return self._of_images(recorder, part, place, shape, q, arrays, transposed=transposed)
        tiles = self.plan.tiles(place, shape.outer, transposed=transposed)
        if shape.hopper:
            tiles = read_together(part, tiles, shape.step)
        if joined is not None:
            guests = self.plan.tiles(joined, shape.outer)
            tiles = Tiles(tiles.shape, with_joined(tiles, guests))
        counts = chunks = None
        if transposed:
            counts = chunk_counts(part, tiles, shape, v.shape[:2].numel(), q.shape[1] // max(1, v.shape[1]))
        if counts is not None:
            made = chunked(part, tiles, counts, shape)
            tiles = Tiles(tiles.shape, made.table)
            chunks = recorder.keep(torch.from_numpy(made.tiles).to(self.device))
        # heads that share keys go through the steps of a tile one after another
        shared = transposed and q.shape[1] != v.shape[1]
        plain = joined is None and counts is None and not shared
        left = leaving(self.plan, place, part, kernel, shape) if plain else None
        if left is not None:
            tiles = read_together(part, left, shape.step)
        table = self.sent.find(
            (
                *(transposed, place, shape.outer, joined, shape.step, shape.hopper, left is not None),
                None if counts is None else (*counts,),
            ),
            lambda: _sent(part, with_known_lists(tiles, self.device)),
        )
        functions, header = self._header(recorder, part, arrays)
        recorder.keep(table)
        guest = None
        if joined is not None:
            asked, numbers = self._header(recorder, self.plan.parts[joined], arrays)
            guest = Joined(asked.bounds, numbers)
        row_bounds, data = None, tuple(arrays[name] for name in functions.arrays)
        wide = has_large_numbers(part) or have_far_entries(*data)
        wide = wide or has_large_bias(part, self.term, self.tensors, q.shape[0])
        if tiles.lists is None and depends_on_data(part):
            row_bounds = room_for_row_bounds(recorder, part, arrays) if shape.hopper else None
            table = device_table(
                recorder, part, table, shape.rows, functions, header, arrays, wide, row_bounds
            )
        even = joined is None and chunks is None and is_even(part, tiles, shape)
        return LaunchArguments(
            part, shape, functions, table, header, data, row_bounds, guest, chunks, even,
            leaves=0 if left is None else shape.rows // ROWS, wide=wide,
        )  # fmt: skip

    def _of_images(
        self, recorder: Recorder, part: Part, place: int, shape: TileShape, q: Tensor, arrays: Arrays, *,
        transposed: bool,
    ) -> LaunchArguments:  # fmt: skip
        """A part of an image made ready for the kernels for Hopper."""
        members = q.shape[:2].numel()
        found = image_table(self.plan, place, *shape.cut, transposed=transposed)
        programs = min(max(1, found.shape[1] * members), _on_hopper().processors(self.device))
        functions, header = self._header(recorder, part, arrays)
        table = recorder.keep(torch.from_numpy(found)[None].to(self.device))
        taken = dealt(found, members, programs)
        begins, order = (recorder.keep(torch.from_numpy(x).to(self.device)) for x in taken)
        return LaunchArguments(part, shape, functions, table, header, (), shares=(begins, order))

    def _header(self, recorder: Recorder, part: Part, arrays: Arrays) -> tuple[Generated, Tensor]:
        """The functions of a part, and the numbers that they read."""
        functions = generated(part, self.term, self.tensors)
        numbers = header_numbers(part, functions, arrays)
        header = self.sent.find(
            tuple(numbers), lambda: torch.tensor(numbers, dtype=torch.int64).to(self.device)
        )
        return functions, recorder.keep(header)

    def forward(
        self, recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, arrays: Arrays
    ) -> tuple[Tensor, Tensor]:
        """The output in the inputs' dtype, bfloat16 of 8 bits, and the log-sum-exp in float32."""
        if call.scales is not None:
            return self.forward_fp8(recorder, call, q, k, v, arrays)
        if call.scale < 0:  # the kernel takes the largest score before it multiplies
            q, call = recorder.do(torch.neg, q), replace(call, scale=-call.scale)
        q, k, v = (rows_together(recorder, x) for x in (q, k, v))
        batch, heads, rows, _ = q.shape
        hopper = may_take_hopper(call, q, v)
        passes, begins, ends = self.passes("forward", q, k, v, arrays, hopper=hopper)
        out, sums, lse = results(recorder, q, v.shape[-1], q.dtype, passes, begins)
        for each in passes:
            small = hopper and not is_wide(self.plan.parts[each.place], arrays, q, k, v)
            ready = self.part(recorder, "forward", each.place, q, v, arrays, hopper=small, joined=each.joined)
            programs = ready.tiles * batch * heads
            if not programs:
                continue
            constants = each.constants | {"MARKS": careful.needs_repair(call)}
            if ready.shape.strips:
                _on_hopper().images_forward(recorder, ready, call.scale, q, k, v, out, lse)
            elif ready.shape.hopper:
                _on_hopper().forward(recorder, ready, call.scale, q, k, v, out, sums, lse, constants)
            else:
                arguments = (
                    q, *ready.inner(k, v), out, sums, lse,
                    ready.table, ready.header, ready.data or (lse,), *weighing(recorder, call, lse),
                    *row_strides(q), *row_strides(k), *row_strides(v), *row_strides(out),
                    heads, heads // k.shape[1], rows, ready.tiles, *ready.strides,
                )  # fmt: skip
                constants |= ready.constants(call, q, k, v, out)
                launch(recorder, attention_fwd_kernel, programs, arguments, constants)
        out = out if ends else recorder.in_dtype(sums, q.dtype)
        careful.repair_output(recorder, call, q, k, v, out, lse, arrays)
        return out, lse

    def forward_fp8(
        self, recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, arrays: Arrays
    ) -> tuple[Tensor, Tensor]:
        """The output in bfloat16, and the log-sum-exp in float32, of q, k and v of 8 bits with scales."""
        q, k, v = (rows_together(recorder, x) for x in (q, k, v))
        passes, begins, ends = sequence(self.plan.parts)
        out, sums, lse = results(recorder, q, v.shape[-1], torch.bfloat16, passes, begins)
        values = _on_hopper().transposed(recorder, v)
        for each in passes:
            ready = self.part(recorder, "forward", each.place, q, v, arrays, hopper=True)
            if ready.tiles * q.shape[:2].numel():
                given = (ready, call.scale, call.scales, q, k, values, out, sums, lse, each.constants)
                _on_hopper().forward_fp8(recorder, *given)
        return (out if ends else recorder.in_dtype(sums, out.dtype)), lse

    def largest(
        self, recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, arrays: Arrays
    ) -> Tensor:
        """The largest score of each query in float32."""
        q, k = (rows_together(recorder, x) for x in (q, k))
        batch, heads, rows, _ = q.shape
        found = recorder.empty(q.shape[:-1], torch.float32, q.device)
        recorder.do(filled(float("-inf")), found)
        for place in range(len(self.plan.parts)):
            ready = self.part(recorder, "forward", place, q, k, arrays)
            if ready.tiles and batch * heads:
                arguments = (
                    q, *ready.inner(k), found,
                    ready.table, ready.header, ready.data or (found,), *weighing(recorder, call, found),
                    *row_strides(q), *row_strides(k),
                    heads, heads // k.shape[1], rows, ready.tiles, *ready.strides,
                )  # fmt: skip
                constants = ready.constants(call, q, k, k)
                launch(recorder, attention_max_kernel, ready.tiles * batch * heads, arguments, constants)
        return found

    def backward(
        self, recorder: Recorder, call: AttentionCall, given: BackwardInputs, arrays: Arrays
    ) -> Gradients:
        """The gradients of queries, keys and values, and of a bias; the same on every run."""
        whole = (given.q, given.k, given.v, given.grad_out, given.out)
        q, k, v, grad, out = (rows_together(recorder, x) for x in whole)
        lse = given.lse if given.lse.is_contiguous() else recorder.do(Tensor.contiguous, given.lse)
        given = BackwardInputs(grad, given.grad_lse, q, k, v, out, lse)
        delta = recorder.empty(lse.shape, lse.dtype, lse.device)
        fixed = FixedPointSums.of(recorder, self.plan, call, arrays, given)
        grad_q = self.backward_dq(recorder, call, given, delta, arrays, fixed)
        grad_k, grad_v = self.backward_dkdv(recorder, call, given, delta, arrays)
        return grad_q, grad_k, grad_v, fixed.gradients(recorder)

    def backward_dq(
        self, recorder: Recorder, call: AttentionCall, given: BackwardInputs, delta: Tensor, arrays: Arrays,
        fixed: FixedPointSums,
    ) -> Tensor:  # fmt: skip
        """The gradient of the queries; also fills delta, and adds to the gradients of a bias."""
        grad, grad_lse, q, k, v, out, lse = given
        batch, heads, rows, _ = q.shape
        hopper = may_take_hopper(call, q, v, "backward_dq")
        passes, begins, ends = self.passes("backward_dq", q, k, v, arrays, hopper=hopper)
        found, sums = sums_of(recorder, q, passes, begins)
        marks = (row_marks(recorder, q, passes, begins),) if careful.needs_repair(call) else ()
        if not begins:
            make_delta = partial(_make_delta, call.key_range is not None)
            recorder.do(make_delta, delta, out, grad, *(() if grad_lse is None else (grad_lse,)))
        other = delta if grad_lse is None else recorder.do(Tensor.contiguous, grad_lse)
        for each in passes:
            small = hopper and not is_wide(self.plan.parts[each.place], arrays, q, k, v)
            ready = self.part(
                recorder, "backward_dq", each.place, q, v, arrays, hopper=small, joined=each.joined
            )
            makes_delta, written = begins and each.begins, self.written(recorder, each, self.plan.parts)
            constants = each.constants | {"MAKES_DELTA": makes_delta, "HAS_GRAD_LSE": grad_lse is not None}
            of_rows, some = (lse if written is None else written, *marks), {"SOME": written is not None}
            programs = ready.tiles * batch * heads
            if not programs:
                continue
            if ready.shape.strips:
                given_delta = (other, delta, found)
                made = {name: constants[name] for name in ("MAKES_DELTA", "HAS_GRAD_LSE")}
                _on_hopper().images_dq(recorder, ready, call.scale, given, *given_delta, made)
            elif ready.shape.hopper:
                given_sums = (other, delta, sums, found, of_rows)
                _on_hopper().backward_dq(recorder, ready, call.scale, given, *given_sums, constants | some)
            else:
                arguments = (
                    q, *ready.inner(k, v), out, grad, other, lse, delta, sums, found, of_rows,
                    fixed.sums or (lse,), fixed.quanta,
                    ready.table, ready.header, ready.data or (lse,), *weighing(recorder, call, lse),
                    *row_strides(q), *row_strides(k), *row_strides(v), *row_strides(out), *row_strides(grad),
                    *row_strides(found),
                    heads, heads // k.shape[1], rows, ready.tiles, *ready.strides,
                )  # fmt: skip
                constants |= {"SLOPES": ready.functions.slopes if fixed.sums else None}
                constants |= some | ready.constants(call, q, k, v, out, grad)
                launch(recorder, attention_bwd_dq_kernel, programs, arguments, constants)
        found = found if ends else recorder.in_dtype(sums, q.dtype)
        careful.repair_dq(recorder, call, given, delta, marks, found, arrays)
        return found

    def backward_dkdv(
        self,
        recorder: Recorder,
        call: AttentionCall,
        given: BackwardInputs,
        delta: Tensor,
        arrays: Arrays,
    ) -> tuple[Tensor, Tensor]:
        """The gradients of the keys and values.

        Where heads share keys, and these are too few to keep the chip busy, each head has its own first.
        """
        q, k, v = given.q, given.k, given.v
        if not heads_apart(self.plan, q, k):
            return self._dkdv(recorder, call, given, delta, arrays)
        repeat = partial(per_query_head, heads=q.shape[1])
        apart = given._replace(k=recorder.do(repeat, k), v=recorder.do(repeat, v))
        each = self._dkdv(recorder, call, apart, delta, arrays, torch.float32)
        found = (recorder.do(per_kv_head, x, like) for x, like in zip(each, (k, v), strict=True))
        dk, dv = (recorder.in_dtype(x, k.dtype) for x in found)
        return dk, dv

    def _dkdv(
        self, recorder: Recorder, call: AttentionCall, given: BackwardInputs, delta: Tensor, arrays: Arrays,
        dtype: torch.dtype | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The gradients of each kv head, in their own dtype or this."""
        grad, _, q, k, v, _, lse = given
        batch, heads, rows, _ = q.shape
        kv_heads, keys = k.shape[1], k.shape[2]
        passes, begins, ends = sequence(self.plan.transposed)
        hopper = dtype is None and may_take_hopper(call, q, v, "backward_dkdv")
        found_k, sums_k = sums_of(recorder, k, passes, begins, dtype)
        found_v, sums_v = sums_of(recorder, v, passes, begins, dtype)
        marks = tuple(row_marks(recorder, x, passes, begins) for x in (k, v) if careful.needs_repair(call))
        for each in passes:
            small = hopper and not is_wide(self.plan.transposed[each.place], arrays, q, k, v)
            ready = self.part(recorder, "backward_dkdv", each.place, q, v, arrays, hopper=small)
            programs = ready.tiles * batch * kv_heads
            if not programs:
                continue
            found, totals, constants = (found_k, found_v), (sums_k, sums_v), each.constants
            sums, written = totals, self.written(recorder, each, self.plan.transposed)
            unmarked = (lse if written is None else written,)
            of_rows, some = (*unmarked, *marks), {"SOME": written is not None}
            if ready.chunks is not None:
                constants = {"CONTINUES": False, "ENDS": False}
                shares = (batch, kv_heads, ready.tiles * ready.shape.rows)
                sums = tuple(recorder.empty((*shares, x.shape[-1]), torch.float32, x.device) for x in (k, v))
            if ready.shape.strips:
                _on_hopper().images_dkdv(recorder, ready, call.scale, given, delta, (found_k, found_v))
            elif ready.shape.hopper:
                own = unmarked if ready.chunks is not None else of_rows
                _on_hopper().backward_dkdv(
                    recorder, ready, call.scale, given, delta, sums, found, own, constants | some
                )
            else:
                inner_q, inner_grad = ready.inner(q, grad)
                arguments = (
                    inner_q, *ready.outer(k, v), inner_grad, lse, delta, *sums, *found,
                    unmarked if ready.chunks is not None else of_rows,
                    ready.table, ready.header, ready.data or (lse,), *weighing(recorder, call, lse),
                    *row_strides(q), *row_strides(k), *row_strides(v), *row_strides(grad),
                    *row_strides(found_k), *row_strides(found_v),
                    heads, heads // kv_heads, rows, keys, ready.tiles, *ready.strides,
                )  # fmt: skip
                constants |= ready.constants(call, q, k, v, grad)
                constants |= {"CHUNKED": ready.chunks is not None} | some
                launch(recorder, attention_bwd_dkdv_kernel, programs, arguments, constants)
            if ready.chunks is not None:
                add_chunks(recorder, ready, each, sums, totals, found, of_rows, **some)
        if not ends:
            found_k, found_v = (recorder.in_dtype(x, dtype or k.dtype) for x in (sums_k, sums_v))
        careful.repair_dkdv(recorder, call, given, delta, marks, (found_k, found_v), arrays)
        return found_k, found_v


def _on_hopper() -> Any:
    """The launches of kernels in Gluon, which not every Triton has."""
    from lattend.attend.kernels.triton.hopper import launches

    return launches


def _make_delta(
    padded: bool, delta: Tensor, out: Tensor, grad: Tensor, grad_lse: Tensor | None = None
) -> None:
    if padded:  # the output of an unused query may be NaN
        out = out.masked_fill(grad == 0, 0)
    delta.copy_(vecdot(out.float(), grad.float()))
    delta -= 0.0 if grad_lse is None else grad_lse


def _sent(part: Part, table: Tensor) -> Tensor:
    """The plan's table as the kernels read it, entries in order; no full range is known without the data."""
    # a table with lists behind it lies so already and is not copied
    return (table if depends_on_data(part) or not part.cut_by else without_full(table)).contiguous()
