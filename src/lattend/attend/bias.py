"""Bias: what is added to the scores, as a term of positions with numbers and tables in it.

    Bias("-slope[head]*(q - k)", slope=slopes)                    ALiBi
    Bias("table[head, k - q + 63]", table=learned)                a relative table
    Bias("table[batch, head, q, k]", table=scores)                one of its own for each batch element
    Bias("-a[head]*((kx - qx - x[head])*(kx - qx - x[head]) + …)", a=…, x=…)   the quadratic encoding

Names are the rule's positions, sizes and parameters, and `batch`, the element of the batch; any other is a
tensor given here, read whole or at an index. Tensors that need a gradient get one; they may be added and
multiplied. An index must lie in its tensor on every attended pair; write min and max around one that may not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.tensor_terms import ELEMENT, evaluate
from lattend.attend.operators.tracing import constant
from lattend.errors import DomainError, NamingError, TensorError
from lattend.plans.limits import minus, plus, times
from lattend.report.report import Report
from lattend.report.shown import Shown
from lattend.report.table import Table
from lattend.rules.axes import IMAGE, LINE, POSITIONS, RESERVED, VOLUME
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Lookup, Name, Num, Term
from lattend.rules.language.parser import parse_term
from lattend.rules.rule import check_integer

_AXES = {len(axes): axes for axes in (LINE, IMAGE, VOLUME)}


@dataclass(frozen=True, eq=False, repr=False)
class Bias(Shown):
    """A term and its tensors; add it to attention with `bias=`.

    >>> Bias("-slope[head]*(q - k)", slope=torch.tensor([0.5, 0.25]))
    <Bias -slope[head]*(q - k) with slope (2)>
    """

    text: str
    tensors: Mapping[str, Tensor]

    def __init__(self, text: str, /, **tensors: Tensor | float) -> None:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise NamingError(f"a bias is written as text, Bias('q - k'), not as {type(text).__name__}")
        whole = {name: _as_tensor(name, value) for name, value in tensors.items()}
        check_term(text, tuple(whole), tuple([tensor.dim() for tensor in whole.values()]))
        for name, tensor in whole.items():
            check_floating(name, tensor)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "tensors", whole)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {shape_text(tensor)}" for name, tensor in self.tensors.items())
        return f"<Bias {self.text} with {shapes}>" if shapes else f"<Bias {self.text}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, shape_text(one), dtype_name(one.dtype), "learned" if one.requires_grad else "fixed")
            for name, one in self.tensors.items()
        ]
        table = [Table(("tensor", "shape", "dtype", ""), rows)] if rows else []
        return Report(f"Bias {self.text}", table).html()

    @property
    def term(self) -> Term:
        """The text, parsed."""
        return parsed(self.text)

    @property
    def key(self) -> str:
        """The names of the tensors and the text, as one text."""
        return f"{' '.join(self.tensors)}\n{self.text}"

    # Ready-made

    @staticmethod
    def table(values: Tensor) -> Bias:
        """One number for each pair of a line: [n, m], [heads, n, m] or [batch, heads, n, m].

        Of the last, the first two may be 1: one for all.
        """
        if values.dim() not in (2, 3, 4):
            raise TensorError(
                f"a table of pairs is [n, m], [heads, n, m] or [batch, heads, n, m], not {shape_text(values)}"
            )
        return Bias(table_text(values, "q, k"), table=values)

    @staticmethod
    def alibi(heads: int, *, device: torch.device | str | None = None) -> Bias:
        """Attention with linear biases: head i of `heads`, from 1, takes 2^(-8i/heads) off per position.

        The slopes of Press, Smith and Lewis (2022). Where `heads` is no power of two: those of the power
        below, then every second one of the power above.

        >>> Bias.alibi(4).tensors["slope"].tolist()  # 2^-2, 2^-4, 2^-6, 2^-8
        [0.25, 0.0625, 0.015625, 0.00390625]
        """
        check_integer("heads", heads)
        if heads < 1:
            raise DomainError(f"heads = {heads}: a bias has at least 1 head")
        whole = 1 << (int(heads).bit_length() - 1)
        slopes = [2 ** (-8 * i / whole) for i in range(1, whole + 1)]
        slopes += [2 ** (-4 * i / whole) for i in range(1, 2 * (heads - whole), 2)]
        slope = torch.tensor(slopes, dtype=torch.float64, device=device)
        return Bias("-slope[head]*abs(q - k)", slope=slope)

    @staticmethod
    def relative(table: Tensor) -> Bias:
        """A number for each distance k - q: [heads, 2r + 1], or on an image [heads, 2ry + 1, 2rx + 1].

        The entry of distance d is at d + r. A key further away than r takes the entry at the end.

        >>> Bias.relative(torch.zeros(2, 7))
        <Bias table[head, min(max(k - q + 3, 0), 6)] with table (2, 7)>
        """
        if table.dim() - 1 not in _AXES or any(size % 2 == 0 for size in table.shape[1:]):
            raise TensorError(
                "a relative table is [heads, 2r + 1], or [heads, 2ry + 1, 2rx + 1] on an image, "
                f"with one entry for each distance -r … r, not {shape_text(table)}"
            )
        places = [
            f"min(max({axis.key} - {axis.query} + {size // 2}, 0), {size - 1})"
            for axis, size in zip(_AXES[table.dim() - 1], table.shape[1:], strict=True)
        ]
        return Bias(f"table[head, {', '.join(places)}]", table=table)

    @staticmethod
    def quadratic(alpha: Tensor, centre: Tensor) -> Bias:
        """-alpha (|delta - centre|² - |centre|²) with delta = k - q: each head attends around its centre.

        alpha is [heads], centre [heads, axes]: one axis on a line, rows then columns on an image. The
        encoding of Cordonnier, Loukas and Jaggi (2020). Written delta·(delta - 2 centre): the same, and
        no large squares are subtracted.

        >>> Bias.quadratic(torch.ones(1), torch.tensor([[2.0]]))
        <Bias -alpha[head]*((k - q)*(k - q - 2*centre[head, 0])) with alpha (1), centre (1, 1)>
        """
        axes = _AXES.get(centre.shape[1] if centre.dim() == 2 else 0)
        if axes is None or alpha.dim() != 1 or alpha.shape[0] != centre.shape[0]:
            raise TensorError(
                "a quadratic bias has alpha [heads] and centre [heads, axes], with 1 axis on a line and 2 on "
                f"an image, not {shape_text(alpha)} and {shape_text(centre)}"
            )
        away = [f"{axis.key} - {axis.query}" for axis in axes]
        terms = [f"({delta})*({delta} - 2*centre[head, {i}])" for i, delta in enumerate(away)]
        return Bias(f"-alpha[head]*({' + '.join(terms)})", alpha=alpha, centre=centre)


def _as_tensor(name: str, value: Tensor | float) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TensorError(f"{name} must be a tensor or a number, got {type(value).__name__}")
    return torch.tensor(float(value), dtype=torch.float64)


def check_floating(name: str, tensor: Tensor) -> None:
    """Raises unless the tensor holds floating numbers."""
    if tensor.dtype == torch.bool:
        raise TensorError(
            f"{name} holds bool, and a bias is added to the scores, where 1 and 0 mask nothing. Where True "
            f'means attend, make it part of the rule: rule & lt.rule("mask[q, k]", data={{"mask": None}}), '
            f"called with mask={name}; or add -inf: torch.zeros({name}.shape).masked_fill(~{name}, "
            "-torch.inf)"
        )
    if not tensor.is_floating_point():
        raise TensorError(
            f"{name} holds {dtype_name(tensor.dtype)}, and a bias is made of floating numbers: {name}.float()"
        )


def shape_text(tensor: Tensor) -> str:
    """A shape as it is written in messages: (2, 7)."""
    return f"({', '.join([str(size) for size in tensor.shape])})"


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype as it is written in messages: float32."""
    return str(dtype).removeprefix("torch.")


