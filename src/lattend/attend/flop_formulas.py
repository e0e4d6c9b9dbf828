"""The formulas of lattend::attention and lattend::attention_backward in torch's own counter.

Importing this file registers them with torch.utils.flop_counter, so that a plain FlopCounterMode counts
twice the needed multiply-adds of lt.attention. operator.py does so once that counter is loaded.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack  # pyright: ignore[reportPrivateUsage]
from torch.utils.flop_counter import flop_registry, register_flop_formula  # pyright: ignore[reportUnknownVariableType]

from lattend.attend import operator
from lattend.attend.arrays import arrays_of
from lattend.attend.call import AttentionCall, rule_at
from lattend.attend.explain.prediction import masks_of
from lattend.errors import LattendError

FORWARD, BACKWARD = torch.ops.lattend.attention, torch.ops.lattend.attention_backward
HOW = (
    *("rule", "numbers", "data", "term", "bias", "key_range", "key_mask", "sinks", "seed"),
    *("dropout", "softcap", "scale", "kernel", "deterministic"),
)


def forward_formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
    """Twice the needed multiply-adds of lattend::attention."""
    return 2 * _needed(operator.forward, args, kwargs)


def backward_formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
    """Twice the needed multiply-adds of lattend::attention_backward, which are twice the forward's."""
    return 4 * _needed(operator.backward, args, kwargs)


def _needed(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The multiply-adds of the forward pass; those of all pairs where the attended ones are not known."""
    names = [argument.name for argument in func._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    q, k, v = given["q"], given["k"], given["v"]
    each, members = q.shape[3] + v.shape[3], q.shape[0] * q.shape[1]
    sizes = [*q.shape, *k.shape, *v.shape, *given["numbers"]]
    if not any(isinstance(size, torch.SymInt) for size in sizes):  # else torch.compile would fix them
        call = call_of(given)
        many = masks_of(call, q)
        try:
            return needed_pairs(given, call, many.batch) * (members // max(1, many.count)) * each
        except (LattendError, RuntimeError) as reason:  # arrays without values, or more than can be counted
            warnings.warn(
                f"attention is counted dense, its attended pairs are not known: {reason}", stacklevel=2
            )
    return members * q.shape[2] * k.shape[2] * each


def call_of(given: Mapping[str, Any]) -> AttentionCall:
    """The call of attention that the operator's arguments stand for, by their names."""
    how = {name: given[name] for name in HOW if name != "numbers"}
    return operator.call_of(given["q"], numbers=_numbers(given), **how)


def _numbers(given: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(number) for number in given["numbers"])


def needed_pairs(given: Mapping[str, Any], call: AttentionCall, batch: int) -> int:
    """The attended pairs of all masks that differ."""
    if not call.data:
        return _counted(given["rule"], _numbers(given))
    elements = (replace(call.rule, data=arrays_of(call, element), open=()) for element in range(batch))
    return sum(rule.total() for rule in elements)


@lru_cache(maxsize=1024)
def _counted(key: str, numbers: tuple[int, ...]) -> int:
    return rule_at(key, numbers).total()


def _register() -> None:
    """Tell torch's counter, and those that are counting already: each took its formulas when it was made."""
    for target, formula in ((FORWARD, forward_formula), (BACKWARD, backward_formula)):
        if target not in flop_registry:
            register_flop_formula(target, get_raw=True)(formula)
    for mode in _get_current_dispatch_mode_stack():
        known = getattr(getattr(mode, "counter", mode), "flop_registry", None)
        if isinstance(known, dict):
            cast(dict[Any, Any], known).update(
                {target: flop_registry[target] for target in (FORWARD, BACKWARD)}
            )


_register()
