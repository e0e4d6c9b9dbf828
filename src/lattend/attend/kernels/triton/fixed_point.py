"""Gradients of a bias, summed up as whole numbers of a quantum: the same in whatever order programs add.

A float sum depends on its order; a sum of 64-bit integers does not. The quantum is a power of two, fine
enough that rounding to it is far below that of float32, and coarse enough that no sum can overflow. With
dS = P * (kept dO·v - delta + dlse), where the weights P of a row add up to 1 and kept is 0 or 1/(1 - rate),
the slopes of a row together are at most 2 |dO| |v| / (1 - rate) + |dlse|.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import inf, prod

import torch
from torch import Tensor

from lattend.attend.bias import ELEMENT, derivative, leaves, tensor_of
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.call.dropout import kept_share
from lattend.attend.call.tensors import vector_norm
from lattend.attend.replay.recorder import Recorder
from lattend.plans.plan import Plan
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Lookup, Name, Num, Term

BITS = 56  # of the largest sum; more are left for weights that add up to a little over 1
EXPONENT = 0x7F800000  # the bits of a float32 that hold its power of two


@dataclass(frozen=True)
class FixedPointSums:
    """The sums, one int64 for each number of each tensor, and how many quanta there are to one."""

    sums: tuple[Tensor, ...]
    quanta: Tensor  # float32 [tensors]
    dtypes: tuple[torch.dtype, ...]

    @staticmethod
    def of(
        recorder: Recorder,
        plan: Plan,
        call: AttentionCall,
        arrays: Mapping[str, Tensor],
        given: BackwardInputs,
    ) -> FixedPointSums:
        """Empty sums for the gradients of the bias; nothing is read back from the device."""
        grad, v, device = given.grad_out, given.v, given.v.device
        if call.term is None or not call.bias or not call.learned:
            return FixedPointSums((), recorder.keep(torch.ones(1, device=device)), ())
        like = [arrays[name][0] for name in call.bias]
        sums = tuple(
            recorder.do(partial(torch.zeros, x.shape, dtype=torch.int64, device=device)) for x in like
        )
        dtypes = tuple(x.dtype for x in like)
        if not grad.numel() or not v.numel():  # nothing will be added
            return FixedPointSums(sums, recorder.keep(torch.ones(len(sums), device=device)), dtypes)
        factors = _Factors.of(plan, call, arrays, grad)
        others = [arrays[name] for name in factors.reads]
        if not others:
            others = [recorder.keep(torch.tensor(factors.largest({}), dtype=torch.float32).to(device))]
        rows = [] if given.grad_lse is None else [given.grad_lse, given.lse]
        quanta = recorder.do(partial(_quanta, factors, len(rows) > 0), grad, v, *rows, *others)
        return FixedPointSums(sums, quanta, dtypes)

    def gradients(self, recorder: Recorder) -> list[Tensor]:
        """The sums as gradients, in the dtype of each tensor."""
        return [
            recorder.do(partial(_gradient, place, dtype), total, self.quanta)
            for place, (total, dtype) in enumerate(zip(self.sums, self.dtypes, strict=True))
        ]


@dataclass(frozen=True)
class _Factors:
    """What the slopes of all rows come to at most in an entry of each tensor."""

    derivatives: tuple[tuple[Term, ...], ...]  # of each tensor, one for each place where it is read
    numbers: Mapping[str, int]  # the largest
    reads: tuple[str, ...]  # arrays in the derivatives
    rows: int
    steepness: float  # of a row, at most, where the largest numbers of dO and v are 1

    @staticmethod
    def of(plan: Plan, call: AttentionCall, arrays: Mapping[str, Tensor], grad: Tensor) -> _Factors:
        term = call.term or Num(0)
        found = tuple(
            tuple(derivative(term, leaf) for leaf in leaves(term, call.bias) if tensor_of(leaf) == name)
            for name in call.bias
        )
        numbers = {axis.outer: axis.outer_size for axis in plan.axes}
        numbers |= {axis.inner: axis.inner_size for axis in plan.axes}
        numbers = {**plan.rule.values, **numbers, "head": grad.shape[1], ELEMENT: grad.shape[0]}
        every = [one for some in found for one in some]
        reads = {name for one in every for name in (*expr.arrays(one), *expr.names(one)) if name in arrays}
        # a product of D numbers each is at most D times that of the largest ones
        steepness = 2 * grad.shape[-1] * kept_share(call.dropout)
        return _Factors(found, numbers, tuple(sorted(reads)), prod(grad.shape[:3]), steepness)

    def largest(self, sizes: Mapping[str, Tensor]) -> list[float | Tensor]:
        """In 2^(BITS - 1), where the largest of dO and v are 1 and those of the arrays are these."""
        sums = [sum(_most(one, self.numbers, sizes) for one in some) for some in self.derivatives]
        return [self.rows * self.steepness * 2.0 ** (1 - BITS) * one for one in sums]


def _quanta(factors: _Factors, with_lse: bool, grad: Tensor, v: Tensor, *others: Tensor) -> Tensor:
    """How many quanta there are to one, for each tensor: powers of two."""
    steepest = _largest(grad) * _largest(v)
    if with_lse:  # what flows into the log-sum-exp of a row without keys may be anything
        real = others[0].masked_fill(others[1] == -inf, 0)
        steepest, others = steepest + _largest(real) / factors.steepness, others[2:]
    if factors.reads:
        sizes = {name: _largest(x) for name, x in zip(factors.reads, others, strict=True)}
        most = torch.stack([steepest * one for one in factors.largest(sizes)])
    else:
        most = steepest * others[0]
    exponents = most.clamp_(2.0**-120, 2.0**120).view(torch.int32).bitwise_and_(EXPONENT)
    return exponents.view(torch.float32).reciprocal_()


def _gradient(place: int, dtype: torch.dtype, total: Tensor, quanta: Tensor) -> Tensor:
    exact = total.double() if dtype == torch.float64 else total
    return (exact / quanta[place]).to(dtype)


def _largest(x: Tensor) -> Tensor:
    """The largest magnitude."""
    narrow = x if x.dtype in (torch.bfloat16, torch.float16) else x.float()
    return vector_norm(narrow, inf, dtype=torch.float32)


def _most(term: Term, numbers: Mapping[str, int], sizes: Mapping[str, Tensor]) -> float | Tensor:
    """A bound on the magnitude of a term."""
    match term:
        case Num():
            return float(abs(term.value))
        case Name():
            return sizes[term.name] if term.name in sizes else float(abs(numbers[term.name]))
        case Lookup():
            return sizes[term.array]
        case Arith(op="*", args=(a, b)):
            return _most(a, numbers, sizes) * _most(b, numbers, sizes)
        case Arith(op="%", args=(_, b)):
            return _most(b, numbers, sizes)
        case Arith(op="//", args=(a, _)):
            return _most(a, numbers, sizes) + 1
        case Arith():
            return sum(_most(arg, numbers, sizes) for arg in term.args)