def table_text(table: Tensor, pair: str) -> str:
    """How a table is read at a pair: `table[batch, head, q, k]`, at 0 where it has one for all."""
    if table.dim() == 4:
        element, head = (0 if table.shape[0] == 1 else ELEMENT), (0 if table.shape[1] == 1 else "head")
        return f"table[{element}, {head}, {pair}]"
    return f"table[head, {pair}]" if table.dim() == 3 else f"table[{pair}]"


# What a text says: found once for each text, and constant where attention is traced


@constant
def check_term(text: str, tensors: tuple[str, ...], axes: tuple[int, ...]) -> bool:
    """Raises unless each tensor, which has so many axes, is read in the text as it can be."""
    return _checked(text, tensors, axes)


@lru_cache(maxsize=256)
def _checked(text: str, tensors: tuple[str, ...], axes: tuple[int, ...]) -> bool:
    term, dims = parsed(text), dict(zip(tensors, axes, strict=True))
    found = leaves(term, {**dims, **dict.fromkeys(expr.arrays(term))})
    for name in tensors:
        if name in RESERVED or name == ELEMENT:
            what = "a size" if name in RESERVED - POSITIONS else "a position"
            what = "the batch element" if name == ELEMENT else what
            raise NamingError(f'bias "{text}": {name} is {what}; give the tensor another name')
        if name not in [tensor_of(leaf) for leaf in found]:
            raise NamingError(f'bias "{text}" does not use {name}')
    for leaf in found:
        name = tensor_of(leaf)
        if name not in dims:
            raise NamingError(f'bias "{text}" reads {expr.term_text(leaf)}: give {name}=tensor')
        read_at = len(leaf.indices) if isinstance(leaf, Lookup) else 0
        if read_at == dims[name]:
            continue
        if read_at == 0:
            raise TensorError(f"{name} has {dims[name]} axes: read it at an index, {name}[head]")
        raise TensorError(
            f'bias "{text}" reads {expr.term_text(leaf)}, an index for each of {read_at} axes, '
            f"and {name} has {dims[name]}"
        )
    for leaf in found:
        derivative(term, leaf)
    return True


