"""The formulas of lattend::attention, its backward and lattend::max_logits in torch's own counter.

Importing this file registers them with torch.utils.flop_counter, so that a plain FlopCounterMode counts
twice the needed multiply-adds of lt.attention: of attended pairs whose key is no padding.
attention_operator.py imports it once that counter is loaded.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack  # pyright: ignore[reportPrivateUsage]
from torch.utils.flop_counter import flop_registry, register_flop_formula  # pyright: ignore[reportUnknownVariableType]

from lattend.attend.call.attended_pairs import attended_pairs
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.explain.prediction import masks_of
from lattend.attend.operators import attention_operator
from lattend.attend.operators.operator_arguments import long
from lattend.errors import LattendError

ATTENTION, FORWARD = torch.ops.lattend.attention, torch.ops.lattend.attention_forward
BACKWARD, LARGEST = torch.ops.lattend.attention_backward, torch.ops.lattend.max_logits


def forward_formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
    """Twice the needed multiply-adds of lattend::attention."""
    return 2 * _needed(attention_operator.FORWARD, args, kwargs)


def backward_formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
    """Twice the needed multiply-adds of lattend::attention_backward, which are twice the forward's."""
    return 4 * _needed(attention_operator.BACKWARD, args, kwargs)


def largest_formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
    """Twice the needed multiply-adds of lattend::max_logits: the scores alone."""
    return 2 * _needed(LARGEST.default, args, kwargs)


def _needed(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The multiply-adds of the forward pass; those of all pairs where the attended ones are not known."""
    names = [argument.name for argument in func._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    q, k, v = given["q"], given["k"], given.get("v")
    each, members = q.shape[3] + (0 if v is None else v.shape[3]), q.shape[0] * q.shape[1]
    sizes = [*q.shape, *k.shape, each, *given["numbers"]]
    if not any(isinstance(size, torch.SymInt) for size in sizes):  # else torch.compile would fix them
        call = call_of(given)
        many = masks_of(call, q)
        try:
            return attended_pairs(call, many.batch) * (members // max(1, many.count)) * each
        except (LattendError, RuntimeError) as reason:  # arrays without values, or more than can be counted
            warnings.warn(
                f"attention is counted dense, its attended pairs are not known: {reason}", stacklevel=2
            )
    return members * q.shape[2] * k.shape[2] * each


def call_of(given: Mapping[str, Any]) -> AttentionCall:
    """The call of attention that the operator's arguments stand for, by their names.

    Padding without values, as on the meta device, counts as none.
    """
    numbers = tuple(int(number) for number in given["numbers"])
    call = long(given["given"], given["call"], numbers).attention_call(given["q"])
    unknown = call.key_range is not None and call.key_range.is_meta
    return replace(call, key_range=None, key_mask=None) if unknown else call


def _register() -> None:
    """Tell torch's counter, and those that are counting already: each took its formulas when it was made."""
    for target, formula in FORMULAS.items():
        if target not in flop_registry:
            register_flop_formula(target, get_raw=True)(formula)
    for mode in _get_current_dispatch_mode_stack():
        known = getattr(getattr(mode, "counter", mode), "flop_registry", None)
        if isinstance(known, dict):
            cast(dict[Any, Any], known).update({target: flop_registry[target] for target in FORMULAS})


FORMULAS = {
    ATTENTION: forward_formula,
    FORWARD: forward_formula,
    BACKWARD: backward_formula,
    LARGEST: largest_formula,
}
_register()
