"""The arrays a call looks up: which differ along the batch, and those of one of its elements."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from lattend.attend.call import Call
from lattend.attend.form import axes_looked_up
from lattend.errors import LattendError


def batch_of(call: Call) -> int | None:
    """The batch of the arrays that differ along it; None where all elements share them."""
    looked_up = zip(call.data.values(), axes_looked_up(call.rule.key), strict=True)
    return next((len(array) for array, axes in looked_up if array.dim() > axes), None)


def arrays_of(call: Call, element: int) -> dict[str, NDArray[Any]]:
    """The arrays that one batch element looks up; raises where one has no values."""
    found: dict[str, NDArray[Any]] = dict(call.rule.data)
    for (name, tensor), axes in zip(call.data.items(), axes_looked_up(call.rule.key), strict=True):
        if tensor.is_meta:
            raise LattendError(f"{name} has no values here")
        whole = tensor.cpu().numpy()
        found[name] = whole[element % len(whole)] if whole.ndim > axes else whole
    return found