@constant
def names_in(text: str) -> tuple[str, ...]:
    """The names in a bias that are not indexed."""
    return tuple(expr.names(parsed(text)))


@constant
def indexed_axes(text: str) -> tuple[tuple[str, str, int, str], ...]:
    """Lookup, tensor, axis and position where a bias reads at a position itself: one entry for each of it."""
    return tuple(  # of plain tuples: Dynamo of torch 2.11 does not iterate over others
        (expr.term_text(node), node.array, axis, index.name)
        for node in expr.walk(parsed(text))
        if isinstance(node, Lookup)
        for axis, index in enumerate(node.indices)
        if isinstance(index, Name) and (index.name in POSITIONS or index.name == ELEMENT)
    )


def parts_of(key: str) -> tuple[list[str], Term]:
    """What a key says: the names of the tensors, and the term."""
    names, text = key.split("\n", 1)
    return names.split(), parsed(text)


def by_element(term: Term | None, data: Mapping[str, Tensor] | None = None) -> bool:
    """Whether a bias may differ along the batch: it names the element, or reads data, which may differ."""
    if term is None:
        return False
    return ELEMENT in expr.names(term) or any(name in (data or {}) for name in expr.arrays(term))


def repeated_along_the_batch(key: str, batch: int) -> str:
    """The key of the same bias where the batch is several of its batches, one after another."""
    names, term = parts_of(key)
    if not by_element(term):
        return key
    within = Arith("%", (Name(ELEMENT), Num(max(1, batch))))
    same = expr.replaced(term, lambda name: within if name.name == ELEMENT else name)
    return f"{' '.join(names)}\n{expr.term_text(same)}"


@lru_cache(maxsize=256)
def parsed(text: str) -> Term:
    """The term of a text; remembered."""
    return parse_term(text)


def tensor_of(leaf: Term) -> str:
    """The name of the tensor that is read there."""
    return leaf.array if isinstance(leaf, Lookup) else leaf.name if isinstance(leaf, Name) else ""


