"""What torch's operators do: products, convolutions and recurrent layers, and arithmetic number by number."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, dtype

from lattend.cost.measure.tally import NOTHING, Operation, Tally

Formula = Callable[[Operation], Tally]

_OPERATORS = tomllib.loads(Path(__file__).with_name("operators.toml").read_text(encoding="utf-8"))
FREE = set(_OPERATORS["free"].split())


def _tallies(rows: list[dict[str, Any]]) -> dict[str, Tally]:
    """The operations of each operator a number, by name."""
    return {
        name: Tally(**tally) for row in rows for tally in [dict(row)] for name in tally.pop("names").split()
    }


# What is done for every number of the result, and for every number that is given
_EACH, _EACH_GIVEN = _tallies(_OPERATORS["each"]), _tallies(_OPERATORS["each_given"])


def other(func: Any, op: Operation) -> Tally | None:
    """The operations of an operator that is no product; None where it is not known."""
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
    """A formula in how many numbers go in and how many come out."""
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
    """The gradients of the numbers, the weight and the bias of a norm."""
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


# The arguments that are multiplied; the last axis of the left one is summed over
MATRICES = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "mv": ("self", "vec"),
    "dot": ("self", "tensor"),
    "vdot": ("self", "other"),
    "addmm": ("mat1", "mat2"),
    "_addmm_activation": ("mat1", "mat2"),
    "addbmm": ("batch1", "batch2"),
    "baddbmm": ("batch1", "batch2"),
    "addmv": ("mat", "vec"),
    "_scaled_mm": ("self", "mat2"),
    "_scaled_mm_v2": ("self", "mat2"),
    "_int_mm": ("self", "mat2"),
}
CUDNN_LSTM, CUDNN_GRU = 2, 3  # how cuDNN and oneDNN number the kinds of recurrent layers


def matrices(op: Operation) -> Tally:
    """A product of matrices or vectors; what is added to it is one add each."""
    left, right = (op.given[name] for name in MATRICES[op.name])
    columns = right.shape[-1] if right.dim() > 1 else 1
    adds = op.result.numel() if op.name.lstrip("_").startswith(("add", "badd")) else 0
    return Tally.of(left.numel() * columns, adds=adds)


def grouped(op: Operation) -> Tally:
    """_grouped_mm: rows, columns or terms in groups, each with a matrix of its own, or a batch."""
    left, right = op.given["self"], op.given["mat2"]
    batch = left.shape[0] if left.dim() == right.dim() == 3 else 1
    adds = op.result.numel() if op.given.get("bias") is not None else 0
    return Tally.of(batch * left.shape[-2] * left.shape[-1] * right.shape[-1], adds=adds)


def grouped_on_meta(
    left: Tensor,
    right: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """The shape of _grouped_mm's result: on the meta device torch itself takes bfloat16 alone.

    Groups of terms give a matrix each, as a batch does; groups of rows or of columns lie in one matrix.
    """
    groups: tuple[int, ...] = ()
    if left.dim() == right.dim() == 2 and offs is not None:
        groups = (offs.shape[0],)
    elif left.dim() == right.dim() == 3:
        groups = (left.shape[0],)
    return left.new_empty((*groups, left.shape[-2], right.shape[-1]), dtype=out_dtype)


def outer(op: Operation) -> Tally:
    """addr: a matrix and the products of two vectors' numbers."""
    return Tally.of(op.result.numel(), adds=op.result.numel())


def trilinear(op: Operation) -> Tally:
    """_trilinear: sums of products of three numbers, a multiply and a multiply-add each."""
    dims = [set(op.given[name]) for name in ("expand1", "expand2", "expand3")]
    parts = [op.given[name] for name in ("i1", "i2", "i3")]
    axes = max(part.dim() + len(expanded) for part, expanded in zip(parts, dims, strict=True))
    sizes = [1] * axes
    for part, expanded in zip(parts, dims, strict=True):
        own = iter(part.shape)
        for axis in range(axes):
            if axis not in expanded:
                sizes[axis] = max(sizes[axis], next(own))
    return Tally.of(prod(sizes), multiplies=prod(sizes))


# Convolutions


