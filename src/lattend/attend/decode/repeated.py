"""Steps of decoding that are checked once: a later one of the same kind goes to its keys at once.

A kind is all that the checks look at, the text's length aside: two calls of one kind differ in the numbers
in q, k and v, and in how these lie in memory, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.attend.call import OPTIONS, Kind
from lattend.attend.decode.step import Scoring
from lattend.rules.reader import RuleLike
from lattend.rules.rule import Rule


class CheckedStep(NamedTuple):
    """A kind of step that fits its cache, and how its scores are made."""

    kind: Kind
    how: Scoring


def kind_of_step(
    qkv: tuple[Tensor, Tensor, Tensor],
    rule: RuleLike | None,
    values: Mapping[str, Any],
    options: Sequence[float | bool | str | None],
) -> Kind | None:
    """The kind of one new token a row without padding, bias or sinks, on plain tensors; None of other calls.

    `rule` and `values` are those that attention is given, if it is; options are numbers, names and None.
    """
    q, k, v = qkv
    shape, device = q.shape, q.device
    if len(shape) != 4 or shape[2] != 1 or torch.is_autocast_enabled(device.type):
        return None
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return None
    if rule is not None and type(rule) is not str and type(rule) is not Rule:
        return None  # what a function means may change
    if any(type(value) is not int for value in values.values()):
        return None
    kinds = tuple(map(type, options))  # 1 is no True
    if not OPTIONS.issuperset(kinds):
        return None  # it is refused
    return (
        rule, *values.items(), *options, kinds,
        shape, k.shape, v.shape, q.dtype, k.dtype, v.dtype, device, k.device, v.device,
    )  # fmt: skip


def scoring(q: Tensor, scale: float | None, softcap: float | None, return_lse: bool) -> Scoring:
    """How scores are made of options that were checked."""
    return Scoring(1 / sqrt(q.shape[3]) if scale is None else scale, softcap, None, return_lse)