def leaves(term: Term, tensors: Mapping[str, object] | Sequence[str]) -> list[Term]:
    """The places where tensors are read, each once."""
    found = [
        node for node in expr.walk(term) if isinstance(node, (Lookup, Name)) and tensor_of(node) in tensors
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
        case Lookup() if isinstance(leaf, Lookup):
            at, picked = ", ".join(map(expr.term_text, leaf.indices)), f"{term.array}[{leaf.array}]"
            raise TensorError(
                f"bias: {expr.term_text(leaf)} stands inside {expr.term_text(term)}, and an index is made of "
                f"positions and numbers; look it up before: picked={picked}, read as picked[{at}]"
            )
        case _:
            raise TensorError(
                f"bias: {expr.term_text(leaf)} stands inside {expr.term_text(term)}; "
                "entries of tensors may be added and multiplied, and nothing else"
            )


def _sum(a: Term, b: Term) -> Term:
    return b if a == Num(0) else a if b == Num(0) else plus(a, b)


def _product(a: Term, b: Term) -> Term:
    return Num(0) if Num(0) in (a, b) else times(a, b)


class PairPositions(NamedTuple):
    """Pairs of a call: batch element, head, and flat positions of queries and keys, which are broadcast."""

    elements: Tensor
    heads: Tensor
    queries: Tensor
    keys: Tensor

    def names(self, call: AttentionCall) -> dict[str, Any]:
        """The numbers of the rule and the positions of the pairs on each axis, the last axis fastest."""
        found: dict[str, Any] = {**call.rule.values, "head": self.heads, ELEMENT: self.elements}
        queries, keys = self.queries, self.keys
        if len(call.rule.axes) == 1:
            return found | {call.rule.axes[0].query: queries, call.rule.axes[0].key: keys}
        for axis in reversed(call.rule.axes):
            n, m = call.rule.values[axis.queries], call.rule.values[axis.keys]
            found |= {axis.query: queries % n, axis.key: keys % m}
            queries, keys = queries // n, keys // m
        return found


def bias_of(call: AttentionCall, pairs: PairPositions, dtype: torch.dtype) -> Tensor:
    """The bias of these pairs."""
    if call.term is None:
        raise ValueError("the call has no bias")
    tensors = {**call.data, **{name: tensor.to(dtype) for name, tensor in call.bias.items()}}
    found = evaluate(call.term, pairs.names(call), tensors)
    return torch.as_tensor(found, dtype=dtype, device=pairs.queries.device)


def add_gradients(
    call: AttentionCall, pairs: PairPositions, slope: Tensor, sums: Mapping[str, Tensor]
) -> None:
    """Adds to the sums of each tensor what the slopes of these pairs' scores give it."""
    if call.term is None or not call.learned:
        return
    names = pairs.names(call)
    tensors = {**call.data, **{name: tensor.to(slope.dtype) for name, tensor in call.bias.items()}}
    for leaf in leaves(call.term, call.bias):
        amount = slope * evaluate(derivative(call.term, leaf), names, tensors)
        into = sums[tensor_of(leaf)]
        if not isinstance(leaf, Lookup):
            into += amount.sum()
            continue
        places = [torch.as_tensor(evaluate(i, names, tensors), device=slope.device) for i in leaf.indices]
        flat = torch.zeros((), dtype=torch.int64, device=slope.device)
        for place, size in zip(places, into.shape, strict=True):
            flat = flat * size + place.clamp(0, size - 1)
        _add_at(into.view(-1), flat.expand(slope.shape).reshape(-1), amount.reshape(-1))


def _add_at(into: Tensor, places: Tensor, amount: Tensor) -> None:
    """Adds numbers at their places in one order: each of torch's two ways has one on one device alone."""
    if into.device.type == "cpu":
        into.index_add_(0, places, amount)
    else:
        into.index_put_((places,), amount, accumulate=True)


def empty_sums(call: AttentionCall, dtype: torch.dtype) -> dict[str, Tensor]:
    """Zeros, one for each number in the tensors of the bias; contiguous, however those lie."""
    return {name: tensor.new_zeros(tensor.shape, dtype=dtype) for name, tensor in call.bias.items()}


def as_gradients(call: AttentionCall, sums: Mapping[str, Tensor]) -> list[Tensor]:
    """The sums as gradients, in the dtype of each tensor."""
    return [sums[name].to(tensor.dtype) for name, tensor in call.bias.items()]
