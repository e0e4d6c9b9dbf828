"""The arrays a call looks up: which differ along the batch, and those of one of its elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.rule_names import axes_looked_up, rule_names
from lattend.errors import LattendError, TensorError
from lattend.rules.rule import Rule


def batch_of(call: AttentionCall) -> int | None:
    """The batch of the arrays that differ along it; None where all elements share them."""
    looked_up = zip(call.data.values(), axes_looked_up(call.rule.key), strict=True)
    return next((len(array) for array, axes in looked_up if array.dim() > axes), None)


def arrays_of(call: AttentionCall, element: int) -> dict[str, NDArray[Any]]:
    """The arrays that one batch element looks up; raises where one has no values."""
    found: dict[str, NDArray[Any]] = dict(call.rule.data)
    for (name, tensor), axes in zip(call.data.items(), axes_looked_up(call.rule.key), strict=True):
        if tensor.is_meta:
            raise LattendError(f"{name} has no values here")
        whole = _numbers(tensor)
        found[name] = whole[element % len(whole)] if whole.ndim > axes else whole
    return found


def _numbers(tensor: Tensor) -> NDArray[Any]:
    found = tensor.cpu()
    if is_functorch_wrapped_tensor(found):  # inside torch.func, where a tensor has no memory of its own
        return np.array(found.tolist(), np.int64).reshape(found.shape)  # pyright: ignore[reportUnknownMemberType]
    return found.numpy()


def with_arrays(rule: Rule, values: Mapping[str, Any]) -> Rule:
    """The rule with those of its open arrays that are among the values."""
    found: dict[str, NDArray[Any]] = {}
    for array in rule_names(rule.key).arrays:
        if array.name in values:
            given, axes = values[array.name], len(array.positions)
            entries = given.cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
            if entries.dtype.kind not in "biu":
                raise TensorError(f"{array.name} must hold whole numbers, got {entries.dtype}")
            if entries.ndim != axes:
                raise TensorError(
                    f"{array.name} has shape {entries.shape}, and {array.lookup} takes {axes} axes: "
                    "in a cache it is the same for the whole batch"
                )
            found[array.name] = entries
    left = tuple(name for name in rule.open if name not in found)
    return replace(rule, data={**rule.data, **found}, open=left)
