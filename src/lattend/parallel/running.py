"""Running a rank's work: the exchange posted, its own blocks meanwhile, then those of others; gradients."""

# torch.autograd.Function has no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lattend.attend.seams import (
    BackwardInputs,
    KernelOptions,
    OperatorCall,
    attention_operator,
    padding_given,
    placed_seed,
    sink_gradients,
    with_sinks,
)
from lattend.errors import LattendError
from lattend.parallel.edges import BoxView
from lattend.parallel.exchange import Exchange, unpacked, widened
from lattend.parallel.keyset import Box
from lattend.parallel.rank_schedule import LocalCall, RankSchedule, Stage


@dataclass(frozen=True, eq=False)
class Given:
    """What a call has besides q, k, v and the tensors that get gradients."""

    schedule: RankSchedule
    options: KernelOptions
    arrays: Sequence[Tensor]  # of the whole
    biases: int  # how many tensors the bias has; sinks come after them
    seed: Tensor | None
    lengths: Tensor | None  # [batch], of real keys
    mask: Tensor | None  # [n, batch], which of this rank's keys are real


def run(given: Given, q: Tensor, k: Tensor, v: Tensor, *learned: Tensor) -> tuple[Tensor, Tensor]:
    """The output of this rank's queries and their log-sum-exp."""
    return _Attention.apply(given, q, k, v, *learned)  # pyright: ignore[reportReturnType]


@dataclass
class _Source:
    """Keys and values [batch, heads, n, D] of one rank, and which are real [n, batch]."""

    k: Tensor
    v: Tensor
    real: Tensor | None = None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, given: Given, q: Tensor, k: Tensor, v: Tensor, *learned: Tensor
    ) -> tuple[Tensor, Tensor]:
        schedule, merged = given.schedule, Merged.like(q, v)
        bias, sinks = learned[: given.biases], learned[given.biases :]
        own = _Source(k, v, given.mask)
        flight = schedule.stages[0].routes.out(k, v, given.mask) if schedule.stages else None
        for call in schedule.own:
            merged.add(call.block.part, *_forward(given, bias, q, own, call))
        kept: list[Tensor] = []
        masks: list[list[Tensor]] = []
        for stage, after in zip(schedule.stages, (*schedule.stages[1:], None), strict=False):
            assert flight is not None
            came = _sources(stage, flight.wait(), own)
            flight = None if after is None else after.routes.out(k, v, given.mask)
            for place, call in stage.blocks:
                merged.add(call.block.part, *_forward(given, bias, q, came[place], call))
            masks.append([one.real for one in came if one.real is not None])
            kept += [x for one in came for x in (one.k, one.v)] if schedule.kept else []
        out, lse = merged.out, merged.lse
        if sinks:
            out, lse = with_sinks(out, lse, sinks[0])
        out = out.to(q.dtype)
        ctx.given, ctx.masks = given, masks
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(q, k, v, out, lse, *learned, *kept)
        return out, lse

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:  # pyright: ignore
        if torch.is_grad_enabled():  # what other ranks add to it would be missing, and no one told
            raise LattendError("create_graph=True: lt.parallel.attention has no second derivatives")
        grad_out, grad_lse = grads
        given: Given = ctx.given
        schedule, masks = given.schedule, ctx.masks
        q, k, v, out, lse, *others = ctx.saved_tensors
        count = len(ctx.needs_input_grad) - 4
        learned, kept = others[:count], others[count:]
        grad_out = torch.zeros_like(out) if grad_out is None else grad_out
        inputs = BackwardInputs(grad_out, grad_lse, q, k, v, out, lse)
        sums = _Sums.like(given, inputs, learned, any(ctx.needs_input_grad[4 : 4 + given.biases]))
        own = _Source(k, v, given.mask)
        if schedule.kept:
            homes = [
                _far(given, sums, stage, _kept_sources(kept, real, len(stage.routes.gets)))
                for stage, real in zip(schedule.stages, masks, strict=True)
            ]
            sums.add_own(given, own)
            for stage, home in zip(schedule.stages, homes, strict=True):
                sums.add_home(stage, home)
        else:
            _in_stages(given, sums, own, masks)
        biases = [x.to(y.dtype) for x, y in zip(sums.bias, learned, strict=False)]
        sinks = [sink_gradients(learned[-1], inputs)] if count > given.biases else []
        return None, *(x.sum.to(q.dtype) for x in (sums.dq, sums.dk, sums.dv)), *biases, *sinks


