"""Sequences of different lengths laid end to end, [total, heads, D]: what FlashAttention calls varlen.

    cu_seqlens = (0, l1, l1 + l2, …)                 the first position of each sequence, and the end

A rule is read within each sequence, whose positions begin at 0. On the whole line it says

    seq[q] == seq[k] and q - k <= t                  where it asks for differences
    seq[q] == seq[k] and k - cu[seq[q]] < 4          where it asks for k < 4

so plans and kernels are those of any rule with data. Where queries and keys have lengths of their own, there
are seq_q and cu_q beside seq_k and cu_k. Nothing is read back from the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch._C._functorch import is_batchedtensor
from torch.nn.functional import pad

from lattend.attend.bias import ELEMENT, Bias, by_element, dtype_name, parts_of, shape_text
from lattend.attend.call.attention_call import rule_of
from lattend.attend.call.inputs import (
    Inputs,
    as_one_kind,
    check_entries,
    check_names,
    check_shapes,
    numbers_given,
    sizes_given,
    term_given,
)
from lattend.attend.call.options import AttentionOptions
from lattend.attend.call.rule_names import array_names, rule_names
from lattend.attend.operators.tracing import constant
from lattend.errors import DomainError, NamingError, TensorError
from lattend.recent import Recent
from lattend.rules.axes import untied
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Compare, Condition, Lookup, Name, Node, Num, Term
from lattend.rules.reader import RuleLike
from lattend.rules.rule import Rule

ONE, TWO = ("cu", "seq"), ("cu_k", "cu_q", "seq_k", "seq_q")  # the arrays of a packed rule, in its order
CuSeqlens = Tensor | tuple[Tensor, Tensor]


class Sequences(NamedTuple):
    """Where the sequences of the queries and of the keys begin; `apart` where these differ."""

    queries: Tensor
    keys: Tensor
    apart: bool


class Packed(NamedTuple):
    """A call on the whole line, as a batch of one.

    `padding` is where the keys of the last sequence end, [1], if a bias has no entry for those after it.
    """

    key: str
    inputs: Inputs
    padding: Tensor | None


def packed_inputs(
    rule: tuple[str, Mapping[str, int]],
    values: Mapping[str, Any],
    qkv: tuple[Tensor, Tensor, Tensor],
    bias: Bias | Tensor | None,
    cu_seqlens: CuSeqlens,
) -> Packed:
    """The key of the rule on the whole line, and what goes with it to the operator; raises unless it fits."""
    key, bound = rule
    names = rule_names(key)
    check_names(names, bound, values)
    if len(names.queries) > 1:
        raise NamingError(f'cu_seqlens is for rules on a line, and "{names.text}" is on an image')
    looked_up = array_names(key)
    if looked_up:
        raise NamingError(
            f'cu_seqlens: the rule "{names.text}" looks up {looked_up[0]}[…] at positions that begin anew in '
            "each sequence; give a rule without arrays, or leave cu_seqlens out and give ids of the whole "
            "line: lt.rules.documents()"
        )
    q, k, v = as_one_kind(*_as_batch(qkv))
    check_shapes(names, q, k, v)
    starts = sequences_given(cu_seqlens, q, k)
    whole = {**values, "m": k.shape[2]} if starts.apart else values
    sizes = sizes_given(names, bound, whole, q, k)
    term, tensors = _term_given(key, bias, starts, q)
    own = TWO if starts.apart else ONE
    for name in (*names.parameters, *(bias.tensors if isinstance(bias, Bias) else ())):
        if name in own:
            raise NamingError(f"{name}: cu_seqlens uses the names {', '.join(own)}; call yours otherwise")
    arrays = sequence_arrays(starts, q.shape[2], k.shape[2])
    numbers = numbers_given(names, bound, whole, sizes)
    padding = starts.keys[-1:] if term is not None and names_sequences(term) else None
    if term is not None:
        term = packed_term(term, starts.apart)
    return Packed(packed_key(key, starts.apart), Inputs(q, k, v, numbers, arrays, term, tensors), padding)


def unpacked(x: Tensor) -> Tensor:
    """A result [1, heads, total, …] as [total, heads, …]."""
    return x[0].transpose(0, 1)


def attend_nested(
    attend: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, options: AttentionOptions,
    values: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Runs attention on nested tensors [batch, heads, j, D] by cu_seqlens; the results are nested as q is."""
    qkv = q, k, v
    if options.cu_seqlens is not None:
        raise NamingError("cu_seqlens: a nested q has lengths of its own; leave cu_seqlens out")
    for name, x in zip("qkv", qkv, strict=True):
        ragged = x.is_nested and x.layout == torch.jagged and x.dim() == 4 and x._ragged_idx == 2  # pyright: ignore
        if not ragged or cast(Any, x)._lengths is not None:
            raise TensorError(
                f"{name}: q, k and v must all be nested tensors [batch, heads, j, D] of the jagged layout, "
                "without holes, as torch.nested.nested_tensor([…], layout=torch.jagged).transpose(1, 2), "
                "or none of them"
            )
    parts: list[Any] = [x.transpose(1, 2).contiguous() for x in qkv]  # torch has no type for nested tensors
    of_q, of_k, of_v = (cast(Tensor, x.offsets()) for x in parts)
    if not torch.equal(of_k, of_v):
        of_keys, of_values = (list(map(int, x.diff())) for x in (of_k, of_v))
        raise TensorError(f"k has lengths {of_keys} and v {of_values}; they must agree")
    lengths = of_q if torch.equal(of_q, of_k) else (of_q, of_k)
    packed = (x.values() for x in parts)  # [total, heads, D]
    results = attend(*packed, rule, options._replace(cu_seqlens=lengths), values)
    if isinstance(results, Tensor):
        return torch.nested.nested_tensor_from_jagged(results, of_q).transpose(1, 2)
    return tuple([torch.nested.nested_tensor_from_jagged(x, of_q).transpose(1, 2) for x in results])