def inside(size: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many pairs of an output and a tap of the kernel read a position within the input, on one axis.

    >>> inside(5, 5, 3, 1, 1, 1)  # the first and the last output have two taps inside: 2 + 3*3 + 2
    13
    """
    total = 0
    for tap in range(kernel):
        shift = padding - tap * dilation  # output o reads position o*stride - shift
        first = max(0, -(-shift // stride))
        last = min(out - 1, (size - 1 + shift) // stride)
        total += max(0, last - first + 1)
    return total


def convolution(op: Operation) -> Tally:
    """A convolution, or a transposed one."""
    source, weight = _source(op), op.given["weight"]
    tally = _passes(op, source, weight, op.result, 1)
    return tally + Tally(adds=op.result.numel() if op.given.get("bias") is not None else 0)


def convolution_backward(op: Operation) -> Tally:
    """Its gradients: as many products for the input's as for the weight's, where each is asked for."""
    wanted = op.given["output_mask"]
    grad = op.given["grad_output"]
    tally = _passes(op, _source(op), op.given["weight"], grad, int(wanted[0]) + int(wanted[1]))
    adds = grad.numel() - grad.shape[1] if wanted[2] else 0
    return tally + Tally(adds=max(0, adds))


def _passes(op: Operation, source: Tensor, weight: Tensor, out: Tensor, times: int) -> Tally:
    """`times` the products of a convolution of `source` that gives `out`."""
    axes = weight.dim() - 2
    stride, padding, dilation = (_each(op.given[name], axes) for name in ("stride", "padding", "dilation"))
    transposed = bool(op.given.get("transposed", False))
    small, large = (source, out) if transposed else (out, source)  # each of `small` meets the whole kernel
    sizes = zip(large.shape[-axes:], small.shape[-axes:], weight.shape[2:], strict=True)
    hows = zip(stride, padding, dilation, strict=True)
    pairs = [inside(*size, *how) for size, how in zip(sizes, hows, strict=True)]
    batch = source.shape[0] if source.dim() == weight.dim() else 1
    groups = op.given.get("groups", 1)
    inputs = weight.shape[0] // groups if transposed else weight.shape[1]
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    each = batch * inputs * outputs * times
    every = each * prod(small.shape[-axes:]) * prod(weight.shape[2:])
    return Tally(each * prod(pairs), every, every)


def _source(op: Operation) -> Tensor:
    return op.given["input"] if "input" in op.given else op.given["self"]


def _each(value: int | Sequence[int], axes: int) -> Sequence[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * axes if len(values) == 1 else values


# Recurrent layers that a library runs whole


def library_rnn(op: Operation) -> Tally:
    """A recurrent layer of cuDNN or oneDNN: every step multiplies every matrix once."""
    steps, weights, mode, hidden, biases = _recurrent(op)
    matrices = sum(weight.numel() for weight in weights)
    layers = max(1, len(weights) // 2)
    units = steps * layers * hidden
    gates = {CUDNN_LSTM: 4, CUDNN_GRU: 3}.get(mode, 1)
    others = {
        CUDNN_LSTM: Tally(multiplies=3, adds=1, functions=5),
        CUDNN_GRU: Tally(multiplies=3, adds=2, functions=3),
    }.get(mode, Tally(functions=1))
    sums = Tally(adds=gates * (3 if biases else 1))
    return Tally.of(steps * matrices) + (others + sums) * units


def library_rnn_backward(op: Operation) -> Tally:
    """Its gradients: each matrix once for itself, and once for what it was multiplied by, where asked for."""
    steps, weights, *_ = _recurrent(op)
    both = 2 * steps * sum(weight.numel() for weight in weights)
    stacks = op.given.get("num_layers", 1) if "weight" in op.given else 1
    directions = 2 if op.given.get("bidirectional") and "weight" in op.given else 1
    each = len(weights) // (stacks * directions)  # W_ih, W_hh, and a projection perhaps
    unasked = 0
    if not op.given["input"].requires_grad:
        unasked += steps * sum(weights[each * i].numel() for i in range(directions))
    start = next(op.given[name] for name in ("hx", "hx_") if name in op.given)
    if not start.requires_grad:
        rows = start.numel() // (start.shape[-1] * stacks * directions)
        unasked += rows * sum(weight.numel() for weight in weights[1::each])
    return Tally(both - unasked, both, both)


def _recurrent(op: Operation) -> tuple[int, list[Tensor], int, int, bool]:
    """Steps of the whole batch, the matrices, the kind, the hidden size, and whether there are biases."""
    arguments = op.given
    source = arguments["input"]
    if "weight" in arguments:
        weights = list(arguments["weight"])
    else:
        weights = [
            arguments[name] for name in sorted(arguments) if name.startswith("weight") and name[6:].isdigit()
        ]
    matrices = [weight for weight in weights if weight.dim() == 2]
    biases = any(weight.dim() == 1 for weight in weights) and bool(arguments.get("has_biases", True))
    steps = source.numel() // max(1, source.shape[-1])
    return steps, matrices, int(arguments["mode"]), int(arguments["hidden_size"]), biases


FORMULAS: dict[str, Callable[[Operation], Tally]] = {
    **dict.fromkeys(MATRICES, matrices),
    **dict.fromkeys(["_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2"], grouped),
    "addr": outer,
    "_trilinear": trilinear,
    **dict.fromkeys(
        ["convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "miopen_convolution",
         "mkldnn_convolution"],
        convolution,
    ),
    "convolution_backward": convolution_backward,
    **dict.fromkeys(["mkldnn_rnn_layer", "_cudnn_rnn", "miopen_rnn"], library_rnn),
    **dict.fromkeys(
        ["mkldnn_rnn_layer_backward", "_cudnn_rnn_backward", "miopen_rnn_backward"], library_rnn_backward
    ),
}  # fmt: skip
