"""CallMemory: the bytes of a call's tensors, of the scores that are not held, and of the KV cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from lattend.errors import LattendError
from lattend.plans.retention import retention
from lattend.report.numbers import format_bytes
from lattend.rules.axes import LINE
from lattend.rules.language import expr
from lattend.rules.rule import Rule

if TYPE_CHECKING:
    from torch import Tensor

    from lattend.attend.explain.meta_call import MetaCall


@dataclass(frozen=True)
class CallMemory:
    """Bytes: q, k, v and the output; the scores of all pairs; the keys and values that decoding keeps.

    `cached` is how many keys are kept at most: all of them where they grow with the sequence. Where the rule
    cannot be decoded, it is None and `cache_text` says why.
    """

    tensors: int
    scores: int
    cached: int | None
    cache: int | None
    cache_text: str


def memory_of(rule: Rule, asked: MetaCall) -> CallMemory:
    """The memory of a call; `rule` has all its numbers.

    >>> from lattend.attend.explain.explain import explain
    >>> found = explain("strided(3)", n=1024, heads=2, head_dim=16).memory
    >>> found.cached, found.cache  # 4 keys, with their values: 2 * 2 heads * 4 * 16 * 4 bytes
    (4, 1024)
    """
    q, k, v = asked.q, asked.k, asked.v
    output = prod(q.shape[:-1]) * v.shape[-1] * q.element_size()
    tensors = sum(map(_bytes, (q, k, v))) + output
    scores = prod(q.shape[:-1]) * k.shape[-2] * q.element_size()
    try:
        kept = retention(_of_any_length(rule), query_heads=q.shape[1])
    except LattendError as error:
        return CallMemory(tensors, scores, None, None, str(error))
    cached = k.shape[-2] if kept.most is None else min(kept.most, k.shape[-2])
    each = (_bytes(k) + _bytes(v)) // max(1, k.shape[-2])
    return CallMemory(tensors, scores, cached, cached * each, str(kept))


def _of_any_length(rule: Rule) -> Rule:
    """The rule on a line whose end is not known, as while tokens come; a size that it speaks of stays."""
    line = [axis for axis in rule.axes if axis.query == LINE[0].query]
    open_sizes = {size for axis in line for size in (axis.queries, axis.keys)} - {*expr.names(rule.condition)}
    return replace(rule, values={name: at for name, at in rule.values.items() if name not in open_sizes})


def _bytes(x: Tensor) -> int:
    return x.numel() * x.element_size()


def format_memory(found: CallMemory) -> list[tuple[str, str]]:
    """Names and words, as they are printed."""
    rows = [
        ("q, k, v and output", format_bytes(found.tensors)),
        ("scores of all pairs", f"{format_bytes(found.scores)}, held by the dense kernel only"),
    ]
    if found.cached is None or found.cache is None:
        return [*rows, ("KV cache", f"none: {found.cache_text}")]
    keys = f"{found.cached:,} key{'s' * (found.cached != 1)}"
    return [*rows, ("KV cache", f"{format_bytes(found.cache)}, {keys}: {found.cache_text}")]
