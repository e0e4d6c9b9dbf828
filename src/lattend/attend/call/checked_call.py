"""CheckedCall: one call of attention whose arguments fit each other, ready for an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from lattend.attend.call.attention_call import rule_of
from lattend.attend.call.dropout import new_seed
from lattend.attend.call.inputs import check_sinks, checked_inputs
from lattend.attend.call.options import AttentionOptions, check_scoring
from lattend.attend.call.padding import padding_given
from lattend.attend.call.varlen import packed_inputs, unpacked
from lattend.attend.kernels.dispatch import KERNELS
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.attend.operators.tracing import constant
from lattend.errors import NamingError
from lattend.rules.reader import RuleLike, arrays_in, read_rule
from lattend.rules.rule import Rule


class CheckedCall(NamedTuple):
    """q, k and v on a line, [batch, heads, positions, D], and the operator's other arguments."""

    q: Tensor
    k: Tensor
    v: Tensor
    operator_call: OperatorCall
    image: tuple[int, ...]  # the sizes of an image, in whose shape results are returned; empty on a line
    packed: bool  # sequences lie end to end, and results are [total, heads, …]

    def in_callers_shape(self, x: Tensor) -> Tensor:
        """Returns a result [batch, heads, positions, …] in the shape that the caller's q has."""
        if self.packed:
            return unpacked(x)
        return torch.unflatten(x, 2, self.image) if self.image else x


def check_call(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, options: AttentionOptions, values: Mapping[str, Any]
) -> CheckedCall:
    """Checks every argument of attention against the others, and raises where two do not fit."""
    key, numbers = rule_given(rule, values)
    check_options(options)
    if options.cu_seqlens is None:
        inputs, padding = checked_inputs((key, numbers), values, (q, k, v), options.bias), options.padding
    elif options.padding is not None:
        raise NamingError("cu_seqlens are the lengths of sequences without padding; leave padding out")
    else:
        key, inputs, padding = packed_inputs(
            (key, numbers), values, (q, k, v), options.bias, options.cu_seqlens
        )
    q, k, v = inputs.q, inputs.k, inputs.v
    key_range, key_mask = padding_given(padding, q, k)
    check_sinks(options.sinks, q)
    seed = new_seed(q) if options.dropout else None
    operator_call = OperatorCall(
        key, inputs.numbers, inputs.arrays, inputs.term, inputs.tensors, key_range, key_mask, options.sinks,
        seed, options.for_kernels,
    )  # fmt: skip
    if q.dim() == 4:
        return CheckedCall(q, k, v, operator_call, (), options.cu_seqlens is not None)
    image = tuple(q.shape[2:-1])
    q, k, v = (x.flatten(2, -2) for x in (q, k, v))
    return CheckedCall(q, k, v, operator_call, image, packed=False)


def check_options(options: AttentionOptions) -> None:
    """Raises unless each option has a value that attention can use."""
    check_scoring(options.for_kernels)
    kernel, deterministic = options.kernel, options.deterministic
    if not isinstance(deterministic, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"deterministic is True or False, not {deterministic!r}")
    if kernel is not None and (not isinstance(kernel, str) or kernel not in KERNELS):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"kernel is one of {', '.join(KERNELS)}, not {kernel!r}; leave it out for the best")


def rule_given(rule: RuleLike, values: Mapping[str, Any]) -> tuple[str, Mapping[str, int]]:
    """Reads a rule: its key, and the numbers it is bound to. Arrays among the values are the rule's."""
    if not isinstance(rule, Rule) and is_compiling():
        key, numbers = _read_in_python(rule, arrays_in(values))
        return key, dict(numbers)
    read = read_rule(rule, arrays_in(values))
    if not isinstance(rule, Rule):
        rule_of(read.key)  # keeps its arrays, which nobody else does
    return read.key, read.values


@constant
def _read_in_python(rule: RuleLike, arrays: tuple[str, ...]) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Reads a rule that torch.compile holds as a constant."""
    read = read_rule(rule, arrays)
    if read.data and not isinstance(rule, str):
        name = next(iter(read.data))
        raise NamingError(
            f"the function reads {name}, which a compiled program would keep as it is: "
            'make a rule of it first, lt.rule(function), or name it: "doc[q] == doc[k]" with doc=tensor'
        )
    return read.key, tuple(read.values.items())
