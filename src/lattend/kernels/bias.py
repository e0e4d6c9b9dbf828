"""Bias: what is added to the scores, as a term of positions with numbers and tables in it.

    Bias("-slope[head]*(q - k)", slope=slopes)                    ALiBi
    Bias("table[head, k - q + 63]", table=learned)                a relative table
    Bias("-a[head]*((kx - qx - x[head])*(kx - qx - x[head]) + …)", a=…, x=…)   the quadratic encoding

Names are the rule's positions, sizes and parameters; any other is a tensor given here, read whole or at
an index. Tensors that need a gradient get one; they may be added and multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.errors import NamingError, TensorError
from lattend.kernels.call import Call
from lattend.plans.solve import minus, plus, times
from lattend.rules import expr
from lattend.rules.expr import Arith, Lookup, Name, Num, Term
from lattend.rules.text import parse_term


@dataclass(frozen=True, eq=False)
class Bias:
    """A term and its tensors; add it to attention with `bias=`."""

    text: str
    tensors: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])

    def __init__(self, text: str, **tensors: Tensor | float) -> None:
        whole = {name: torch.as_tensor(value) for name, value in tensors.items()}
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "tensors", whole)
        self._check()

    @cached_property
    def term(self) -> Term:
        return read(self.text)

    def _check(self) -> None:
        read_at = {name for node in leaves(self.term, self.tensors) for name in [_tensor_of(node)]}
        unused = [name for name in self.tensors if name not in read_at]
        if unused:
            raise NamingError(f'bias "{self.text}" does not use {unused[0]}')
        for node in expr.walk(self.term):
            if isinstance(node, Lookup) and node.array not in self.tensors:
                raise NamingError(f'bias "{self.text}" reads {node.array}[...]: give {node.array}=tensor')
            if isinstance(node, Lookup) and len(node.indices) != self.tensors[node.array].dim():
                shape = tuple(self.tensors[node.array].shape)
                raise TensorError(
                    f'bias "{self.text}" reads {expr.term_text(node)}, and {node.array} has shape {shape}'
                )
            if isinstance(node, Name) and node.name in self.tensors and self.tensors[node.name].dim():
                shape = tuple(self.tensors[node.name].shape)
                raise TensorError(f"{node.name} has shape {shape}: read it at an index, {node.name}[head]")
        for name, tensor in self.tensors.items():
            if not tensor.is_floating_point():
                raise TensorError(f"{name} holds {tensor.dtype}, and a bias is made of floating numbers")

        for leaf in leaves(self.term, self.tensors):
            derivative(self.term, leaf)

    @property
    def key(self) -> str:
        """The names of the tensors and the text, as one text."""
        return f"{' '.join(self.tensors)}\n{self.text}"

    @staticmethod
    def table(values: Tensor) -> Bias:
        """One number for each square: [n, m] or [heads, n, m]."""
        if values.dim() not in (2, 3):
            raise TensorError(f"bias has shape {tuple(values.shape)}, and a table is [n, m] or [heads, n, m]")
        return Bias("table[q, k]" if values.dim() == 2 else "table[head, q, k]", table=values)


def parts_of(key: str) -> tuple[list[str], Term]:
    """What a key says: the names of the tensors, and the term."""
    names, text = key.split("\n", 1)
    return names.split(), read(text)


@lru_cache(maxsize=256)
def read(text: str) -> Term:
    """The term of a text."""
    return parse_term(text)


@torch.compiler.assume_constant_result
def names_in(text: str) -> tuple[str, ...]:
    """The names in a bias that are not indexed."""
    return tuple(expr.names(read(text)))


def _tensor_of(leaf: Term) -> str:
    return leaf.array if isinstance(leaf, Lookup) else leaf.name if isinstance(leaf, Name) else ""


def leaves(term: Term, tensors: Mapping[str, object] | Sequence[str]) -> list[Term]:
    """The places where tensors are read, each once."""
    found = [
        node
        for node in expr.walk(term)
        if isinstance(node, Lookup) or (isinstance(node, Name) and node.name in tensors)
    ]
    return list(dict.fromkeys(found))  # pyright: ignore[reportReturnType]


def derivative(term: Term, leaf: Term) -> Term:
    """The derivative by one entry; entries may be added and multiplied, and nothing else.

    >>> expr.term_text(derivative(parse_term("a[head]*(q - k) + a[head]"), parse_term("a[head]")))
    'q - k + 1'
    """
    if term == leaf:
        return Num(1)
    if leaf not in expr.walk(term):
        return Num(0)
    match term:
        case Arith(op="+", args=(a, b)):
            return _sum(derivative(a, leaf), derivative(b, leaf))
        case Arith(op="-", args=(a, b)):
            return minus(derivative(a, leaf), derivative(b, leaf))
        case Arith(op="neg", args=(a,)):
            return minus(Num(0), derivative(a, leaf))
        case Arith(op="*", args=(a, b)):
            return _sum(_product(derivative(a, leaf), b), _product(a, derivative(b, leaf)))
        case _:
            raise TensorError(
                f"bias: {expr.term_text(leaf)} stands inside {expr.term_text(term)}; "
                "entries of tensors may be added and multiplied, and nothing else"
            )


def _sum(a: Term, b: Term) -> Term:
    return b if a == Num(0) else a if b == Num(0) else plus(a, b)


def _product(a: Term, b: Term) -> Term:
    return Num(0) if Num(0) in (a, b) else times(a, b)


def value(term: Term, names: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Any:
    """The term at these positions, in torch, which can differentiate it by the tensors."""
    match term:
        case Num():
            return term.value
        case Name():
            return tensors[term.name] if term.name in tensors else names[term.name]
        case Lookup():
            table = tensors[term.array]
            places = [value(index, names, tensors) for index in term.indices]
            return table[tuple(_within(place, size) for place, size in zip(places, table.shape, strict=True))]
        case Arith():
            args = [value(arg, names, tensors) for arg in term.args]
            return args[0] if len(args) == 1 and term.op in ("min", "max") else _OPERATIONS[term.op](*args)


def _within(place: Any, size: int) -> Any:
    """The index, at the nearest end where it lies outside: an unmarked square may ask for any."""
    return place.clamp(0, size - 1) if isinstance(place, Tensor) else max(0, min(size - 1, place))


def _folded(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    def over(*args: Any) -> Any:
        best = torch.as_tensor(args[0])
        for arg in args[1:]:
            best = function(best, torch.as_tensor(arg))
        return best

    return over


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "neg": lambda a: -a,
    "abs": abs,
    "min": _folded(torch.minimum),
    "max": _folded(torch.maximum),
}


class Placed(NamedTuple):
    """Squares of a call: head, and flat positions of queries and keys, which are broadcast."""

    heads: Tensor
    queries: Tensor
    keys: Tensor

    def names(self, call: Call) -> dict[str, Any]:
        """The numbers of the rule and the positions of the squares on each axis, the last axis fastest."""
        found: dict[str, Any] = {**call.rule.values, "head": self.heads}
        queries, keys = self.queries, self.keys
        for axis in reversed(call.rule.axes):
            n, m = call.rule.values[axis.queries], call.rule.values[axis.keys]
            found |= {axis.query: queries % n, axis.key: keys % m}
            queries, keys = queries // n, keys // m
        return found


def added(call: Call, squares: Placed, dtype: torch.dtype) -> Tensor:
    """The bias of these squares."""
    if call.term is None:
        raise ValueError("the call has no bias")
    tensors = {name: tensor.to(dtype) for name, tensor in call.bias.items()}
    found = value(call.term, squares.names(call), tensors)
    return torch.as_tensor(found, dtype=dtype, device=squares.queries.device)


def add_gradients(call: Call, squares: Placed, slope: Tensor, sums: Mapping[str, Tensor]) -> None:
    """Adds to the sums of each tensor what the slopes of these squares' scores give it."""
    if call.term is None:
        return
    names = squares.names(call)
    tensors = {name: tensor.to(slope.dtype) for name, tensor in call.bias.items()}
    for leaf in leaves(call.term, call.bias):
        amount = slope * value(derivative(call.term, leaf), names, tensors)
        into = sums[_tensor_of(leaf)]
        if not isinstance(leaf, Lookup):
            into += amount.sum()
            continue
        places = [torch.as_tensor(value(i, names, tensors), device=slope.device) for i in leaf.indices]
        flat = torch.zeros((), dtype=torch.int64, device=slope.device)
        for place, size in zip(places, into.shape, strict=True):
            flat = flat * size + place.clamp(0, size - 1)
        into.view(-1).index_add_(0, flat.expand(slope.shape).reshape(-1), amount.reshape(-1))


def empty_sums(call: Call, dtype: torch.dtype) -> dict[str, Tensor]:
    """Zeros, one for each number in the tensors of the bias."""
    return {name: torch.zeros_like(tensor, dtype=dtype) for name, tensor in call.bias.items()}


def as_gradients(call: Call, sums: Mapping[str, Tensor]) -> list[Tensor]:
    """The sums as gradients, in the dtype of each tensor."""
    return [sums[name].to(tensor.dtype) for name, tensor in call.bias.items()]