def _as_batch(qkv: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
    for name, x in zip("qkv", qkv, strict=True):
        if not isinstance(x, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TensorError(f"{name} must be a tensor, got {type(x).__name__}")
        if x.dim() != 3:
            raise TensorError(
                f"{name} has shape {shape_text(x)}, and with cu_seqlens it is (total, heads, D)"
            )
    q, k, v = (x.transpose(0, 1)[None] for x in qkv)
    return q, k, v


# Where sequences begin


def document_ids(cumulative: Tensor, n: int) -> Tensor:
    """The document of each of n positions, from cumulative lengths (0, l1, l1 + l2, …) or rows of them.

    Nothing is copied to the host. Positions after the last document form one more.

    >>> document_ids(torch.tensor([0, 2, 3]), 5).tolist()  # lengths 2 and 1, then 2 unused positions
    [0, 0, 1, 2, 2]
    """
    places = torch.arange(n, device=cumulative.device, dtype=cumulative.dtype)
    places = places.expand(*cumulative.shape[:-1], n).contiguous()
    return torch.searchsorted(cumulative.contiguous(), places, right=True) - 1


def sequences_given(cu_seqlens: CuSeqlens, q: Tensor, k: Tensor) -> Sequences:
    """The cumulative lengths of queries and keys [1, heads, total, D]; raises unless they fit."""
    queries, keys = (
        cu_seqlens if isinstance(cu_seqlens, tuple) and len(cu_seqlens) == 2 else (cu_seqlens,) * 2
    )
    _check_row("queries", queries, q)
    _check_row("keys", keys, k)
    if queries is keys and q.shape[2] != k.shape[2]:
        raise TensorError(
            f"q has {q.shape[2]} positions and k has {k.shape[2]}: give the lengths of both, "
            "cu_seqlens=(of queries, of keys)"
        )
    if queries.shape[0] != keys.shape[0]:
        raise TensorError(
            f"cu_seqlens has {queries.shape[0] - 1} sequences of queries and {keys.shape[0] - 1} of keys; "
            "each sequence has both, of length 0 where there is nothing"
        )
    return Sequences(queries, keys, queries is not keys)


def _check_row(name: str, cumulative: object, x: Tensor) -> None:
    if not isinstance(cumulative, Tensor):
        raise TensorError(
            "cu_seqlens is a tensor of cumulative lengths (0, l1, l1 + l2, …), or two of them, (of queries, "
            f"of keys); got {type(cumulative).__name__}"
        )
    whole = not cumulative.is_floating_point() and cumulative.dtype != torch.bool
    if cumulative.dim() != 1 or not cumulative.shape[0] or not whole:
        raise TensorError(
            "cu_seqlens is a row of whole numbers (0, l1, l1 + l2, …), got "
            f"{shape_text(cumulative)} of {dtype_name(cumulative.dtype)}"
        )
    if cumulative.device != x.device:
        raise TensorError(f"cu_seqlens is on {cumulative.device} and q on {x.device}; put them on one device")
    known = cumulative.device.type == "cpu" and not torch.compiler.is_compiling()
    if known and not is_batchedtensor(cumulative):
        check_cumulative(name, cumulative, x.shape[2])


def check_cumulative(name: str, cumulative: Tensor, total: int) -> None:
    """Raises where the numbers are no cumulative lengths; on a GPU they would have to be waited for."""
    row = cumulative.long()  # differences of unsigned numbers are never below 0
    if row[0] != 0 or bool((row.diff() < 0).any()) or row[-1] > total:
        shown = ", ".join(str(int(x)) for x in row[:8]) + (", …" if len(row) > 8 else "")
        raise DomainError(
            f"cu_seqlens of {name} must begin with 0, never fall, and end at {total} or before; got {shown}"
        )


def sequence_arrays(starts: Sequences, queries: int, keys: int) -> list[Tensor]:
    """The arrays of a packed rule, [1, …] each: positions past the last sequence form one more."""

    def ends_and_ids(starts: Tensor, total: int) -> tuple[Tensor, Tensor]:
        x = starts if starts.dtype in (torch.int32, torch.int64) else starts.long()
        places = torch.arange(total, device=x.device, dtype=x.dtype)
        ids = torch.searchsorted(x.contiguous(), places, right=True, out_int32=True) - 1
        return torch.cat([x, x.new_full((1,), total)]).int()[None], ids[None]

    of_queries = ends_and_ids(starts.queries, queries)
    if not starts.apart:
        return [*of_queries]
    of_keys = ends_and_ids(starts.keys, keys)
    return [of_keys[0], of_queries[0], of_keys[1], of_queries[1]]


# The rule and the bias on the whole line


@constant
def packed_key(key: str, apart: bool) -> str:
    """The key of the rule on the whole line; see packed_rule."""
    return _packed(key, apart).key


@lru_cache(maxsize=256)
def _packed(key: str, apart: bool) -> Rule:
    found = packed_rule(rule_of(key), apart)
    for one in (found, replace(found, axes=untied(found.axes))):  # as it is at a number m of its own
        _WITHIN.find(one.key, lambda: (key, apart))
    return found


_WITHIN: Recent[str, tuple[str, bool]] = Recent(1024)


def rule_within(key: str) -> tuple[str, bool] | None:
    """The key of the rule that is read within each sequence, and whether keys have lengths of their own."""
    return _WITHIN.get(key)


def packed_rule(rule: Rule, apart: bool = False) -> Rule:
    """The rule read within each sequence, as one rule on the line they lie on.

    >>> from lattend.rules.reader import rule
    >>> packed_rule(rule("k <= q and (k < 4 or q - k <= t)")).text
    'seq[q] == seq[k] and k <= q and (k - cu[seq[q]] < 4 or q - k <= t)'
    """
    of_q, of_k = _sides(apart)
    same = Compare("==", Lookup(f"seq{of_q}", (Name("q"),)), Lookup(f"seq{of_k}", (Name("k"),)))
    condition: Condition = expr.all_of(same, _within(rule.condition, apart))  # pyright: ignore[reportArgumentType]
    return Rule(condition, rule.axes, rule.where, open=TWO if apart else ONE)


@constant
def packed_term(term: str, apart: bool) -> str:
    """The key of a bias with positions within the sequences; `batch` is the sequence."""
    names, added = parts_of(term)
    text = expr.term_text(_within(added, apart, bias=True))  # pyright: ignore[reportArgumentType]
    return f"{' '.join(names)}\n{text}"


def _term_given(
    key: str, bias: Bias | Tensor | None, starts: Sequences, q: Tensor
) -> tuple[str | None, list[Tensor]]:
    if isinstance(bias, Tensor):
        raise TensorError(
            f"bias: a tensor {shape_text(bias)} has a number for each pair of a batch, and with cu_seqlens "
            "there is none; lt.Bias.table(tensor) is read at the positions within each sequence"
        )
    count = starts.queries.shape[0] - 1
    sizes = {"n": 0, "m": 0, ELEMENT: count}  # tables may be shorter than the line
    term, tensors = term_given(rule_names(key), key, bias, sizes, q)
    if bias is None or term is None or not q.shape[2]:
        return term, tensors
    if count or not names_sequences(term):
        check_entries(bias)
    return term, [_with_entries(tensor) for tensor in tensors]  # kernels read before they mask


@constant
def names_sequences(term: str) -> bool:
    """Whether the bias with this key has a number of its own for each sequence."""
    return by_element(parts_of(term)[1])


def _with_entries(tensor: Tensor) -> Tensor:
    """The tensor with one entry, a zero, on each axis that has none."""
    missing = [int(size == 0) for size in reversed(tensor.shape)]
    return pad(tensor, [side for size in missing for side in (0, size)]) if any(missing) else tensor


def _sides(apart: bool) -> tuple[str, str]:
    return ("_q", "_k") if apart else ("", "")


def _within(node: Node, apart: bool, *, bias: bool = False) -> Node:
    """A term or condition with positions and sizes of the sequence that the query is in.

    In a bias, `batch` is that sequence.
    """
    of_q, of_k = _sides(apart)
    sequence = Lookup(f"seq{of_q}", (Name("q"),))
    after = Arith("+", (sequence, Num(1)))
    at: dict[str, Term] = {ELEMENT: sequence} if bias else {}
    for position, size, side in (("q", "n", of_q), ("k", "m", of_k)):
        start, end = Lookup(f"cu{side}", (sequence,)), Lookup(f"cu{side}", (after,))
        at[position], at[size] = Arith("-", (Name(position), start)), Arith("-", (end, start))

    def read(node: Node) -> Node:
        if isinstance(node, Name):
            return at.get(node.name, node)
        if not apart and _is_of_differences(node):
            return node
        return expr.rebuilt(node, [read(child) for child in expr.children(node)])

    return read(node)


def _is_of_differences(node: Node) -> bool:
    """Whether it is the same at positions within a sequence and on the line."""
    if isinstance(node, Compare):
        return _step(node.left) is not None and _step(node.left) == _step(node.right)
    return isinstance(node, Term) and _step(node) == 0


def _step(term: Node) -> int | None:
    """How much a term grows when q and k both grow by 1; None where that is not one number.

    It may depend on nothing else that differs within a sequence and on the line: a size, the batch element.
    """
    match term:
        case Num():
            return 0
        case Name():
            return None if term.name in ("n", "m", ELEMENT) else int(term.name in ("q", "k"))
        case Arith(op="*", args=(Num(value), other)) | Arith(op="*", args=(other, Num(value))):
            step = _step(other)
            return None if step is None else value * step
        case Arith(op="+" | "-" | "neg"):
            steps = [_step(arg) for arg in term.args]
            if None in steps:
                return None
            signs = {"+": (1, 1), "-": (1, -1), "neg": (-1,)}[term.op]
            return sum(sign * step for sign, step in zip(signs, steps, strict=True) if step is not None)
        case _:
            return 0 if all(_step(child) == 0 for child in expr.children(term)) else None