def _in_stages(given: Given, sums: _Sums, own: _Source, masks: Sequence[Sequence[Tensor]]) -> None:
    """The gradients of a ring: keys come again, one stage ahead, and gradients go home one stage behind."""
    stages, behind = given.schedule.stages, None
    flight = stages[0].routes.out(own.k, own.v) if stages else None
    sums.add_own(given, own)
    for stage, after, real in zip(stages, (*stages[1:], None), masks, strict=False):
        assert flight is not None
        came = _sources(stage, flight.wait(), own, real)
        flight = None if after is None else after.routes.out(own.k, own.v)
        home = _far(given, sums, stage, came)
        if behind is not None:
            sums.add_home(*behind)
        behind = stage, home
    if behind is not None:
        sums.add_home(*behind)


@dataclass
class _Sums:
    """The gradients so far."""

    inputs: BackwardInputs
    learns: bool  # whether those of the bias are wanted
    learned: Sequence[Tensor]  # its tensors
    dq: Summed
    dk: Summed  # of this rank's keys
    dv: Summed
    bias: list[Tensor]

    @staticmethod
    def like(given: Given, inputs: BackwardInputs, learned: Sequence[Tensor], learns: bool) -> _Sums:
        some = learned[: given.biases]
        biases = [
            torch.zeros_like(x, dtype=torch.promote_types(x.dtype, widened(inputs.q.dtype))) for x in some
        ]
        return _Sums(inputs, learns, some, Summed(inputs.q), Summed(inputs.k), Summed(inputs.v), biases)

    def add_own(self, given: Given, own: _Source) -> None:
        """Those of the blocks of a rank's own keys."""
        for call in given.schedule.own:
            self.add(given, own, (self.dk, self.dv), call)

    def add_home(self, stage: Stage, home: Exchange) -> None:
        """Those of this rank's keys that others found."""
        stage.routes.add(self.dk.sum, self.dv.sum, home.wait())

    def add(self, given: Given, source: _Source, of_keys: tuple[Summed, Summed], call: LocalCall) -> None:
        """Adds the gradients of a block with keys of this source."""
        block, inputs = call.block, self.inputs
        part = block.part
        grad_lse = None if inputs.grad_lse is None else part.of(inputs.grad_lse)
        q, k, v, operator_call = _call(given, self.learned, inputs.q, source, call)
        out, lse, grad_out = (part.of(x) for x in (inputs.out, inputs.lse, inputs.grad_out))
        dq, dk, dv, others = attention_operator.gradients(
            BackwardInputs(grad_out, grad_lse, q, k, v, out, lse), self.learns, operator_call
        )
        self.dq.add(part, dq)
        for total, one in zip(of_keys, (dk, dv), strict=True):
            total.add(block.key_part, one)
        for total, one in zip(self.bias, others, strict=False):
            total.add_(one)


def _far(given: Given, sums: _Sums, stage: Stage, came: Sequence[_Source]) -> Exchange:
    """The gradients of keys that came, on their way home."""
    sums_of_keys = [(Summed(one.k), Summed(one.v)) for one in came]
    for place, call in stage.blocks:
        sums.add(given, came[place], sums_of_keys[place], call)
    kind = sums.inputs.q.dtype
    leaving = [(dk.sum.to(kind), dv.sum.to(kind)) for dk, dv in sums_of_keys]
    return stage.routes.home(leaving, (sums.inputs.k, sums.inputs.v))


# Blocks


