"""DenseBias: a bias as one float32 number for each pair, and its gradients from the slopes of all pairs.

The term is turned into functions of the bias' tensors once. What depends on positions alone is computed once
where it is small; a tensor that has a number for each pair is read as it lies in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.attend.bias import PairPositions, derivative, leaves, tensor_of
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.tensor_terms import evaluate, nearest
from lattend.rules.language.expr import Arith, Lookup, Name, Num, Term

MOST_KEPT = 1 << 16  # numbers of a table of positions that is kept from call to call
# Tensors of a bias are added and multiplied, and nothing else
JOINED: dict[str, Callable[..., Tensor]] = {
    "+": torch.add, "-": torch.sub, "*": torch.mul, "neg": torch.neg,
}  # fmt: skip
Values = Callable[[Sequence[Tensor]], Tensor]  # from the bias' tensors to numbers of pairs
Gather = Callable[[Tensor], Tensor]  # from the slopes of pairs to the gradient of a tensor
Names = Mapping[str, Any]  # numbers, and positions as tensors that are broadcast to all pairs


class Read(NamedTuple):
    """How a tensor is read on all pairs: flat, or with the rows of its heads."""

    indices: Callable[[], Tensor]  # of each pair, into the flat tensor or into a flat row
    heads: int  # 0 where the tensor is read flat
    in_order: tuple[int, ...] | None  # the shape of the pairs, if every number is read at its own index


class DenseBias:
    """The bias of a call on all its pairs."""

    def __init__(self, call: AttentionCall, q: Tensor, k: Tensor) -> None:
        self.term = call.term or Num(0)
        self.tensors = {name: x.detach().to("meta") for name, x in call.bias.items()}
        self.shape = (*q.shape[:3], k.shape[2])
        elements, heads, queries, keys = map(torch.arange, self.shape)
        pairs = PairPositions(elements.view(-1, 1, 1, 1), heads[:, None, None], queries[:, None], keys)
        self.names = pairs.names(call)
        self._values = self._of(self.term)
        self._gradients: list[list[tuple[Values | None, Gather]]] | None = None

    def values(self, tensors: Sequence[Tensor]) -> Tensor:
        """The bias, [batch, heads, n, m]; where it is one for all, with a stride of 0."""
        return self._values(tensors).broadcast_to(self.shape)

    def gradients(self, slopes: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of the bias' tensors, from the slopes of all scores, [batch, heads, n, m]."""
        if self._gradients is None:
            self._gradients = [self._gradients_of(name) for name in self.tensors]
        gradients: list[Tensor] = []
        for tensor, leaves_of in zip(tensors, self._gradients, strict=True):
            amounts = [gather(slopes if by is None else slopes * by(tensors)) for by, gather in leaves_of]
            gradients.append(sum(amounts[1:], amounts[0]).to(tensor.dtype))
        return gradients

    def _gradients_of(self, name: str) -> list[tuple[Values | None, Gather]]:
        """Returns, for each lookup of a tensor, the derivative by it (None: 1) and what adds slopes up."""
        read = [leaf for leaf in leaves(self.term, self.tensors) if tensor_of(leaf) == name]
        by = [derivative(self.term, leaf) for leaf in read]
        return [
            (None if one == Num(1) else self._of(one), self._gather(leaf, self.tensors[name].shape))
            for one, leaf in zip(by, read, strict=True)
        ]

    def _of(self, term: Term) -> Values:
        """Returns a function to the term's value in float32, which broadcasts to all pairs."""
        if not leaves(term, self.tensors):
            number = self._positional(partial(_number, term, self.names))
            return lambda tensors: number()
        if isinstance(term, Arith):
            operation, parts = JOINED[term.op], [*map(self._of, term.args)]
            return lambda tensors: operation(*[part(tensors) for part in parts])
        tensor = self._tensor(tensor_of(term))
        if not isinstance(term, Lookup):
            return tensor
        read = self._read(term, self.tensors[tensor_of(term)].shape)
        if (shape := read.in_order) is not None:
            return lambda tensors: tensor(tensors).reshape(shape)
        return lambda tensors: _looked_up(read.heads, tensor(tensors), read.indices())

    def _tensor(self, name: str) -> Values:
        """Returns a function to one of the bias' tensors, in float32."""
        order = [*self.tensors].index(name)
        if self.tensors[name].dtype == torch.float32:
            return itemgetter(order)
        return lambda tensors: tensors[order].float()

    def _gather(self, leaf: Term, size: torch.Size) -> Gather:
        """Returns a function that adds up slopes to the gradient of the tensor that the leaf reads."""
        if not isinstance(leaf, Lookup):
            return torch.sum
        read = self._read(leaf, size)
        if (shape := read.in_order) is not None:
            return lambda slopes: slopes.sum_to_size(*shape).view(size)
        return lambda slopes: _added_up(read.heads, size, slopes, read.indices())

    def _read(self, leaf: Lookup, shape: torch.Size) -> Read:
        flat = _places(leaf.indices, self.names, shape)
        if flat.numel() == shape.numel() and torch.equal(flat.flatten(), torch.arange(flat.numel())):
            return Read(lambda: flat, 0, tuple(flat.shape))
        heads, indices = 0, leaf.indices
        if indices[0] == Name("head") and shape[0] == self.shape[1] and len(indices) > 1:
            within = _places(indices[1:], self.names, shape[1:])
            if within.dim() <= 2:
                heads, indices, shape = self.shape[1], indices[1:], shape[1:]
        return Read(self._positional(partial(_places, indices, self.names, shape)), heads, None)

    def _positional(self, make: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """Returns a function to what depends on positions alone: kept where small, else made by each call."""
        made = make()
        return (lambda: made) if made.numel() <= MOST_KEPT else make


def _number(term: Term, names: Names) -> Tensor:
    return torch.as_tensor(evaluate(term, names), dtype=torch.float32)


def _places(indices: Sequence[Term], names: Names, shape: Sequence[int]) -> Tensor:
    """Flat places in a tensor, on each axis at the nearest end where an index lies outside."""
    found = torch.zeros((), dtype=torch.int64)
    for index, size in zip(indices, shape, strict=True):
        found = found * size + nearest(torch.as_tensor(evaluate(index, names)), size)
    return found


def _looked_up(heads: int, tensor: Tensor, places: Tensor) -> Tensor:
    flat = places.flatten()
    if not heads:
        return tensor.flatten().index_select(0, flat).view(places.shape)
    return tensor.flatten(1).index_select(1, flat).view(heads, *_on_a_plane(places))


def _added_up(heads: int, shape: Sequence[int], slopes: Tensor, places: Tensor) -> Tensor:
    """The sums of what each number of the tensor was read for; in one order."""
    flat = places.flatten()
    if not heads:
        given = slopes.sum_to_size(places.shape).flatten()
        return slopes.new_zeros(shape).view(-1).index_add_(0, flat, given).view(shape)
    given = slopes.sum_to_size(1, heads, *_on_a_plane(places)).view(heads, -1)
    return slopes.new_zeros(shape).view(heads, -1).scatter_add_(1, flat.expand(heads, -1), given).view(shape)


def _on_a_plane(places: Tensor) -> tuple[int, int]:
    """The shape of places that no head and no element changes: queries and keys, either of them maybe 1."""
    rows, columns = (1, 1, *places.shape)[-2:]
    return rows, columns
