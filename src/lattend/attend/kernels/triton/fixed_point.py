"""Gradients of a bias, summed up as whole numbers of a quantum: the same in whatever order programs add.

A float sum depends on its order; a sum of 64-bit integers does not. The quantum is a power of two, fine
enough that rounding to it is far below that of float32, and coarse enough that no sum can overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2, prod

import torch
from torch import Tensor

from lattend.attend.bias import ELEMENT, derivative, leaves, tensor_of
from lattend.attend.linalg import vector_norm
from lattend.plans.plan import Plan
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Lookup, Name, Num, Term

BITS = 61


@dataclass(frozen=True)
class FixedPointSums:
    """The sums, one int64 for each number of each tensor, and how many quanta there are to one."""

    sums: tuple[Tensor, ...]
    quanta: Tensor  # float32 [tensors]
    like: tuple[Tensor, ...]

    @staticmethod
    def of(
        plan: Plan, term: Term | None, tensors: tuple[str, ...], arrays: Mapping[str, Tensor],
        grad: Tensor, grad_lse: Tensor | None, v: Tensor,
    ) -> FixedPointSums:  # fmt: skip
        """Empty sums for the gradients of these tensors; nothing is read back from the device."""
        if term is None or not tensors:
            return FixedPointSums((), torch.ones(1, device=v.device), ())
        like = tuple(arrays[name][0] for name in tensors)
        sums = tuple(torch.zeros(x.shape, dtype=torch.int64, device=v.device) for x in like)
        if not grad.numel() or not v.numel():  # nothing will be added
            return FixedPointSums(sums, torch.ones(len(sums), device=v.device), like)
        slope = 2 * _longest(grad) * _longest(v)  # |dS| <= |dO| (|v| + |out|)
        if grad_lse is not None:
            slope = slope + grad_lse.abs().max().float()
        pairs = grad.shape[0] * prod(axis.outer_size * axis.inner_size for axis in plan.axes)
        read = expr.arrays(term)
        sizes = {
            name: tensor.abs().max().float()
            for name, tensor in arrays.items()
            if name in tensors or name in read
        }
        numbers = {axis.outer: axis.outer_size for axis in plan.axes}
        numbers |= {axis.inner: axis.inner_size for axis in plan.axes} | {"head": grad.shape[1]}
        numbers[ELEMENT] = grad.shape[0]
        numbers = {**plan.rule.values, **numbers}
        quanta: list[Tensor] = []
        for name in tensors:
            own = [leaf for leaf in leaves(term, tensors) if tensor_of(leaf) == name]
            largest = sum(_most(derivative(term, leaf), numbers, sizes) for leaf in own)
            room = (slope * largest + 1e-30).log2() + log2(max(1, pairs * len(own)))
            quanta.append(torch.exp2((BITS - room).floor().clamp(-120, 120)))
        return FixedPointSums(sums, torch.stack(quanta), like)

    def gradients(self) -> list[Tensor]:
        """The sums as gradients, in the dtype of each tensor."""
        scaled = [total.double() / quantum for total, quantum in zip(self.sums, self.quanta, strict=False)]
        return [total.to(x.dtype) for total, x in zip(scaled, self.like, strict=True)]


def _longest(x: Tensor) -> Tensor:
    """The length of the longest row."""
    return vector_norm(x, dim=-1, dtype=torch.float32).max() + 1e-30


def _most(term: Term, numbers: Mapping[str, int], sizes: Mapping[str, Tensor]) -> Tensor:
    """A bound on the magnitude of a term."""
    match term:
        case Num():
            return torch.tensor(float(abs(term.value)))
        case Name():
            return sizes[term.name] if term.name in sizes else torch.tensor(float(abs(numbers[term.name])))
        case Lookup():
            return sizes[term.array]
        case Arith(op="*", args=(a, b)):
            return _most(a, numbers, sizes) * _most(b, numbers, sizes)
        case Arith(op="//" | "%", args=(a, _)):
            return _most(a, numbers, sizes) + 1
        case Arith():
            total = torch.zeros(())
            for arg in term.args:
                total = total + _most(arg, numbers, sizes)
            return total
