"""DenseBias: a bias as one float32 number for each pair, and its gradients from the slopes of all pairs.

A recorder notes both. What depends on positions alone is computed once where it is small; a tensor that has a
number for each pair is taken as it lies in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.attend.bias import PairPositions, derivative, leaves, tensor_of
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.tensor_terms import evaluate, nearest
from lattend.attend.replay.recorder import Recorder
from lattend.rules.language.expr import Arith, Lookup, Name, Num, Term

MOST_KEPT = 1 << 16  # numbers of a table of positions that is kept from call to call
# Tensors of a bias are added and multiplied, and nothing else
JOINED: dict[str, Callable[..., Tensor]] = {
    "+": torch.add, "-": torch.sub, "*": torch.mul, "neg": torch.neg,
}  # fmt: skip
Names = Mapping[str, Any]  # numbers, and positions as tensors that are broadcast to all pairs


class Read(NamedTuple):
    """A tensor read on all pairs: with the rows of the heads, or as a flat whole, at places of this shape."""

    places: Tensor  # kept, or made by a step
    heads: int  # 0 where the tensor is read as a flat whole
    in_order: bool  # each number of the tensor is read at its own place: there is nothing to look up
    shape: tuple[int, ...]


class DenseBias:
    """The bias of a call on all its pairs."""

    def __init__(self, recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor) -> None:
        self.recorder, self.call, self.term = recorder, call, call.term or Num(0)
        self.shape = (*q.shape[:3], k.shape[2])
        elements, heads, queries, keys = map(torch.arange, self.shape)
        pairs = PairPositions(elements.view(-1, 1, 1, 1), heads[:, None, None], queries[:, None], keys)
        self.names = pairs.names(call)

    def values(self) -> Tensor:
        """The bias, [batch, heads, n, m]; where it is one for all, with a stride of 0."""
        return self.recorder.do(partial(torch.broadcast_to, size=self.shape), self._of(self.term))

    def gradients(self, slopes: Tensor) -> list[Tensor]:
        """The gradients of the bias' tensors, from the slopes of all scores, [batch, heads, n, m]."""
        found: list[Tensor] = []
        for name, tensor in self.call.bias.items():
            read = [leaf for leaf in leaves(self.term, self.call.bias) if tensor_of(leaf) == name]
            amounts = [self._gradient(leaf, tensor, slopes) for leaf in read]
            found.append(
                self.recorder.in_dtype(reduce(partial(self.recorder.do, torch.add), amounts), tensor.dtype)
            )
        return found

    def _of(self, term: Term) -> Tensor:
        """The value of a term in float32, of a shape that broadcasts to that of all pairs."""
        if not leaves(term, self.call.bias):
            return self._positional(partial(_number, term, self.names))
        if isinstance(term, Arith):
            return self.recorder.do(JOINED[term.op], *map(self._of, term.args))
        tensor = self.recorder.in_dtype(self.call.bias[tensor_of(term)], torch.float32)
        if not isinstance(term, Lookup):
            return tensor
        read = self._read(term, tensor)
        if read.in_order:
            return self.recorder.do(partial(torch.reshape, shape=read.shape), tensor)
        return self.recorder.do(partial(_looked_up, read.heads), tensor, read.places)

    def _gradient(self, leaf: Term, tensor: Tensor, slopes: Tensor) -> Tensor:
        """What the slopes give the tensor that is read there."""
        by = derivative(self.term, leaf)
        amount = slopes if by == Num(1) else self.recorder.do(torch.mul, slopes, self._of(by))
        if not isinstance(leaf, Lookup):
            return self.recorder.do(torch.sum, amount)
        read = self._read(leaf, tensor)
        if read.in_order:
            return self.recorder.do(partial(_in_order, read.shape, tensor.shape), amount)
        return self.recorder.do(partial(_added_up, read.heads, tensor.shape), amount, read.places)

    def _read(self, leaf: Lookup, tensor: Tensor) -> Read:
        flat = _places(leaf.indices, self.names, tensor.shape)
        if flat.numel() == tensor.numel() and torch.equal(flat.flatten(), torch.arange(flat.numel())):
            return Read(flat, 0, True, tuple(flat.shape))
        heads, indices, shape = 0, leaf.indices, tensor.shape
        if indices[0] == Name("head") and shape[0] == self.shape[1] and len(indices) > 1:
            within = _places(indices[1:], self.names, shape[1:])
            if within.dim() <= 2:
                heads, indices, shape = self.shape[1], indices[1:], shape[1:]
        places = self._positional(partial(_places, indices, self.names, shape))
        return Read(places, heads, False, tuple(places.shape))

    def _positional(self, make: Callable[[], Tensor]) -> Tensor:
        """What depends on positions alone: kept where it is small, and otherwise made by each call."""
        made = make()
        return self.recorder.keep(made) if made.numel() <= MOST_KEPT else self.recorder.do(make)


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


def _added_up(heads: int, shape: Sequence[int], amount: Tensor, places: Tensor) -> Tensor:
    """The sums of what each number of the tensor was read for; in one order."""
    flat = places.flatten()
    if not heads:
        given = amount.sum_to_size(places.shape).flatten()
        return amount.new_zeros(shape).view(-1).index_add_(0, flat, given).view(shape)
    given = amount.sum_to_size(1, heads, *_on_a_plane(places)).view(heads, -1)
    return amount.new_zeros(shape).view(heads, -1).scatter_add_(1, flat.expand(heads, -1), given).view(shape)


def _in_order(read: Sequence[int], shape: Sequence[int], amount: Tensor) -> Tensor:
    return amount.sum_to_size(*read).view(shape)


def _on_a_plane(places: Tensor) -> tuple[int, int]:
    """The shape of places that no head and no element changes: queries and keys, either of them maybe 1."""
    rows, columns = (1, 1, *places.shape)[-2:]
    return rows, columns