def _call(
    given: Given, bias: Sequence[Tensor], q: Tensor, source: _Source, call: LocalCall
) -> tuple[Tensor, Tensor, Tensor, OperatorCall]:
    """A block's arguments of the operator."""
    block = call.block
    keys = slice(block.key_place, block.key_place + block.m)
    q, k, v = block.part.of(q), source.k[:, :, keys], source.v[:, :, keys]
    real = _real(given, call, None if source.real is None else source.real[keys].T, q, k)
    seed = None
    if given.seed is not None:
        assert call.places is not None
        seed = placed_seed(given.seed, *call.places, call.heads)
    term = (call.term, bias if call.term is not None else [])
    operator_call = OperatorCall(
        call.held.key, call.numbers, given.arrays, *term, *real, None, seed, given.options
    )
    return q, k, v, operator_call


def _real(
    given: Given, call: LocalCall, mask: Tensor | None, q: Tensor, k: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Which keys of a block are real, as the operator's arguments."""
    if given.lengths is None:
        return padding_given(None if mask is None else mask.contiguous(), q, k)
    assert call.places is not None
    keys = call.block.keys
    if isinstance(keys, Box) and len(keys.along) == 1 and keys.along[0].count == 1:
        return padding_given((given.lengths - keys.along[0].start).clamp(0, keys.total), q, k)
    return padding_given(call.places[1] < given.lengths[:, None], q, k)


def _forward(given: Given, bias: Sequence[Tensor], q: Tensor, source: _Source, call: LocalCall) -> Any:
    return attention_operator.forward(*_call(given, bias, q, source, call))


# Sources


def _sources(
    stage: Stage, came: Sequence[Tensor], own: _Source, masks: Sequence[Tensor] = ()
) -> list[_Source]:
    """What came, by source; masks may have come before."""
    gets = stage.routes.gets
    real = came[len(gets) :] or masks or [None] * len(gets)
    return [
        _Source(*unpacked(message, own.k, own.v, count), one)
        for message, (_, count), one in zip(came, gets, real, strict=False)
    ]


def _kept_sources(kept: Sequence[Tensor], masks: Sequence[Tensor], count: int) -> list[_Source]:
    real = masks or [None] * count
    return [_Source(k, v, one) for k, v, one in zip(kept[::2], kept[1::2], real, strict=True)]


@dataclass
class Merged:
    """What is known so far of every query: the output over the keys seen, and their log-sum-exp."""

    out: Tensor
    lse: Tensor
    empty: bool = True

    @staticmethod
    def like(q: Tensor, v: Tensor) -> Merged:
        """Nothing yet: zeros, and minus infinity."""
        wide = widened(q.dtype)
        out = q.new_zeros((*q.shape[:-1], v.shape[-1]), dtype=wide)
        return Merged(out, q.new_full(q.shape[:-1], -torch.inf, dtype=wide))

    def add(self, part: BoxView, out: Tensor, lse: Tensor) -> None:
        """Takes in what some more keys gave for some queries."""
        first, self.empty = self.empty, False
        if first and out.shape == self.out.shape and part.is_whole:
            self.out, self.lse = out.to(self.out.dtype), lse.to(self.lse.dtype)
            return
        before = part.of(self.lse)
        both = torch.logaddexp(before, lse.to(before.dtype))
        base = both.masked_fill(both == -torch.inf, 0)  # rows without any key stay 0
        kept, new = ((x - base).exp_().unsqueeze(-1) for x in (before, lse))
        part.put(self.out, part.of(self.out) * kept + out * new)
        part.put(self.lse, both)


@dataclass
class Summed:
    """A sum of parts of tensors like one; the first that is whole is taken as it is."""

    like: Tensor
    total: Tensor | None = None

    @property
    def sum(self) -> Tensor:
        """The sum; zeros where nothing was added."""
        if self.total is None:
            self.total = torch.zeros_like(self.like, dtype=widened(self.like.dtype))
        return self.total

    def add(self, part: BoxView, x: Tensor) -> None:
        """Adds to some positions."""
        if self.total is None and x.shape == self.like.shape and part.is_whole:
            self.total = x.to(widened(x.dtype))
        else:
            part.add(self.sum, x)
