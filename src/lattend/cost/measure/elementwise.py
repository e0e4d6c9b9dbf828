"""Operators that are not products: what each does to every number, and those that only move numbers.

Counted are operations on numbers with a fractional part; those on positions and masks are not. Softmax is
counted plain, with no maximum taken away; sorting and picking compare, and are not counted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import torch

from lattend.cost.measure.tally import NOTHING, Operation, Tally

Formula = Callable[[Operation], Tally]

_OPERATORS = tomllib.loads(Path(__file__).with_name("operators.toml").read_text(encoding="utf-8"))
FREE = set(_OPERATORS["free"].split())


def _tallies(rows: list[dict[str, Any]]) -> dict[str, Tally]:
    """What operators do to a number, by their names."""
    return {
        name: Tally(**tally) for row in rows for tally in [dict(row)] for name in tally.pop("names").split()
    }


# What is done for every number of the result, and for every number that is given
_EACH, _EACH_GIVEN = _tallies(_OPERATORS["each"]), _tallies(_OPERATORS["each_given"])


def other(func: Any, op: Operation) -> Tally | None:
    """What an operator that is no product does; None where it is not known."""
    if op.name in FREE or func.is_view:
        return NOTHING
    if op.name in _FORMULAS:
        return _FORMULAS[op.name](op) if op.floating else NOTHING
    if op.name in _EACH:
        return _EACH[op.name] * op.result.numel() if op.floating else NOTHING
    if op.name in _EACH_GIVEN:
        return _EACH_GIVEN[op.name] * op.first.numel()
    if torch.Tag.pointwise in func.tags:
        return Tally(functions=op.result.numel()) if op.floating else NOTHING
    return None


def knows(func: Any, name: str) -> bool:
    """Whether `other` can tell what the operator does."""
    tables = (FREE, _FORMULAS, _EACH, _EACH_GIVEN)
    return func.is_view or torch.Tag.pointwise in func.tags or any(name in table for table in tables)


# Sums and the like: n numbers in each of so many groups


def _groups(op: Operation) -> tuple[int, int]:
    """How many numbers go in, and into how many they are gathered."""
    return op.first.numel(), op.result.numel()


def _gathered(operations: Callable[[int, int], Tally]) -> Formula:
    """What is done where so many numbers go in, and so many come out."""
    return lambda op: operations(*_groups(op))


def _most(op: Operation) -> Tally:
    numbers, groups = _groups(op)
    if isinstance(op.given.get("other"), torch.Tensor):  # max(a, b) is taken number by number
        return Tally(comparisons=groups)
    return Tally(comparisons=max(0, numbers - groups))


def _variance(op: Operation) -> Tally:
    """Mean, centred numbers, their squares, and the mean of these."""
    numbers, groups = _groups(op)
    roots = groups if op.name.startswith("std") else 0
    return Tally(
        adds=max(0, 3 * numbers - 2 * groups), multiplies=numbers, divisions=2 * groups, functions=roots
    )


def _softmax(op: Operation) -> Tally:
    """One exponential and one division a number, and the sums; a logarithm a row in place of divisions."""
    numbers = op.result.numel()
    rows = numbers // max(1, op.first.shape[op.given["dim"]]) if op.first.dim() else 1
    if op.name == "_log_softmax":
        return Tally(exponentials=numbers, adds=2 * numbers - rows, functions=rows)
    return Tally(exponentials=numbers, adds=numbers - rows, divisions=numbers)


def _power(op: Operation) -> Tally:
    """Small whole powers are multiplies."""
    exponent, numbers = op.given.get("exponent"), op.result.numel()
    if isinstance(exponent, int | float) and float(exponent).is_integer() and 0 <= exponent <= 4:
        return Tally(multiplies=max(0, int(exponent) - 1) * numbers)
    return Tally(functions=numbers)


# Norms


def _normalised(numbers: int, groups: int, op: Operation) -> Tally:
    """Mean, variance, one over the root of it, then a weight and a bias where there are such."""
    weight, bias = (op.given.get(name) is not None for name in ("weight", "bias"))
    tally = Tally(
        adds=3 * numbers - 2 * groups + groups, multiplies=2 * numbers, divisions=3 * groups, functions=groups
    )
    return tally + Tally(multiplies=numbers * weight, adds=numbers * bias)


def _layer_norm(op: Operation) -> Tally:
    size = prod(op.given["normalized_shape"])
    return _normalised(op.first.numel(), op.first.numel() // max(1, size), op)


def _group_norm(op: Operation) -> Tally:
    return _normalised(op.first.numel(), op.given["N"] * op.given["group"], op)


def _batch_norm(op: Operation) -> Tally:
    """With its own mean and variance while training, else with the ones that were kept."""
    numbers, channels = op.first.numel(), op.first.shape[1] if op.first.dim() > 1 else 1
    kept = op.given.get("running_mean") is not None
    if op.given.get("training", not kept):
        running = Tally(multiplies=4 * channels, adds=2 * channels) if kept else NOTHING
        return _normalised(numbers, channels, op) + running
    weight, bias = (op.given.get(name) is not None for name in ("weight", "bias"))
    tally = Tally(adds=numbers + channels, multiplies=numbers, divisions=channels, functions=channels)
    return tally + Tally(multiplies=numbers * weight, adds=numbers * bias)


def _rms_norm(op: Operation) -> Tally:
    numbers = op.first.numel()
    groups = numbers // max(1, prod(op.given["normalized_shape"]))
    weights = numbers if op.given.get("weight") is not None else 0
    return Tally(multiplies=2 * numbers + weights, adds=numbers, divisions=2 * groups, functions=groups)


def _norm_backward(op: Operation) -> Tally:
    """Of the numbers, the weight and the bias; written with the two means of the gradient."""
    numbers = op.first.numel()
    return Tally(multiplies=6 * numbers, adds=7 * numbers)


# Pools


def _max_pool(op: Operation) -> Tally:
    return Tally(comparisons=op.result.numel() * (_kernel(op) - 1))


def _avg_pool(op: Operation) -> Tally:
    return Tally(adds=op.result.numel() * (_kernel(op) - 1), divisions=op.result.numel())


def _kernel(op: Operation) -> int:
    size = op.given["kernel_size"]
    axes = int(next((digit for digit in op.name if digit.isdigit()), "1"))
    sides = [size] if isinstance(size, int) else list(size)
    return prod(sides * axes if len(sides) == 1 else sides)


# Losses, and sums by place


def _loss(each: Tally) -> Formula:
    """So much for every number, and the sum or mean of them."""

    def formula(op: Operation) -> Tally:
        numbers, results = _groups(op)
        reduced = op.given.get("reduction", 1) != 0
        return each * numbers + (Tally(adds=max(0, numbers - results), divisions=1) if reduced else NOTHING)

    return formula


def _nll(op: Operation) -> Tally:
    return Tally(adds=op.given["target"].numel(), divisions=1)


def _added_in_place(op: Operation) -> Tally:
    source = op.given.get("src", op.given.get("source", op.given.get("values")))
    return Tally(adds=source.numel() if isinstance(source, torch.Tensor) else 0)


def _bag(op: Operation) -> Tally:
    return Tally(adds=max(0, op.given["indices"].numel() * op.first.shape[-1] - op.result.numel()))


_FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(["sum", "nansum", "trace"], _gathered(lambda n, m: Tally(adds=max(0, n - m)))),
    **dict.fromkeys(
        ["mean", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d"],
        _gathered(lambda n, m: Tally(adds=max(0, n - m), divisions=m)),
    ),
    "prod": _gathered(lambda n, m: Tally(multiplies=max(0, n - m))),
    **dict.fromkeys(
        ["max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "any", "all", "median", "mode"], _most
    ),
    **dict.fromkeys(["var", "std", "var_mean", "std_mean"], _variance),
    **dict.fromkeys(
        ["linalg_vector_norm", "norm"],
        _gathered(lambda n, m: Tally(multiplies=n, adds=max(0, n - m), functions=m)),
    ),
    **dict.fromkeys(["_softmax", "_safe_softmax", "_log_softmax"], _softmax),
    "logsumexp": _gathered(lambda n, m: Tally(exponentials=n, adds=max(0, n - m), functions=m)),
    "pow": _power,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "_fused_rms_norm": _rms_norm,
    **dict.fromkeys(
        ["native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
         "_native_batch_norm_legit_functional", "cudnn_batch_norm", "miopen_batch_norm",
         "_batch_norm_with_update", "_batch_norm_no_update", "_batch_norm_impl_index"],
        _batch_norm,
    ),
    **dict.fromkeys(
        ["native_layer_norm_backward", "native_group_norm_backward", "native_batch_norm_backward",
         "cudnn_batch_norm_backward", "batch_norm_backward", "_fused_rms_norm_backward"],
        _norm_backward,
    ),
    **dict.fromkeys(
        ["max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool1d", "max_pool2d", "max_pool3d",
         "mkldnn_max_pool2d", "quantized_max_pool2d"],
        _max_pool,
    ),
    **dict.fromkeys(["avg_pool1d", "avg_pool2d", "avg_pool3d"], _avg_pool),
    **dict.fromkeys(
        ["adaptive_max_pool2d", "adaptive_max_pool3d"],
        _gathered(lambda n, m: Tally(comparisons=max(0, n - m))),
    ),
    "mse_loss": _loss(Tally(adds=1, multiplies=1)),
    **dict.fromkeys(["smooth_l1_loss", "huber_loss"], _loss(Tally(adds=1, functions=1))),
    "binary_cross_entropy": _loss(Tally(adds=2, multiplies=2, functions=2)),
    **dict.fromkeys(["nll_loss_forward", "nll_loss2d_forward"], _nll),
    **dict.fromkeys(["index_add", "scatter_add", "scatter_reduce", "index_reduce"], _added_in_place),
    **dict.fromkeys(["_embedding_bag", "_embedding_bag_forward_only"], _bag),
}  # fmt: skip
