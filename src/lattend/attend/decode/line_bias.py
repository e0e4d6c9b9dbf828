"""A bias while decoding: its text on a line of any length, and what it adds at given positions."""

# torch.library has no types
# pyright: reportUnknownMemberType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import ELEMENT, Bias, indexed_axes, shape_text
from lattend.attend.call.attention_call import rule_of
from lattend.attend.call.inputs import term_given
from lattend.attend.call.rule_names import rule_names
from lattend.attend.call.tensor_terms import evaluate
from lattend.attend.decode.step import keeps_no_gradient, moved, wide
from lattend.attend.operators.tracing import constant
from lattend.errors import LattendError
from lattend.plans.retention import row_by_row
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.language import expr
from lattend.rules.language.expr import Name, Num, Term
from lattend.rules.language.parser import parse_term
from lattend.rules.rule import Rule


class LineRule(NamedTuple):
    """What a bias needs of the rule of a cache, in numbers and texts that torch.compile holds as constants.

    `outer` is the size of the first axis, `inner` are those of the others, and `length` the number of all
    positions, if it is known.
    """

    key: str
    numbers: tuple[tuple[str, int], ...]
    outer: str
    inner: tuple[tuple[str, int], ...]
    by_head: bool
    heads: int
    length: int | None


def line_rule(rule: Rule, heads: int, length: int | None) -> LineRule:
    """The rule of a cache for so many heads."""
    outer, *inner = rule.axes
    sizes = tuple((axis.queries, rule.values[axis.queries]) for axis in inner)
    return LineRule(rule.key, tuple(rule.values.items()), outer.queries, sizes, rule.has_heads, heads, length)


def on_a_line(bias: Bias | Tensor, line: LineRule, seen: int, q: Tensor) -> Bias:
    """The bias of positions on a line, the rule's numbers in it; raises unless it fits the first `seen`."""
    if isinstance(bias, Tensor) and line.length is None:
        raise LattendError(
            f"bias is a table of shape {shape_text(bias)} for all pairs, and how many there will be is not "
            "known: make the cache with n=…, or write the bias with positions: "
            'Bias("table[head, k - q + 63]", table=…)'
        )
    positions = seen if line.length is None else line.length
    sizes = {line.outer: -(-positions // prod([size for _, size in line.inner])), **dict(line.inner)}
    if line.by_head:
        sizes[HEADS] = line.heads
    term_given(rule_names(line.key), line.key, bias, sizes, q)
    found = Bias.table(bias) if isinstance(bias, Tensor) else bias
    for name, tensor in found.tensors.items():
        if tensor.requires_grad and torch.is_grad_enabled():
            raise keeps_no_gradient(f"bias: {name}")
    if isinstance(bias, Tensor):
        return found
    return Bias(_text_on_a_line(bias.text, tuple(bias.tensors), *line), **bias.tensors)


def fits_any_length(bias: Bias | Tensor, line: LineRule) -> bool:
    """Whether a bias that fits the first positions fits those that follow: it reads no tensor at one."""
    if line.length is not None:
        return True
    read = () if isinstance(bias, Tensor) else indexed_axes(bias.text)
    return all(position in (HEAD, ELEMENT) for *_, position in read)


@constant
def _text_on_a_line(text: str, tensors: tuple[str, ...], *line: Any) -> str:
    return text_on_a_line(text, tensors, LineRule(*line))


@lru_cache(maxsize=256)
def text_on_a_line(text: str, tensors: tuple[str, ...], line: LineRule) -> str:
    """The text with q, k, head and batch as its only positions.

    >>> from lattend.rules import raster
    >>> text_on_a_line("slope*(qy - ky)", ("slope",), line_rule(raster().at(cols=5), 1, None))
    'slope * (q // 5 - k // 5)'
    """
    rule = rule_of(line.key).at(**dict(line.numbers))
    numbers: dict[str, Term] = {name: Num(value) for name, value in rule.values.items()}
    numbers |= {HEAD: Name(HEAD), ELEMENT: Name(ELEMENT), HEADS: Num(line.heads)} | {
        name: Name(name) for name in tensors
    }
    places, step = row_by_row(rule.axes, rule.values)
    numbers |= places
    if line.length is not None:
        outer = rule.axes[0]
        numbers |= dict.fromkeys((outer.queries, outer.keys), Num(line.length // step))

    def substitute(name: Name) -> Term:
        if name.name not in numbers:
            raise LattendError(
                f'bias "{text}" names {name.name}, the size of the whole, which is not known before its '
                f"end; if you know it, make the cache with {name.name}=…"
            )
        return numbers[name.name]

    return expr.term_text(expr.replaced(parse_term(text), substitute))


def bias_at(bias: Bias, q: NDArray[np.int64], k: NDArray[np.int64], like: Tensor) -> Tensor:
    """What a bias on a line adds at positions q [s] and k [m], for the heads of `like`; up to broadcasting.

    Rows with positions of their own give [batch, s] and [batch, m].
    """
    return _added(bias, moved(q, like.device), moved(np.maximum(k, 0), like.device), like)


def bias_on_device(bias: Bias, q: Tensor, k: Tensor, like: Tensor) -> Tensor:
    """The same for positions [batch, s] and [batch, m] on the device; one operator to torch.compile."""
    if not torch.compiler.is_compiling():
        return _added(bias, q, k, like)
    return _OPERATOR(bias.text, ",".join(bias.tensors), list(bias.tensors.values()), q, k, like)


def _added(bias: Bias, q: Tensor, k: Tensor, like: Tensor) -> Tensor:
    device, kind = like.device, wide(like)
    places = {"q": q[..., :, None], "k": k[..., None, :]}
    if q.dim() > 1:
        places = {name: x[:, None] for name, x in places.items()}
    places[HEAD] = torch.arange(like.shape[1], device=device)[:, None, None]
    places[ELEMENT] = torch.arange(like.shape[0], device=device)[:, None, None, None]
    tensors = {name: tensor.detach().to(device, kind) for name, tensor in bias.tensors.items()}
    return torch.as_tensor(evaluate(bias.term, places, tensors), dtype=kind, device=device)


# The operator

_LIBRARY = torch.library.Library("lattend", "FRAGMENT")
_LIBRARY.define(
    "decoding_bias(str text, str names, Tensor[] tensors, Tensor q, Tensor k, Tensor like) -> Tensor"
)
_OPERATOR = torch.ops.lattend.decoding_bias.default


@torch.library.impl(_LIBRARY, "decoding_bias", "CompositeExplicitAutograd")
def _run(text: str, names: str, tensors: list[Tensor], q: Tensor, k: Tensor, like: Tensor) -> Tensor:
    given = dict(zip(names.split(","), tensors, strict=True)) if names else {}
    found = _added(Bias(text, **given), q, k, like)
    return found.expand(*like.shape[:2], q.shape[1], k.shape[1]).contiguous()


@torch.library.register_fake(_OPERATOR, lib=_LIBRARY)
def _shape(text: str, names: str, tensors: list[Tensor], q: Tensor, k: Tensor, like: Tensor) -> Tensor:
    return like.new_empty(*like.shape[:2], q.shape[1], k.shape[1], dtype=wide(like))
